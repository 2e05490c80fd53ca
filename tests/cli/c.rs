//! `awsm compile` of C: what it brings beside clang and wasi-libc.

use super::{awsm, path};
use serde_json::json;
use sledge_tests::process;
use sledge_tests::programs;
use sledge_tests::server::Server;
use std::path::Path;
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(300);

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
fn memories_of_64_bits_are_for_programs_without_a_library() {
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

/// What is not on WASI is named, with what to do; never a temporary path, never a header of this machine.
#[test]
fn what_wasi_lacks_is_named_with_what_to_do() {
    let clocks = "awsm compile FILE -- -D_WASI_EMULATED_PROCESS_CLOCKS -lwasi-emulated-process-clocks";
    let signals = "awsm compile FILE -- -D_WASI_EMULATED_SIGNAL -lwasi-emulated-signal";
    let main = "int main(void) { return 0; }";
    for (text, words) in [
        (format!("#include <pthread.h>\n{main}"), ["'pthread.h' file not found", "pthread.h is not on WASI: it has no threads"]),
        (format!("#include <netdb.h>\n{main}"), ["'netdb.h' file not found", "netdb.h is not on WASI: it has no sockets"]),
        (format!("#include <expat.h>\n{main}"), ["'expat.h' file not found", "`-- -I FOLDER -L FOLDER -l NAME`"]),
        (format!("#include <signal.h>\n{main}"), ["signal.h", signals]),
        (format!("#include <sys/mman.h>\n{main}"), ["mman.h", "-- -D_WASI_EMULATED_MMAN -lwasi-emulated-mman`"]),
        (format!("#include <sys/times.h>\n{main}"), ["times.h", clocks]),
        ("#include <time.h>\nint main(void) { return clock(); }".to_owned(), ["app.o: undefined symbol: clock", clocks]),
        (
            "int getpid(void);\nint main(void) { return getpid(); }".to_owned(),
            ["app.o: undefined symbol: getpid", "-- -D_WASI_EMULATED_GETPID -lwasi-emulated-getpid`"],
        ),
        (
            "#include <unistd.h>\nint main(void) { return fork(); }".to_owned(),
            ["call to undeclared function 'fork'", "fork is not on WASI: it has no processes"],
        ),
        (
            "#include <sys/socket.h>\nint main(void) { return socket(1, 2, 3); }".to_owned(),
            ["'socket'", "socket is not on WASI: it has no sockets; ask other servers with `sledge_fetch_send`"],
        ),
        ("int sledge_handle(void) { return 0; }".to_owned(), ["undefined symbol: main", "`-- -mexec-model=reactor`"]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("app.c"), &text).expect("write a file");
        let done = awsm(folder.path(), &["compile", "app.c"]);
        let said = &done.stderr;
        assert!(done.code() == 1 && words.iter().all(|words| said.contains(words)), "{text}: {words:?}: {said}");
        assert!(said.contains("\nawsm: app.c: clang") && !said.contains("awsm-") && !said.contains("/tmp/"), "{text}: {said}");
    }
}

/// The flags that are named are the right ones, and a folder that is given is still looked into.
#[test]
fn what_is_named_helps() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "#include <own.h>\n#include <signal.h>\n#include <stdio.h>\n#include <time.h>\n#include <unistd.h>\n#include <sys/mman.h>\n
int main(void)\n{\n    raise(0);\n    mmap(0, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n    printf(\"%d\", OWN + (clock() > 0 && getpid() > 0));
    return 0;\n}\n";
    std::fs::create_dir(folder.path().join("include")).expect("a folder");
    std::fs::write(folder.path().join("include/own.h"), "#define OWN 41\n").expect("write a file");
    std::fs::write(folder.path().join("app.c"), text).expect("write a file");
    let mut arguments = vec!["compile".to_owned(), "app.c".into(), "--quiet".into(), "--".into(), "-I".into(), "include".into()];
    for library in ["signal", "process-clocks", "mman", "getpid"] {
        arguments.push(format!("-D_WASI_EMULATED_{}", library.to_uppercase().replace('-', "_")));
        arguments.push(format!("-lwasi-emulated-{library}"));
    }
    let made = awsm(folder.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(made.code(), 0, "{}", made.stderr);
}

#[test]
fn a_file_of_rust_without_main_is_told_what_it_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("app.rs"), "pub fn f() {}\n").expect("write a file");
    let done = awsm(folder.path(), &["compile", "app.rs"]);
    for words in ["awsm: app.rs: rustc failed (exit status: 1)", "needs `fn main`", "give its folder"] {
        assert!(done.code() == 1 && done.stderr.contains(words), "{words}: {}", done.stderr);
    }
    assert!(!done.stderr.contains("/tmp/"), "{}", done.stderr);
}

/// Calls itself as often as it is told, or 100 times, with a kibibyte on the stack in linear memory each time.
const DEEP: &str = "#include <stdio.h>\n#include <stdlib.h>\n
__attribute__((noinline)) int deep(int n)\n{\n    volatile char room[1024];\n    room[n % 1024] = 1;
    return n == 0 ? 0 : deep(n - 1) + room[n % 1024];\n}\n
int main(int argc, char **argv)\n{\n    printf(\"%d\", deep(argc > 1 ? atoi(argv[1]) : 100));\n    return 0;\n}\n";

#[test]
fn an_overflow_of_the_stack_in_memory_is_named_with_what_raises_it() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("deep.c"), DEEP).expect("write a file");
    let words = "out of bounds memory access: the stack that C and Rust keep in linear memory (64 KiB)";
    let flag = "-Wl,-z,stack-size=1048576";
    for (level, bounds) in [("-O0", "guard"), ("-O3", "guard"), ("-O3", "software")] {
        let made = awsm(folder.path(), &["compile", "deep.c", "--quiet", level, "--bounds", bounds]);
        assert_eq!(made.code(), 0, "{}", made.stderr);
        let run = |times: &str| {
            let mut command = programs::sledge_command(&["run", "deep.so", "--", times]);
            process::run(command.current_dir(folder.path()), b"", TIME_MAX)
        };
        for times in ["100", "1000000"] {
            let done = run(times);
            assert!(done.code() == 134 && done.stderr.contains(words), "{level} {bounds} {times}: {}", done.stderr);
            assert!(done.stderr.contains(&format!("`awsm compile FILE.c -- {flag}`")), "{}", done.stderr);
        }
        let done = run("10");
        assert_eq!((done.code(), done.text().as_str()), (0, "10"), "{}", done.stderr);
    }
    // In the server's log, too; to the client it is what it was.
    let config = json!({ "functions": [{ "name": "deep", "path": folder.path().join("deep.so") }] });
    let server = Server::start(config);
    let reply = server.client().post("/deep", "");
    assert_eq!((reply.status, &reply.json()["reason"]), (500, &json!("memory_out_of_bounds")), "{}", reply.text());
    server.wait_for_log(words);
    server.stop();
    // And the flag helps.
    let made = awsm(folder.path(), &["compile", "deep.c", "--quiet", "--", flag]);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    let done = process::run(programs::sledge_command(&["run", "deep.so"]).current_dir(folder.path()), b"", TIME_MAX);
    assert_eq!((done.code(), done.text().as_str()), (0, "100"), "{}", done.stderr);
}

/// Other accesses out of bounds are not blamed on the stack.
#[test]
fn a_wild_pointer_is_no_overflow_of_the_stack() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("wild.c"),
        "int main(int argc, char **argv)\n{\n    return *(volatile int *)(argc * 0x7ffffff0);\n}\n",
    )
    .expect("write a file");
    let made = awsm(folder.path(), &["compile", "wild.c", "--quiet"]);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    let done = process::run(programs::sledge_command(&["run", "wild.so"]).current_dir(folder.path()), b"", TIME_MAX);
    assert!(done.code() == 134 && done.stderr.contains("out of bounds memory access\n"), "{}", done.stderr);
}
