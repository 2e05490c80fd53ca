//! The clock of a Redis server, as this one knows it: until when a commit may be made that has been sent.
//!
//! A commit whose answer is lost is sent again under its id, which Redis remembers for a while. A copy of it that the network has held back for longer, or that comes after Redis' clock was set forwards,
//! would not be known any more, and be made twice. So each says until when it may be made, by Redis' own clock, and its id is remembered for [`COMMIT_KNOWN`](crate::kv::COMMIT_KNOWN) longer than that.
//! Redis answers `late` to what comes later, and says what time it is; so this server learns that, too: at its first commit, and when it is wrong.
//! A store that was emptied has forgotten all ids. So a commit also says for which incarnation of the store it is, a number by chance that goes with all else: another one answers `late`, too.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::kv::COMMIT_KNOWN;

/// How long after it was sent first a commit may be made. All tries together that are worth it take less.
const MADE_WITHIN: Duration = Duration::from_secs(30);
/// By how much the clock may be set back before what was too late is not.
const SET_BACK_MAX: Duration = COMMIT_KNOWN;
/// For how long it is believed what was learnt: clocks go at different speeds.
const BELIEVED: Duration = Duration::from_secs(600);

static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What is known of the clock.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    known: Arc<Known>,
    made_within: Duration,
    set_back_max: Duration,
}

#[derive(Debug, Default)]
struct Known {
    /// How far it is before this process' own, in milliseconds.
    ahead_ms: AtomicI64,
    /// By the latter, until when that is believed.
    until_ms: AtomicU64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::of(MADE_WITHIN, SET_BACK_MAX)
    }
}

impl Clock {
    /// One by which a commit may be made for so long, and that is set back by no more than that.
    pub(super) fn of(made_within: Duration, set_back_max: Duration) -> Clock {
        Clock { known: Arc::default(), made_within, set_back_max }
    }

    /// The time before which the clock does not come any more, when it shows that one: a commit that may be made until an earlier one was made by now, or never is.
    pub(super) fn least_ms(&self, shown_ms: u64) -> u64 {
        shown_ms.saturating_sub(ms(self.set_back_max))
    }

    /// Until when a commit may be made that is sent now, in milliseconds since 1970 by Redis' clock; zero where that is not known.
    pub(super) fn not_after_ms(&self) -> u64 {
        self.not_after_ms_at(own_ms())
    }

    /// Redis has said what time it is.
    pub(super) fn learn(&self, redis_ms: u64) {
        self.learn_at(redis_ms, own_ms());
    }

    fn not_after_ms_at(&self, own_ms: u64) -> u64 {
        // Relaxed: parts of what was learnt at different times are as good as either; Redis says when they are not.
        if own_ms >= self.known.until_ms.load(Ordering::Relaxed) {
            return 0;
        }
        let now_ms = own_ms.saturating_add_signed(self.known.ahead_ms.load(Ordering::Relaxed));
        now_ms.saturating_add(ms(self.made_within))
    }

    fn learn_at(&self, redis_ms: u64, own_ms: u64) {
        let ahead_ms = i64::try_from(redis_ms).unwrap_or(i64::MAX).saturating_sub_unsigned(own_ms);
        self.known.ahead_ms.store(ahead_ms, Ordering::Relaxed);
        self.known.until_ms.store(own_ms.saturating_add(ms(BELIEVED)), Ordering::Relaxed);
    }
}

/// This process' own clock, which is never set.
fn own_ms() -> u64 {
    ms(BEGIN.elapsed())
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_believed_for_a_while_and_goes_on_with_time() {
        let clock = Clock::default();
        assert_eq!(clock.not_after_ms_at(5), 0, "nothing is known");
        clock.learn_at(1_000_000, 5);
        assert_eq!(clock.not_after_ms_at(5), 1_030_000);
        assert_eq!(clock.not_after_ms_at(1_005), 1_031_000);
        clock.learn_at(7, 1_005);
        assert_eq!(clock.not_after_ms_at(1_005), 30_007, "also where it is behind");
        assert_eq!(clock.not_after_ms_at(1_005 + ms(BELIEVED)), 0);
        assert_eq!([clock.least_ms(1_090_001), clock.least_ms(7)], [1_030_001, 0], "it may be set back by a minute");
    }
}
