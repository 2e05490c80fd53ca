//! Requests, leaders and followers in any order, from a seed: no follower is lost, none is answered with what was not so after it had arrived, and nothing is left.
//!
//! A run reads the store's version when it begins and is answered with that; writes come between. The mistakes of [`Mutant`] are each noticed.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::*;

const SEEDS: u64 = 2_000;
const STEPS: usize = 200;

/// A mistake of what uses the flights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// A flight lands without a look at the store.
    Unchecked,
    /// It is looked at before the flight is closed.
    CheckedFirst,
    /// A leader that is dropped tells nothing.
    Forgets,
    /// A follower that leaves stays in its flight.
    Stays,
}

/// A run: of which request, leading which flight, and the version that it read.
#[derive(Debug)]
struct Run {
    leads: Option<FlightId>,
    read: u64,
    /// It is over and closed; whether what it read was still so when that was looked at.
    checked: Option<bool>,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    /// The store's version when it arrived.
    arrived: u64,
    is_woken: bool,
    is_asked: bool,
}

#[derive(Default)]
struct World {
    flights: Flights<u64, u64>,
    version: u64,
    runs: Vec<Run>,
    waiting: BTreeMap<u64, Waiting>,
    requests: u64,
    collapsed: u64,
}

fn key(number: u8) -> Key {
    [number; 32]
}

impl World {
    fn begin(&mut self, leads: Option<FlightId>) {
        self.runs.push(Run { leads, read: self.version, checked: None });
    }

    fn arrive(&mut self, random: &mut Rng, may_follow: bool) {
        self.requests += 1;
        match self.flights.arrive(key(random.u8(..3)), may_follow) {
            Arrival::Leads(id) => self.begin(Some(id)),
            Arrival::Runs => self.begin(None),
            Arrival::Follows(ticket) => {
                assert!(may_follow);
                let waiting = Waiting { ticket, arrived: self.version, is_woken: false, is_asked: false };
                self.waiting.insert(self.requests, waiting);
            }
        }
    }

    fn land(&mut self, id: FlightId, answer: Option<u64>) {
        for request in self.flights.land(id, answer.as_ref()) {
            if let Some(waiting) = self.waiting.get_mut(&request) {
                waiting.is_woken = true;
            }
        }
    }

    /// A follower goes on: it is answered, or runs.
    fn go_on(&mut self, request: u64) -> Result<(), String> {
        let Some(Waiting { ticket, arrived, .. }) = self.waiting.remove(&request) else { return Ok(()) };
        match self.flights.leave(ticket) {
            Some(read) if read < arrived => return Err(format!("{request} got {read}, and had arrived at {arrived}")),
            Some(_) => self.collapsed += 1,
            None => self.begin(None),
        }
        Ok(())
    }

    /// A run goes on to its end.
    fn end(&mut self, index: usize, random: &mut Rng, mutant: Mutant) {
        let Run { leads, read, checked } = &self.runs[index];
        let Some(id) = *leads else {
            self.runs.swap_remove(index);
            return;
        };
        // It traps, its client goes, its deadline comes, or it was not to be given again.
        if random.u8(..4) == 0 {
            self.runs.swap_remove(index);
            if mutant != Mutant::Forgets {
                self.land(id, None);
            }
            return;
        }
        let (read, is_current) = (*read, self.version == *read);
        match *checked {
            None => {
                if mutant != Mutant::CheckedFirst && !self.flights.close(id) {
                    self.runs.swap_remove(index);
                    return;
                }
                self.runs[index].checked = Some(is_current);
            }
            Some(was_current) => {
                self.runs.swap_remove(index);
                let is_right = was_current || mutant == Mutant::Unchecked;
                self.land(id, is_right.then_some(read));
            }
        }
    }
}

