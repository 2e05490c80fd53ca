//! Components: what the canonical ABI does between components of one artifact, on their own bytes and through generated glue. The components check what they get
//! themselves, and run as commands.

use std::time::Duration;

use awsm::{Bounds, CompileOptions, Emit, OptLevel, Program};
use awsm_abi::component::Violation;
use sledge_sandbox::{Artifact, LoadPolicy, Pool, Sandbox, SandboxLimits, Template, TrapCode, WorkerThread};
use sledge_tests::canonical::{Encoding, data};
use sledge_tests::command::{self, End};
use sledge_tests::random::Random;

pub(super) fn compile(text: &str, options: &CompileOptions) -> Result<Vec<u8>, String> {
    let wasm = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    awsm::compile(&Program::of(&wasm), options, &()).map_err(|error| error.to_string())
}

/// Runs a command in a sandbox.
fn run_in(sandbox: &mut Sandbox) -> End {
    let worker = WorkerThread::enter(Duration::from_millis(10)).unwrap();
    command::run(&worker, sandbox, Duration::from_secs(60))
}

pub(super) fn run(text: &str) -> End {
    run_binary(&wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

pub(super) fn run_binary(wasm: &[u8]) -> End {
    let mut end = None;
    for (bounds, opt_level) in [(Bounds::Guard, OptLevel::O3), (Bounds::Guard, OptLevel::O0), (Bounds::Software, OptLevel::O2)] {
        let options = CompileOptions { bounds, opt_level, ..CompileOptions::default() };
        let artifact = awsm::compile(&Program::of(wasm), &options, &()).unwrap_or_else(|error| panic!("{error}"));
        let artifact = Artifact::load(&artifact, &LoadPolicy::default()).unwrap();
        let template = Template::new(&artifact, &SandboxLimits::default()).unwrap();
        let now = run_in(&mut template.instantiate().unwrap());
        assert_eq!(
            *end.get_or_insert_with(|| run_in(&mut template.instantiate().unwrap())),
            now,
            "{bounds} at -O{}",
            opt_level.number()
        );
    }
    end.unwrap()
}

/// A component that provides functions, and a command that uses them. `provider`: core module and exports; `imports` and `lowered`: how the command gets them;
/// `body`: what it does, with a memory of its own; it fails by `unreachable`.
pub(super) fn pair(provider: &str, imports: &str, lowered: &str, core: &str) -> String {
    format!(
        r#"(component
          (component $provider {provider})
          (component $user {imports}
            (core module $memory (memory (export "memory") 2))
            (core instance $memory (instantiate $memory))
            {lowered}
            (core module $main (import "memory" "memory" (memory 2)) {core})
            (core instance $main (instantiate $main
              (with "memory" (instance $memory))
              (with "p" (instance $lowered))))
            (func (export "run") (result (result)) (canon lift (core func $main "run"))))
          (instance $provider (instantiate $provider))
          (instance $user (instantiate $user (with "p" (instance $provider))))
          (instance $run (export "run" (func $user "run")))
          (export "wasi:cli/run@0.2.3" (instance $run)))"#
    )
}

/// A core function that gives memory away, one piece after the other.
const REALLOC: &str = r#"(global $free (mut i32) (i32.const 1024))
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (global.set $free (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.get $free)
    (if (i32.gt_u (local.get 1) (i32.const 0))
      (then (memory.copy (global.get $free) (local.get 0) (select (local.get 1) (local.get 3) (i32.lt_u (local.get 1) (local.get 3))))))
    (global.set $free (i32.add (global.get $free) (local.get 3))))"#;

#[test]
fn numbers_and_lists_go_from_one_component_to_another() {
    let provider = format!(
        r#"(core module $m (memory (export "memory") 2) {REALLOC}
          (func (export "add") (param i32 i64) (result i64) (i64.add (i64.extend_i32_u (local.get 0)) (local.get 1)))
          (func (export "sum") (param $at i32) (param $count i32) (result i64) (local $sum i64)
            (block $done (loop $more
              (br_if $done (i32.eqz (local.get $count)))
              (local.set $sum (i64.add (local.get $sum) (i64.load16_u (local.get $at))))
              (local.set $at (i32.add (local.get $at) (i32.const 2)))
              (local.set $count (i32.sub (local.get $count) (i32.const 1)))
              (br $more)))
            (local.get $sum)))
        (core instance $i (instantiate $m))
        (func (export "add") (param "a" u8) (param "b" u64) (result u64) (canon lift (core func $i "add")))
        (func (export "sum") (param "all" (list u16)) (result u64)
          (canon lift (core func $i "sum") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))"#
    );
    let imports = r#"(import "p" (instance $p
      (export "add" (func (param "a" u8) (param "b" u64) (result u64)))
      (export "sum" (func (param "all" (list u16)) (result u64)))))"#;
    let lowered = r#"(core func $add (canon lower (func $p "add")))
      (core func $sum (canon lower (func $p "sum") (memory (core memory $memory "memory"))))
      (core instance $lowered (export "add" (func $add)) (export "sum" (func $sum)))"#;
    let core = |count: u32| {
        format!(
            r#"(import "p" "add" (func $add (param i32 i64) (result i64)))
            (import "p" "sum" (func $sum (param i32 i32) (result i64)))
            (func (export "run") (result i32) (local $i i32)
              ;; What is beyond eight bits is cut off.
              (if (i64.ne (call $add (i32.const 0x105) (i64.const 7)) (i64.const 12)) (then unreachable))
              (loop $more
                (i32.store16 offset=100 (i32.shl (local.get $i) (i32.const 1)) (local.get $i))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $more (i32.lt_u (local.get $i) (i32.const 200))))
              (if (i64.ne (call $sum (i32.const 100) (i32.const {count})) (i64.const 19900)) (then unreachable))
              (i32.const 0))"#
        )
    };
    assert_eq!(run(&pair(&provider, imports, lowered, &core(200))), End::Exit(0));
    assert_eq!(run(&pair(&provider, imports, lowered, &core(199))), End::Trap(TrapCode::Unreachable));
    assert_eq!(run(&pair(&provider, imports, lowered, &core(0x7fff_0000))), End::Violation(Violation::ListOutOfBounds));
}

