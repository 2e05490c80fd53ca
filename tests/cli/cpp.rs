//! `awsm compile` of C++: with libc++ as it is installed, which has no exceptions, and with the one that awsm builds.

use super::path;
use serde_json::json;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs;
use sledge_tests::server::Server;
use std::env;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(300);
/// Also for the library, which is built once.
const COMPILE_TIME_MAX: Duration = Duration::from_secs(900);
/// What clang is told where no exceptions are wanted.
const NO_EXCEPTIONS: &str = "-fno-exceptions";

/// When objects begin and end, which functions of theirs are called, what they are.
const LIFE: &str = r#"
#include <cstdio>
#include <memory>
#include <vector>
struct Life {
    const char *name;
    explicit Life(const char *name) : name(name) { std::printf("+%s ", name); }
    ~Life() { std::printf("-%s ", name); }
};
static Life first("first");
struct Shape {
    virtual ~Shape() = default;
    virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    explicit Square(int side) : side(side) {}
    int area() const override { return side * side; }
};
struct Cross final : Square {
    using Square::Square;
    int area() const override { return 5 * Square::area(); }
};
template <class T> static int count(const std::vector<std::unique_ptr<Shape>> &shapes) {
    int found = 0;
    for (const auto &shape : shapes) found += dynamic_cast<const T *>(shape.get()) != nullptr;
    return found;
}
int main() {
    static Life inner("inner");
    thread_local Life own("own");
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.push_back(std::make_unique<Square>(3));
    shapes.push_back(std::make_unique<Cross>(2));
    int sum = 0;
    for (const auto &shape : shapes) sum += shape->area();
    delete new Life("made");
    std::printf("main %d %d %d ", sum, count<Square>(shapes), count<Cross>(shapes));
}
static Life last("last");
"#;

/// The library's templates.
const CONTAINERS: &str = r#"
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>
static std::optional<int> number(std::string_view text) {
    int value = 0;
    for (char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        value = 10 * value + (c - '0');
    }
    return value;
}
int main() {
    std::map<std::string, std::vector<int>> rows;
    std::unordered_map<int, std::string> names;
    for (int i = 0; i < 1000; i++) {
        rows["row " + std::to_string(i % 7)].push_back(i);
        names[i] = std::string(i % 40, 'x');
    }
    std::size_t letters = 0;
    for (const auto &[number, name] : names) letters += name.size();
    std::vector<int> order = rows["row 3"];
    std::sort(order.begin(), order.end(), std::greater<>());
    std::set<int> few(order.begin(), order.begin() + 3);
    std::function<int(int)> twice = [](int value) { return 2 * value; };
    std::variant<int, std::string> either = std::string("either");
    std::array<int, 3> three{1, 2, 3};
    const std::string digits = "0.5";
    double half = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), half);
    // As std::format divides: by a function with a stack protector.
    volatile unsigned __int128 wide = 1000;
    std::printf("%zu %zu %d %d %d %d %d %s %g %d", rows.size(), letters, order.front(), *few.begin(), twice(21),
                std::accumulate(three.begin(), three.end(), 0), *number("17") + number("1x").value_or(-1),
                std::get<std::string>(either).c_str(), half, int(wide % 7));
}
"#;
const CONTAINERS_OUTPUT: &str = "7 19500 997 983 42 6 16 either 0.5 6";

/// Counts the words of standard input.
const WORDS: &str = r#"
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
int main() {
    std::map<std::string, int> counts;
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        for (std::string word; words >> word;) counts[word]++;
    }
    for (const auto &[word, count] : counts) std::cout << std::setw(4) << count << ' ' << word << '\n';
    std::cout << std::fixed << std::setprecision(2) << 2.0 / 3 << std::endl;
    std::cerr << "counted\n";
}
"#;

