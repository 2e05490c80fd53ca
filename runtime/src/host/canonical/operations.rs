//! Operations: calls of async functions that go on while the component does something else.
//!
//! A host function waits as it always does ([`Call::wait`]). Where the component's glue has prepared an operation (`awsm_abi::component::OPERATION`), the guest is not suspended for it:
//! what it waits for is kept here under the operation's number, which is the address of its record in the component's state. `wait` suspends the guest until one of them can go on,
//! and `finish` goes on with it where its memory is at hand.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use awsm_abi::component::{CANCEL, CANONICAL, FINISH, OPERATION, WAIT, WAIT_OWN};
use awsm_abi::types::ValType::{I32, I64};
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, abortable};
use futures_util::stream::FuturesUnordered;

use super::canonical;
use crate::component_trap::ComponentTrap;
use crate::host::Effect::Safe;
use crate::host::{Args, Call, Completion, Effect, Flat, HostFunction, Pending, Stop};

/// The most operations of one invocation: what they wait with counts nowhere else.
const OPERATIONS_MAX: usize = 1 << 14;

/// What glue imports for them.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(CANONICAL, WAIT, &[], &[I32], Safe, wait),
    canonical(CANONICAL, FINISH, &[I32], &[I64], Safe, finish),
    canonical(CANONICAL, CANCEL, &[I32], &[], Safe, cancel),
];

/// The operations of an invocation.
#[derive(Debug, Default)]
pub(in crate::host) struct Operations {
    under_way: FuturesUnordered<Abortable<UnderWay>>,
    handles: BTreeMap<u32, AbortHandle>,
    /// Those whose time has come.
    ready: BTreeMap<u32, Ready>,
    /// How many there are that the host does by itself, and how many there have been.
    own: u32,
    own_begun: u32,
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
    pending: Pending,
}

/// The call that became an operation.
#[derive(Clone, Copy, Debug)]
struct Saved {
    args: Args,
    effect: Effect,
}

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
        // A panic is the invocation's, as of a guest that is suspended for it.
        let completion = match ready!(self.pending.poll(context)) {
            Ok(completion) => completion,
            Err(_) => std::panic::panic_any("a host call panicked"),
        };
        Poll::Ready((self.id, self.call.take().map(|call| Ready { call, completion })))
    }
}

impl Operations {
    fn begin(&mut self, id: u32, call: Saved, pending: Pending) -> Result<(), Stop> {
        if self.handles.len() >= OPERATIONS_MAX {
            return Err(ComponentTrap::ResourcesExhausted.into());
        }
        let (under_way, handle) = abortable(UnderWay { id, call: Some(call), pending });
        self.under_way.push(under_way);
        self.handles.insert(id, handle);
        Ok(())
    }

    /// The next that can go on; zero where none is under way.
    async fn next(&mut self) -> u32 {
        while let Some(over) = self.under_way.next().await {
            if let Ok((id, Some(ready))) = over {
                self.handles.remove(&id);
                self.ready.insert(id, ready);
                return id;
            }
        }
        0
    }
}

impl Call<'_> {
    /// Does that while the component does something else, which does not learn of it. The arguments of this call are there then; its memory and handles are not.
    ///
    /// # Errors
    /// A trap, when there are too many operations.
    pub(in crate::host) fn go_on_alone(
        &mut self,
        effect: Effect,
        then: impl FnOnce(&mut Call<'_>) -> Result<Flat, Stop> + Send + 'static,
    ) -> Result<(), Stop> {
        let pending = Pending::new(std::future::ready(()), move |call, ()| then(call));
        let operations = self.context.operations.get_or_insert_default();
        let id = operations.own_begun.wrapping_mul(2) | 1;
        operations.begin(id, Saved { args: self.args, effect }, pending)?;
        (operations.own, operations.own_begun) = (operations.own + 1, operations.own_begun.wrapping_add(1));
        Ok(())
    }

    /// Whether there is something that the host does by itself.
    pub(in crate::host) fn goes_on_alone(&self) -> bool {
        self.context.operations.as_ref().is_some_and(|operations| operations.own > 0)
    }

    /// Goes on with that.
    fn go_on_with_own(&mut self, id: u32) -> Result<(), Stop> {
        let (saved, result) = self.complete(id)?;
        let pending = self.pending.take();
        let Some(operations) = &mut self.context.operations else { return Ok(()) };
        match (result, pending) {
            (Err(Stop::Waits), Some(pending)) => operations.begin(id, saved, pending),
            (result, _) => {
                operations.own -= 1;
                result.map(drop)
            }
        }
    }

    /// Completes the wait of an operation: the call that it was, and what comes of it.
    fn complete(&mut self, id: u32) -> Result<(Saved, Result<Flat, Stop>), Stop> {
        let ready = self.context.operations.as_mut().and_then(|operations| operations.ready.remove(&id));
        let Ready { call: saved, completion } = ready.ok_or(ComponentTrap::NothingToResume)?;
        self.args = saved.args;
        self.context.ports.open(saved.effect);
        Ok((saved, completion(self)))
    }

    /// What comes of a host call: what it would wait for becomes an operation, if one is prepared.
    pub(in crate::host) fn or_operation(
        &mut self,
        effect: Effect,
        result: Result<Flat, Stop>,
        pending: Option<Pending>,
    ) -> (Result<Flat, Stop>, Option<Pending>) {
        let (Err(Stop::Waits), Some(pending)) = (&result, pending) else { return (result, None) };
        match self.take_operation() {
            Ok(0) => (Err(Stop::Waits), Some(pending)),
            Ok(id) => {
                let saved = Saved { args: self.args, effect };
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
        if id != 0 {
            state.write_u32(OPERATION, 0).map_err(|_| ComponentTrap::OutOfBounds)?;
        }
        Ok(id)
    }
}

/// `wait() -> operation`
fn wait(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let Some(mut operations) = call.context.operations.take() else { return Ok(Flat::from(0_u32)) };
    let next = async move {
        let id = operations.next().await;
        (operations, id)
    };
    Err(call.wait(next, |call, (operations, id)| {
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
    let (saved, result) = call.complete(id)?;
    let pending = call.pending.take();
    let (result, pending) = call.or_operation(saved.effect, result, pending);
    call.pending = pending;
    result
}

/// `cancel(operation)`
fn cancel(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let id = call.args.u32(0);
    let Some(operations) = &mut call.context.operations else { return Ok(Flat::NONE) };
    if let Some(handle) = operations.handles.remove(&id) {
        handle.abort();
    }
    operations.ready.remove(&id);
    Ok(Flat::NONE)
}
