//! What is no value: one bad piece in a random type, among good ones.

use super::generate::Generator;
use awsm_abi::component::Violation;
use sledge_tests::canonical::{Encoding, Type, Value};
use sledge_tests::command::End;
use sledge_tests::random::Random;

/// Types around the bad piece, at most.
const WRAPPED_MAX: u64 = 4;

/// A length of which no memory here has so much.
const HUGE: u32 = 1 << 30;

/// A bad value.
pub(super) struct Bad {
    pub(super) ty: Type,
    pub(super) value: Value,
    /// Code that comes before it is passed.
    pub(super) before: &'static str,
    /// How that may end.
    pub(super) ends: Vec<End>,
}

/// One that a component passes which encodes strings like this. What is passed as an argument may be lent.
pub(super) fn bad(random: &mut Random, encoding: Encoding, is_argument: bool) -> Bad {
    let mut bad = piece(random, encoding, is_argument);
    let mut generator = Generator::new(Random::new(random.bits(), "good"));
    for _ in 0..random.below(WRAPPED_MAX) {
        wrap(&mut bad, random, &mut generator);
    }
    bad
}

fn piece(random: &mut Random, encoding: Encoding, is_argument: bool) -> Bad {
    let end = |violation| vec![End::Violation(violation)];
    let of = |ty, value, ends| Bad { ty, value, before: "", ends };
    let list = |ty| Type::List(Box::new(ty));
    match random.below(15) {
        0 | 1 => {
            let number = *random.pick(&[0xd800, 0xdfff, 0x11_0000, 0x7fff_ffff, 0xffff_ffff]);
            of(Type::Char, Value::Bits(number), end(Violation::InvalidChar))
        }
        2 | 3 => {
            let (ty, cases) = random
                .pick(&[
                    (Type::Enum(1), 1),
                    (Type::Enum(255), 255),
                    (Type::Enum(257), 257),
                    (Type::Option(Box::new(Type::U64)), 2),
                    (Type::Result(None, Some(Box::new(Type::String))), 2),
                    (Type::Variant(vec![None, Some(Type::F32), Some(Type::U64)]), 3),
                ])
                .clone();
            let index = if cases < 256 { *random.pick(&[cases, 255]) } else { *random.pick(&[cases, 0xffff]) };
            of(ty, Value::Case(index, None), end(Violation::InvalidDiscriminant))
        }
        4 => of(Type::String, Value::Raw(16, HUGE), end(Violation::StringOutOfBounds)),
        5 => of(Type::String, Value::Raw(0xffff_fff0, 64), end(Violation::StringOutOfBounds)),
        6 => {
            let bytes: &[u8] = match encoding {
                Encoding::Utf8 => random.pick::<&[u8]>(&[b"\xff", b"good until \xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]),
                Encoding::Utf16 => b"\x00\xd8A\0",
                Encoding::Compact => b"A\0\x00\xdc",
            };
            let length = match encoding {
                Encoding::Utf8 => bytes.len() as u32,
                Encoding::Utf16 => 2,
                Encoding::Compact => 2 | 1 << 31,
            };
            let violation = if encoding == Encoding::Utf8 { Violation::InvalidUtf8 } else { Violation::InvalidUtf16 };
            of(Type::String, Value::Bytes(bytes.to_vec(), length), end(violation))
        }
        7 if encoding != Encoding::Utf8 => of(Type::String, Value::Raw(33, 2), end(Violation::UnalignedPointer)),
        7 | 8 => {
            // The other component is asked for room first, or what is passed is looked at: both see that it is too long.
            let ty = random.pick(&[Type::U8, Type::U32, Type::U64, Type::String, Type::Char]).clone();
            let length = *random.pick(&[HUGE, 0x7fff_ffff, 0xffff_ffff]);
            of(list(ty), Value::Raw(16, length), end(Violation::ListOutOfBounds))
        }
        9 => of(list(Type::U64), Value::Raw(20, 1), end(Violation::UnalignedPointer)),
        10 => of(list(Type::U32), Value::Raw(0xffff_ff00, 100), end(Violation::ListOutOfBounds)),
        11 => of(Type::Own, Value::Bits(*random.pick(&[0, 1, 77, 0xffff_ffff])), end(Violation::UnknownHandle)),
        12 if is_argument => of(Type::Borrow, Value::Bits(*random.pick(&[0, 1, 77, 0x8000_0000])), end(Violation::UnknownHandle)),
        12 | 13 => {
            let before = "(call $drop (call $make (i32.const 5)))\n";
            Bad { before, ..of(Type::Own, Value::Bits(1), end(Violation::UnknownHandle)) }
        }
        // The same twice; or dropped twice, before it is passed.
        _ if random.chance(50) => {
            let both = Type::Tuple(vec![Type::Own, Type::Own]);
            let ends = vec![End::Violation(Violation::UnknownHandle)];
            let value = Value::Fields(vec![Value::Bits(1), Value::Bits(1)]);
            Bad { ty: both, value, before: "(drop (call $make (i32.const 5)))\n", ends }
        }
        _ => {
            let before = "(call $drop (call $make (i32.const 5))) (call $drop (i32.const 1))\n";
            Bad { before, ..of(Type::U32, Value::Bits(1), end(Violation::UnknownHandle)) }
        }
    }
}

/// Puts it into something.
fn wrap(bad: &mut Bad, random: &mut Random, generator: &mut Generator) {
    let ty = bad.ty.clone();
    let mut good = |ty: &Type| generator.value(ty);
    let value = bad.value.clone();
    let held = |value: Value| Some(Box::new(value));
    // Only what is good without the code before it may be there twice.
    (bad.ty, bad.value) = match random.below(6) {
        0 => (Type::List(Box::new(ty)), Value::List(vec![value])),
        1 => {
            let first = Type::String;
            let values = vec![good(&first), value, good(&Type::U64)];
            (Type::Record(vec![first, ty, Type::U64]), Value::Fields(values))
        }
        2 => (Type::Option(Box::new(ty)), Value::Case(1, held(value))),
        3 => (Type::Result(None, Some(Box::new(ty))), Value::Case(1, held(value))),
        4 => (Type::Variant(vec![Some(Type::F64), Some(ty), None]), Value::Case(1, held(value))),
        _ => {
            let list = Type::List(Box::new(Type::U16));
            let first = good(&list);
            (Type::Tuple(vec![list, ty]), Value::Fields(vec![first, value]))
        }
    };
}
