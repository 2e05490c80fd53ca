//! Handle tables, which stand in the state's memory as [`awsm_abi::component::table`] says: the host's side of them.

use awsm_abi::component::Violation;
use awsm_abi::component::table::{self, entry};
use sledge_sandbox::GuestMemory;

use crate::component_trap::ComponentTrap;
use crate::host::Stop;

/// The handle table of a component instance.
#[derive(Debug)]
pub(super) struct Handles<'c, 'a> {
    state: &'c mut GuestMemory<'a>,
    /// Where its head is.
    table: u64,
}

/// What a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// Where it is in the state's memory.
    at: u64,
    representation: u32,
    lends: u32,
    kind: u32,
}

/// An access outside of the state's memory: the table is none.
fn outside(_: sledge_sandbox::OutOfBounds) -> Stop {
    ComponentTrap::OutOfBounds.into()
}

impl<'c, 'a> Handles<'c, 'a> {
    /// The table that begins at that address of the state's memory.
    pub(super) fn new(state: &'c mut GuestMemory<'a>, table: u64) -> Handles<'c, 'a> {
        Handles { state, table }
    }

    fn head(&self, field: u64) -> Result<u32, Stop> {
        self.state.read_u32(self.table + field).map_err(outside)
    }

    fn set_head(&mut self, field: u64, value: u32) -> Result<(), Stop> {
        self.state.write_u32(self.table + field, value).map_err(outside)
    }

    /// Address of a handle's entry. Nothing is checked.
    fn at(&self, handle: u32) -> Result<u64, Stop> {
        Ok(u64::from(self.head(table::ENTRIES)?) + u64::from(handle) * entry::BYTES)
    }

    /// The entry of a handle of that resource type.
    fn entry(&self, handle: u32, number: u32) -> Result<Entry, Stop> {
        let wrong = |violation| Err(ComponentTrap::Handle { handle, violation }.into());
        if handle == 0 || handle >= self.head(table::LENGTH)? {
            return wrong(Violation::UnknownHandle);
        }
        let at = self.at(handle)?;
        let bytes = self.state.slice(at, entry::BYTES).map_err(outside)?;
        let field = |offset: u64| {
            let field = bytes.get(offset as usize..).and_then(|bytes| bytes.first_chunk());
            // An entry has all of its fields.
            field.map_or(0, |field| u32::from_le_bytes(*field))
        };
        match field(entry::TYPE) {
            0 => return wrong(Violation::UnknownHandle),
            ty if ty != number => return wrong(Violation::HandleType),
            _ => {}
        }
        let (representation, lends, kind) = (field(entry::REPRESENTATION), field(entry::LENDS), field(entry::KIND));
        Ok(Entry { at, representation, lends, kind })
    }

    /// What a handle of that type stands for, be it owned or borrowed.
    ///
    /// # Errors
    /// A trap, when the handle is unknown or of another type.
    pub(super) fn representation(&self, handle: u32, number: u32) -> Result<u32, Stop> {
        Ok(self.entry(handle, number)?.representation)
    }

    /// Takes an owned handle out of the table; what it stood for.
    ///
    /// # Errors
    /// A trap, when the handle is unknown, of another type, borrowed, or lent.
    pub(super) fn remove(&mut self, handle: u32, number: u32) -> Result<u32, Stop> {
        let Entry { at, representation, lends, kind } = self.entry(handle, number)?;
        let wrong = |violation| Err(ComponentTrap::Handle { handle, violation }.into());
        if kind != entry::OWN {
            return wrong(Violation::NotOwned);
        }
        if lends != 0 {
            return wrong(Violation::Lent);
        }
        let free = self.head(table::FREE)?;
        self.set_entry(at, [0, free, 0, 0])?;
        self.set_head(table::FREE, handle)?;
        Ok(representation)
    }

    /// A new owned handle of that type.
    ///
    /// # Errors
    /// A trap, when the table has no room: more than [`table::ROOM`] in one call.
    pub(super) fn insert(&mut self, number: u32, representation: u32) -> Result<u32, Stop> {
        let free = self.head(table::FREE)?;
        let length = self.head(table::LENGTH)?.max(1);
        let handle = if free == 0 {
            if length >= self.head(table::CAPACITY)? {
                return Err(ComponentTrap::Violation(Violation::HandlesExhausted).into());
            }
            // Below a capacity of 32 bits.
            self.set_head(table::LENGTH, length + 1)?;
            length
        } else {
            let next = self.state.read_u32(self.at(free)? + entry::REPRESENTATION).map_err(outside)?;
            self.set_head(table::FREE, next)?;
            free
        };
        let at = self.at(handle)?;
        self.set_entry(at, [number, representation, 0, entry::OWN])?;
        Ok(handle)
    }

    /// Writes an entry: type, representation, lends, kind.
    fn set_entry(&mut self, at: u64, fields: [u32; 4]) -> Result<(), Stop> {
        const OFFSETS: [u64; 4] = [entry::TYPE, entry::REPRESENTATION, entry::LENDS, entry::KIND];
        let mut bytes = [0; entry::BYTES as usize];
        for (offset, field) in OFFSETS.into_iter().zip(fields) {
            bytes[offset as usize..][..4].copy_from_slice(&field.to_le_bytes());
        }
        self.state.write(at, &bytes).map_err(outside)
    }
}
