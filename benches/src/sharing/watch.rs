//! What the server uses while something is done to it, again and again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::child;
use crate::server::Server;

/// Time between two looks.
pub const EVERY: Duration = Duration::from_millis(100);
/// Every so many looks memory is looked at, too, which costs more.
const MEMORY_EVERY: usize = 5;

/// What was seen.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Watched {
    /// From one look to the next which share of the workers' cores the server used.
    pub utilisation: Vec<f64>,
    /// Private memory, in bytes.
    pub private_bytes: Vec<f64>,
    /// Processor time from the first look to the last.
    #[serde(skip)]
    pub cpu: Duration,
}

impl Watched {
    /// The mean of the shares.
    pub fn mean_utilisation(&self) -> f64 {
        self.utilisation.iter().sum::<f64>() / self.utilisation.len() as f64
    }

    /// The mean of the bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.private_bytes.iter().sum::<f64>() / self.private_bytes.len() as f64
    }
}

/// Looks while `work` is done.
///
/// # Errors
///
/// If `work` fails, or the system does not say.
pub fn during<T>(server: &Server, workers: usize, work: impl FnOnce() -> Result<T>) -> Result<(T, Watched)> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let looking = scope.spawn(|| look(server.pid(), workers, &over));
        let done = work();
        over.store(true, Ordering::Relaxed);
        let watched = looking.join().ok().context("the watching thread panicked")?;
        // Where the server has ended, its log says more than what cannot be seen of it.
        Ok((done?, watched?))
    })
}

fn look(pid: u32, workers: usize, over: &AtomicBool) -> Result<Watched> {
    let mut watched = Watched::default();
    let begin = child::processor_time(pid)?;
    let (mut at, mut used) = (Instant::now(), begin);
    for number in 1.. {
        if number % MEMORY_EVERY == 1 {
            watched.private_bytes.push(child::private_bytes(pid)? as f64);
        }
        if over.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(EVERY);
        let (now, until_now) = (Instant::now(), child::processor_time(pid)?);
        let share = until_now.saturating_sub(used).as_secs_f64() / (now - at).as_secs_f64() / workers as f64;
        watched.utilisation.push(share);
        (at, used) = (now, until_now);
    }
    watched.cpu = used.saturating_sub(begin);
    Ok(watched)
}
