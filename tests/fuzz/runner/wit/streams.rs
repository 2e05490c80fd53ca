//! Components that pass values in a stream: a command `a` writes them, `b` reads and compares them. Either may come first, and takes them in pieces.

use super::generate::{Generator, handles};
use super::pair::options;
use super::parts::{
    REALLOC, RESOURCE, RESOURCE_EXPORTS, RESOURCE_LOWERED, RESOURCE_TYPE, RESOURCE_USED, RUN, handles as handle_functions, memory,
};
use super::types::{Place, Types};
use sledge_tests::canonical::{Encoding, Image, Type, Value};
use sledge_tests::random::Random;
use std::fmt::Write as _;

/// Values of one stream, at most.
const VALUES_MAX: u64 = 6;

/// Types inside of each other.
const DEPTH: u32 = 3;

/// Bytes of a component's text, at most.
const TEXT_BYTES_MAX: usize = 60_000;

/// What `b` has for its resource beside [`RESOURCE`]: what it holds it drops.
const READER_IMPORTS: &str = r#"(import "r" "new" (func $make (param i32) (result i32)))
  (import "r" "rep" (func $rep (param i32) (result i32)))
  (import "r" "drop" (func $drop (param i32)))
  (func (export "make") (param i32) (result i32) (call $make (local.get 0)))
  (func (export "value") (param i32) (result i32) (local.get 0))
  (func $held (param i32) (result i32) (call $rep (local.get 0)) (call $drop (local.get 0)))"#;
const READER_GIVEN: &str =
    r#"(with "r" (instance (export "new" (func $new)) (export "rep" (func $rep)) (export "drop" (func $drop))))"#;

/// What a seed decides.
struct Streams {
    ty: Type,
    values: Vec<Value>,
    /// How many values the second to come takes at a time.
    pieces: Vec<u32>,
    reader_comes_first: bool,
    has_resource: bool,
    a: Encoding,
    b: Encoding,
    /// Spare pages of each memory.
    spare: usize,
}

/// The text of a seed's component: the first that is not too large.
pub(super) fn text(seed: u64) -> String {
    let mut random = Random::new(seed, "streams");
    loop {
        let text = attempt(Random::new(random.bits(), "attempt")).component(seed);
        if text.len() <= TEXT_BYTES_MAX {
            return text;
        }
    }
}

fn attempt(mut random: Random) -> Streams {
    let has_resource = random.chance(40);
    let (a, b) = (*random.pick(&Encoding::ALL), *random.pick(&Encoding::ALL));
    let (reader_comes_first, spare) = (random.chance(50), random.below(2) as usize);
    let mut left = 1 + random.below(VALUES_MAX) as u32;
    let count = left;
    let mut pieces = Vec::new();
    while left > 0 {
        let piece = 1 + random.below(u64::from(left)) as u32;
        pieces.push(piece);
        left -= piece;
    }
    let mut generator = Generator::new(random);
    generator.owns = has_resource;
    let ty = generator.ty(DEPTH);
    let values = generator.arguments(&vec![ty.clone(); count as usize]);
    Streams { ty, values, pieces, reader_comes_first, has_resource, a, b, spare }
}

