//! Gradual deployments: a part of a function's requests goes to its next version, the *canary*, until that is served whole or given up.
//!
//! The routes of the version that is served say which requests go to the canary ([`Split`]). What becomes of the requests of both is counted ([`Counts`]). Where the canary
//! is [worse](is_worse), a message says so, once.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::Sender;

use http_body_util::Either;
use hyper::header::{HeaderMap, HeaderName};
use serde::Serialize;

use super::handled::Handled;
use super::router::Route;
use super::step::Step;
use crate::invoke::function::Function;
use crate::outcome::{Failure, Fault};

/// Requests of a canary before it is compared.
pub const REQUESTS_MIN: u64 = 200;

/// Which requests go to a canary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// How many of a hundred.
    pub percent: u8,
    /// The header whose value decides: requests with the same one go to the same version. Those without it, and all where there is none, are drawn.
    pub sticky: Option<HeaderName>,
}

impl Share {
    /// Whether a request with these headers goes to the canary. A larger share takes all that a smaller one took.
    fn takes(&self, headers: &HeaderMap) -> bool {
        let place = match self.sticky.as_ref().and_then(|name| headers.get(name)) {
            Some(value) => place_of(value.as_bytes()),
            None => fastrand::u8(..100),
        };
        place < self.percent
    }
}

/// A number below 100 that is always the same for these bytes, and as often one as another.
fn place_of(bytes: &[u8]) -> u8 {
    let [first, second, third, fourth, ..] = *blake3::hash(bytes).as_bytes();
    (u32::from_le_bytes([first, second, third, fourth]) % 100) as u8
}

/// How many requests a version has answered, and how many of them badly: it failed, or its status was 500 or above. What the server or the client was at fault for says
/// nothing of a version, and is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All.
    pub requests: u64,
    /// Those that failed.
    pub failures: u64,
}

/// Whether a canary fails so much more often than the present version that it is to be given up: after [`REQUESTS_MIN`] requests, by a point more than twice as often.
#[must_use]
pub const fn is_worse(present: Tally, canary: Tally) -> bool {
    // Of a present version that has answered nothing, nothing is known to have failed.
    let all = if present.requests == 0 { 1 } else { present.requests as u128 };
    // failures / requests > 2 * present.failures / all + 1 / 100, without divisions.
    let bound = (canary.requests as u128).saturating_mul(200 * present.failures as u128 + all);
    canary.requests >= REQUESTS_MIN && (100 * canary.failures as u128).saturating_mul(all) > bound
}

/// What one version has answered.
#[derive(Debug, Default)]
struct Counter {
    requests: AtomicU64,
    failures: AtomicU64,
}

impl Counter {
    fn tally(&self) -> Tally {
        // Failures first, so that requests that end meanwhile seldom make them too many. Nothing relies on that.
        let failures = self.failures.load(Relaxed);
        Tally { requests: self.requests.load(Relaxed), failures }
    }
}

/// What both versions have answered since the gradual deployment began.
#[derive(Debug)]
pub struct Counts {
    present: Counter,
    canary: Counter,
    is_told: AtomicBool,
    worse: Sender<()>,
}

impl Counts {
    /// Of versions that have answered nothing yet. `worse` gets a message where the canary is worse.
    #[must_use]
    pub fn new(worse: Sender<()>) -> Counts {
        Counts { present: Counter::default(), canary: Counter::default(), is_told: AtomicBool::new(false), worse }
    }

    /// Of the version that is served, and of the canary.
    #[must_use]
    pub fn tallies(&self) -> [Tally; 2] {
        [self.present.tally(), self.canary.tally()]
    }

    fn note(&self, side: Side, has_failed: bool) {
        let counter = match side {
            Side::Present => &self.present,
            Side::Canary => &self.canary,
        };
        counter.requests.fetch_add(1, Relaxed);
        if has_failed {
            counter.failures.fetch_add(1, Relaxed);
        }
        if side == Side::Present {
            return;
        }
        let [present, canary] = self.tallies();
        if is_worse(present, canary) && !self.is_told.swap(true, Relaxed) {
            // Nothing waits for it where the deployment is over.
            let _ = self.worse.send(());
        }
    }
}

/// One of the two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that is served.
    Present,
    /// The canary.
    Canary,
}

/// What a route has to do with a gradual deployment.
#[derive(Debug)]
pub struct Split<F = Function> {
    counts: Arc<Counts>,
    /// Where some of the requests go instead: from the present version to the canary.
    canary: Option<(Share, Arc<Route<F>>)>,
}

impl<F> Split<F> {
    /// Of a route of the canary.
    #[must_use]
    pub const fn canary(counts: Arc<Counts>) -> Split<F> {
        Split { counts, canary: None }
    }

    /// Of a route of the present version: that share of its requests goes to that route of the canary.
    #[must_use]
    pub const fn present(counts: Arc<Counts>, share: Share, canary: Arc<Route<F>>) -> Split<F> {
        Split { counts, canary: Some((share, canary)) }
    }
}

