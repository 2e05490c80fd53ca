//! Components that pass values on: a command `a` calls a function of `b`, directly or by way of `m`, and gets back what it sent.
//!
//! ```text
//! a: lowers values of its own --adapter--> [m: passes on --adapter-->] b: compares, stores, returns --adapter--> [m --adapter-->] a: compares
//! ```

use super::generate::{Generator, handles, returned};
use super::parts::{
    CANARY_BYTES, REALLOC, RESOURCE, RESOURCE_EXPORTS, RESOURCE_GIVEN, RESOURCE_IMPORTS, RESOURCE_LOWERED, RESOURCE_TYPE,
    RESOURCE_USED, RUN, handles as handle_functions, leave_canaries, memory,
};
use super::spill;
use super::types::{Place, Types, core};
use sledge_tests::canonical::{Encoding, Flat, Image, Type, Value};
use sledge_tests::random::Random;
use std::fmt::Write as _;

/// Handles that are lent in one call, at most.
const LENT_MAX: u32 = 1024;

/// What a seed decides.
struct Pair {
    params: Vec<Type>,
    /// What the function returns: what it was given.
    result: Option<Type>,
    /// The arguments of each call.
    calls: Vec<Vec<Value>>,
    /// Whether there is a resource.
    has_resource: bool,
    /// Whether `b` wants to be told when its result was taken.
    post_return: bool,
    a: Encoding,
    b: Encoding,
    /// The encoding of what is between them, if something is.
    m: Option<Encoding>,
    /// Spare pages of each memory.
    spare: usize,
}

/// Bytes of a component's text, at most: optimising a function that compares thousands of values takes minutes.
const TEXT_BYTES_MAX: usize = 60_000;

/// The text of a seed's component: the first that is not too large.
pub(super) fn text(seed: u64) -> String {
    let mut random = Random::new(seed, "pair");
    loop {
        let text = attempt(seed, Random::new(random.bits(), "attempt"));
        if text.len() <= TEXT_BYTES_MAX {
            return text;
        }
    }
}

fn attempt(seed: u64, mut random: Random) -> String {
    let has_resource = random.chance(30);
    let mut encoding = || *random.pick(&Encoding::ALL);
    let (a, b, between) = (encoding(), encoding(), encoding());
    let m = random.chance(30).then_some(between);
    let (post_return, spare) = (random.chance(40), random.below(2) as usize);
    let calls = 1 + random.below(3);
    let mut generator = Generator::new(random.clone());
    generator.owns = has_resource;
    // What is between would have to know which values it got, to give back what it borrowed.
    generator.lends = has_resource && m.is_none();
    let params = generator.params();
    let calls = (0..calls).map(|_| generator.arguments(&params)).collect();
    let result = match params.as_slice() {
        [] => None,
        [one] => Some(returned(one)),
        several => Some(Type::Tuple(several.iter().map(returned).collect())),
    };
    Pair { params, result, calls, has_resource, post_return, a, b, m, spare }.component(seed)
}

