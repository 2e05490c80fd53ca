//! What is admitted, where it goes, until when it must be answered, and what it gives back.

use std::cell::RefCell;
use std::path::Path;
use std::task::{Wake, Waker};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::config;
use crate::invoke::by_hand;
use crate::invoke::caller::Caller;
use crate::invoke::function::Home;
use crate::invoke::invocation::{Input, Times};
use crate::kv::{Embedded, KvLimits, Store};
use crate::schedule::{self, FunctionId, Microtask, Site};
use crate::watch::Watcher;

const SECOND: Duration = Duration::from_secs(1);

fn function(settings: Value) -> Arc<Function> {
    let config = config::function("settings", "f", Path::new("f.wasm"), settings).unwrap();
    Arc::new(Function::new(by_hand::loaded(&config), Home::alone()))
}

fn dispatcher(requests_max: usize) -> Arc<Dispatcher> {
    Dispatcher::new(1, 1, requests_max, false).0
}

fn invocation(
    dispatcher: &Arc<Dispatcher>,
    function: &Arc<Function>,
    caller: Option<(Arc<Caller>, u32)>,
    now: Instant,
) -> Box<Invocation> {
    let admission = dispatcher.admit(function).expect("there is room");
    Invocation::new(Arc::clone(function), admission, caller, Input::default(), now)
}

/// Keeps what it takes, as a worker whose order ends it when its deadline comes, or as one that has not taken it yet.
#[derive(Default)]
struct Kept<const KEEPS_DEADLINES: bool>(RefCell<Vec<Invocation>>);

impl<const KEEPS: bool> Intake for &Kept<KEEPS> {
    const KEEPS_DEADLINES: bool = KEEPS;

    fn take(self, mut invocation: Box<Invocation>) -> Option<Answer> {
        let answer = invocation.reply.make_way(invocation.deadline);
        self.0.borrow_mut().push(*invocation);
        answer
    }
}

impl<const KEEPS: bool> Kept<KEEPS> {
    fn deadlines(&self) -> Vec<Instant> {
        self.0.borrow().iter().map(|invocation| invocation.deadline).collect()
    }
}

/// How often each worker was woken.
#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Woken>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Says how often the workers were woken since that was last asked.
fn wakes(dispatcher: &Dispatcher) -> impl Fn() -> Vec<u64> {
    let woken: Vec<Arc<Woken>> = (0..dispatcher.exchange().workers()).map(|_| Arc::default()).collect();
    for (index, woken) in woken.iter().enumerate() {
        dispatcher.exchange().register(index, &Waker::from(Arc::clone(woken)));
    }
    move || woken.iter().map(|woken| woken.0.swap(0, Ordering::Relaxed)).collect()
}

#[test]
fn stopping_goes_forward_only_and_every_worker_is_told() {
    let (dispatcher, _deques) = Dispatcher::new(2, 2, 2, false);
    let wakes = wakes(&dispatcher);
    assert_eq!((dispatcher.phase(), wakes()), (Phase::Serving, vec![0, 0]));
    dispatcher.advance(Phase::Killing);
    assert_eq!(wakes(), [1, 1]);
    dispatcher.advance(Phase::Draining);
    assert_eq!(dispatcher.phase(), Phase::Killing);
}

#[test]
fn it_is_over_when_the_last_source_is_closed_and_the_last_request_answered() {
    let (dispatcher, _deques) = Dispatcher::new(1, 2, 2, false);
    let wakes = wakes(&dispatcher);
    let request = dispatcher.admit(&function(json!({}))).unwrap();
    dispatcher.close_source();
    assert!(!dispatcher.is_over() && wakes() == [0]);
    dispatcher.close_source();
    assert!(!dispatcher.is_over() && wakes() == [1]);
    dispatcher.advance(Phase::Draining);
    assert_eq!((dispatcher.requests(), wakes()), (1, vec![1]));
    drop(request);
    assert!(dispatcher.is_over() && dispatcher.requests() == 0 && wakes() == [1]);
}

