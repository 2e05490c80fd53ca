//! Operations: calls of async functions that go on while the component does something else.
//!
//! A host function waits as it always does ([`Call::wait`]). Where the component's glue has prepared an operation (`awsm_abi::component::OPERATION`), the guest is not suspended for it:
//! what it waits for is kept here under the operation's number, which is the address of its record in the component's state. `wait` suspends the guest until one of them can go on,
//! and `finish` goes on with it where its memory is at hand.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use awsm_abi::component::{CANCEL, CANONICAL, FINISH, LOOK, OPERATION, WAIT, WAIT_OWN};
use awsm_abi::types::ValType::{I32, I64};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use sledge_sandbox::GuestMemory;
use tokio::sync::Semaphore;

use super::canonical;
use crate::component_trap::ComponentTrap;
use crate::host::Effect::Safe;
use crate::host::{Args, Call, Completion, Effect, Flat, HostFunction, Pending, Stop};

/// The most operations of one invocation.
const OPERATIONS_MAX: usize = 1 << 12;
/// What one takes of the host's memory, whatever it waits for.
const OPERATION_BYTES: usize = 1 << 10;
/// Operations of one invocation that a disk has at once.
const DISK_OPERATIONS_MAX: usize = 4;

/// What glue imports for them.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(CANONICAL, WAIT, &[], &[I32], Safe, wait),
    canonical(CANONICAL, LOOK, &[], &[I32], Safe, look),
    canonical(CANONICAL, FINISH, &[I32], &[I64], Safe, finish),
    canonical(CANONICAL, CANCEL, &[I32], &[], Safe, cancel),
];

/// The operations of an invocation.
#[derive(Debug)]
pub(in crate::host) struct Operations {
    under_way: FuturesUnordered<UnderWay>,
    /// What they wait for, by their numbers. One that was given up waits for nothing, and stands among those under way until there are many of these.
    waits: BTreeMap<u32, Waits>,
    /// Those whose time has come.
    ready: BTreeMap<u32, Ready>,
    /// How many there are that the host does by itself and the invocation waits for, and how many of its own there have been.
    own: u32,
    own_begun: u32,
    /// Bytes that they have taken along.
    bytes: Arc<AtomicUsize>,
    disk: Arc<Semaphore>,
}

/// What an operation waits for; nothing when that is over, or the operation was given up.
type Waits = Arc<Mutex<Option<Pending>>>;

/// Bytes that an operation has taken along, for as long as it has them.
#[derive(Debug)]
pub(in crate::host) struct Taken {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Relaxed);
    }
}

fn lock(waits: &Waits) -> MutexGuard<'_, Option<Pending>> {
    // What is done under the lock panics as a host call does, which ends the invocation.
    waits.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an operation is one that the host does by itself. Records of the component have even addresses.
const fn is_own(id: u32) -> bool {
    id & 1 == 1
}

/// What an operation waits for.
#[derive(Debug)]
struct UnderWay {
    id: u32,
    call: Option<Saved>,
    waits: Waits,
}

/// The call that became an operation.
#[derive(Clone, Copy, Debug)]
struct Saved {
    args: Args,
    effect: Effect,
    /// Whether it is the host's own, and the invocation goes on until it is over.
    is_awaited: bool,
}

/// What comes of a call, and what it waits for, if it does.
type Outcome = (Result<Flat, Stop>, Option<Pending>);

struct Ready {
    call: Saved,
    completion: Completion,
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ready")
    }
}

impl Future for UnderWay {
    type Output = (u32, Option<Ready>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<(u32, Option<Ready>)> {
        let completion = {
            let mut waits = lock(&self.waits);
            let Some(pending) = &mut *waits else { return Poll::Ready((self.id, None)) };
            let polled = ready!(pending.poll(context));
            *waits = None;
            polled
        };
        // A panic is the invocation's, as of a guest that is suspended for it.
        let Ok(completion) = completion else { std::panic::panic_any("a host call panicked") };
        Poll::Ready((self.id, self.call.take().map(|call| Ready { call, completion })))
    }
}

impl Default for Operations {
    fn default() -> Operations {
        Operations {
            under_way: FuturesUnordered::new(),
            waits: BTreeMap::new(),
            ready: BTreeMap::new(),
            own: 0,
            own_begun: 0,
            bytes: Arc::default(),
            disk: Arc::new(Semaphore::new(DISK_OPERATIONS_MAX)),
        }
    }
}

impl Operations {
    fn begin(&mut self, id: u32, call: Saved, pending: Pending) -> Result<(), Stop> {
        if self.waits.len() + self.ready.len() >= OPERATIONS_MAX {
            return Err(ComponentTrap::TooMany { max: OPERATIONS_MAX, what: "calls to the host" }.into());
        }
        // Seldom enough that it costs each of them little.
        if self.under_way.len() > 2 * self.waits.len() + 64 {
            let all = std::mem::take(&mut self.under_way);
            self.under_way = all.into_iter().filter(|under_way| lock(&under_way.waits).is_some()).collect();
        }
        let waits = Arc::new(Mutex::new(Some(pending)));
        self.under_way.push(UnderWay { id, call: Some(call), waits: Arc::clone(&waits) });
        self.waits.insert(id, waits);
        Ok(())
    }

