//! What is speculative: tasks that were begun ahead and are not asked for. They run where nothing is to be run that is.
//!
//! Tenants have equal shares of that time, as of all other. Of a tenant's the first is next by [`Rank`], then by age, whatever it has waited for. It runs until it ends, waits, or an earlier one comes: a later one
//! has its turn only where that leaves time. So a tenant whose requests all go ahead gets the oldest of them done first.
//!
//! None of this is charged to a tenant's or function's other turns, and nothing is learned of how long such runs take: what is asked for is run in the order in which it would be run without them.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::task::{Rank, Task, TaskId, TenantId};
use crate::turns::{Has, Turn, Turns};

/// A tenant's, in their order.
#[derive(Debug, Default)]
struct Own {
    turn: Turn,
    queue: BTreeMap<Place, Task>,
    started: usize,
}

/// Where one stands: by rank, age and number.
type Place = (Rank, u64, TaskId);

/// The speculative tasks of one worker.
#[derive(Debug, Default)]
pub(crate) struct Slack {
    /// By the number of the tenant.
    tenants: Vec<Own>,
    turns: Turns<TenantId>,
    /// The ranks of all of them, also of those that are blocked or run.
    ranks: BTreeMap<TaskId, Rank>,
    waiting: usize,
    started: usize,
    /// No deadline of one that waits is earlier.
    earliest: Option<Instant>,
    /// Those that are not wanted any more, and are to be ended.
    pub(crate) unwanted: VecDeque<TaskId>,
    /// Whether one was ended in this turn: connections are looked after before the next one runs.
    pub(crate) answered: bool,
    /// Whether the worker may run them in this turn.
    pub(crate) may_run: bool,
    /// Whether the worker is to end one, and has not said yet that it has.
    pub(crate) ends: bool,
    /// How many to give away now.
    pub(crate) to_give: usize,
}

impl Slack {
    /// Those that wait for their turn.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Those of them that have begun.
    pub(crate) const fn started(&self) -> usize {
        self.started
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Whether that one is among them.
    pub(crate) fn has(&self, id: TaskId) -> bool {
        self.ranks.contains_key(&id)
    }

    /// All of them.
    pub(crate) fn ids(&self) -> impl Iterator<Item = TaskId> {
        self.ranks.keys().copied()
    }

    /// All that wait.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tenants.iter().flat_map(|own| own.queue.values())
    }

    /// That one is among them, and stands there.
    pub(crate) fn rank(&mut self, id: TaskId, rank: Rank) {
        self.ranks.insert(id, rank);
    }

    /// That one is not among them any more.
    pub(crate) fn forget(&mut self, id: TaskId) {
        self.ranks.remove(&id);
    }

    /// That one waits for its turn.
    pub(crate) fn add(&mut self, task: Task) {
        let place = self.place(&task);
        let index = task.tenant.0 as usize;
        if self.tenants.len() <= index {
            self.tenants.resize_with(index + 1, Own::default);
        }
        let own = &mut self.tenants[index];
        own.started += usize::from(task.started);
        own.queue.insert(place, task);
        self.turns.wants(task.tenant, &mut own.turn);
        self.waiting += 1;
        self.started += usize::from(task.started);
        self.earliest = Some(self.earliest.map_or(task.deadline, |earliest| earliest.min(task.deadline)));
    }

    /// Takes the next one, to be run; where no more may begin, of those that have begun.
    pub(crate) fn next(&mut self, is_full: bool) -> Option<Task> {
        let Slack { tenants, turns, .. } = self;
        let tenant = turns.next(|tenant| {
            let own = &mut tenants[tenant.0 as usize];
            own.turn.look(match (own.queue.len(), own.started) {
                (0, _) => Has::Nothing,
                (_, 0) if is_full => Has::NothingNow,
                _ => Has::Something,
            })
        })?;
        let own = &tenants[tenant.0 as usize];
        turns.runs(&own.turn);
        let first = own.queue.iter().find(|(_, task)| !is_full || task.started).map(|(place, _)| *place)?;
        self.take_at(tenant, first)
    }

    /// One of that tenant ran for so long.
    pub(crate) fn ran(&mut self, tenant: TenantId, time: Duration) {
        let Some(own) = self.tenants.get_mut(tenant.0 as usize) else { return };
        self.turns.used(&mut own.turn, time);
        if !own.queue.is_empty() {
            self.turns.wants(tenant, &mut own.turn);
        }
    }

    /// Takes that one, if it waits.
    pub(crate) fn take(&mut self, id: TaskId) -> Option<Task> {
        let rank = *self.ranks.get(&id)?;
        let (tenant, place) = self.find(|place, _| (place.0, place.2) == (rank, id))?;
        self.take_at(tenant, place)
    }

    /// Takes the last one of the tenant that has most, of those that have begun or not.
    pub(crate) fn take_last(&mut self, started: bool) -> Option<Task> {
        let count = |own: &Own| if started { own.started } else { own.queue.len() - own.started };
        let (tenant, own) = (0..).map(TenantId).zip(&self.tenants).max_by_key(|(_, own)| count(own))?;
        let last = own.queue.iter().rev().find(|(_, task)| task.started == started).map(|(place, _)| *place)?;
        self.take_at(tenant, last)
    }

    /// Takes one whose deadline has passed.
    pub(crate) fn take_late(&mut self, now: Instant) -> Option<Task> {
        if self.earliest? > now {
            return None;
        }
        if let Some((tenant, place)) = self.find(|_, task| task.deadline <= now) {
            return self.take_at(tenant, place);
        }
        self.earliest = self.iter().map(|task| task.deadline).min();
        None
    }

    /// Takes any.
    pub(crate) fn pop(&mut self) -> Option<Task> {
        let (tenant, place) = self.find(|_, _| true)?;
        self.take_at(tenant, place)
    }

    fn place(&self, task: &Task) -> Place {
        (self.ranks.get(&task.id).copied().unwrap_or_default(), task.age, task.id)
    }

    fn find(&self, wanted: impl Fn(&Place, &Task) -> bool) -> Option<(TenantId, Place)> {
        let all = (0..).map(TenantId).zip(&self.tenants).flat_map(|(tenant, own)| own.queue.iter().map(move |one| (tenant, one)));
        all.into_iter().find(|(_, (place, task))| wanted(place, task)).map(|(tenant, (place, _))| (tenant, *place))
    }

    fn take_at(&mut self, tenant: TenantId, place: Place) -> Option<Task> {
        let own = self.tenants.get_mut(tenant.0 as usize)?;
        let task = own.queue.remove(&place)?;
        own.started -= usize::from(task.started);
        self.waiting -= 1;
        self.started -= usize::from(task.started);
        Some(task)
    }
}