#[test]
fn it_comes_to_rest_once_each_time_that_nothing_is_done_and_nothing_idle_is_kept() {
    let (dispatcher, _deques) = Dispatcher::new(2, 1, 2, false);
    assert!(!dispatcher.comes_to_rest() && !dispatcher.is_stirred(), "nothing was done");
    dispatcher.stir();
    assert!(dispatcher.is_stirred());
    let function = function(json!({}));
    let request = dispatcher.admit(&function).unwrap();
    assert!(!dispatcher.comes_to_rest(), "there is a request");
    let sandbox = dispatcher.pools().take(0, &function.template).unwrap();
    dispatcher.pools().put(1, sandbox, Instant::now());
    drop(request);
    assert!(!dispatcher.comes_to_rest(), "a sandbox is idle");
    dispatcher.pools().clear(1);
    assert!(dispatcher.comes_to_rest());
    assert!(!dispatcher.comes_to_rest(), "nothing was done since");
    drop(dispatcher.admit(&function).unwrap());
    assert!(dispatcher.is_stirred() && dispatcher.comes_to_rest(), "a request is something");
}

#[test]
fn a_server_takes_as_many_requests_as_it_may_and_numbers_them() {
    let (dispatcher, function) = (dispatcher(2), function(json!({})));
    let [first, second] = [(); 2].map(|()| dispatcher.admit(&function).unwrap());
    assert_eq!((first.sequence, second.sequence, dispatcher.requests()), (1, 2, 2));
    assert_eq!(dispatcher.admit(&function).map(|_| ()), Err(Failure::Busy));
    drop(first);
    assert_eq!(dispatcher.admit(&function).unwrap().sequence, 3);
    assert_eq!(dispatcher.requests(), 1, "what was refused gave back what it took");
    assert!(!dispatcher.keeps_promises());
}

#[test]
fn a_function_takes_as_many_requests_as_it_may() {
    let (dispatcher, limited) = (dispatcher(100), function(json!({ "concurrency_max": 1, "queue_max": 1 })));
    let taken = [(); 2].map(|()| dispatcher.admit(&limited).unwrap());
    assert_eq!(dispatcher.admit(&limited).map(|_| ()), Err(Failure::FunctionBusy));
    assert!(dispatcher.admit(&function(json!({}))).is_ok(), "another function");
    drop(taken);
    assert!(dispatcher.admit(&limited).is_ok());
}

#[test]
fn without_its_store_a_function_takes_nothing() {
    let dispatcher = dispatcher(1);
    let with = |store: Embedded| {
        let mut function = Arc::into_inner(function(json!({}))).unwrap();
        function.kv = Some(Store::Embedded(store).space("tenant"));
        dispatcher.admit(&function).map(|_| ())
    };
    assert_eq!(with(Embedded::in_memory(KvLimits::default()).unwrap()), Ok(()));
    let folder = tempfile::tempdir().unwrap();
    let closed = Embedded::open(&folder.path().join("there/is/none"), KvLimits::default(), &Arc::default()).unwrap();
    assert_eq!(with(closed), Err(Failure::NoStore));
    assert_eq!(dispatcher.requests(), 0);
}

/// Two workers; each request needs half of one's time until its deadline.
#[test]
fn no_more_is_promised_than_workers_can_do_by_the_deadlines() {
    let (dispatcher, _deques) = Dispatcher::new(2, 1, 100, true);
    assert!(dispatcher.keeps_promises());
    let half = function(json!({ "deadline_ms": 2_000 }));
    half.gate.observe(SECOND);
    let mut admitted: Vec<_> = (0..3).map(|_| dispatcher.admit(&half).unwrap()).collect();
    // What needs more than all of a worker is taken as if it needed all.
    let endless = function(json!({ "deadline_ms": 1_000 }));
    endless.gate.observe(100 * SECOND);
    assert_eq!(dispatcher.admit(&endless).map(|_| ()), Err(Failure::Overload));
    admitted.push(dispatcher.admit(&half).unwrap());
    assert_eq!(dispatcher.admit(&half).map(|_| ()), Err(Failure::Overload));
    assert!(dispatcher.admit(&function(json!({}))).is_ok(), "of which nothing is known");
    admitted.truncate(2);
    let whole = dispatcher.admit(&endless).unwrap();
    assert_eq!(dispatcher.admit(&half).map(|_| ()), Err(Failure::Overload));
    drop((whole, admitted));
    assert!(dispatcher.load.load(Ordering::Relaxed) == 0 && dispatcher.requests() == 0, "everything is given back");
}

