//! `wasi:clocks`

use futures::join;
use wasip3::clocks::{monotonic_clock, system_clock};

use crate::say;

const MILLISECOND: u64 = 1_000_000;

pub(crate) async fn all() {
    let (one, other) = (monotonic_clock::now(), monotonic_clock::now());
    say("monotonic-clock now does not go back", one <= other);
    say("monotonic-clock get-resolution is some", monotonic_clock::get_resolution() > 0);
    let before = monotonic_clock::now();
    monotonic_clock::wait_for(10 * MILLISECOND).await;
    say("wait-for takes that long", monotonic_clock::now() - before >= 10 * MILLISECOND);
    let until = monotonic_clock::now() + 10 * MILLISECOND;
    monotonic_clock::wait_until(until).await;
    say("wait-until takes until then", monotonic_clock::now() >= until);
    monotonic_clock::wait_for(0).await;
    monotonic_clock::wait_until(0).await;
    let before = monotonic_clock::now();
    join!(
        monotonic_clock::wait_for(300 * MILLISECOND),
        monotonic_clock::wait_for(200 * MILLISECOND),
        monotonic_clock::wait_for(300 * MILLISECOND)
    );
    let took = monotonic_clock::now() - before;
    say("three waits go on at a time", took >= 300 * MILLISECOND && took < 700 * MILLISECOND);
    let now = system_clock::now();
    say("system-clock now is after 2020", now.seconds > 1_577_836_800);
    say("system-clock nanoseconds are a part of a second", now.nanoseconds < 1_000_000_000);
    say("system-clock get-resolution is some", system_clock::get_resolution() > 0);
}
