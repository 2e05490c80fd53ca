//! Waiting for clocks and streams.
//!
//! Files, whole bodies and the log make no function wait. So what is left to wait for is time, a body that is still coming, a reply that streams, and calls by gRPC: the sandbox is blocked
//! until then. `sledge run` has files as streams, and waits for them there and then.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::time::clock_gettime;
use sledge_sandbox::GuestMemory;
use smallvec::SmallVec;

use super::clocks::{clock, nanoseconds};
use super::descriptors::{Descriptor, Descriptors, Kind, Standard};
use super::{Errno, rights};
use crate::host::signal::Signal;
use crate::host::{Call, Input, Output, Stop, Streams};

/// Subscriptions of one call.
pub(super) const SUBSCRIPTIONS_MAX: u32 = 1_024;
const SUBSCRIPTION_BYTES: u64 = 48;
const EVENT_BYTES: u64 = 32;

const EVENTTYPE_CLOCK: u8 = 0;
const EVENTTYPE_FD_READ: u8 = 1;
const EVENTTYPE_FD_WRITE: u8 = 2;
const SUBSCRIPTION_CLOCK_ABSTIME: u16 = 1;

/// What a guest waits for.
struct Subscription {
    userdata: u64,
    to: Subject,
}

enum Subject {
    Clock(Result<Option<Instant>, Errno>),
    Fd { ty: u8, fd: u32 },
}

/// What became of it.
struct Event {
    userdata: u64,
    errno: Errno,
    ty: u8,
    bytes: u64,
}

/// `poll_oneoff(in: *subscription, out: *event, count: size, events: *size)`: answers as soon as there is one event.
pub(super) fn poll_oneoff(call: &mut Call<'_>) -> Result<(), Stop> {
    poll(call, Instant::now())
}

/// The same of a call that was made at that time.
fn poll(call: &mut Call<'_>, begun: Instant) -> Result<(), Stop> {
    let (from, to, count, result) = (call.args.address(0), call.args.address(1), call.args.u32(2), call.args.address(3));
    if count == 0 || count > SUBSCRIPTIONS_MAX {
        return Err(Errno::INVAL.into());
    }
    let (memory, context) = call.split()?;
    memory.slice(to, u64::from(count) * EVENT_BYTES)?;
    memory.slice(result, 4)?;
    // All are read before an event is written: the guest's two lists may overlap.
    let list = memory.slice(from, u64::from(count) * SUBSCRIPTION_BYTES)?;
    let list: SmallVec<[Subscription; 4]> =
        list.chunks_exact(SUBSCRIPTION_BYTES as usize).map(|bytes| subscription(bytes, begun)).collect::<Result<_, _>>()?;
    let (descriptors, streams) = context.ports.open_files()?;
    let events = events(&list, descriptors, streams);
    if events.is_empty() {
        let first = list.iter().filter_map(|subscription| match subscription.to {
            Subject::Clock(Ok(until)) => until,
            Subject::Clock(Err(_)) | Subject::Fd { .. } => None,
        });
        return wait(call, &list, first.min(), begun);
    }
    put(memory, to, &events)?;
    memory.write_u32(result, events.len() as u32)?;
    Ok(())
}

/// Reads a subscription: `{ userdata: u64, tag: u8 at 8, clock: { id: u32 at 16, timeout: u64 at 24, precision: u64 at 32,
/// flags: u16 at 40 } or fd: u32 at 16 }`.
fn subscription(bytes: &[u8], begun: Instant) -> Result<Subscription, Errno> {
    let field =
        |at: usize, count: usize| bytes[at..at + count].iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    let userdata = field(0, 8);
    let to = match field(8, 1) as u8 {
        EVENTTYPE_CLOCK => Subject::Clock(until(field(16, 4) as u32, field(24, 8), field(40, 2) as u16, begun)),
        ty @ (EVENTTYPE_FD_READ | EVENTTYPE_FD_WRITE) => Subject::Fd { ty, fd: field(16, 4) as u32 },
        _ => return Err(Errno::INVAL),
    };
    Ok(Subscription { userdata, to })
}

