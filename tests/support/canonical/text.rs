//! Strings as components keep them, and bytes as the text format writes them.

use std::fmt::Write as _;

/// How a component encodes strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16.
    Utf16,
    /// Latin-1 where all characters are in it, UTF-16 where not.
    Compact,
}

/// Marks the length of a compact string that is UTF-16.
const UTF16_TAG: u32 = 1 << 31;

impl Encoding {
    /// All of them.
    pub const ALL: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Compact];

    /// The option of the canonical ABI.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Encoding::Utf8 => "string-encoding=utf8",
            Encoding::Utf16 => "string-encoding=utf16",
            Encoding::Compact => "string-encoding=latin1+utf16",
        }
    }

    /// How a string's first byte is aligned.
    #[must_use]
    pub const fn align(self) -> u32 {
        match self {
            Encoding::Utf8 => 1,
            Encoding::Utf16 | Encoding::Compact => 2,
        }
    }

    /// The bytes of a text, and its length as it is passed.
    #[must_use]
    pub fn encode(self, text: &str) -> (Vec<u8>, u32) {
        match self {
            Encoding::Utf8 => (text.as_bytes().to_vec(), text.len() as u32),
            Encoding::Utf16 => (utf16(text), text.encode_utf16().count() as u32),
            Encoding::Compact if text.chars().all(|c| u32::from(c) < 256) => {
                (text.chars().map(|c| u32::from(c) as u8).collect(), text.chars().count() as u32)
            }
            Encoding::Compact => Encoding::wide(text),
        }
    }

    /// A compact string that is UTF-16, whether it needs to be or not.
    #[must_use]
    pub fn wide(text: &str) -> (Vec<u8>, u32) {
        (utf16(text), text.encode_utf16().count() as u32 | UTF16_TAG)
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Bytes as a string of the text format, without its quotation marks.
#[must_use]
pub fn data(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "\\{byte:02x}");
        text
    })
}
