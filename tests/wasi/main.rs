//! WASI preview 1: programs of our own, in C and Rust, that call every function of it, with the errors it has. They run as users run theirs:
//! through `awsm compile` and `sledge run`, or a server.

mod alone;
mod scratch;
mod served;

use std::path::Path;

use sledge_tests::programs;
use tempfile::TempDir;

/// Folders to grant, with things in them that lead out.
struct Folders {
    all: TempDir,
}

impl Folders {
    /// `w` and `w2` to write to, `r` to read, and `outside`, to which links lead.
    fn new() -> Folders {
        let all = tempfile::tempdir().expect("a folder");
        let folders = Folders { all };
        for name in ["w", "w2", "r/folder", "outside/empty"] {
            std::fs::create_dir_all(folders.path(name)).expect("a folder");
        }
        std::fs::write(folders.path("r/kept"), "kept").expect("a file");
        std::fs::write(folders.path("outside/secret"), "secret").expect("a file");
        let link = |target: &Path, name: &str| std::os::unix::fs::symlink(target, folders.path(name)).expect("a link");
        link(Path::new("../outside"), "w/out");
        link(&folders.path("outside"), "w/absolute");
        link(Path::new("./out/../out"), "w/chain");
        folders
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.all.path().join(name)
    }

    /// Nothing outside of what was granted for writing is other than it was.
    fn assert_untouched(&self) {
        let names = |folder: &str| {
            let entries = std::fs::read_dir(self.path(folder)).expect("a folder");
            let mut names: Vec<_> =
                entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
            names.sort();
            names
        };
        let read = |file: &str| std::fs::read_to_string(self.path(file)).expect("a file");
        assert_eq!(
            (names("outside"), read("outside/secret").as_str()),
            (vec!["empty".to_owned(), "secret".to_owned()], "secret")
        );
        assert_eq!((names("r"), read("r/kept").as_str()), (vec!["folder".to_owned(), "kept".to_owned()], "kept"));
        assert_eq!(names("."), ["outside", "r", "w", "w2"]);
        assert!(!Path::new("/tmp/sledge-must-not-be-there").exists());
    }
}

/// A program of `programs/`, compiled.
fn program(file: &str) -> std::path::PathBuf {
    programs::compiled(&Path::new("wasi/programs").join(file), &[])
}
