//! Waiting for something, but not for ever.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// What `work` comes to, if that takes at most so long.
pub(crate) async fn within<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    before(|| Instant::now() + time, work).await
}

/// What `work` comes to before that time. Most of what is waited for here is there at once, and costs neither a timer nor a look at the clock.
pub(crate) async fn before<T>(deadline: impl FnOnce() -> Instant, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    if let Poll::Ready(result) = poll_fn(|task| Poll::Ready(work.as_mut().poll(task))).await {
        return Some(result);
    }
    tokio::time::timeout_at(deadline().into(), work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_needs_no_timer_and_what_never_comes_ends() {
        let without_timers = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(without_timers.block_on(within(Duration::ZERO, async { 7 })), Some(7));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        assert_eq!(runtime.block_on(within(Duration::from_millis(1), std::future::pending::<()>())), None);
        let soon = async {
            tokio::task::yield_now().await;
            8
        };
        assert_eq!(runtime.block_on(within(Duration::from_secs(60), soon)), Some(8));
    }
}
