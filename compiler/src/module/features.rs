//! Which proposals are accepted, and which one a refused module would need.

use crate::error::CompileError;
use crate::options::CompileOptions;
use awsm_abi::text;
use wasmparser::{Error, Operator, Validator, WasmFeatures};

/// What the options accept. Of GC that is what types of functions need: recursion groups, subtypes and the types of null; the rest is refused when
/// it is met ([`is_gc`], [`super::types`]).
pub(super) fn accepted(options: &CompileOptions) -> WasmFeatures {
    ACCEPTED.union(if options.legacy_exceptions { WasmFeatures::LEGACY_EXCEPTIONS } else { WasmFeatures::empty() })
}

/// What is accepted: WebAssembly 2.0, and of the proposals that became 3.0 those named here.
const ACCEPTED: WasmFeatures = WasmFeatures::WASM2
    .union(WasmFeatures::RELAXED_SIMD)
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::GC_TYPES)
    .union(WasmFeatures::GC)
    .union(WasmFeatures::FUNCTION_REFERENCES)
    .union(WasmFeatures::EXCEPTIONS)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::MULTI_MEMORY)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::MEMORY64)
    .union(WasmFeatures::THREADS);

/// Whether an operator is one of those that GC brings.
pub(super) fn is_gc(op: &Operator<'_>) -> bool {
    macro_rules! is_gc {
        ($( @$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })? => $visit:ident ($($ann:tt)*))*) => {
            match op {
                $( Operator::$op { .. } => stringify!($proposal) == "gc", )*
                _ => false,
            }
        };
    }
    wasmparser::for_each_operator!(is_gc)
}

/// Says why `wasm`, which failed with `error`, is refused: because it needs a proposal that is not accepted, or because it is invalid.
pub(super) fn refusal(wasm: &[u8], accepted: WasmFeatures, error: &Error) -> CompileError {
    let offset = error.offset();
    if let Some(missing) = error.missing_wasm_feature() {
        return CompileError::Unsupported { feature: name(missing), offset };
    }
    // wasmparser does not always say so: ask whether more proposals would get past this place.
    let gets_further = |features| match Validator::new_with_features(features).validate_all(wasm) {
        Ok(_) => true,
        Err(other) => other.offset() > offset,
    };
    let mut candidates = WasmFeatures::all().difference(accepted).iter_names();
    match candidates.find(|(_, feature)| gets_further(accepted.union(*feature))) {
        Some((_, feature)) => {
            CompileError::Unsupported { feature: format!("{} ({})", name(feature), text::line(error.message())), offset }
        }
        None => CompileError::invalid(offset, error.message()),
    }
}

/// The proposal's name, `tail-call`, and what to do about it where something can be done.
fn name(features: WasmFeatures) -> String {
    let names: Vec<_> = features.iter_names().map(|(name, _)| name.to_lowercase().replace('_', "-")).collect();
    let advice = if features.contains(WasmFeatures::LEGACY_EXCEPTIONS) { LEGACY_ADVICE } else { "" };
    names.join(", ") + advice
}

/// What to do about exceptions in the form that compilers wrote before the proposal was finished.
const LEGACY_ADVICE: &str = ": compile again with `-mllvm -wasm-use-legacy-eh=false` (Emscripten: `-sWASM_LEGACY_EXCEPTIONS=0`), or give `--legacy-exceptions`";
