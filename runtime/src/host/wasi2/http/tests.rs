//! `wasi:http` through its host functions, without a guest.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use awsm_abi::component::{REQUEST, RESPONSE, Violation};
use bytes::Bytes;
use hyper::header::HeaderMap;
use hyper::{Method, StatusCode};

use super::error::{CASES, name};
use super::{ErrorCode, IncomingRequest, ResponseOutparam};
use crate::component_trap::ComponentTrap;
use crate::host::canonical::Lower as _;
use crate::host::canonical::World;
use crate::host::{Body, Effect, Flat, LogLines, Process, ReplyBytes, RequestHead, Stop, Streams, Writer, wasi2};
use crate::outcome::Failure;
use crate::reply::{Content, Stream};
use crate::upstream::{Allowed, Upstream};

/// Where results go.
const RESULT: u64 = 4_096;
/// Where arguments are.
const ARGUMENTS: u64 = 8_192;
/// Where what results point to is placed.
const ROOM: u32 = 16_384;

/// Calls the function of that name.
fn call(world: &mut World, name: &str, args: &[u64]) -> Result<u32, Stop> {
    let mut all = wasi2::FUNCTIONS.iter().copied().flatten();
    let function = all.find(|function| function.name == name).unwrap_or_else(|| panic!("no {name}"));
    world.call(function, args, ROOM).map(|Flat(value)| value as u32)
}

/// The same of one that does not trap.
fn ask(world: &mut World, name: &str, args: &[u64]) -> u32 {
    call(world, name, args).unwrap_or_else(|stop| panic!("{name}: {stop:?}"))
}

/// The handle in a `result<own, _>` of which the error holds no more than a handle does; none for the error.
fn handle(world: &mut World) -> Option<u64> {
    (world.bytes(RESULT, 1)[0] == 0).then(|| u64::from(world.u32(RESULT + 4)))
}

/// Puts text to where arguments are; its address and length.
fn text(world: &mut World, at: u64, text: &str) -> [u64; 2] {
    world.memory().write(ARGUMENTS + at, text.as_bytes()).unwrap();
    [ARGUMENTS + at, text.len() as u64]
}

/// The list of bytes or string whose address and length stand there.
fn listed(world: &mut World, at: u64) -> Vec<u8> {
    let (address, length) = (world.u32(at), world.u32(at + 4));
    world.bytes(address.into(), length.into())
}

fn append(world: &mut World, fields: u64, name: &str, value: &str) -> Result<u8, Stop> {
    let ([name, name_bytes], [value, value_bytes]) = (text(world, 0, name), text(world, 256, value));
    call(world, "[method]fields.append", &[fields, name, name_bytes, value, value_bytes, RESULT])?;
    let result = world.bytes(RESULT, 2);
    Ok(if result[0] == 0 { u8::MAX } else { result[1] })
}

fn fields(world: &mut World, all: &[(&str, &str)]) -> u64 {
    let fields = ask(world, "[constructor]fields", &[]).into();
    for (name, value) in all {
        assert_eq!(append(world, fields, name, value), Ok(u8::MAX), "{name}");
    }
    fields
}

fn world() -> World {
    World::new(Body::default(), Process::default())
}

/// Handles of the request and of where the response goes, as glue makes them.
fn served(world: &mut World) -> (u64, u64) {
    world.context.serve_http();
    let request = world.run(Effect::Head, &[64], |call| call.give_standing::<IncomingRequest>(REQUEST).map(|own| own.0.into()));
    let response =
        world.run(Effect::Head, &[64], |call| call.give_standing::<ResponseOutparam>(RESPONSE).map(|own| own.0.into()));
    (request.unwrap().0, response.unwrap().0)
}

/// One that serves a request.
fn serving(method: Method, body: Body) -> (World, u64, u64) {
    let mut world = World::new(body, Process::default());
    let headers = HeaderMap::from_iter([
        ("host".parse().unwrap(), "a.example:81".parse().unwrap()),
        ("x-a".parse().unwrap(), "1".parse().unwrap()),
    ]);
    let target = "/path?query".parse().unwrap();
    world.context.ports.set_head(Some(Box::new(RequestHead { method, target, headers, is_secure: false })));
    let (request, response) = served(&mut world);
    (world, request, response)
}

