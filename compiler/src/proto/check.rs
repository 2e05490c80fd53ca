//! Whether what was written is WIT: wit-parser reads it, and each package becomes a component, which wasmparser validates.

use wasmparser::{Validator, WasmFeatures};
use wit_parser::Resolve;

use super::error::ProtoError;

/// Checks a document with all packages.
///
/// # Errors
/// Whatever is wrong with it.
pub(super) fn check(document: &str) -> Result<(), ProtoError> {
    let invalid = |what: &str, error: &dyn std::fmt::Display| ProtoError::Invalid(format!("{what}: {error}"));
    let mut resolve = Resolve::default();
    resolve.push_str("proto.wit", document).map_err(|error| invalid("wit-parser", &format!("{error:#}")))?;
    for (id, package) in resolve.packages.iter() {
        let name = package.name.to_string();
        let component = wit_component::encode(&resolve, id, true).map_err(|error| invalid(&name, &format!("{error:#}")))?;
        Validator::new_with_features(WasmFeatures::all()).validate_all(&component).map_err(|error| invalid(&name, &error))?;
    }
    Ok(())
}
