//! Components made of a core module in the text format, as the tools of languages make them: imports and exports are named in WIT.

use crate::interfaces::wit_of;
use sledge_tests::programs;
use std::fs;
use std::path::PathBuf;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Which WIT a component imports: the Rust bindings that hold it, and a component that uses them.
pub(crate) const WASI2: (&str, &str) = ("wasip2", "http");
/// The same of WASI 0.3.
pub(crate) const WASI3: (&str, &str) = ("wasip3", "service");

/// The file of a component. `world`: what it imports and exports, in WIT; `core`: its module. `@V` stands for WASI's version in both.
pub(crate) fn component(name: &str, wasi: (&str, &str), world: &str, core: &str, encoding: StringEncoding) -> PathBuf {
    let mut resolve = Resolve { all_features: true, ..Resolve::default() };
    resolve.push_dir(wit_of(wasi.0, wasi.1)).unwrap_or_else(|error| panic!("{}: {error:?}", wasi.0));
    let mut versions = resolve.packages.iter().filter(|(_, package)| package.name.name == "http");
    let version = versions.find_map(|(_, package)| package.name.version.clone()).expect("a version").to_string();
    let with_version = |text: &str| text.replace("@V", &format!("@{version}"));
    let world = format!("package tests:{name};\nworld tested {{ {} }}", with_version(world));
    let package = resolve.push_str("tested.wit", &world).unwrap_or_else(|error| panic!("{error:?}\n{world}"));
    let world = resolve.select_world(&[package], Some("tested")).expect("the world");
    let core = with_version(core);
    let mut module = wat::parse_str(&core).unwrap_or_else(|error| panic!("{error}\n{core}"));
    embed_component_metadata(&mut module, &resolve, world, encoding, false).expect("metadata");
    let mut encoder = ComponentEncoder::default();
    let encoded = encoder.validate(true).module(&module).and_then(|encoder| encoder.encode());
    let component = encoded.unwrap_or_else(|error| panic!("{error:?}"));
    let path = programs::folder().join(format!("{name}.wasm"));
    fs::write(&path, component).expect("write the component");
    path
}

/// A component that answers each request with that text, after it has counted to the number that its path ends with in single digits, times so many.
pub(crate) fn answering(name: &str, text: &str, times: u32) -> PathBuf {
    let length = text.len();
    let core = format!(
        r#"(module
          (import "wasi:http/types@V" "[method]incoming-request.path-with-query" (func $path (param i32 i32)))
          (import "wasi:http/types@V" "[constructor]fields" (func $fields (result i32)))
          (import "wasi:http/types@V" "[constructor]outgoing-response" (func $response (param i32) (result i32)))
          (import "wasi:http/types@V" "[method]outgoing-response.body" (func $body (param i32 i32)))
          (import "wasi:http/types@V" "[method]outgoing-body.write" (func $write (param i32 i32)))
          (import "wasi:http/types@V" "[static]outgoing-body.finish" (func $finish (param i32 i32 i32 i32)))
          (import "wasi:http/types@V" "[static]response-outparam.set"
            (func $set (param i32 i32 i32 i32 i64 i32 i32 i32 i32)))
          (import "wasi:io/streams@V" "[method]output-stream.blocking-write-and-flush" (func $put (param i32 i32 i32 i32)))
          (import "wasi:io/streams@V" "[resource-drop]output-stream" (func $drop (param i32)))
          (memory (export "memory") 1)
          (data (i32.const 1024) "{text}")
          (global $free (mut i32) (i32.const 4096))
          (global $seen (mut i32) (i32.const 0))
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
            (global.get $free)
            (global.set $free (i32.add (global.get $free) (i32.and (i32.add (local.get 3) (i32.const 7)) (i32.const -8)))))
          (func $count (param $to i32)
            (loop $more
              (global.set $seen (i32.mul (i32.add (global.get $seen) (local.get $to)) (i32.const 0x9e3779b1)))
              (i32.store (i32.const 2048) (global.get $seen))
              (local.set $to (i32.sub (local.get $to) (i32.const 1)))
              (br_if $more (i32.gt_s (local.get $to) (i32.const 0)))))
          (func (export "wasi:http/incoming-handler@V#handle") (param $request i32) (param $out i32)
            (local $response i32) (local $body i32) (local $stream i32)
            (call $path (local.get $request) (i32.const 16))
            (call $count
              (i32.mul
                (i32.const {times})
                (i32.and
                  (i32.load8_u (i32.sub (i32.add (i32.load (i32.const 20)) (i32.load (i32.const 24))) (i32.const 1)))
                  (i32.const 15))))
            (local.set $response (call $response (call $fields)))
            (call $body (local.get $response) (i32.const 32))
            (local.set $body (i32.load (i32.const 36)))
            (call $write (local.get $body) (i32.const 32))
            (local.set $stream (i32.load (i32.const 36)))
            (call $put (local.get $stream) (i32.const 1024) (i32.const {length}) (i32.const 48))
            (call $drop (local.get $stream))
            (call $finish (local.get $body) (i32.const 0) (i32.const 0) (i32.const 64))
            (call $set (local.get $out) (i32.const 0) (local.get $response) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0)
              (i32.const 0) (i32.const 0))))"#
    );
    let world = "import wasi:http/types@V; export wasi:http/incoming-handler@V;";
    component(name, WASI2, world, &core, StringEncoding::UTF8)
}

/// The artifact of a component.
pub(crate) fn artifact(name: &str, wasi: (&str, &str), world: &str, core: &str, encoding: StringEncoding) -> PathBuf {
    programs::compiled(&component(name, wasi, world, core, encoding), &[])
}
