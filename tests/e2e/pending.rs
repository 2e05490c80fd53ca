//! Host calls that wait: what they wait for, how that ends, and what the worker does meanwhile.
//!
//! One host function that waits in all the ways there are, in a server in the test's own process.

use crate::{assert_failure, contained};
use awsm_abi::types::ValType::I32;
use sledge::blocking;
use sledge::host::{Call, Code, Effect, HostFunction, Stop, wasi};
use sledge_tests::http::{Client, Raw, Reply, TIME_MAX, post_bytes};
use std::future::{pending, ready};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{net::SocketAddr, thread};
use tokio::sync::oneshot;

/// Answered with twice the number at once.
const READY: i32 = 0;
/// With the number after so many milliseconds.
const SLEEP: i32 = 1;
/// The same, slept on a thread that blocks.
const BLOCK: i32 = 2;
/// From another thread of the process.
const THREAD: i32 = 3;
/// After two waits, the second made when the first was over; the milliseconds are shared between them.
const TWICE: i32 = 4;
/// After a wait, by calling the function from its beginning; the guest's memory says that it has waited.
const AGAIN: i32 = 5;
/// Never; [`DROPPED`] counts those that were given up.
const NEVER: i32 = 6;
/// Panics while it is polled.
const PANICS: i32 = 7;
/// Panics when the wait is over.
const PANICS_THEN: i32 = 8;
/// Ends the guest with that status.
const EXITS: i32 = 9;
/// Panics on a thread that blocks.
const BLOCKED_PANICS: i32 = 10;
/// Fails with an error number.
const FAILS: i32 = 11;

static DROPPED: AtomicU32 = AtomicU32::new(0);

struct CountsDrop;

