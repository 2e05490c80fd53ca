//! What the components of a generated program are made of, in the text format.

/// What a command exports.
pub(super) const RUN: &str = "wasi:cli/run@0.2.3";

/// Bytes of one page of memory.
pub(super) const PAGE_BYTES: usize = 0x1_0000;

/// The byte that invocations leave behind, for the next one to look for.
pub(super) const CANARY: u8 = 0xc5;

/// How many of them are left in a memory as it was, so that some are found.
pub(super) const CANARY_BYTES: u32 = 256;

/// Code that leaves canaries at an address, and in a page by which the memory grows.
pub(super) fn leave_canaries(at: u32) -> String {
    format!(
        "(memory.fill (i32.const {at}) (i32.const {CANARY}) (i32.const {CANARY_BYTES}))
(memory.fill (i32.shl (memory.grow (i32.const 1)) (i32.const 16)) (i32.const {CANARY}) (i32.const {PAGE_BYTES}))"
    )
}

/// A core function that gives memory away, one piece after the other, each full of what is no value. What is too large lies beyond the end.
pub(super) const REALLOC: &str = r#"(func $realloc (export "realloc") (param $old i32) (param $was i32) (param $align i32) (param $size i32) (result i32)
  (local $at i32)
  (local.set $at (i32.and (i32.add (global.get $free) (i32.sub (local.get $align) (i32.const 1)))
    (i32.sub (i32.const 0) (local.get $align))))
  (if (i32.gt_u (local.get $size) (i32.const 0x1000000)) (then (return (local.get $at))))
  (global.set $free (i32.add (local.get $at) (local.get $size)))
  (block $fits
    (br_if $fits (i32.le_u (global.get $free) (i32.mul (memory.size) (i32.const 0x10000))))
    (br_if $fits (i32.ge_s
      (memory.grow (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1)))
      (i32.const 0)))
    unreachable)
  (memory.fill (local.get $at) (i32.const 0xa5) (local.get $size))
  (memory.copy (local.get $at) (local.get $old)
    (select (local.get $was) (local.get $size) (i32.lt_u (local.get $was) (local.get $size))))
  (local.get $at))"#;

/// A memory that begins with these bytes, and what `realloc` knows of it. `spare`: pages behind them; without any, what is asked for first needs more memory.
pub(super) fn memory(bytes: &[u8], spare: usize) -> String {
    let free = bytes.len().next_multiple_of(16);
    let pages = free.div_ceil(PAGE_BYTES) + spare;
    let free = if spare == 0 { pages * PAGE_BYTES } else { free };
    format!(
        "(memory (export \"memory\") {pages}) (data (i32.const 0) \"{}\") (global $free (mut i32) (i32.const {free}))",
        sledge_tests::canonical::data(bytes)
    )
}

/// What a component that defines the resource `$r` has beside its own core module: a destructor that sums up what ended.
pub(super) const RESOURCE: &str = r#"(core module $ends (global $sum (mut i32) (i32.const 0))
    (func (export "end") (param i32) (global.set $sum (i32.add (global.get $sum) (local.get 0))))
    (func (export "sum") (result i32) (global.get $sum)))
  (core instance $ends (instantiate $ends))
  (type $r' (resource (rep i32) (dtor (core func $ends "end"))))
  (core func $new (canon resource.new $r'))
  (core func $rep (canon resource.rep $r'))
  (core func $drop (canon resource.drop $r'))
  (export $r "r" (type $r'))"#;

/// What its core module imports.
pub(super) const RESOURCE_IMPORTS: &str = r#"(import "r" "new" (func $make (param i32) (result i32)))
  (import "r" "rep" (func $held (param i32) (result i32)))
  (import "r" "drop" (func $drop (param i32)))
  (func (export "make") (param i32) (result i32) (call $make (local.get 0)))
  (func (export "value") (param i32) (result i32) (local.get 0))"#;

/// What its core module is instantiated with.
pub(super) const RESOURCE_GIVEN: &str =
    r#"(with "r" (instance (export "new" (func $new)) (export "rep" (func $rep)) (export "drop" (func $drop))))"#;

/// What it exports of its core instance `$i`.
pub(super) const RESOURCE_EXPORTS: &str = r#"(func (export "make") (param "number" u32) (result (own $r)) (canon lift (core func $i "make")))
  (func (export "value") (param "self" (borrow $r)) (result u32) (canon lift (core func $i "value")))
  (func (export "ended") (result u32) (canon lift (core func $ends "sum")))"#;

/// The same, as part of the type of an instance.
pub(super) const RESOURCE_TYPE: &str = r#"(export "r" (type $r (sub resource)))
  (export "make" (func (param "number" u32) (result (own $r))))
  (export "value" (func (param "self" (borrow $r)) (result u32)))
  (export "ended" (func (result u32)))"#;

/// What a component that uses the resource lowers.
pub(super) const RESOURCE_LOWERED: &str = r#"(core func $make (canon lower (func $b "make")))
  (core func $value (canon lower (func $b "value")))
  (core func $ended (canon lower (func $b "ended")))
  (core func $drop (canon resource.drop $r))"#;

/// What its core module is given of that, beside others.
pub(super) const RESOURCE_USED: &str =
    r#"(export "make" (func $make)) (export "value" (func $value)) (export "ended" (func $ended)) (export "drop" (func $drop))"#;

/// What its core module makes of it: handles that it owns, and such that it lends and takes back; `lent` is where it notes those.
pub(super) fn handles(lent: u32) -> String {
    format!(
        r#"(import "f" "make" (func $make (param i32) (result i32)))
  (import "f" "value" (func $value (param i32) (result i32)))
  (import "f" "ended" (func $ended (result i32)))
  (import "f" "drop" (func $drop (param i32)))
  (global $lent (mut i32) (i32.const 0))
  (func $held (param i32) (result i32) (call $value (local.get 0)) (call $drop (local.get 0)))
  (func $lend (param i32) (result i32) (local $handle i32)
    (local.set $handle (call $make (local.get 0)))
    (i32.store (i32.add (i32.const {lent}) (i32.shl (global.get $lent) (i32.const 2))) (local.get $handle))
    (global.set $lent (i32.add (global.get $lent) (i32.const 1)))
    (local.get $handle))
  (func $take-back
    (block $done (loop $more
      (br_if $done (i32.eqz (global.get $lent)))
      (global.set $lent (i32.sub (global.get $lent) (i32.const 1)))
      (call $drop (i32.load (i32.add (i32.const {lent}) (i32.shl (global.get $lent) (i32.const 2)))))
      (br $more))))"#
    )
}
