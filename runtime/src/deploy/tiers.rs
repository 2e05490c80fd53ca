//! Makes optimised code for what is served by its first tier, and has it take the first tier's place: a thread that compiles one module after the other, as [`jobs`](super::jobs) says, and ends when
//! there is none.
//!
//! ```text
//!   every change --serve--> Jobs --next--> thread: read module, compile behind all else, load --Deployer: exchange--> published
//!                             \--not wanted any more--> Cancel
//! ```

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;

use super::catalogue::{First, NotOptimised, Origin};
use super::deployer::Deployer;
use super::jobs::{Jobs, State};
use crate::compile::Cancel;
use crate::confine;
use crate::load;

/// Modules that are held in memory until their optimised code is there, where no file has them.
pub(super) const MODULES_BYTES_MAX: usize = 256 << 20;

/// What to do about optimised code that could not be made.
const ADVICE: &str = "the first tier stays in service; deploy it again, or restart the server, to try again";

/// What is to be made, and what is being made.
#[derive(Debug, Default)]
pub(super) struct Tiers {
    making: Arc<Mutex<Making>>,
    /// For the thread. None before the server serves.
    deployer: OnceLock<Weak<Deployer>>,
}

#[derive(Debug, Default)]
struct Making {
    jobs: Jobs,
    /// Ends what is under way.
    cancel: Cancel,
    /// Whether there is a thread: it ends when nothing waits.
    has_thread: bool,
}

impl Tiers {
    /// These versions are served by their first tier now. What is made for another one is ended.
    pub(super) fn serve(&self, firsts: impl IntoIterator<Item = u64>) {
        let mut making = lock(&self.making);
        let cancel = making.jobs.serve(firsts).then(|| making.cancel.clone());
        let deployer = self.deployer.get().filter(|_| making.jobs.has_waiting() && !making.has_thread);
        making.has_thread |= deployer.is_some();
        drop(making);
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
        if let Some(deployer) = deployer {
            let (making, deployer) = (Arc::clone(&self.making), Weak::clone(deployer));
            let begin = || thread::Builder::new().name("tiers".to_owned()).spawn(move || make(&making, &deployer));
            if let Err(error) = confine::without_signals(begin) {
                // With the next change it is tried again.
                lock(&self.making).has_thread = false;
                tracing::warn!(%error, "the server has no thread for optimised code; what is served by its first tier stays so until the next deployment or SIGHUP");
            }
        }
    }

    /// Nothing is made any more.
    pub(super) fn stop(&self) {
        let mut making = lock(&self.making);
        let cancel = making.jobs.stop().then(|| making.cancel.clone());
        drop(making);
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    /// What becomes of the optimised code of a version, in words; nothing where there is nothing to come.
    pub(super) fn told(&self, version: u64) -> Option<String> {
        lock(&self.making).jobs.state(version).map(|state| match state {
            State::Waiting => "waiting".to_owned(),
            State::Compiling | State::Ready => "compiling".to_owned(),
            State::Failed(why) => format!("failed: {why}"),
        })
    }
}

fn lock(making: &Mutex<Making>) -> MutexGuard<'_, Making> {
    // What the machine does under this lock cannot be half done.
    making.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Deployer {
    /// From now on optimised code is made for what is served by its first tier.
    pub fn start_tiers(self: &Arc<Self>) {
        // Weak: the deployer has the tiers.
        let _ = self.tiers().deployer.set(Arc::downgrade(self));
        self.look_for_firsts();
    }

    /// Takes note of which versions are served by their first tier.
    pub(super) fn look_for_firsts(&self) {
        let firsts: Vec<u64> = self.catalogue().firsts().iter().map(|first| first.function.version).collect();
        self.tiers().serve(firsts);
    }

    /// Makes the optimised code of a version, and serves it; or why that cannot be done.
    fn make(&self, making: &Mutex<Making>, version: u64, cancel: &Cancel) -> Result<(), String> {
        let first = self.catalogue().firsts().into_iter().find(|first| first.function.version == version);
        let first = first.ok_or_else(|| NotOptimised::Gone.to_string())?;
        let module = self.module_of(&first)?;
        let how = (self.compiler(), cancel);
        let loaded = load::optimised(&module, &first.config, how, &first.function).map_err(|error| error.to_string())?;
        if !lock(making).jobs.ready() {
            return Err(NotOptimised::Gone.to_string());
        }
        self.exchange(&first.function, loaded)
    }

    /// The module of a version.
    fn module_of(&self, First { config, digest, origin, module, .. }: &First) -> Result<Arc<[u8]>, String> {
        if let Some(module) = module {
            return Ok(Arc::clone(module));
        }
        let path = match (origin, self.store()) {
            (Origin::Config, _) => config.path.clone(),
            (Origin::Deployed, Some(store)) => store.module(&config.name, digest),
            (Origin::Deployed, None) => {
                return Err(
                    "its module is kept nowhere, since others take up all the memory for that; set `state_dir`".to_owned()
                );
            }
        };
        let module = load::read_module(&path).map_err(|error| error.to_string())?;
        if blake3::hash(&module) == *digest {
            Ok(module.into())
        } else {
            Err(format!("{}: it is another module than the one that is served; send SIGHUP to serve it", path.display()))
        }
    }
}

/// Makes one after the other, until none waits.
fn make(making: &Mutex<Making>, deployer: &Weak<Deployer>) {
    while let (Some((version, cancel)), Some(deployer)) = (next(making), deployer.upgrade()) {
        // On one line, as lists have it: compilers and backtraces say more than that.
        let on_one_line = |why: String| why.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
        let result = deployer.make(making, version, &cancel).map_err(on_one_line);
        let why = result.as_ref().err().cloned();
        let concerns = lock(making).jobs.ended(result);
        if let Some(why) = why.filter(|_| concerns) {
            let name = deployer.catalogue().firsts().into_iter().find(|first| first.function.version == version);
            let name = name.map(|first| first.function.name().to_owned());
            tracing::warn!(function = name, why, "no optimised code: {ADVICE}");
        }
    }
}

/// The next version for which code is to be made, with what ends that. Where there is none, there is no thread any more.
fn next(making: &Mutex<Making>) -> Option<(u64, Cancel)> {
    let mut making = lock(making);
    let next = making.jobs.next();
    making.has_thread = next.is_some();
    making.cancel = Cancel::default();
    next.map(|version| (version, making.cancel.clone()))
}