impl Drop for CountsDrop {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

fn milliseconds(count: i32) -> Duration {
    Duration::from_millis(count.unsigned_abs().into())
}

fn pend(call: &mut Call<'_>) -> Result<i32, Stop> {
    let (kind, number) = (call.args.u32(0).cast_signed(), call.args.u32(1).cast_signed());
    let sleep = |count| tokio::time::sleep(milliseconds(count));
    let answer = move |_: &mut Call<'_>, ()| Ok(number);
    Err(match kind {
        READY => call.wait(ready(number), |call, number| {
            let at = call.args.address(2);
            call.memory_mut()?.write_u32(at, 7)?;
            Ok(2 * number)
        }),
        // A timer belongs to the runtime in which it is made.
        SLEEP => call.wait(async move { sleep(number).await }, answer),
        BLOCK => call.wait(blocking::run(move || thread::sleep(milliseconds(number))), answer),
        THREAD => {
            let (done, wait) = oneshot::channel();
            thread::spawn(move || {
                thread::sleep(milliseconds(number));
                done.send(()).expect("the call waits");
            });
            call.wait(async move { wait.await.expect("it is done") }, answer)
        }
        TWICE => call.wait(async move { sleep(number / 2).await }, move |call, ()| {
            Err::<i32, Stop>(call.wait(async move { sleep(number - number / 2).await }, answer))
        }),
        AGAIN => {
            let at = call.args.address(2);
            let memory = call.memory_mut()?;
            if memory.read_u32(at)? == 9 {
                return Ok(number);
            }
            memory.write_u32(at, 9)?;
            call.wait(async move { sleep(number).await }, |_, ()| Err::<i32, Stop>(Stop::Again))
        }
        NEVER => {
            let counts = CountsDrop;
            call.wait(
                async move {
                    let _counts = counts;
                    pending::<()>().await;
                },
                answer,
            )
        }
        PANICS => call.wait(
            async move {
                sleep(number).await;
                panic!("a future that panics, as the test wants");
            },
            answer,
        ),
        PANICS_THEN => call.wait(async move { sleep(number).await }, |_, ()| -> Result<i32, Stop> {
            panic!("a completion that panics, as the test wants")
        }),
        EXITS => {
            call.wait(async { tokio::task::yield_now().await }, move |_, ()| Err::<i32, Stop>(Stop::Exit(number.cast_unsigned())))
        }
        BLOCKED_PANICS => call.wait(blocking::run(|| panic!("a thread that panics, as the test wants")), answer),
        _ => call.wait(ready(()), |_, ()| Err::<i32, Stop>(wasi::Errno::BADF.into())),
    })
}

static PEND: [HostFunction; 1] = [HostFunction {
    module: "test",
    name: "pend",
    params: &[I32, I32, I32],
    results: &[I32],
    effect: Effect::Stream,
    code: Code::Own(pend),
}];

static OFFERED: [&[HostFunction]; 2] = [&PEND, wasi::FUNCTIONS];

fn serve(deadline_ms: u64) -> SocketAddr {
    contained::serve("pending.wat", &OFFERED, |function| function.deadline_ms = deadline_ms)
}

fn body(kind: i32, number: i32) -> [u8; 8] {
    let mut body = [0; 8];
    body[..4].copy_from_slice(&kind.to_le_bytes());
    body[4..].copy_from_slice(&number.to_le_bytes());
    body
}

#[track_caller]
fn answer(reply: &Reply) -> (i32, i32) {
    assert_eq!((reply.status, reply.body.len()), (200, 8), "{reply:?}");
    let number = |at: usize| i32::from_le_bytes(reply.body[at..at + 4].try_into().expect("four bytes"));
    (number(0), number(4))
}

#[test]
fn a_call_that_waits_is_answered_when_that_is_over() {
    let client = Client::new(serve(20_000), TIME_MAX);
    for kind in [SLEEP, BLOCK, THREAD, TWICE] {
        for number in [0, 30] {
            let start = Instant::now();
            assert_eq!(answer(&client.post("/f", body(kind, number))), (number, 0), "{kind}");
            assert!(start.elapsed() >= milliseconds(number), "{kind}: {:?}", start.elapsed());
        }
    }
    assert_eq!(answer(&client.post("/f", body(READY, 21))), (42, 7));
    assert_eq!(answer(&client.post("/f", body(AGAIN, 30))), (30, 9));
    assert_eq!(answer(&client.post("/f", body(FAILS, 0))), (-8, 0));
}

#[test]
fn a_call_that_fails_in_its_wait_ends_that_request_and_no_other() {
    let client = Client::new(serve(20_000), TIME_MAX);
    for kind in [PANICS, PANICS_THEN, BLOCKED_PANICS] {
        for number in [0, 20] {
            assert_failure(&client.post("/f", body(kind, number)), 500, "internal", "internal", Some("f"));
            assert_eq!(answer(&client.post("/f", body(SLEEP, 1))), (1, 0));
        }
    }
    assert_failure(&client.post("/f", body(EXITS, 3)), 500, "exit", "status_3", Some("f"));
    assert_eq!(client.post("/f", body(EXITS, 0)).status, 200);
    assert_eq!(answer(&client.post("/f", body(READY, 1))), (2, 7));
}

/// A deadline gives up what is waited for, and so does a client that goes; neither waits for anything else to happen.
#[test]
fn a_host_call_ends_with_its_request() {
    let given_up = |more: u32, after: u32| {
        let end = Instant::now() + TIME_MAX;
        while DROPPED.load(Ordering::SeqCst) < after + more {
            assert!(Instant::now() < end, "{} of {more} were given up", DROPPED.load(Ordering::SeqCst) - after);
            thread::sleep(Duration::from_millis(1));
        }
    };
    let client = Client::new(serve(200), TIME_MAX);
    let start = Instant::now();
    assert_failure(&client.post("/f", body(NEVER, 0)), 504, "deadline", "deadline_exceeded", Some("f"));
    assert!(start.elapsed() >= Duration::from_millis(200));
    given_up(1, 0);

    let address = serve(600_000);
    let mut waiting: Vec<Raw> = (0..20).map(|_| Raw::connect(address)).collect();
    waiting.iter_mut().for_each(|raw| raw.send(post_bytes("/f", &body(NEVER, 0), "")));
    // Answered behind them, on the only worker.
    assert_eq!(answer(&Client::new(address, TIME_MAX).post("/f", body(SLEEP, 50))), (50, 0));
    assert_eq!(DROPPED.load(Ordering::SeqCst), 1);
    drop(waiting);
    given_up(20, 1);
    assert_eq!(answer(&Client::new(address, TIME_MAX).post("/f", body(SLEEP, 1))), (1, 0));
}

/// A thousand sandboxes wait, and the worker has nothing to do but what else there is.
#[test]
fn a_thousand_calls_that_wait_leave_the_worker_to_others() {
    const QUICK: i32 = 50;
    const TIME_MS: i32 = 12_000;
    let address = serve(120_000);
    let mut waiting: Vec<Raw> = (0..1_000).map(|_| Raw::connect(address)).collect();
    let start = Instant::now();
    waiting.iter_mut().for_each(|raw| raw.send(post_bytes("/f", &body(SLEEP, TIME_MS), "")));
    let client = Client::new(address, TIME_MAX);
    for _ in 0..QUICK {
        assert_eq!(answer(&client.post("/f", body(READY, 4))), (8, 7));
    }
    assert!(
        start.elapsed() < milliseconds(TIME_MS),
        "{QUICK} quick requests took {:?}, and none waits any more",
        start.elapsed()
    );
    for raw in &mut waiting {
        assert_eq!(answer(&raw.reply().expect("a reply")), (TIME_MS, 0));
    }
    assert!(start.elapsed() >= milliseconds(TIME_MS) && start.elapsed() < TIME_MAX, "{:?}", start.elapsed());
}
