//! Optimisation pipelines. They follow LLVM's own for the same levels, cut at the places where [`super::keep`] has to act:
//!
//! 1. simplify a little and inline, with loads of linear memory volatile;
//! 2. everything else on scalars and loops, with their values held;
//! 3. vectorise and unroll.

use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;

use super::machine::Machine;
use super::{keep, quiet};
use crate::error::CompileError;
use crate::options::OptLevel;

const INLINE: &str = "function<eager-inv>(sroa<modify-cfg>,early-cse<>,simplifycfg,instcombine<max-iterations=1;no-verify-fixpoint>),\
    cgscc(inline,function<eager-inv;no-rerun>(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,\
    instcombine<max-iterations=1;no-verify-fixpoint>)),elim-avail-extern,globaldce,function(adce)";

const SCALAR_QUICK: &str = "function<eager-inv>(early-cse<memssa>,simplifycfg,instcombine<max-iterations=1;no-verify-fixpoint>,\
    loop-mssa(loop-rotate<header-duplication;no-prepare-for-lto>,licm<allowspeculation>),loop(indvars,loop-deletion),sccp,bdce,\
    instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg)";

const SCALAR: &str = "function<eager-inv>(sroa<modify-cfg>,early-cse<memssa>,jump-threading,correlated-propagation,\
    simplifycfg<switch-range-to-icmp>,instcombine<max-iterations=1;no-verify-fixpoint>,aggressive-instcombine,simplifycfg<switch-range-to-icmp>,\
    reassociate,constraint-elimination,loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,\
    loop-rotate<header-duplication;no-prepare-for-lto>,licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>),\
    simplifycfg<switch-range-to-icmp>,instcombine<max-iterations=1;no-verify-fixpoint>,\
    loop(loop-idiom,indvars,extra-simple-loop-unswitch-passes,loop-deletion,loop-unroll-full),sroa<modify-cfg>,\
    mldst-motion<no-split-footer-bb>,gvn<>,sccp,bdce,instcombine<max-iterations=1;no-verify-fixpoint>,jump-threading,\
    correlated-propagation,adce,memcpyopt,dse,loop-mssa(licm<allowspeculation>),\
    simplifycfg<switch-range-to-icmp;switch-to-arithmetic;hoist-common-insts;sink-common-insts>,\
    instcombine<max-iterations=1;no-verify-fixpoint>)";

const VECTOR: &str = "function<eager-inv>(float2int,loop(loop-rotate<header-duplication;no-prepare-for-lto>,loop-idiom,loop-deletion),\
    loop-distribute,loop-vectorize<no-interleave-forced-only;no-vectorize-forced-only>,infer-alignment,loop-load-elim,\
    instcombine<max-iterations=1;no-verify-fixpoint>,\
    simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;switch-to-lookup;no-keep-loops;hoist-common-insts;sink-common-insts>,\
    slp-vectorizer,vector-combine,instcombine<max-iterations=1;no-verify-fixpoint>,loop-unroll<$LEVEL>,sroa<preserve-cfg>,infer-alignment,\
    instcombine<max-iterations=1;no-verify-fixpoint>,instsimplify,div-rem-pairs,\
    simplifycfg<switch-range-to-icmp;switch-to-arithmetic;speculate-unpredictables>),globaldce,constmerge";

/// Optimises a module. `exact` says that accesses may trap by faulting.
pub(crate) fn optimise(module: &Module<'_>, machine: &Machine, level: OptLevel, exact: bool) -> Result<(), CompileError> {
    run(module, machine, "function(mem2reg)")?;
    quiet::fence(module)?;
    if level == OptLevel::O0 {
        return Ok(());
    }
    run(module, machine, INLINE)?;
    if exact {
        keep::hold(module)?;
    }
    run(module, machine, if level == OptLevel::O1 { SCALAR_QUICK } else { SCALAR })?;
    if exact {
        keep::release(module)?;
    }
    match level {
        OptLevel::O0 | OptLevel::O1 => {}
        OptLevel::O2 => run(module, machine, &VECTOR.replace("$LEVEL", "O2"))?,
        OptLevel::O3 => run(module, machine, &VECTOR.replace("$LEVEL", "O3"))?,
    }
    if exact { keep::pin(module) } else { Ok(()) }
}

pub(super) fn run(module: &Module<'_>, machine: &Machine, passes: &str) -> Result<(), CompileError> {
    let options = PassBuilderOptions::create();
    options.set_loop_vectorization(true);
    options.set_loop_slp_vectorization(true);
    options.set_loop_interleaving(true);
    options.set_loop_unrolling(true);
    if cfg!(debug_assertions) {
        options.set_verify_each(true);
    }
    module.run_passes(passes, &machine.machine, options).map_err(|error| CompileError::llvm("optimising", error.to_string()))
}
