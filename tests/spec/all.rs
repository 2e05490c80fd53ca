//! The specification suite in every mode: bounds checks by optimisation levels, and code of functions that take too long to compile otherwise.
//! `make test-spec-all`; about an hour on two cores. What continuous integration runs of it is in `main.rs`.
//!
//! `SPEC_MODES="guard-O2 software-O3"` runs these alone.

mod core_modules;
mod expected;
mod suite;
mod summary;

/// What keeps accesses inside their memory. One line a mode.
const BOUNDS: &[&str] = &["guard", "segment", "software"];

/// How hard the compiler tries.
const LEVELS: &[&str] = &["O0", "O2", "O3"];

/// Functions that take too long, with the quick pipeline and the fast allocator of registers.
const GIVEN_UP: &str = "guard-O3-given-up";

#[test]
fn every_mode() {
    let all = BOUNDS.iter().flat_map(|bounds| LEVELS.iter().map(move |level| format!("{bounds}-{level}")));
    let modes: Vec<String> = match std::env::var("SPEC_MODES") {
        Ok(some) => some.split_whitespace().map(str::to_string).collect(),
        Err(_) => all.chain([GIVEN_UP.to_owned()]).collect(),
    };
    let results: Vec<_> = modes.iter().map(|mode| (mode, core_modules::run(mode, &[""]))).collect();
    for (mode, result) in &results {
        println!("{mode}: {}", result.as_ref().map_or_else(|error| format!("{error:#}"), |()| "all as specified".to_string()));
    }
    assert!(results.iter().all(|(_, result)| result.is_ok()), "see above");
}