/// A command that passes a string, given as it stands in its memory, to a component that wants it to be `text`.
pub(super) fn string_passed(from: Encoding, (bytes, length): (&[u8], u32), to: Encoding, text: &str) -> String {
    let (wanted, wanted_length) = to.encode(text);
    let (to, from) = (to.option(), from.option());
    let provider = format!(
        r#"(core module $m (memory (export "memory") 2) {REALLOC} (data (i32.const 0) "{}")
          (func (export "check") (param $at i32) (param $length i32) (result i32) (local $i i32)
            (if (i32.ne (local.get $length) (i32.const {wanted_length})) (then (return (i32.const 1))))
            (block $done (loop $more
              (br_if $done (i32.ge_u (local.get $i) (i32.const {})))
              (if (i32.ne (i32.load8_u (local.get $i)) (i32.load8_u (i32.add (local.get $at) (local.get $i))))
                (then (return (i32.const 2))))
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br $more)))
            (i32.const 0)))
        (core instance $i (instantiate $m))
        (func (export "check") (param "text" string) (result u32)
          (canon lift (core func $i "check") {to} (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))"#,
        data(&wanted),
        wanted.len()
    );
    let imports = r#"(import "p" (instance $p (export "check" (func (param "text" string) (result u32)))))"#;
    let lowered = format!(
        r#"(core func $check (canon lower (func $p "check") {from} (memory (core memory $memory "memory"))))
          (core instance $lowered (export "check" (func $check)))"#
    );
    let core = format!(
        r#"(import "p" "check" (func $check (param i32 i32) (result i32))) (data (i32.const 64) "{}")
          (func (export "run") (result i32)
            (if (call $check (i32.const 64) (i32.const {})) (then unreachable)) (i32.const 0))"#,
        data(bytes),
        length.cast_signed()
    );
    pair(&provider, imports, &lowered, &core)
}

/// Runs a component at one level only.
fn run_quickly(text: &str) -> End {
    let options = CompileOptions { opt_level: OptLevel::O1, ..CompileOptions::default() };
    let artifact = Artifact::load(&compile(text, &options).unwrap(), &LoadPolicy::default()).unwrap();
    run_in(&mut Template::new(&artifact, &SandboxLimits::default()).unwrap().instantiate().unwrap())
}

