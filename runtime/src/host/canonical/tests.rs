//! Golden layouts of the canonical ABI, handle tables, and results that need memory, without a guest.

use std::sync::Arc;

use awsm_abi::component::table::{self, entry};
use awsm_abi::component::{RESUME_DONE, Violation, strings};
use awsm_abi::types::MemoryType;
use bytes::Bytes;
use sledge_sandbox::{GuestMemory, MemoryHandle, Sandbox, SandboxLimits, Slot};

use super::lift::Lift;
use super::lower::{Lowering, RESULT_BYTES_MAX};
use super::resources::RESOURCES_MAX;
use super::strings::Encoding;
use super::{FUNCTIONS, Lower, Own, Pollable, Resource, Subject, Typed, canonical};
use crate::component_trap::ComponentTrap;
use crate::host::wasi2::INPUT;
use crate::host::{
    Args, Body, Call, CallFailure, Code, Context, Effect, Flat, HostFunction, LogLines, Output, Process, ReplyBytes, Stop,
    Streams, Waiter, Writer,
};
use crate::outcome::Failure;

/// Where the handle table of the tests is.
const TABLE: u32 = 64;
/// Where its entries are.
const ENTRIES: u32 = 1024;
/// For how many there is room.
const CAPACITY: u32 = 128;

/// An invocation without a guest: a component's memory, the state's, and the host's side.
pub(in crate::host) struct World {
    sandbox: Sandbox,
    memory: MemoryHandle,
    state: MemoryHandle,
    pub(in crate::host) context: Context,
    waiter: Waiter,
}

impl World {
    pub(in crate::host) fn new(body: Body, process: Process) -> World {
        let process = Arc::new(process);
        let log = LogLines::new(Arc::clone(&process), Arc::default(), Writer::default());
        let streams = Streams::of_request(body, ReplyBytes::default(), 4 << 20, log);
        World::with_streams(streams, process)
    }

    pub(in crate::host) fn with_streams(streams: Streams, process: Arc<Process>) -> World {
        let mut sandbox = Sandbox::new(&SandboxLimits::default()).unwrap();
        let ty = MemoryType { pages_min: 2, pages_max: Some(2), memory64: false, shared: false };
        let (memory, state) = (sandbox.new_memory(ty).unwrap(), sandbox.new_memory(ty).unwrap());
        let mut world = World { sandbox, memory, state, context: Context::new(process, streams), waiter: Waiter::default() };
        world.set_table(&[(table::FREE, 0), (table::LENGTH, 1), (table::CAPACITY, CAPACITY), (table::ENTRIES, ENTRIES)]);
        world
    }

    fn set_table(&mut self, fields: &[(u64, u32)]) {
        let mut state = self.sandbox.memory_of(self.state);
        for (field, value) in fields {
            state.write_u32(u64::from(TABLE) + field, *value).unwrap();
        }
    }

    /// Fields of a handle's entry.
    fn entry(&mut self, handle: u32) -> [u32; 4] {
        let at = u64::from(ENTRIES) + u64::from(handle) * entry::BYTES;
        let state = self.sandbox.memory_of(self.state);
        [entry::TYPE, entry::REPRESENTATION, entry::LENDS, entry::KIND].map(|field| state.read_u32(at + field).unwrap())
    }

    fn set_entry(&mut self, handle: u32, field: u64, value: u32) {
        let at = u64::from(ENTRIES) + u64::from(handle) * entry::BYTES;
        self.sandbox.memory_of(self.state).write_u32(at + field, value).unwrap();
    }

    /// Gives a resource to the component; its handle.
    pub(in crate::host) fn give<T: Typed>(&mut self, resource: T) -> u32 {
        let given = self.run(Effect::Safe, &[TABLE.into()], |call| call.give(resource).map(|own| Flat::from(own.0)));
        given.unwrap().0 as u32
    }

