//! Components that lie: one of a pair gives the other what is no value, or its functions do what the canonical ABI forbids. Each has to end in a trap that says so,
//! and leave nothing for the next invocation: both components look for the canary of the one before, and leave theirs.

use super::bad::{Bad, bad};
use super::pair::options;
use super::parts::{
    CANARY, PAGE_BYTES, REALLOC, RESOURCE, RESOURCE_EXPORTS, RESOURCE_GIVEN, RESOURCE_IMPORTS, RESOURCE_LOWERED, RESOURCE_TYPE,
    RESOURCE_USED, RUN, handles, memory,
};
use super::types::{Place, Types, core};
use awsm_abi::component::Violation;
use sledge_sandbox::TrapCode;
use sledge_tests::canonical::{Encoding, Flat, Image, Type, Value};
use sledge_tests::command::End;
use sledge_tests::random::Random;
use std::fmt::Write as _;

/// A component, and how it may end.
pub(super) struct Hostile {
    pub(super) text: String,
    pub(super) ends: Vec<End>,
}

/// A pointer that leads out of the memory.
const BEYOND: End = End::Violation(Violation::PointerOutOfBounds);

/// What a realloc does in place of its work.
#[derive(Clone, Copy, Debug)]
enum Lie {
    Unaligned,
    /// What it gives begins in the memory, and ends behind it.
    AcrossTheEnd,
    Beyond,
    /// What is allowed.
    Zero,
    Traps,
    CallsOut,
    NeverEnds,
}

impl Lie {
    const ALL: [Lie; 7] = [Lie::Unaligned, Lie::AcrossTheEnd, Lie::Beyond, Lie::Zero, Lie::Traps, Lie::CallsOut, Lie::NeverEnds];

    const fn code(self) -> &'static str {
        match self {
            Lie::Unaligned => "(i32.const 4097)",
            Lie::AcrossTheEnd => "(i32.sub (i32.mul (memory.size) (i32.const 0x10000)) (i32.const 8))",
            Lie::Beyond => "(i32.const -8)",
            Lie::Zero => "(i32.const 0)",
            Lie::Traps => "unreachable",
            Lie::CallsOut => "(call $outside) (i32.const 4096)",
            Lie::NeverEnds => "(i32.load8_u (call $realloc (local.get 0) (local.get 1) (local.get 2) (local.get 3)))",
        }
    }

    const fn end(self) -> End {
        match self {
            Lie::Unaligned => End::Violation(Violation::UnalignedPointer),
            Lie::AcrossTheEnd | Lie::Beyond => End::Violation(Violation::ListOutOfBounds),
            Lie::Zero => End::Exit(0),
            Lie::Traps => End::Trap(TrapCode::Unreachable),
            Lie::CallsOut => End::Violation(Violation::MayNotLeave),
            Lie::NeverEnds => End::Trap(TrapCode::StackExhausted),
        }
    }
}

/// One of the two components: what is special of it.
struct Side {
    image: Image,
    realloc: String,
    encoding: Encoding,
}

impl Side {
    fn new(encoding: Encoding) -> Side {
        Side { image: Image::new(encoding, "unreachable"), realloc: REALLOC.to_owned(), encoding }
    }

    fn lie(&mut self, lie: Lie) {
        let code = lie.code();
        self.realloc = format!("(func $realloc (export \"realloc\") (param i32 i32 i32 i32) (result i32) {code})");
    }
}

/// What is called, and what `b` does then.
struct Deed {
    params: Vec<Type>,
    result: Option<Type>,
    arguments: Vec<Value>,
    /// The code of `b` behind that of its image; it leaves the result on the stack.
    body: String,
    /// What is called when the result was taken.
    taken: Option<&'static str>,
    ends: Vec<End>,
}