/// Handles of them stand in the component's table before the host hears of anything.
#[test]
fn the_request_goes_once_and_not_before_what_depends_on_it() {
    let unknown = Err(Stop::Trap(ComponentTrap::Violation(Violation::UnknownHandle)));
    let (mut world, request, _) = serving(Method::GET, Body::default());
    let headers = ask(&mut world, "[method]incoming-request.headers", &[request]);
    assert_eq!(world.glue("drop", REQUEST), Err(Stop::Trap(ComponentTrap::HasChildren)));
    let headers = world.representation(headers);
    assert!(headers > RESPONSE);
    world.glue("drop", headers).unwrap();
    assert_eq!(world.glue("drop", REQUEST), Ok(Flat::NONE));
    assert_eq!(world.glue("drop", REQUEST), unknown);
    assert_eq!(call(&mut world, "[method]incoming-request.headers", &[request]).map(|_| Flat::NONE), unknown);
    // No host function was called with these.
    let (mut world, request, outparam) = serving(Method::GET, Body::default());
    for (representation, handle) in [(REQUEST, request), (RESPONSE, outparam)] {
        assert_eq!(world.glue("drop", representation), Ok(Flat::NONE));
        assert_eq!(world.glue("drop", representation), unknown);
        assert_eq!(world.representation(handle as u32), representation);
    }
    assert_eq!(call(&mut world, "[method]incoming-request.method", &[request, RESULT]).map(|_| Flat::NONE), unknown);
    // Where no request is served there is none.
    let mut world = super::tests::world();
    let request = world.run(Effect::Head, &[64], |call| call.give_standing::<IncomingRequest>(REQUEST).map(|own| own.0.into()));
    assert_eq!(call(&mut world, "[method]incoming-request.method", &[request.unwrap().0, RESULT]).map(|_| Flat::NONE), unknown);
    for representation in [REQUEST, RESPONSE] {
        assert_eq!(world.glue("drop", representation), unknown);
    }
}

/// The worker looks at no more than a limit, however often the same bytes are named.
#[test]
fn a_list_of_headers_that_names_the_same_bytes_over_and_over_is_a_trap() {
    let mut world = world();
    let (entries, name, name_bytes) = (0x8000_u64, 0x1_0000_u64, 50_000_u64);
    world.memory().write(name, &vec![b'a'; name_bytes as usize]).unwrap();
    let mut from_list = |count: u64| {
        for index in 0..count {
            let entry = [name as u32, name_bytes as u32, 0, 0].map(u32::to_le_bytes).concat();
            world.memory().write(entries + 16 * index, &entry).unwrap();
        }
        call(&mut world, "[static]fields.from-list", &[entries, count, RESULT])
    };
    assert!(from_list(1).is_ok());
    assert_eq!(from_list(2_000), Err(Stop::Trap(ComponentTrap::OutOfBounds)));
}

/// Makes a response with these headers and its body.
fn response(world: &mut World, headers: &[(&str, &str)]) -> (u64, u64) {
    let headers = fields(world, headers);
    let response = ask(world, "[constructor]outgoing-response", &[headers]).into();
    ask(world, "[method]outgoing-response.body", &[response, RESULT]);
    let body = handle(world).unwrap();
    ask(world, "[method]outgoing-response.body", &[response, RESULT]);
    assert_eq!(handle(world), None, "it is given once");
    (response, body)
}

fn stream(world: &mut World, body: u64) -> u64 {
    ask(world, "[method]outgoing-body.write", &[body, RESULT]);
    handle(world).unwrap()
}

fn set(world: &mut World, outparam: u64, response: u64) {
    ask(world, "[static]response-outparam.set", &[outparam, 0, response, 0, 0, 0, 0, 0, 0]);
}

/// Writes text; the case of the stream's error, or none.
fn write(world: &mut World, stream: u64, what: &str) -> Option<u8> {
    let [at, bytes] = text(world, 0, what);
    ask(world, "[method]output-stream.write", &[stream, at, bytes, RESULT]);
    let result = world.bytes(RESULT, 5);
    (result[0] != 0).then_some(result[4])
}

fn room(world: &mut World, stream: u64) -> u64 {
    ask(world, "[method]output-stream.check-write", &[stream, RESULT]);
    assert_eq!(world.bytes(RESULT, 1), [0]);
    world.memory().read_u64(RESULT + 8).unwrap()
}

/// Drops what a handle stands for, as the wrapper does.
fn drop_stream(world: &mut World, handle: u64) {
    let representation = world.representation(handle as u32);
    world.glue("drop", representation).unwrap();
}

/// Ends a body; whether that was well.
fn finish(world: &mut World, body: u64, trailers: Option<u64>) -> bool {
    let (is_some, trailers) = (u64::from(trailers.is_some()), trailers.unwrap_or(0));
    ask(world, "[static]outgoing-body.finish", &[body, is_some, trailers, RESULT]);
    world.bytes(RESULT, 1) == [0]
}

fn reply(mut world: World) -> (Bytes, Option<Box<crate::reply::ReplyHead>>) {
    match world.context.take_reply(|_| None) {
        (Content::Whole(bytes), head) => (bytes, head),
        (other, _) => panic!("{other:?}"),
    }
}

