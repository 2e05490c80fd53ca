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