#[test]
fn strings_are_the_same_in_every_encoding() {
    let texts = [
        "",
        "plain",
        "more than sixteen bytes of plain text, and then some",
        "déjà vu: ÿ",
        "sixteen bytes ok, then é and more than sixteen bytes again",
        "\u{7f}\u{80}\u{7ff}\u{800}\u{d7ff}\u{e000}\u{ffff}",
        "€ and \u{10000}\u{10ffff} and é",
        "latin é first, then €",
    ];
    for from in Encoding::ALL {
        for to in Encoding::ALL {
            for text in texts {
                let (bytes, length) = from.encode(text);
                let end = run_quickly(&string_passed(from, (&bytes, length), to, text));
                assert_eq!(end, End::Exit(0), "{text:?} from {from:?} to {to:?}");
            }
            // UTF-16 where the compact encoding would do without it.
            if from == Encoding::Compact {
                let (bytes, length) = (Encoding::Utf16.encode("plain é").0, 7 | 1 << 31);
                let end = run_quickly(&string_passed(from, (&bytes, length), to, "plain é"));
                assert_eq!(end, End::Exit(0), "wide characters from {from:?} to {to:?}");
            }
        }
    }
}

#[test]
fn strings_that_are_not_valid_trap() {
    let utf8: [&[u8]; 10] = [
        b"\x80",
        b"ok\xc3",
        b"\xc0\x80",
        b"\xe0\x9f\xbf",
        b"\xed\xa0\x80",
        b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xe2\x82",
        b"sixteen bytes of text and then \xff",
    ];
    for bytes in utf8 {
        for to in Encoding::ALL {
            let end = run_quickly(&string_passed(Encoding::Utf8, (bytes, bytes.len() as u32), to, ""));
            assert_eq!(end, End::Violation(Violation::InvalidUtf8), "{bytes:x?} to {to:?}");
        }
    }
    for units in [&[0xd800_u16][..], &[0xdc00, 0x41], &[0x41, 0xd800, 0x41], &[0xdbff]] {
        let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        for to in Encoding::ALL {
            let end = run_quickly(&string_passed(Encoding::Utf16, (&bytes, units.len() as u32), to, ""));
            assert_eq!(end, End::Violation(Violation::InvalidUtf16), "{units:x?} to {to:?}");
        }
    }
    let end = run_quickly(&string_passed(Encoding::Utf8, (b"", 0x7fff_ffff), Encoding::Utf8, ""));
    assert_eq!(end, End::Violation(Violation::StringOutOfBounds));
}

