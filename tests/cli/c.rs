//! `awsm compile` of C: what it brings beside clang and wasi-libc.

use super::{awsm, path};
use sledge_tests::process;
use sledge_tests::programs;
use std::path::Path;
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(60);

/// Reads two numbers, prints the smaller and the larger of them in both precisions.
const MINMAX: &str = "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n
int main(int argc, char **argv)\n{\n    double a = atof(argv[1]), b = atof(argv[2]);
    printf(\"%g %g %g %g\", fmin(a, b), fmax(a, b), fminf((float)a, (float)b), fmaxf((float)a, (float)b));\n    return 0;\n}\n";
/// The same with a definition of its own.
const OWN: &str = "double fmin(double a, double b)\n{\n    return a + 10 * b;\n}\n";
/// `a < b ? a : b`, unless `b` is a NaN: of `f32` and `f64`.
const SELECTIONS: [&[u8]; 2] = [
    b"\x20\0\x20\0\x20\x01\x20\0\x20\x01\x5d\x1b\x20\x01\x20\x01\x5c\x1b",
    b"\x20\0\x20\0\x20\x01\x20\0\x20\x01\x63\x1b\x20\x01\x20\x01\x62\x1b",
];

/// Compiles a program, with debug information and warnings as errors, which concern it alone; the module.
fn module(folder: &Path, text: &str) -> String {
    std::fs::write(folder.join("program.c"), text).expect("write a file");
    let module = path(&folder.join("program.wasm"));
    let arguments = ["compile", "program.c", "--emit", "wasm", "-o", &module, "--quiet", "--", "-g", "-Werror", "-Wall"];
    let made = awsm(folder, &arguments);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    module
}

fn run(module: &str, a: &str, b: &str) -> String {
    let done = process::run(&mut programs::sledge_command(&["run", module, "--", a, b]), b"", TIME_MAX);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    done.text()
}

#[test]
fn minima_and_maxima_are_comparisons_and_leave_nans_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = module(folder.path(), MINMAX);
    let bytes = std::fs::read(&made).expect("the module");
    for selection in SELECTIONS {
        assert!(bytes.windows(selection.len()).any(|window| window == selection), "{selection:x?}");
    }
    for (a, b, expected) in [
        ("1", "2", "1 2 1 2"),
        ("2", "1", "1 2 1 2"),
        ("-3.5", "-3.5", "-3.5 -3.5 -3.5 -3.5"),
        ("nan", "7", "7 7 7 7"),
        ("7", "nan", "7 7 7 7"),
        ("nan", "nan", "nan nan nan nan"),
        ("-inf", "nan", "-inf -inf -inf -inf"),
        ("inf", "-inf", "-inf inf -inf inf"),
    ] {
        assert_eq!(run(&made, a, b), expected, "{a} {b}");
    }
}

#[test]
fn a_program_may_have_a_minimum_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = module(folder.path(), &format!("{OWN}{MINMAX}"));
    assert_eq!(run(&made, "1", "2"), "21 2 1 2");
}

#[test]
fn memories_of_64_bits_are_for_those_who_bring_no_library() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("wide.c"), "long first(long *from)\n{\n    return *from;\n}\n").expect("write a file");
    let link = ["-nostdlib", "-Wl,--no-entry", "-Wl,--export=first"];
    let made = awsm(
        folder.path(),
        &[&["compile", "wide.c", "-o", "wide.so", "--quiet", "--", "--target=wasm64"], link.as_slice()].concat(),
    );
    assert_eq!(made.code(), 0, "{}", made.stderr);
    let shown = awsm(folder.path(), &["inspect", "wide.so"]);
    assert!(shown.text().contains("memory64 of 1 pages"), "{}", shown.text());
}
