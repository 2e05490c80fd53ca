//! Components that make very many instances of themselves in few bytes: they are refused before anything is made of them, by every command that reads them.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use sledge_tests::{process, programs};

use super::{awsm, path};

/// What is counted takes no time; what is made would take minutes, or all memory.
const QUICK: Duration = Duration::from_secs(100);

/// Components `c1`, `c2`, ... behind `c0`, each made of the name of the one before and its own.
fn chain(count: u32, first: &str, each: impl Fn(u32) -> String) -> String {
    let mut text = format!("(component (component $c0 {first})");
    (1..=count).for_each(|number| text.push_str(&each(number)));
    // Writing to a string cannot fail.
    let _ = write!(text, "(instance (instantiate $c{count})))");
    text
}

const TWICE: &str = "(instance (instantiate $p)) (instance (instantiate $p))";

/// Each makes two of the one before.
fn doubled(count: u32, first: &str) -> String {
    chain(count, first, |number| format!("(component $c{number} (alias outer 1 $c{} (component $p)) {TWICE})", number - 1))
}

/// The same, but the one before is given to a component that makes two of what it is given.
fn given(count: u32) -> String {
    let twice = format!(r#"(component $twice (import "p" (component $p)) {TWICE})"#);
    chain(count, "", |number| {
        let twice = if number == 1 { twice.as_str() } else { "" };
        format!(
            r#"{twice}(component $c{number} (alias outer 1 $twice (component $twice)) (alias outer 1 $c{} (component $p))
              (instance (instantiate $twice (with "p" (component $p)))))"#,
            number - 1
        )
    })
}

/// The same, but each comes out of an instance that exports it, and by way of another that renames it.
fn exported(count: u32) -> String {
    chain(count, "", |number| {
        format!(
            r#"(component $giver{number}
              (component $x (alias outer 2 $c{} (component $p)) {TWICE})
              (export "x" (component $x)))
            (instance $giver{number} (instantiate $giver{number}))
            (alias export $giver{number} "x" (component $x{number}))
            (instance $renamed{number} (export "y" (component $x{number})))
            (alias export $renamed{number} "y" (component $c{number}))"#,
            number - 1
        )
    })
}

/// Instances of which no two are of the same component.
fn different(groups: usize) -> String {
    let group = format!("(component {})", "(component) ".repeat(900) + &instances(0..900));
    format!("(component {} {})", group.repeat(groups), instances(0..groups))
}

fn instances(components: std::ops::Range<usize>) -> String {
    components.map(|index| format!("(instance (instantiate {index}))")).collect()
}

/// A component within another, so many times; deeper than the text format can say it.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(b"\0asm\x0d\0\x01\0".to_vec(), |inner, _| {
        let mut outer = b"\0asm\x0d\0\x01\0\x04".to_vec();
        let mut length = inner.len();
        while length >= 0x80 {
            outer.push(length as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend(inner);
        outer
    })
}

fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Instances of few components, each of which has many definitions.
fn laborious(instances: usize, definitions: usize) -> String {
    let (types, made) = ("(type (list u8))".repeat(definitions), "(instance (instantiate $c))".repeat(instances));
    format!("(component (component $c {types}) {made})")
}

#[test]
fn too_many_instances_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let core = "(core module $m) (core instance (instantiate $m))";
    // What is measured is not how long they take to be built.
    programs::awsm();
    for (name, wasm, words) in [
        (
            "doubled",
            binary(&doubled(30, "")),
            "too many component instances: this component makes 2147483648, at most 10000 are allowed; the component in it at offset 0x",
        ),
        (
            "exact",
            binary(&doubled(13, "")),
            "this component makes 16384, at most 10000 are allowed; the component in it at offset 0x",
        ),
        ("endless", binary(&doubled(90, "")), "this component makes 18446744073709551615 or more, at most 10000"),
        ("given", binary(&given(30)), "too many component instances: this component makes 3221225471, at most 10000"),
        ("exported", binary(&exported(30)), "too many component instances: this component makes 2147483678, at most 10000"),
        ("core", binary(&doubled(11, core)), "too many core instances: this component makes 2048, at most 1000 are allowed"),
        (
            "different",
            binary(&different(12)),
            "too many component instances: this component makes more than 10000, which is the limit",
        ),
        (
            "laborious",
            binary(&laborious(900, 2_000)),
            "too many definitions and arguments in its instances: this component makes 1800900, at most 1000000 are allowed",
        ),
        ("nested", nested(200), "components are nested too deeply: at most 100 may be within each other"),
    ] {
        let file = folder.path().join(format!("{name}.wasm"));
        std::fs::write(&file, wasm).expect("write a file");
        let start = Instant::now();
        let shown = awsm(folder.path(), &["inspect", &path(&file)]);
        // What has no world either is an error.
        assert!(shown.text().contains(words) || shown.stderr.contains(words), "{name}: {}{}", shown.text(), shown.stderr);
        for (command, done) in [
            ("compile", awsm(folder.path(), &["compile", &path(&file), "-o", "out.so"])),
            ("sledge", process::run(&mut programs::sledge_command(&["run", &path(&file)]), b"", QUICK)),
        ] {
            assert_eq!(done.code(), 1, "{name}, {command}: {}", done.stderr);
            assert!(done.stderr.contains(words), "{name}, {command}: {}", done.stderr);
        }
        assert!(start.elapsed() < QUICK, "{name}: {:?}", start.elapsed());
    }
}

#[test]
fn what_is_within_the_limits_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, wasm) in [
        ("doubled", binary(&doubled(12, ""))),
        ("given", binary(&given(11))),
        ("exported", binary(&exported(11))),
        ("laborious", binary(&laborious(900, 500))),
        ("nested", nested(90)),
    ] {
        let file = folder.path().join(format!("{name}.wasm"));
        std::fs::write(&file, wasm).expect("write a file");
        let shown = awsm(folder.path(), &["inspect", &path(&file)]);
        let refusal = "runs alone   no: this component exports none of";
        assert!(shown.code() == 0 && shown.text().contains(refusal), "{name}: {}{}", shown.text(), shown.stderr);
    }
}
