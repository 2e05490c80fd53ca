//! The runtime: the original's on one thread, however many were asked for.

use std::future::Future;
use std::io;
use std::ops::Deref;
use std::time::Duration;

pub use tokio_original::runtime::*;

use crate::__sledge;

/// Builds a [`Runtime`].
#[derive(Debug)]
pub struct Builder(tokio_original::runtime::Builder);

/// What is accepted and has no meaning for one thread.
macro_rules! without_meaning {
    ($($name:ident($kind:ty)),*) => {
        $(#[allow(missing_docs)] pub fn $name(&mut self, _: $kind) -> &mut Builder { self })*
    };
}

/// What the original's builder does, too.
macro_rules! passed_on {
    ($($name:ident($kind:ty)),*) => {
        $(#[allow(missing_docs)] pub fn $name(&mut self, value: $kind) -> &mut Builder { self.0.$name(value); self })*
    };
}

impl Builder {
    /// A runtime on this thread.
    #[must_use]
    pub fn new_current_thread() -> Builder {
        Builder(tokio_original::runtime::Builder::new_current_thread())
    }

    /// The same: a function has one thread.
    #[must_use]
    pub fn new_multi_thread() -> Builder {
        Builder::new_current_thread()
    }

    /// Everything that there is.
    pub fn enable_all(&mut self) -> &mut Builder {
        self.0.enable_all();
        self
    }

    /// Calls of other functions need no leave.
    pub fn enable_io(&mut self) -> &mut Builder {
        self
    }

    /// Clocks.
    pub fn enable_time(&mut self) -> &mut Builder {
        self.0.enable_time();
        self
    }

    without_meaning!(worker_threads(usize), max_io_events_per_tick(usize), thread_stack_size(usize), thread_keep_alive(Duration));
    passed_on!(max_blocking_threads(usize), global_queue_interval(u32), event_interval(u32));

    #[cfg(feature = "test-util")]
    passed_on!(start_paused(bool));

    /// Accepted, without meaning.
    pub fn thread_name(&mut self, _: impl Into<String>) -> &mut Builder {
        self
    }

    /// Accepted, without meaning.
    pub fn thread_name_fn<F: Fn() -> String + Send + Sync + 'static>(&mut self, _: F) -> &mut Builder {
        self
    }

    /// Accepted: this thread has begun.
    pub fn on_thread_start<F: Fn() + Send + Sync + 'static>(&mut self, _: F) -> &mut Builder {
        self
    }

    /// Accepted: this thread does not end.
    pub fn on_thread_stop<F: Fn() + Send + Sync + 'static>(&mut self, _: F) -> &mut Builder {
        self
    }

    /// Before no task can go on.
    pub fn on_thread_park<F: Fn() + Send + Sync + 'static>(&mut self, f: F) -> &mut Builder {
        self.0.on_thread_park(f);
        self
    }

    /// Behind that.
    pub fn on_thread_unpark<F: Fn() + Send + Sync + 'static>(&mut self, f: F) -> &mut Builder {
        self.0.on_thread_unpark(f);
        self
    }

    /// Builds it.
    ///
    /// # Errors
    /// Those of the original.
    pub fn build(&mut self) -> io::Result<Runtime> {
        self.0.build().map(Runtime)
    }
}

/// A runtime.
#[derive(Debug)]
pub struct Runtime(tokio_original::runtime::Runtime);

impl Runtime {
    /// One with everything that there is.
    ///
    /// # Errors
    /// Those of the original.
    pub fn new() -> io::Result<Runtime> {
        Builder::new_multi_thread().enable_all().build()
    }

    /// Runs the future. If the program serves in it, the initialisation ends here.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        __sledge::block_on(&self.0, future)
    }

    /// Ends it.
    pub fn shutdown_timeout(self, duration: Duration) {
        self.0.shutdown_timeout(duration);
    }

    /// Ends it.
    pub fn shutdown_background(self) {
        self.0.shutdown_background();
    }
}

/// What else it does is the original's.
impl Deref for Runtime {
    type Target = tokio_original::runtime::Runtime;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
