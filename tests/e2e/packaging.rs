//! What comes along: the units of systemd, and scripts.

use sledge_tests::process::{self, Finished};
use sledge_tests::programs;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(60);

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
