//! `wasi:http` of WASI 0.3 through its host functions, without a guest.

use std::sync::Arc;

use awsm_abi::component::Violation;
use hyper::header::HeaderMap;

use super::fields::{HeaderError, Wasi3};
use super::options::HttpOptions;
use crate::component_trap::ComponentTrap;
use crate::host::canonical::{Lower as _, World};
use crate::host::wasi2::http::RequestOptions;
use crate::host::wasi2::http::fields::Fields;
use crate::host::{Body, Flat, HostFunction, Process, Stop, wasi2, wasi3};

/// Where results go.
const RESULT: u64 = 4_096;
/// Where arguments are.
const ARGUMENTS: u64 = 8_192;
/// Where what results point to is placed.
const ROOM: u32 = 16_384;
/// Where lists are that are arguments.
const LIST: u64 = 1 << 16;
/// Cases of `header-error`.
const INVALID_SYNTAX: Result<(), u8> = Err(0);
const FORBIDDEN: Result<(), u8> = Err(1);
const IMMUTABLE: Result<(), u8> = Err(2);
const SIZE_EXCEEDED: Result<(), u8> = Err(3);

/// The function of that name, of those.
fn named(all: &[&'static [HostFunction]], name: &str) -> &'static HostFunction {
    let function = all.iter().copied().flatten().find(|function| function.name == name);
    function.unwrap_or_else(|| panic!("no {name}"))
}

/// Calls the function of that name.
fn call(world: &mut World, name: &str, args: &[u64]) -> Result<u32, Stop> {
    world.call(named(wasi3::FUNCTIONS, name), args, ROOM).map(|Flat(value)| value as u32)
}

/// The same of one that does not trap.
fn ask(world: &mut World, name: &str, args: &[u64]) -> u32 {
    call(world, name, args).unwrap_or_else(|stop| panic!("{name}: {stop:?}"))
}

/// The same of one with a result whose error is a variant; the error's case.
fn attempt(world: &mut World, name: &str, args: &[u64]) -> Result<(), u8> {
    let args: Vec<u64> = args.iter().copied().chain([RESULT]).collect();
    ask(world, name, &args);
    let result = world.bytes(RESULT, 5);
    if result[0] == 0 { Ok(()) } else { Err(result[4]) }
}

/// Puts text to where arguments are; its address and length.
fn text(world: &mut World, at: u64, text: &str) -> [u64; 2] {
    world.memory().write(ARGUMENTS + at, text.as_bytes()).unwrap();
    [ARGUMENTS + at, text.len() as u64]
}

/// Puts a list to where lists are, of that element over and over; its address and length.
fn list(world: &mut World, element: &[u64], count: u64) -> [u64; 2] {
    let bytes: Vec<u8> = element.iter().flat_map(|field| (*field as u32).to_le_bytes()).collect();
    world.memory().write(LIST, &bytes.repeat(count as usize)).unwrap();
    [LIST, count]
}

fn append(world: &mut World, fields: u64, name: &str, value: &str) -> Result<(), u8> {
    let ([name, name_bytes], [value, value_bytes]) = (text(world, 0, name), text(world, 256, value));
    attempt(world, "[method]fields.append", &[fields, name, name_bytes, value, value_bytes])
}

fn fields(world: &mut World, all: &[(&str, &str)]) -> u64 {
    let fields = ask(world, "[constructor]fields", &[]).into();
    for (name, value) in all {
        assert_eq!(append(world, fields, name, value), Ok(()), "{name}");
    }
    fields
}

/// Sets a name to that value so many times.
fn set(world: &mut World, fields: u64, name: &str, value: &str, count: u64) -> Result<(), u8> {
    let value = text(world, 256, value);
    let ([name, bytes], [values, count]) = (text(world, 0, name), list(world, &value, count));
    attempt(world, "[method]fields.set", &[fields, name, bytes, values, count])
}

/// Calls a function that takes a name.
fn of_name(world: &mut World, function: &str, fields: u64, name: &str) -> Result<(), u8> {
    let [at, bytes] = text(world, 0, name);
    attempt(world, function, &[fields, at, bytes])
}

/// The texts of a list of lists of bytes whose address and length stand there.
fn texts(world: &mut World, at: u64) -> Vec<String> {
    let (list, length) = (u64::from(world.u32(at)), u64::from(world.u32(at + 4)));
    (0..length).map(|index| String::from_utf8(world.list(list + 8 * index)).unwrap()).collect()
}

/// A name's values.
fn values(world: &mut World, fields: u64, name: &str) -> Vec<String> {
    let [at, bytes] = text(world, 0, name);
    ask(world, "[method]fields.get", &[fields, at, bytes, RESULT]);
    texts(world, RESULT)
}

/// Names and values, in their order.
fn all(world: &mut World, fields: u64) -> Vec<[String; 2]> {
    ask(world, "[method]fields.copy-all", &[fields, RESULT]);
    let (list, length) = (u64::from(world.u32(RESULT)), u64::from(world.u32(RESULT + 4)));
    let mut listed = |at| String::from_utf8(world.list(at)).unwrap();
    (0..length).map(|index| list + 16 * index).map(|at| [listed(at), listed(at + 8)]).collect()
}

fn world() -> World {
    World::new(Body::default(), Process::default())
}

#[test]
fn errors_lie_as_the_canonical_abi_says() {
    assert_eq!((HeaderError::SIZE, HeaderError::ALIGN), (16, 4));
    assert_eq!(<Result<(), HeaderError>>::SIZE, 20);
    let mut world = world();
    world.memory().write(RESULT, &[7; 20]).unwrap();
    let result = Err::<(), _>(HeaderError::SizeExceeded);
    world.run(crate::host::Effect::Safe, &[RESULT], |call| call.lower(0, result)).unwrap();
    let mut expected = vec![0; 20];
    (expected[0], expected[4]) = (1, 3);
    assert_eq!(world.bytes(RESULT, 20), expected);
}

#[test]
fn what_is_got_and_deleted_is_gone() {
    let mut world = world();
    let fields = fields(&mut world, &[("X-A", "1"), ("x-b", "3"), ("x-a", "2")]);
    let copy = ask(&mut world, "[method]fields.clone", &[fields]).into();
    assert_eq!(of_name(&mut world, "[method]fields.get-and-delete", fields, "x-A"), Ok(()));
    assert_eq!(texts(&mut world, RESULT + 4), ["1", "2"]);
    assert_eq!(all(&mut world, fields), [["x-b", "3"]]);
    assert_eq!(of_name(&mut world, "[method]fields.get-and-delete", fields, "x-a"), Ok(()));
    assert_eq!(texts(&mut world, RESULT + 4), [""; 0], "there is nothing left");
    for function in ["[method]fields.get-and-delete", "[method]fields.delete"] {
        for (name, error) in [("x y", INVALID_SYNTAX), ("", INVALID_SYNTAX), ("Host", FORBIDDEN)] {
            assert_eq!(of_name(&mut world, function, fields, name), error, "{function} {name}");
        }
    }
    assert_eq!(all(&mut world, copy), [["x-a", "1"], ["x-a", "2"], ["x-b", "3"]], "the copy is one");
}

#[test]
fn too_many_fields_are_an_error_and_leave_them_as_they_were() {
    let mut world = world();
    let fields = fields(&mut world, &[("x-a", "1")]);
    assert_eq!(set(&mut world, fields, "x-many", "v", 1_024), SIZE_EXCEEDED);
    assert_eq!(all(&mut world, fields), [["x-a", "1"]]);
    assert_eq!(set(&mut world, fields, "x-many", "v", 1_023), Ok(()));
    let before = world.context.kept_bytes();
    assert_eq!(append(&mut world, fields, "x-many", "w"), SIZE_EXCEEDED);
    assert_eq!(append(&mut world, fields, "x-b", "2"), SIZE_EXCEEDED);
    assert_eq!(set(&mut world, fields, "x-b", "2", 1), SIZE_EXCEEDED);
    assert_eq!(world.context.kept_bytes(), before);
    assert_eq!(values(&mut world, fields, "x-many"), ["v"; 1_023]);
    assert_eq!(values(&mut world, fields, "x-b"), [""; 0]);
    // What is replaced makes room.
    assert_eq!(set(&mut world, fields, "x-many", "w", 1_023), Ok(()));
    assert_eq!(values(&mut world, fields, "x-many"), ["w"; 1_023]);
    let ([name, name_bytes], [value, value_bytes]) = (text(&mut world, 0, "x-a"), text(&mut world, 256, "1"));
    for (count, result) in [(1_024, Ok(())), (1_025, SIZE_EXCEEDED)] {
        let [at, length] = list(&mut world, &[name, name_bytes, value, value_bytes], count);
        assert_eq!(attempt(&mut world, "[static]fields.from-list", &[at, length]), result, "{count}");
    }
}

#[test]
fn too_large_fields_are_an_error_and_leave_them_as_they_were() {
    let mut world = world();
    let long = "y".repeat(30_000);
    let fields = fields(&mut world, &[("x-a", "1"), ("x-long", &long), ("x-long", &long)]);
    assert_eq!(set(&mut world, fields, "x-a", &long, 3), SIZE_EXCEEDED);
    assert_eq!(values(&mut world, fields, "x-a"), ["1"]);
    assert_eq!(set(&mut world, fields, "x-a", &long, 2), Ok(()));
    assert_eq!(append(&mut world, fields, "x-b", &long), SIZE_EXCEEDED);
    assert_eq!(set(&mut world, fields, "x-long", "2", 1), Ok(()), "what is replaced makes room");
    assert_eq!(append(&mut world, fields, "x-b", &long), Ok(()));
    let ([name, name_bytes], [value, value_bytes]) = (text(&mut world, 0, "x-a"), text(&mut world, 256, &long));
    let [at, length] = list(&mut world, &[name, name_bytes, value, value_bytes], 5);
    assert_eq!(attempt(&mut world, "[static]fields.from-list", &[at, length]), SIZE_EXCEEDED);
}

#[test]
fn names_that_are_too_long_are_an_error() {
    let mut world = world();
    let fields = fields(&mut world, &[("x-a", "1")]);
    // They are of zeros, which no name has.
    for (bytes, error) in [(65_535, INVALID_SYNTAX), (65_536, SIZE_EXCEEDED)] {
        assert_eq!(attempt(&mut world, "[method]fields.append", &[fields, LIST, bytes, ARGUMENTS, 1]), error);
        assert_eq!(attempt(&mut world, "[method]fields.set", &[fields, LIST, bytes, ARGUMENTS, 0]), error);
        assert_eq!(attempt(&mut world, "[method]fields.get-and-delete", &[fields, LIST, bytes]), error);
        assert_eq!(ask(&mut world, "[method]fields.has", &[fields, LIST, bytes]), 0);
        ask(&mut world, "[method]fields.get", &[fields, LIST, bytes, RESULT]);
        assert_eq!(world.u32(RESULT + 4), 0);
    }
    let entry = [LIST, 65_536, ARGUMENTS, 1].map(|field| (field as u32).to_le_bytes()).concat();
    world.memory().write(ROOM.into(), &entry).unwrap();
    assert_eq!(attempt(&mut world, "[static]fields.from-list", &[ROOM.into(), 1]), SIZE_EXCEEDED);
    assert_eq!(all(&mut world, fields), [["x-a", "1"]]);
}

#[test]
fn fields_of_a_message_cannot_be_changed() {
    let mut world = world();
    let map = HeaderMap::from_iter([("x-a".parse().unwrap(), "1".parse().unwrap())]);
    let fields = world.give(Fields::<Wasi3>::of_message(Arc::new(map))).into();
    assert_eq!(append(&mut world, fields, "x-b", "2"), IMMUTABLE);
    assert_eq!(set(&mut world, fields, "x-a", "2", 1), IMMUTABLE);
    assert_eq!(of_name(&mut world, "[method]fields.delete", fields, "x-a"), IMMUTABLE);
    assert_eq!(of_name(&mut world, "[method]fields.get-and-delete", fields, "x-a"), IMMUTABLE);
    assert_eq!(all(&mut world, fields), [["x-a", "1"]]);
    let copy = ask(&mut world, "[method]fields.clone", &[fields]).into();
    assert_eq!(append(&mut world, copy, "x-b", "2"), Ok(()), "it is the component's");
    assert_eq!((all(&mut world, copy).len(), all(&mut world, fields).len()), (2, 1));
}

#[test]
fn fields_of_one_version_are_none_of_the_other() {
    let mut world = world();
    let function = named(wasi2::FUNCTIONS, "[constructor]fields");
    let Flat(old) = world.call(function, &[], ROOM).unwrap();
    let wrong = |handle| Err(Stop::Trap(ComponentTrap::Handle { handle, violation: Violation::HandleType }));
    assert_eq!(call(&mut world, "[method]fields.clone", &[old]), wrong(old as u32));
    let new = ask(&mut world, "[constructor]fields", &[]);
    let function = named(wasi2::FUNCTIONS, "[method]fields.clone");
    assert_eq!(world.call(function, &[new.into()], ROOM).map(|Flat(value)| value as u32), wrong(new));
}

/// What options say of a time.
fn time(world: &mut World, options: u64, name: &str) -> Option<u64> {
    ask(world, &format!("[method]request-options.get-{name}-timeout"), &[options, RESULT]);
    (world.bytes(RESULT, 1) == [1]).then(|| world.memory().read_u64(RESULT + 8).unwrap())
}

fn set_time(world: &mut World, options: u64, name: &str, time: Option<u64>) -> Result<(), u8> {
    let (is_some, time) = (u64::from(time.is_some()), time.unwrap_or(0));
    attempt(world, &format!("[method]request-options.set-{name}-timeout"), &[options, is_some, time])
}

#[test]
fn options_keep_their_times_unless_they_are_of_a_request() {
    let names = ["connect", "first-byte", "between-bytes"];
    let mut world = world();
    let options = ask(&mut world, "[constructor]request-options", &[]).into();
    for (name, at) in names.into_iter().zip(1..) {
        assert_eq!(time(&mut world, options, name), None);
        assert_eq!(set_time(&mut world, options, name, Some(at << 40)), Ok(()));
    }
    let times = names.map(|name| time(&mut world, options, name));
    assert_eq!(times, [Some(1 << 40), Some(2 << 40), Some(3 << 40)]);
    let copy = ask(&mut world, "[method]request-options.clone", &[options]).into();
    assert_eq!(set_time(&mut world, copy, "connect", None), Ok(()));
    assert_eq!((time(&mut world, copy, "connect"), time(&mut world, copy, "first-byte")), (None, Some(2 << 40)));
    assert_eq!(time(&mut world, options, "connect"), Some(1 << 40), "the copy is one");

    let times = RequestOptions { connect: Some(5), ..RequestOptions::default() };
    let options = world.give(HttpOptions { times, is_immutable: true }).into();
    for name in names {
        assert_eq!(set_time(&mut world, options, name, None), Err(1), "immutable");
    }
    assert_eq!(time(&mut world, options, "connect"), Some(5));
    let copy = ask(&mut world, "[method]request-options.clone", &[options]).into();
    assert_eq!(set_time(&mut world, copy, "connect", Some(6)), Ok(()));
    assert_eq!((time(&mut world, copy, "connect"), time(&mut world, options, "connect")), (Some(6), Some(5)));
}