#[test]
fn a_callee_is_answered_by_its_callers_deadline_at_the_latest() {
    let dispatcher = dispatcher(100);
    let callee = function(json!({ "deadline_ms": 1_000 }));
    let now = Instant::now();
    let begin = |caller: Option<Duration>| {
        let caller = caller.map(|left| (Arc::new(Caller::new(FunctionId(9), 1, now + left, None)), 1));
        let kept = Kept::<true>::default();
        drop(dispatcher.begin(invocation(&dispatcher, &callee, caller, now), &kept));
        kept.deadlines()
    };
    assert_eq!(begin(None), [now + SECOND]);
    assert_eq!(begin(Some(SECOND / 10)), [now + SECOND / 10]);
    assert_eq!(begin(Some(10 * SECOND)), [now + SECOND], "its own comes first");
    // What it does not wait for may outlive it.
    let caller = Caller::new(FunctionId(9), 1, now + SECOND / 10, None);
    let kept = Kept::<true>::default();
    dispatcher.begin_unanswered(invocation(&dispatcher, &callee, Some((Arc::new(caller), 1)), now), &kept);
    assert_eq!(kept.deadlines(), [now + SECOND]);
    assert!(matches!(kept.0.borrow()[0].reply, ReplyTo::Nowhere));
}

/// The reply that comes of it, or else the failure, when it is waited for a little.
fn wait(answer: Answer) -> Option<Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let answered = runtime.block_on(async { tokio::time::timeout(Duration::from_millis(20), answer.reply()).await });
    answered.ok().and_then(Result::err)
}

#[test]
fn whoever_waits_keeps_the_deadline_of_what_no_worker_has_yet() {
    let dispatcher = dispatcher(100);
    let past = Instant::now().checked_sub(100 * SECOND).unwrap_or_else(Instant::now);
    let limited = function(json!({ "concurrency_max": 1, "deadline_ms": 1 }));
    let (worker, all) = (Kept::<true>::default(), Kept::<false>::default());
    let first = dispatcher.begin(invocation(&dispatcher, &limited, None, past), &worker);
    assert_eq!((worker.deadlines().len(), wait(first)), (1, None), "its worker ends it");
    let at_the_gate = dispatcher.begin(invocation(&dispatcher, &limited, None, past), &worker);
    assert_eq!((worker.deadlines().len(), wait(at_the_gate)), (1, Some(Failure::Deadline)));
    let free = function(json!({ "deadline_ms": 1 }));
    let for_any = dispatcher.begin(invocation(&dispatcher, &free, None, past), &all);
    assert_eq!((all.deadlines().len(), wait(for_any)), (1, Some(Failure::Deadline)));
    let lost = dispatcher.begin(invocation(&dispatcher, &free, None, past), &worker);
    worker.0.borrow_mut().clear();
    assert_eq!(wait(lost), Some(Failure::Internal), "its worker gave no answer");
}

#[test]
fn what_waits_at_a_gate_goes_to_any_worker_when_another_is_over() {
    let dispatcher = dispatcher(100);
    let limited = function(json!({ "concurrency_max": 1 }));
    let (now, worker) = (Instant::now(), Kept::<true>::default());
    let begin = || dispatcher.begin(invocation(&dispatcher, &limited, None, now), &worker);
    let answers = [begin(), begin(), begin()];
    let sequence = |invocation: &Invocation| invocation.identity.sequence;
    assert_eq!(worker.0.borrow().iter().map(sequence).collect::<Vec<_>>(), [1]);
    assert!(!dispatcher.exchange().has_injected());
    drop(worker.0.take());
    let next = dispatcher.exchange().take_injected(|_| true);
    let [Work::Job(second)] = &next[..] else { panic!("{next:?}") };
    assert_eq!((sequence(second), second.admission.runs), (2, true));
    drop(answers);
    drop(next);
    assert_eq!(dispatcher.requests(), 1);
    drop(dispatcher.exchange().take_injected(|_| true));
    assert_eq!(dispatcher.requests(), 0);
    // Where no worker is near, it goes there at once.
    let _answer = dispatcher.begin(invocation(&dispatcher, &limited, None, now), &*dispatcher);
    assert_eq!(dispatcher.exchange().take_injected(|_| true).len(), 1);
}

