//! The drill of `docs/operations.md`: each command in it is run as it stands there, and its output compared with the document's.
//!
//! The commands run in one shell, in namespaces of their own (`machine.sh`): processes, network and mounts. So the drill may install to /usr/local,
//! listen on port 8080 and fill a disk, and leaves nothing behind. As root or, where the kernel lets users make namespaces, as any user.
//!
//! `BLESS=1 cargo test -p sledge-tests --test drill` writes the outputs into the document. What differs from run to run (times, sizes, digests) is
//! compared as a word in capitals, and stays in the document as it was seen.

mod document;
mod shell;
mod varying;

use document::{Document, Part};
use shell::Shell;
use sledge_tests::{golden, programs};

#[test]
fn every_command_of_the_operations_manual_says_what_stands_there() {
    let file = programs::tests_folder().parent().expect("the repository").join("docs/operations.md");
    let text = std::fs::read_to_string(&file).expect("docs/operations.md");
    let mut document = Document::parse(&text);
    let mut shell = Shell::start();
    let mut differences = Vec::new();
    for part in &mut document.parts {
        let Part::Command { line, command, output } = part else { continue };
        let seen = shell.run(command);
        if varying::erased(output) != varying::erased(&seen) {
            let difference = golden::difference(&varying::erased(output), &varying::erased(&seen));
            differences.push(format!("line {line}: {command}{difference}"));
            *output = seen;
        }
    }
    if golden::is_blessing() {
        std::fs::write(&file, document.text()).expect("write docs/operations.md");
    } else {
        assert!(differences.is_empty(), "{} differs (BLESS=1 takes it over):\n{}", file.display(), differences.join("\n"));
    }
}
