//! C++: which of a program's sources are C++, where its library is, and whether that throws.
//!
//! | where libc++ is from | exceptions |
//! |---|---|
//! | Debian | none: its packages are built without; [`Runtimes`] have some, where their sources are |
//! | wasi-sdk, or another folder given by `--sysroot` | if an unwinder lies there |
//!
//! What the user says of exceptions (`-fno-exceptions`, `-fwasm-exceptions`) counts more.

use std::ffi::OsString;
use std::path::Path;

use super::FrontendError;
use super::clang::{Clang, DEBIAN_HEADERS};
use super::runtimes::{DEBIAN_CPP_HEADERS, EXCEPTIONS, FINISHED, Runtimes};

/// How the names of C++'s sources end, as clang has it.
pub(super) const EXTENSIONS: [&str; 5] = ["cpp", "cc", "cxx", "c++", "C"];

const ADVICE: &str = "On Debian: apt install libc++-22-dev-wasm32 libc++abi-22-dev-wasm32. Elsewhere: install wasi-sdk and set WASI_SDK_PATH to its \
                      folder";

/// Something of each of Debian's packages, by which they are known.
const DEBIAN_FILES: [&str; 4] = [
    "/usr/include/wasm32-wasi/c++/v1/vector",
    "/usr/include/wasm32-wasi/c++/v1/cxxabi.h",
    "/usr/lib/wasm32-wasi/libc++.a",
    "/usr/lib/wasm32-wasi/libc++abi.a",
];

/// Where an unwinder lies in a wasi-sdk that has exceptions: alone, or beside a library without them, among which clang chooses.
const UNWINDERS: [&str; 2] = ["lib/wasm32-wasi/libunwind.a", "lib/wasm32-wasi/eh/libunwind.a"];

/// What clang is told of C++.
pub(super) struct Cpp {
    /// Before the sources.
    pub(super) flags: Vec<OsString>,
    /// Behind them.
    pub(super) libraries: Vec<OsString>,
}

/// Whether any of these is a source in C++.
pub(super) fn is_among<'a>(mut inputs: impl Iterator<Item = &'a Path>) -> bool {
    inputs.any(|input| {
        input.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| EXTENSIONS.contains(&extension))
    })
}

impl Cpp {
    /// For a clang and the user's own arguments for it. Builds the library that throws, if it is to be used for the first time.
    pub(super) fn find(clang: &Clang, arguments: &[String]) -> Result<Cpp, FrontendError> {
        let wish = Wish::of(arguments);
        match given_sysroot(arguments).or(clang.sysroot.as_deref()) {
            Some(sysroot) => Ok(Cpp::of_sysroot(sysroot, &wish)),
            None => Cpp::of_debian(clang, &wish),
        }
    }

    /// Clang finds headers and libraries there itself.
    fn of_sysroot(sysroot: &Path, wish: &Wish) -> Cpp {
        let has_exceptions = UNWINDERS.iter().any(|unwinder| sysroot.join(unwinder).is_file());
        let throws = wish.throws.unwrap_or(has_exceptions);
        let mut libraries = vec!["-lc++".into(), "-lc++abi".into()];
        if throws && has_exceptions {
            libraries.push("-lunwind".into());
        }
        Cpp { flags: wish.flags(throws), libraries: wish.linked(libraries) }
    }

    fn of_debian(clang: &Clang, wish: &Wish) -> Result<Cpp, FrontendError> {
        check_debian(Path::new("/"))?;
        let runtimes = if wish.throws == Some(false) { None } else { Runtimes::find()? };
        let mut flags = wish.flags(wish.throws.unwrap_or(runtimes.is_some()));
        // Before clang's own headers, and these before the C library's; for sources in C there are no headers of C++.
        flags.extend(["-Xclang", "-c-isystem", "-Xclang", DEBIAN_HEADERS].map(OsString::from));
        flags.extend(["-cxx-isystem", DEBIAN_CPP_HEADERS, "-cxx-isystem", DEBIAN_HEADERS].map(OsString::from));
        let libraries = match runtimes {
            Some(runtimes) if wish.links => vec![runtimes.archive(clang)?.into()],
            _ => wish.linked(vec!["-lc++".into(), "-lc++abi".into()]),
        };
        Ok(Cpp { flags, libraries })
    }
}

/// In one argument, or in two.
fn given_sysroot(arguments: &[String]) -> Option<&Path> {
    let mut following = arguments.iter();
    while let Some(argument) = following.next() {
        match argument.strip_prefix("--sysroot") {
            Some("") => return following.next().map(Path::new),
            Some(rest) => return rest.strip_prefix('=').map(Path::new),
            None => {}
        }
    }
    None
}

/// Whether Debian's packages are installed in a root folder.
fn check_debian(root: &Path) -> Result<(), FrontendError> {
    let missing = DEBIAN_FILES.iter().find(|file| !root.join(file.trim_start_matches('/')).is_file());
    missing.map_or(Ok(()), |file| {
        Err(FrontendError::ToolMissing {
            what: "the C++ library for WebAssembly",
            looked_for: (*file).to_owned(),
            advice: ADVICE,
        })
    })
}

