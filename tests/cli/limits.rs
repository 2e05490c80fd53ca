//! Limits of code generation: a module that wants more, or that LLVM dies of, is an error of `awsm` that says which limit and what to do.

use rustix::process::{Pid, Signal};
use sledge_tests::process::{self, Finished};
use sledge_tests::{hostile, programs};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const TIME_MAX: Duration = Duration::from_secs(120);

/// A module that takes seconds to optimise and, in one thread, between 14 and 16 MB.
fn large(folder: &Path) -> PathBuf {
    let body: String =
        (0..100).map(|i| format!("(global.set 0 (i32.xor (global.get 0) (i32.mul (local.get 0) (i32.const {i}))))")).collect();
    let functions: String =
        (0..640).map(|i| format!("(func $f{i} (param i32) {body} (call {} (global.get 0)))", (i + 1) % 640)).collect();
    let wasm = wat::parse_str(format!("(module (global (mut i32) (i32.const 0)) {functions})")).expect("a module");
    let path = folder.join("large.wasm");
    std::fs::write(&path, wasm).expect("write a file");
    path
}

fn compile(module: &Path, output: &Path, options: &[&str]) -> Finished {
    let mut command = programs::awsm_command(&["compile"]);
    process::run(command.arg(module).arg("-o").arg(output).args(options), b"", TIME_MAX)
}

#[test]
fn memory_and_time_are_limited() {
    let folder = tempfile::tempdir().expect("a folder");
    let (module, output) = (large(folder.path()), folder.path().join("large.so"));
    for (options, words) in [
        (["--memory-max-mb", "8"], ["more than 8 MB of memory", "in phase `generate`, at function", "--memory-max-mb"]),
        (["--time-max-s", "1"], ["not done after 1 s", "in phase `generate`, at function", "--time-max-s"]),
    ] {
        // One thread: with more of them the memory depends on which of their parts fall together.
        let done = compile(&module, &output, &[&["--jobs", "1"], &options[..]].concat());
        assert_eq!(done.code(), if options[0] == "--time-max-s" { 124 } else { 1 }, "{options:?}: {}", done.stderr);
        assert!(done.stderr.contains("large.wasm: code generation"), "{options:?}: {}", done.stderr);
        assert!(words.iter().all(|words| done.stderr.contains(words)), "{options:?}: {}", done.stderr);
        assert!(!output.exists(), "{options:?}: an output was written");
    }
}

/// While others have the processors, no time passes for the limit: here the process that generates code is stopped for longer than it may take.
#[test]
fn the_time_limit_is_of_processor_time() {
    const LIMIT: Duration = Duration::from_secs(5);
    let folder = tempfile::tempdir().expect("a folder");
    let (module, output) = (large(folder.path()), folder.path().join("large.so"));
    let mut command = programs::awsm_command(&["compile", "-O", "0", "--time-max-s", &LIMIT.as_secs().to_string()]);
    let mut awsm = command.arg(&module).arg("-o").arg(&output).stderr(Stdio::piped()).spawn().expect("awsm starts");
    let worker = child_of(&awsm);
    rustix::process::kill_process(worker, Signal::STOP).expect("stop");
    let early = process::wait(&mut awsm, LIMIT + Duration::from_secs(1));
    assert!(early.is_none(), "it ended though its worker was stopped: {early:?}");
    rustix::process::kill_process(worker, Signal::CONT).expect("continue");
    let stderr = std::io::read_to_string(awsm.stderr.take().expect("piped")).expect("its message");
    let status = process::wait(&mut awsm, TIME_MAX).expect("awsm ends");
    assert!(status.success() && output.exists(), "{stderr}");
}

/// A module that writes what a hostile function gives.
fn hostile(folder: &Path) -> PathBuf {
    let function = hostile::function();
    let text = format!(
        "(module (import \"wasi_snapshot_preview1\" \"fd_write\" (func $write (param i32 i32 i32 i32) (result i32)))
         (memory (export \"memory\") 1) (data (i32.const 0) \"\\10\\00\\00\\00\\04\\00\\00\\00\")
         (func $ordinary (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3)))
         {function}
         (func (export \"_start\") (i32.store (i32.const 16) (call $hostile (call $ordinary (i32.const 2))))
           (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"
    );
    let path = folder.join("hostile.wasm");
    std::fs::write(&path, wat::parse_str(text).expect("a module")).expect("write a file");
    path
}

#[test]
fn a_function_that_takes_more_than_its_share_is_compiled_with_less_effort() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = hostile(folder.path());
    let outputs = [("0", "600"), ("3", "8")].map(|(level, seconds)| {
        let output = folder.path().join(format!("hostile-{level}.so"));
        let done = compile(&module, &output, &["-O", level, "--time-max-s", seconds]);
        assert_eq!(done.code(), 0, "-O {level}: {}", done.stderr);
        let warning = "warning: function 2 \"hostile\" takes more than its share of the time limit";
        assert_eq!(done.stderr.matches(warning).count(), usize::from(level == "3"), "-O {level}: {}", done.stderr);
        let done = process::run(programs::sledge_command(&["run"]).arg(&output), b"", TIME_MAX);
        assert_eq!(done.code(), 0, "-O {level}: {}", done.stderr);
        done.stdout
    });
    assert!(outputs[0] == outputs[1] && outputs[0].len() == 4, "{outputs:?}");
}

/// What the linker is short of counts, too, and no limit is so small that there is no message.
#[test]
fn very_little_memory_is_an_error_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = folder.path().join("small.wat");
    std::fs::write(&module, "(module (func (export \"f\")))").expect("write a file");
    let done = compile(&module, &folder.path().join("small.so"), &["--memory-max-mb", "1"]);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("more than 1 MB of memory"), "{}", done.stderr);
}

#[test]
fn an_end_of_the_process_that_generates_code_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let module = large(folder.path());
    let mut command = programs::awsm_command(&["compile"]);
    command.arg(&module).arg("-o").arg(folder.path().join("large.so"));
    let mut awsm = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("awsm starts");
    let worker = child_of(&awsm);
    rustix::process::kill_process(worker, Signal::KILL).expect("kill");
    let stderr = std::io::read_to_string(awsm.stderr.take().expect("piped")).expect("its message");
    let status = process::wait(&mut awsm, TIME_MAX).expect("awsm ends when its child does");
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("large.wasm: the process that generates code was killed"), "{stderr}");
}

/// The child that generates code, as soon as there is one that has read its request: it then has threads.
fn child_of(awsm: &Child) -> Pid {
    let deadline = Instant::now() + TIME_MAX;
    let children = format!("/proc/{0}/task/{0}/children", awsm.id());
    loop {
        let children = std::fs::read_to_string(&children).unwrap_or_default();
        if let Some(child) = children.split_whitespace().next()
            && std::fs::read_dir(format!("/proc/{child}/task")).is_ok_and(|tasks| tasks.count() > 1)
        {
            return child.parse().ok().and_then(Pid::from_raw).expect("a process");
        }
        assert!(Instant::now() < deadline, "awsm starts no child");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The child's own command is not for people, and says so.
#[test]
fn the_hidden_command_refuses_what_is_no_request() {
    let done = process::run(&mut programs::awsm_command(&["codegen"]), b"\0asm", TIME_MAX);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("awsm codegen is internal to `awsm compile`"), "{}", done.stderr);
}