/// Its client has gone: its place at the gate is another's.
#[test]
fn a_client_that_has_gone_leaves_its_place_at_the_gate() {
    let dispatcher = dispatcher(100);
    let limited = function(json!({ "concurrency_max": 1, "queue_max": 1 }));
    let (now, worker) = (Instant::now(), Kept::<true>::default());
    let begin = || dispatcher.begin(invocation(&dispatcher, &limited, None, now), &worker);
    let (running, waiting) = (begin(), begin());
    assert_eq!(dispatcher.admit(&limited).map(|_| ()), Err(Failure::FunctionBusy));
    drop(waiting);
    let admitted = std::iter::repeat_with(|| dispatcher.admit(&limited)).take(1_000);
    // It is looked for now and then only.
    let mut admitted = admitted.inspect(|_| std::thread::sleep(Duration::from_millis(1))).filter_map(Result::ok);
    assert!(admitted.next().is_some());
    assert_eq!(dispatcher.requests(), 1);
    drop(running);
}

/// A guest that runs without ticks learns at once of what its worker is to do.
#[test]
fn what_comes_for_a_worker_interrupts_a_guest_that_runs_without_ticks() {
    let (dispatcher, _deques) = Dispatcher::new(2, 1, 10, false);
    let (wakes, watcher) = (wakes(&dispatcher), Watcher::start(2).unwrap());
    // Without a watcher, workers are woken all the same.
    dispatcher.rouse(1);
    assert_eq!(wakes(), [0, 1]);
    dispatcher.watch_with(Arc::clone(&watcher));
    (0..2).for_each(|index| watcher.run_by_hand(index));
    dispatcher.rouse(1);
    assert_eq!((wakes(), [0, 1].map(|index| watcher.is_disturbed(index))), (vec![0, 1], [false, true]));

    // What any worker can do is for one that waits, and interrupts a guest only where none does.
    let function = function(json!({}));
    let inject = || drop(dispatcher.begin(invocation(&dispatcher, &function, None, Instant::now()), &*dispatcher));
    assert!(dispatcher.exchange().try_idle(1));
    inject();
    assert!(!watcher.is_disturbed(0));
    dispatcher.exchange().busy(1);
    inject();
    assert!(watcher.is_disturbed(0));
}

#[test]
fn a_limit_that_follows_learns_from_each_that_is_over() {
    let dispatcher = dispatcher(10);
    let now = Instant::now();
    let used = Times { cpu: Duration::from_millis(1), blocked: Duration::from_millis(9), ..Times::new(now) };
    let learned = |settings: Value| {
        let function = function(settings);
        let before = function.gate.in_flight();
        dispatcher.admit(&function).unwrap().learn(&used, now);
        (before.is_some(), function.gate.in_flight() != before)
    };
    assert_eq!(learned(json!({ "concurrency_max": "auto" })), (true, true));
    assert_eq!(learned(json!({ "concurrency_max": 3 })), (false, false));
}

#[test]
fn a_request_begins_with_a_microtask_of_its_functions_first_phase() {
    let dispatcher = dispatcher(10);
    let begins = |settings: Value| {
        let function = function(settings);
        schedule::Work::microtask(&Work::Job(invocation(&dispatcher, &function, None, Instant::now())))
    };
    let phases = json!({ "phases": [{ "id": 0, "name": "a", "cpu_us": 700, "cpu_percent": 100 }] });
    assert_eq!(begins(phases), Microtask { site: Site::ENTRY, declared: Some(Duration::from_micros(700)) });
    assert_eq!(begins(json!({})), Microtask { site: Site::ENTRY, declared: None });
}
