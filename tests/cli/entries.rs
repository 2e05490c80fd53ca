//! What the server calls of a component has the type that the server calls, and not only the name.

use super::{awsm, path};

/// Resources of an interface.
fn imported(interface: &str, resources: &[&str]) -> String {
    let exports: String = resources.iter().map(|name| format!(r#"(export "{name}" (type (sub resource)))"#)).collect();
    let aliases: String = resources.iter().map(|name| format!(r#"(alias export $types "{name}" (type ${name}))"#)).collect();
    format!(r#"(import "{interface}" (instance $types {exports})) {aliases}"#)
}

/// A component that exports `name` in an interface. `imports` come first; `core`: type and body of the core function; `ty`: that of the function; `options`: with which it is lifted.
fn component(interface: &str, name: &str, imports: &str, core: &str, ty: &str, options: &str) -> String {
    format!(
        r#"(component {imports}
          (core module $m
            (memory (export "memory") 1)
            (func (export "f") {core})
            (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
          (core instance $i (instantiate $m))
          (func $f {ty} (canon lift (core func $i "f") {options}))
          (instance $entry (export "{name}" (func $f)))
          (export "{interface}" (instance $entry)))"#
    )
}

const RUN: &str = "wasi:cli/run@0.2.3";
const RUN_ASYNC: &str = "wasi:cli/run@0.3.0";
const HANDLER: &str = "wasi:http/incoming-handler@0.2.3";
const HANDLER_ASYNC: &str = "wasi:http/handler@0.3.0";
const MEMORY: &str = r#"(memory (core memory $i "memory"))"#;
const NUMBER: &str = "(result i32) (i32.const 0)";

#[test]
fn what_is_called_with_another_type_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = imported("wasi:http/types@0.2.3", &["incoming-request", "response-outparam"]);
    let new = imported("wasi:http/types@0.3.0", &["request", "response"]);
    let callback = r#"async (callback (core func $i "callback"))"#;
    let two = "(param i32 i32)";
    for (text, expected, found) in [
        (component(RUN, "run", "", NUMBER, "(result u32)", ""), "`func() -> result`", "`func() -> u32`"),
        (component(RUN, "run", "", NUMBER, "(result (result u32))", MEMORY), "`func() -> result`", "`func() -> result<u32>`"),
        (
            component(RUN, "run", "", NUMBER, "(result (result (error string)))", MEMORY),
            "`func() -> result`",
            "`func() -> result<_, string>`",
        ),
        (component(RUN, "run", "", "", "", ""), "`func() -> result`", "`func()`"),
        (
            component(RUN, "run", "", "(param i32) (result i32) (i32.const 0)", r#"(param "a" char) (result (result))"#, ""),
            "`func() -> result`",
            "`func(char) -> result`",
        ),
        (component(RUN, "run", "", NUMBER, "async (result (result))", ""), "`func() -> result`", "`async func() -> result`"),
        (component(RUN_ASYNC, "run", "", NUMBER, "(result (result))", ""), "`async func() -> result`", "`func() -> result`"),
        (
            component(RUN_ASYNC, "run", "", NUMBER, "async (result u32)", callback),
            "`async func() -> result`",
            "`async func() -> u32`",
        ),
        (
            component(HANDLER, "handle", "", two, r#"(param "request" u32) (param "response-out" u32)"#, ""),
            "`func(own<wasi:http/types@0.2/incoming-request>, own<wasi:http/types@0.2/response-outparam>)`",
            "`func(u32, u32)`",
        ),
        (
            component(
                HANDLER,
                "handle",
                &old,
                two,
                r#"(param "request" (own $response-outparam)) (param "response-out" (own $incoming-request))"#,
                "",
            ),
            "own<wasi:http/types@0.2/response-outparam>)`",
            "`func(own<wasi:http/types@0.2/response-outparam>, own<wasi:http/types@0.2/incoming-request>)`",
        ),
        (
            component(
                HANDLER_ASYNC,
                "handle",
                &new,
                "(param i32) (result i32) (i32.const 0)",
                r#"async (param "request" (own $request)) (result u32)"#,
                callback,
            ),
            "`async func(own<wasi:http/types@0.3/request>) -> result<own<wasi:http/types@0.3/response>, error-code>`",
            "`async func(own<wasi:http/types@0.3/request>) -> u32`",
        ),
        (
            component(
                HANDLER_ASYNC,
                "handle",
                &new,
                "(param i32) (result i32) (i32.const 0)",
                r#"async (param "request" (own $request)) (result (result (own $response) (error (tuple u8 u64 u32 u32 u32 u32))))"#,
                callback,
            ),
            "error-code>`",
            "-> result<own<wasi:http/types@0.3/response>, tuple<u8, u64, u32, u32, u32, u32>>`",
        ),
    ] {
        let file = folder.path().join("component.wasm");
        std::fs::write(&file, wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))).expect("write a file");
        let done = awsm(folder.path(), &["compile", &path(&file), "-o", "out.so"]);
        assert_eq!(done.code(), 1, "{text}: {}", done.stderr);
        for words in [" is exported with another type: expected ", expected, found] {
            assert!(done.stderr.contains(words), "{words:?} is not in {}\n{text}", done.stderr);
        }
    }
}

/// Whether it is lifted as async is the component's affair.
#[test]
fn a_command_of_an_async_type_is_lifted_as_it_likes() {
    let folder = tempfile::tempdir().expect("a folder");
    let callback = r#"async (callback (core func $i "callback"))"#;
    for options in ["", callback] {
        let file = folder.path().join("component.wasm");
        let text = component(RUN_ASYNC, "run", "", NUMBER, "async (result (result))", options);
        std::fs::write(&file, wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))).expect("write a file");
        let done = awsm(folder.path(), &["compile", &path(&file), "-o", "out.so", "-O", "0", "--quiet"]);
        assert_eq!(done.code(), 0, "{options}: {}", done.stderr);
    }
}