fn simulate(seed: u64, mutant: Mutant) -> Result<u64, String> {
    let mut random = Rng::with_seed(seed);
    let mut world = World::default();
    for step in 0..STEPS {
        // At the end all that is under way goes on.
        let (is_end, any) = (step > STEPS * 3 / 4, random.u8(..10));
        match any {
            0 if !is_end => world.version += 1,
            1..=4 if !is_end => {
                let may_follow = random.u8(..8) > 0;
                world.arrive(&mut random, may_follow);
            }
            5 | 6 if !world.waiting.is_empty() => {
                let requests: Vec<u64> = world.waiting.keys().copied().collect();
                let request = requests[random.usize(..requests.len())];
                let waiting = &world.waiting[&request];
                if waiting.is_woken {
                    world.go_on(request)?;
                } else if random.u8(..6) == 0 {
                    // Its client has gone, or it has waited for long enough.
                    if mutant == Mutant::Stays {
                        world.waiting.remove(&request);
                    } else {
                        world.go_on(request)?;
                    }
                } else {
                    let ticket = waiting.ticket;
                    let has_landed = world.flights.has_landed(ticket, || request);
                    if let Some(waiting) = world.waiting.get_mut(&request) {
                        (waiting.is_woken, waiting.is_asked) = (has_landed, true);
                    }
                }
            }
            _ if !world.runs.is_empty() => {
                let index = random.usize(..world.runs.len());
                world.end(index, &mut random, mutant);
            }
            _ => {}
        }
    }
    while !world.runs.is_empty() {
        world.end(0, &mut random, mutant);
    }
    // Each that has said what wakes it was woken.
    let lost = world.waiting.iter().find(|(_, waiting)| waiting.is_asked && !waiting.is_woken);
    if let Some((request, _)) = lost {
        return Err(format!("{request} waits for ever"));
    }
    for request in world.waiting.keys().copied().collect::<Vec<_>>() {
        world.go_on(request)?;
    }
    if !world.flights.is_empty() {
        return Err(format!("something is left: {:?}", world.flights));
    }
    Ok(world.collapsed)
}

#[test]
fn followers_go_on_with_an_answer_of_a_moment_after_their_arrival_or_run() {
    let collapsed: u64 =
        (0..SEEDS).map(|seed| simulate(seed, Mutant::None).unwrap_or_else(|why| panic!("seed {seed}: {why}"))).sum();
    assert!(collapsed > SEEDS, "{collapsed} are too few for this to prove anything");
}

#[test]
fn each_mistake_is_noticed() {
    for mutant in [Mutant::Unchecked, Mutant::CheckedFirst, Mutant::Forgets, Mutant::Stays] {
        assert!((0..SEEDS).any(|seed| simulate(seed, mutant).is_err()), "{mutant:?}");
    }
}

#[test]
fn flights_and_their_followers_are_bounded() {
    let mut flights: Flights<(), ()> = Flights::default();
    let number = |number: usize| {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    };
    let leads: Vec<_> = (0..FLIGHTS_MAX).map(|index| flights.arrive(number(index), true)).collect();
    assert!(leads.iter().all(|arrival| matches!(arrival, Arrival::Leads(_))));
    assert_eq!(flights.arrive(number(FLIGHTS_MAX), true), Arrival::Runs);
    let follows: Vec<_> = (0..FOLLOWERS_MAX).map(|_| flights.arrive(number(0), true)).collect();
    assert!(follows.iter().all(|arrival| matches!(arrival, Arrival::Follows(_))));
    assert_eq!(flights.arrive(number(0), true), Arrival::Runs);
    // One that leaves makes room.
    let Arrival::Follows(ticket) = follows[7] else { unreachable!() };
    assert_eq!(flights.leave(ticket), None);
    assert!(matches!(flights.arrive(number(0), true), Arrival::Follows(_)));
}

#[test]
fn a_request_waits_for_half_of_its_time() {
    let now = Instant::now();
    let second = std::time::Duration::from_secs(1);
    assert_eq!(patience(now, now + 2 * second), now + second);
    assert_eq!(patience(now + second, now), now + second);
}
