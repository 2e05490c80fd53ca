//! A gate, one request after the other. What happens at once is in `interleavings`.

use std::time::{Duration, Instant};

use sledge_schedule::Gate;
use sledge_schedule::gate::Entrant;

/// A request whose client stays.
struct Request;

impl Entrant for Request {
    fn let_in(&mut self) {}

    fn is_gone(&self) -> bool {
        false
    }
}

#[test]
fn the_expectation_is_an_upper_percentile_and_follows_a_change() {
    // SplitMix64.
    let mut seed = 0x5eed_0041_u64;
    let mut random = move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
    };
    let gate = Gate::<Request>::new(None, None);
    for unit in [1_000, 50_000] {
        // Uniform between 0 and 100 units: the percentile is at 90.
        for _ in 0..5_000 {
            gate.observe(Duration::from_nanos(random() % 100 * unit));
        }
        let mut sum = 0;
        for _ in 0..1_000 {
            gate.observe(Duration::from_nanos(random() % 100 * unit));
            sum += gate.expected().as_nanos() as u64 / unit;
        }
        assert!((80..100).contains(&(sum / 1_000)), "{}", sum / 1_000);
    }
}

#[test]
fn no_more_are_taken_than_run_and_wait() {
    let gate = Gate::<Request>::new(Some(2), Some(1));
    assert!((0..3).all(|_| gate.take(Instant::now)));
    assert!(!gate.take(Instant::now));
    assert!(gate.leave(false).is_none());
    assert!(gate.take(Instant::now) && !gate.take(Instant::now));
    let without = Gate::<Request>::new(Some(1), None);
    assert!((0..1_000).all(|_| without.take(Instant::now)), "the server's limit is the only one");
}
