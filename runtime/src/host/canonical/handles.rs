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

/// The head of a table.
#[derive(Clone, Copy, Debug)]
struct Head {
    free: u32,
    length: u32,
    capacity: u32,
    entries: u32,
}

impl Head {
    /// Address of a handle's entry. Nothing is checked.
    fn at(self, handle: u32) -> u64 {
        u64::from(self.entries) + u64::from(handle) * entry::BYTES
    }
}

/// A head's or an entry's fields, of four bytes each.
type Fields = [u8; 16];

const _: () = assert!(table::BYTES == 16 && entry::BYTES == 16);

/// An access outside of the state's memory: the table is none.
fn outside(_: sledge_sandbox::OutOfBounds) -> Stop {
    ComponentTrap::OutOfBounds.into()
}

/// The field at that offset.
fn field(fields: &Fields, offset: u64) -> u32 {
    let at = offset as usize;
    u32::from_le_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]])
}

impl<'c, 'a> Handles<'c, 'a> {
    /// The table that begins at that address of the state's memory.
    pub(super) fn new(state: &'c mut GuestMemory<'a>, table: u64) -> Handles<'c, 'a> {
        Handles { state, table }
    }

    /// The fields at that address.
    fn fields(&self, at: u64) -> Result<&Fields, Stop> {
        let bytes = self.state.slice(at, size_of::<Fields>() as u64).map_err(outside)?;
        bytes.first_chunk().ok_or(Stop::Trap(ComponentTrap::OutOfBounds))
    }

    fn head(&self) -> Result<Head, Stop> {
        let fields = self.fields(self.table)?;
        Ok(Head {
            free: field(fields, table::FREE),
            length: field(fields, table::LENGTH),
            capacity: field(fields, table::CAPACITY),
            entries: field(fields, table::ENTRIES),
        })
    }

    fn set_head(&mut self, field: u64, value: u32) -> Result<(), Stop> {
        self.state.write_u32(self.table + field, value).map_err(outside)
    }

    /// The entry of a handle of that resource type.
    fn entry(&self, head: Head, handle: u32, number: u32) -> Result<Entry, Stop> {
        let wrong = |violation| Err(ComponentTrap::Handle { handle, violation }.into());
        if handle == 0 || handle >= head.length {
            return wrong(Violation::UnknownHandle);
        }
        let at = head.at(handle);
        let fields = self.fields(at)?;
        match field(fields, entry::TYPE) {
            0 => return wrong(Violation::UnknownHandle),
            ty if ty != number => return wrong(Violation::HandleType),
            _ => {}
        }
        let representation = field(fields, entry::REPRESENTATION);
        Ok(Entry { at, representation, lends: field(fields, entry::LENDS), kind: field(fields, entry::KIND) })
    }

    /// What a handle of that type stands for, be it owned or borrowed.
    ///
    /// # Errors
    /// A trap, when the handle is unknown or of another type.
    pub(super) fn representation(&self, handle: u32, number: u32) -> Result<u32, Stop> {
        Ok(self.entry(self.head()?, handle, number)?.representation)
    }

    /// Takes an owned handle out of the table; what it stood for.
    ///
    /// # Errors
    /// A trap, when the handle is unknown, of another type, borrowed, or lent.
    pub(super) fn remove(&mut self, handle: u32, number: u32) -> Result<u32, Stop> {
        let head = self.head()?;
        let Entry { at, representation, lends, kind } = self.entry(head, handle, number)?;
        let wrong = |violation| Err(ComponentTrap::Handle { handle, violation }.into());
        if kind != entry::OWN {
            return wrong(Violation::NotOwned);
        }
        if lends != 0 {
            return wrong(Violation::Lent);
        }
        self.set_entry(at, [0, head.free, 0, 0])?;
        self.set_head(table::FREE, handle)?;
        Ok(representation)
    }

    /// A new owned handle of that type.
    ///
    /// # Errors
    /// A trap, when the table has no room: more than [`table::ROOM`] in one call.
    pub(super) fn insert(&mut self, number: u32, representation: u32) -> Result<u32, Stop> {
        let head = self.head()?;
        let (free, length) = (head.free, head.length.max(1));
        let handle = if free == 0 {
            if length >= head.capacity {
                return Err(ComponentTrap::Violation(Violation::HandlesExhausted).into());
            }
            // Below a capacity of 32 bits.
            self.set_head(table::LENGTH, length + 1)?;
            length
        } else {
            let next = self.state.read_u32(head.at(free) + entry::REPRESENTATION).map_err(outside)?;
            self.set_head(table::FREE, next)?;
            free
        };
        self.set_entry(head.at(handle), [number, representation, 0, entry::OWN])?;
        Ok(handle)
    }

    /// Writes an entry: type, representation, lends, kind.
    fn set_entry(&mut self, at: u64, fields: [u32; 4]) -> Result<(), Stop> {
        const OFFSETS: [u64; 4] = [entry::TYPE, entry::REPRESENTATION, entry::LENDS, entry::KIND];
        let mut bytes: Fields = [0; 16];
        for (offset, field) in OFFSETS.into_iter().zip(fields) {
            bytes[offset as usize..][..4].copy_from_slice(&field.to_le_bytes());
        }
        self.state.write(at, &bytes).map_err(outside)
    }
}
