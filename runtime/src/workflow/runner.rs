//! Calls of functions on behalf of executions, from a thread that is no worker's.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::{Call, Runner};
use crate::invoke::function::Function;
use crate::invoke::urgency::Root;
use crate::invoke::{Dispatcher, Input, Invocation};
use crate::metrics::Shard;
use crate::outcome::Failure;
use crate::reply;
use crate::speculate::depth::Load;
use crate::txn::Transaction;

/// Has any worker run what is called.
#[derive(Debug)]
pub struct Remote {
    dispatcher: Arc<Dispatcher>,
    shard: Shard,
}

impl Remote {
    /// For a thread with these counts.
    #[must_use]
    pub const fn new(dispatcher: Arc<Dispatcher>, shard: Shard) -> Remote {
        Remote { dispatcher, shard }
    }
}

/// An invocation with that input, until its function's deadline or that one; a part of a transaction, if it is one.
///
/// # Errors
/// When it is not admitted.
pub fn invocation(
    dispatcher: &Arc<Dispatcher>,
    function: &Arc<Function>,
    input: Input,
    deadline: Option<Instant>,
    joins: Option<Arc<Transaction>>,
) -> Result<Box<Invocation>, Failure> {
    let admission = dispatcher.admit(function)?;
    let mut invocation = Invocation::new(Arc::clone(function), admission, None, input, Instant::now());
    invocation.deadline = deadline.map_or(invocation.deadline, |deadline| invocation.deadline.min(deadline));
    invocation.joins = joins;
    Ok(invocation)
}

/// The invocation of a call.
///
/// # Errors
/// When it is not admitted.
pub fn called(dispatcher: &Arc<Dispatcher>, call: Call<'_>) -> Result<Box<Invocation>, Failure> {
    let Call { function, input, deadline, joins, tells, urgency, .. } = call;
    let mut invocation = invocation(dispatcher, function, input, Some(deadline), joins)?;
    if let Some(tells) = &tells {
        tells.made();
    }
    (invocation.tells, invocation.urgency) = (tells, urgency);
    Ok(invocation)
}

impl Runner for Remote {
    fn begin(&self, call: Call<'_>) -> Result<reply::Answer, Failure> {
        let invocation = called(&self.dispatcher, call)?;
        Ok(self.dispatcher.begin(invocation, &*self.dispatcher))
    }

    fn send(&self, function: &Arc<Function>, body: Bytes) -> Result<(), Failure> {
        self.dispatcher.begin_unanswered(invocation(&self.dispatcher, function, Input::of(body), None, None)?, &*self.dispatcher);
        Ok(())
    }

    fn ended(&self, function: &Function, failure: Option<&Failure>) {
        self.shard.note(function, |row| row.ended(failure));
    }

    fn root(&self) -> Root {
        self.dispatcher.root()
    }

    fn load(&self) -> Load {
        self.dispatcher.workload(Instant::now())
    }
}
