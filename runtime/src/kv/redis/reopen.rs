//! Slots that a write of unknown outcome has closed are opened again: when Redis shows a time from which on it refuses that write.
//!
//! One task looks at Redis' clock for all slots of all tenants, for as long as some wait. A write that was made before a look at the clock is seen by all reads that are sent after it, and one that comes later is
//! answered `late` (`commit.lua`), unless the clock is set back by [more than is reckoned with](super::clock).

use std::time::Duration;

use redis::RedisError;

use super::Redis;

/// How often the clock is looked at.
const PAUSE: Duration = Duration::from_secs(1);

impl Redis {
    /// Has a slot that was just lost opened in time. On a thread with a runtime.
    pub(super) fn reopen(&self) {
        let Some(joins) = self.joins.clone().filter(|joins| joins.begins_watch()) else { return };
        let redis = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PAUSE).await;
                // A server that does not answer now may do so later.
                let Ok(shown_ms) = redis.shown_ms().await else { continue };
                if !joins.reached(redis.clock.least_ms(shown_ms)) {
                    return;
                }
            }
        });
    }

    /// What time it is for Redis, in milliseconds since 1970.
    async fn shown_ms(&self) -> Result<u64, RedisError> {
        let (seconds, microseconds): (u64, u64) = redis::cmd("TIME").query_async(&mut self.connection()?).await?;
        Ok(seconds.saturating_mul(1_000).saturating_add(microseconds / 1_000))
    }
}
