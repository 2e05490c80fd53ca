//! The same for WASI 0.3, as `spin:key-value@3.0.0` and `spin:variables@3.0.0` say it. Functions are async; keys come as a stream.

use std::collections::VecDeque;
use std::sync::Arc;

use awsm_abi::types::ValType::I32;

use super::Effect::{KvRead, KvWrite, Safe};
use super::canonical::{Resource, Typed, canonical, number};
use super::kv::component::{self as store, Fault, Form, Page};
use super::kv::{self, Range};
use super::spin::{Error, variable};
use super::wasi3::{ADDRESS, End, FaultCode, Moved, Outcome, Told, Transfer};
use super::{Call, Flat, HostFunction, Stop};
use crate::component_trap::ComponentTrap;

const KEY_VALUE: &str = "spin:key-value/key-value@3";
const VARIABLES: &str = "spin:variables/variables@3";

/// Stores of Spin.
#[derive(Debug)]
enum Spin3 {}

impl Form for Spin3 {
    const BUCKET: u32 = number(KEY_VALUE, "store");
    type Error = Error;
}

impl FaultCode<Fault> for Error {
    fn of(fault: Fault) -> Error {
        fault.into()
    }
}

/// The interfaces.
pub(super) const FUNCTIONS: &[HostFunction] = &[
    canonical(KEY_VALUE, "[static]store.open", &[I32, I32, I32, I32], &[I32], KvRead, store::open::<Spin3>),
    canonical(KEY_VALUE, "[method]store.get", &[I32, I32, I32, I32, I32], &[I32], KvRead, store::get::<Spin3>),
    canonical(KEY_VALUE, "[method]store.set", &[I32, I32, I32, I32, I32, I32, I32], &[I32], KvWrite, store::set::<Spin3>),
    canonical(KEY_VALUE, "[method]store.delete", &[I32, I32, I32, I32, I32], &[I32], KvWrite, store::delete::<Spin3>),
    canonical(KEY_VALUE, "[method]store.exists", &[I32, I32, I32, I32, I32], &[I32], KvRead, store::exists::<Spin3>),
    canonical(KEY_VALUE, "[method]store.get-keys", &[I32, I32, I32, I32], &[], KvRead, get_keys),
    canonical(VARIABLES, "get", &[I32, I32, I32, I32], &[I32], Safe, variable),
];

/// `get-keys(self) -> tuple<stream<string>, future<result<_, error>>>`
fn get_keys(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let rest = store::all::<Spin3>(call)?;
    let listing = Listing { rest, keys: VecDeque::new(), bytes: 0, is_last: false };
    let listing = call.context.ports.resources_mut().insert(Box::new(listing), None)?;
    let outcome = Arc::<Outcome<Fault>>::default();
    call.share(call.args.u32(2), Arc::new(Keys { listing, outcome: Arc::clone(&outcome) }))?;
    call.share(call.args.u32(3), Told::<Error, Fault>::new(outcome))?;
    Ok(Flat::NONE)
}

/// Keys that are on their way to the component.
#[derive(Debug)]
struct Listing {
    /// What was not read yet.
    rest: Range,
    /// What was read and not taken.
    keys: VecDeque<String>,
    /// Bytes of them.
    bytes: usize,
    is_last: bool,
}

impl Resource for Listing {
    fn memory_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<String>() + self.bytes + self.rest.after.as_ref().map_or(0, |after| after.len())
    }
}

/// No handle leads to it.
impl Typed for Listing {
    const NUMBER: u32 = Spin3::BUCKET;
}

/// The host's end of the stream.
#[derive(Debug)]
struct Keys {
    /// The representation of its listing.
    listing: u32,
    /// How the listing ended.
    outcome: Arc<Outcome<Fault>>,
}

impl End for Keys {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        let Transfer { count: count_max, writes: false, .. } = transfer else {
            return Err(ComponentTrap::NothingToResume.into());
        };
        // What copies from streams does not reach the store. This stream's keys are part of what `get-keys` does, whose effect that is.
        call.context.ports.open(KvRead);
        let listing = call.context.ports.resource::<Listing>(self.listing)?;
        if listing.keys.is_empty() && !listing.is_last {
            let rest = listing.rest.clone();
            return kv::keys(call, rest, Page::default(), move |call, page| match page {
                Ok(page) => {
                    let listing = call.context.ports.resource::<Listing>(self.listing)?;
                    (listing.is_last, listing.rest.after) = (page.next().is_none(), page.next().map(Box::from));
                    (listing.keys, listing.bytes) = (page.keys.into(), page.bytes);
                    // Not from here: there may be any number of pages without a key that is UTF-8. However many there are, the stack stays as it is, and
                    // the deadline ends it.
                    Err(call.wait(std::future::ready(()), move |call, ()| self.transfer(call, transfer)))
                }
                Err(error) => {
                    self.outcome.end(Err(error.into()));
                    Ok(Moved::Dropped.into())
                }
            });
        }
        let count = listing.keys.len().min(count_max as usize);
        let keys: Vec<String> = listing.keys.drain(..count).collect();
        listing.bytes -= keys.iter().map(String::len).sum::<usize>();
        call.context.ports.resources_mut().count(self.listing)?;
        if keys.is_empty() && count_max > 0 {
            self.outcome.end(Ok(()));
            return Ok(Moved::Dropped.into());
        }
        call.lower_each(ADDRESS, keys)?;
        // No more than there is room for.
        Ok(Moved::Values(count as u32).into())
    }

    fn close(&self, call: &mut Call<'_>) -> Result<(), Stop> {
        self.outcome.end(Ok(()));
        call.context.ports.drop_resource(self.listing)
    }
}
