//! Conformance to WASI, interface by interface: programs of our own call every function and print what they see. What they print here is compared with
//! what they print in wasmtime, line by line. Differences that are known stand in `differences.txt`, each with its reason.
//!
//! What the wasmtime of `Cargo.toml` printed is kept in `expected/`. `make test-conformance` runs wasmtime, too (CONFORMANCE_REFERENCE names the program `reference`),
//! and holds that text against it; with BLESS=1 it writes it. A case that wasmtime does not carry out to its end only has to end as it should.

mod differences;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use differences::Differences;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::{self, awsm_command, sledge_command};

/// How long cargo may take.
const BUILD_TIME_MAX: Duration = Duration::from_secs(600);
const TIME_MAX: Duration = Duration::from_secs(60);

/// How a folder is granted that the program changes for itself.
const SCRATCH: &str = "scratch";

/// One run of a program.
struct Case {
    /// `wasi2` or `wasi3`: the program.
    program: &'static str,
    args: &'static [&'static str],
    stdin: &'static str,
    status: i32,
    /// Whether wasmtime's output is kept.
    is_kept: bool,
}

impl Case {
    const fn of(program: &'static str, args: &'static [&'static str]) -> Case {
        Case { program, args, stdin: "", status: 0, is_kept: true }
    }

    const fn stdin(self, stdin: &'static str) -> Case {
        Case { stdin, ..self }
    }

    const fn status(self, status: i32) -> Case {
        Case { status, ..self }
    }

    /// wasmtime traps in it: it drops a standard stream before its pollables, or a component reads what it writes itself and that are no numbers.
    const fn alone(self) -> Case {
        Case { is_kept: false, ..self }
    }

    fn name(&self) -> String {
        format!("{}-{}", self.program, self.args[0])
    }

    /// A folder to write to, in that way, and one to read, both new, as options of both runtimes.
    fn folders(scratch: &Path, way: &str) -> [String; 2] {
        let [write, read] = ["w", "r"].map(|name| scratch.join(name));
        fs::create_dir_all(&write).expect("a folder");
        fs::create_dir_all(read.join("folder")).expect("a folder");
        fs::write(read.join("kept"), "kept").expect("a file");
        fs::write(write.join("kept"), "kept").expect("a file");
        [format!("--dir={}::/w::{way}", write.display()), format!("--dir={}::/r", read.display())]
    }

    fn finish(&self, mut command: Command, way: &str) -> Finished {
        let scratch = tempfile::tempdir().expect("a folder");
        command.args(Case::folders(scratch.path(), way)).args(["--env", "A=1", "--env", "EMPTY="]);
        let done = process::run(command.arg("--").args(self.args), self.stdin.as_bytes(), TIME_MAX);
        if way == SCRATCH {
            let written = scratch.path().join("w");
            let names: Vec<_> =
                fs::read_dir(&written).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
            assert_eq!(names, ["kept"], "{}: a private change is in the folder", self.name());
            assert_eq!(fs::read(written.join("kept")).expect("a file"), b"kept");
        }
        done
    }

    fn here(&self, way: &str) -> Finished {
        let mut command = sledge_command(&["run"]);
        let hosts = ["127.0.0.0/8:1-65535", "0.0.0.0/0:1-65535", "[::1]:1-65535", "[::]/0:1-65535", "localhost:1-65535"];
        let places = ["127.0.0.0/8:0-65535", "0.0.0.0/0:0-65535", "0.0.0.0:0-65535", "[::1]:0-65535", "[::]/0:0-65535"];
        command
            .args(hosts.map(|host| format!("--socket-host={host}")))
            .args(places.map(|place| format!("--socket-listen={place}")));
        command.arg(artifact(self.program));
        self.finish(command, way)
    }

    fn there(&self, reference: &Path) -> Finished {
        let mut command = Command::new(reference);
        command.arg(component(self.program)).arg("--network");
        self.finish(command, "rw")
    }
}

/// Builds a program; the component.
fn component(program: &str) -> PathBuf {
    let target = programs::awsm().with_file_name("tests-components");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--target", "wasm32-wasip2"]).env("CARGO_TARGET_DIR", &target);
    cargo.current_dir(programs::tests_folder().join("conformance/programs").join(program));
    let built = process::run(&mut cargo, b"", BUILD_TIME_MAX);
    assert!(built.status.success(), "{cargo:?}: {}", built.stderr);
    let release = target.join("wasm32-wasip2/release");
    let names = [format!("conformance-{program}.wasm"), format!("conformance_{program}.wasm")];
    names.map(|name| release.join(name)).into_iter().find(|path| path.exists()).expect("cargo made it")
}

/// The same, compiled, once for each program.
fn artifact(program: &'static str) -> &'static Path {
    static ARTIFACTS: LazyLock<[(&str, PathBuf); 2]> =
        LazyLock::new(|| ["wasi2", "wasi3"].map(|program| (program, compiled(program))));
    &ARTIFACTS.iter().find(|(known, _)| *known == program).expect("one of them").1
}

fn compiled(program: &str) -> PathBuf {
    let artifact = programs::folder().join(format!("conformance-{program}.so"));
    let compiled =
        process::run(awsm_command(&["compile", "-O", "0"]).arg(component(program)).arg("-o").arg(&artifact), b"", BUILD_TIME_MAX);
    assert_eq!(compiled.code(), 0, "{}", compiled.stderr);
    artifact
}

/// Where what wasmtime printed is kept.
fn kept(name: &str) -> PathBuf {
    programs::tests_folder().join("conformance/expected").join(format!("{name}.txt"))
}

/// Runs it in wasmtime, if that is there, and keeps what it printed or holds what is kept against it.
fn check_reference(case: &Case) -> Option<String> {
    let reference = PathBuf::from(std::env::var_os("CONFORMANCE_REFERENCE").filter(|_| case.is_kept)?);
    let done = case.there(&reference);
    let (name, text) = (case.name(), done.text());
    if done.code() != case.status {
        return Some(format!("{name}: wasmtime: status {}\n{text}{}", done.code(), done.stderr));
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(kept(&name), &text).expect("it can be written");
    }
    let kept = fs::read_to_string(kept(&name)).unwrap_or_default();
    (kept != text).then(|| format!("{name}: wasmtime prints something else than what is kept: see to it with BLESS=1"))
}

/// What is other here than in wasmtime, and is not listed.
fn compare(case: &Case, way: &str, differences: &mut Differences) -> Vec<String> {
    let name = case.name();
    let done = case.here(way);
    let text = done.text();
    let mut problems = Vec::new();
    if done.code() != case.status {
        problems.push(format!("{name} ({way}): status {}, not {}: {}", done.code(), case.status, done.stderr));
    }
    let expected = match fs::read_to_string(kept(&name)) {
        Ok(expected) if case.is_kept => expected,
        Err(_) if !case.is_kept => return problems,
        kept => {
            problems.push(format!("{name}: what wasmtime printed is kept: {}, and has to be: {}", kept.is_ok(), case.is_kept));
            return problems;
        }
    };
    let (mut there, mut here) = (expected.lines(), text.lines());
    loop {
        match (there.next(), here.next()) {
            (None, None) => return problems,
            (there, here) if there == here => {}
            (there, here) => {
                let (there, here) = (there.unwrap_or_default(), here.unwrap_or_default());
                if !differences.lists(&name, there, here) {
                    problems.push(format!("{name} || {there} || {here} || REASON"));
                }
            }
        }
    }
}

fn check(cases: &[Case]) {
    let mut differences = Differences::read();
    let mut problems: Vec<String> = cases.iter().filter_map(check_reference).collect();
    problems.extend(cases.iter().flat_map(|case| compare(case, "rw", &mut differences)));
    // Private copies are as files of the host.
    let filesystem = cases.iter().filter(|case| case.args == ["filesystem"]);
    problems.extend(filesystem.flat_map(|case| compare(case, SCRATCH, &mut differences)));
    problems.extend(differences.unused(&cases.iter().map(Case::name).collect::<Vec<_>>()));
    assert!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn wasi_0_2_is_as_in_wasmtime() {
    check(&[
        Case::of("wasi2", &["cli", "a", "b c", "", "grün"]).stdin("input"),
        Case::of("wasi2", &["exit-ok"]),
        Case::of("wasi2", &["exit-err"]).status(1),
        Case::of("wasi2", &["clocks"]),
        Case::of("wasi2", &["random"]),
        Case::of("wasi2", &["filesystem"]),
        Case::of("wasi2", &["read-only"]),
        Case::of("wasi2", &["streams"]).stdin("hello world").alone(),
        Case::of("wasi2", &["sockets"]).alone(),
        Case::of("wasi2", &["http"]),
    ]);
}

#[test]
fn wasi_0_3_is_as_in_wasmtime() {
    check(&[
        Case::of("wasi3", &["cli", "a", "b c", "", "grün"]).stdin("some input"),
        Case::of("wasi3", &["fails"]).status(1),
        Case::of("wasi3", &["clocks"]),
        Case::of("wasi3", &["filesystem"]),
        Case::of("wasi3", &["read-only"]),
        Case::of("wasi3", &["sockets"]),
        Case::of("wasi3", &["http"]).alone(),
    ]);
}
