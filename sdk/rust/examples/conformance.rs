//! A reactor that does in a sandbox what the crate's tests do natively.

#[path = "../tests/scenario/mod.rs"]
mod scenario;

#[sledge::function]
fn conformance() -> &'static str {
    scenario::store();
    "the same"
}
