//! What one worker needs of the others.

/// How far a server is with stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// It is not.
    Serving,
    /// It takes no new connection and finishes what it has.
    Draining,
    /// It ends what still runs.
    Killing,
}

/// What a worker has to do, as the others see it: the more it rests, the larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rest {
    /// Something that is asked for.
    #[default]
    Busy,
    /// Only what is speculative.
    Slack,
    /// Nothing.
    Idle,
}

/// What workers share, from the side of one of them. The server's is made of queues and atomics ([`Exchange`](crate::Exchange)); a simulator has its own.
///
/// What every implementation keeps, since the [scheduler](crate::Scheduler) relies on it:
///
/// * *Nothing is lost or doubled.* What is pushed or injected is taken once, by one worker.
/// * *No wake-up is lost.* After [`try_idle`](Shared::try_idle) said true, a worker that injects, or sets its backlog, wakes a worker that is idle. It may wake one in vain. The same holds of
///   [`try_slack`](Shared::try_slack), where no worker is idle.
pub trait Shared {
    /// An invocation, started or not.
    type Work;

    /// How many workers there are.
    fn workers(&self) -> usize;

    /// Whether work waits for any worker. It may have gone by the time that it is taken.
    fn has_injected(&self) -> bool;

    /// This worker's share of what was injected, oldest first. What is speculative does not count: it is taken with what stands behind it.
    fn take_injected(&mut self) -> Vec<Self::Work>;

    /// Hands work off: puts it into this worker's queue, where others may steal it.
    fn push(&mut self, work: Self::Work);

    /// Takes back what was handed off and not stolen, oldest first.
    fn pop(&mut self) -> Option<Self::Work>;

    /// Whether this worker's queue is empty.
    fn is_queue_empty(&self) -> bool;

    /// Moves what another worker handed off to this worker's queue. How much that is.
    fn steal(&mut self) -> usize;

    /// Says whether this worker's queue has work that others may take, and wakes an idle one if so.
    fn set_backlog(&mut self, backlog: bool);

    /// What that one of the other workers has to do that rests most.
    fn others(&self) -> Rest;

    /// This worker has something to do.
    fn busy(&mut self);

    /// This worker has nothing to do. False if others have work for it after all: then it is not idle.
    fn try_idle(&mut self) -> bool;

    /// This worker has only what is speculative to do. False if others have work for it after all, as in [`try_idle`](Shared::try_idle).
    fn try_slack(&mut self) -> bool;

    /// How often it has changed what is asked for of all that was begun ahead: see [`Changes`](crate::demand::Changes).
    fn changes(&self) -> u64;

    /// How far the server is with stopping.
    fn phase(&self) -> Phase;

    /// Whether no request will come any more and none is left.
    fn is_finished(&self) -> bool;
}