    /// What a handle stands for.
    pub(in crate::host) fn representation(&mut self, handle: u32) -> u32 {
        self.entry(handle)[1]
    }

    pub(in crate::host) fn memory(&mut self) -> GuestMemory<'_> {
        self.sandbox.memory_of(self.memory)
    }

    /// Calls `code` with these arguments, waiting as long as it waits.
    pub(in crate::host) fn run(
        &mut self,
        effect: Effect,
        args: &[u64],
        code: impl FnOnce(&mut Call<'_>) -> Result<Flat, Stop>,
    ) -> Result<Flat, Stop> {
        let function = canonical("test", "test", &[], &[], effect, |_| Ok(Flat::NONE));
        let slots: Vec<Slot> = args.iter().map(|arg| Slot::from_bits(u128::from(*arg))).collect();
        let [memory, state] = self.sandbox.memories_of(self.memory, self.state).unwrap();
        let args = Args::new(&slots);
        let mut call = Call { state: Some(state), ..Call::new(&function, &args, Some(memory), &mut self.context) };
        let mut result = code(&mut call);
        while result == Err(Stop::Waits) {
            let pending = call.pending.take().expect("it says for what");
            let completion = self.waiter.wait(pending, None).unwrap().expect("there is no deadline");
            result = completion(&mut call);
        }
        result
    }

    /// Answers calls of other functions, which a worker makes, with that there are none.
    fn refuse_calls(&mut self) {
        while let Some(call) = self.context.next_outgoing() {
            if let Some(id) = call.id {
                self.context.called(id, Err(CallFailure::Failed(Failure::NotFound)));
            }
        }
    }

    /// Calls a host function with the handle table and these arguments, as its wrapper does: the blocks of its result are placed from `room` on.
    pub(in crate::host) fn call(&mut self, function: &'static HostFunction, args: &[u64], room: u32) -> Result<Flat, Stop> {
        let Code::Canonical(code) = function.code else { panic!("{} is no function of components", function.name) };
        let args: Vec<u64> = std::iter::once(u64::from(TABLE)).chain(args.iter().copied()).collect();
        assert_eq!(args.len(), function.params.len(), "{} {}", function.module, function.name);
        let result = loop {
            match self.run(function.effect, &args, code) {
                Err(Stop::Again) => self.refuse_calls(),
                other => break other?,
            }
        };
        if self.context.lowering.is_none() {
            return Ok(result);
        }
        assert_eq!(result, Flat::from(true), "{}", function.name);
        self.resume(room)?;
        Ok(Flat::NONE)
    }

    /// Places the blocks of a result one behind the other.
    fn resume(&mut self, room: u32) -> Result<(), Stop> {
        let (mut room, mut address) = (room, 0);
        loop {
            let Flat(next) = self.glue("resume", address)?;
            if next == RESUME_DONE.cast_unsigned() {
                return Ok(());
            }
            let (size, align) = (next as u32, (next >> 32) as u32);
            address = room.next_multiple_of(align);
            room = address + size;
        }
    }

    /// Calls a function of `sledge:canonical` with one argument.
    pub(in crate::host) fn glue(&mut self, name: &str, arg: u32) -> Result<Flat, Stop> {
        let function = FUNCTIONS.iter().find(|function| function.name == name).unwrap();
        let Code::Canonical(code) = function.code else { panic!("{name}") };
        self.run(function.effect, &[arg.into()], code)
    }

    /// Where standard output goes.
    pub(in crate::host) fn streams(&mut self) -> &Output {
        self.context.ports.open(Effect::Stream);
        &self.context.ports.streams().unwrap().output
    }

    pub(in crate::host) fn bytes(&mut self, at: u64, bytes: u64) -> Vec<u8> {
        self.memory().slice(at, bytes).unwrap().to_vec()
    }

    pub(in crate::host) fn u32(&mut self, at: u64) -> u32 {
        self.memory().read_u32(at).unwrap()
    }

    /// The list of bytes whose address and length stand there.
    pub(in crate::host) fn list(&mut self, at: u64) -> Vec<u8> {
        let (address, length) = (self.u32(at), self.u32(at + 4));
        self.bytes(address.into(), length.into())
    }
}

