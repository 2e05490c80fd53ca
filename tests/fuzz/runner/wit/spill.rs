//! The code of a callee that writes its flat parameters to memory. It checks that the adapter left nothing in the bits that mean nothing.

use sledge_tests::canonical::{Flat, Type, discriminant_bytes};
use std::fmt::Write as _;

/// A flat value: its core type, and code that gives it, as often as wanted.
type Given = (Flat, String);

/// Code that writes the parameters `$p0`, `$p1`... to where `$at` says, one after the other.
pub(super) fn params(types: &[Type]) -> String {
    let flat = types.iter().flat_map(Type::flat).enumerate();
    let given: Vec<Given> = flat.map(|(index, flat)| (flat, format!("(local.get $p{index})"))).collect();
    let mut code = String::new();
    fields(&types.iter().collect::<Vec<_>>(), &given, 0, &mut code);
    code
}

fn fields(types: &[&Type], mut given: &[Given], at: u32, code: &mut String) {
    let mut next = at;
    for ty in types {
        let (own, rest) = given.split_at(ty.flat().len());
        next = next.next_multiple_of(ty.align());
        value(ty, own, next, code);
        next += ty.size();
        given = rest;
    }
}

fn value(ty: &Type, given: &[Given], at: u32, code: &mut String) {
    if let Some((_, bytes)) = ty.number() {
        let (flat, got) = &given[0];
        if let Some(unclean) = unclean(ty, got) {
            let _ = writeln!(code, "(if {unclean} (then unreachable))");
        }
        let store = match (flat, bytes) {
            (Flat::I32, 1) => "i32.store8",
            (Flat::I32, 2) => "i32.store16",
            (Flat::I32, _) => "i32.store",
            (Flat::I64, _) => "i64.store",
            (Flat::F32, _) => "f32.store",
            (Flat::F64, _) => "f64.store",
        };
        let _ = writeln!(code, "({store} offset={at} (local.get $at) {got})");
        return;
    }
    match (ty.fields(), ty.cases()) {
        (Some(types), _) => fields(&types, given, at, code),
        (_, Some(cases)) => {
            let (_, discriminant) = &given[0];
            let store = ["i32.store8", "i32.store16", "", "i32.store"][discriminant_bytes(cases.len()) as usize - 1];
            let _ = writeln!(code, "(if (i32.ge_u {discriminant} (i32.const {})) (then unreachable))", cases.len());
            let _ = writeln!(code, "({store} offset={at} (local.get $at) {discriminant})");
            let mut has_payload = "(i32.const 0)".to_owned();
            for (index, held) in cases.iter().enumerate().filter_map(|(index, held)| Some((index, (*held)?))) {
                let is_case = format!("(i32.eq {discriminant} (i32.const {index}))");
                let wanted = held.flat();
                let (payload, unused) = given[1..].split_at(wanted.len());
                let mut inner = String::new();
                let payload: Vec<Given> =
                    wanted.into_iter().zip(payload).map(|(flat, joined)| (flat, convert(flat, joined, &mut inner))).collect();
                for unused in unused {
                    zero(unused, &mut inner);
                }
                value(held, &payload, at + ty.payload_offset(), &mut inner);
                let _ = writeln!(code, "(if {is_case} (then\n{inner}))");
                has_payload = format!("(i32.or {is_case} {has_payload})");
            }
            if given.len() > 1 {
                let mut inner = String::new();
                for unused in &given[1..] {
                    zero(unused, &mut inner);
                }
                let _ = writeln!(code, "(if (i32.eqz {has_payload}) (then\n{inner}))");
            }
        }
        _ => {
            for (index, (_, word)) in given.iter().enumerate() {
                let _ = writeln!(code, "(i32.store offset={} (local.get $at) {word})", at + index as u32 * 4);
            }
        }
    }
}

/// Whether a number has bits set that mean nothing.
fn unclean(ty: &Type, got: &str) -> Option<String> {
    let above = |most: u32| Some(format!("(i32.gt_u {got} (i32.const {}))", most.cast_signed()));
    match ty {
        Type::Bool => above(1),
        Type::U8 => above(0xff),
        Type::U16 => above(0xffff),
        Type::S8 => Some(format!("(i32.ne (i32.extend8_s {got}) {got})")),
        Type::S16 => Some(format!("(i32.ne (i32.extend16_s {got}) {got})")),
        Type::Flags(count) if *count < 32 => above((1 << count) - 1),
        _ => None,
    }
}

/// A case's flat value, out of what holds those of all cases.
fn convert(flat: Flat, (joined, got): &Given, code: &mut String) -> String {
    if *joined == Flat::I64 && matches!(flat, Flat::I32 | Flat::F32) {
        let _ = writeln!(code, "(if (i64.ne (i64.shr_u {got} (i64.const 32)) (i64.const 0)) (then unreachable))");
    }
    match (*joined, flat) {
        (joined, flat) if joined == flat => got.clone(),
        (Flat::I64, Flat::I32) => format!("(i32.wrap_i64 {got})"),
        (Flat::I64, Flat::F32) => format!("(f32.reinterpret_i32 (i32.wrap_i64 {got}))"),
        (Flat::I64, _) => format!("(f64.reinterpret_i64 {got})"),
        _ => format!("(f32.reinterpret_i32 {got})"),
    }
}

/// Code that notices what is left in a flat value that the case does not use.
fn zero((flat, got): &Given, code: &mut String) {
    let differs = match flat {
        Flat::I32 => got.clone(),
        Flat::I64 => format!("(i64.ne {got} (i64.const 0))"),
        Flat::F32 => format!("(i32.reinterpret_f32 {got})"),
        Flat::F64 => format!("(i64.ne (i64.reinterpret_f64 {got}) (i64.const 0))"),
    };
    let _ = writeln!(code, "(if {differs} (then unreachable))");
}