impl Pair {
    fn component(&self, seed: u64) -> String {
        let (b, a) = (self.callee(), self.caller(seed));
        let (m, made, given) = match self.m {
            Some(encoding) => (
                self.between(encoding),
                "(instance $m (instantiate $m (with \"b\" (instance $b))))",
                "(with \"b\" (instance $b)) (with \"m\" (instance $m))",
            ),
            None => (String::new(), "", "(with \"b\" (instance $b))"),
        };
        format!(
            "(component\n{b}\n{m}\n{a}
(instance $b (instantiate $b))
{made}
(instance $a (instantiate $a {given}))
(instance $run (export \"run\" (func $a \"run\")))
(export \"{RUN}\" (instance $run)))\n"
        )
    }

    fn or_nothing(&self, text: &'static str) -> &'static str {
        if self.has_resource { text } else { "" }
    }

    /// The core types of the function as it is lifted.
    fn lifted(&self) -> (Vec<Flat>, Vec<Flat>) {
        let (mut params, mut results) = Image::signature(&self.params, self.result.as_ref());
        if self.returns_pointer() {
            params.pop();
            results = vec![Flat::I32];
        }
        (params, results)
    }

    fn returns_pointer(&self) -> bool {
        self.result.as_ref().is_some_and(|ty| ty.flat().len() > Flat::RESULTS_MAX)
    }

    fn is_spilled(&self) -> bool {
        self.params.iter().map(|ty| ty.flat().len()).sum::<usize>() > Flat::PARAMS_MAX
    }

    /// `b`: its core module compares what it gets with what it should get, and returns it.
    fn callee(&self) -> String {
        let mut image = Image::new(self.b, "unreachable");
        let canaries = leave_canaries(image.allocate(CANARY_BYTES, 1));
        let together = Type::Tuple(self.params.clone());
        let mut compare = String::new();
        for (index, arguments) in self.calls.iter().enumerate() {
            image.compare(&together, &Value::Fields(arguments.clone()), "(local.get $at)", 0);
            let code = std::mem::take(&mut image.code);
            let _ = writeln!(compare, "(if (i32.eq (global.get $calls) (i32.const {index})) (then\n{code}))");
        }
        let gather = match self.is_spilled() {
            true => "(local.set $at (local.get $p0))".to_owned(),
            false if self.params.is_empty() => String::new(),
            false => format!(
                "(local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const {}) (i32.const {})))\n{}",
                together.align(),
                together.size(),
                spill::params(&self.params)
            ),
        };
        let (params, results) = self.lifted();
        let give = match (results.is_empty(), self.returns_pointer()) {
            (true, _) => "",
            (_, true) => "(local.get $at)",
            _ => "(local.get $p0)",
        };
        let taken = match results.as_slice() {
            [flat] => format!("(param {})", flat.name()),
            _ => String::new(),
        };
        let (check, function, option) = match self.post_return {
            true => (
                "(if (i32.ne (global.get $calls) (global.get $taken)) (then unreachable))",
                format!(
                    "(global $taken (mut i32) (i32.const 0))
(func (export \"taken\") {taken} (global.set $taken (i32.add (global.get $taken) (i32.const 1))))"
                ),
                "(post-return (core func $i \"taken\"))",
            ),
            false => ("", String::new(), ""),
        };
        let mut types = Types::new(Place::Component);
        let signature = types.function(&self.params, self.result.as_ref());
        format!(
            "(component $b {resource}
(core module $m {imports}
{memory}
(global $calls (mut i32) (i32.const 0))
{function}
{REALLOC}
{differ}
(func (export \"f\"){core} (local $at i32) {locals}
{check}
{gather}
{compare}
(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
{canaries}
{give}))
(core instance $i (instantiate $m {given}))
{declared}
(func (export \"f\") {signature} (canon lift (core func $i \"f\") {encoding}
  (memory (core memory $i \"memory\")) (realloc (core func $i \"realloc\")) {option}))
{exports})",
            resource = self.or_nothing(RESOURCE),
            imports = self.or_nothing(RESOURCE_IMPORTS),
            memory = memory(&image.memory, self.spare),
            differ = Image::DIFFER,
            core = core(&params, &results),
            locals = image.locals,
            given = self.or_nothing(RESOURCE_GIVEN),
            declared = types.declared,
            encoding = self.b.option(),
            exports = self.or_nothing(RESOURCE_EXPORTS),
        )
    }

    /// The import of an instance that has the function, `b` or `m`.
    fn import(&self, name: &str) -> String {
        let mut types = Types::new(Place::Instance);
        let signature = types.function(&self.params, self.result.as_ref());
        let resource = if name == "b" { self.or_nothing(RESOURCE_TYPE) } else { "" };
        let declared = types.declared;
        format!("(import \"{name}\" (instance ${name} {resource}\n{declared}(export \"f\" (func {signature}))))")
    }

    /// `m`: its core module passes on what it gets, and returns what it gets back.
    fn between(&self, encoding: Encoding) -> String {
        let (params, results) = self.lifted();
        let (lowered, lowered_results) = Image::signature(&self.params, self.result.as_ref());
        let mut types = Types::new(Place::Component);
        let signature = types.function(&self.params, self.result.as_ref());
        let passed: String = (0..params.len()).map(|index| format!("(local.get $p{index}) ")).collect();
        let mut image = Image::new(encoding, "unreachable");
        let call = match &self.result {
            Some(ty) if self.returns_pointer() => {
                let at = image.allocate(ty.size(), ty.align());
                format!("(call $f {passed}(i32.const {at})) (i32.const {at})")
            }
            _ => format!("(call $f {passed})"),
        };
        format!(
            "(component $m {import} {alias}
(core module $memory {memory} {REALLOC})
(core instance $memory (instantiate $memory))
(core func $f (canon lower (func $b \"f\") {options}))
(core module $main (import \"f\" \"f\" (func $f{lowered}))
  (func (export \"f\"){core} {call}))
(core instance $main (instantiate $main (with \"f\" (instance (export \"f\" (func $f))))))
{declared}
(func (export \"f\") {signature} (canon lift (core func $main \"f\") {options})))",
            import = self.import("b"),
            alias = self.or_nothing("(alias export $b \"r\" (type $r))"),
            memory = memory(&image.memory, self.spare),
            options = options(encoding),
            lowered = core(&lowered, &lowered_results),
            core = core(&params, &results),
            declared = types.declared,
        )
    }

    /// `a`: its core module makes the calls, and compares what comes back.
    fn caller(&self, seed: u64) -> String {
        let mut image = Image::new(self.a, "(return (i32.const 1))").with_noise(Random::new(seed, "noise"));
        let lent = image.allocate(LENT_MAX * 4, 4);
        let canaries = leave_canaries(image.allocate(CANARY_BYTES, 1));
        let mut sum = 0_u32;
        for arguments in &self.calls {
            let expected = match arguments.as_slice() {
                [] => None,
                [one] => Some(one.clone()),
                several => Some(Value::Fields(several.to_vec())),
            };
            image.call("$f", &self.params, self.result.as_ref(), arguments, expected.as_ref());
            image.code.push_str(self.or_nothing("(call $take-back)\n"));
            sum = arguments.iter().map(handles).fold(sum, u32::wrapping_add);
        }
        if self.has_resource {
            let _ = writeln!(
                image.code,
                "(if (i32.ne (call $ended) (i32.const {})) (then (return (i32.const 1))))",
                sum.cast_signed()
            );
        }
        let source = if self.m.is_some() { "m" } else { "b" };
        let imports = match self.m {
            Some(_) => {
                format!("{} {} {}", self.import("b"), self.or_nothing("(alias export $b \"r\" (type $r))"), self.import("m"))
            }
            None => format!("{} {}", self.import("b"), self.or_nothing("(alias export $b \"r\" (type $r))")),
        };
        let (params, results) = Image::signature(&self.params, self.result.as_ref());
        format!(
            "(component $a {imports}
(core module $memory {memory} {REALLOC})
(core instance $memory (instantiate $memory))
(core func $f (canon lower (func ${source} \"f\") {options}))
{lowered}
(core module $main (import \"m\" \"memory\" (memory 1)) (import \"f\" \"f\" (func $f{core}))
{functions}
{differ}
(func (export \"run\") (result i32) {locals}
{code}
{canaries}
(i32.const 0)))
(core instance $main (instantiate $main (with \"m\" (instance $memory))
  (with \"f\" (instance (export \"f\" (func $f)) {used}))))
(func (export \"run\") (result (result)) (canon lift (core func $main \"run\"))))",
            memory = memory(&image.memory, self.spare),
            options = options(self.a),
            lowered = self.or_nothing(RESOURCE_LOWERED),
            core = core(&params, &results),
            functions = if self.has_resource { handle_functions(lent) } else { String::new() },
            differ = Image::DIFFER,
            locals = image.locals,
            code = image.code,
            used = self.or_nothing(RESOURCE_USED),
        )
    }
}

/// The options of a component whose memory is a core instance of its own.
pub(super) fn options(encoding: Encoding) -> String {
    let encoding = encoding.option();
    format!("{encoding} (memory (core memory $memory \"memory\")) (realloc (core func $memory \"realloc\"))")
}
