//! How long microtasks take that begin at a place of a function, where an invocation came to it for the n-th time in a row.
//!
//! In a loop that reads and then computes only the last time is followed by something long: the number of the time tells it from the others, where the loop is as long as it was before.
//!
//! Averages are of logarithms: of eight microtasks that begin at one place, seven of 60 us and one of 10 ms, the average is 113 us and not 1.3 ms. The one that takes longer
//! goes on in the next classes as it runs.

use std::time::Duration;

use super::{BOUNDS, CLASSES, Site};
use crate::turns::nanoseconds;

/// Places of a function, and times in a row, that are told apart; others share an average with one of these.
const SPOTS: usize = 256;
/// The bits of a number above those that count `SPOTS`.
const SPOT_SHIFT: u32 = u32::BITS - SPOTS.trailing_zeros();
/// Times in a row that are told apart; all further ones are one.
const TIMES_MAX: u8 = 15;
/// How many microtasks an average goes over; an annotation counts as so many.
const AVERAGED: u8 = 8;
/// A step of a logarithm to the base of two.
const OCTAVE: u32 = 256;
/// By how much an average has to go beyond the end of its class before the class changes: half an octave.
const HYSTERESIS: u32 = OCTAVE / 2;

/// The averages of one function.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    spots: Box<[Average]>,
}

/// A place in a guest, and how often in a row its invocation has begun a microtask there before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) site: Site,
    pub(super) times: u8,
}

impl Spot {
    /// Where the invocation is after that, when it has come to `site`.
    pub(super) fn then(self, site: Site) -> Spot {
        let times = if site == self.site { (self.times + 1).min(TIMES_MAX) } else { 0 };
        Spot { site, times }
    }
}

/// An average of logarithms of nanoseconds, and the class that it belongs to.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    log: u16,
    count: u8,
    class: u8,
}

impl Bursts {
    /// The class of the next microtask that begins there. What nothing is known of is taken to be short; it goes on as it runs.
    pub(super) fn class_at(&mut self, spot: Spot, declared: Option<Duration>) -> u8 {
        let average = self.at(spot);
        if let Some(declared) = declared.filter(|_| average.count == 0) {
            *average = Average { log: log(nanoseconds(declared)), count: AVERAGED, class: super::class_of(declared) };
        }
        average.class
    }

    /// A microtask that began there has taken so many nanoseconds.
    pub(super) fn observe(&mut self, spot: Spot, took: u64) {
        self.at(spot).add(took);
    }

    fn at(&mut self, spot: Spot) -> &mut Average {
        if self.spots.is_empty() {
            self.spots = vec![Average::default(); SPOTS].into();
        }
        // Multiplied so that neighbouring numbers and multiples do not meet.
        let number = spot.site.0.wrapping_mul(u32::from(TIMES_MAX) + 1).wrapping_add(spot.times.into());
        let index = (number.wrapping_mul(0x9e37_79b9) >> SPOT_SHIFT) as usize;
        &mut self.spots[index]
    }
}

impl Average {
    fn add(&mut self, took: u64) {
        let log = u32::from(log(took));
        let old = u32::from(self.log);
        self.count = (self.count + 1).min(AVERAGED);
        let count = u32::from(self.count);
        // Between the two, so it fits.
        let new = (old * (count - 1) + log) / count;
        self.log = new as u16;
        if count == 1 {
            self.class = class_beyond(new, 0, 0);
        } else {
            let up = class_beyond(new, HYSTERESIS, 0);
            let down = class_beyond(new, 0, HYSTERESIS);
            self.class = self.class.clamp(up, down);
        }
    }
}

/// The class of such an average, where the ends of classes are so much higher or lower.
fn class_beyond(average: u32, higher: u32, lower: u32) -> u8 {
    let bounds = BOUNDS.map(|bound| u32::from(log(nanoseconds(bound))));
    let class = bounds.iter().filter(|bound| average + lower > **bound + higher).count();
    debug_assert!(class < CLASSES);
    class as u8
}

/// The logarithm to the base of two, in 256 steps an octave.
fn log(nanos: u64) -> u16 {
    let nanos = nanos.max(1);
    let whole = nanos.ilog2();
    let part = if whole >= 8 { nanos >> (whole - 8) } else { nanos << (8 - whole) };
    // Less than 64 octaves.
    (whole * OCTAVE + (part as u32 & 0xff)) as u16
}
