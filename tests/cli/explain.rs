//! `awsm explain`: from a place in native code, or from a line of a backtrace, to function, instruction and source line.

use super::{awsm, path};
use awsm::{CompileOptions, Instance, Program};
use sledge_tests::process::{self, Finished};
use sledge_tests::programs;
use std::path::Path;
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(300);

/// Traps in `second`, on line 5.
const SOURCE: &str =
    "#include <stdlib.h>\n\n__attribute__((noinline)) int second(int *numbers, int index)\n{\n    return numbers[index];\n}\n
int main(int argc, char **argv)\n{\n    int numbers[4] = {1, 2, 3, argc};\n    return second(numbers, 0x3fffff0);\n}\n";

/// Compiles a source of that name, and runs it if it is there to trap.
fn compiled(folder: &Path, name: &str, text: &str, options: &[&str]) -> String {
    let source = folder.join(name);
    std::fs::write(&source, text).expect("write a file");
    let output = path(&source.with_extension("so"));
    let arguments = [&["compile", name, "-o", &output, "--quiet"], options].concat();
    let made = awsm(folder, &arguments);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    output
}

fn explain(folder: &Path, place: &str, artifact: &str) -> Finished {
    awsm(folder, &["explain", place, artifact])
}

/// The rest of the line that begins with that word.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(key));
    lines.next().unwrap_or_else(|| panic!("no line {key}: {text}")).trim_start()
}

/// Where the division of the two parameters stands in a module.
fn division(wasm: &[u8]) -> usize {
    let operands = [0x20, 0, 0x20, 1];
    operands.len() + wasm.windows(5).position(|w| w[..4] == operands && w[4] == 0x6e).expect("i32.div_u")
}

#[test]
fn a_trap_is_traced_to_its_source_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let artifact = compiled(folder.path(), "trap.c", SOURCE, &["--debug", "--", "-g"]);
    let run = process::run(&mut programs::sledge_command(&["run", &artifact]), b"", TIME_MAX);
    let line = run.stderr.lines().find(|line| line.contains("0: second")).unwrap_or_else(|| panic!("no trap: {}", run.stderr));
    let by_line = explain(folder.path(), line, &artifact);
    assert_eq!(by_line.code(), 0, "{}", by_line.stderr);
    let text = by_line.text();
    assert!(value(&text, "wasm").contains("\"second\""), "{text}");
    assert_eq!(value(&text, "trap"), "out of bounds memory access");
    assert!(value(&text, "source").contains("trap.c:5"), "{text}");
    // The same place by its native address.
    let address = value(&text, "address").split(',').next().unwrap_or_default();
    let by_address = explain(folder.path(), address, &artifact).text();
    for key in ["wasm", "trap", "source"] {
        assert_eq!(value(&by_address, key), value(&text, key));
    }
    let caller = run.stderr.lines().find(|line| line.contains("   1: ")).unwrap_or_else(|| panic!("{}", run.stderr));
    let text = explain(folder.path(), caller, &artifact).text();
    assert!(value(&text, "trap").starts_with("none: a call"), "{text}");
}

#[test]
fn without_debug_information_function_and_offset_are_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "(module (func $half (export \"half\") (param i32 i32) (result i32) (i32.div_u (local.get 0) (local.get 1))))";
    let artifact = compiled(folder.path(), "half.wat", text, &[]);
    let start = explain(folder.path(), "wasm[0]::half", &artifact);
    assert_eq!(start.code(), 0, "{}", start.stderr);
    assert_eq!(value(&start.text(), "code"), "wasm[0]::half+0x0");
    let wasm = wat::parse_str(text).expect("a module");
    let division = division(&wasm);
    let answer = explain(folder.path(), &format!("half at wasm offset {division:#x}"), &artifact).text();
    assert_eq!(value(&answer, "trap"), "integer divide by zero");
    assert!(
        value(&answer, "wasm").ends_with("of function 0 \"half\"") && value(&answer, "source").contains("--debug"),
        "{answer}"
    );
    assert!(value(&answer, "address").contains("wasm[0]::half+0x"), "{answer}");
}

/// Modules of one text but for names: each offset is a place in both.
#[test]
fn places_in_all_modules_are_explained() {
    let modules = [("first", "half"), ("second", "part")].map(|(module, function)| {
        let divide = "(i32.div_u (local.get 0) (local.get 1))";
        let text = format!("(module ${module} (func ${function} (export \"{function}\") (param i32 i32) (result i32) {divide}))");
        wat::parse_str(text).expect("a module")
    });
    let program = Program::new(modules.iter().map(Vec::as_slice), vec![Instance::of(0), Instance::of(1)]);
    let folder = tempfile::tempdir().expect("a folder");
    let artifact = path(&folder.path().join("program.so"));
    std::fs::write(&artifact, awsm::compile(&program, &CompileOptions::default(), &()).expect("compiles")).expect("write a file");
    let by_offset = explain(folder.path(), &format!("wasm offset {:#x}", division(&modules[0])), &artifact).text();
    let answers: Vec<_> = by_offset.split("\n\n").collect();
    let expected = [
        ("wasm[0]::half", "of function 0 \"half\" of module 0 \"first\""),
        ("wasm[1:0]::part", "of function 0 \"part\" of module 1 \"second\""),
    ];
    assert_eq!(answers.len(), expected.len(), "{by_offset}");
    for (answer, (symbol, place)) in answers.iter().zip(expected) {
        assert!(value(answer, "wasm").ends_with(place), "{answer}");
        assert_eq!(value(answer, "trap"), "integer divide by zero");
        assert_eq!(answer.matches("address  ").count(), 1, "{answer}");
        let (address, code) = value(answer, "address").split_once(", ").expect("a symbol");
        assert!(code.starts_with(symbol), "{answer}");
        for place in [address, code] {
            let again = explain(folder.path(), place, &artifact).text();
            for key in ["wasm", "trap"] {
                assert_eq!(value(&again, key), value(answer, key), "{place}");
            }
        }
    }
}

#[test]
fn what_is_no_place_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let artifact = compiled(folder.path(), "f.wat", "(module (func (export \"f\")))", &[]);
    for (place, words) in [
        ("somewhere", "expected an address (0x1f40)"),
        ("0x7fffffff", "is outside of the code, which is at 0x"),
        ("wasm offset 0x7fff", "no function contains wasm offset 0x7fff"),
        ("wasm[9]::g", "no such symbol: wasm[9]::g"),
    ] {
        let done = explain(folder.path(), place, &artifact);
        assert!(done.code() == 1 && done.stderr.contains(words), "{place}: {}", done.stderr);
    }
}
