//! What `awsm compose` says where components cannot be composed.

use sledge_tests::components;

/// The rest of a wiring of `app.wat`, behind its instance's table.
const WIRINGS: [(&str, &str); 8] = [
    ("no-instance", "exports = \"app\"\n[instances.app]\ncomponent = \"app.wat\"\nwith = { \"demo:math/add\" = \"plain\" }\n"),
    (
        "no-import",
        "exports = \"app\"\n[instances.app]\ncomponent = \"app.wat\"\nwith = { \"demo:math/sub\" = \"plain\" }\n\
         [instances.plain]\ncomponent = \"plain.wat\"\n",
    ),
    (
        "no-export",
        "exports = \"app\"\n[instances.app]\ncomponent = \"app.wat\"\nwith = { \"demo:math/add\" = \"other\" }\n\
         [instances.other]\ncomponent = \"other.wat\"\n",
    ),
    (
        "mismatch",
        "exports = \"app\"\n[instances.app]\ncomponent = \"app.wat\"\nwith = { \"demo:math/add\" = \"wrong\" }\n\
         [instances.wrong]\ncomponent = \"wrong.wat\"\n",
    ),
    (
        "circle",
        "exports = \"app\"\n[instances.app]\ncomponent = \"app.wat\"\nwith = { \"demo:math/add\" = \"a\" }\n\
         [instances.a]\ncomponent = \"twice.wat\"\nwith = { \"demo:math/add\" = \"b\" }\n\
         [instances.b]\ncomponent = \"twice.wat\"\nwith = { \"demo:math/add\" = \"a\" }\n",
    ),
    ("no-exports", "[instances.app]\ncomponent = \"app.wat\"\n"),
    ("source", "exports = \"app\"\n[instances.app]\ncomponent = \"app.wat\"\nwith = { \"demo:math/add\" = 1 }\n"),
    ("missing-file", "exports = \"app\"\n[instances.app]\ncomponent = \"missing.wasm\"\n"),
];

#[test]
fn compose() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in components::files() {
        std::fs::write(folder.path().join(name), text).expect("write a file");
    }
    let mut failures = Vec::new();
    let mut case = |name: &str, arguments: &[&str]| {
        let done = super::awsm(folder.path(), &[&["compose"], arguments, &["-o", "out.wasm"]].concat());
        assert_ne!(done.code(), 0, "{name}");
        assert!(!folder.path().join("out.wasm").exists(), "{name}");
        failures.extend(super::compare(&format!("compose-{name}"), &super::shown(&done, folder.path())));
    };
    case("no-plug", &["app.wat"]);
    case("core", &["app.wat", "--plug", "core.wat"]);
    case("useless", &["app.wat", "--plug", "other.wat"]);
    case("wrong-plug", &["app.wat", "--plug", "wrong.wat"]);
    case("twice", &["app.wat", "--plug", "plain.wat", "--plug", "twice.wat"]);
    case("plug-circle", &["app.wat", "--plug", "needing.wat", "--plug", "back.wat"]);
    case("useless-of-two", &["app.wat", "--plug", "plain.wat", "--plug", "other.wat"]);
    for (name, text) in WIRINGS {
        let file = format!("{name}.toml");
        std::fs::write(folder.path().join(&file), text).expect("write a file");
        case(name, &[&file]);
    }
    case("plug-and-file", &["circle.toml", "--plug", "plain.wat"]);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// An interface with one function, in text: what imports it, and what exports it.
fn imported(version: &str) -> String {
    format!(r#"(import "demo:math/add@{version}" (instance (export "f" (func (result u32)))))"#)
}

fn exported(version: &str) -> String {
    format!(
        r#"(instance $i{0} (export "f" (func $f))) (export "demo:math/add@{version}" (instance $i{0}))"#,
        version.replace('.', "")
    )
}

/// Each import is matched by itself: an export satisfies several, the one of the same version is preferred, and a plug may have another instance of the socket's
/// file.
#[test]
fn plugs_are_matched_import_by_import() {
    let folder = tempfile::tempdir().expect("a folder");
    let function = r#"(core module $m (func (export "f") (result i32) (i32.const 1))) (core instance $m (instantiate $m))
        (func $f (result u32) (canon lift (core func $m "f")))"#;
    for (name, imports, exports) in [
        ("both", &["1.0.0", "1.1.0"][..], &[][..]),
        ("one", &["1.0.0"], &[]),
        ("new", &[], &["1.2.0"]),
        ("two", &[], &["1.0.0", "1.1.0"]),
        ("later", &[], &["1.1.0", "1.2.0"]),
    ] {
        let (imports, exports): (String, String) = (
            imports.iter().map(|version| imported(version)).collect(),
            exports.iter().map(|version| exported(version)).collect(),
        );
        let text = format!(r#"(component {imports} {function} {exports} (export "run" (func $f)))"#);
        std::fs::write(folder.path().join(name), text).expect("write a file");
    }
    for (name, text) in components::files() {
        std::fs::write(folder.path().join(name), text).expect("write a file");
    }
    let compose = |arguments: &[&str]| super::awsm(folder.path(), &[&["compose"], arguments, &["-o", "out.wasm"]].concat());
    for (socket, plug, left) in
        [("both", "new", &[][..]), ("one", "two", &[]), ("both", "two", &[]), ("twice.wat", "twice.wat", &["demo:math/add"])]
    {
        let done = compose(&[socket, "--plug", plug]);
        assert_eq!(done.code(), 0, "{socket} {plug}: {}", done.stderr);
        let text = super::awsm(folder.path(), &["inspect", "out.wasm"]).text();
        let imports: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("import ")).collect();
        assert_eq!(imports.len(), left.len(), "{socket} {plug}: {text}");
        assert!(left.iter().all(|name| imports[0].contains(name)), "{socket} {plug}: {text}");
    }
    let done = compose(&["one", "--plug", "later"]);
    let words = r#"later: "demo:math/add@1.0.0" stands for several: "demo:math/add@1.1.0", "demo:math/add@1.2.0""#;
    assert!(done.code() != 0 && done.stderr.contains(words), "{}", done.stderr);
}
