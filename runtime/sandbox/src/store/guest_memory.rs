//! The host's view of a guest's memory: every access is checked.

use crate::store::memory::Memory;

/// Checked access to a linear memory, from the host's side. The guest does not run while it exists. Addresses are offsets from the memory's
/// first byte.
#[derive(Debug)]
pub struct GuestMemory<'a> {
    memory: &'a mut Memory,
}

/// An access outside of a linear memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of bounds memory access")]
pub struct OutOfBounds;

impl<'a> GuestMemory<'a> {
    pub(crate) fn new(memory: &'a mut Memory) -> GuestMemory<'a> {
        GuestMemory { memory }
    }

    /// The same memory, for a shorter time.
    #[must_use]
    pub fn reborrow(&mut self) -> GuestMemory<'_> {
        GuestMemory { memory: self.memory }
    }

    #[inline]
    fn range(&self, address: u64, bytes: u64) -> Result<std::ops::Range<usize>, OutOfBounds> {
        let end = address.checked_add(bytes).filter(|&end| end <= self.memory.length()).ok_or(OutOfBounds)?;
        // Both fit: lengths are sizes of address space.
        Ok(address as usize..end as usize)
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.memory.length()
    }

    /// Whether it has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `bytes` bytes from `address`.
    ///
    /// # Errors
    /// When they do not all lie within the memory.
    #[inline]
    pub fn slice(&self, address: u64, bytes: u64) -> Result<&[u8], OutOfBounds> {
        let range = self.range(address, bytes)?;
        Ok(&self.memory.bytes()[range])
    }

    /// As [`slice`](Self::slice), to be changed.
    ///
    /// # Errors
    /// As for `slice`.
    #[inline]
    pub fn slice_mut(&mut self, address: u64, bytes: u64) -> Result<&mut [u8], OutOfBounds> {
        let range = self.range(address, bytes)?;
        self.memory.slice_mut(range).ok_or(OutOfBounds)
    }

    /// Copies from the memory; all of `to` or nothing.
    ///
    /// # Errors
    /// As for [`slice`](Self::slice).
    #[inline]
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), OutOfBounds> {
        to.copy_from_slice(self.slice(address, to.len() as u64)?);
        Ok(())
    }

    /// Copies into the memory; all of `from` or nothing.
    ///
    /// # Errors
    /// As for [`slice`](Self::slice).
    #[inline]
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), OutOfBounds> {
        self.slice_mut(address, from.len() as u64)?.copy_from_slice(from);
        Ok(())
    }
}

macro_rules! numbers {
    ($($ty:ty, $read:ident, $write:ident;)*) => {
        impl GuestMemory<'_> {
            $(
                #[doc = concat!("Reads a little-endian `", stringify!($ty), "`, aligned or not.")]
                ///
                /// # Errors
                /// As for [`slice`](Self::slice).
                #[inline]
                pub fn $read(&self, address: u64) -> Result<$ty, OutOfBounds> {
                    let mut bytes = [0; size_of::<$ty>()];
                    self.read(address, &mut bytes)?;
                    Ok(<$ty>::from_le_bytes(bytes))
                }

                #[doc = concat!("Writes a little-endian `", stringify!($ty), "`, aligned or not.")]
                ///
                /// # Errors
                /// As for [`slice`](Self::slice).
                #[inline]
                pub fn $write(&mut self, address: u64, value: $ty) -> Result<(), OutOfBounds> {
                    self.write(address, &value.to_le_bytes())
                }
            )*
        }
    };
}

numbers! {
    u8, read_u8, write_u8;
    u16, read_u16, write_u16;
    u32, read_u32, write_u32;
    u64, read_u64, write_u64;
}
