//! From the thread that changes the routes to the threads that use them, without a cost to any request.
//!
//! Every thread has a task that waits for new routes and puts them into the thread's service. The thread that changes them waits until all threads have:
//! from then on no request is routed to what was before.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sledge_sandbox::Template;
use tokio::sync::watch;

use super::taken::Taken;
use crate::http::{HttpService, Router};

/// How long threads may take to use what was published; each looks at its tasks at least once a quantum.
const TAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// Functions whose idle sandboxes a thread gives back before it looks after its connections again.
const FORGET_COUNT_MAX: usize = 16;

/// Routes, and what is not served any more.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// Counts from one publication to the next.
    number: u64,
    router: Arc<Router>,
    /// What went since the last number.
    retired: Vec<Template>,
}

/// Where routes are published.
#[derive(Debug)]
pub struct Publisher {
    sender: watch::Sender<Published>,
    taken: Arc<Taken>,
    take_time_max: Duration,
}

/// What a thread that takes over new routes gives back.
#[derive(Debug)]
enum Gone {
    /// What these functions have.
    These(Vec<Template>),
    /// What every function has: a publication was missed, and with it what went then.
    Any,
}

/// A thread's side.
#[derive(Debug)]
pub struct Subscription {
    receiver: watch::Receiver<Published>,
    taken: Arc<Taken>,
    thread: usize,
    /// What this thread has seen last.
    number: u64,
}

impl Publisher {
    /// Begins with these routes.
    #[must_use]
    pub fn new(router: Router) -> Publisher {
        let published = Published { router: Arc::new(router), ..Published::default() };
        Publisher { sender: watch::Sender::new(published), taken: Arc::new(Taken::new()), take_time_max: TAKE_TIME_MAX }
    }

    /// For one more thread.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        let mut receiver = self.sender.subscribe();
        let number = receiver.borrow_and_update().number;
        Subscription { receiver, taken: Arc::clone(&self.taken), thread: self.taken.join(number), number }
    }

    /// Publishes routes and waits until every thread uses them. `retired` is what they do not lead to any more.
    pub fn publish(&self, router: Router, retired: Vec<Template>) {
        let mut number = 0;
        self.sender.send_modify(|published| {
            number = published.number + 1;
            *published = Published { number, router: Arc::new(router), retired };
        });
        if !self.taken.wait(number, self.take_time_max) {
            tracing::warn!(after = ?self.take_time_max, "some threads do not use the new routes yet");
        }
        // They are not needed any more, and would keep in memory what they name.
        self.sender.send_if_modified(|published| {
            published.retired = Vec::new();
            false
        });
    }
}

impl Subscription {
    /// The routes to begin with.
    #[must_use]
    pub fn router(&self) -> Arc<Router> {
        Arc::clone(&self.receiver.borrow().router)
    }

    /// Puts into `service` whatever is published, until the publisher has gone.
    pub async fn follow(mut self, service: Rc<HttpService>) {
        while let Some((router, gone)) = self.next().await {
            service.reroute(router);
            if let Some(local) = &service.local {
                match gone {
                    Gone::These(retired) => {
                        for templates in retired.chunks(FORGET_COUNT_MAX) {
                            local.forget(templates);
                            // A configuration may replace thousands.
                            tokio::task::yield_now().await;
                        }
                    }
                    Gone::Any => local.forget_all(),
                }
            }
            self.set(Some(self.number));
        }
    }

    /// What is published next, and what the thread is to give back.
    async fn next(&mut self) -> Option<(Arc<Router>, Gone)> {
        self.receiver.changed().await.ok()?;
        let Published { number, router, retired } = self.receiver.borrow_and_update().clone();
        let gone = if number == self.number + 1 { Gone::These(retired) } else { Gone::Any };
        self.number = number;
        Some((router, gone))
    }

    fn set(&self, number: Option<u64>) {
        self.taken.set(self.thread, number);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publisher(take_time_max: Duration) -> Publisher {
        Publisher { take_time_max, ..Publisher::new(Router::default()) }
    }

    /// What the subscription finds when it looks, without waiting.
    fn found(subscription: &mut Subscription) -> Option<Gone> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            tokio::select! {
                biased;
                next = subscription.next() => next.map(|(_, gone)| gone),
                () = tokio::task::yield_now() => None,
            }
        })
    }

    #[test]
    fn a_thread_that_missed_a_publication_gives_everything_back() {
        let publisher = publisher(Duration::ZERO);
        let mut subscription = publisher.subscribe();
        assert!(found(&mut subscription).is_none(), "nothing is published yet");
        publisher.publish(Router::default(), Vec::new());
        assert!(matches!(found(&mut subscription), Some(Gone::These(_))));
        publisher.publish(Router::default(), Vec::new());
        publisher.publish(Router::default(), Vec::new());
        assert!(matches!(found(&mut subscription), Some(Gone::Any)), "it cannot know what the first of the two was about");
        publisher.publish(Router::default(), Vec::new());
        assert!(matches!(found(&mut subscription), Some(Gone::These(_))));
    }

    #[test]
    fn publishing_waits_for_every_thread_that_is_still_there() {
        let publisher = publisher(Duration::from_secs(60));
        let (mut one, other) = (publisher.subscribe(), publisher.subscribe());
        let is_published = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                publisher.publish(Router::default(), Vec::new());
                is_published.store(true, std::sync::atomic::Ordering::SeqCst);
            });
            while found(&mut one).is_none() {
                std::thread::yield_now();
            }
            one.set(Some(one.number));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!is_published.load(std::sync::atomic::Ordering::SeqCst), "the other thread has not taken it");
            drop(other);
        });
        assert!(is_published.load(std::sync::atomic::Ordering::SeqCst));
    }
}