/// What is thrown: by the program and by the library; through guards, again, from a handler, as a pointer to it; and what is not caught.
const THROWS: &str = r#"
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>
struct Guard {
    const char *name;
    ~Guard() { std::printf("~%s ", name); }
};
struct Missing : std::runtime_error {
    int code;
    Missing(int code) : std::runtime_error("missing " + std::to_string(code)), code(code) {}
};
[[gnu::noinline]] static void dig(int depth) {
    Guard guard{depth % 2 ? "odd" : "even"};
    if (depth == 3) throw Missing(40 + depth);
    dig(depth + 1);
}
template <class Work> static void say(Work work) {
    try {
        work();
        std::printf("nothing; ");
    } catch (const Missing &error) {
        std::printf("Missing %d; ", error.code);
    } catch (const std::exception &error) {
        std::printf("%s; ", error.what());
    } catch (...) {
        std::printf("something else; ");
    }
}
static int initial() try { throw 3; } catch (int number) { return number; }
static int before_main = initial();
int main(int argc, char **) {
    std::vector<int> few(3);
    say([] { dig(1); });
    say([] {
        try {
            dig(2);
        } catch (std::runtime_error &error) {
            std::printf("first %s, ", error.what());
            throw;
        }
    });
    say([] {
        try {
            throw 1;
        } catch (int) {
            throw std::logic_error("from a handler");
        }
    });
    say([&] { few.at(argc + 6) = 1; });
    say([] { std::printf("%d", std::stoi("x")); });
    say([&] { std::printf("%d", std::string("abc").at(argc + 8)); });
    say([] {
        char *volatile all = new char[0xf0000000u];
        delete[] all;
    });
    say([] { throw "text"; });
    std::exception_ptr kept;
    try {
        dig(3);
    } catch (...) {
        kept = std::current_exception();
    }
    say([&] { std::rethrow_exception(kept); });
    std::printf("%d\n", before_main);
    std::fflush(stdout);
    if (argc > 1) dig(1);
}
"#;

/// A function with a state that a constructor makes.
const HANDLER: &str = r#"
#include "sledge.h"
#include <stdexcept>
#include <string>
struct Greeter {
    std::string greeting = "Hello, ";
    std::string to(const std::string &name) const {
        if (name.empty()) throw std::invalid_argument("no name");
        if (name == "Mallory") throw 1;
        return greeting + name + "!";
    }
};
static const Greeter greeter;
SLEDGE_HANDLE {
    unsigned char *body;
    size_t length;
    if (sledge_read_all(100, &body, &length) != SLEDGE_OK) return SLEDGE_FAILED;
    std::string reply;
    try {
        reply = greeter.to({reinterpret_cast<char *>(body), length});
    } catch (const std::invalid_argument &error) {
        sledge_status(400);
        reply = error.what();
    }
    return sledge_write_reply(reply.data(), reply.size());
}
"#;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("write a file");
    }
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = programs::awsm_command(&["compile", "-O1"]);
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1");
    command
}

/// As where scripts/fetch-llvm-runtimes was not run.
fn without_runtimes(mut command: Command, folder: &Path) -> Finished {
    process::run(command.env("XDG_CACHE_HOME", folder.join("cache")).env_remove("AWSM_LLVM_RUNTIMES"), b"", COMPILE_TIME_MAX)
}

/// Whether the sources of the library with exceptions are there. Where they are not, the log says that what needs them is not checked.
fn has_runtimes() -> bool {
    let of = |name: &str| env::var_os(name).map(PathBuf::from);
    let cache = of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
    let folder = of("AWSM_LLVM_RUNTIMES").or_else(|| Some(cache?.join("awsm/llvm-runtimes")));
    let has = folder.is_some_and(|folder| folder.join("libunwind").is_dir());
    if !has {
        eprintln!("exceptions of C++: NOT CHECKED: they need what scripts/fetch-llvm-runtimes gets");
    }
    has
}

fn run(folder: &Path, artifact: &str, arguments: &[&str], input: &str) -> Finished {
    let mut command = programs::sledge_command(&["run", artifact, "--"]);
    process::run(command.args(arguments).current_dir(folder), input.as_bytes(), TIME_MAX)
}

#[test]
fn objects_begin_and_end_in_order() {
    let folder = folder(&[("life.cpp", LIFE)]);
    let made = without_runtimes(command(folder.path(), &["life.cpp"]), folder.path());
    assert_eq!(made.code(), 0, "{}", made.stderr);
    let done = run(folder.path(), "life.so", &[], "");
    let expected = "+first +last +inner +own +made -made main 29 2 1 -own -inner -last -first ";
    assert_eq!((done.code(), done.text().as_str()), (0, expected), "{}", done.stderr);
}

/// Under every name that C++ has, and with what the user says of warnings.
#[test]
fn the_library_is_there() {
    for name in ["app.cc", "app.cxx", "app.C"] {
        let folder = folder(&[(name, CONTAINERS)]);
        let arguments = [name, "--", "-std=c++20", "-Wall", "-Wextra", "-Werror", NO_EXCEPTIONS];
        let made = process::run(&mut command(folder.path(), &arguments), b"", COMPILE_TIME_MAX);
        assert_eq!(made.code(), 0, "{name}: {}", made.stderr);
        let done = run(folder.path(), "app.so", &[], "");
        assert_eq!((done.code(), done.text().as_str()), (0, CONTAINERS_OUTPUT), "{name}: {}", done.stderr);
    }
}

