//! Suites of components that are not ours: all scripts in the folder COMPONENT_SUITE. `make test-components DIR=FOLDER`.
//!
//! Those are the tests of github.com/WebAssembly/component-model (its folder `test`) and of wasmtime (`tests/misc_testsuite/component-model`). What is refused by
//! name is left out, with that name; what fails beside it stands in `component-suite-failures.txt`.

mod expected;
mod suite;
mod summary;

use std::path::PathBuf;

use expected::Expected;
use sledge_tests::spec::{Mode, scripts_in};

#[test]
fn every_script() {
    let folder = PathBuf::from(std::env::var_os("COMPONENT_SUITE").expect("COMPONENT_SUITE: the folder of the suite"));
    let scripts = scripts_in(&folder).expect("scripts");
    assert!(!scripts.is_empty(), "no scripts in {}", folder.display());
    let modes = std::env::var("SPEC_MODES").unwrap_or_else(|_| "guard-O0".to_owned());
    for mode in modes.split_whitespace() {
        let mode = Mode::parse(mode).unwrap_or_else(|| panic!("{mode} is no mode"));
        // The folder may hold one of the suites only.
        let is_run = |name: &str| scripts.iter().any(|script| script.name == name);
        let expected = Expected::parse(include_str!("component-suite-failures.txt"), mode, is_run).expect("a list");
        suite::run(mode, scripts.clone(), expected).unwrap_or_else(|error| panic!("{mode}: {error:#}"));
    }
}
