//! What comes along: the units of systemd, and scripts.

use sledge_tests::process::{self, Finished};
use sledge_tests::programs;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(120);

fn root() -> PathBuf {
    programs::tests_folder().parent().expect("the repository").to_owned()
}

/// The units as `make install` installs them, with the programs below `prefix`.
fn installed_units(prefix: &Path) -> [PathBuf; 2] {
    ["sledge.service", "sledge.socket"].map(|name| {
        let unit = fs::read_to_string(root().join("packaging").join(name)).expect("a unit");
        let path = prefix.join(name);
        fs::write(&path, unit.replace("@PREFIX@", &prefix.display().to_string())).expect("write");
        path
    })
}

#[test]
fn systemd_of_debian_12_takes_the_units() {
    let prefix = tempfile::tempdir().expect("a folder");
    fs::create_dir(prefix.path().join("bin")).expect("a folder");
    fs::copy(programs::sledge(), prefix.path().join("bin/sledge")).expect("copy");
    let units = installed_units(prefix.path());
    let done = process::run(Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&units), b"", TIME_MAX);
    // What it only warns of is ignored when the unit starts, which then is another unit.
    assert_eq!((done.code(), done.stderr.as_str()), (0, ""));
    // Newer ones know more than Debian 12's, whose version 252 has no `notify-reload`.
    let service = fs::read_to_string(&units[0]).expect("a unit");
    for line in ["Type=notify", "ExecReload=/bin/kill -HUP $MAINPID"] {
        assert!(service.lines().any(|other| other == line), "{line} is missing in:\n{service}");
    }
}

/// What the program prints for these arguments.
fn printed(program: &Path, args: &[&str]) -> String {
    let done = process::run(Command::new(program).args(args), b"", TIME_MAX);
    assert_eq!((done.code(), done.stderr.as_str()), (0, ""), "{args:?}");
    done.text()
}

#[test]
fn shells_complete_commands_and_options() {
    let folder = tempfile::tempdir().expect("a folder");
    for (program, name, line, expected) in [
        (programs::sledge(), "sledge", "sledge pro", "promote"),
        (programs::sledge(), "sledge", "sledge config ch", "check"),
        (programs::sledge(), "sledge", "sledge deploy --perc", "--percent"),
        (programs::awsm(), "awsm", "awsm comp", "compile componentize compose completions"),
        (programs::awsm(), "awsm", "awsm compile --bou", "--bounds"),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, printed(program, &["completions", "bash"])).expect("write");
        let words = line.split(' ').count() - 1;
        let script = format!(
            "source {}; COMP_WORDS=({line}); COMP_CWORD={words}; _{name} {name} \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        assert_eq!(printed(Path::new("bash"), &["-c", &script]).trim_end(), expected, "{line}");
        for shell in ["zsh", "fish"] {
            assert!(printed(program, &["completions", shell]).contains(name), "{shell}");
        }
    }
}

#[test]
fn each_command_has_a_page_of_the_manual() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().to_str().expect("text");
    for program in [programs::sledge(), programs::awsm()] {
        assert_eq!(printed(program, &["manual", pages]), "");
    }
    for (page, what) in [
        ("sledge.1", "Serves WebAssembly functions"),
        ("sledge-deploy.1", "percent"),
        ("sledge-config-check.1", "Check a configuration file"),
        ("awsm-compile.1", "output"),
    ] {
        let text = fs::read_to_string(folder.path().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.contains(".TH ") && text.contains(what), "{page}:\n{text}");
    }
    // What is not for users has none.
    assert!(!folder.path().join("sledge-manual.1").exists());
    let missing = folder.path().join("missing");
    let done = process::run(Command::new(programs::sledge()).arg("manual").arg(&missing), b"", TIME_MAX);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    assert!(done.stderr.contains(missing.to_str().expect("text")), "{}", done.stderr);
}

fn audit(cargo: &Path, folders: &[&str]) -> Finished {
    process::run(Command::new(root().join("scripts/audit")).args(folders).env("CARGO", cargo), b"", TIME_MAX)
}

#[test]
fn an_audit_that_checked_nothing_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let cargo = |name: &str, script: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        path
    };
    let without_deny = audit(&cargo("without-deny", "exit 101"), &["."]);
    assert_eq!(without_deny.code(), 1, "{}", without_deny.text());
    assert!(without_deny.stderr.contains("NOT CHECKED: cargo-deny is not installed"), "{}", without_deny.stderr);
    // Everything else is good.
    let offline = audit(&cargo("offline", "case \"$*\" in *' fetch '*) echo unreachable; exit 1;; esac"), &["."]);
    assert_eq!(offline.code(), 1, "{}", offline.text());
    assert!(offline.stderr.contains("unreachable\naudit: advisories NOT CHECKED"), "{}", offline.stderr);
    assert!(offline.text().contains("audit: .: bans licenses sources\n"), "{}", offline.text());
    let good = cargo("good", "");
    assert_eq!(audit(&good, &["."]).code(), 0);
    assert_eq!(audit(&good, &[]).code(), 1);
    assert_eq!(audit(&cargo("findings", "case \"$*\" in *' check '*) exit 1;; esac"), &["."]).code(), 1);
}
