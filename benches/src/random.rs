//! Randomness that is the same everywhere: what examples are tested with is drawn from a seed.

/// The generator splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `end`, without it.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// From 0 to 1, without 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From `low` to `high`.
    pub(crate) fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit() as f32
    }

    /// Around 0, with about the standard deviation 1.
    pub(crate) fn normal(&mut self) -> f32 {
        // The sum of four uniform numbers: near enough, and the same on every machine.
        let sum: f32 = (0..4).map(|_| self.between(-1.0, 1.0)).sum();
        sum * 0.75_f32.sqrt()
    }
}
