//! Numbers that look random and are always the same.

/// A series of them (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    /// That of the thing of this kind with this number.
    pub(crate) fn of(kind: &str, number: u32) -> Random {
        Random(crate::digest::hash(kind.as_bytes(), u64::from(number)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `count` numbers from 0.
    pub(crate) fn below(&mut self, count: u32) -> u32 {
        (((self.next() >> 32) * u64::from(count)) >> 32) as u32
    }

    /// One from `first` to `last`.
    pub(crate) fn between(&mut self, first: u32, last: u32) -> u32 {
        first + self.below(last - first + 1)
    }

    /// Small numbers with a mean of 0, from `-limit` to `limit`, most of them near 0.
    pub(crate) fn weights(&mut self, count: usize, limit: i8) -> Vec<u8> {
        let width = u32::from(limit.unsigned_abs());
        (0..count).map(|_| (self.between(0, width) as i32 - self.between(0, width) as i32) as i8 as u8).collect()
    }
}
