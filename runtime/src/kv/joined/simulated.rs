//! Many readers and writers of a model store, in simulated time: what they ask, and when it arrives, is made, is answered or is lost, comes from a seed. The store refuses a write that comes too late by the store's
//! own clock, which is set now and then.
//!
//! The versions of the writes are their order. A history is strictly linearisable if no reader sees less than a write that was acknowledged, or a read that was answered, before it began. Each mutant of the mechanism
//! breaks that within 1,000 seeds.

use std::collections::{BTreeMap, HashMap};
use std::mem;

use fastrand::Rng;

use super::{Action, Event, FOR_GOOD, ReadId, Slot};
use crate::kv::{BucketKey, BucketName};

const SEEDS: u64 = 1_000;
const TENANTS: usize = 2;
/// Those of one slot: a write of one closes it for the other.
const KEYS: usize = 2;
const OPERATIONS: usize = 150;
/// The same where outcomes may stay unknown, and within what time they begin, so that slots that were lost are opened again.
const OPERATIONS_LOSSY: usize = 1_600;
const TIME: u64 = 600;
const TIME_LOSSY: u64 = 6_000;
/// How often the clock is set there.
const CLOCK_SET: usize = 120;
/// For how long a write may be made, by the store's clock.
const WITHIN: u64 = 300;
/// By how much the clock is before the simulation's time at most: it is set back by no more.
const MARGIN: u64 = 250;
/// How often the clock is looked at.
const PAUSE: u64 = 20;

/// What is wrong with the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// A write closes the slot when it is acknowledged, in place of when it is sent.
    ClosesAtAcknowledgement,
    /// A write whose outcome is unknown opens the slot again.
    UnknownReopens,
    /// Tenants have their reads together.
    TenantsTogether,
    /// A write closes the slot while it is under way, and reads that were sent before it can be joined afterwards.
    KeepsReads,
    /// A read that was sent while a write was under way can be joined.
    JoinsBesideWrites,
    /// A slot is opened before the time has come from which the store refuses its write.
    ReopensEarly,
    /// A slot is opened at that time, and the clock may be set back.
    ReopensWithoutMargin,
    /// The store makes a write however late it comes.
    StoreTakesLate,
}

/// What is on its way.
#[derive(Clone, Copy, Debug)]
enum Message {
    /// An operation begins.
    Begins { tenant: usize, key: usize, what: Operation },
    /// A read is at the store.
    ReadMade { read: usize },
    /// The answer to a read, or the news that there is none, is there.
    ReadEnds { read: usize, is_lost: bool },
    /// A write is at the store.
    WriteMade { write: usize },
    /// The writer is answered, or gives up.
    WriteEnds { write: usize, is_known: bool },
    /// The store's clock is set: from then on it is so far ahead.
    ClockSet { ahead: u64 },
    /// A look at the clock is at the store.
    ClockRead,
    /// It shows that.
    Clock { time: u64 },
}

/// What a client does.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Read,
    /// A read that is always sent, as that of several keys is.
    ReadAlone,
    Write,
}

/// A read that was sent.
struct Read {
    place: (usize, usize),
    /// In its slot, where it can be joined.
    id: Option<ReadId>,
    /// When each of its readers began, with the tenant of each.
    readers: Vec<(usize, u64)>,
    seen: Option<(usize, u64)>,
}

struct Write {
    place: (usize, usize),
    version: Option<u64>,
    /// By the store's clock.
    until: u64,
}

struct World {
    mutant: Mutant,
    random: Rng,
    /// Whether outcomes of writes may stay unknown.
    is_lossy: bool,
    now: u64,
    /// By how much the store's clock is ahead.
    ahead: u64,
    is_watched: bool,
    messages: BTreeMap<(u64, u64), Message>,
    messages_sent: u64,
    slots: Vec<Slot>,
    /// Reads that can be joined, by slot.
    joinable: HashMap<(usize, ReadId), usize>,
    /// Reads of a mutant, which its slot would not have kept.
    kept: HashMap<(usize, usize), usize>,
    /// The store: whose value is there, with its version.
    store: HashMap<(usize, usize), (usize, u64)>,
    version: u64,
    reads: Vec<Read>,
    writes: Vec<Write>,
    /// What a reader that begins now has to see at least.
    least: HashMap<(usize, usize), u64>,
    joined: u64,
    /// Reads that were joined in a slot that had been lost before, of all tenants.
    joined_again: u64,
    were_lost: Vec<bool>,
    wrong: Option<String>,
}

