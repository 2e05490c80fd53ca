//! What `awsm inspect` shows of a component, and of an artifact that was made of one.

use super::{awsm, compare, path, shown};

/// A library, and a command that calls it and the host.
const COMPONENT: &str = r#"(component $whole
  (import "wasi:cli/exit@0.2.3" (instance $exit (export "exit" (func (param "status" (result))))))
  (component $library
    (core module $core (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
    (core instance $core (instantiate $core))
    (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $core "add"))))
  (component $command
    (import "add" (func $add (param "a" u32) (param "b" u32) (result u32)))
    (import "exit" (func $exit (param "status" (result))))
    (core func $add (canon lower (func $add)))
    (core func $exit (canon lower (func $exit)))
    (core module $main
      (import "" "add" (func $add (param i32 i32) (result i32)))
      (import "" "exit" (func $exit (param i32)))
      (func (export "run") (result i32)
        (call $exit (call $add (i32.const 0) (i32.const 1)))
        (i32.const 0)))
    (core instance $main (instantiate $main (with "" (instance (export "add" (func $add)) (export "exit" (func $exit))))))
    (func (export "run") (result (result)) (canon lift (core func $main "run"))))
  (instance $math (instantiate $library))
  (instance $app (instantiate $command (with "add" (func $math "add")) (with "exit" (func $exit "exit"))))
  (instance $run (export "run" (func $app "run")))
  (export "wasi:cli/run@0.2.3" (instance $run)))"#;

/// A part of others, which cannot run alone.
const LIBRARY: &str = r#"(component
  (core module $core (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
  (core instance $core (instantiate $core))
  (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $core "add"))))"#;

#[test]
fn components() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut failures = Vec::new();
    for (name, text) in [("inspect-component", COMPONENT), ("inspect-library", LIBRARY)] {
        let file = folder.path().join(format!("{name}.wasm"));
        std::fs::write(&file, wat::parse_str(text).expect("a component")).expect("write a file");
        let done = awsm(folder.path(), &["inspect", &path(&file)]);
        failures.extend(compare(name, &shown(&done, folder.path())));
    }
    let (input, output) = (folder.path().join("inspect-component.wasm"), folder.path().join("component.so"));
    let made = awsm(folder.path(), &["compile", &path(&input), "-o", &path(&output), "--cpu", "baseline", "-O3", "--quiet"]);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // The artifact says the same, and what became of the adapter.
    let whole = awsm(folder.path(), &["inspect", &path(&input)]).text();
    let shown = awsm(folder.path(), &["inspect", &path(&output)]).text();
    for line in whole.lines().skip_while(|line| *line != "world") {
        assert!(shown.lines().any(|other| other.starts_with(line)), "{line:?} is not in\n{shown}");
    }
    for words in ["of module 0 \"state\", state", ", adapter, imports from", "\"main\", code of component instance 2"] {
        assert!(shown.lines().any(|line| line.starts_with("instance") && line.contains(words)), "{words:?} is not in\n{shown}");
    }
    let call = "  calls      \"add\" of instance `math`: direct, inlined in wasm[";
    assert!(shown.lines().any(|line| line.starts_with(call)), "{call:?} is not in\n{shown}");
}

/// Bytes of the component's author are refused or shown, whatever they are.
#[test]
fn damaged_components_are_refused_or_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("damaged.wasm");
    let whole = wat::parse_str(COMPONENT).expect("a component");
    for at in (8..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&file, &damaged).expect("write a file");
        let done = awsm(folder.path(), &["inspect", &path(&file)]);
        assert!(matches!(done.code(), 0 | 1), "byte {at}: {}", done.stderr);
        assert!(!done.stderr.contains("panicked"), "byte {at}: {}", done.stderr);
    }
}
