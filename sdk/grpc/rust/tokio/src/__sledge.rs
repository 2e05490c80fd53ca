//! What runs `main` and the requests: for `#[tokio::main]` and tonic.
//!
//! `main`'s future is the *root*. It is polled until the program serves and no task can go on. Then it stays, with its runtime, and goes on beside each
//! request.

use std::cell::{Cell, RefCell};
use std::future::{poll_fn, Future};
use std::pin::{pin, Pin};
use std::process::{ExitCode, Termination};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use sledge_grpc_rt::entry;
use tokio_original::runtime::{Builder, Runtime};

/// Polled when its waker was woken, and not with every step of a request.
struct Root {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Woken>,
    waker: Waker,
}

/// Whether it was.
struct Woken {
    flag: AtomicBool,
    outer: std::sync::Mutex<Option<Waker>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.flag.store(true, Relaxed);
        if let Ok(Some(outer)) = self.outer.lock().as_deref() {
            outer.wake_by_ref();
        }
    }
}

thread_local! {
    static ROOT: RefCell<Option<Root>> = const { RefCell::new(None) };
    /// Where `main` was left.
    static RUNTIME: Cell<Option<&'static Runtime>> = const { Cell::new(None) };
}

/// Runs the future of `#[tokio::main]`, on a runtime of its own.
pub fn main<T: Termination + 'static>(future: impl Future<Output = T> + 'static) -> ExitCode {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => Box::leak(Box::new(runtime)),
        Err(error) => panic!("Failed building the Runtime: {error}"),
    };
    let mut future = Box::pin(future);
    match begin(runtime, future.as_mut()) {
        Some(result) => result.report(),
        None => {
            let rest = async move { ended(future.await.report()) };
            keep(runtime, Box::pin(rest));
            ExitCode::SUCCESS
        }
    }
}

/// `Runtime::block_on`: it does not return if the program serves in it.
pub(crate) fn block_on<F: Future>(runtime: &Runtime, future: F) -> F::Output {
    if entry::serves() {
        return runtime.block_on(future);
    }
    let mut future = pin!(future);
    match begin(runtime, future.as_mut()) {
        Some(output) => output,
        None => {
            let rest = async move {
                future.await;
                ended(ExitCode::SUCCESS);
            };
            let rest: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(rest);
            // SAFETY: `leave` ends the call without returning from any function on the stack, so that what the future and the runtime
            // borrow stays where it is, for ever.
            let (runtime, rest) = unsafe {
                let rest = std::mem::transmute::<Pin<Box<dyn Future<Output = ()> + '_>>, Pin<Box<dyn Future<Output = ()>>>>(rest);
                (&*std::ptr::from_ref(runtime), rest)
            };
            keep(runtime, rest);
            entry::leave()
        }
    }
}

/// Natively the program ends here. A request that was begun is answered.
fn ended(_: ExitCode) {}

fn keep(runtime: &'static Runtime, future: Pin<Box<dyn Future<Output = ()>>>) {
    let woken = Arc::new(Woken { flag: AtomicBool::new(true), outer: std::sync::Mutex::new(None) });
    let waker = Waker::from(Arc::clone(&woken));
    ROOT.set(Some(Root { future, woken, waker }));
    RUNTIME.set(Some(runtime));
}

/// Polls `main`'s future until it is done, or the program serves and no task can go on.
fn begin<F: Future>(runtime: &Runtime, mut future: Pin<&mut F>) -> Option<F::Output> {
    runtime.block_on(poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        if entry::is_idle() {
            return Poll::Ready(None);
        }
        entry::set_root(context.waker());
        Poll::Pending
    }))
}

/// Runs what answers a request, where `main` was left.
pub fn answer<T>(future: impl Future<Output = T>) -> T {
    let Some(runtime) = RUNTIME.get() else { panic!("no runtime serves") };
    let mut future = pin!(future);
    // Most answers wait for nothing, and need no scheduler. One that does is polled again by what wakes it.
    let entered = runtime.enter();
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(nothing())) {
        return output;
    }
    drop(entered);
    let mut root = ROOT.take();
    let mut begun = false;
    let output = runtime.block_on(poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(output);
        }
        if let Some(kept) = &mut root {
            if poll_root(kept, context, &mut begun) {
                root = None;
            }
        }
        Poll::Pending
    }));
    ROOT.set(root);
    output
}

/// A waker of what is polled again anyway.
fn nothing() -> &'static Waker {
    struct Nothing;
    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }
    static WAKER: OnceLock<Waker> = OnceLock::new();
    WAKER.get_or_init(|| Arc::new(Nothing).into())
}

/// Whether it is done.
fn poll_root(root: &mut Root, context: &Context<'_>, begun: &mut bool) -> bool {
    if !*begun {
        *begun = true;
        if let Ok(mut outer) = root.woken.outer.lock() {
            *outer = Some(context.waker().clone());
        }
    }
    root.woken.flag.swap(false, Relaxed) && root.future.as_mut().poll(&mut Context::from_waker(&root.waker)).is_ready()
}
