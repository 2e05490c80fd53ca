//! Classes of microtasks: which task may run next, by how long it will run until it waits again.
//!
//! A *microtask* is what an invocation computes between two blocking host calls, or up to where its guest says that another phase begins. Those of like length form a *class*;
//! there are four, a factor of 8 apart. Of a tenant's time on a worker each class has a share, and none is idle while another has something to run (`sharing`). So a
//! short microtask, after which its invocation reads or writes, does not wait behind long ones, and the storage has something to do while the core computes.
//!
//! The class of a microtask is a prediction, made when the one before it ends: by its function, the place in the guest at which it begins, and for how often in a row (`bursts`). What runs for longer
//! than its class does goes on in the next class. An annotation is a first guess, which is corrected by what is measured.
//!
//! A request whose later microtasks are long is not begun while enough of such work is on its way (`ahead`): it would only wait later, with its memory.
//!
//! A tenant's turn comes before all of that: classes divide what a tenant has, and add nothing to it. Off, all of this is absent, and the order looks at one pointer.

mod ahead;
mod bursts;
mod sharing;

#[cfg(test)]
mod life;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use self::ahead::{Ahead, Learned};
use self::bursts::{Bursts, Spot};
pub(crate) use self::sharing::Sharing;
use crate::task::{FunctionId, Task, TaskId, TenantId};
use crate::turns::nanoseconds;

/// How many classes there are.
pub const CLASSES: usize = 4;
/// For how long the microtasks of each class run at most; the last class has no end.
pub const BOUNDS: [Duration; CLASSES - 1] = [Duration::from_micros(125), Duration::from_millis(1), Duration::from_millis(8)];

/// How classes are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    /// What each class has of the time of its tenant.
    pub shares: Shares,
    /// Whether annotations are believed until measurements say otherwise. If not, only what is measured counts.
    pub believes: bool,
    /// Whether requests whose later microtasks are long are begun only while these are few.
    pub limits: bool,
}

/// What each class has of a tenant's time on a worker, while all have something to run. What a class does not use, others have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// The shorter the class, the more is certain; the rest by what waits: number times mean length.
    Dynamic,
    /// Always the same parts, as in the paper on microtasks.
    Static([u32; CLASSES]),
}

impl Default for Classes {
    fn default() -> Classes {
        Classes { shares: Shares::Dynamic, believes: true, limits: true }
    }
}

/// A place in a guest at which a microtask begins: where it called the host, or which phase it said to begin. The number means nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site(pub u32);

impl Site {
    /// Where an invocation begins.
    pub const ENTRY: Site = Site(0);
}

/// What is known of a microtask before it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Microtask {
    /// Where it begins.
    pub site: Site,
    /// How much processor time it takes, as its author says.
    pub declared: Option<Duration>,
}

/// The class of microtasks that take so long.
#[must_use]
pub fn class_of(time: Duration) -> u8 {
    BOUNDS.iter().filter(|bound| time > **bound).count() as u8
}

/// What is known of the invocations of one worker and their microtasks.
#[derive(Debug)]
pub(crate) struct Microtasks {
    settings: Classes,
    /// By the number of the function.
    functions: Vec<Function>,
    /// By the number of the task.
    tasks: Vec<Place>,
    /// The mean length of what ran in each class, in nanoseconds.
    means: [u64; CLASSES],
    /// What ended in each class, and what ran there in nanoseconds, since that was last asked.
    counts: [[u64; 2]; CLASSES],
    ahead: Ahead,
}

#[derive(Debug, Default)]
struct Function {
    bursts: Bursts,
    learned: Learned,
}

/// Where an invocation stands.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Its microtask, and the one that follows.
    current: Microtask,
    next: Microtask,
    spot: Spot,
    /// What its microtask has used so far, in nanoseconds.
    used: u64,
    /// The class of its first microtask.
    first: u8,
    /// What it is still expected to use in later classes, in nanoseconds, and what it has used there.
    ahead: u64,
    later: u64,
    /// How long it took to get there, without waiting for its turn.
    lead: u64,
    blocked_since: Option<Instant>,
    has_begun: bool,
    /// Whether it began here: of others less is known.
    is_whole: bool,
    /// Whether it got to a later class.
    was_later: bool,
}

impl Microtasks {
    pub(crate) fn new(settings: Classes, quantum: Duration) -> Microtasks {
        let means = [0, 1, 2, 3].map(|class: usize| match class.checked_sub(1) {
            Some(below) => nanoseconds(BOUNDS[below]) * 2,
            None => nanoseconds(BOUNDS[0]) / 2,
        });
        Microtasks {
            settings,
            functions: Vec::new(),
            tasks: Vec::new(),
            means,
            counts: [[0; 2]; CLASSES],
            ahead: Ahead::new(quantum),
        }
    }

    /// How the time is shared.
    pub(crate) const fn shares(&self) -> Shares {
        self.settings.shares
    }

    /// The mean length of what runs in each class.
    pub(crate) const fn means(&self) -> &[u64; CLASSES] {
        &self.means
    }

