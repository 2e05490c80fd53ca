//! Programs that check everything themselves, by `sledge run`.

use std::process::Command;
use std::time::Duration;

use sledge_tests::process::{self, Finished};
use sledge_tests::programs;

use crate::{Folders, program};

const TIME_MAX: Duration = Duration::from_secs(120);

/// A command that runs a program with the folders.
fn run(file: &str, folders: &Folders) -> Command {
    let mut command = programs::sledge_command(&["run"]);
    for (name, rest) in [("w", "::/w::rw"), ("r", "::/r"), ("w2", "::/w2::rw")] {
        command.arg("--dir").arg(format!("{}{rest}", folders.path(name).display()));
    }
    command.arg(program(file));
    command
}

fn finish(mut command: Command) -> Finished {
    process::run(&mut command, b"", TIME_MAX)
}

/// It ended well, and said its name at its end.
#[track_caller]
fn assert_done(done: &Finished, name: &str) {
    assert_eq!((done.code(), done.text().as_str()), (0, format!("{name}\n").as_str()), "{}", done.stderr);
}

#[test]
fn files() {
    let folders = Folders::new();
    assert_done(&finish(run("files.c", &folders)), "files");
    assert_eq!(std::fs::read(folders.path("w/stdio")).expect("a file that it wrote"), b"3 lines\n");
    folders.assert_untouched();
}

#[test]
fn folders() {
    let folders = Folders::new();
    assert_done(&finish(run("folders.c", &folders)), "folders");
    assert_eq!(std::fs::read_dir(folders.path("w/many")).expect("a folder that it made").count(), 200);
    folders.assert_untouched();
}

#[test]
fn what_leads_out_or_is_wrong_is_refused() {
    let folders = Folders::new();
    std::fs::create_dir(folders.path("w/below")).expect("a folder");
    std::os::unix::fs::symlink("..", folders.path("w/below/up")).expect("a link");
    let made = Command::new("mkfifo").arg(folders.path("w/pipe")).status().expect("mkfifo");
    assert!(made.success());
    assert_done(&finish(run("refused.c", &folders)), "refused");
    folders.assert_untouched();
}

#[test]
fn arguments_environment_time_and_end() {
    for (end, status) in [("0", 0), ("1", 1), ("33", 33), ("255", 255), ("256", 1), ("raise", 143)] {
        let folders = Folders::new();
        let mut command = programs::sledge_command(&["run"]);
        for variable in ["NAME=value", "EMPTY=", &format!("END={end}")] {
            command.args(["--env", variable]);
        }
        command.arg("--dir").arg(format!("{}::/w::rw", folders.path("w").display()));
        command.arg(program("process.c")).args(["--", "one", "", "th ree"]);
        let done = finish(command);
        assert_eq!((done.code(), done.text().as_str()), (status, "process\n"), "{end}: {}", done.stderr);
    }
}

#[test]
fn the_standard_library_of_rust() {
    let folders = Folders::new();
    assert_done(&finish(run("std_fs.rs", &folders)), "std_fs");
    folders.assert_untouched();
}

/// Only what is named is granted, under the name that is given.
#[test]
fn a_folder_is_named_as_the_command_line_says() {
    let folders = Folders::new();
    let serve = program("serve.c");
    let run = |dir: &str, file: &[u8]| {
        let mut command = programs::sledge_command(&["run", "--dir", dir]);
        command.arg(&serve).current_dir(folders.all.path());
        let done = process::run(&mut command, file, TIME_MAX);
        (done.code(), done.text(), done.stderr)
    };
    assert_eq!(run("r::/data", b"kept"), (0, "kept".to_owned(), String::new()));
    assert_eq!(run(".::/data", b"r/kept"), (0, "kept".to_owned(), String::new()));
    // A name for the guest that is not where the program looks.
    assert_ne!(run("r::/other", b"kept").1, "kept");
    let (code, _, stderr) = run("none::/data", b"");
    assert!(code == 1 && stderr.contains("dirs: none (for the guest `/data`): No such file"), "{code}: {stderr}");
    let (code, _, stderr) = run("r::/data::w", b"");
    assert!(code == 2 && stderr.contains("`w` is none of `ro`, `rw` and `scratch`"), "{code}: {stderr}");
    let mut many = programs::sledge_command(&["run"]);
    many.args((0..17).flat_map(|number| ["--dir".to_owned(), format!("r::/{number}")]))
        .arg(&serve)
        .current_dir(folders.all.path());
    let done = process::run(&mut many, b"", TIME_MAX);
    assert!(done.code() == 2 && done.stderr.contains("17 folders; a function has at most 16"), "{}", done.stderr);
}

/// All sandboxes together leave half of the process's descriptors to others.
#[test]
fn the_process_keeps_descriptors_for_itself() {
    let folders = Folders::new();
    let sledge = programs::sledge_command(&["run", "--dir", "r::/data"]);
    let mut command = Command::new("sh");
    // It opens 21 files.
    command.args(["-c", r#"ulimit -n 40 && exec "$@""#, "sh"]).arg(sledge.get_program()).args(sledge.get_args());
    command.arg(program("serve.c")).current_dir(folders.all.path());
    let done = process::run(&mut command, b"kept", TIME_MAX);
    assert_eq!((done.code(), done.text().as_str()), (0, "Too many open files in system"), "{}", done.stderr);
}

/// Standard input that has nothing yet: the program waits for it or for its own time, whichever is first.
#[test]
fn waiting_for_input_ends_with_the_time() {
    let folders = Folders::new();
    let mut command = programs::sledge_command(&["run", "--timeout", "300ms"]);
    command.arg(program("sleep.c")).current_dir(folders.all.path());
    let done = process::run(&mut command, b"60000", TIME_MAX);
    assert_eq!(done.code(), 124, "{}", done.stderr);
}