fn key(index: usize) -> BucketKey {
    BucketName::new(b"b").unwrap().key(&[u8::try_from(index).unwrap()]).unwrap()
}

impl World {
    fn new(mutant: Mutant, seed: u64) -> World {
        World {
            mutant,
            random: Rng::with_seed(seed),
            is_lossy: seed.is_multiple_of(4),
            now: 0,
            ahead: 0,
            is_watched: false,
            messages: BTreeMap::new(),
            messages_sent: 0,
            slots: vec![Slot::default(); TENANTS],
            joinable: HashMap::new(),
            kept: HashMap::new(),
            store: HashMap::new(),
            version: 0,
            reads: Vec::new(),
            writes: Vec::new(),
            least: HashMap::new(),
            joined: 0,
            joined_again: 0,
            were_lost: vec![false; TENANTS],
            wrong: None,
        }
    }

    fn run(mut self) -> World {
        let (operations, time) = if self.is_lossy { (OPERATIONS_LOSSY, TIME_LOSSY) } else { (OPERATIONS, TIME) };
        for _ in 0..if self.is_lossy { CLOCK_SET } else { 0 } {
            let (at, ahead) = (self.random.u64(..time), self.random.u64(..=MARGIN));
            self.send(at, Message::ClockSet { ahead });
        }
        for _ in 0..operations {
            // One key is hot.
            let (tenant, key) = (self.random.usize(..4) / 3, self.random.usize(..4) / 3);
            let what = match self.random.u8(..20) {
                0 => Operation::Write,
                1..4 if !self.is_lossy => Operation::Write,
                4..8 => Operation::ReadAlone,
                _ => Operation::Read,
            };
            let delay = self.random.u64(..time);
            self.send(delay, Message::Begins { tenant, key, what });
        }
        while self.wrong.is_none()
            && let Some(((at, _), message)) = self.messages.pop_first()
        {
            self.now = at;
            self.take(message);
        }
        self
    }

    fn send(&mut self, delay: u64, message: Message) {
        self.messages_sent += 1;
        self.messages.insert((self.now + delay, self.messages_sent), message);
    }

    /// Most are fast, some are very slow.
    fn delay(&mut self) -> u64 {
        let max = if self.random.u8(..4) == 0 { 200 } else { 10 };
        self.random.u64(1..max)
    }