fn next(stream: &mut Stream) -> Option<Result<Bytes, Failure>> {
    match stream.poll_next(&Context::from_waker(Waker::noop())) {
        Poll::Ready(next) => next,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn error_codes_lie_as_the_canonical_abi_says() {
    assert_eq!((ErrorCode::SIZE, ErrorCode::ALIGN, CASES), (32, 8, 39));
    assert_eq!((ErrorCode::HttpRequestDenied.name(), name(38)), ("HTTP-request-denied", "internal-error"));
    assert_eq!((ErrorCode::HttpResponseBodySize(1).name(), name(7)), ("HTTP-response-body-size", "connection-terminated"));
    let mut world = world();
    let code = ErrorCode::HttpRequestBodySize(0x0102_0304_0506_0708);
    world.run(crate::host::Effect::Safe, &[RESULT], |call| call.lower(0, code)).unwrap();
    let mut expected = vec![0; 32];
    (expected[0], expected[8]) = (17, 1);
    expected[16..24].copy_from_slice(&[8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(world.bytes(RESULT, 32), expected);
}

#[test]
fn fields_answer_as_their_interface_says() {
    let mut world = world();
    let fields = fields(&mut world, &[("X-A", "1"), ("x-a", "2"), ("x-b", "3")]);
    for (name, value, error) in [("host", "a", 1), ("Transfer-Encoding", "a", 1), ("x y", "a", 0), ("x-c", "a\nb", 0)] {
        assert_eq!(append(&mut world, fields, name, value), Ok(error), "{name}");
    }
    let [at, bytes] = text(&mut world, 0, "x-A");
    ask(&mut world, "[method]fields.get", &[fields, at, bytes, RESULT]);
    let (list, length) = (world.u32(RESULT), world.u32(RESULT + 4));
    let values: Vec<_> = (0..length).map(|index| listed(&mut world, u64::from(list + 8 * index))).collect();
    assert_eq!(values, [b"1", b"2"]);
    assert_eq!(ask(&mut world, "[method]fields.has", &[fields, at, bytes]), 1);
    let copy = ask(&mut world, "[method]fields.clone", &[fields]).into();
    ask(&mut world, "[method]fields.delete", &[copy, at, bytes, RESULT]);
    assert_eq!(ask(&mut world, "[method]fields.has", &[copy, at, bytes]), 0);
    assert_eq!(ask(&mut world, "[method]fields.has", &[fields, at, bytes]), 1, "the copy is one");
    ask(&mut world, "[method]fields.entries", &[fields, RESULT]);
    let list = u64::from(world.u32(RESULT));
    assert_eq!(
        (world.u32(RESULT + 4), listed(&mut world, list), listed(&mut world, list + 8)),
        (3, b"x-a".to_vec(), b"1".to_vec())
    );
    let before = world.context.kept_bytes();
    self::fields(&mut world, &[("x-d", "4")]);
    assert!(world.context.kept_bytes() > before + 500, "a map is larger than what is in it");
    let long = "y".repeat(3_000);
    let many = (0..100).try_for_each(|_| append(&mut world, fields, "x-long", &long).map(|_| ()));
    assert_eq!(many, Err(Stop::Trap(super::fields::TOO_LARGE)));
    assert!(world.context.kept_bytes() > before + 100_000);
}

#[test]
fn a_request_is_what_came() {
    let (mut world, request, _) = serving(Method::PUT, Body::from(Bytes::from_static(b"body")));
    ask(&mut world, "[method]incoming-request.method", &[request, RESULT]);
    assert_eq!(world.bytes(RESULT, 1), [3]);
    ask(&mut world, "[method]incoming-request.path-with-query", &[request, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), listed(&mut world, RESULT + 4)), (vec![1], b"/path?query".to_vec()));
    ask(&mut world, "[method]incoming-request.authority", &[request, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), listed(&mut world, RESULT + 4)), (vec![1], b"a.example:81".to_vec()));
    ask(&mut world, "[method]incoming-request.scheme", &[request, RESULT]);
    assert_eq!(world.bytes(RESULT, 5), [1, 0, 0, 0, 0]);
    let headers = ask(&mut world, "[method]incoming-request.headers", &[request]).into();
    assert_eq!(append(&mut world, headers, "x-b", "2"), Ok(2), "they cannot be changed");
    ask(&mut world, "[method]fields.entries", &[headers, RESULT]);
    assert_eq!(world.u32(RESULT + 4), 1, "a component does not see the connection's");
    ask(&mut world, "[method]incoming-request.consume", &[request, RESULT]);
    let body = handle(&mut world).unwrap();
    ask(&mut world, "[method]incoming-request.consume", &[request, RESULT]);
    assert_eq!(handle(&mut world), None);
    ask(&mut world, "[method]incoming-body.stream", &[body, RESULT]);
    let stream = handle(&mut world).unwrap();
    ask(&mut world, "[method]input-stream.blocking-read", &[stream, 2, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), listed(&mut world, RESULT + 4)), (vec![0], b"bo".to_vec()));
    // The stream is to be dropped before its body.
    assert_eq!(call(&mut world, "[static]incoming-body.finish", &[body]), Err(Stop::Trap(ComponentTrap::HasChildren)));
}

#[test]
fn trailers_are_given_once_and_what_was_not_read_is_passed_over() {
    let mut body = Body::from(Bytes::from_static(b"body"));
    body.set_trailers(HeaderMap::from_iter([("x-sum".parse().unwrap(), "7".parse().unwrap())]));
    let (mut world, request, _) = serving(Method::POST, body);
    ask(&mut world, "[method]incoming-request.consume", &[request, RESULT]);
    let body = handle(&mut world).unwrap();
    let future = u64::from(ask(&mut world, "[static]incoming-body.finish", &[body]));
    let pollable = u64::from(ask(&mut world, "[method]future-trailers.subscribe", &[future]));
    assert_eq!(ask(&mut world, "[method]pollable.ready", &[pollable]), 1);
    ask(&mut world, "[method]future-trailers.get", &[future, RESULT]);
    // some(ok(ok(some(handle)))), each with a payload that may have eight bytes' alignment.
    assert_eq!((world.bytes(RESULT, 1), world.bytes(RESULT + 8, 1), world.bytes(RESULT + 16, 1)), (vec![1], vec![0], vec![0]));
    assert_eq!(world.bytes(RESULT + 24, 1), [1]);
    let trailers = u64::from(world.u32(RESULT + 28));
    assert_eq!(append(&mut world, trailers, "x-more", "8"), Ok(u8::MAX), "they are the component's");
    ask(&mut world, "[method]future-trailers.get", &[future, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), world.bytes(RESULT + 8, 1)), (vec![1], vec![1]));
}