    /// The microtask of a task that comes after the one that it runs, or its first one.
    pub(crate) fn announce(&mut self, id: TaskId, microtask: Microtask) {
        self.place(id).next = microtask;
    }

    /// A task arrives.
    pub(crate) fn arrived(&mut self, task: &Task) {
        let next = self.place(task.id).next;
        *self.place(task.id) = Place {
            current: next,
            spot: Spot { site: next.site, times: 0 },
            has_begun: task.started,
            is_whole: !task.started,
            ..Place::default()
        };
    }

    /// The class of a task that is going to wait for its turn.
    pub(crate) fn classify(&mut self, task: &Task, now: Instant) -> u8 {
        let Place { current, spot, used, .. } = *self.place(task.id);
        let declared = current.declared.filter(|_| self.settings.believes);
        let predicted = self.function(task.function).bursts.class_at(spot, declared);
        let class = predicted.max(class_of(Duration::from_nanos(used)));
        let mean = self.means[usize::from(class)];
        let place = &mut self.tasks[task.id.0 as usize];
        if let Some(since) = place.blocked_since.take()
            && !place.was_later
        {
            place.lead += nanoseconds(now.saturating_duration_since(since));
        }
        if !place.has_begun {
            place.first = class;
        } else if class > place.first {
            place.was_later = true;
            // More than was expected.
            let more = mean.saturating_sub(used).saturating_sub(place.ahead);
            place.ahead += more;
            self.ahead.add(task.tenant, more);
        }
        class
    }

    /// A task begins.
    pub(crate) fn begins(&mut self, task: &Task, now: Instant) {
        let later = self.function(task.function).learned.later();
        let place = self.place(task.id);
        (place.has_begun, place.ahead, place.first) = (true, later, task.class);
        self.ahead.begins(task.tenant, later, now);
    }

    /// A task ran in its class for so long, and its microtask is over or not.
    pub(crate) fn ran(&mut self, task: &Task, ran: Duration, is_over: bool) {
        let ran = nanoseconds(ran);
        let [ended, time] = &mut self.counts[usize::from(task.class)];
        (*ended, *time) = (*ended + u64::from(is_over), *time + ran);
        let place = self.place(task.id);
        place.used = place.used.saturating_add(ran);
        let mut done = 0;
        if task.class > place.first {
            place.later = place.later.saturating_add(ran);
            done = place.ahead.min(ran);
            place.ahead -= done;
        } else if !place.was_later {
            place.lead = place.lead.saturating_add(ran);
        }
        let (spot, used) = (place.spot, place.used);
        if is_over {
            (place.current, place.spot, place.used) = (place.next, spot.then(place.next.site), 0);
        }
        self.ahead.remove(task.tenant, done);
        if is_over {
            self.function(task.function).bursts.observe(spot, used);
            let mean = &mut self.means[usize::from(class_of(Duration::from_nanos(used)))];
            *mean = *mean - *mean / 8 + used / 8;
        }
    }

    /// A task waits from now on.
    pub(crate) fn blocked(&mut self, task: &Task, now: Instant) {
        self.place(task.id).blocked_since = Some(now);
    }

    /// A task has ended in good order.
    pub(crate) fn ended(&mut self, task: &Task) {
        let Place { later, lead, was_later, is_whole, .. } = *self.place(task.id);
        if is_whole {
            self.function(task.function).learned.learn(later, was_later.then_some(lead));
        }
        self.gone(task.id, task.tenant);
    }

    /// A task is not this worker's any more.
    pub(crate) fn gone(&mut self, id: TaskId, tenant: TenantId) {
        let ahead = std::mem::take(&mut self.place(id).ahead);
        self.ahead.remove(tenant, ahead);
    }

    /// A task was to begin or to go on, and is over without: another one may begin in its place.
    pub(crate) fn dropped(&mut self, task: &Task) {
        self.gone(task.id, task.tenant);
        self.ahead.dropped();
    }

    /// Whether no request of that function may begin now.
    pub(crate) fn is_held(&self, tenant: TenantId, function: FunctionId) -> bool {
        let learned = |of: &Function| self.ahead.is_enough(tenant, &of.learned);
        self.settings.limits && self.functions.get(function.0 as usize).is_some_and(learned)
    }

    /// What ended in each class, and what ran there, since that was last asked.
    pub(crate) const fn take_counts(&mut self) -> [[u64; 2]; CLASSES] {
        std::mem::replace(&mut self.counts, [[0; 2]; CLASSES])
    }

    /// When one may begin nevertheless, if the worker has nothing else to do.
    pub(crate) const fn begins_anyway_at(&self) -> Option<Instant> {
        self.ahead.begins_anyway_at()
    }

    fn function(&mut self, function: FunctionId) -> &mut Function {
        let index = function.0 as usize;
        if self.functions.len() <= index {
            self.functions.resize_with(index + 1, Function::default);
        }
        &mut self.functions[index]
    }

    fn place(&mut self, id: TaskId) -> &mut Place {
        let index = id.0 as usize;
        if self.tasks.len() <= index {
            self.tasks.resize(index + 1, Place::default());
        }
        &mut self.tasks[index]
    }
}
