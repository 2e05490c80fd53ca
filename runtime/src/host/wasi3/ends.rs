//! Streams and futures of which the host has one end, by the number that the component's glue gives them (`outside.wat`).
//!
//! ```text
//!   Call::share(number, end)      the host has that end now
//!   copy, exchange --> End::transfer      the component reads or writes
//!   close --> End::close                  the component has dropped its end
//!   Call::taken(number) --> end           the component gives back what it got from the host, which has both ends then
//! ```
//!
//! Reading and writing waits as any host call does, so it becomes an operation of the component. What a plain module makes up for numbers leads to ends of its
//! own invocation only.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use awsm_abi::component::{CANONICAL, CLOSE, COPY, EXCHANGE};
use awsm_abi::types::ValType::I32;
use tokio::sync::watch;

use crate::component_trap::ComponentTrap;
use crate::host::Effect::{Head, Stream};
use crate::host::canonical::{Lower, Resource, Subject, canonical};
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::sockets::send_some_then;
use crate::host::wasi2::streams::{Content, OutputStream, read_then, room, write_then};
use crate::host::{Call, Flat, HostFunction, Stop};

/// The most ends of one invocation: they count nowhere else.
const ENDS_MAX: usize = 1 << 14;
/// Which argument of [`COPY`] and of [`EXCHANGE`] is the address.
pub(in crate::host) const ADDRESS: usize = 1;

/// What glue imports for them.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(CANONICAL, COPY, &[I32, I32, I32, I32, I32], &[I32], Stream, exchange),
    // Trailers are a head's.
    canonical(CANONICAL, EXCHANGE, &[I32, I32, I32, I32, I32], &[I32], Head, exchange),
    canonical(CANONICAL, CLOSE, &[I32], &[], Stream, close),
];

/// The ends that the host has in an invocation.
#[derive(Debug, Default)]
pub(in crate::host) struct Ends {
    by_number: BTreeMap<u32, Arc<dyn End>>,
    /// What becomes of the response's body.
    response: Option<Arc<Outcome>>,
    /// Whether the task is over that the server began.
    is_over: bool,
}

/// What the component reads or writes.
#[derive(Clone, Copy, Debug)]
pub(in crate::host) struct Transfer {
    /// Where its buffer is.
    pub(in crate::host) address: u64,
    /// How many values there is room for, or there are.
    pub(in crate::host) count: u32,
    /// Whether it writes.
    pub(in crate::host) writes: bool,
}

/// What a transfer comes to, as the glue knows it.
pub(in crate::host) enum Moved {
    /// So many values.
    Values(u32),
    /// None: the host's end is dropped.
    Dropped,
}

impl From<Moved> for Flat {
    fn from(moved: Moved) -> Flat {
        Flat::from(match moved {
            Moved::Values(count) => count << 4,
            Moved::Dropped => 1,
        })
    }
}

/// The host's end of a stream or future.
pub(in crate::host) trait End: Any + fmt::Debug + Send + Sync {
    /// The component reads or writes: at once, or after a wait.
    ///
    /// # Errors
    /// A trap, or the wait.
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop>;

    /// The component has dropped its end.
    ///
    /// # Errors
    /// When the invocation ends by that.
    fn close(&self, _: &mut Call<'_>) -> Result<(), Stop> {
        Ok(())
    }
}

/// How the transfer of a stream ended: well, or because of that.
#[derive(Debug)]
pub(in crate::host) struct Outcome<F = Fault>(watch::Sender<Option<Result<(), F>>>);

impl<F> Default for Outcome<F> {
    fn default() -> Outcome<F> {
        Outcome(watch::Sender::new(None))
    }
}

impl<F: Clone + Send + Sync + 'static> Outcome<F> {
    /// It ended so, unless it had ended before.
    pub(in crate::host) fn end(&self, result: Result<(), F>) {
        self.0.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(result);
            is_first
        });
    }

    /// How it ended, if it has.
    pub(super) fn known(&self) -> Option<Result<(), F>> {
        self.0.borrow().clone()
    }

    /// Goes on when it has ended.
    ///
    /// # Errors
    /// Those of `then`, or the wait.
    pub(super) fn then(
        &self,
        call: &mut Call<'_>,
        then: impl FnOnce(&mut Call<'_>, Result<(), F>) -> Result<Flat, Stop> + Send + 'static,
    ) -> Result<Flat, Stop> {
        if let Some(result) = self.known() {
            return then(call, result);
        }
        let mut end = self.0.subscribe();
        let wait = async move { end.wait_for(Option::is_some).await.ok().and_then(|result| result.clone()) };
        // What could end it with an error is gone.
        Err(call.wait(wait, move |call, result| then(call, result.unwrap_or(Ok(())))))
    }
}

