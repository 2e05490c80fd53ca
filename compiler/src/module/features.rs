//! Which proposals are accepted, and which one a refused module would need.

use crate::error::CompileError;
use wasmparser::{Error, Validator, WasmFeatures};

/// What is accepted: WebAssembly 2.0, and of the proposals that became 3.0 those named here.
pub(super) const ACCEPTED: WasmFeatures = WasmFeatures::WASM2
    .union(WasmFeatures::RELAXED_SIMD)
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::GC_TYPES)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::MULTI_MEMORY)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::MEMORY64)
    .union(WasmFeatures::THREADS);

/// Says why `wasm`, which failed with `error`, is refused: because it needs a proposal that is not accepted, or because it is invalid.
pub(super) fn refusal(wasm: &[u8], error: &Error) -> CompileError {
    let offset = error.offset();
    if let Some(missing) = error.missing_wasm_feature() {
        return CompileError::Unsupported { feature: name(missing), offset };
    }
    // wasmparser does not always say so: ask whether more proposals would get past this place.
    let gets_further = |features| match Validator::new_with_features(features).validate_all(wasm) {
        Ok(_) => true,
        Err(other) => other.offset() > offset,
    };
    let mut candidates = WasmFeatures::all().difference(ACCEPTED).iter_names();
    match candidates.find(|(_, feature)| gets_further(ACCEPTED.union(*feature))) {
        Some((_, feature)) => CompileError::Unsupported { feature: format!("{} ({})", name(feature), error.message()), offset },
        None => CompileError::Invalid { offset, message: error.message().to_owned() },
    }
}

/// The proposal's name: `tail-call`.
fn name(features: WasmFeatures) -> String {
    let names: Vec<_> = features.iter_names().map(|(name, _)| name.to_lowercase().replace('_', "-")).collect();
    names.join(", ")
}
