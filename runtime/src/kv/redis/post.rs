//! Requests to the server that owns the records, from the others: through Redis, which all of them can reach.
//!
//! ```text
//!   asker:  asked:ID = request (with a time) | inbox <- ID      ... looks for answered:ID
//!   owner:  inbox -> ID | asked:ID -> request, while it holds the lease | answered:ID <- answer (with a time)
//! ```
//!
//! A request is taken once. One whose id was lost on the way (an owner that was stopped had received it) is still there, and its asker puts the id into the inbox again. What is asked for has to
//! be harmless when it is asked twice: an asker that gets no answer does not know whether its request was carried out.

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Script};

use super::lease::Fence;
use super::shares::Shares;
use super::{CONNECT_TIME_MAX, Redis};
use crate::kv::KvError;

/// Requests that wait for the owner.
const INBOX_MAX: usize = 10_000;
/// Bytes of a request, and of an answer.
pub const POST_BYTES_MAX: usize = 1 << 20;
/// How long an owner waits for the next request before it asks again, and how much longer Redis may take to answer.
const WAIT: Duration = Duration::from_secs(1);
const WAIT_MORE: Duration = Duration::from_secs(4);

static ASK: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[4]) then return 0 end
         redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
         redis.call('RPUSH', KEYS[2], ARGV[3])
         return 1",
    )
});
static REMIND: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('LLEN', KEYS[2]) < tonumber(ARGV[2]) then
             return redis.call('RPUSH', KEYS[2], ARGV[1])
         end
         return 0",
    )
});
static CLAIM: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
         local asked = redis.call('GET', KEYS[2])
         redis.call('DEL', KEYS[2])
         return asked",
    )
});
static COLLECT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local answered = redis.call('GET', KEYS[1])
         if answered then redis.call('DEL', KEYS[1]) end
         return answered",
    )
});

/// Where servers ask the owner, and the owner answers.
#[derive(Clone, Debug)]
pub struct Post {
    redis: Redis,
}

/// A connection over which the owner waits for requests: nothing else can be asked over it meanwhile.
pub struct Inbox {
    connection: MultiplexedConnection,
}

impl Redis {
    /// Where servers ask the owner of the records.
    #[must_use]
    pub fn post(&self) -> Post {
        Post { redis: self.clone() }
    }
}

impl Post {
    /// Asks, with an id that no other request has. The request is gone after that time, unless it is taken before.
    ///
    /// # Errors
    /// When Redis cannot be asked, too much waits, or the request is too large.
    pub async fn ask(&self, id: &str, request: &[u8], time: Duration) -> Result<(), KvError> {
        check(request)?;
        let mut script = ASK.key(Shares::asked(id));
        script.key(Shares::INBOX).arg(request).arg(milliseconds(time)).arg(id).arg(INBOX_MAX);
        let is_taken: bool = script.invoke_async(&mut self.redis.connection()?).await?;
        if is_taken { Ok(()) } else { Err(KvError::Unavailable(format!("{INBOX_MAX} requests wait for the owner"))) }
    }

    /// Has the owner look at the request again, if it was not taken.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn remind(&self, id: &str) -> Result<(), KvError> {
        let mut script = REMIND.key(Shares::asked(id));
        script.key(Shares::INBOX).arg(id).arg(INBOX_MAX);
        let _: i64 = script.invoke_async(&mut self.redis.connection()?).await?;
        Ok(())
    }

    /// The answer to a request, if it is there: it is gone then.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn collect(&self, id: &str) -> Result<Option<Bytes>, KvError> {
        Ok(COLLECT.key(Shares::answered(id)).invoke_async(&mut self.redis.connection()?).await?)
    }

    /// Where the owner waits for requests.
    ///
    /// # Errors
    /// When there is no connection to be had.
    pub async fn open(&self) -> Result<Inbox, KvError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIME_MAX))
            .set_response_timeout(Some(WAIT + WAIT_MORE));
        Ok(Inbox { connection: self.redis.client.get_multiplexed_async_connection_with_config(&config).await? })
    }

    /// Takes a request, while that fence holds the lease; none if it was taken, its time is over, or the lease is another's.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn claim(&self, fence: &Fence, id: &str) -> Result<Option<Bytes>, KvError> {
        let mut script = CLAIM.key(Shares::OWNER);
        script.key(Shares::asked(id)).arg(fence.token());
        let claimed: Option<Bytes> = script.invoke_async(&mut self.redis.connection()?).await?;
        Ok(claimed.filter(|request| request.len() <= POST_BYTES_MAX))
    }

    /// Answers a request. The answer is gone after that time.
    ///
    /// # Errors
    /// When Redis cannot be asked, or the answer is too large.
    pub async fn answer(&self, id: &str, answer: &[u8], time: Duration) -> Result<(), KvError> {
        check(answer)?;
        let mut command = Cmd::new();
        command.arg("SET").arg(Shares::answered(id)).arg(answer).arg("PX").arg(milliseconds(time));
        Ok(command.query_async(&mut self.redis.connection()?).await?)
    }
}

impl Inbox {
    /// The id of the next request, if one comes within [a moment](WAIT).
    ///
    /// # Errors
    /// When Redis cannot be asked any more over this connection.
    pub async fn next(&mut self) -> Result<Option<String>, KvError> {
        let mut command = Cmd::new();
        command.arg("BLPOP").arg(Shares::INBOX).arg(WAIT.as_secs());
        let popped: Option<(Bytes, Bytes)> = command.query_async(&mut self.connection).await?;
        Ok(popped.and_then(|(_, id)| String::from_utf8(id.to_vec()).ok()))
    }
}

fn check(message: &[u8]) -> Result<(), KvError> {
    if message.len() > POST_BYTES_MAX {
        return Err(KvError::TooLarge { what: "a request to the owner", bytes: message.len(), bytes_max: POST_BYTES_MAX });
    }
    Ok(())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}
