//! Numbers that look random and are always the same.

/// A series of them (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// That of the thing of this kind with this number.
    pub(crate) fn of(kind: &str, number: u64) -> Random {
        Random(crate::digest::hash(kind.as_bytes(), number))
    }

    fn next(&mut self) -> u64 {
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

    /// True so many times of a hundred.
    pub(crate) fn is(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }
}

/// Numbers of which the first are drawn most: the second half as often as the first, the third a third as often (Zipf's law).
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    /// The weights of all numbers up to each.
    sums: Vec<u32>,
}

impl Zipf {
    /// That of the numbers below `count`.
    pub(crate) fn new(count: u32) -> Zipf {
        let mut sum = 0;
        let mut up_to = |number: u32| {
            sum += (1 << 24) / (number + 1);
            sum
        };
        Zipf { sums: (0..count).map(&mut up_to).collect() }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        let drawn = random.below(self.sums.last().copied().unwrap_or(1));
        self.sums.partition_point(|sum| *sum <= drawn) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_drawn_most() {
        let (zipf, mut random) = (Zipf::new(100), Random::of("test", 1));
        let mut counts = [0; 100];
        (0..20_000).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1);
        // The sum of 1/1 to 1/100 is 5.19.
        assert!((3_600..4_100).contains(&counts[0]) && (1_800..2_050).contains(&counts[1]), "{counts:?}");
        assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    }
}
