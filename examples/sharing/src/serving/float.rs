//! Functions of real numbers that give the same bits natively and as WebAssembly, which those of the C library do not: only operations that
//! IEEE 754 defines, in a fixed order.

/// e to the power of `x`, to a few units of the last place of what matters here.
pub(super) fn exp(x: f32) -> f32 {
    const LIMIT: f32 = 80.0;
    let x = x.clamp(-LIMIT, LIMIT);
    // e^x = 2^whole * e^rest, and rest is small.
    let whole = (x * std::f32::consts::LOG2_E + if x < 0.0 { -0.5 } else { 0.5 }) as i32;
    let rest = x - whole as f32 * std::f32::consts::LN_2;
    let series = 1.0 + rest * (1.0 + rest * (0.5 + rest * (1.0 / 6.0 + rest * (1.0 / 24.0 + rest * (1.0 / 120.0)))));
    series * f32::from_bits(((whole + 127) as u32) << 23)
}

/// From any number to one between 0 and 1.
pub(super) fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// From any number to one between -1 and 1.
pub(super) fn tanh(x: f32) -> f32 {
    2.0 * logistic(2.0 * x) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_near_those_of_the_library() {
        for step in -2_000..=2_000 {
            let x = step as f32 / 100.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-5, "exp({x}) is {} in place of {}", exp(x), x.exp());
            assert!((tanh(x) - x.tanh()).abs() < 1e-5, "tanh({x}) is {} in place of {}", tanh(x), x.tanh());
        }
        assert!(exp(1e9).is_finite() && exp(-1e9) >= 0.0 && logistic(f32::NEG_INFINITY) >= 0.0);
    }
}