/// Has a request with these headers go to a canary in place of what was found, if it is one of those that do.
pub(super) fn choose<F>(found: &mut Arc<Route<F>>, headers: &HeaderMap) {
    let canary = found.split.as_ref().and_then(|split| split.canary.as_ref());
    if let Some((_, canary)) = canary.filter(|(share, _)| share.takes(headers)) {
        *found = Arc::clone(canary);
    }
}

/// Counts a request of a gradual deployment when it is known what became of it. Dropped before that, it is none of these: the client has gone.
#[derive(Debug)]
pub(super) struct Counting {
    counts: Arc<Counts>,
    side: Side,
}

impl Counting {
    /// For a request on that route; none where it has nothing to do with one.
    pub(super) fn of<F>(route: &Route<F>) -> Option<Counting> {
        let split = route.split.as_ref()?;
        let side = if split.canary.is_some() { Side::Present } else { Side::Canary };
        Some(Counting { counts: Arc::clone(&split.counts), side })
    }

    /// The function has answered, or failed.
    pub(super) fn note(self, failure: Option<&Failure>) {
        match failure.map(Failure::fault) {
            None => self.counts.note(self.side, false),
            Some(Fault::Function) => self.counts.note(self.side, true),
            Some(Fault::Client | Fault::Host) => {}
        }
    }

    /// Counts it by its answer, and one that streams at its end.
    fn note_answer(self, mut handled: Handled) -> Handled {
        let Handled { response, failure, .. } = &mut handled;
        let says_failure = response.status().is_server_error();
        match response.body_mut() {
            _ if failure.is_some() => self.note(failure.as_ref()),
            Either::Right(streamed) if !says_failure => streamed.count(self),
            _ => self.counts.note(self.side, says_failure),
        }
        handled
    }

    /// Counts what comes of a request.
    pub(super) fn watch(self, step: Step<Handled>) -> Step<Handled> {
        match step {
            Step::Now(handled) => Step::Now(self.note_answer(handled)),
            Step::Later(handled) => Step::later(async move { self.note_answer(handled.await) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use hyper::header::HeaderValue;

    use super::*;

    fn tally(requests: u64, failures: u64) -> Tally {
        Tally { requests, failures }
    }

    #[test]
    fn a_canary_is_worse_by_a_point_more_than_twice_the_failures() {
        // Without failures before: more than one in a hundred.
        assert!(!is_worse(tally(1_000, 0), tally(200, 2)));
        assert!(is_worse(tally(1_000, 0), tally(200, 3)));
        assert!(is_worse(tally(0, 0), tally(200, 3)) && !is_worse(tally(0, 0), tally(200, 2)));
        // With 5 % before: more than 11 %.
        assert!(!is_worse(tally(1_000, 50), tally(1_000, 110)));
        assert!(is_worse(tally(1_000, 50), tally(1_000, 111)));
        // Not before there are enough.
        assert!(!is_worse(tally(1_000, 0), tally(199, 199)));
        assert!(!is_worse(tally(u64::MAX, u64::MAX), tally(u64::MAX, u64::MAX)));
    }

    #[test]
    fn the_same_header_goes_to_the_same_version_and_stays_there_when_the_share_grows() {
        let name = HeaderName::from_static("x-user");
        let share = |percent| Share { percent, sticky: Some(name.clone()) };
        let headers = |user: usize| HeaderMap::from_iter([(name.clone(), HeaderValue::from(user))]);
        let taken = |percent| (0..1_000).filter(|user| share(percent).takes(&headers(*user))).collect::<Vec<_>>();
        let (few, many) = (taken(10), taken(50));
        assert!((60..140).contains(&few.len()) && (430..570).contains(&many.len()), "{} {}", few.len(), many.len());
        assert!(few.iter().all(|user| many.contains(user)) && few == taken(10));
        // Others are drawn.
        for share in [share(10), Share { percent: 10, sticky: None }] {
            let drawn = (0..2_000).filter(|_| share.takes(&HeaderMap::new())).count();
            assert!((100..320).contains(&drawn), "{drawn}");
        }
    }

    #[test]
    fn it_is_told_once_that_a_canary_is_worse() {
        let (worse, told) = mpsc::channel();
        let counts = Counts::new(worse);
        (0..400).for_each(|_| counts.note(Side::Present, false));
        (0..3).for_each(|_| counts.note(Side::Canary, true));
        (0..196).for_each(|_| counts.note(Side::Canary, false));
        assert!(told.try_recv().is_err(), "199 requests are not compared");
        counts.note(Side::Canary, false);
        assert_eq!(told.try_recv(), Ok(()), "the last one did not fail itself");
        (0..300).for_each(|_| counts.note(Side::Canary, true));
        assert!(told.try_recv().is_err());
        assert_eq!(counts.tallies(), [tally(400, 0), tally(500, 303)]);
    }
}
