//! Transcoders: functions of `transcode.wat`, between two memories.

use wasmtime_environ::component::{FixedEncoding, RuntimeMemoryIndex, Transcode};

use super::super::glue::Glue;
use super::Builder;
use crate::error::CompileError;

/// The name of a function of `transcode.wat`.
pub(super) const fn transcoder(op: Transcode) -> &'static str {
    match op {
        Transcode::Copy(FixedEncoding::Utf8) => "copy utf8",
        Transcode::Copy(FixedEncoding::Utf16) => "copy utf16",
        Transcode::Copy(FixedEncoding::Latin1) => "copy latin1",
        Transcode::Latin1ToUtf16 => "latin1 to utf16",
        Transcode::Latin1ToUtf8 => "latin1 to utf8",
        Transcode::Utf16ToCompactProbablyUtf16 => "utf16 to compact probably utf16",
        Transcode::Utf16ToCompactUtf16 => "utf16 to compact utf16",
        Transcode::Utf16ToLatin1 => "utf16 to latin1",
        Transcode::Utf16ToUtf8 => "utf16 to utf8",
        Transcode::Utf8ToCompactUtf16 => "utf8 to compact utf16",
        Transcode::Utf8ToLatin1 => "utf8 to latin1",
        Transcode::Utf8ToUtf16 => "utf8 to utf16",
    }
}

impl Builder<'_> {
    /// All transcoders between two memories.
    pub(super) fn transcoders(&mut self, from: RuntimeMemoryIndex, to: RuntimeMemoryIndex) -> Result<usize, CompileError> {
        let mut glue = Glue::between(&self.memory(from)?, &self.memory(to)?);
        glue.transcoder("");
        let (text, linked) = glue.finish();
        self.instantiate(&text, &linked)
    }
}
