//! Addresses of names: asked of the system, which blocks for as long as its name servers do.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::blocking;

/// Lookups of one worker at a time: a quarter of the threads that may block, so that files have theirs when no name server answers.
const LOOKUPS_MAX: usize = blocking::THREADS_MAX / 4;

thread_local! {
    static LOOKUPS: Arc<Semaphore> = Arc::new(Semaphore::new(LOOKUPS_MAX));
}

/// All addresses of a host. A lookup that no request waits for any more is given up, unless it has started.
///
/// # Errors
/// When it has none, or that cannot be found out.
pub async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let host = host.to_owned();
    in_turn(move || (host, port).to_socket_addrs().map(Iterator::collect)).await
}

/// Does `work` on a thread that may block, not more of it at a time than lookups may be.
fn in_turn<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> impl Future<Output = io::Result<T>> + Send {
    let lookups = LOOKUPS.with(Arc::clone);
    async move {
        let permit = lookups.acquire_owned().await.map_err(io::Error::other)?;
        // It stays with the thread, which goes on when no request waits any more.
        let work = move || {
            let _permit = permit;
            work()
        };
        blocking::run(work).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn lookups_without_an_answer_leave_threads_to_others() {
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(blocking::THREADS_MAX).build().unwrap();
        let (begun, lookups) = mpsc::channel();
        runtime.block_on(async {
            let stuck: Vec<_> = (0..2 * blocking::THREADS_MAX)
                .map(|_| {
                    let begun = begun.clone();
                    Box::pin(in_turn(move || {
                        let _ = begun.send(());
                        std::thread::sleep(Duration::from_secs(1));
                        Ok(())
                    }))
                })
                .collect();
            // No request waits for them any more, started or not.
            for lookup in stuck {
                assert!(tokio::time::timeout(Duration::from_millis(1), lookup).await.is_err());
            }
            let file = tokio::time::timeout(Duration::from_millis(500), blocking::run(|| 7));
            assert_eq!(file.await.expect("a thread"), 7);
            assert_eq!(lookups.try_iter().count(), LOOKUPS_MAX, "no other has begun");
            assert_eq!(in_turn(|| Ok(8)).await.unwrap(), 8, "its turn comes");
        });
    }

    #[test]
    fn a_name_has_its_addresses() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let addresses = runtime.block_on(addresses("localhost", 80)).unwrap();
        assert!(!addresses.is_empty() && addresses.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
        assert!(runtime.block_on(super::addresses("no-such-host.invalid", 80)).is_err());
    }
}
