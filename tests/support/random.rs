//! Numbers from a seed: the same on every machine, today and later.

/// A generator of numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator for one purpose: those of other purposes, with the same seed, have nothing to do with it.
    pub fn new(seed: u64, purpose: &str) -> Random {
        let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
        for byte in purpose.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut random = Random(hash);
        random.bits();
        random
    }

    /// 64 bits, each of them random.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not zero.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several; there must be one.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.bits().to_le_bytes()).take(count).collect()
    }

    /// A 32-bit number of the kind that finds mistakes.
    pub fn i32(&mut self) -> i32 {
        match self.below(8) {
            0 => self.bits() as i32,
            1 => {
                *self.pick(&[0, 1, -1, i32::MIN, i32::MAX, i32::MIN + 1, 2, -2, 0xffff, 0x1_0000, 0xff, 0x80, 0x8000, 31, 32, 33])
            }
            2 => 1_i32.wrapping_shl(self.bits() as u32).wrapping_add(self.below(3) as i32 - 1),
            // About the ends of memories of one to four pages.
            3 => (65536 * (1 + self.below(4) as i32)) - self.below(24) as i32,
            4 => -(self.below(20) as i32),
            _ => self.below(100) as i32,
        }
    }

    /// The same with 64 bits.
    pub fn i64(&mut self) -> i64 {
        match self.below(6) {
            0 => self.bits() as i64,
            1 => *self.pick(&[0, 1, -1, i64::MIN, i64::MAX, i64::MIN + 1, 0xffff_ffff, 0x1_0000_0000, 0x8000_0000, 63, 64, 65]),
            2 => 1_i64.wrapping_shl(self.bits() as u32).wrapping_add(self.below(3) as i64 - 1),
            3 => i64::from(self.i32()) | ((self.bits() as i64) << 32),
            _ => i64::from(self.i32()),
        }
    }

    /// Bits of a 32-bit float.
    pub fn f32(&mut self) -> u32 {
        match self.below(4) {
            0 => self.bits() as u32,
            1 => *self.pick(&[
                0,
                0x8000_0000,
                0x3f80_0000,
                0xbf80_0000,
                0x7f80_0000,
                0xff80_0000,
                0x7fc0_0000,
                0xffc0_0000,
                0x7fa0_0000,
                1,
                0x8000_0001,
                0x007f_ffff,
                0x0080_0000,
                0x7f7f_ffff,
                0x4f00_0000,
                0xcf00_0000,
                0x4f80_0000,
                0x5f00_0000,
                0x5f80_0000,
                0x3f00_0000,
                0x4b00_0001,
            ]),
            _ => ((self.below(2000) as f32 - 1000.0) / 8.0).to_bits(),
        }
    }

    /// Bits of a 64-bit float.
    pub fn f64(&mut self) -> u64 {
        match self.below(5) {
            0 => self.bits(),
            1 => *self.pick(&[
                0,
                1 << 63,
                0x3ff0_0000_0000_0000,
                0x7ff0_0000_0000_0000,
                0xfff0_0000_0000_0000,
                0x7ff8_0000_0000_0000,
                0x7ff4_0000_0000_0000,
                1,
                0x000f_ffff_ffff_ffff,
                0x7fef_ffff_ffff_ffff,
                0x41e0_0000_0000_0000,
                0xc1e0_0000_0000_0000,
                0xc1e0_0000_0020_0000,
                0x41f0_0000_0000_0000,
                0x43e0_0000_0000_0000,
                0x43f0_0000_0000_0000,
                0x3fe0_0000_0000_0000,
                0x4330_0000_0000_0001,
            ]),
            2 => f64::from(f32::from_bits(self.f32())).to_bits(),
            _ => ((self.below(2000) as f64 - 1000.0) / 8.0).to_bits(),
        }
    }
}
