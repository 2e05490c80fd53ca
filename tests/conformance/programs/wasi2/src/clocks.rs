//! `wasi:clocks` and `wasi:io/poll`

use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::io::poll;

use crate::say;

const MILLISECOND: u64 = 1_000_000;

pub(crate) fn all() {
    let (one, other) = (monotonic_clock::now(), monotonic_clock::now());
    say("monotonic-clock now does not go back", one <= other);
    say("monotonic-clock resolution is some", monotonic_clock::resolution() > 0);
    let before = monotonic_clock::now();
    monotonic_clock::subscribe_duration(10 * MILLISECOND).block();
    say("subscribe-duration takes that long", monotonic_clock::now() - before >= 10 * MILLISECOND);
    let until = monotonic_clock::now() + 10 * MILLISECOND;
    monotonic_clock::subscribe_instant(until).block();
    say("subscribe-instant takes until then", monotonic_clock::now() >= until);
    say("subscribe-instant in the past is ready", monotonic_clock::subscribe_instant(0).ready());
    say("subscribe-duration of nothing is ready", monotonic_clock::subscribe_duration(0).ready());
    let late = monotonic_clock::subscribe_duration(u64::MAX);
    say("subscribe-duration of centuries is not ready", late.ready());
    let soon = monotonic_clock::subscribe_duration(MILLISECOND);
    let past = monotonic_clock::subscribe_instant(1);
    say("poll finds the past at once", poll::poll(&[&late, &past]));
    say("poll waits for what comes first", poll::poll(&[&late, &soon]));
    say("poll finds the same one twice", poll::poll(&[&past, &late, &past]));
    let wall = wall_clock::now();
    say("wall-clock now is after 2020", wall.seconds > 1_577_836_800);
    say("wall-clock nanoseconds are a part of a second", wall.nanoseconds < 1_000_000_000);
    let resolution = wall_clock::resolution();
    say("wall-clock resolution is some", resolution.seconds > 0 || resolution.nanoseconds > 0);
}