#[test]
fn what_is_finished_before_it_is_set_is_a_whole_reply() {
    let (mut world, _, outparam) = serving(Method::GET, Body::default());
    assert_eq!(world.context.shortfall(), Some(Failure::ReplyMissing));
    let (response, body) = response(&mut world, &[("x-kind", "whole"), ("content-length", "5")]);
    assert_eq!(ask(&mut world, "[method]outgoing-response.set-status-code", &[response, 99]), 1);
    assert_eq!(ask(&mut world, "[method]outgoing-response.set-status-code", &[response, 201]), 0);
    assert_eq!(ask(&mut world, "[method]outgoing-response.status-code", &[response]), 201);
    let stream = stream(&mut world, body);
    assert_eq!(room(&mut world, stream), 1 << 20);
    assert_eq!(write(&mut world, stream, "whole"), None);
    assert!(world.context.kept_bytes() >= 5);
    drop_stream(&mut world, stream);
    assert!(finish(&mut world, body, None));
    set(&mut world, outparam, response);
    assert_eq!((world.context.has_stream(), world.context.shortfall()), (false, None));
    let (bytes, head) = reply(world);
    let head = head.unwrap();
    assert_eq!((&bytes[..], head.status), (&b"whole"[..], StatusCode::CREATED));
    let headers = head.headers.into_map();
    assert_eq!((headers.len(), headers["x-kind"].as_bytes()), (1, &b"whole"[..]), "the length is the reply's");
}

