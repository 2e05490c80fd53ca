//! A component's imports and exports in WIT.

use std::panic::{AssertUnwindSafe, catch_unwind};

use awsm_abi::limits::WORLD_BYTES_MAX;
use wit_component::WitPrinter;
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{PackageId, Resolve};

/// The package of interfaces that every reader of a world knows.
const KNOWN_NAMESPACE: &str = "wasi";

/// The world of a component that is valid; none where it has no form in WIT, or a longer one than an artifact says.
///
/// Beside the world come the interfaces that it names, other than those of WASI, if there is room for them.
pub(crate) fn text(component: &[u8]) -> Option<String> {
    // Nothing depends on the text. What reads it is not ours, and a panic there must not refuse what can be compiled.
    let text = catch_unwind(AssertUnwindSafe(|| {
        let DecodedWasm::Component(resolve, world) = decode(component).ok()? else { return None };
        let package = resolve.worlds[world].package?;
        let others: Vec<PackageId> = resolve
            .packages
            .iter()
            .filter(|(id, other)| *id != package && other.name.namespace != KNOWN_NAMESPACE)
            .map(|(id, _)| id)
            .collect();
        print(&resolve, package, &others).or_else(|| print(&resolve, package, &[]))
    }));
    text.ok()?
}

fn print(resolve: &Resolve, package: PackageId, others: &[PackageId]) -> Option<String> {
    let mut printer = WitPrinter::default();
    printer.emit_docs(false);
    printer.print(resolve, package, others).ok()?;
    let text = printer.output.to_string();
    (text.len() <= WORLD_BYTES_MAX).then_some(text)
}