/// When a clock's time has come; never, when that is further away than time goes here.
fn until(id: u32, timeout: u64, flags: u16, begun: Instant) -> Result<Option<Instant>, Errno> {
    let clock = clock(id)?;
    match flags {
        0 => Ok(begun.checked_add(Duration::from_nanos(timeout))),
        SUBSCRIPTION_CLOCK_ABSTIME => {
            // What the system's clock is set to meanwhile is seen when it is looked at again.
            let left = timeout.saturating_sub(nanoseconds(clock_gettime(clock)));
            Ok(Instant::now().checked_add(Duration::from_nanos(left)))
        }
        _ => Err(Errno::INVAL),
    }
}

/// What can be told now.
fn events(list: &[Subscription], descriptors: &mut Descriptors, streams: &mut Streams) -> SmallVec<[Event; 4]> {
    let now = Instant::now();
    let mut event = |subscription: &Subscription| {
        let (ty, result) = match subscription.to {
            Subject::Clock(Ok(until)) if until.is_some_and(|until| until <= now) => (EVENTTYPE_CLOCK, Ok(0)),
            Subject::Clock(Ok(_)) => return None,
            Subject::Clock(Err(errno)) => (EVENTTYPE_CLOCK, Err(errno)),
            Subject::Fd { ty, fd } => (ty, ready(descriptors, streams, ty, fd).transpose()?),
        };
        let (errno, bytes) = result.map_or_else(|errno| (errno, 0), |bytes| (Errno::SUCCESS, bytes));
        Some(Event { userdata: subscription.userdata, errno, ty, bytes })
    };
    list.iter().filter_map(&mut event).collect()
}

/// How many bytes there are to read, or an answer that something can be written; none when neither is so now.
fn ready(descriptors: &mut Descriptors, streams: &mut Streams, ty: u8, fd: u32) -> Result<Option<u64>, Errno> {
    let descriptor = descriptors.with(fd, rights::POLL_FD_READWRITE)?;
    match &descriptor.kind {
        Kind::Stream(Standard::Input) if ty == EVENTTYPE_FD_READ => match &mut streams.input {
            // None at its end, which is no reason to wait either.
            Input::Body(body) => Ok(body.look().then_some(body.left() as u64)),
            // It is not known how many; a deadline that is over ends the wait itself.
            input @ Input::File { .. } => Ok(input.wait_until(Some(Instant::now())).unwrap_or(false).then_some(1)),
        },
        Kind::Stream(Standard::Input) => Err(Errno::BADF),
        Kind::Stream(Standard::Output | Standard::Errors) if ty == EVENTTYPE_FD_READ => Err(Errno::BADF),
        Kind::File(file) if ty == EVENTTYPE_FD_READ => Ok(Some(file.contents.left())),
        Kind::Stream(Standard::Output) => Ok(has_room(&streams.output).then_some(0)),
        Kind::Stream(_) | Kind::File(_) => Ok(Some(0)),
        Kind::Folder(_) => Err(Errno::ISDIR),
        Kind::Rpc(_) => {
            let found = poll_rpc(descriptors, ty, fd, None);
            found.map(|(ready, _)| if let Poll::Ready(bytes) = ready { Some(bytes) } else { None })
        }
    }
}

/// Whether writing to the reply would not wait.
fn has_room(output: &Output) -> bool {
    if let Output::Stream(writer) = output { writer.has_room() } else { true }
}

/// Whether there are bytes of a call to read, or something can be written; and when to look again at the latest. That its head has come is told once.
fn poll_rpc(
    descriptors: &mut Descriptors,
    ty: u8,
    fd: u32,
    waker: Option<&Waker>,
) -> Result<(Poll<u64>, Option<Instant>), Errno> {
    let context = &mut Context::from_waker(waker.unwrap_or(Waker::noop()));
    descriptors.with_rpc(fd, |rpc| -> Result<_, Errno> {
        let ready = if ty == EVENTTYPE_FD_READ {
            rpc.poll_read(context).map(|bytes| bytes as u64)
        } else {
            rpc.poll_write(context).map(|()| 0)
        };
        if ready.is_ready() && ty == EVENTTYPE_FD_READ && waker.is_none() {
            rpc.told_head();
        }
        Ok((ready, rpc.until()))
    })
}