#[test]
fn what_is_written_after_it_is_set_goes_out_at_once_and_waits_for_room() {
    let (mut world, _, outparam) = serving(Method::GET, Body::default());
    let (response, body) = response(&mut world, &[("trailer", "x-sum")]);
    let output = stream(&mut world, body);
    assert_eq!(write(&mut world, output, "before "), None);
    set(&mut world, outparam, response);
    let (_, mut client, head) = world.context.take_stream().unwrap();
    assert_eq!(head.unwrap().headers.into_map()["trailer"], "x-sum");
    assert_eq!(write(&mut world, output, "after"), None);
    assert_eq!(next(&mut client), Some(Ok(Bytes::from_static(b"before after"))));
    let free = room(&mut world, output);
    assert!(free > 0 && free <= 64 << 10, "{free}");
    ask(&mut world, "[method]output-stream.write-zeroes", &[output, free, RESULT]);
    assert_eq!(room(&mut world, output), 0);
    let [at, bytes] = text(&mut world, 0, "x");
    let beyond = call(&mut world, "[method]output-stream.write", &[output, at, bytes, RESULT]);
    assert_eq!(beyond, Err(Stop::Trap(ComponentTrap::BeyondPermit)));
    let pollable = u64::from(ask(&mut world, "[method]output-stream.subscribe", &[output]));
    assert_eq!(ask(&mut world, "[method]pollable.ready", &[pollable]), 0);
    // The client reads on while the component waits.
    let reader = thread::spawn(move || {
        let zeros = next(&mut client).unwrap().unwrap().len();
        (client, zeros)
    });
    ask(&mut world, "[method]pollable.block", &[pollable]);
    let (mut client, zeros) = reader.join().unwrap();
    assert_eq!(zeros as u64, free);
    drop_stream(&mut world, pollable);
    drop_stream(&mut world, output);
    let trailers = fields(&mut world, &[("x-sum", "7"), ("content-type", "no")]);
    assert!(finish(&mut world, body, Some(trailers)));
    // It is over for the client, whatever the component does besides.
    assert_eq!(next(&mut client), None);
    let trailers = client.take_trailers().unwrap().into_map();
    assert_eq!((trailers.len(), trailers["x-sum"].as_bytes()), (1, &b"7"[..]));
    assert!(client.is_complete());
    assert_eq!(world.context.shortfall(), None);
}

#[test]
fn what_was_written_before_it_is_set_is_no_larger_than_a_reply_may_be() {
    for is_finished in [false, true] {
        let process = Arc::new(Process::default());
        let log = LogLines::new(Arc::clone(&process), Arc::default(), Writer::default());
        let mut world = World::with_streams(Streams::of_request(Body::default(), ReplyBytes::default(), 4, log), process);
        let (_, outparam) = served(&mut world);
        let (response, body) = response(&mut world, &[]);
        let output = stream(&mut world, body);
        assert_eq!(write(&mut world, output, "12345"), None);
        if is_finished {
            drop_stream(&mut world, output);
            assert!(finish(&mut world, body, None));
        }
        let set = call(&mut world, "[static]response-outparam.set", &[outparam, 0, response, 0, 0, 0, 0, 0, 0]);
        assert_eq!(set, Err(Stop::ReplyTooLarge));
    }
}

#[test]
fn a_length_that_was_said_is_kept() {
    let (mut world, _, outparam) = serving(Method::GET, Body::default());
    let (short, body) = response(&mut world, &[("content-length", "10")]);
    let output = stream(&mut world, body);
    set(&mut world, outparam, short);
    assert_eq!(write(&mut world, output, "short"), None);
    // Of what is too long nothing is written.
    assert_eq!(write(&mut world, output, "too long"), Some(0));
    let error = u64::from(world.u32(RESULT + 8));
    ask(&mut world, "http-error-code", &[error, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), world.bytes(RESULT + 8, 1), world.u32(RESULT + 24)), (vec![1], vec![28], 13));
    // Nor is anything behind it, though there would be room; what was refused first is what is told.
    assert_eq!(write(&mut world, output, "more"), Some(0));
    drop_stream(&mut world, output);
    assert!(!finish(&mut world, body, None));
    assert_eq!((world.bytes(RESULT + 8, 1), world.u32(RESULT + 24)), (vec![28], 13), "what was to be written");
    assert_eq!(world.context.shortfall(), Some(Failure::ReplyIncomplete));
    let (_, body) = response(&mut world, &[("content-length", "10")]);
    let output = stream(&mut world, body);
    assert_eq!(write(&mut world, output, "short"), None);
    drop_stream(&mut world, output);
    assert!(!finish(&mut world, body, None));
    assert_eq!((world.bytes(RESULT + 8, 1), world.u32(RESULT + 24)), (vec![28], 5));
    // What is no length has no body.
    let headers = fields(&mut world, &[("content-length", "+1")]);
    let wrong = ask(&mut world, "[constructor]outgoing-response", &[headers]).into();
    ask(&mut world, "[method]outgoing-response.body", &[wrong, RESULT]);
    assert_eq!(handle(&mut world), None);
}

#[test]
fn a_body_that_is_dropped_unfinished_is_broken() {
    let (mut world, _, outparam) = serving(Method::GET, Body::default());
    let (dropped, body) = response(&mut world, &[]);
    set(&mut world, outparam, dropped);
    let (_, mut client, _) = world.context.take_stream().unwrap();
    drop_stream(&mut world, body);
    assert_eq!(next(&mut client), Some(Err(Failure::ReplyUnfinished)));
    assert_eq!(world.context.shortfall(), Some(Failure::ReplyUnfinished));
}