#[test]
fn streams_read_and_write() {
    let folder = folder(&[("words.cpp", WORDS)]);
    let made = without_runtimes(command(folder.path(), &["words.cpp"]), folder.path());
    assert_eq!(made.code(), 0, "{}", made.stderr);
    let done = run(folder.path(), "words.so", &[], "to be or not\nto be\n");
    assert_eq!((done.code(), done.text().as_str()), (0, "   2 be\n   1 not\n   1 or\n   2 to\n0.67\n"), "{}", done.stderr);
    assert!(done.stderr.contains("counted"), "{}", done.stderr);
}

/// Each source's own name says what it is, whichever comes first: in C, `new` is a name, and functions without a prototype are errors in C++.
#[test]
fn sources_of_both_languages_make_one_program() {
    const C: &str = "#include <math.h>\n#include <stdlib.h>\nint half(int new) { int *copy = malloc(sizeof new); *copy = new; return (int)fabs(-0.5 * *copy); }\n";
    const CPP: &str = "#include <cmath>\n#include <string>\nextern \"C\" int half(int);\nextern \"C\" int length(int n) { return (int)std::string(half(n), 'x').size(); }\n";
    const MAIN: &str =
        "#include <stdio.h>\nint length(int);\nint main(void) { int class = length(42); printf(\"%d\", class); return 0; }\n";
    const CPP_MAIN: &str = "#include <cstdio>\nextern \"C\" int length(int);\nint main() { std::printf(\"%d\", length(42)); }\n";
    for (sources, main) in [(["main.c", "--", "part.cpp", "half.c"], MAIN), (["main.cpp", "--", "half.c", "part.cpp"], CPP_MAIN)]
    {
        let folder = folder(&[(sources[0], main), ("half.c", C), ("part.cpp", CPP)]);
        let made = without_runtimes(command(folder.path(), &sources), folder.path());
        assert_eq!(made.code(), 0, "{sources:?}: {}", made.stderr);
        let done = run(folder.path(), "main.so", &[], "");
        assert_eq!((done.code(), done.text().as_str()), (0, "21"), "{sources:?}: {}", done.stderr);
    }
}

#[test]
fn what_is_thrown_is_caught_or_ends_the_program() {
    if !has_runtimes() {
        return;
    }
    let folder = folder(&[("throws.cpp", THROWS)]);
    for time in 0..2 {
        let made = process::run(&mut command(folder.path(), &["throws.cpp"]), b"", COMPILE_TIME_MAX);
        assert_eq!(made.code(), 0, "{}", made.stderr);
        assert!(time == 0 || !made.stderr.contains("building the C++ library"), "{}", made.stderr);
    }
    let expected = "~odd ~even ~odd Missing 43; ~odd ~even first missing 43, Missing 43; from a handler; vector; stoi: no conversion; basic_string; \
                    std::bad_alloc; something else; ~odd Missing 43; 3\n";
    let done = run(folder.path(), "throws.so", &[], "");
    assert_eq!((done.code(), done.text().as_str()), (0, expected), "{}", done.stderr);
    let done = run(folder.path(), "throws.so", &["uncaught"], "");
    assert_eq!((done.code(), done.text().as_str()), (134, expected), "{}", done.stderr);
    assert!(done.stderr.contains("trap: uncaught exception"), "{}", done.stderr);
}

#[test]
fn a_function_in_cpp_answers_requests() {
    if !has_runtimes() {
        return;
    }
    let folder = folder(&[("greet.cpp", HANDLER)]);
    let sdk = path(&programs::tests_folder().join("../sdk/c"));
    let arguments = ["greet.cpp", "--", "-mexec-model=reactor", "-I", &sdk, "-Wall", "-Wextra", "-Werror"];
    let made = process::run(&mut command(folder.path(), &arguments), b"", COMPILE_TIME_MAX);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    let server = Server::start(json!({ "functions": [{ "name": "greet", "path": folder.path().join("greet.so") }] }));
    for _ in 0..2 {
        for (body, status, text) in [("Ada", 200, "Hello, Ada!"), ("", 400, "no name")] {
            let reply = server.client().post("/greet", body);
            assert_eq!((reply.status, reply.text().as_str()), (status, text), "{body}");
        }
        let reply = server.client().post("/greet", "Mallory");
        assert_eq!((reply.status, &reply.json()["reason"]), (500, &json!("uncaught_exception")), "{}", reply.text());
    }
    server.stop();
}