    fn slot(&self, tenant: usize) -> usize {
        if self.mutant == Mutant::TenantsTogether { 0 } else { tenant }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Begins { tenant, key, what: Operation::Write } => self.write(tenant, key),
            Message::Begins { tenant, key, what: Operation::Read } => self.read(tenant, key),
            Message::Begins { tenant, key, what: Operation::ReadAlone } => {
                self.send_read((tenant, key), None);
            }
            Message::ReadMade { read } => {
                let place = self.reads[read].place;
                self.reads[read].seen = self.store.get(&place).copied();
            }
            Message::ReadEnds { read, is_lost } => self.read_ends(read, is_lost),
            // Too late.
            Message::WriteMade { write }
                if self.now + self.ahead > self.writes[write].until && self.mutant != Mutant::StoreTakesLate => {}
            Message::WriteMade { write } => {
                self.version += 1;
                let place = self.writes[write].place;
                self.writes[write].version = Some(self.version);
                self.store.insert(place, (place.0, self.version));
            }
            Message::WriteEnds { write, is_known } => self.write_ends(write, is_known),
            Message::ClockSet { ahead } => self.ahead = ahead,
            Message::ClockRead => {
                let (back, time) = (self.delay(), self.now + self.ahead);
                self.send(back, Message::Clock { time });
            }
            Message::Clock { time } => self.clock(time),
        }
    }

    fn clock(&mut self, time: u64) {
        let least = match self.mutant {
            Mutant::ReopensEarly => time + WITHIN / 2,
            Mutant::ReopensWithoutMargin => time,
            // It is not set back by more than that.
            _ => time.saturating_sub(MARGIN),
        };
        for slot in &mut self.slots {
            slot.step(Event::Time(least));
        }
        self.is_watched = self.slots.iter().any(|slot| slot.lost_until().is_some());
        if self.is_watched {
            let there = self.delay();
            self.send(PAUSE + there, Message::ClockRead);
        }
    }

    fn read(&mut self, tenant: usize, index: usize) {
        let slot = self.slot(tenant);
        let place = (tenant, index);
        let began = self.least.get(&place).copied().unwrap_or(0);
        let kept = self.kept.get(&(slot, index)).copied();
        let id = match self.slots[slot].step(Event::Asked(&key(index))) {
            Action::Join(id) => {
                let read = self.joinable[&(slot, id)];
                self.reads[read].readers.push((tenant, began));
                self.joined += 1;
                self.joined_again += u64::from(self.were_lost[slot]);
                return;
            }
            Action::Lead(_) | Action::Alone if kept.is_some() && !self.slots[slot].is_closed() => {
                // Its slot does not have this one: it is not under way.
                let read = kept.unwrap();
                self.reads[read].readers.push((tenant, began));
                let _ = self.slots[slot].reads.pop();
                return;
            }
            Action::Lead(id) => Some(id),
            Action::Alone => None,
            Action::None => unreachable!(),
        };
        let read = self.send_read(place, id);
        match id {
            Some(id) => {
                self.joinable.insert((slot, id), read);
            }
            None if self.mutant == Mutant::JoinsBesideWrites => {
                self.kept.insert((slot, index), read);
            }
            None => {}
        }
    }

    fn send_read(&mut self, place: (usize, usize), id: Option<ReadId>) -> usize {
        let read = self.reads.len();
        let began = self.least.get(&place).copied().unwrap_or(0);
        self.reads.push(Read { place, id, readers: vec![(place.0, began)], seen: None });
        let (there, back, is_lost) = (self.delay(), self.delay(), self.random.u8(..20) == 0);
        self.send(there, Message::ReadMade { read });
        self.send(there + back, Message::ReadEnds { read, is_lost });
        read
    }

    fn read_ends(&mut self, read: usize, is_lost: bool) {
        let Read { place, id, ref readers, seen } = self.reads[read];
        let (readers, slot) = (readers.clone(), self.slot(place.0));
        if let Some(id) = id {
            self.slots[slot].step(Event::Over(id));
        }
        self.kept.retain(|_, kept| *kept != read);
        if is_lost {
            return;
        }
        let (owner, version) = seen.unwrap_or((place.0, 0));
        for (tenant, least) in readers {
            if tenant != owner {
                self.wrong = Some(format!("tenant {tenant} has read what belongs to tenant {owner}"));
            }
            if version < least {
                self.wrong = Some(format!("version {version} was read by a reader that began after version {least} was seen"));
            }
        }
        self.saw(place, version);
    }

    fn write(&mut self, tenant: usize, index: usize) {
        let slot = self.slot(tenant);
        let place = (tenant, index);
        let write = self.writes.len();
        // By what the clock has shown at some time.
        let until = self.now + self.random.u64(..=MARGIN) + WITHIN;
        self.writes.push(Write { place, version: None, until });
        if self.mutant == Mutant::KeepsReads {
            for (id, of) in self.slots[slot].reads.clone() {
                let index = (0..KEYS).find(|index| key(*index) == of).unwrap();
                self.kept.insert((slot, index), self.joinable[&(slot, id)]);
            }
        }
        if self.mutant != Mutant::ClosesAtAcknowledgement {
            self.slots[slot].step(Event::Sent);
        }
        let (there, back) = (self.delay(), self.delay());
        // In most runs nothing is lost, so that slots are not closed for long.
        let what = if self.is_lossy { self.random.u8(..60) } else { 60 };
        match what {
            // Lost on its way, and the writer does not know.
            0 => self.send(there + back, Message::WriteEnds { write, is_known: false }),
            // Made, and the answer is lost.
            1 => {
                self.send(there, Message::WriteMade { write });
                self.send(there + back, Message::WriteEnds { write, is_known: false });
            }
            // Made when the writer has given up already.
            2..5 => {
                // As often as not about when the store begins to refuse it.
                let at_the_end = self.writes[write].until - self.now - self.random.u64(..MARGIN);
                let late = if self.random.bool() { at_the_end } else { back + self.random.u64(50..1_200) };
                self.send(back, Message::WriteEnds { write, is_known: false });
                self.send(late, Message::WriteMade { write });
            }
            // Refused.
            5..8 => self.send(there + back, Message::WriteEnds { write, is_known: true }),
            _ => {
                self.send(there, Message::WriteMade { write });
                self.send(there + back, Message::WriteEnds { write, is_known: true });
            }
        }
    }

    fn write_ends(&mut self, write: usize, is_known: bool) {
        let Write { place, version, until } = self.writes[write];
        let slot = self.slot(place.0);
        if self.mutant == Mutant::ClosesAtAcknowledgement {
            self.slots[slot].step(Event::Sent);
        }
        let is_known_there = is_known || self.mutant == Mutant::UnknownReopens;
        self.slots[slot].step(Event::Ended((!is_known_there).then_some(until)));
        if !is_known {
            self.were_lost[slot] = true;
            if !mem::replace(&mut self.is_watched, true) {
                let there = self.delay();
                self.send(there, Message::ClockRead);
            }
        }
        if let Some(version) = version.filter(|_| is_known) {
            self.saw(place, version);
        }
    }

    fn saw(&mut self, place: (usize, usize), version: u64) {
        let least = self.least.entry(place).or_default();
        *least = version.max(*least);
    }
}