#[test]
fn an_answer_to_head_has_the_length_and_nothing_else() {
    let (mut world, _, outparam) = serving(Method::HEAD, Body::default());
    let headers = fields(&mut world, &[("content-length", "100")]);
    let head = ask(&mut world, "[constructor]outgoing-response", &[headers]).into();
    set(&mut world, outparam, head);
    let (_, client, _) = world.context.take_stream().unwrap();
    assert_eq!((client.length(), client.is_complete()), (Some(100), true));
    assert_eq!(world.context.shortfall(), None);
}

#[test]
fn a_response_that_never_has_a_body_has_no_length() {
    for is_finished in [false, true] {
        let (mut world, _, outparam) = serving(Method::GET, Body::default());
        let (empty, body) = response(&mut world, &[("content-length", "5")]);
        assert_eq!(ask(&mut world, "[method]outgoing-response.set-status-code", &[empty, 204]), 0);
        let output = stream(&mut world, body);
        assert_eq!(write(&mut world, output, "12345"), None);
        if is_finished {
            drop_stream(&mut world, output);
            assert!(finish(&mut world, body, None));
        }
        set(&mut world, outparam, empty);
        let (_, client, _) = world.context.take_stream().unwrap();
        assert_eq!((client.length(), client.is_complete()), (None, true));
        assert_eq!(world.context.shortfall(), None);
    }
}

#[test]
fn an_error_in_place_of_a_response_is_a_status() {
    for (case, status) in [(38, 500), (15, 500), (6, 502), (33, 502)] {
        let (mut world, _, outparam) = serving(Method::GET, Body::default());
        let [at, bytes] = text(&mut world, 0, "why");
        ask(&mut world, "[static]response-outparam.set", &[outparam, 1, case, 1, at, bytes, 0, 0, 0]);
        assert_eq!(world.context.shortfall(), None);
        assert_eq!(reply(world).1.unwrap().status, status, "{case}");
    }
    let (mut world, _, outparam) = serving(Method::GET, Body::default());
    let wrong = call(&mut world, "[static]response-outparam.set", &[outparam, 1, 39, 0, 0, 0, 0, 0, 0]);
    assert_eq!(wrong, Err(Stop::Trap(ComponentTrap::Case)));
}

#[test]
fn nothing_is_sent_ahead_of_a_response_which_is_said() {
    let (mut world, _, outparam) = serving(Method::GET, Body::default());
    for (status, case) in [(103, 38), (200, 35), (99, 35)] {
        let headers = fields(&mut world, &[("link", "</a>")]);
        ask(&mut world, "[method]response-outparam.send-informational", &[outparam, status, headers, RESULT]);
        assert_eq!((world.bytes(RESULT, 1), world.bytes(RESULT + 8, 1)), (vec![1], vec![case]), "{status}");
    }
    let (message, _) = response(&mut world, &[]);
    set(&mut world, outparam, message);
}

/// Makes a request to that authority.
fn outgoing(world: &mut World, authority: &str) -> u64 {
    let headers = fields(world, &[("x-a", "1")]);
    let request = ask(world, "[constructor]outgoing-request", &[headers]).into();
    let [at, bytes] = text(world, 0, authority);
    assert_eq!(ask(world, "[method]outgoing-request.set-authority", &[request, 1, at, bytes]), 0);
    assert_eq!(ask(world, "[method]outgoing-request.set-scheme", &[request, 1, 0, 0, 0]), 0);
    request
}

/// Handles a request; its future, or the case of the error.
fn handled(world: &mut World, request: u64) -> Result<u64, u8> {
    ask(world, "handle", &[request, 0, 0, RESULT]);
    match world.bytes(RESULT, 9)[..] {
        [0, ..] => Ok(u64::from(world.u32(RESULT + 8))),
        [.., case] => Err(case),
        [] => unreachable!(),
    }
}

#[test]
fn only_listed_hosts_are_asked_and_what_is_no_request_is_refused() {
    let mut world = world();
    let request = outgoing(&mut world, "a.example");
    assert_eq!(handled(&mut world, request), Err(15));
    for authority in ["user@a.example", ":80"] {
        let request = outgoing(&mut world, authority);
        assert_eq!(handled(&mut world, request), Err(19), "{authority}");
    }
    let request = outgoing(&mut world, "a.example");
    assert_eq!(ask(&mut world, "[method]outgoing-request.set-authority", &[request, 0, 0, 0]), 0);
    assert_eq!(handled(&mut world, request), Err(19));
    for (name, wrong) in [
        ("authority", "a b"),
        ("authority", "a.example:99999"),
        ("authority", "a.example:"),
        ("path-with-query", "/a b"),
        ("path-with-query", "a"),
    ] {
        let request = outgoing(&mut world, "a.example");
        let [at, bytes] = text(&mut world, 0, wrong);
        let setter = format!("[method]outgoing-request.set-{name}");
        assert_eq!(ask(&mut world, &setter, &[request, 1, at, bytes]), 1, "{wrong}");
    }
    let request = outgoing(&mut world, "a.example");
    assert_eq!(ask(&mut world, "[method]outgoing-request.set-method", &[request, 5, 0, 0]), 0);
    assert_eq!(handled(&mut world, request), Err(35), "no tunnels");
    let [at, bytes] = text(&mut world, 0, "gopher");
    let request = outgoing(&mut world, "a.example");
    assert_eq!(ask(&mut world, "[method]outgoing-request.set-scheme", &[request, 1, 2, at, bytes]), 0);
    assert_eq!(handled(&mut world, request), Err(35));
}

