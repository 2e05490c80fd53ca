//! Strings as components encode them (CanonicalABI.md, "Loading" and "Storing" of strings).

use std::borrow::Cow;

use awsm_abi::component::strings;
use bytes::Bytes;
use sledge_sandbox::GuestMemory;

use super::lift::{LIFTED_BYTES_MAX, outside};
use crate::component_trap::ComponentTrap;
use crate::host::Stop;

/// How a component encodes strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::host) enum Encoding {
    #[default]
    Utf8,
    Utf16,
    /// Latin-1, or UTF-16 where the length says so.
    Latin1OrUtf16,
}

/// What the units of a string are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Units {
    Utf8,
    Utf16,
    Latin1,
}

/// A string that is encoded for a component.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Encoded {
    pub(super) bytes: Bytes,
    pub(super) align: u32,
    /// The length as the component is told of it.
    pub(super) length: u32,
}

impl Encoding {
    /// What the argument says that names the handle table.
    ///
    /// # Errors
    /// A trap, when that is none.
    pub(super) fn of(table: u32) -> Result<Encoding, Stop> {
        match table & strings::MASK {
            strings::UTF8 => Ok(Encoding::Utf8),
            strings::UTF16 => Ok(Encoding::Utf16),
            strings::LATIN1_OR_UTF16 => Ok(Encoding::Latin1OrUtf16),
            _ => Err(ComponentTrap::Case.into()),
        }
    }

    /// What a string of that length consists of, and how many they are.
    const fn units(self, length: u32) -> (Units, u32) {
        match self {
            Encoding::Utf8 => (Units::Utf8, length),
            Encoding::Utf16 => (Units::Utf16, length),
            Encoding::Latin1OrUtf16 if length & strings::UTF16_TAG != 0 => (Units::Utf16, length ^ strings::UTF16_TAG),
            Encoding::Latin1OrUtf16 => (Units::Latin1, length),
        }
    }

    /// The bytes of a string.
    fn bytes<'m>(self, memory: &'m GuestMemory<'_>, address: u32, length: u32) -> Result<(Units, &'m [u8]), Stop> {
        let (units, count) = self.units(length);
        let bytes = match units {
            Units::Utf16 => u64::from(count) * 2,
            Units::Utf8 | Units::Latin1 => count.into(),
        };
        if self != Encoding::Utf8 && !address.is_multiple_of(2) {
            return Err(ComponentTrap::Unaligned.into());
        }
        Ok((units, memory.slice(address.into(), bytes).map_err(outside)?))
    }

    /// A string. None where it is longer than `bytes_max` in UTF-8. What is made is never longer: a string of Latin-1 is counted first, one of UTF-16 is read
    /// as far as it fits. Otherwise a component could have the worker make several times what it is allowed.
    ///
    /// # Errors
    /// A trap, when it does not lie in the memory, is not encoded so, or is too large to be copied.
    pub(super) fn decode<'m>(
        self,
        memory: &'m GuestMemory<'_>,
        address: u32,
        length: u32,
        bytes_max: u64,
    ) -> Result<Option<Cow<'m, str>>, Stop> {
        let (units, bytes) = self.bytes(memory, address, length)?;
        // No unit becomes less than a byte.
        let count = if units == Units::Utf16 { bytes.len() / 2 } else { bytes.len() };
        if count as u64 > bytes_max {
            return Ok(None);
        }
        let text = match units {
            Units::Utf8 => Cow::Borrowed(utf8(bytes)?),
            Units::Latin1 if bytes.is_ascii() => Cow::Borrowed(utf8(bytes)?),
            _ if bytes.len() > LIFTED_BYTES_MAX => return Err(ComponentTrap::OutOfBounds.into()),
            Units::Latin1 => {
                let length = bytes.len() + bytes.iter().filter(|byte| !byte.is_ascii()).count();
                if length as u64 > bytes_max {
                    return Ok(None);
                }
                let mut text = String::with_capacity(length);
                text.extend(bytes.iter().copied().map(char::from));
                Cow::Owned(text)
            }
            Units::Utf16 => match utf16(bytes, bytes_max)? {
                Some(text) => Cow::Owned(text),
                None => return Ok(None),
            },
        };
        Ok((text.len() as u64 <= bytes_max).then_some(text))
    }

    /// The beginning of a string, as far as so many of its units say it. What is none there is replaced.
    ///
    /// # Errors
    /// A trap, when the string does not lie in the memory.
    pub(super) fn begin<'m>(
        self,
        memory: &'m GuestMemory<'_>,
        address: u32,
        length: u32,
        units_max: usize,
    ) -> Result<Cow<'m, str>, Stop> {
        let (units, bytes) = self.bytes(memory, address, length)?;
        Ok(match units {
            Units::Utf8 => String::from_utf8_lossy(&bytes[..bytes.len().min(units_max)]),
            Units::Latin1 => bytes.iter().take(units_max).copied().map(char::from).collect(),
            Units::Utf16 => {
                let units = pairs(bytes).take(units_max);
                char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
            }
        })
    }

    /// A string for the component.
    pub(super) fn encode(self, text: String) -> Encoded {
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Bytes>();
        // All of them are below the limit of a result.
        match self {
            Encoding::Utf8 => Encoded { length: text.len() as u32, align: 1, bytes: text.into() },
            Encoding::Utf16 => {
                let bytes = wide(&text);
                Encoded { length: bytes.len() as u32 / 2, align: 2, bytes }
            }
            Encoding::Latin1OrUtf16 => match text.chars().map(|c| u8::try_from(c).ok()).collect::<Option<Bytes>>() {
                Some(bytes) => Encoded { length: bytes.len() as u32, align: 2, bytes },
                None => {
                    let bytes = wide(&text);
                    Encoded { length: (bytes.len() as u32 / 2) | strings::UTF16_TAG, align: 2, bytes }
                }
            },
        }
    }
}

/// The bytes as text.
fn utf8(bytes: &[u8]) -> Result<&str, Stop> {
    std::str::from_utf8(bytes).map_err(|error| ComponentTrap::Utf8 { at: error.valid_up_to() }.into())
}

fn pairs(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}

/// The pairs of bytes as text, if that is not longer than `bytes_max`.
fn utf16(bytes: &[u8], bytes_max: u64) -> Result<Option<String>, Stop> {
    let mut text = String::with_capacity(bytes.len() / 2);
    let mut at = 0;
    for decoded in char::decode_utf16(pairs(bytes)) {
        let character = decoded.map_err(|_| ComponentTrap::Utf16 { at })?;
        if (text.len() + character.len_utf8()) as u64 > bytes_max {
            return Ok(None);
        }
        at += 2 * character.len_utf16();
        text.push(character);
    }
    Ok(Some(text))
}