impl Streams {
    fn component(&self, seed: u64) -> String {
        let (b, a) = (self.reader(), self.writer(seed));
        format!(
            "(component\n{b}\n{a}
(instance $b (instantiate $b))
(instance $a (instantiate $a (with \"b\" (instance $b))))
(instance $run (export \"run\" (func $a \"run\")))
(export \"{RUN}\" (instance $run)))\n"
        )
    }

    fn count(&self) -> u32 {
        self.values.len() as u32
    }

    fn or_nothing(&self, text: &'static str) -> &'static str {
        if self.has_resource { text } else { "" }
    }

    /// All values as they lie in a buffer.
    fn buffer(&self) -> (Type, Value) {
        (Type::Fixed(Box::new(self.ty.clone()), self.count()), Value::Fields(self.values.clone()))
    }

    /// Code for each piece: where in the buffer at `start` it lies, and how many values it has.
    fn each(&self, start: u32, code: impl Fn(u32, u32) -> String) -> String {
        let mut done = 0;
        let each = self.pieces.iter().map(|piece| {
            let at = start + done * self.ty.size();
            done += piece;
            code(at, *piece)
        });
        each.collect()
    }

    /// `b`: `take` reads what is there, `listen` waits for what comes, and `check` looks at that.
    fn reader(&self) -> String {
        let mut image = Image::new(self.b, "unreachable");
        let (ty, expected) = self.buffer();
        // There is room for one more than comes.
        let at = image.allocate(ty.size() + self.ty.size(), ty.align());
        image.compare(&ty, &expected, &format!("(i32.const {at})"), 0);
        let take = self.each(at, |at, piece| {
            format!(
                "(if (i32.ne (call $read (local.get $stream) (i32.const {at}) (i32.const {piece})) (i32.const {}))
  (then unreachable))\n",
                piece << 4
            )
        });
        let mut types = Types::new(Place::Component);
        let carried = types.ty(&self.ty);
        format!(
            "(component $b {resource}
{declared}
(type $s (stream {carried}))
(core module $memory {memory} {REALLOC})
(core instance $memory (instantiate $memory))
(core func $read (canon stream.read $s async {options}))
(core func $cancel (canon stream.cancel-read $s async))
(core func $close (canon stream.drop-readable $s))
(core module $m (import \"m\" \"memory\" (memory 1))
(import \"s\" \"read\" (func $read (param i32 i32 i32) (result i32)))
(import \"s\" \"cancel\" (func $cancel (param i32) (result i32)))
(import \"s\" \"close\" (func $close (param i32)))
{imports}
(global $stream (mut i32) (i32.const 0))
{differ}
(func $compare {locals} {compare})
(func (export \"take\") (param $stream i32)
{take}(call $compare)
(call $close (local.get $stream)))
(func (export \"listen\") (param $stream i32)
(global.set $stream (local.get $stream))
(if (i32.ne (call $read (local.get $stream) (i32.const {at}) (i32.const {more})) (i32.const -1)) (then unreachable)))
(func (export \"check\")
(if (i32.ne (i32.shr_u (call $cancel (global.get $stream)) (i32.const 4)) (i32.const {count})) (then unreachable))
(call $compare)
(call $close (global.get $stream))))
(core instance $i (instantiate $m (with \"m\" (instance $memory))
  (with \"s\" (instance (export \"read\" (func $read)) (export \"cancel\" (func $cancel)) (export \"close\" (func $close)))) {given}))
(func (export \"take\") (param \"s\" $s) (canon lift (core func $i \"take\")))
(func (export \"listen\") (param \"s\" $s) (canon lift (core func $i \"listen\")))
(func (export \"check\") (canon lift (core func $i \"check\")))
{exports})",
            resource = self.or_nothing(RESOURCE),
            declared = types.declared,
            memory = memory(&image.memory, self.spare),
            options = options(self.b),
            imports = self.or_nothing(READER_IMPORTS),
            differ = Image::DIFFER,
            locals = image.locals,
            compare = image.code,
            more = self.count() + 1,
            count = self.count(),
            given = self.or_nothing(READER_GIVEN),
            exports = self.or_nothing(RESOURCE_EXPORTS),
        )
    }

    /// `a`: writes, before or after `b` reads.
    fn writer(&self, seed: u64) -> String {
        let mut image = Image::new(self.a, "(return (i32.const 1))").with_noise(Random::new(seed, "noise"));
        let (ty, values) = self.buffer();
        let at = image.place(&[&ty], &[&values]);
        let write = |at: u32, piece: u32, expected: u32| {
            format!(
                "(if (i32.ne (call $write (local.get $end) (i32.const {at}) (i32.const {piece})) (i32.const {}))
  (then (return (i32.const 1))))\n",
                expected.cast_signed()
            )
        };
        let code = match self.reader_comes_first {
            true => {
                let each = self.each(at, |at, piece| write(at, piece, piece << 4));
                format!("(call $listen (i32.wrap_i64 (local.get $ends)))\n{each}(call $check)\n")
            }
            false => {
                let waiting = write(at, self.count(), u32::MAX);
                // All was read before the readable end was dropped.
                let told = self.count() << 4 | 1;
                format!(
                    "{waiting}(call $take (i32.wrap_i64 (local.get $ends)))
(if (i32.ne (call $cancel (local.get $end)) (i32.const {told})) (then (return (i32.const 1))))\n"
                )
            }
        };
        let sum = self.values.iter().map(handles).fold(0, u32::wrapping_add).cast_signed();
        let ended = match self.has_resource {
            true => format!("(if (i32.ne (call $ended) (i32.const {sum})) (then (return (i32.const 1))))"),
            false => String::new(),
        };
        let mut types = Types::new(Place::Instance);
        let carried = types.ty(&self.ty);
        let mut aliases = self.or_nothing("(alias export $b \"r\" (type $r))\n").to_owned();
        for number in 0..types.count() {
            let _ = writeln!(aliases, "(alias export $b \"t{number}\" (type $t{number}))");
        }
        let functions = if self.has_resource { handle_functions(image.allocate(4, 4)) } else { String::new() };
        format!(
            "(component $a (import \"b\" (instance $b {resource}
{declared}(export \"take\" (func (param \"s\" (stream {carried}))))
(export \"listen\" (func (param \"s\" (stream {carried}))))
(export \"check\" (func))))
{aliases}(type $s (stream {carried}))
(core module $memory {memory} {REALLOC})
(core instance $memory (instantiate $memory))
(core func $take (canon lower (func $b \"take\")))
(core func $listen (canon lower (func $b \"listen\")))
(core func $check (canon lower (func $b \"check\")))
(core func $new (canon stream.new $s))
(core func $write (canon stream.write $s async {encoding} (memory (core memory $memory \"memory\"))))
(core func $cancel (canon stream.cancel-write $s async))
{lowered}
(core module $main (import \"m\" \"memory\" (memory 1))
(import \"f\" \"take\" (func $take (param i32)))
(import \"f\" \"listen\" (func $listen (param i32)))
(import \"f\" \"check\" (func $check))
(import \"f\" \"new\" (func $new (result i64)))
(import \"f\" \"write\" (func $write (param i32 i32 i32) (result i32)))
(import \"f\" \"cancel\" (func $cancel (param i32) (result i32)))
{functions}
(func (export \"run\") (result i32) (local $ends i64) (local $end i32) {locals}
(local.set $ends (call $new))
(local.set $end (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
{made}{code}{ended}
(i32.const 0)))
(core instance $main (instantiate $main (with \"m\" (instance $memory))
  (with \"f\" (instance (export \"take\" (func $take)) (export \"listen\" (func $listen)) (export \"check\" (func $check))
    (export \"new\" (func $new)) (export \"write\" (func $write)) (export \"cancel\" (func $cancel)) {used}))))
(func (export \"run\") (result (result)) (canon lift (core func $main \"run\"))))",
            resource = self.or_nothing(RESOURCE_TYPE),
            declared = types.declared,
            memory = memory(&image.memory, self.spare),
            encoding = self.a.option(),
            lowered = self.or_nothing(RESOURCE_LOWERED),
            locals = image.locals,
            made = image.code,
            used = self.or_nothing(RESOURCE_USED),
        )
    }
}