#[test]
fn what_a_request_says_counts() {
    let mut world = world();
    let request = outgoing(&mut world, "a.example");
    let before = world.context.kept_bytes();
    let [at, bytes] = text(&mut world, 0, &format!("/{}", "a".repeat(3_999)));
    assert_eq!(ask(&mut world, "[method]outgoing-request.set-path-with-query", &[request, 1, at, bytes]), 0);
    assert_eq!(world.context.kept_bytes(), before + 4_000);
    assert_eq!(ask(&mut world, "[method]outgoing-request.set-path-with-query", &[request, 0, 0, 0]), 0);
    assert_eq!(world.context.kept_bytes(), before);
}

#[test]
fn what_is_written_of_a_refused_request_goes_nowhere() {
    let mut world = world();
    let request = outgoing(&mut world, "a.example");
    ask(&mut world, "[method]outgoing-request.body", &[request, RESULT]);
    let body = handle(&mut world).unwrap();
    let output = stream(&mut world, body);
    let before = world.context.kept_bytes();
    ask(&mut world, "[method]output-stream.write-zeroes", &[output, 1 << 19, RESULT]);
    assert!(world.context.kept_bytes() >= before + (1 << 19));
    assert_eq!(handled(&mut world, request), Err(15));
    assert!(world.context.kept_bytes() <= before);
    assert_eq!(write(&mut world, output, "more"), Some(1), "closed");
}

/// Lets tasks of a worker go on while its guests wait.
fn tasks() -> tokio::runtime::Handle {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tasks = runtime.handle().clone();
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    tasks
}

/// One that may ask the server at that address.
fn asking(address: &str) -> World {
    let allowed = Arc::new(Allowed::new(&[address.to_owned()]).unwrap());
    let process = Process { upstream: Some(Arc::new(Upstream::new(allowed, Arc::default()))), ..Process::default() };
    World::new(Body::default(), process)
}

/// Waits for the response of a request.
fn answered(world: &mut World, future: u64) -> u64 {
    let pollable = u64::from(ask(world, "[method]future-incoming-response.subscribe", &[future]));
    ask(world, "[method]pollable.block", &[pollable]);
    ask(world, "[method]future-incoming-response.get", &[future, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), world.bytes(RESULT + 8, 1), world.bytes(RESULT + 16, 1)), (vec![1], vec![0], vec![0]));
    u64::from(world.u32(RESULT + 24))
}

/// The stream of a response's body.
fn consumed(world: &mut World, response: u64) -> u64 {
    ask(world, "[method]incoming-response.consume", &[response, RESULT]);
    let body = handle(world).unwrap();
    ask(world, "[method]incoming-body.stream", &[body, RESULT]);
    handle(world).unwrap()
}

/// A server that answers one request when what it sends ends so; its address, and what came.
fn server(ends: &'static [&'static [u8]], answer: &'static [u8]) -> (String, thread::JoinHandle<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut came = Vec::new();
        while !ends.iter().any(|end| came.ends_with(end)) {
            let mut piece = [0; 4_096];
            let count = stream.read(&mut piece).unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&came));
            came.extend_from_slice(&piece[..count]);
        }
        stream.write_all(answer).unwrap();
        String::from_utf8(came).unwrap()
    });
    (address, server)
}

#[test]
fn a_request_without_a_body_says_so_where_one_is_usual() {
    let tasks = tasks();
    let _guard = tasks.enter();
    for (method, says) in [(0, false), (2, true), (3, true), (4, false), (8, true)] {
        let (address, server) = server(&[b"\r\n\r\n"], b"HTTP/1.1 204 Well\r\nconnection: close\r\n\r\n");
        let mut world = asking(&address);
        let request = outgoing(&mut world, &address);
        assert_eq!(ask(&mut world, "[method]outgoing-request.set-method", &[request, method, 0, 0]), 0);
        let future = handled(&mut world, request).unwrap();
        answered(&mut world, future);
        let came = server.join().unwrap();
        assert_eq!(came.contains("content-length: 0\r\n"), says, "{came}");
    }
}