/// What the user's own arguments say.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    /// Whether there are exceptions, if they say so.
    throws: Option<bool>,
    /// Which form of them, if they say so.
    says_form: bool,
    /// Whether the library is linked.
    links: bool,
}

impl Wish {
    fn of(arguments: &[String]) -> Wish {
        let throws = arguments.iter().rev().find_map(|argument| match argument.as_str() {
            "-fwasm-exceptions" => Some(true),
            "-fno-exceptions" | "-fignore-exceptions" => Some(false),
            _ => None,
        });
        Wish {
            throws,
            says_form: arguments.iter().any(|argument| argument.contains("-wasm-use-legacy-eh")),
            links: !arguments.iter().any(|argument| ["-nostdlib", "-nostdlib++", "-nodefaultlibs"].contains(&argument.as_str())),
        }
    }

    /// What is said for them.
    fn flags(&self, throws: bool) -> Vec<OsString> {
        match (self.throws, throws) {
            (Some(true), _) if !self.says_form => vec!["-mllvm".into(), FINISHED.into()],
            (Some(_), _) => Vec::new(),
            (None, true) if self.says_form => vec![EXCEPTIONS[0].into()],
            (None, true) => EXCEPTIONS.map(OsString::from).to_vec(),
            (None, false) => vec!["-fno-exceptions".into()],
        }
    }

    fn linked(&self, libraries: Vec<OsString>) -> Vec<OsString> {
        if self.links { libraries } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn wish(arguments: &[&str]) -> Wish {
        Wish::of(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn sources_are_known_by_their_names() {
        let is_cpp = |name: &str| is_among([Path::new("a.c"), Path::new(name)].into_iter());
        assert!(["a.cpp", "x/a.cc", "a.cxx", "a.c++", "a.C"].into_iter().all(is_cpp));
        assert!(!["a.c", "a.o", "cpp", "-lc++", "a.hpp", "a.rs"].into_iter().any(is_cpp));
    }

    #[test]
    fn what_the_user_says_of_exceptions_counts() {
        assert_eq!(wish(&[]).flags(true), EXCEPTIONS);
        assert_eq!(wish(&[]).flags(false), ["-fno-exceptions"]);
        assert_eq!(wish(&["-fno-exceptions"]).throws, Some(false));
        assert_eq!(wish(&["-fno-exceptions"]).flags(false), [""; 0]);
        assert_eq!(wish(&["-fno-exceptions", "-fwasm-exceptions"]).flags(true), ["-mllvm", FINISHED]);
        assert_eq!(wish(&["-fwasm-exceptions", "-mllvm", "-wasm-use-legacy-eh=true"]).flags(true), [""; 0]);
        assert!(wish(&["-O2"]).links && !wish(&["-nostdlib"]).links);
    }

    #[test]
    fn a_sysroot_is_given_in_one_argument_or_two() {
        let given = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
            given_sysroot(&arguments).map(Path::to_owned)
        };
        assert_eq!(given(&["-O2", "--sysroot=/a"]), Some("/a".into()));
        assert_eq!(given(&["--sysroot", "/a", "-O2"]), Some("/a".into()));
        assert_eq!((given(&["-O2"]), given(&["--sysroot"])), (None, None));
    }

    #[test]
    fn what_is_not_installed_is_named_with_its_packages() {
        let root = tempfile::tempdir().unwrap();
        for (at, file) in DEBIAN_FILES.iter().enumerate() {
            let said = check_debian(root.path()).unwrap_err().to_string();
            assert!(said.contains(&format!("looked for {file}. On Debian: apt install libc++-22-dev-wasm32")), "{at}: {said}");
            let path = root.path().join(file.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        check_debian(root.path()).unwrap();
    }

    #[test]
    fn a_wasi_sdk_throws_if_it_has_an_unwinder() {
        let sysroot = tempfile::tempdir().unwrap();
        let found = |arguments: &[&str]| {
            let found = Cpp::of_sysroot(sysroot.path(), &wish(arguments));
            (found.flags, found.libraries)
        };
        let all = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(found(&[]), (all(&["-fno-exceptions"]), all(&["-lc++", "-lc++abi"])));
        fs::create_dir_all(sysroot.path().join("lib/wasm32-wasi/eh")).unwrap();
        fs::write(sysroot.path().join("lib/wasm32-wasi/eh/libunwind.a"), "").unwrap();
        assert_eq!(found(&[]), (all(&EXCEPTIONS), all(&["-lc++", "-lc++abi", "-lunwind"])));
        assert_eq!(found(&["-fno-exceptions"]), (all(&[]), all(&["-lc++", "-lc++abi"])));
        assert_eq!(found(&["-nostdlib++"]).1, all(&[]));
    }
}