    /// Drops what an operation waits for.
    fn give_up(&mut self, id: u32) {
        if let Some(waits) = self.waits.remove(&id) {
            *lock(&waits) = None;
        }
        self.ready.remove(&id);
    }

    /// Counts bytes that an operation takes along.
    pub(in crate::host) fn take(&self, bytes: usize) -> Taken {
        self.bytes.fetch_add(bytes, Relaxed);
        Taken { all: Arc::clone(&self.bytes), bytes }
    }

    /// Lets few of them have the disk at once.
    pub(in crate::host) fn disk(&self) -> Arc<Semaphore> {
        Arc::clone(&self.disk)
    }

    /// Bytes of the host's memory that they keep.
    pub(in crate::host) fn memory_bytes(&self) -> usize {
        (self.under_way.len() + self.ready.len()) * OPERATION_BYTES + self.bytes.load(Relaxed)
    }

    /// The next that can go on; zero where none is under way.
    async fn next(&mut self) -> u32 {
        while let Some(over) = self.under_way.next().await {
            if let (id, Some(ready)) = over {
                self.waits.remove(&id);
                self.ready.insert(id, ready);
                return id;
            }
        }
        0
    }
}

impl Call<'_> {
    /// Does that while the component does something else, which does not learn of it. The arguments of this call are there then; its memory and handles are not.
    /// The invocation goes on until it is over, if it `is_awaited`.
    ///
    /// # Errors
    /// A trap, when there are too many operations.
    pub(in crate::host) fn go_on_alone(
        &mut self,
        effect: Effect,
        is_awaited: bool,
        then: impl FnOnce(&mut Call<'_>) -> Result<Flat, Stop> + Send + 'static,
    ) -> Result<(), Stop> {
        let pending = Pending::new(std::future::ready(()), move |call, ()| then(call));
        let operations = self.context.operations.get_or_insert_default();
        let id = operations.own_begun.wrapping_mul(2) | 1;
        operations.begin(id, Saved { args: *self.args, effect, is_awaited }, pending)?;
        (operations.own, operations.own_begun) = (operations.own + u32::from(is_awaited), operations.own_begun.wrapping_add(1));
        Ok(())
    }

    /// Whether there is something that the host does by itself and the invocation waits for.
    pub(in crate::host) fn goes_on_alone(&self) -> bool {
        self.context.operations.as_ref().is_some_and(|operations| operations.own > 0)
    }

    /// Goes on with that.
    fn go_on_with_own(&mut self, id: u32) -> Result<(), Stop> {
        let (saved, (result, pending)) = self.complete(id)?;
        let Some(operations) = &mut self.context.operations else { return Ok(()) };
        match (result, pending) {
            (Err(Stop::Waits), Some(pending)) => operations.begin(id, saved, pending),
            (result, _) => {
                operations.own -= u32::from(saved.is_awaited);
                result.map(drop)
            }
        }
    }

    /// Completes the wait of an operation, which sees the call that it was: that call, what comes of it, and what it waits for then.
    fn complete(&mut self, id: u32) -> Result<(Saved, Outcome), Stop> {
        let ready = self.context.operations.as_mut().and_then(|operations| operations.ready.remove(&id));
        let Ready { call: saved, completion } = ready.ok_or(ComponentTrap::NothingToResume)?;
        self.context.ports.open(saved.effect);
        let (memory, state) = (self.memory.as_mut().map(GuestMemory::reborrow), self.state.as_mut().map(GuestMemory::reborrow));
        let mut call = Call { args: &saved.args, memory, state, context: self.context, pending: None };
        let result = completion(&mut call);
        let pending = call.pending;
        Ok((saved, (result, pending)))
    }

    /// What comes of a host call: what it would wait for becomes an operation, if one is prepared.
    pub(in crate::host) fn or_operation(
        &mut self,
        (args, effect): (&Args, Effect),
        result: Result<Flat, Stop>,
        pending: Option<Pending>,
    ) -> Outcome {
        let (Err(Stop::Waits), Some(pending)) = (&result, pending) else { return (result, None) };
        match self.take_operation() {
            Ok(0) => (Err(Stop::Waits), Some(pending)),
            Ok(id) => {
                let saved = Saved { args: *args, effect, is_awaited: false };
                let operations = self.context.operations.get_or_insert_default();
                (operations.begin(id, saved, pending).map(|()| Flat::NONE), None)
            }
            Err(stop) => (Err(stop), None),
        }
    }

    /// The operation that is prepared, or zero: it is taken.
    fn take_operation(&mut self) -> Result<u32, Stop> {
        let Some(state) = &mut self.state else { return Ok(0) };
        let id = state.read_u32(OPERATION).map_err(|_| ComponentTrap::OutOfBounds)?;
        if is_own(id) {
            return Err(ComponentTrap::NothingToResume.into());
        }
        if id != 0 {
            state.write_u32(OPERATION, 0).map_err(|_| ComponentTrap::OutOfBounds)?;
        }
        Ok(id)
    }
}

/// `wait() -> operation`
fn wait(call: &mut Call<'_>) -> Result<Flat, Stop> {
    next(call, false)
}

/// `look() -> operation`
fn look(call: &mut Call<'_>) -> Result<Flat, Stop> {
    next(call, true)
}

/// The next operation that can go on. The guest waits for one, or only until the worker has looked at what wakes them.
fn next(call: &mut Call<'_>, only_looks: bool) -> Result<Flat, Stop> {
    let Some(mut operations) = call.context.operations.take() else { return Ok(Flat::from(0_u32)) };
    let kept = operations.memory_bytes();
    let next = async move {
        let id = if only_looks {
            let mut next = pin!(operations.next());
            let mut has_looked = false;
            poll_fn(|context| match next.as_mut().poll(context) {
                Poll::Ready(id) => Poll::Ready(id),
                Poll::Pending if has_looked => Poll::Ready(0),
                Poll::Pending => {
                    has_looked = true;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            })
            .await
        } else {
            operations.next().await
        };
        (operations, id)
    };
    // They are not in their place meanwhile.
    call.context.waiting_bytes = kept;
    Err(call.wait(next, |call, (operations, id)| {
        call.context.waiting_bytes = 0;
        call.context.operations = Some(operations);
        if !is_own(id) {
            return Ok(Flat::from(id));
        }
        call.go_on_with_own(id)?;
        Ok(Flat::from(WAIT_OWN))
    }))
}

/// `finish(operation) -> result`: whether it is over says what is prepared afterwards.
fn finish(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let id = call.args.u32(0);
    let (saved, (result, pending)) = call.complete(id)?;
    let (result, pending) = call.or_operation((&saved.args, saved.effect), result, pending);
    call.pending = pending;
    result
}

/// `cancel(operation)`
fn cancel(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let id = call.args.u32(0);
    if let Some(operations) = &mut call.context.operations {
        operations.give_up(id);
    }
    Ok(Flat::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(operations: &mut Operations, id: u32) -> Result<(), Stop> {
        let saved = Saved { args: Args::new(&[]), effect: Safe, is_awaited: false };
        operations.begin(id, saved, Pending::new(std::future::pending::<()>(), |_, ()| Ok(Flat::NONE)))
    }

    #[test]
    fn what_was_given_up_is_kept_nowhere() {
        let mut operations = Operations::default();
        for id in (2..40_000).step_by(2) {
            begin(&mut operations, id).unwrap();
            operations.give_up(id);
        }
        assert!(operations.under_way.len() < 100, "{}", operations.under_way.len());
        let taken = operations.take(1_000);
        assert!(operations.memory_bytes() > 1_000);
        drop(taken);
        assert!(operations.memory_bytes() < 100 * OPERATION_BYTES);
    }

    #[test]
    fn an_invocation_has_so_many_operations_at_most() {
        let mut operations = Operations::default();
        let begun = (2..).step_by(2).take_while(|id| begin(&mut operations, *id).is_ok()).count();
        assert_eq!(begun, OPERATIONS_MAX);
        operations.give_up(2);
        begin(&mut operations, 1 << 20).unwrap();
    }
}