/// With the installed library, and where the user wants none.
#[test]
fn without_exceptions_what_the_library_would_throw_ends_the_program() {
    const AT: &str = "#include <vector>\nint main(int argc, char **) { std::vector<int> few(3); return few.at(argc + 6); }\n";
    let folder = folder(&[("at.cpp", AT)]);
    let made = without_runtimes(command(folder.path(), &["at.cpp"]), folder.path());
    assert_eq!(made.code(), 0, "{}", made.stderr);
    let done = run(folder.path(), "at.so", &[], "");
    assert!(
        done.code() == 134 && done.stderr.contains("out_of_range was thrown in -fno-exceptions mode with message \"vector\""),
        "{}",
        done.stderr
    );
}

/// What the installed library lacks is named, with what to do.
#[test]
fn what_the_library_lacks_is_named_with_what_to_do() {
    for (text, words) in [
        (
            "int main() { throw 1; }",
            ["cannot use 'throw' with exceptions disabled", "scripts/fetch-llvm-runtimes of Sledge's repository"],
        ),
        ("int main() { try { } catch (...) { } }", ["cannot use 'try' with exceptions disabled", "scripts/fetch-llvm-runtimes"]),
        (
            "#include <thread>\nint main() { std::thread([] {}).join(); }",
            ["'thread' in namespace 'std'", "has no threads, a function runs in one"],
        ),
        ("#include <mutex>\nint main() { std::mutex one; }", ["'mutex' in namespace 'std'", "has no threads"]),
        (
            "#include <fstream>\nint main() { return std::ifstream(\"a\").good(); }",
            ["'std::basic_ifstream<char>'", "streams of files; fopen"],
        ),
        (
            "#include <filesystem>\nint main() { return std::filesystem::exists(\"a\"); }",
            ["'std::filesystem'", "neither <filesystem> nor"],
        ),
        ("#include <boost/any.hpp>\nint main() {}", ["'boost/any.hpp' file not found", "`-- -I FOLDER -L FOLDER -l NAME`"]),
        ("extern \"C\" int sledge_handle() { return 0; }", ["undefined symbol: main", "`-- -mexec-model=reactor`"]),
    ] {
        let folder = folder(&[("app.cpp", text)]);
        let done = without_runtimes(command(folder.path(), &["app.cpp"]), folder.path());
        let said = &done.stderr;
        assert!(done.code() == 1 && words.iter().all(|words| said.contains(words)), "{text}: {words:?}: {said}");
        assert!(said.contains("\nawsm: app.cpp: clang") && !said.contains("awsm-") && !said.contains("/tmp/"), "{text}: {said}");
    }
}

#[test]
fn sources_that_are_not_where_the_user_says_are_missed() {
    let folder = folder(&[("app.cpp", "int main() {}")]);
    let with = |arguments: &[&str]| {
        process::run(command(folder.path(), arguments).env("AWSM_LLVM_RUNTIMES", "nowhere"), b"", COMPILE_TIME_MAX)
    };
    let done = with(&["app.cpp"]);
    let words = "looked for nowhere/libunwind/src/Unwind-wasm.c (from AWSM_LLVM_RUNTIMES). scripts/fetch-llvm-runtimes";
    assert!(done.code() == 1 && done.stderr.contains(words), "{}", done.stderr);
    let done = with(&["app.cpp", "--", NO_EXCEPTIONS]);
    assert_eq!(done.code(), 0, "{}", done.stderr);
}

/// Of Debian's files: clang finds headers and libraries of C++ in a wasi-sdk by itself.
#[test]
fn a_wasi_sdk_brings_its_own_library() {
    let folder = folder(&[("life.cpp", LIFE)]);
    let sdk = folder.path().join("sdk");
    let sysroot = sdk.join("share/wasi-sysroot");
    for part in ["bin", "share/wasi-sysroot/include", "share/wasi-sysroot/lib"] {
        std::fs::create_dir_all(sdk.join(part)).expect("a folder");
    }
    symlink("/usr/bin/clang-22", sdk.join("bin/clang")).expect("a link");
    symlink("/usr/include/wasm32-wasi", sysroot.join("include/wasm32-wasi")).expect("a link");
    symlink("/usr/lib/wasm32-wasi", sysroot.join("lib/wasm32-wasi")).expect("a link");
    let given = format!("--sysroot={}", path(&sysroot));
    let mut with_sdk = command(folder.path(), &["life.cpp"]);
    with_sdk.env("WASI_SDK_PATH", &sdk);
    for mut command in [with_sdk, command(folder.path(), &["life.cpp", "--", &given])] {
        let made = process::run(&mut command, b"", COMPILE_TIME_MAX);
        assert_eq!(made.code(), 0, "{}", made.stderr);
        let done = run(folder.path(), "life.so", &[], "");
        assert!(done.code() == 0 && done.text().starts_with("+first +last +inner"), "{}{}", done.text(), done.stderr);
    }
}
