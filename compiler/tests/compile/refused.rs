//! What is refused, and how the refusal reads.

use awsm::{Arch, Bounds, CompileError, CompileOptions, Cpu, Program};

use super::{options, try_compile};

/// The name of the feature that a refusal names, after a check that it names a place, too.
fn unsupported(text: &str) -> String {
    match try_compile(text, &options()) {
        Err(CompileError::Unsupported { feature, offset }) => {
            assert!(offset > 0, "{text}");
            feature
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn proposals_that_are_not_compiled_are_named() {
    for (feature, text) in [
        ("shared-everything-threads", "(module (global (shared i32) (i32.const 0)))"),
        ("legacy-exceptions: compile again with", "(module (func try catch_all end))"),
        ("legacy-exceptions", "(module (tag $e) (func try catch $e rethrow 0 end))"),
        ("gc (types of structs and arrays)", "(module (type (struct)))"),
        ("gc (types of structs and arrays)", "(module (rec (type (func)) (type (array i32))))"),
        ("gc (values of type anyref)", "(module (func (param anyref)))"),
        ("gc (values of type i31ref)", "(module (func (local i31ref)))"),
        ("gc (values of type eqref)", "(module (table 1 eqref))"),
        ("gc (values of type", "(module (func (block (result (ref null none)) unreachable) drop))"),
        ("gc (references of type", "(module (func (drop (ref.null any))))"),
        ("gc (RefI31)", "(module (func (drop (ref.i31 (i32.const 1)))))"),
        ("gc (RefTestNullable)", "(module (func (param funcref) (drop (ref.test funcref (local.get 0)))))"),
        ("gc (values of type (ref i31))", "(module (global (ref i31) (ref.i31 (i32.const 1))))"),
        ("wide-arithmetic", "(module (func (param i64) (drop (drop (i64.mul_wide_u (local.get 0) (local.get 0))))))"),
    ] {
        let text = text.replace(
            "(drop (drop (i64.mul_wide_u (local.get 0) (local.get 0))))",
            "(i64.mul_wide_u (local.get 0) (local.get 0)) drop drop",
        );
        let named = unsupported(&text);
        assert!(named.contains(feature), "{text}: {named}, not {feature}");
    }
}

#[test]
fn components_are_refused() {
    let error = try_compile("(component)", &options()).unwrap_err();
    assert!(matches!(&error, CompileError::Unsupported { feature, .. } if feature.contains("component-model")), "{error}");
}

#[test]
fn invalid_modules_say_where() {
    let error = try_compile("(module (func (result i32) (i64.const 1)))", &options()).unwrap_err();
    let CompileError::Invalid { offset, message } = &error else { panic!("{error:?}") };
    assert!(*offset > 8 && message.contains("type mismatch"), "{error}");
    assert!(error.to_string().contains("at offset 0x"));
}

#[test]
fn rubbish_is_invalid_and_so_is_every_truncation() {
    let wasm =
        wat::parse_str("(module (memory 1) (func (export \"f\") (param i32) (result i32) (i32.load (local.get 0))))").unwrap();
    assert!(awsm::compile(&Program::single(b"not wasm"), &options(), &()).is_err());
    for end in 0..wasm.len() {
        // Between sections a module may end; before the code it then lacks its bodies.
        match awsm::compile(&Program::single(&wasm[..end]), &options(), &()) {
            Err(CompileError::Invalid { .. }) => {}
            Ok(_) => assert!(end <= 8 || wasm[..end].len() < wasm.len() / 2, "accepted at {end}"),
            Err(error) => panic!("{end}: {error}"),
        }
    }
}

#[test]
fn limits_are_named_with_what_was_found() {
    let nested = format!("(module (func {} {}))", "(block ".repeat(10_001), ")".repeat(10_001));
    let params = "i32 ".repeat(999);
    let (tags, catches) = ("(tag (type 0))".repeat(501), (0..501).map(|tag| format!("(catch {tag} 0)")).collect::<String>());
    let handlers = format!(
        "(module (type (func (param {params}))) {tags} (func (block (result {params}) (try_table {catches}) unreachable) unreachable))"
    );
    for (what, text) in [
        ("table elements", "(module (table 10000001 funcref))".to_owned()),
        ("nested blocks", nested),
        ("values of handlers in a function", handlers),
        ("targets of a br_table", format!("(module (func (block (br_table {} (i32.const 0)))))", "0 ".repeat(70_000))),
    ] {
        match try_compile(&text, &options()) {
            Err(CompileError::Limit { what: named, found, limit, .. }) => assert!(named == what && found > limit),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn options_that_are_not_known_are_refused_with_what_is() {
    let text = "(module)";
    let error = try_compile(text, &CompileOptions { cpu: Cpu::Named("z80".to_owned()), ..options() }).unwrap_err().to_string();
    assert!(error.contains("z80") && error.contains("skylake-avx512"), "{error}");
    let foreign = CompileOptions { arch: Arch::Aarch64, ..options() };
    let error = try_compile(text, &foreign).unwrap_err().to_string();
    assert!(error.contains("x86-64-v4") && error.contains("aarch64") && error.contains("cortex-a76"), "{error}");
    let error = try_compile(text, &CompileOptions { cpu: Cpu::Native, ..foreign.clone() }).unwrap_err().to_string();
    assert!(error.contains("`native`") && error.contains("aarch64") && error.contains("baseline"), "{error}");
    let error = try_compile(text, &CompileOptions { cpu: Cpu::Baseline, bounds: Bounds::Segment, ..foreign }).unwrap_err();
    assert!(error.to_string().contains("`segment`") && error.to_string().contains("aarch64"), "{error}");
    assert!(awsm::cpu_names(Arch::X86_64).contains(&"x86-64-v3"));
}