#[test]
fn joined_reads_are_linearisable() {
    let (mut joined, mut joined_again) = (0, 0);
    for seed in 0..5 * SEEDS {
        let world = World::new(Mutant::None, seed).run();
        assert_eq!(world.wrong, None, "seed {seed}");
        assert!(world.slots.iter().all(|slot| slot.lost_until().is_none()), "seed {seed}: all are opened again");
        joined += world.joined;
        joined_again += world.joined_again;
    }
    println!("{joined} were joined, {joined_again} of them in slots that had been lost");
    assert!(joined > 5 * SEEDS && joined_again > 5 * SEEDS, "{joined} were joined, {joined_again} in slots that had been lost");
}

#[test]
fn every_mutant_is_caught() {
    use Mutant::{
        ClosesAtAcknowledgement, JoinsBesideWrites, KeepsReads, ReopensEarly, ReopensWithoutMargin, StoreTakesLate,
        TenantsTogether, UnknownReopens,
    };

    let writes = [ClosesAtAcknowledgement, UnknownReopens, TenantsTogether, KeepsReads, JoinsBesideWrites];
    for mutant in writes.into_iter().chain([ReopensEarly, ReopensWithoutMargin, StoreTakesLate]) {
        let caught = (0..SEEDS).find_map(|seed| Some((seed, World::new(mutant, seed).run().wrong?)));
        println!("{mutant:?}: {caught:?}");
        assert!(caught.is_some(), "{mutant:?}");
    }
}

#[test]
fn a_slot_is_closed_while_any_write_is_under_way() {
    let (one, other) = (key(0), key(1));
    let mut slot = Slot::default();
    assert_eq!(slot.step(Event::Asked(&one)), Action::Lead(1));
    assert_eq!(slot.step(Event::Asked(&one)), Action::Join(1));
    assert_eq!(slot.step(Event::Asked(&other)), Action::Lead(2));
    slot.step(Event::Sent);
    slot.step(Event::Sent);
    slot.step(Event::Ended(None));
    assert_eq!(slot.step(Event::Asked(&one)), Action::Alone);
    slot.step(Event::Ended(None));
    // Nothing of before the writes is joined, nor ends what was sent after them.
    assert_eq!(slot.step(Event::Asked(&one)), Action::Lead(3));
    slot.step(Event::Over(1));
    assert_eq!(slot.step(Event::Asked(&one)), Action::Join(3));
    slot.step(Event::Over(3));
    assert_eq!(slot.step(Event::Asked(&one)), Action::Lead(4));
    slot.step(Event::Sent);
    slot.step(Event::Ended(Some(7)));
    slot.step(Event::Time(7));
    assert_eq!(slot.step(Event::Asked(&one)), Action::Alone, "it may be made at that time");
    slot.step(Event::Time(8));
    assert_eq!(slot.step(Event::Asked(&one)), Action::Lead(5));
    slot.step(Event::Sent);
    slot.step(Event::Ended(Some(FOR_GOOD)));
    slot.step(Event::Time(u64::MAX));
    assert_eq!(slot.step(Event::Asked(&one)), Action::Alone, "for good");
    assert!(slot.lost_until().is_some());
}