/// A seed's component.
pub(super) fn hostile(seed: u64) -> Hostile {
    let mut random = Random::new(seed, "hostile");
    let mut encoding = || *random.pick(&Encoding::ALL);
    let (mut a, mut b) = (Side::new(encoding()), Side::new(encoding()));
    let nothing =
        Deed { params: Vec::new(), result: None, arguments: Vec::new(), body: String::new(), taken: None, ends: Vec::new() };
    let several = || Value::List((0..20).map(Value::Bits).collect());
    let list = Type::List(Box::new(Type::U64));
    let deed = match random.below(10) {
        // The callee returns what is no value.
        0..=2 => {
            let Bad { ty, value, before, ends } = bad(&mut random, b.encoding, false);
            b.image.code.push_str(before);
            let body = returned(&mut b.image, &ty, &value);
            Deed { result: Some(ty), body, ends, ..nothing }
        }
        // The caller passes what is no value.
        3..=5 => {
            let Bad { ty, value, before, ends } = bad(&mut random, a.encoding, true);
            a.image.code.push_str(before);
            Deed { params: vec![ty], arguments: vec![value], ends, ..nothing }
        }
        6 => {
            let lie = *random.pick(&Lie::ALL);
            b.lie(lie);
            // It is asked for room for a list, or for all parameters at once.
            if random.chance(60) {
                Deed { params: vec![list], arguments: vec![several()], ends: vec![lie.end()], ..nothing }
            } else {
                let end = if matches!(lie, Lie::AcrossTheEnd | Lie::Beyond) { BEYOND } else { lie.end() };
                let count = Flat::PARAMS_MAX + 1;
                Deed { params: vec![Type::U64; count], arguments: vec![Value::Bits(5); count], ends: vec![end], ..nothing }
            }
        }
        7 => {
            let lie = *random.pick(&Lie::ALL);
            a.lie(lie);
            let body = returned(&mut b.image, &list, &several());
            Deed { result: Some(list), body, ends: vec![lie.end()], ..nothing }
        }
        // The result is nowhere.
        8 => {
            let ty = Type::Tuple(vec![Type::U64, Type::U32]);
            let (pointer, end) = *random.pick(&[
                (4, End::Violation(Violation::UnalignedPointer)),
                (4097, End::Violation(Violation::UnalignedPointer)),
                (-8, BEYOND),
                (i32::MIN, BEYOND),
            ]);
            Deed { result: Some(ty), body: format!("(i32.const {pointer})"), ends: vec![end], ..nothing }
        }
        // What is called when the result was taken does not behave.
        _ => {
            let (taken, end) = *random.pick(&[
                ("unreachable", End::Trap(TrapCode::Unreachable)),
                ("(call $outside)", End::Violation(Violation::MayNotLeave)),
            ]);
            let body = returned(&mut b.image, &list, &several());
            Deed { result: Some(list), body, taken: Some(taken), ends: vec![end], ..nothing }
        }
    };
    let text = deed.component(a, b);
    Hostile { text, ends: deed.ends }
}

/// Writes a value to the callee's memory; the code that returns it.
fn returned(image: &mut Image, ty: &Type, value: &Value) -> String {
    let at = image.place(&[ty], &[value]);
    match ty.flat().as_slice() {
        [_] => {
            let load = match ty.size() {
                1 => "i32.load8_u",
                2 => "i32.load16_u",
                _ => "i32.load",
            };
            format!("({load} (i32.const {at}))")
        }
        _ => format!("(i32.const {at})"),
    }
}

/// A function that looks for what an invocation left in the spare page of a memory, or behind it, and leaves something itself: zero if there is nothing.
fn clean(bytes: usize) -> String {
    let start = bytes.next_multiple_of(16).next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
    let end = start + PAGE_BYTES;
    let pages = end / PAGE_BYTES;
    format!(
        "(func $clean (export \"clean\") (result i32) (local $at i32)
  (if (i32.ne (memory.size) (i32.const {pages})) (then (return (i32.const 1))))
  (local.set $at (i32.const {start}))
  (loop $more
    (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then (return (i32.const 1))))
    (local.set $at (i32.add (local.get $at) (i32.const 8)))
    (br_if $more (i32.lt_u (local.get $at) (i32.const {end}))))
  (memory.fill (i32.const {start}) (i32.const {CANARY}) (i32.const {PAGE_BYTES}))
  (drop (memory.grow (i32.const 1)))
  (memory.fill (i32.const {end}) (i32.const {CANARY}) (i32.const {PAGE_BYTES}))
  (i32.const 0))"
    )
}

