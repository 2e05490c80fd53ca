//! Strings between components and the host, in every encoding that a component may have.

use crate::encoded::{self, WASI2};
use sledge_tests::canonical::{Encoding, data};
use sledge_tests::http::TIME_MAX;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::sledge_command;
use std::fs;
use std::path::Path;
use wit_component::StringEncoding;

const WORLD: &str =
    "import wasi:cli/environment@V; import wasi:cli/stdout@V; import wasi:filesystem/preopens@V; export wasi:cli/run@V;";

const fn of(encoding: Encoding) -> StringEncoding {
    match encoding {
        Encoding::Utf8 => StringEncoding::UTF8,
        Encoding::Utf16 => StringEncoding::UTF16,
        Encoding::Compact => StringEncoding::CompactUTF16,
    }
}

/// Makes a folder whose name is these bytes of its memory, in the first folder that it has; writes as many bytes as these are of its second argument, and the
/// length of that; and removes what the first name in a listing of the folder names.
fn core(address: u32, (bytes, length): (&[u8], u32)) -> String {
    let (count, length) = (bytes.len(), length.cast_signed());
    format!(
        r#"(module
          (import "wasi:cli/environment@V" "get-arguments" (func $arguments (param i32)))
          (import "wasi:cli/stdout@V" "get-stdout" (func $stdout (result i32)))
          (import "wasi:io/streams@V" "[method]output-stream.blocking-write-and-flush" (func $write (param i32 i32 i32 i32)))
          (import "wasi:filesystem/preopens@V" "get-directories" (func $folders (param i32)))
          (import "wasi:filesystem/types@V" "[method]descriptor.create-directory-at" (func $make (param i32 i32 i32 i32)))
          (import "wasi:filesystem/types@V" "[method]descriptor.remove-directory-at" (func $remove (param i32 i32 i32 i32)))
          (import "wasi:filesystem/types@V" "[method]descriptor.read-directory" (func $list (param i32 i32)))
          (import "wasi:filesystem/types@V" "[method]directory-entry-stream.read-directory-entry" (func $next (param i32 i32)))
          (memory (export "memory") 4)
          (data (i32.const {address}) "{name}")
          (global $free (mut i32) (i32.const 65536))
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
            (global.get $free)
            (global.set $free (i32.add (global.get $free) (i32.and (i32.add (local.get 3) (i32.const 7)) (i32.const -8)))))
          (func $succeed (param i32) (if (i32.load8_u (local.get 0)) (then unreachable)))
          (func (export "wasi:cli/run@V#run") (result i32)
            (local $folder i32) (local $at i32)
            (call $folders (i32.const 16))
            (local.set $folder (i32.load (i32.load (i32.const 16))))
            (call $make (local.get $folder) (i32.const {address}) (i32.const {length}) (i32.const 32))
            (call $succeed (i32.const 32))
            (call $arguments (i32.const 16))
            ;; A string is its address and its length.
            (local.set $at (i32.add (i32.load (i32.const 16)) (i32.const 8)))
            (call $write (call $stdout) (i32.load (local.get $at)) (i32.const {count}) (i32.const 32))
            (call $write (call $stdout) (i32.add (local.get $at) (i32.const 4)) (i32.const 4) (i32.const 32))
            (call $list (local.get $folder) (i32.const 32))
            (call $succeed (i32.const 32))
            ;; A `result` of an `option` of a type and a name.
            (call $next (i32.load (i32.const 36)) (i32.const 48))
            (call $succeed (i32.const 48))
            (call $remove (local.get $folder) (i32.load (i32.const 60)) (i32.load (i32.const 64)) (i32.const 80))
            (call $succeed (i32.const 80))
            (call $make (local.get $folder) (i32.const {address}) (i32.const {length}) (i32.const 32))
            (i32.const 0)))"#,
        name = data(bytes),
    )
}

fn run(name: &str, encoding: Encoding, core: &str, folder: &Path, argument: &str) -> Finished {
    let component = encoded::component(name, WASI2, WORLD, core, of(encoding));
    let grant = format!("{}::/::rw", folder.display());
    let mut command = sledge_command(&["run", "-O", "0", "--dir", &grant]);
    command.arg(component).args(["--", argument]);
    process::run(&mut command, b"", TIME_MAX)
}

#[test]
fn strings_go_to_the_host_and_come_back_as_components_encode_them() {
    for (index, text) in ["plain", "grün", "日本語 🎈", "grün 🎈"].into_iter().enumerate() {
        for encoding in Encoding::ALL {
            let folder = tempfile::tempdir().expect("a folder");
            let (bytes, length) = encoding.encode(text);
            let name = format!("encoded-{index}-{}", &encoding.option()["string-encoding=".len()..].replace('+', "-"));
            let done = run(&name, encoding, &core(256, (&bytes, length)), folder.path(), text);
            assert_eq!(done.code(), 0, "{text} {encoding:?}: {}", done.stderr);
            assert_eq!(done.stdout, [&*bytes, &length.to_le_bytes()].concat(), "{text} {encoding:?}");
            let names: Vec<_> =
                fs::read_dir(folder.path()).expect("the folder").map(|entry| entry.expect("one").file_name()).collect();
            assert_eq!(names, [text], "{encoding:?}");
        }
    }
}

#[test]
fn strings_that_are_not_valid_trap_in_the_host_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let (utf16, compact) = (Encoding::Utf16, Encoding::Compact);
    let lone = [0x61, 0, 0, 0xd8, 0x61, 0];
    for (name, encoding, address, string, words) in [
        ("lone-utf16", utf16, 256, (&lone[..], 3), "invalid utf16 at byte 2"),
        ("lone-compact", compact, 256, (&lone[..], 3 | 1 << 31), "invalid utf16 at byte 2"),
        ("unaligned-utf16", utf16, 257, (&lone[..2], 1), "pointer not aligned"),
        ("unaligned-compact", compact, 257, (&lone[..2], 2), "pointer not aligned"),
        ("outside-utf16", utf16, 256, (&lone[..2], 0x7fff_ffff), "pointer out of bounds"),
        ("outside-compact", compact, 256, (&lone[..2], u32::MAX), "pointer out of bounds"),
    ] {
        let done = run(name, encoding, &core(address, string), folder.path(), "x");
        assert!(done.code() == 134 && done.stderr.contains(words), "{name}: {} {}", done.code(), done.stderr);
    }
}