/// An `error-code`, of the interface that has the future in which it is told.
pub(in crate::host) trait FaultCode<F = Fault>: Lower + Send + 'static {
    /// What a fault is called there.
    fn of(fault: F) -> Self;
}

/// A `future<result<_, error-code>>`: what became of a stream.
pub(in crate::host) struct Told<E, F = Fault> {
    outcome: Arc<Outcome<F>>,
    code: std::marker::PhantomData<fn() -> E>,
}

impl<E, F> Told<E, F> {
    pub(in crate::host) fn new(outcome: Arc<Outcome<F>>) -> Arc<Told<E, F>> {
        Arc::new(Told { outcome, code: std::marker::PhantomData })
    }
}

impl<E, F: fmt::Debug> fmt::Debug for Told<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Told").field(&self.outcome).finish()
    }
}

impl<E: FaultCode<F>, F: Clone + fmt::Debug + Send + Sync + 'static> End for Told<E, F> {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        if transfer.writes {
            return Err(ComponentTrap::NothingToResume.into());
        }
        self.outcome.then(call, |call, result| {
            call.lower(ADDRESS, result.map_err(E::of))?;
            Ok(Moved::Values(1).into())
        })
    }
}

/// Bytes of an input stream of WASI 0.2, which the component reads.
#[derive(Debug)]
pub(super) struct Source {
    /// Its representation.
    pub(super) stream: u32,
    pub(super) outcome: Arc<Outcome>,
}

impl End for Source {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        let Transfer { address, count, writes: false } = transfer else {
            return Err(ComponentTrap::NothingToResume.into());
        };
        if count == 0 {
            return none_when_ready(call, self.stream);
        }
        read_then(call, self.stream, count.into(), true, move |call, result| {
            Ok(Flat::from(match result {
                Ok(bytes) => {
                    let memory = call.memory.as_mut().ok_or(ComponentTrap::OutOfBounds)?;
                    memory.write(address, &bytes).map_err(|_| ComponentTrap::OutOfBounds)?;
                    Moved::Values(bytes.len() as u32)
                }
                Err(fault) => {
                    self.outcome.end(if matches!(fault, Fault::Closed) { Ok(()) } else { Err(fault) });
                    Moved::Dropped
                }
            }))
        })
    }

    fn close(&self, call: &mut Call<'_>) -> Result<(), Stop> {
        self.outcome.end(Ok(()));
        call.context.ports.drop_resource(self.stream)
    }
}

/// An output stream of WASI 0.2, to which the component writes.
#[derive(Debug)]
pub(super) struct Sink {
    /// Its representation.
    pub(super) stream: u32,
    pub(super) outcome: Arc<Outcome>,
}

impl End for Sink {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        let (stream, outcome) = (self.stream, Arc::clone(&self.outcome));
        write(call, stream, transfer, move |_, fault| {
            outcome.end(Err(fault));
            Ok(())
        })
    }

    fn close(&self, call: &mut Call<'_>) -> Result<(), Stop> {
        self.outcome.end(Ok(()));
        call.context.ports.drop_resource(self.stream)
    }
}

/// The component transfers nothing: it asks to be told when the stream is ready for more.
fn none_when_ready(call: &mut Call<'_>, stream: u32) -> Result<Flat, Stop> {
    let subjects = [Subject::Of(stream)];
    if call.ready(&subjects)?.is_empty() {
        return Err(call.until_ready(&subjects, move |call| none_when_ready(call, stream)));
    }
    Ok(Moved::Values(0).into())
}

/// Begins a transfer: its stream, and what becomes of it, which is told in the future whose number is argument `future`. Where there is nothing to transfer, the
/// stream is one that has failed.
///
/// # Errors
/// A trap, when there are too many.
pub(super) fn begin<E: FaultCode, T: Resource>(
    call: &mut Call<'_>,
    future: usize,
    stream: Result<T, Fault>,
    failed: T,
) -> Result<(u32, Arc<Outcome>), Stop> {
    let outcome = Arc::<Outcome>::default();
    let stream = stream.unwrap_or_else(|fault| {
        outcome.end(Err(fault));
        failed
    });
    let stream = call.context.ports.resources_mut().insert(Box::new(stream), None)?;
    call.share(call.args.u32(future), Told::<E>::new(Arc::clone(&outcome)))?;
    Ok((stream, outcome))
}

