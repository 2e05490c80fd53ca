//! What a function is expected to call, begun with it: when it calls just that, it adopts what was begun.
//!
//! ```text
//!   caller   |--------call 1-----call 2--|      call 1 waits for what is left of g, call 2 adopts h as it is
//!     g      |-----------|               '----- what was not called is dropped, and was never there
//!     h      |-----|
//! ```
//!
//! [`window`] says which calls are begun, and which of them a call adopts; [`remote`] what equal calls by gRPC are; [`account`] keeps what is counted and learned until it is known whether the run counts. How that is carried out, the worker
//! knows (`worker::local::ahead`), and what the callees have read and written the [transactions](crate::txn). `txn::tests::beside` plays all of it but the worker.

pub(crate) mod account;
pub(crate) mod remote;
pub(crate) mod window;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use self::account::Account;
use self::window::Window;
use super::function::Function;
use super::urgency::Stake;
use crate::memo::callees::Callees;
use crate::reply::Answer;
use crate::speculate::sequence::{ARGUMENT_BYTES_MAX, CALLS_MAX, Made};
use crate::txn::Transaction;

/// Bytes of all arguments that are kept of one run. Those of later calls are not known then.
const ARGUMENTS_BYTES_MAX: usize = 4 * ARGUMENT_BYTES_MAX;

/// A callee that was begun before it was called. To drop it ends it.
#[derive(Debug)]
pub(crate) struct Run {
    /// What was begun.
    pub(crate) callee: Arc<Function>,
    /// Its reply comes there.
    pub(crate) answer: Answer,
    /// By which it is asked for when it is called.
    pub(crate) stake: Stake,
    pub(crate) transaction: Arc<Transaction>,
    pub(crate) began: Instant,
    /// What it leaves to be counted and learned.
    pub(crate) account: Arc<Account>,
    /// Where it tells what it did, if its caller is looked at.
    pub(crate) tells: Option<Arc<Callees>>,
}

/// What the run of a function that is expected to call others has besides.
pub(crate) struct Ahead {
    /// What it was given.
    input: Bytes,
    began: Instant,
    /// The calls that it has made, as far as they are told apart.
    made: Vec<Made>,
    arguments_bytes: usize,
    pub(crate) window: Window<Run>,
    /// Its own one; what it calls is beside that, or a part of it.
    pub(crate) transaction: Arc<Transaction>,
    /// What it and its callees leave to be counted and learned.
    pub(crate) account: Arc<Account>,
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("made", &self.made.len()).field("window", &self.window).finish_non_exhaustive()
    }
}

impl Ahead {
    /// That of a run with that input, which begins now, and is expected to make the calls of that window.
    pub(crate) fn new(input: Bytes, window: Window<Run>, transaction: Arc<Transaction>, account: Account, now: Instant) -> Ahead {
        let account = Arc::new(account);
        Ahead { input, began: now, made: Vec::new(), arguments_bytes: 0, window, transaction, account }
    }

    /// It has come to a call. The ordinal of that.
    pub(crate) fn reached(&mut self, callee: &Arc<str>, argument: &Bytes, now: Instant) -> usize {
        let ordinal = self.made.len();
        if ordinal < CALLS_MAX {
            let is_kept = argument.len() <= ARGUMENT_BYTES_MAX && self.arguments_bytes + argument.len() <= ARGUMENTS_BYTES_MAX;
            let argument = is_kept.then(|| argument.clone());
            self.arguments_bytes += argument.as_ref().map_or(0, Bytes::len);
            self.made.push(Made { callee: Arc::clone(callee), argument, reached: now.saturating_duration_since(self.began) });
        }
        ordinal
    }

    /// Its run is over: what was begun for it, what it was given, and the calls that it has made.
    pub(crate) fn end(self) -> (Window<Run>, Bytes, Vec<Made>) {
        (self.window, self.input, self.made)
    }
}