fn world() -> World {
    World::new(Body::default(), Process::default())
}

fn trap<T>(trap: ComponentTrap) -> Result<T, Stop> {
    Err(Stop::Trap(trap))
}

fn handle_trap<T>(handle: u32, violation: Violation) -> Result<T, Stop> {
    trap(ComponentTrap::Handle { handle, violation })
}

#[derive(Debug)]
struct Thing(u32);

impl Resource for Thing {}

impl Typed for Thing {
    const NUMBER: u32 = super::number("wasi:io/error@0.2", "error");
}

/// What a value is at address 16 of an empty memory, blocks from 100 on, each at a multiple of its alignment.
fn lowered<T: Lower>(value: T) -> (Vec<u8>, Vec<u8>) {
    let mut world = world();
    let lowered = world.run(Effect::Safe, &[16], |call| call.lower(0, value)).unwrap();
    if lowered == Flat::from(true) {
        world.resume(100).unwrap();
    }
    (world.bytes(16, T::SIZE.into()), world.bytes(100, 32))
}

fn layout<T: Lower>() -> (u32, u32) {
    (T::SIZE, T::ALIGN)
}

#[test]
fn sizes_and_alignments_are_those_of_the_canonical_abi() {
    assert_eq!(layout::<Result<(), u8>>(), (2, 1));
    assert_eq!(layout::<Result<u64, u8>>(), (16, 8));
    assert_eq!(layout::<Result<Own, u8>>(), (8, 4));
    assert_eq!(layout::<Result<Bytes, u8>>(), (12, 4));
    assert_eq!(layout::<Result<(), ()>>(), (1, 1));
    assert_eq!(layout::<Option<Own>>(), (8, 4));
    assert_eq!(layout::<Option<(u64, u32)>>(), (24, 8));
    assert_eq!(layout::<(u64, u32)>(), (16, 8));
    assert_eq!(layout::<(u8, u16, u8, u64)>(), (16, 8));
    assert_eq!(layout::<Result<Option<(u8, String)>, u8>>(), (20, 4));
    // A file's `descriptor-stat`.
    type Stat = (u8, u64, u64, Option<(u64, u32)>, Option<(u64, u32)>, Option<(u64, u32)>);
    assert_eq!(layout::<Result<Stat, u8>>(), (104, 8));
}

