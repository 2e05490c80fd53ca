//! Which proposals are fuzzed: those that awsm accepts and the reference knows. The one place that decides it.

use wasm_smith::Config;

/// A proposal.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) name: &'static str,
    /// A module that needs it: awsm is asked whether it takes this.
    probe: &'static str,
    /// wasmparser's groups of operators that come with it.
    operators: &'static [&'static str],
    /// Why it is not fuzzed even so.
    left_out: Option<&'static str>,
    /// Switches the generator.
    switch: fn(&mut Config, bool),
}

/// Those that are fuzzed as soon as awsm takes the probe. One line a proposal, one word to leave it out.
const PROPOSALS: &[Proposal] = &[
    proposal("sign-extension", "(func (param i32) (drop (i32.extend8_s (local.get 0))))", &["sign_extension"], None, |c, on| {
        c.sign_extension_ops_enabled = on
    }),
    proposal(
        "saturating-float-to-int",
        "(func (drop (i32.trunc_sat_f32_s (f32.const 1))))",
        &["saturating_float_to_int"],
        None,
        |c, on| c.saturating_float_to_int_enabled = on,
    ),
    proposal("multi-value", "(func (result i32 i32) (i32.const 1) (i32.const 2))", &[], None, |c, on| c.multi_value_enabled = on),
    proposal(
        "bulk-memory",
        "(memory 1) (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 0)))",
        &["bulk_memory"],
        None,
        |c, on| c.bulk_memory_enabled = on,
    ),
    proposal("reference-types", "(table 1 externref)", &["reference_types"], None, |c, on| c.reference_types_enabled = on),
    proposal("simd", "(func (drop (v128.const i64x2 1 2)))", &["simd"], None, |c, on| c.simd_enabled = on),
    proposal("tail-call", "(func $f (return_call $f))", &["tail_call"], None, |c, on| c.tail_call_enabled = on),
    proposal("extended-const", "(global i32 (i32.add (i32.const 1) (i32.const 2)))", &[], None, |c, on| {
        c.extended_const_enabled = on
    }),
    proposal("multi-memory", "(memory 1) (memory 1)", &[], None, |c, on| c.max_memories = if on { 3 } else { 1 }),
    proposal("memory64", "(memory i64 1)", &[], None, |c, on| c.memory64_enabled = on),
    proposal(
        "wide-arithmetic",
        "(func (i64.mul_wide_u (i64.const 1) (i64.const 1)) (drop) (drop))",
        &["wide_arithmetic"],
        None,
        |c, on| c.wide_arithmetic_enabled = on,
    ),
    proposal("custom-page-sizes", "(memory 1 (pagesize 1))", &[], None, |c, on| c.custom_page_sizes_enabled = on),
    proposal(
        "relaxed-simd",
        "(func (param v128) (drop (i8x16.relaxed_swizzle (local.get 0) (local.get 0))))",
        &["relaxed_simd"],
        Some("results differ between machines by design"),
        |c, on| c.relaxed_simd_enabled = on,
    ),
    // The reference does not know it: `plain.rs`.
    proposal("threads", "(memory 1 1 shared)", &["threads"], None, |c, on| c.threads_enabled = on),
    proposal("exceptions", "(tag)", &["exceptions"], Some("wasmi does not know it; see throwing.rs"), |c, on| {
        c.exceptions_enabled = on
    }),
    proposal(
        "gc",
        "(type (struct))",
        &["gc", "function_references"],
        Some("wasmi does not know it; of its references see throwing.rs"),
        |c, on| c.gc_enabled = on,
    ),
];

const fn proposal(
    name: &'static str,
    probe: &'static str,
    operators: &'static [&'static str],
    left_out: Option<&'static str>,
    switch: fn(&mut Config, bool),
) -> Proposal {
    Proposal { name, probe, operators, left_out, switch }
}

/// What is fuzzed.
#[derive(Debug)]
pub(crate) struct Features {
    on: Vec<&'static Proposal>,
}

impl Features {
    /// Asks awsm what it accepts.
    pub(crate) fn probe() -> Features {
        let options = awsm::CompileOptions { opt_level: awsm::OptLevel::O0, emit: awsm::Emit::LlvmIr, ..Default::default() };
        let accepted = |proposal: &&Proposal| {
            let wasm = wat::parse_str(format!("(module {})", proposal.probe)).expect("probes are modules");
            proposal.left_out.is_none() && awsm::compile(&awsm::Program::single(&wasm), &options, &()).is_ok()
        };
        Features { on: PROPOSALS.iter().filter(accepted).collect() }
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.on.iter().map(|proposal| proposal.name).collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.on.iter().any(|proposal| proposal.name == name)
    }

    /// Makes the generator use these and no others.
    pub(crate) fn configure(&self, config: &mut Config) {
        for proposal in PROPOSALS {
            (proposal.switch)(config, self.has(proposal.name));
        }
    }

    /// The names of all operators that these proposals and the MVP have.
    pub(crate) fn operators(&self) -> Vec<&'static str> {
        macro_rules! all {
            ($( @$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })? => $visit:ident ($($ann:tt)*))*) => {
                [$( (stringify!($proposal), stringify!($op)), )*]
            };
        }
        let all = wasmparser::for_each_operator!(all);
        let is_on = |group: &str| group == "mvp" || self.on.iter().any(|proposal| proposal.operators.contains(&group));
        all.into_iter().filter(|(group, _)| is_on(group)).map(|(_, name)| name).collect()
    }
}