impl Deed {
    fn component(&self, a: Side, b: Side) -> String {
        let (b, a) = (self.callee(&b), self.caller(a));
        format!(
            "(component
(component $c
  (core module $m (func (export \"g\")))
  (core instance $i (instantiate $m))
  (func (export \"g\") (canon lift (core func $i \"g\"))))
{b}
{a}
(instance $c (instantiate $c))
(instance $b (instantiate $b (with \"c\" (instance $c))))
(instance $a (instantiate $a (with \"b\" (instance $b)) (with \"c\" (instance $c))))
(instance $run (export \"run\" (func $a \"run\")))
(export \"{RUN}\" (instance $run)))\n"
        )
    }

    fn signature(&self, place: Place) -> (String, String) {
        let mut types = Types::new(place);
        let signature = types.function(&self.params, self.result.as_ref());
        (types.declared, signature)
    }

    fn callee(&self, side: &Side) -> String {
        let (mut params, mut results) = Image::signature(&self.params, self.result.as_ref());
        if self.result.as_ref().is_some_and(|ty| ty.flat().len() > Flat::RESULTS_MAX) {
            params.pop();
            results = vec![Flat::I32];
        }
        let taken = self.taken.map_or_else(String::new, |code| format!("(func (export \"taken\") (param i32) {code})"));
        let option = if taken.is_empty() { "" } else { "(post-return (core func $i \"taken\"))" };
        let (declared, signature) = self.signature(Place::Component);
        let (image, realloc) = (&side.image, &side.realloc);
        let given = RESOURCE_GIVEN.replace("(instance ", "(instance (export \"outside\" (func $outside)) ");
        format!(
            "(component $b (import \"c\" (instance $c (export \"g\" (func))))
(core func $outside (canon lower (func $c \"g\")))
{RESOURCE}
(core module $m (import \"r\" \"outside\" (func $outside))
{RESOURCE_IMPORTS}
{memory}
{realloc}
{clean}
{taken}
(func (export \"f\"){core} {locals}
{code}
{body}))
(core instance $i (instantiate $m {given}))
{declared}
(func (export \"clean\") (result u32) (canon lift (core func $i \"clean\")))
(func (export \"f\") {signature} (canon lift (core func $i \"f\") {encoding}
  (memory (core memory $i \"memory\")) (realloc (core func $i \"realloc\")) {option}))
{RESOURCE_EXPORTS})",
            memory = memory(&image.memory, 2),
            clean = clean(image.memory.len()),
            core = core(&params, &results),
            locals = image.locals,
            code = image.code,
            body = self.body,
            encoding = side.encoding.option(),
        )
    }

    fn caller(&self, side: Side) -> String {
        let Side { mut image, realloc, encoding } = side;
        let lent = image.allocate(1024, 4);
        image.call("$f", &self.params, self.result.as_ref(), &self.arguments, None);
        let (declared, signature) = self.signature(Place::Instance);
        let (params, results) = Image::signature(&self.params, self.result.as_ref());
        let mut text = String::new();
        let _ = write!(
            text,
            "(component $a (import \"c\" (instance $c (export \"g\" (func))))
(import \"b\" (instance $b {RESOURCE_TYPE}
{declared}(export \"clean\" (func (result u32)))
(export \"f\" (func {signature}))))
(alias export $b \"r\" (type $r))
(core func $outside (canon lower (func $c \"g\")))
(core func $clean (canon lower (func $b \"clean\")))
(core module $memory (import \"c\" \"g\" (func $outside)) {memory} {realloc} {clean})
(core instance $memory (instantiate $memory (with \"c\" (instance (export \"g\" (func $outside))))))
(core func $f (canon lower (func $b \"f\") {options}))
{RESOURCE_LOWERED}
(core module $main (import \"m\" \"memory\" (memory 1)) (import \"m\" \"clean\" (func $clean (result i32)))
(import \"f\" \"clean\" (func $other-clean (result i32))) (import \"f\" \"f\" (func $f{core}))
{functions}
(func (export \"run\") (result i32) {locals}
(if (call $clean) (then (return (i32.const 1))))
(if (call $other-clean) (then (return (i32.const 1))))
{code}
(i32.const 0)))
(core instance $main (instantiate $main (with \"m\" (instance $memory))
  (with \"f\" (instance (export \"f\" (func $f)) (export \"clean\" (func $clean)) {RESOURCE_USED}))))
(func (export \"run\") (result (result)) (canon lift (core func $main \"run\"))))",
            memory = memory(&image.memory, 2),
            clean = clean(image.memory.len()),
            options = options(encoding),
            core = core(&params, &results),
            functions = handles(lent),
            locals = image.locals,
            code = image.code,
        );
        text
    }
}