/// Waits until `until`, or for the input; then looks again.
fn wait(call: &mut Call<'_>, list: &[Subscription], until: Option<Instant>, begun: Instant) -> Result<(), Stop> {
    if call.context.ports.descriptors()?.has_rpcs() || !has_room(&call.context.ports.streams()?.output) {
        return wait_for_any(call, list, until, begun);
    }
    let descriptors = call.context.ports.descriptors()?;
    let is_input = |fd| matches!(descriptors.get(fd), Ok(Descriptor { kind: Kind::Stream(Standard::Input), .. }));
    if list.iter().any(|subscription| matches!(subscription.to, Subject::Fd { fd, .. } if is_input(fd))) {
        let next = match &mut call.context.ports.streams_mut()?.input {
            Input::Body(body) => body.next(until),
            input @ Input::File { .. } => {
                input.wait_until(until)?;
                None
            }
        };
        let Some(next) = next else { return poll(call, begun) };
        return Err(call.wait(next, move |call, came| {
            if let Input::Body(body) = &mut call.context.ports.streams_mut()?.input {
                body.came(came);
            }
            poll(call, begun)
        }));
    }
    let time = async move {
        match until {
            Some(until) => tokio::time::sleep_until(until.into()).await,
            None => std::future::pending().await,
        }
    };
    Err(call.wait(time, move |call, ()| poll(call, begun)))
}

/// The same where calls by gRPC, or room for the reply, are among what may be waited for: each is looked at with one waker.
fn wait_for_any(call: &mut Call<'_>, list: &[Subscription], until: Option<Instant>, begun: Instant) -> Result<(), Stop> {
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    let mut until = until;
    let mut wake_at = |time: Option<Instant>| until = until.into_iter().chain(time).min();
    let (descriptors, streams) = call.context.ports.open_files()?;
    for subscription in list {
        let Subject::Fd { ty, fd } = subscription.to else { continue };
        match descriptors.get(fd).map(|descriptor| &descriptor.kind) {
            Ok(Kind::Stream(Standard::Input)) => {
                let Input::Body(body) = &mut streams.input else { continue };
                match body.begin_wait(&mut Context::from_waker(&waker)) {
                    Some(time) => wake_at(Some(time)),
                    None => waker.wake_by_ref(),
                }
            }
            Ok(Kind::Stream(Standard::Output)) => {
                if let Output::Stream(writer) = &streams.output
                    && writer.poll_room(&Context::from_waker(&waker)).is_ready()
                {
                    waker.wake_by_ref();
                }
            }
            Ok(Kind::Rpc(_)) => match poll_rpc(descriptors, ty, fd, Some(&waker))? {
                (Poll::Ready(_), _) => waker.wake_by_ref(),
                (Poll::Pending, time) => wake_at(time),
            },
            _ => {}
        }
    }
    Err(call.wait(signal.wait(until), move |call, ()| poll(call, begun)))
}

/// Writes events: `{ userdata: u64, error: u16 at 8, type: u8 at 10, nbytes: u64 at 16, flags: u16 at 24 }`.
fn put(memory: &mut GuestMemory<'_>, to: u64, events: &[Event]) -> Result<(), Stop> {
    for (index, event) in (0u64..).zip(events) {
        let mut bytes = [0; EVENT_BYTES as usize];
        bytes[..8].copy_from_slice(&event.userdata.to_le_bytes());
        bytes[8..10].copy_from_slice(&event.errno.0.to_le_bytes());
        bytes[10] = event.ty;
        bytes[16..24].copy_from_slice(&event.bytes.to_le_bytes());
        memory.write(to + index * EVENT_BYTES, &bytes)?;
    }
    Ok(())
}