/// The component writes bytes to an output stream: as many as there is room for, so that nothing is lost where it gives that up while it waits.
///
/// # Errors
/// A trap, or the wait.
pub(super) fn write(
    call: &mut Call<'_>,
    stream: u32,
    transfer: Transfer,
    failed: impl FnOnce(&mut Call<'_>, Fault) -> Result<(), Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    let Transfer { address, count, writes: true } = transfer else {
        return Err(ComponentTrap::NothingToResume.into());
    };
    if count == 0 {
        return none_when_ready(call, stream);
    }
    if let OutputStream::Socket(connection) = call.context.ports.resource(stream)? {
        let connection = Arc::clone(connection);
        return send_some_then(call, stream, connection, address, count as usize, move |call, result| {
            moved(call, result, failed)
        });
    }
    let room = room(call, stream)?;
    if room == 0 {
        return Err(call.until_ready(&[Subject::Of(stream)], move |call| write(call, stream, transfer, failed)));
    }
    let count = room.min(count as usize);
    write_then(call, stream, Content::Guest(address), 0, count, move |call, result| moved(call, result.map(|()| count), failed))
}

/// What the component learns of a write of so many bytes.
fn moved(
    call: &mut Call<'_>,
    result: Result<usize, Fault>,
    failed: impl FnOnce(&mut Call<'_>, Fault) -> Result<(), Stop>,
) -> Result<Flat, Stop> {
    Ok(Flat::from(match result {
        // No more than were to be written.
        Ok(count) => Moved::Values(count as u32),
        Err(fault) => {
            failed(call, fault)?;
            Moved::Dropped
        }
    }))
}

impl Call<'_> {
    /// The host has one end of the stream or future of that number now.
    ///
    /// # Errors
    /// A trap, when there are too many.
    pub(in crate::host) fn share(&mut self, number: u32, end: Arc<dyn End>) -> Result<(), Stop> {
        let ends = &mut self.context.ends.get_or_insert_default().by_number;
        if ends.len() >= ENDS_MAX {
            return Err(
                ComponentTrap::TooMany { max: ENDS_MAX, what: "streams and futures with an end that the host has" }.into()
            );
        }
        ends.insert(number, end);
        Ok(())
    }

    /// The host's end, if the host had given the other one to the component, which gives that back now.
    pub(super) fn taken(&mut self, number: u32) -> Option<Arc<dyn End>> {
        self.context.ends.as_mut()?.by_number.remove(&number)
    }

    /// The invocation goes on until the response's body has ended.
    pub(super) fn expect(&mut self, outcome: Arc<Outcome>) {
        self.context.ends.get_or_insert_default().response = Some(outcome);
    }

    /// Whether it has not.
    pub(super) fn is_expecting(&self) -> bool {
        let response = self.context.ends.as_ref().and_then(|ends| ends.response.as_ref());
        response.is_some_and(|outcome| outcome.known().is_none())
    }

    /// The task is over that the server began.
    pub(super) fn task_is_over(&mut self) {
        self.context.ends.get_or_insert_default().is_over = true;
    }

    /// Whether it is.
    pub(super) fn is_task_over(&self) -> bool {
        self.context.ends.as_ref().is_some_and(|ends| ends.is_over)
    }
}

/// `copy(table, address, count, writes, number) -> packed`, and `exchange`
fn exchange(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let args = &call.args;
    let (number, transfer) =
        (args.u32(4), Transfer { address: args.address(ADDRESS), count: args.u32(2), writes: args.u32(3) != 0 });
    let end = call.context.ends.as_ref().and_then(|ends| ends.by_number.get(&number)).map(Arc::clone);
    end.ok_or(ComponentTrap::NothingToResume)?.transfer(call, transfer)
}

/// `close(number)`: what was written before has gone on its way.
fn close(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let number = call.args.u32(0);
    if let Some(end) = call.taken(number) {
        end.close(call)?;
    }
    Ok(Flat::NONE)
}