/// A provider of a resource that stands for a number, with a destructor that counts, and a command that does `body` with it.
pub(super) fn with_resource(body: &str) -> String {
    let provider = r#"
        (core module $state (memory (export "memory") 1)
          (func (export "end") (param i32)
            (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (local.get 0)))))
        (core instance $state (instantiate $state))
        (type $number' (resource (rep i32) (dtor (core func $state "end"))))
        (core func $new (canon resource.new $number'))
        (core func $drop (canon resource.drop $number'))
        (core module $m
          (import "r" "new" (func $new (param i32) (result i32)))
          (import "r" "drop" (func $drop (param i32)))
          (import "r" "memory" (memory 1))
          (global $kept (mut i32) (i32.const 0))
          (func (export "make") (param i32) (result i32) (call $new (local.get 0)))
          (func (export "value") (param i32) (result i32) (local.get 0))
          (func (export "take") (param i32) (call $drop (local.get 0)))
          (func (export "ended") (result i32) (i32.load (i32.const 0))))
        (core instance $i (instantiate $m (with "r" (instance
          (export "new" (func $new)) (export "drop" (func $drop)) (export "memory" (memory $state "memory"))))))
        (export $number "number" (type $number'))
        (func (export "make") (param "value" u32) (result (own $number)) (canon lift (core func $i "make")))
        (func (export "value") (param "self" (borrow $number)) (result u32) (canon lift (core func $i "value")))
        (func (export "take") (param "self" (own $number)) (canon lift (core func $i "take")))
        (func (export "ended") (result u32) (canon lift (core func $i "ended")))"#;
    let imports = r#"(import "p" (instance $p
        (export "number" (type $number (sub resource)))
        (export "make" (func (param "value" u32) (result (own $number))))
        (export "value" (func (param "self" (borrow $number)) (result u32)))
        (export "take" (func (param "self" (own $number))))
        (export "ended" (func (result u32)))))
      (alias export $p "number" (type $number))"#;
    let lowered = r#"(core func $make (canon lower (func $p "make")))
        (core func $value (canon lower (func $p "value")))
        (core func $take (canon lower (func $p "take")))
        (core func $ended (canon lower (func $p "ended")))
        (core func $drop (canon resource.drop $number))
        (core instance $lowered (export "make" (func $make)) (export "value" (func $value)) (export "take" (func $take))
          (export "ended" (func $ended)) (export "drop" (func $drop)))"#;
    let core = format!(
        r#"(import "p" "make" (func $make (param i32) (result i32)))
        (import "p" "value" (func $value (param i32) (result i32)))
        (import "p" "take" (func $take (param i32)))
        (import "p" "ended" (func $ended (result i32)))
        (import "p" "drop" (func $drop (param i32)))
        (func $is (param i32 i32) (if (i32.ne (local.get 0) (local.get 1)) (then unreachable)))
        (func (export "run") (result i32) (local $i i32) {body} (i32.const 0))"#
    );
    pair(provider, imports, lowered, &core)
}

#[test]
fn resources_are_owned_lent_given_away_and_ended() {
    let body = r"
        (call $is (call $make (i32.const 70)) (i32.const 1))
        (call $is (call $make (i32.const 80)) (i32.const 2))
        (call $is (call $value (i32.const 1)) (i32.const 70))
        (call $is (call $value (i32.const 2)) (i32.const 80))
        (call $drop (i32.const 1))
        (call $is (call $ended) (i32.const 70))
        (call $is (call $make (i32.const 90)) (i32.const 1))
        (call $take (i32.const 2))
        (call $is (call $ended) (i32.const 150))
        ;; A table grows, and keeps what it holds.
        (local.set $i (i32.const 2))
        (loop $more
          (call $is (call $make (i32.add (local.get $i) (i32.const 1000))) (local.get $i))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $more (i32.lt_u (local.get $i) (i32.const 5000))))
        (call $is (call $value (i32.const 1)) (i32.const 90))
        (call $is (call $value (i32.const 4999)) (i32.const 5999))
        (call $is (call $value (i32.const 128)) (i32.const 1128))";
    assert_eq!(run(&with_resource(body)), End::Exit(0));
}

#[test]
fn what_the_component_model_forbids_traps() {
    let make = "(drop (call $make (i32.const 5)))";
    for (body, violation) in [
        ("(drop (call $value (i32.const 0)))", Violation::UnknownHandle),
        ("(drop (call $value (i32.const 1)))", Violation::UnknownHandle),
        ("(drop (call $value (i32.const -1)))", Violation::UnknownHandle),
        ("(call $drop (i32.const 1))", Violation::UnknownHandle),
        (&format!("{make} (call $drop (i32.const 1)) (drop (call $value (i32.const 1)))"), Violation::UnknownHandle),
        (&format!("{make} (call $take (i32.const 1)) (call $take (i32.const 1))"), Violation::UnknownHandle),
    ] {
        assert_eq!(run_quickly(&with_resource(body)), End::Violation(violation), "{body}");
    }
}

#[test]
fn what_one_invocation_left_no_other_sees() {
    // Handles begin at one again, and nothing has ended, in new sandboxes and in reset ones.
    let body =
        "(call $is (call $make (i32.const 70)) (i32.const 1)) (call $drop (i32.const 1)) (call $is (call $ended) (i32.const 70))
        (drop (call $make (i32.const 1)))";
    let artifact = compile(&with_resource(body), &CompileOptions::default()).unwrap();
    let artifact = Artifact::load(&artifact, &LoadPolicy::default()).unwrap();
    let template = Template::new(&artifact, &SandboxLimits::default()).unwrap();
    let mut pool = Pool::new();
    for round in 0..5 {
        let mut sandbox = pool.take(&template).unwrap();
        assert_eq!(run_in(&mut sandbox), End::Exit(0), "round {round}");
        pool.put(sandbox);
    }
}

#[test]
fn calls_between_small_components_are_inlined() {
    let provider = r#"(core module $m (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
        (core instance $i (instantiate $m))
        (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add")))"#;
    let imports = r#"(import "p" (instance $p (export "add" (func (param "a" u32) (param "b" u32) (result u32)))))"#;
    let lowered = r#"(core func $add (canon lower (func $p "add"))) (core instance $lowered (export "add" (func $add)))"#;
    let core = r#"(import "p" "add" (func $add (param i32 i32) (result i32)))
        (func (export "run") (result i32) (local $i i32) (local $sum i32)
          (loop $more
            (local.set $sum (call $add (local.get $sum) (local.get $i)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $more (i32.lt_u (local.get $i) (i32.const 100))))
          (i32.ne (local.get $sum) (i32.const 4950)))"#;
    let text = pair(provider, imports, lowered, core);
    assert_eq!(run(&text), End::Exit(0));
    let ir = compile(&text, &CompileOptions { emit: Emit::LlvmIr, ..CompileOptions::default() }).unwrap();
    let ir = String::from_utf8(ir).unwrap();
    let start = ir.find("]::run\"(ptr").expect("the function is there");
    let body = &ir[start..start + ir[start..].find("\n}\n").unwrap()];
    // The sum is known when it is compiled: only the flag is looked at.
    assert!(!body.contains("adapter") || !body.contains("call tailcc i32"), "{body}");
    assert!(!body.contains("phi"), "{body}");
}

/// Two names that differ in case only are the same.
#[test]
fn components_may_spell_a_type_differently() {
    let spelt = |ty: &str, other: &str, flat: &str, given: &str| {
        format!(
            r#"(component
              (component $callee
                (core module $m (func (export "f") (param {flat}) (result i32) (local.get 0)))
                (core instance $m (instantiate $m))
                (type $t' {ty})
                (export $t "t" (type $t'))
                (func (export "f") (param "value" $t) (result u32) (canon lift (core func $m "f"))))
              (component $caller
                (type $t' {other})
                (import "t" (type $t (eq $t')))
                (import "f" (func $f (param "value" $t) (result u32)))
                (core func $f (canon lower (func $f)))
                (core module $m
                  (import "" "f" (func $f (param {flat}) (result i32)))
                  (func (export "run") (result i32) (i32.ne (call $f {given}) (i32.const 1))))
                (core instance $m (instantiate $m (with "" (instance (export "f" (func $f))))))
                (func (export "run") (result (result)) (canon lift (core func $m "run"))))
              (instance $callee (instantiate $callee))
              (instance $caller (instantiate $caller (with "t" (type $callee "t")) (with "f" (func $callee "f"))))
              (instance $run (export "run" (func $caller "run")))
              (export "wasi:cli/run@0.2.3" (instance $run)))"#
        )
    };
    let two = "(i32.const 1) (i32.const 2)";
    for (ty, other, flat, given) in [
        (r#"(record (field "id" u32) (field "a-b" u32))"#, r#"(record (field "ID" u32) (field "a-B" u32))"#, "i32 i32", two),
        (r#"(variant (case "x") (case "y" u32))"#, r#"(variant (case "X") (case "Y" u32))"#, "i32 i32", two),
        (r#"(enum "x" "long-name")"#, r#"(enum "X" "LONG-name")"#, "i32", "(i32.const 1)"),
        (r#"(flags "x" "y")"#, r#"(flags "X" "y")"#, "i32", "(i32.const 1)"),
        (r#"(enum "x" "a-1b")"#, r#"(enum "x" "a-1B")"#, "i32", "(i32.const 1)"),
    ] {
        assert_eq!(run_quickly(&spelt(ty, other, flat, given)), End::Exit(0), "{other}");
    }
    // Types that the types of instances and components declare, as those of imported interfaces are.
    let nested = |import: &str| {
        format!(
            r#"(component
              (component $callee
                (core module $m (func (export "f") (param i32 i32) (result i32) (local.get 0)))
                (core instance $m (instantiate $m))
                (type $t' (record (field "id" u32) (field "a" u32)))
                (export $t "t" (type $t'))
                (func (export "f") (param "value" $t) (result u32) (canon lift (core func $m "f"))))
              (component $caller
                {import}
                (core func $f (canon lower (func $p "f")))
                (core module $m
                  (import "" "f" (func $f (param i32 i32) (result i32)))
                  (func (export "run") (result i32) (i32.ne (call $f (i32.const 1) (i32.const 2)) (i32.const 1))))
                (core instance $m (instantiate $m (with "" (instance (export "f" (func $f))))))
                (func (export "run") (result (result)) (canon lift (core func $m "run"))))
              (instance $callee (instantiate $callee))
              (instance $caller (instantiate $caller (with "p" {given})))
              (instance $run (export "run" (func $caller "run")))
              (export "wasi:cli/run@0.2.3" (instance $run)))"#,
            given = if import.contains("(component") { "(component $callee)" } else { "(instance $callee)" }
        )
    };
    let declared = r#"(type $t' (record (field "ID" u32) (field "A" u32))) (export "t" (type $t (eq $t')))
        (export "f" (func (param "value" $t) (result u32)))"#;
    let instance = format!(r#"(import "p" (instance $p {declared}))"#);
    assert_eq!(run_quickly(&nested(&instance)), End::Exit(0));
    // No instance may call one inside of it, but there is an adapter for it.
    let component = format!(r#"(import "p" (component $c {declared})) (instance $p (instantiate $c))"#);
    assert_eq!(run_quickly(&nested(&component)), End::Violation(Violation::Reentered));
    let error = compile(&spelt(r#"(enum "x")"#, r#"(enum "Xx")"#, "i32", "(i32.const 0)"), &CompileOptions::default());
    assert!(error.is_err_and(|error| error.contains("kebab")));
}

/// What copies between two memories is there only where a stream can lead from one to the other.
#[test]
fn a_program_may_have_many_instances_that_write_streams() {
    let writers: String = (0..40)
        .map(|number| {
            format!(
                r#"(component $c{number}
                  (type $stream (stream u8))
                  (core module $memory (memory (export "memory") 1))
                  (core instance $memory (instantiate $memory))
                  (core func $write (canon stream.write $stream async (memory (core memory $memory "memory"))))
                  (core module $m (import "" "write" (func (param i32 i32 i32) (result i32))) (func (export "run") (result i32) (i32.const 0)))
                  (core instance $m (instantiate $m (with "" (instance (export "write" (func $write))))))
                  (func (export "run") (result (result)) (canon lift (core func $m "run"))))
                (instance $i{number} (instantiate $c{number}))"#
            )
        })
        .collect();
    let text = format!(
        r#"(component {writers} (instance $run (export "run" (func $i7 "run"))) (export "wasi:cli/run@0.2.3" (instance $run)))"#
    );
    assert_eq!(run_quickly(&text), End::Exit(0));
}

/// A component whose first core instance has a memory of a page, a table of two, and that start function; whose second one has segments for both; and
/// whose third one is the command.
fn with_start(start: &str, segments: &str, run: &str) -> String {
    format!(
        r#"(component
          (core module $first
            (type $f (func (result i32)))
            (memory (export "memory") 1 4)
            (table (export "table") 2 funcref)
            (global (export "seen") (mut i32) (i32.const 0))
            (func $one (result i32) (i32.const 1))
            (elem declare func $one)
            (func $start {start})
            (start $start))
          (core module $second
            (import "first" "memory" (memory 1))
            (import "first" "table" (table 2 funcref))
            (func $two (result i32) (i32.const 2))
            {segments})
          (core module $third
            (import "first" "memory" (memory 1))
            (import "first" "table" (table 2 funcref))
            (import "first" "seen" (global $seen (mut i32)))
            (type $f (func (result i32)))
            (func (export "run") (result i32) {run}))
          (core instance $first (instantiate $first))
          (core instance (instantiate $second (with "first" (instance $first))))
          (core instance $third (instantiate $third (with "first" (instance $first))))
          (func $run (result (result)) (canon lift (core func $third "run")))
          (instance $run (export "run" (func $run)))
          (export "wasi:cli/run@0.2.3" (instance $run)))"#
    )
}

/// An instance's segments are written behind the start functions of earlier ones, as if it was made then.
#[test]
fn start_functions_run_where_their_instances_are_made() {
    const BYTE: &str = r#"(data (i32.const 16) "\02")"#;
    const ELEMENT: &str = "(elem (table 0) (i32.const 1) func $two)";
    let is = |what: &str, value: u32| format!("(i32.ne {what} (i32.const {value}))");
    let (byte, seen) = ("(i32.load8_u (i32.const 16))", "(global.get $seen)");
    let called = "(call_indirect (type $f) (i32.const 1))";
    for (start, segments, run) in [
        // What the start function writes is overwritten, and it sees none of what comes.
        ("(global.set 0 (i32.load8_u (i32.const 16))) (i32.store8 (i32.const 16) (i32.const 1))", BYTE, is(byte, 2)),
        ("(global.set 0 (i32.load8_u (i32.const 16)))", BYTE, is(seen, 0)),
        ("(table.set (i32.const 1) (ref.func $one))", ELEMENT, is(called, 2)),
        ("(global.set 0 (ref.is_null (table.get (i32.const 1))))", ELEMENT, is(seen, 1)),
        // What is there only since it has run.
        ("(drop (memory.grow (i32.const 1)))", r#"(data (i32.const 65536) "\03")"#, is("(i32.load8_u (i32.const 65536))", 3)),
        // The own start function of what comes sees its segments.
        (
            "",
            r#"(data (i32.const 16) "\04") (func $s (i32.store8 (i32.const 17) (i32.load8_u (i32.const 16)))) (start $s)"#,
            is("(i32.load8_u (i32.const 17))", 4),
        ),
    ] {
        assert_eq!(run_text(start, segments, &run), End::Exit(0), "{start} {segments}");
    }
    let early = run_text("(drop (call_indirect (type $f) (i32.const 1)))", ELEMENT, "(i32.const 0)");
    assert_eq!(early, End::Trap(TrapCode::UninitializedElement), "it is called before it is there");
    let outside = run_text("", r#"(data (i32.const 65536) "\03")"#, "(i32.const 0)");
    assert_eq!(outside, End::Trap(TrapCode::MemoryOutOfBounds));
}

fn run_text(start: &str, segments: &str, command: &str) -> End {
    run(&with_start(start, segments, command))
}

#[test]
fn what_cannot_be_compiled_is_refused_by_name() {
    for (text, words) in [
        (
            r#"(component (import "a:b/c@1.0.0" (instance $i (export "f" (func)))) (core func $f (canon lower (func $i "f")))
            (core module $m (import "" "f" (func)) (func (export "run") (result i32) (i32.const 0)))
            (core instance $c (instantiate $m (with "" (instance (export "f" (func $f))))))
            (func $run (result (result)) (canon lift (core func $c "run")))
            (instance $r (export "run" (func $run))) (export "wasi:cli/run@0.2.0" (instance $r)))"#,
            "1 import of this component is not offered:\n  `a:b/c@1.0.0` `f`: the interface is not offered",
        ),
        (
            r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
            (func (export "f") (canon lift (core func $i "f"))))"#,
            "this component exports none of `wasi:http/incoming-handler`, `wasi:http/handler` (which answer requests) and `wasi:cli/run` (a command); it exports `f`",
        ),
        (
            r#"(component (import "m" (core module $m)) (core instance $i (instantiate $m)))"#,
            "a component that imports a core module is not supported",
        ),
    ] {
        let error = compile(text, &CompileOptions::default()).unwrap_err();
        assert!(error.contains(words), "{words:?} is not in {error:?}");
    }
    let options = CompileOptions { bounds: Bounds::Segment, ..CompileOptions::default() };
    let error = compile(&with_resource(""), &options).unwrap_err();
    assert!(error.starts_with("bounds `segment`: a component has several memories"), "{error}");
    let cut = &wat::parse_str(with_resource("")).unwrap()[..200];
    assert!(awsm::compile(&Program::of(cut), &CompileOptions::default(), &()).is_err());
}

#[test]
fn what_is_not_offered_traps_where_it_is_allowed() {
    let command = |body: &str| {
        format!(
            r#"(component
              (import "a:b/c@1.0.0" (instance $i (export "r" (type (sub resource))) (export "f" (func (result u32)))))
              (core func $f (canon lower (func $i "f")))
              (core module $m (import "" "f" (func $f (result i32))) (func (export "run") (result i32) {body}))
              (core instance $c (instantiate $m (with "" (instance (export "f" (func $f))))))
              (func $run (result (result)) (canon lift (core func $c "run")))
              (instance $r (export "run" (func $run))) (export "wasi:cli/run@0.2.0" (instance $r)))"#
        )
    };
    let options = CompileOptions { unknown_imports: true, ..CompileOptions::default() };
    for (body, end) in [("(i32.const 0)", End::Exit(0)), ("(call $f)", End::Violation(Violation::Unsupported))] {
        let text = command(body);
        assert!(compile(&text, &CompileOptions::default()).unwrap_err().ends_with("compile it with --allow-unknown-imports"));
        let artifact = compile(&text, &options).unwrap();
        let artifact = Artifact::load(&artifact, &LoadPolicy::default()).unwrap();
        let template = Template::new(&artifact, &SandboxLimits::default()).unwrap();
        assert_eq!(run_in(&mut Pool::new().take(&template).unwrap()), end, "{body}");
    }
}

/// A component that imports that function of an interface with that type, lowered with these options. The core type is the host function's, whatever the component declares.
fn importing(interface: &str, types: &str, name: &str, function: &str, options: &str, core: &str) -> String {
    format!(
        r#"(component
          (import "{interface}" (instance $i {types} (export "{name}" (func {function}))))
          (core module $memory (memory (export "memory") 1)
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable))
          (core instance $memory (instantiate $memory))
          (core func $f (canon lower (func $i "{name}") {options}))
          (core instance $lowered (export "f" (func $f)))
          (core module $m (func (export "run") (result i32) (i32.const 0)))
          (core module $uses (import "" "f" (func {core})))
          (core instance $c (instantiate $m))
          (core instance (instantiate $uses (with "" (instance $lowered))))
          (func $run (result (result)) (canon lift (core func $c "run")))
          (instance $r (export "run" (func $run))) (export "wasi:cli/run@0.2.0" (instance $r)))"#
    )
}

/// What the core function's type does not show would otherwise become an address in the state's memory, a number of another's stream, or a value of another size.
#[test]
fn host_functions_are_imported_with_their_own_types_only() {
    const MEMORY: &str = r#"(memory (core memory $memory "memory"))"#;
    const FILES: &str = "wasi:filesystem/types@0.3.0";
    let lowered_async = format!("async {MEMORY}");
    let descriptor =
        r#"(export "descriptor" (type $d (sub resource))) (type $s (stream u8)) (type $o (future u8)) (type $t (tuple $s $o))"#;
    let read = r#"(param "self" (borrow $d)) (result $t)"#;
    let streams = r#"(type $s (stream u8)) (type $e (enum "io" "illegal-byte-sequence" "pipe")) (export "e" (type $x (eq $e)))
        (type $r (result (error $x))) (type $o (future $r)) (type $t (tuple $o $s)) (type $right (tuple $s $o))"#;
    let now = "wasi:clocks/monotonic-clock@0.3.0";
    let two = r#"async (param "a" u32) (param "b" u32) (result (tuple u32 u32))"#;
    for (interface, types, name, function, options, core) in [
        (now, "", "now", r#"async (param "to" u32)"#, "async", "(param i32) (result i32)"),
        (now, "", "now", two, &lowered_async, "(param i32 i32 i32) (result i32)"),
        ("wasi:cli/stdout@0.2.0", "", "get-stdout", r#"async (param "to" u32)"#, "async", "(param i32) (result i32)"),
        (
            "wasi:cli/stderr@0.3.0",
            streams,
            "write-via-stream",
            r#"(param "data" u32) (result $o)"#,
            "",
            "(param i32) (result i32)",
        ),
        ("wasi:cli/stdin@0.3.0", streams, "read-via-stream", "(result $t)", MEMORY, "(param i32)"),
        (FILES, descriptor, "[method]descriptor.read-directory", read, MEMORY, "(param i32 i32)"),
    ] {
        let text = importing(interface, types, name, function, options, core);
        let error = compile(&text, &CompileOptions::default()).map(drop).expect_err(name);
        assert!(error.contains(&format!("`{name}`: it is offered with another type")), "{interface} {name}: {error}");
    }
    // As it is, nothing is the matter.
    let right = importing("wasi:cli/stdin@0.3.0", streams, "read-via-stream", "(result $right)", MEMORY, "(param i32)");
    compile(&right, &CompileOptions::default()).map(drop).expect("its own type");
}

#[test]
fn components_that_are_damaged_are_refused_or_compiled() {
    let whole = wat::parse_str(with_resource("(drop (call $make (i32.const 5)))")).unwrap();
    let options = CompileOptions { opt_level: OptLevel::O0, ..CompileOptions::default() };
    let mut random = Random::new(7, "damaged components");
    let mut refused = 0;
    for _ in 0..400 {
        let mut damaged = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = 8 + random.below(damaged.len() as u64 - 8) as usize;
            damaged[at] = random.bits() as u8;
        }
        refused += usize::from(awsm::compile(&Program::of(&damaged), &options, &()).is_err());
    }
    assert!(refused > 200, "{refused} were refused");
}
