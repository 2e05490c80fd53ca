//! What `awsm componentize` says where a module does not become a component.

use sledge_tests::components;

#[test]
fn componentize() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in components::files() {
        std::fs::write(folder.path().join(name), text).expect("write a file");
    }
    let mut failures = Vec::new();
    let mut case = |name: &str, arguments: &[&str]| {
        let done = super::awsm(folder.path(), &[&["componentize"], arguments, &["-o", "out.wasm"]].concat());
        assert_ne!(done.code(), 0, "{name}");
        assert!(!folder.path().join("out.wasm").exists(), "{name}");
        failures.extend(super::compare(&format!("componentize-{name}"), &super::shown(&done, folder.path())));
    };
    case("component", &["plain.wat"]);
    case("no-world", &["core.wat", "--wit", "math.wit", "--world", "none"]);
    case("no-wit", &["core.wat", "--wit", "missing.wit"]);
    case("no-export", &["core.wat", "--wit", "math.wit"]);
    case("world-alone", &["core.wat", "--world", "adding"]);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
