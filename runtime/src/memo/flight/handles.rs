//! What a request holds that leads or follows. Dropped, in whatever way it ends, the others go on.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{Arrival, FlightId, Flights, Ticket};
use crate::host::EffectTrace;
use crate::memo::check::{Check, Standing};
use crate::memo::key::{Key, Vary};
use crate::memo::state::lock;
use crate::memo::{Asked, Entry, Event, Look, Memo, Now, rule};

/// A run for which others wait.
#[derive(Debug)]
pub struct Lead {
    memo: Arc<Memo>,
    /// None where it is over.
    id: Option<FlightId>,
    /// By what those were told apart that wait.
    pub(in crate::memo) vary: Arc<Vary>,
}

/// A request that waits for the run of an equal one.
#[derive(Debug)]
pub struct Follower {
    memo: Arc<Memo>,
    ticket: Ticket,
    key: Key,
    vary: Arc<Vary>,
    /// For its own run, should it come to that; none where it has ended.
    asked: Option<Box<Asked>>,
}

impl Asked {
    /// Its run has done this, and goes on later. Where it cannot be given again any more, those that wait for it run at once.
    pub fn goes_on(&mut self, trace: &EffectTrace) {
        if let Some(lead) = &self.lead
            && rule::refused(trace, lead.memo.settings.pure).is_some()
        {
            lead.memo.trust.ran(false);
            self.lead = None;
        }
    }

    /// Answers the requests that wait for its run, with what [`Memo::learn`] has given; they run where that is none, or what it rests on is not there any more. Dropped without
    /// this, they run, too.
    pub fn land(mut self, entry: Option<&Arc<Entry>>, now: Now<'_>) {
        if let Some(lead) = self.lead.take() {
            lead.land(entry, now);
        }
    }
}

impl Lead {
    pub(in crate::memo) fn new(memo: &Arc<Memo>, id: FlightId, vary: &Arc<Vary>) -> Lead {
        Lead { memo: Arc::clone(memo), id: Some(id), vary: Arc::clone(vary) }
    }

    /// The run is over: no more follow. Whether any do.
    pub(in crate::memo) fn close(&mut self, flights: &mut Flights<Waker, Arc<Entry>>) -> bool {
        let is_followed = self.id.is_some_and(|id| flights.close(id));
        if !is_followed {
            self.id = None;
        }
        is_followed
    }

    /// Closed, it lands: followers get its answer, if what it rests on is what is there now. All of them have arrived by now. Where a store has to be asked for that, each of them finds the entry in the table.
    pub(in crate::memo) fn land(mut self, entry: Option<&Arc<Entry>>, now: Now<'_>) {
        let entry = entry.filter(|entry| self.memo.standing(entry, now) == Standing::Holds);
        self.end(entry);
    }

    fn end(&mut self, entry: Option<&Arc<Entry>>) {
        let Some(id) = self.id.take() else { return };
        let wakers = lock(&self.memo.state).flights.land(id, entry);
        // Not under the lock, which those take that are woken.
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl Follower {
    pub(in crate::memo) fn new(memo: &Arc<Memo>, ticket: Ticket, (key, vary): (Key, Arc<Vary>), asked: Box<Asked>) -> Follower {
        Follower { memo: Arc::clone(memo), ticket, key, vary, asked: Some(asked) }
    }

    /// Whether it waits no longer; else the task is woken then.
    pub fn poll(&self, context: &Context<'_>) -> Poll<()> {
        let landed = lock(&self.memo.state).flights.has_landed(self.ticket, || context.waker().clone());
        if landed { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits no longer: the run that it waited for answers it, or the store decides whether that does, or it runs. It does not wait again. `note` learns what became of it.
    pub fn end(mut self, now: Now<'_>, mut note: impl FnMut(Event)) -> Look {
        let Some(mut asked) = self.asked.take() else { return Look::Bypass };
        let Follower { memo, ticket, key, vary, .. } = &self;
        let mut state = lock(&memo.state);
        let answer = state.flights.leave(*ticket).filter(|_| memo.gives_answers());
        let found = if answer.is_none() && memo.gives_answers() { state.table.get(key) } else { None };
        drop(state);
        if let Some(entry) = found
            && memo.standing(&entry, now) == Standing::Asks
        {
            if !memo.is_compared() {
                return Look::Check(Box::new(Check { asked, key: *key, entry }));
            }
            note(Event::Compared);
            asked.expected = Some(entry);
            return Look::Run(asked);
        }
        // The first of those that run is followed by what arrives from now on.
        if answer.is_none()
            && memo.may_wait()
            && let Arrival::Leads(id) = lock(&memo.state).flights.arrive(*key, false)
        {
            asked.lead = Some(Lead::new(memo, id, vary));
        }
        match answer {
            Some(entry) if memo.is_compared() => {
                note(Event::Compared);
                asked.expected = Some(entry);
            }
            Some(entry) => {
                note(Event::Collapsed);
                memo.has_answered();
                return Look::Collapsed(entry);
            }
            None => note(Event::Miss),
        }
        Look::Run(asked)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if self.asked.is_some() {
            let _ = lock(&self.memo.state).flights.leave(self.ticket);
        }
    }
}
