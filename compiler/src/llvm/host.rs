//! Set-up of LLVM, once per process, and what it knows of the processor it runs on.

use std::ffi::CString;
use std::sync::Once;

use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::targets::{InitializationConfig, Target, TargetMachine};

/// Options that LLVM offers nowhere else. Most keep an access from losing its trap (see [`super::keep`]):
/// sinking moves a load behind a branch that may not be taken, narrowing makes it touch fewer bytes. The last three bound the time that functions with
/// thousands of basic blocks take (NOTES.md).
const OPTIONS: [&str; 13] = [
    "awsm",
    "-instcombine-code-sinking=false",
    "-disable-select-optimize",
    "-x86-cmov-converter-force-mem-operand=false", // would branch around loads that it finds in conditional moves
    "-combiner-reduce-load-op-store-width=false",
    "-combiner-shrink-load-replace-store-with-store=false",
    "-indvars-widen-indvars=false", // would hide how often a loop runs behind masks of what it has widened; `affine.cpp` widens
    "-aarch64-enable-global-isel-at-O=-1", // loses parameters of tail calls in functions that are not optimised
    "-disable-mergeicmps",          // would call memcmp
    "-simplifycfg-hoist-loads-stores-with-cond-faulting=false",
    "-grow-region-complexity-budget=5000", // blocks and edges that register allocation looks at to split a value's life; LLVM's is 10,000
    "-late-remat-update-threshold=16", // copies of a constant that become constants before its life is found anew; LLVM's is 100
    "-cgpp-huge-func=1000",            // blocks from which addresses and extensions are prepared once, not until nothing changes
];

/// Makes LLVM ready. Cheap when it was called before.
pub(super) fn initialise() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let config = InitializationConfig { disassembler: false, ..InitializationConfig::default() };
        Target::initialize_x86(&config);
        Target::initialize_aarch64(&config);
        // None of these holds a NUL.
        let options: Vec<CString> = OPTIONS.iter().filter_map(|option| CString::new(*option).ok()).collect();
        let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let overview = c"";
        // SAFETY: `pointers` are as many NUL-terminated strings as given, alive during the call; LLVM copies what it keeps. The options are
        // process-wide and not synchronised: `Once` lets no thread use LLVM through this crate before they are set.
        unsafe { LLVMParseCommandLineOptions(pointers.len() as i32, pointers.as_ptr(), overview.as_ptr()) };
    });
}

/// Makes LLVM say on standard error, when this process dies, which pass it was running on what.
pub(crate) fn say_where_it_fails() {
    inkwell::support::enable_llvm_pretty_stack_trace();
}

/// LLVM's version.
pub(crate) fn version() -> (u32, u32, u32) {
    inkwell::support::get_llvm_version()
}

/// LLVM's name of this processor.
pub(super) fn cpu_name() -> String {
    TargetMachine::get_host_cpu_name().to_string()
}

/// LLVM's names of the features that this processor and its operating system have.
pub(super) fn cpu_features() -> Vec<String> {
    let features = TargetMachine::get_host_cpu_features().to_string();
    features.split(',').filter_map(|feature| feature.strip_prefix('+')).map(str::to_owned).collect()
}