#[test]
fn a_body_that_breaks_says_why_once() {
    let tasks = tasks();
    let _guard = tasks.enter();
    let (address, server) = server(&[b"\r\n\r\n"], b"HTTP/1.1 200 Well\r\ncontent-length: 10\r\n\r\nshort");
    let mut world = asking(&address);
    let request = outgoing(&mut world, &address);
    let future = handled(&mut world, request).unwrap();
    let response = answered(&mut world, future);
    let input = consumed(&mut world, response);
    ask(&mut world, "[method]input-stream.blocking-read", &[input, 100, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), listed(&mut world, RESULT + 4)), (vec![0], b"short".to_vec()));
    ask(&mut world, "[method]input-stream.blocking-read", &[input, 100, RESULT]);
    assert_eq!(world.bytes(RESULT, 5), [1, 0, 0, 0, 0], "last-operation-failed");
    let error = u64::from(world.u32(RESULT + 8));
    ask(&mut world, "http-error-code", &[error, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), world.bytes(RESULT + 8, 1)), (vec![1], vec![7]), "connection-terminated");
    ask(&mut world, "[method]input-stream.blocking-read", &[input, 100, RESULT]);
    assert_eq!(world.bytes(RESULT, 5), [1, 0, 0, 0, 1], "closed");
    server.join().unwrap();
}

#[test]
fn a_request_goes_out_with_its_body_and_the_response_comes_back() {
    let tasks = tasks();
    let _guard = tasks.enter();
    // In chunks, unless all of it was written before the connection was made.
    let (address, server) =
        server(&[b"0\r\n\r\n", b"before after"], b"HTTP/1.1 203 Well\r\nconnection: close\r\nx-b: 2\r\n\r\nanswer");
    let mut world = asking(&address);
    let request = outgoing(&mut world, &address);
    assert_eq!(ask(&mut world, "[method]outgoing-request.set-method", &[request, 2, 0, 0]), 0);
    ask(&mut world, "[method]outgoing-request.body", &[request, RESULT]);
    let body = handle(&mut world).unwrap();
    let output = stream(&mut world, body);
    assert_eq!(write(&mut world, output, "before "), None);
    let future = handled(&mut world, request).unwrap();
    ask(&mut world, "[method]future-incoming-response.get", &[future, RESULT]);
    assert_eq!(world.bytes(RESULT, 1), [0], "there is none yet");
    assert_eq!(write(&mut world, output, "after"), None);
    drop_stream(&mut world, output);
    assert!(finish(&mut world, body, None));
    let response = answered(&mut world, future);
    assert_eq!(ask(&mut world, "[method]incoming-response.status", &[response]), 203);
    let headers = u64::from(ask(&mut world, "[method]incoming-response.headers", &[response]));
    ask(&mut world, "[method]fields.entries", &[headers, RESULT]);
    assert_eq!(world.u32(RESULT + 4), 1);
    let input = consumed(&mut world, response);
    ask(&mut world, "[method]input-stream.blocking-read", &[input, 100, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), listed(&mut world, RESULT + 4)), (vec![0], b"answer".to_vec()));
    ask(&mut world, "[method]input-stream.blocking-read", &[input, 100, RESULT]);
    assert_eq!(world.bytes(RESULT, 5), [1, 0, 0, 0, 1], "closed");
    let came = server.join().unwrap();
    assert!(came.starts_with("POST / HTTP/1.1\r\n") && came.contains("x-a: 1\r\n"), "{came}");
    assert!(came.contains(&format!("host: {address}\r\n")) && came.contains("before "), "{came}");
}

#[test]
fn what_is_kept_of_a_body_counts_until_its_message_goes() {
    let (mut world, _, _) = serving(Method::GET, Body::default());
    let (response, body) = response(&mut world, &[]);
    let output = stream(&mut world, body);
    let before = world.context.kept_bytes();
    ask(&mut world, "[method]output-stream.write-zeroes", &[output, 1 << 19, RESULT]);
    assert!(world.context.kept_bytes() >= before + (1 << 19));
    drop_stream(&mut world, response);
    assert!(world.context.kept_bytes() <= before);
    // Nothing reads it.
    assert_eq!(write(&mut world, output, "more"), Some(1));
    ask(&mut world, "[method]output-stream.check-write", &[output, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), world.bytes(RESULT + 8, 1)), (vec![1], vec![1]), "closed");
    ask(&mut world, "[method]output-stream.flush", &[output, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), world.bytes(RESULT + 4, 1)), (vec![1], vec![1]), "closed");
}
