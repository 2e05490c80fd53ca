//! Inputs that never end are read to a limit, and no output takes the place of an input.

use super::{awsm, path};
use sledge_tests::{components, process, programs};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for a file of which only so much is read as may be: a gibibyte.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Files that tests write in a folder.
fn write(folder: &Path) {
    for (name, text) in components::files() {
        fs::write(folder.join(name), text).expect("write a file");
    }
}

/// A device that gives bytes for ever, and a file that says that it is larger than any input, without having anything of it.
#[test]
fn too_large() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder);
    let large = fs::File::create(folder.join("large.wasm")).expect("a file");
    large.set_len((1 << 30) + 1).expect("a sparse file");
    for name in ["zero.wasm", "zero.wat", "zero.toml", "zero.wit", "zero.so"] {
        symlink("/dev/zero", folder.join(name)).expect("a link");
    }
    let commands: [&[&str]; 11] = [
        &["compile", "zero.wasm", "-o", "out"],
        &["compile", "zero.wat", "-o", "out"],
        &["compile", "large.wasm", "-o", "out"],
        &["inspect", "zero.wasm"],
        &["inspect", "/dev/zero"],
        &["explain", "0x10", "zero.so"],
        &["componentize", "zero.wasm", "-o", "out"],
        &["componentize", "core.wat", "--wit", "zero.wit", "-o", "out"],
        &["compose", "zero.wasm", "--plug", "plain.wat", "-o", "out"],
        &["compose", "app.wat", "--plug", "zero.wasm", "-o", "out"],
        &["compose", "zero.toml", "-o", "out"],
    ];
    for arguments in commands {
        let begun = Instant::now();
        let done = awsm(folder, arguments);
        let file = arguments.iter().find(|argument| argument.contains("zero") || argument.contains("large")).expect("a file");
        let words = format!("awsm: {file}: larger than 1073741824 bytes, the limit for an input of awsm\n");
        assert_eq!((done.code(), done.stderr.as_str()), (1, words.as_str()), "{arguments:?}");
        assert!(begun.elapsed() < TIME_MAX, "{arguments:?}: {:?}", begun.elapsed());
    }
    for command in ["run", "deploy"] {
        for file in ["zero.wasm", "large.wasm"] {
            let begun = Instant::now();
            let done = process::run(programs::sledge_command(&[command, file]).current_dir(folder), b"", TIME_MAX);
            assert_eq!(done.stderr, format!("sledge: {file}: larger than 268435456 bytes\n"));
            assert!(done.code() == 1 && begun.elapsed() < TIME_MAX, "{:?}", begun.elapsed());
        }
    }
}

/// What the system says is said once.
#[test]
fn unreadable() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    symlink("/proc/self/mem", folder.join("unreadable.wasm")).expect("a link");
    for arguments in
        [&["compile", "unreadable.wasm"][..], &["inspect", "unreadable.wasm"], &["componentize", "unreadable.wasm", "-o", "out"]]
    {
        let done = awsm(folder, arguments);
        assert_eq!(
            (done.code(), done.stderr.as_str()),
            (1, "awsm: unreadable.wasm: Input/output error (os error 5)\n"),
            "{arguments:?}"
        );
    }
}

#[test]
fn an_output_is_no_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder);
    fs::write(folder.join("wired.toml"), "exports = \"app\"\n[instances.app]\ncomponent = \"app.wat\"\n").expect("write a file");
    fs::create_dir(folder.join("below")).expect("a folder");
    symlink("../app.wat", folder.join("below/link.wat")).expect("a link");
    fs::hard_link(folder.join("app.wat"), folder.join("other-name.wat")).expect("a link");
    let before = fs::read(folder.join("app.wat")).expect("the file");
    let absolute = path(&folder.join("app.wat"));
    // The same file under all its names; then one of several inputs; then what the output is called by itself.
    let commands: [(&[&str], &str); 11] = [
        (&["compile", "app.wat", "-o", "app.wat"], "app.wat"),
        (&["compile", "app.wat", "-o", &absolute], "app.wat"),
        (&["compile", "app.wat", "-o", "below/link.wat"], "app.wat"),
        (&["compile", "below/link.wat", "-o", "other-name.wat"], "below/link.wat"),
        (&["compile", "core.wat", "-o", "core.wat", "--emit", "wasm"], "core.wat"),
        (&["componentize", "adding.wat", "--wit", "math.wit", "-o", "adding.wat"], "adding.wat"),
        (&["componentize", "adding.wat", "--wit", "math.wit", "-o", "math.wit"], "math.wit"),
        (&["compose", "app.wat", "--plug", "plain.wat", "-o", "other-name.wat"], "app.wat"),
        (&["compose", "app.wat", "--plug", "plain.wat", "-o", "plain.wat"], "plain.wat"),
        (&["compose", "wired.toml", "-o", "wired.toml"], "wired.toml"),
        (&["compose", "wired.toml", "-o", "app.wat"], "app.wat"),
    ];
    for (arguments, input) in commands {
        let output = arguments[arguments.iter().position(|argument| *argument == "-o").expect("an output") + 1];
        let contents = fs::read(folder.join(output)).expect("the file");
        let done = awsm(folder, arguments);
        let words = format!("{output}: the output would replace the input {input}: they are one file; give another with -o\n");
        assert!(done.code() == 1 && done.stderr.ends_with(&words), "{arguments:?}: {}", done.stderr);
        assert_eq!(fs::read(folder.join(output)).expect("the file"), contents, "{arguments:?}");
    }
    assert_eq!(fs::read(folder.join("app.wat")).expect("the file"), before);
    // Also where the output's name is derived, and among what is for the producer.
    let wasm = wat::parse_str("(module)").expect("a module");
    fs::write(folder.join("module.wasm"), &wasm).expect("write a file");
    let done = awsm(folder, &["compile", "module.wasm", "--emit", "wasm"]);
    assert!(done.stderr.contains("module.wasm: the output would replace the input module.wasm"), "{}", done.stderr);
    for file in ["a.c", "b.c"] {
        fs::write(folder.join(file), "int main(void) { return 0; }\n").expect("write a file");
    }
    let done = awsm(folder, &["compile", "a.c", "-o", "b.c", "--", "b.c"]);
    assert!(done.code() == 1 && done.stderr.contains("b.c: the output would replace the input b.c"), "{}", done.stderr);
    // Another file of the same contents is replaced, and devices are written to.
    fs::write(folder.join("copy.wasm"), &wasm).expect("write a file");
    for output in ["copy.wasm", "/dev/null", "-"] {
        let done = awsm(folder, &["compile", "module.wasm", "--emit", "wasm", "-o", output]);
        assert_eq!(done.code(), 0, "{output}: {}", done.stderr);
    }
}
