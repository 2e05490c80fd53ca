//! Optimisation pipelines. They follow LLVM's own for the same levels, cut at the places where [`super::keep`] has to act:
//!
//! 1. simplify a little and inline, with loads of linear memory volatile;
//! 2. everything else on scalars and loops, with their values held;
//! 3. give loops 64-bit indices, roll them up, vectorise and unroll.

use std::ffi::{CStr, CString, c_char};

use awsm_abi::types::Bounds;
use inkwell::llvm_sys::core::LLVMDisposeMessage;
use inkwell::llvm_sys::prelude::LLVMModuleRef;
use inkwell::llvm_sys::target_machine::LLVMTargetMachineRef;
use inkwell::module::Module;

use super::machine::Machine;
use super::shared::pass;
use super::{keep, quiet};
use crate::error::CompileError;
use crate::options::{Effort, OptLevel};

const INLINE: &str = "function<eager-inv>(sroa<modify-cfg>,early-cse<>,simplifycfg,instcombine<max-iterations=1;no-verify-fixpoint>),\
    cgscc(inline,function<eager-inv;no-rerun>(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,\
    instcombine<max-iterations=1;no-verify-fixpoint>)),elim-avail-extern,globaldce,function(adce)";

const SCALAR_QUICK: &str = "function<eager-inv>(early-cse<memssa>,simplifycfg,instcombine<max-iterations=1;no-verify-fixpoint>,\
    loop-mssa(loop-rotate<header-duplication;no-prepare-for-lto>,licm<allowspeculation>),loop(indvars,loop-deletion),sccp,bdce,\
    instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg)";

/// Of functions that were given up: nothing whose time grows faster than the function, as scalar evolution's may.
const SCALAR_GIVEN_UP: &str =
    "function<eager-inv>(early-cse<memssa>,simplifycfg,instcombine<max-iterations=1;no-verify-fixpoint>,sccp,bdce,simplifycfg)";

const SCALAR: &str = concat!(
    "function<eager-inv>(sroa<modify-cfg>,early-cse<memssa>,\
    loop-mssa(licm<allowspeculation>),",
    pass!(ImpliedChecksPass),
    ",loop-simplify,lcssa,",
    pass!(LoopChecksPass),
    ",",
    pass!(NeighbourChecksPass),
    ",jump-threading,correlated-propagation,\
    simplifycfg<switch-range-to-icmp>,instcombine<max-iterations=1;no-verify-fixpoint>,aggressive-instcombine,simplifycfg<switch-range-to-icmp>,\
    reassociate,constraint-elimination,loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,\
    loop-rotate<header-duplication;no-prepare-for-lto>,licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>),\
    simplifycfg<switch-range-to-icmp>,instcombine<max-iterations=1;no-verify-fixpoint>,\
    loop(loop-idiom,indvars,extra-simple-loop-unswitch-passes,loop-deletion,loop-unroll-full),sroa<modify-cfg>,\
    mldst-motion<no-split-footer-bb>,gvn<>,sccp,bdce,instcombine<max-iterations=1;no-verify-fixpoint>,jump-threading,\
    correlated-propagation,adce,memcpyopt,dse,loop-mssa(licm<allowspeculation>),\
    simplifycfg<switch-range-to-icmp;switch-to-arithmetic;hoist-common-insts;sink-common-insts>,\
    instcombine<max-iterations=1;no-verify-fixpoint>)"
);

const VECTOR: &str = concat!(
    "function<eager-inv>(float2int,loop(loop-rotate<header-duplication;no-prepare-for-lto>,loop-idiom,loop-deletion),\
    loop-simplify,lcssa,",
    pass!(AffinePass),
    ",",
    pass!(RerollPass),
    ",loop-distribute,loop-vectorize<no-interleave-forced-only;no-vectorize-forced-only>,infer-alignment,loop-load-elim,\
    instcombine<max-iterations=1;no-verify-fixpoint>,\
    simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;switch-to-lookup;no-keep-loops;hoist-common-insts;sink-common-insts>,\
    ",
    pass!(SlpPass),
    ",vector-combine,instcombine<max-iterations=1;no-verify-fixpoint>,loop-unroll<$LEVEL>,sroa<preserve-cfg>,infer-alignment,\
    instcombine<max-iterations=1;no-verify-fixpoint>,instsimplify,div-rem-pairs,\
    simplifycfg<switch-range-to-icmp;switch-to-arithmetic;speculate-unpredictables>),globaldce,constmerge"
);

unsafe extern "C" {
    /// Defined in `passes.cpp`.
    fn awsm_run_passes(
        module: LLVMModuleRef,
        machine: LLVMTargetMachineRef,
        pipeline: *const c_char,
        verify_each: bool,
    ) -> *mut c_char;
}

/// What makes memory intrinsics of loops and of rows of stores. They become calls, and no function takes pointers relative to a segment.
const MAKES_INTRINSICS: [&str; 2] = ["loop-idiom,", "memcpyopt,"];

/// Optimises a module whose memories are checked as `bounds` says.
pub(crate) fn optimise(module: &Module<'_>, machine: &Machine, effort: Effort, bounds: &[Bounds]) -> Result<(), CompileError> {
    let level = effort.level();
    // Accesses may trap by faulting.
    let exact = bounds.iter().any(|bounds| matches!(bounds, Bounds::Guard | Bounds::Segment));
    let fit = |pipeline: &str| {
        let unfit = MAKES_INTRINSICS.iter().filter(|_| bounds.contains(&Bounds::Segment));
        unfit.fold(pipeline.to_owned(), |pipeline, pass| pipeline.replace(pass, ""))
    };
    run(module, machine, "function(mem2reg)")?;
    quiet::fence(module)?;
    if level == OptLevel::O0 {
        return Ok(());
    }
    run(module, machine, INLINE)?;
    if exact {
        keep::hold(module)?;
    }
    let scalar = match effort {
        Effort::GivenUp => SCALAR_GIVEN_UP,
        Effort::Level(OptLevel::O0 | OptLevel::O1) => SCALAR_QUICK,
        Effort::Level(OptLevel::O2 | OptLevel::O3) => SCALAR,
    };
    run(module, machine, &fit(scalar))?;
    if exact {
        keep::release(module)?;
    }
    match level {
        OptLevel::O0 | OptLevel::O1 => {}
        OptLevel::O2 => run(module, machine, &fit(VECTOR).replace("$LEVEL", "O2"))?,
        OptLevel::O3 => run(module, machine, &fit(VECTOR).replace("$LEVEL", "O3"))?,
    }
    if exact { keep::pin(module) } else { Ok(()) }
}

/// Runs a pipeline, which may name passes of our own (`passes.h`) beside LLVM's.
pub(super) fn run(module: &Module<'_>, machine: &Machine, pipeline: &str) -> Result<(), CompileError> {
    let failed = |reason: String| CompileError::llvm("optimising", reason);
    let pipeline = CString::new(pipeline).map_err(|error| failed(error.to_string()))?;
    // SAFETY: module and target machine are live and belong to this thread; the pipeline ends with a NUL. Nothing is kept.
    let message =
        unsafe { awsm_run_passes(module.as_mut_ptr(), machine.machine.as_mut_ptr(), pipeline.as_ptr(), cfg!(debug_assertions)) };
    if message.is_null() {
        return Ok(());
    }
    // SAFETY: A message that is not null ends with a NUL, and is ours to dispose of, once.
    let reason = unsafe {
        let reason = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        reason
    };
    Err(failed(reason))
}
