//! The group `polybench`: the thirty kernels, at the size LARGE, as fast as native code.
//!
//! All of them come from one interleaved run, the same as `polybench --promised`; what that, or `make polybench`, measured on the same day is
//! used.

use anyhow::Result;

use super::Bench;
use crate::polybench::plan::Plan;
use crate::polybench::summary::{Ratios, Summary};
use crate::polybench::variant::Variant;

const ROUNDS: usize = 3;

/// The run that they all are about.
pub(super) fn measured() -> Result<Summary> {
    crate::polybench::run(&Plan::new("LARGE", &[], &Variant::PROMISED, ROUNDS)?)
}

fn ratios(bench: &mut Bench, variant: Variant, base: Variant) -> Result<Ratios> {
    bench.polybench()?.over(variant, base)
}

/// From C against `clang -O3`, on average.
pub(super) fn c_geomean(bench: &mut Bench) -> Result<f64> {
    Ok(ratios(bench, Variant::C_GUARD, Variant::Native)?.geometric)
}

/// The same: how many are about as fast.
pub(super) fn c_within(bench: &mut Bench) -> Result<f64> {
    Ok(ratios(bench, Variant::C_GUARD, Variant::Native)?.within as f64)
}

/// The same: the slowest.
pub(super) fn c_worst(bench: &mut Bench) -> Result<f64> {
    Ok(ratios(bench, Variant::C_GUARD, Variant::Native)?.worst)
}

/// From C against `clang -O3 -march=native`, on average.
pub(super) fn c_march_native_geomean(bench: &mut Bench) -> Result<f64> {
    Ok(ratios(bench, Variant::C_GUARD, Variant::NativeMarch)?.geometric)
}

/// From scalar WebAssembly of another compiler against `clang -O3`, on average.
pub(super) fn foreign_geomean(bench: &mut Bench) -> Result<f64> {
    Ok(ratios(bench, Variant::FOREIGN_GUARD, Variant::Native)?.geometric)
}

/// The same: how many are about as fast.
pub(super) fn foreign_within(bench: &mut Bench) -> Result<f64> {
    Ok(ratios(bench, Variant::FOREIGN_GUARD, Variant::Native)?.within as f64)
}

/// From WebAssembly of another compiler, with vectors, against `clang -O3`, on average.
pub(super) fn simd_geomean(bench: &mut Bench) -> Result<f64> {
    Ok(ratios(bench, Variant::SIMD_GUARD, Variant::Native)?.geometric)
}

/// The same: how many are about as fast.
pub(super) fn simd_within(bench: &mut Bench) -> Result<f64> {
    Ok(ratios(bench, Variant::SIMD_GUARD, Variant::Native)?.within as f64)
}

/// From C with explicit checks against `clang -O3`, on average.
pub(super) fn software_geomean(bench: &mut Bench) -> Result<f64> {
    Ok(ratios(bench, Variant::C_SOFTWARE, Variant::Native)?.geometric)
}