#[test]
fn flat_values_and_variants_stand_where_the_canonical_abi_says() {
    assert_eq!(lowered((1_u8, 0x0302_u16, true, 'é')).0, [1, 0, 2, 3, 1, 0, 0, 0, 0xe9, 0, 0, 0]);
    assert_eq!(lowered(Ok::<u64, u8>(7)).0, [0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(lowered(Err::<u64, u8>(7)).0, [1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(lowered(Some(Own(9))).0, [1, 0, 0, 0, 9, 0, 0, 0]);
    assert_eq!(lowered(None::<Own>).0, [0; 8]);
    assert_eq!(lowered(1.5_f64).0, 1.5_f64.to_le_bytes());
}

#[test]
fn lists_go_to_blocks_of_their_own_from_outside_to_inside() {
    let (area, blocks) = lowered("abc");
    assert_eq!((&area[..], &blocks[..3]), (&[100, 0, 0, 0, 3, 0, 0, 0][..], &b"abc"[..]));
    let (area, _) = lowered(Bytes::new());
    assert_eq!(area, [100, 0, 0, 0, 0, 0, 0, 0], "it is asked for, too");
    let (area, blocks) = lowered(vec!["ab".to_owned(), "c".to_owned()]);
    assert_eq!(area, [100, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(blocks[..19], *b"\x74\0\0\0\x02\0\0\0\x76\0\0\0\x01\0\0\0abc");
    let (area, blocks) = lowered(Ok::<_, u8>(vec![0x0201_u16, 3]));
    assert_eq!(area, [0, 0, 0, 0, 100, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(blocks[..4], [1, 2, 3, 0]);
}

#[test]
fn blocks_are_asked_for_with_size_and_alignment_and_nothing_is_written_before() {
    let mut world = world();
    let value = vec![("x".to_owned(), 1_u64)];
    assert_eq!(world.run(Effect::Safe, &[8], |call| call.lower(0, value)), Ok(Flat(1)));
    assert!(world.context.kept_bytes() > 25);
    assert_eq!(world.glue("resume", 0), Ok(Flat(16 | 8 << 32)));
    assert_eq!(world.glue("resume", 200), Ok(Flat(1 | 1 << 32)));
    assert_eq!(world.bytes(0, 300), [0; 300]);
    assert_eq!(world.glue("resume", 300), Ok(Flat(u64::MAX)));
    assert_eq!(world.bytes(8, 8), [200, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(world.bytes(200, 16), [44, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(world.bytes(300, 1), b"x");
    assert_eq!(world.context.kept_bytes(), 0);
    assert_eq!(world.glue("resume", 0), Ok(Flat(RESUME_DONE.cast_unsigned())), "nothing needs memory");
}

#[test]
fn an_address_where_nothing_may_be_is_a_trap_and_nothing_is_written() {
    for (address, expected) in
        [(202, ComponentTrap::Unaligned), (0x2_0000 - 4, ComponentTrap::OutOfBounds), (u32::MAX - 3, ComponentTrap::OutOfBounds)]
    {
        let mut world = world();
        world.run(Effect::Safe, &[8], |call| call.lower(0, vec![1_u32, 2])).unwrap();
        world.glue("resume", 0).unwrap();
        assert_eq!(world.glue("resume", address), trap(expected));
        assert_eq!(world.bytes(0, 300), [0; 300]);
    }
    assert_eq!(world().run(Effect::Safe, &[2], |call| call.lower(0, 1_u32)), trap(ComponentTrap::Unaligned));
    assert_eq!(world().run(Effect::Safe, &[0x2_0000], |call| call.lower(0, 1_u32)), trap(ComponentTrap::OutOfBounds));
}

#[test]
fn a_result_is_bounded_whatever_it_is_made_of() {
    let large = Bytes::from(vec![0; RESULT_BYTES_MAX]);
    assert_eq!(Lowering::new(large.clone(), 0, Encoding::Utf8).err(), Some(Stop::Trap(ComponentTrap::ResultTooLarge)));
    let half = large.slice(..RESULT_BYTES_MAX / 2);
    assert!(Lowering::new(half.clone(), 0, Encoding::Utf8).is_ok());
    assert!(Lowering::new(vec![half.clone(), half], 0, Encoding::Utf8).is_err());
    // Empty ones take something, too.
    assert!(Lowering::new(vec![Bytes::new(); RESULT_BYTES_MAX / 32], 0, Encoding::Utf8).is_err());
}

#[test]
fn strings_and_lists_are_taken_from_the_components_memory() {
    let mut world = world();
    world.memory().write(40, "grün\u{ff}".as_bytes()).unwrap();
    world.memory().write(50, b"a\xff").unwrap();
    // A list of tuples of a string and a list of bytes: ("gr", "n").
    for (at, value) in [(60, 40), (64, 2), (68, 44), (72, 1)] {
        world.memory().write_u32(at, value).unwrap();
    }
    world
        .run(Effect::Safe, &[40, 5, 50, 2, 60, 1, 61, 0x2_0000, 1], |call| {
            assert_eq!(call.text_within(0, 5), Ok(Some("grün".into())));
            assert_eq!(call.text_within(0, 4), Ok(None));
            assert_eq!(call.text_within(2, 9), trap(ComponentTrap::Utf8 { at: 1 }));
            assert_eq!(call.bytes(2), Ok(&b"a\xff"[..]));
            assert_eq!(call.list::<(String, Bytes)>(4), Ok(vec![("gr".to_owned(), Bytes::from_static(b"n"))]));
            assert_eq!(call.list::<u32>(6), trap(ComponentTrap::Unaligned));
            assert_eq!(call.bytes(7), trap(ComponentTrap::OutOfBounds));
            assert_eq!(call.list::<(String, Bytes)>(7), trap(ComponentTrap::OutOfBounds));
            assert_eq!(call.case(1, 5), trap(ComponentTrap::Case));
            Ok(Flat::NONE)
        })
        .unwrap();
    let sizes = (<(u8, u64) as Lift>::SIZE, <Option<u16> as Lift>::SIZE, <Option<u64> as Lift>::SIZE);
    assert_eq!(sizes, (16, 4, 16));
}

#[test]
fn strings_are_taken_and_given_as_the_component_encodes_them() {
    const TAG: u32 = strings::UTF16_TAG;
    for (encoding, text, bytes, length) in [
        (strings::UTF16, "é🎈", &[0xe9, 0, 0x3c, 0xd8, 0x88, 0xdf][..], 3),
        (strings::LATIN1_OR_UTF16, "é", &[0xe9], 1),
        (strings::LATIN1_OR_UTF16, "🎈", &[0x3c, 0xd8, 0x88, 0xdf], 2 | TAG),
    ] {
        let mut world = world();
        world.memory().write(40, bytes).unwrap();
        let args: [u64; 4] = [(TABLE | encoding).into(), 40, length.into(), 80];
        let lowered = world.run(Effect::Safe, &args, |call| {
            assert_eq!(call.text_within(1, 6), Ok(Some(text.into())));
            assert_eq!(call.text_within(1, 1), Ok(None), "it is longer in UTF-8");
            call.lower(3, text)
        });
        assert_eq!(lowered, Ok(Flat(1)));
        assert_eq!(world.glue("resume", 0), Ok(Flat(bytes.len() as u64 | 2 << 32)));
        assert_eq!(world.glue("resume", 200), Ok(Flat(u64::MAX)));
        assert_eq!((world.bytes(200, bytes.len() as u64), world.bytes(84, 4)), (bytes.to_vec(), length.to_le_bytes().to_vec()));
    }
    let mut world = world();
    world.memory().write(40, &[0x61, 0, 0, 0xd8, 0x61, 0]).unwrap();
    let args: [u64; 5] = [(TABLE | strings::UTF16).into(), 40, 3, 41, 1];
    let read = world.run(Effect::Safe, &args, |call| {
        assert_eq!(call.text_begin(1, 2), Ok("a\u{fffd}".into()));
        assert_eq!(call.text_within(3, 9), trap(ComponentTrap::Unaligned));
        call.text_within(1, 9).map(|_| Flat::NONE)
    });
    assert_eq!(read, trap(ComponentTrap::Utf16 { at: 2 }));
}

#[test]
fn a_list_that_names_the_same_bytes_over_and_over_is_not_copied_without_end() {
    let mut world = world();
    for index in 0..0x4000 {
        world.memory().write_u32(8 * index, 0).unwrap();
        world.memory().write_u32(8 * index + 4, 0x2_0000).unwrap();
    }
    let lifted = world.run(Effect::Safe, &[0, 0x4000], |call| call.list::<Bytes>(0).map(|_| Flat::NONE));
    assert_eq!(lifted, trap(ComponentTrap::OutOfBounds));
    for (encoding, length) in [(strings::UTF8, 0x2_0000), (strings::UTF16, 0x1_0000), (strings::LATIN1_OR_UTF16, 0x2_0000)] {
        for index in 0..0x4000 {
            world.memory().write_u32(8 * index + 4, length).unwrap();
        }
        let one = world.run(Effect::Safe, &[(TABLE | encoding).into(), 0, 1], |call| {
            assert_eq!(call.list::<String>(1).map(|list| list.len()), Ok(1));
            Ok(Flat::NONE)
        });
        assert_eq!(one, Ok(Flat::NONE), "the memory has it");
        let args = [(TABLE | encoding).into(), 0, 0x4000];
        let lifted = world.run(Effect::Safe, &args, |call| call.list::<String>(1).map(|_| Flat::NONE));
        assert_eq!(lifted, trap(ComponentTrap::OutOfBounds), "{encoding}");
    }
}

/// What a component's string becomes is counted before it is made: each of its units may be three bytes of UTF-8.
#[test]
fn a_string_that_is_longer_than_it_may_be_is_not_made() {
    for (encoding, unit, length) in [(strings::UTF16, &[0xac_u8, 0x20][..], 3_u64), (strings::LATIN1_OR_UTF16, &[0xe9], 2)] {
        let mut world = world();
        world.memory().write(40, &unit.repeat(1000)).unwrap();
        let args: [u64; 3] = [(TABLE | encoding).into(), 40, 1000];
        let read = world.run(Effect::Safe, &args, |call| {
            assert_eq!(
                call.text_within(1, 1000 * length).map(|text| text.map(|text| text.len())),
                Ok(Some(1000 * length as usize))
            );
            assert_eq!(call.text_within(1, 1000 * length - 1), Ok(None));
            Ok(Flat::NONE)
        });
        assert_eq!(read, Ok(Flat::NONE));
    }
    // Nor is it read any further: what is wrong there is not seen.
    let mut world = world();
    world.memory().write(40, &[0xac, 0x20, 0xac, 0x20, 0, 0xd8]).unwrap();
    let args: [u64; 3] = [(TABLE | strings::UTF16).into(), 40, 3];
    let read = world.run(Effect::Safe, &args, |call| {
        assert_eq!(call.text_within(1, 4), Ok(None));
        assert_eq!(call.text_within(1, 6), trap(ComponentTrap::Utf16 { at: 4 }));
        Ok(Flat::NONE)
    });
    assert_eq!(read, Ok(Flat::NONE));
}

#[test]
fn handles_begin_at_one_and_are_used_again() {
    let mut world = world();
    let give = |world: &mut World, thing| {
        let own = world.run(Effect::Safe, &[TABLE.into()], |call| call.give(Thing(thing)).map(|own| Flat::from(own.0)));
        own.unwrap().0
    };
    assert_eq!((give(&mut world, 5), give(&mut world, 6)), (1, 2));
    let [ty, representation, lends, kind] = world.entry(2);
    assert_eq!((ty, lends, kind), (Thing::NUMBER, 0, entry::OWN));
    let taken = world.run(Effect::Safe, &[TABLE.into(), 2], |call| {
        assert_eq!(call.borrowed::<Thing>(1)?.0, 6);
        call.owned::<Thing>(1).map(|thing| Flat::from(thing.0))
    });
    assert_eq!((taken, world.entry(2)), (Ok(Flat(6)), [0, 0, 0, 0]));
    assert_eq!((give(&mut world, 7), world.entry(2)[1]), (2, representation));
    assert_eq!(give(&mut world, 8), 3);
}

#[test]
fn a_handle_that_is_none_is_a_trap_that_names_it() {
    let mut world = world();
    let args = [TABLE.into(), 1];
    let borrow = |call: &mut Call<'_>| call.borrowed::<Thing>(1).map(|thing| Flat::from(thing.0));
    let take = |call: &mut Call<'_>| call.owned::<Thing>(1).map(|thing| Flat::from(thing.0));
    assert_eq!(world.run(Effect::Safe, &args, borrow), handle_trap(1, Violation::UnknownHandle));
    assert_eq!(world.run(Effect::Safe, &[TABLE.into(), 0], borrow), handle_trap(0, Violation::UnknownHandle));
    world.run(Effect::Safe, &args, |call| call.give(Pollable(Subject::At(None))).map(|own| Flat::from(own.0))).unwrap();
    assert_eq!(world.run(Effect::Safe, &args, borrow), handle_trap(1, Violation::HandleType));
    world.run(Effect::Safe, &args, |call| call.give(Thing(3)).map(|own| Flat::from(own.0))).unwrap();
    let args = [TABLE.into(), 2];
    world.set_entry(2, entry::LENDS, 1);
    assert_eq!(world.run(Effect::Safe, &args, take), handle_trap(2, Violation::Lent));
    assert_eq!(world.run(Effect::Safe, &args, borrow), Ok(Flat(3)));
    world.set_entry(2, entry::KIND, 1);
    assert_eq!(world.run(Effect::Safe, &args, take), handle_trap(2, Violation::NotOwned));
    assert_eq!(world.run(Effect::Safe, &args, borrow), Ok(Flat(3)));
    // A representation that the component made up.
    for forged in [0, 1, 77, u32::MAX] {
        world.set_entry(2, entry::REPRESENTATION, forged);
        assert_eq!(world.run(Effect::Safe, &args, borrow), trap(ComponentTrap::Violation(Violation::UnknownHandle)), "{forged}");
    }
    world.set_table(&[(table::ENTRIES, u32::MAX - 4)]);
    assert_eq!(world.run(Effect::Safe, &args, borrow), trap(ComponentTrap::OutOfBounds));
}

#[test]
fn a_table_without_room_and_an_invocation_with_too_much_are_traps() {
    let mut world = world();
    let give = |call: &mut Call<'_>| call.give(Thing(0)).map(|_| Flat::NONE);
    for _ in 1..CAPACITY {
        world.run(Effect::Safe, &[TABLE.into()], give).unwrap();
    }
    let expected = trap(ComponentTrap::Violation(Violation::HandlesExhausted));
    assert_eq!(world.run(Effect::Safe, &[TABLE.into()], give), expected);
    let many = world.run(Effect::Safe, &[], |call| {
        loop {
            call.context.ports.resources_mut().insert(Box::new(Thing(0)), None)?;
        }
    });
    assert_eq!(many, trap(ComponentTrap::TooMany { max: RESOURCES_MAX, what: "resources of the host" }));
    assert!(world.context.kept_bytes() > RESOURCES_MAX as u64);
}

#[test]
fn a_parent_is_not_dropped_before_its_children() {
    let mut world = world();
    let resources = world.context.ports.resources_mut();
    let parent = resources.insert(Box::new(Thing(1)), None).unwrap();
    let child = resources.insert(Box::new(Pollable(Subject::Of(parent))), Some(parent)).unwrap();
    assert!(world.context.has_opened());
    assert_eq!(world.glue("drop", parent), trap(ComponentTrap::HasChildren));
    assert_eq!(world.glue("drop", child), Ok(Flat::NONE));
    assert_eq!(world.glue("drop", parent), Ok(Flat::NONE));
    assert!(!world.context.has_opened());
    assert_eq!(world.glue("drop", parent), trap(ComponentTrap::Violation(Violation::UnknownHandle)));
    // What every invocation has is dropped with the invocation.
    assert_eq!(world.glue("drop", INPUT), Ok(Flat::NONE));
    assert_eq!(world.glue("drop", INPUT), Ok(Flat::NONE));
}

#[test]
fn the_glue_ends_an_invocation_with_what_it_saw() {
    for violation in Violation::ALL {
        assert_eq!(world().glue("trap", violation as u32), trap(ComponentTrap::Violation(violation)));
    }
    assert_eq!(world().glue("trap", 99), trap(ComponentTrap::Case));
    assert_eq!(world().glue("exit", 0), Err(Stop::Exit(0)));
    assert_eq!(world().glue("exit", 1), Err(Stop::Exit(1)));
}
