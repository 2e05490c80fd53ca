//! What a file is that is called WebAssembly and is none, by how it begins. What begins as WebAssembly does is left to the parsers.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// What is read of a file whose name says nothing.
const BEGINNING_BYTES: u64 = 4 << 10;

/// How files of other formats begin, and what they are.
const FORMATS: [(&[u8], &str); 9] = [
    (b"\x7fELF", "this is native code (ELF); give the module or the source that it was made of"),
    (b"MZ", "this is a program for Windows; give the module or the source that it was made of"),
    (b"\xcf\xfa\xed\xfe", "this is native code for macOS; give the module or the source that it was made of"),
    (b"!<arch>\n", "this is a library of object files; give the module that it was linked to"),
    (b"BC\xc0\xde", "this is LLVM's bitcode; give the module that it was linked to"),
    (b"\x1f\x8b", "this is compressed (gzip); decompress it first"),
    (b"\x28\xb5\x2f\xfd", "this is compressed (zstd); decompress it first"),
    (b"PK\x03\x04", "this is an archive (zip); give the module that is in it"),
    (b"%PDF-", "this is a document (PDF)"),
];

const EMPTY: &str = "this file is empty";
const OTHER: &str = "it does not begin as a module or component does";

/// What a file is whose name says nothing; none where it may be WebAssembly, or cannot be read.
pub(super) fn unnamed(path: &Path) -> Option<&'static str> {
    // What is no file may not end, or not begin.
    let mut bytes = Vec::new();
    let file = Some(path).filter(|path| path.is_file()).and_then(|path| File::open(path).ok())?;
    file.take(BEGINNING_BYTES).read_to_end(&mut bytes).ok()?;
    instead_of_binary(&bytes)
}

/// What a file is that does not begin as binaries do; none where it does.
pub(super) fn instead_of_binary(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: &[u8] = b"\0asm";
    match bytes {
        [] => Some(EMPTY),
        _ if bytes.starts_with(MAGIC) => None,
        _ if MAGIC.starts_with(bytes) => Some("this file is cut off after its first bytes"),
        _ => Some(known(bytes).unwrap_or(match text(bytes) {
            Some(text) if begins_as_wat(text) => "this is the text format; call the file .wat",
            Some(_) => "this is text",
            None => OTHER,
        })),
    }
}

/// What a file is that is neither of the text format by how it begins, nor a binary, which is taken for one; none where it is.
pub(super) fn instead_of_text(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\0asm") {
        return None;
    }
    if let Some(what) = known(bytes) {
        return Some(what);
    }
    match text(bytes) {
        None => Some("this is neither text nor a binary module"),
        Some(text) if text.trim().is_empty() => Some(EMPTY),
        Some(text) if begins_as_wat(text) => None,
        Some(_) => Some("this is text, but not the text format, which begins with `(`"),
    }
}

fn known(bytes: &[u8]) -> Option<&'static str> {
    FORMATS.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, what)| *what)
}

/// The file as text, if it is some that a person may read.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // It may be the beginning of one.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    Some(text).filter(|text| !text.contains('\0'))
}

/// Whether what comes first is a parenthesis or a comment of the text format.
fn begins_as_wat(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    ["(", ";;"].iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_wasm_is_left_to_its_readers() {
        for bytes in [b"\0asm\x01\0\0\0".as_slice(), b"\0asm", b"\0asm\x0d\0\x01\0"] {
            assert_eq!((instead_of_binary(bytes), instead_of_text(bytes)), (None, None));
        }
        for text in ["(module)", " \n(func)", ";; a comment", "(; one ;)(module)", "(@custom)", "(component", "(unknown)"] {
            assert_eq!(instead_of_text(text.as_bytes()), None, "{text}");
            assert_eq!(instead_of_binary(text.as_bytes()), Some("this is the text format; call the file .wat"), "{text}");
        }
    }

    #[test]
    fn what_is_not_is_named() {
        let native = Some("this is native code (ELF); give the module or the source that it was made of");
        let elf = b"\x7fELF\x02\x01";
        assert_eq!((instead_of_binary(elf), instead_of_text(elf)), (native, native));
        assert_eq!((instead_of_binary(b""), instead_of_text(b" \n")), (Some(EMPTY), Some(EMPTY)));
        assert_eq!(instead_of_binary(b"\0as"), Some("this file is cut off after its first bytes"));
        assert_eq!(instead_of_binary(b"# Title\n"), Some("this is text"));
        assert_eq!(instead_of_text(b"# Title\n"), Some("this is text, but not the text format, which begins with `(`"));
        assert_eq!((instead_of_binary(b"\x01\0\x02"), instead_of_text(b"\xff")).0, Some(OTHER));
        assert_eq!(instead_of_text(b"\xff\0"), Some("this is neither text nor a binary module"));
    }
}
