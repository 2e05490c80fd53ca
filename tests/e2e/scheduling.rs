//! Preemption, deadlines, idleness.

use crate::{LISTENERS, assert_failure, entry, entry_with};
use serde_json::json;
use sledge_tests::http::{Raw, post_bytes};
use sledge_tests::server::Server;
use std::time::{Duration, Instant};

/// Time in which something must have happened that usually takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn an_endless_loop_keeps_no_other_request_waiting() {
    for listeners in LISTENERS {
        endless_loops_and_quick_requests(listeners);
    }
}

fn endless_loops_and_quick_requests(listeners: &str) {
    // Long enough for all quick requests, and too long for one of them.
    const DEADLINE: Duration = Duration::from_secs(12);
    let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": DEADLINE.as_millis() as u64 }));
    let functions = json!([spin, entry("echo", "echo.wat"), entry("traps", "traps.wat")]);
    let server = Server::start(json!({ "listeners": listeners, "workers": 1, "functions": functions }));
    let client = server.client();
    let mut loops: Vec<Raw> = (0..3).map(|_| Raw::connect(server.address)).collect();
    let start = Instant::now();
    loops.iter_mut().for_each(|raw| raw.send(post_bytes("/spin", b"", "")));
    // Until the loops have had the only worker for a while.
    let before = server.cpu_time();
    let (mut answered, mut slowest) = (0, Duration::ZERO);
    while server.cpu_time() - before < Duration::from_millis(200) || answered < 50 {
        assert!(start.elapsed() < TIMEOUT, "the loops do not run: {answered} quick requests were answered");
        let sent = Instant::now();
        assert_eq!(client.post("/echo", "quick").text(), "quick");
        slowest = slowest.max(sent.elapsed());
        answered += 1;
    }
    assert_failure(&client.post("/traps", "m"), 500, "trap", "memory_out_of_bounds", Some("traps"));
    assert!(start.elapsed() < DEADLINE, "the loops were over before the quick requests were");
    assert!(slowest < DEADLINE / 3, "a quick request took {slowest:?}");
    for raw in &mut loops {
        assert_failure(&raw.reply().expect("a reply"), 504, "deadline", "deadline_exceeded", Some("spin"));
    }
    assert!(start.elapsed() >= DEADLINE, "a loop was stopped before its deadline");
    server.stop();
}

#[test]
fn a_deadline_that_passes_is_a_504() {
    let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": 200 }));
    let server = Server::start(json!({ "workers": 1, "functions": [spin, entry("echo", "echo.wat")] }));
    let client = server.client();
    for _ in 0..3 {
        let start = Instant::now();
        assert_failure(&client.post("/spin", ""), 504, "deadline", "deadline_exceeded", Some("spin"));
        assert!(start.elapsed() >= Duration::from_millis(200), "too early: {:?}", start.elapsed());
        assert!(start.elapsed() < TIMEOUT, "too late: {:?}", start.elapsed());
        assert_eq!(client.post("/echo", "x").text(), "x");
    }
    // Nothing of them runs on.
    assert_idle(&server);
    server.stop();
}

/// One request too many is told so at once, and told when to come again.
#[test]
fn a_saturated_server_answers_503() {
    // They end when their clients go, however slow the machine is.
    let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": 600_000 }));
    let server = Server::start(json!({ "requests_max": 2, "functions": [spin, entry("echo", "echo.wat")] }));
    let mut loops: Vec<Raw> = (0..2).map(|_| Raw::connect(server.address)).collect();
    loops.iter_mut().for_each(|raw| raw.send(post_bytes("/spin", b"", "")));
    // Before that, another request could take the place of one of them.
    let both = "\nsledge_requests_under_way 2\n";
    crate::eventually("both are taken", || server.admin().get("/metrics").text().contains(both));
    let client = server.client();
    let refused = client.post("/echo", "x");
    assert_failure(&refused, 503, "unavailable", "requests_max", Some("echo"));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    drop(loops);
    crate::eventually("there is room again", || client.post("/echo", "x").status == 200);
    server.stop();
}

/// A client that goes away takes its function with it: no function runs without a client.
#[test]
fn a_client_that_is_gone_is_not_computed_for() {
    let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": 600_000 }));
    let server = Server::start(json!({ "workers": 1, "functions": [spin] }));
    let mut raw = Raw::connect(server.address);
    raw.send(post_bytes("/spin", b"", ""));
    let before = server.cpu_time();
    let start = Instant::now();
    while server.cpu_time() - before < Duration::from_millis(50) {
        assert!(start.elapsed() < TIMEOUT, "the loop does not run");
        std::thread::yield_now();
    }
    drop(raw);
    // Quiet for 300 ms is stopped; there is no event to wait for.
    while busy(&server, Duration::from_millis(300)) > Duration::from_millis(30) {
        assert!(start.elapsed() < TIMEOUT, "it runs on after its client has gone");
    }
    server.stop();
}

#[test]
fn an_idle_server_uses_no_cpu() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    assert_idle(&server);
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    assert_idle(&server);
    server.stop();
}

/// Waits for a second without processor time, as each of an idle server is but the first ones; the clock's resolution is 10 ms.
fn assert_idle(server: &Server) {
    let start = Instant::now();
    loop {
        let used = busy(server, Duration::from_secs(1));
        if used <= Duration::from_millis(20) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{used:?} of processor time in a second of idleness");
    }
}

fn busy(server: &Server, time: Duration) -> Duration {
    let before = server.cpu_time();
    std::thread::sleep(time);
    server.cpu_time() - before
}

/// A request's limit of processor time holds, whatever else runs.
#[test]
fn processor_time_beyond_the_limit_is_a_500() {
    let functions = json!([
        entry_with("spin", "spin.wat", &json!({ "cpu_ms_max": 50 })),
        entry_with("other", "spin.wat", &json!({ "deadline_ms": 1500 })),
        entry("echo", "echo.wat"),
    ]);
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    let mut other = Raw::connect(server.address);
    other.send(post_bytes("/other", b"", ""));
    for _ in 0..3 {
        assert_failure(&server.client().post("/spin", ""), 500, "cpu_limit", "cpu_limit", Some("spin"));
        assert_eq!(server.client().post("/echo", "x").text(), "x");
    }
    assert_eq!(other.reply().expect("a reply").status, 504);
    server.wait_for_log("cpu_limit");
    server.stop();
}

#[test]
fn every_policy_answers_everybody() {
    for policy in ["round-robin", "fifo", "edf"] {
        for listeners in LISTENERS {
            let functions = json!([
                entry("echo", "echo.wat"),
                entry("busy", "busy.wat"),
                entry_with("spin", "spin.wat", &json!({ "deadline_ms": 100, "tenant": "other" })),
            ]);
            let server = Server::start(json!({ "policy": policy, "listeners": listeners, "functions": functions }));
            std::thread::scope(|scope| {
                for number in 0..8_u64 {
                    let client = server.client();
                    scope.spawn(move || {
                        for round in 0..20_u64 {
                            let mut body = (round * number * 1000).to_le_bytes().to_vec();
                            body.extend_from_slice(format!("{policy} {number} {round}").as_bytes());
                            assert_eq!(client.post("/busy", &body).body, body);
                            assert_eq!(client.post("/echo", &body).body, body);
                            if number == 0 && round % 5 == 0 {
                                assert_eq!(client.post("/spin", "").status, 504);
                            }
                        }
                    });
                }
            });
            server.stop();
        }
    }
}

/// Loops of one tenant take half of the worker from another, however many they are.
#[test]
fn a_flood_at_one_tenant_leaves_the_others_their_share() {
    const LOOPS: usize = 40;
    let functions = json!([
        entry_with("flood", "spin.wat", &json!({ "deadline_ms": 600_000, "tenant": "noisy" })),
        entry_with("busy", "busy.wat", &json!({ "tenant": "quiet" })),
    ]);
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    let client = server.client();
    let mut body = 20_000_000_u64.to_le_bytes().to_vec();
    body.extend_from_slice(b"quiet");
    // In processor time of the server, since the machine may be busy with other things.
    let cost = |rounds: u32| {
        let before = server.cpu_time();
        for _ in 0..rounds {
            assert_eq!(client.post("/busy", &body).body, body);
        }
        (server.cpu_time() - before) / rounds
    };
    let alone = cost(5);
    let mut loops: Vec<Raw> = (0..LOOPS).map(|_| Raw::connect(server.address)).collect();
    loops.iter_mut().for_each(|raw| raw.send(post_bytes("/flood", b"", "")));
    let before = server.cpu_time();
    let start = Instant::now();
    while server.cpu_time() - before < Duration::from_millis(100) {
        assert!(start.elapsed() < TIMEOUT, "the loops do not run");
        std::thread::yield_now();
    }
    let beside = cost(5);
    drop(loops);
    crate::eventually("the loops are gone", || server.admin().get("/status").json()["requests"] == 0);
    // The processor may have become slower meanwhile.
    let alone = alone.max(cost(5));
    assert!(beside <= 2 * alone + alone / 2 + Duration::from_millis(20), "{alone:?} alone, {beside:?} beside a flood");
    server.stop();
}

/// Two loops never share a worker while another is idle: what has begun is stolen too.
#[test]
fn no_worker_idles_while_another_has_two_sandboxes() {
    // Long enough for both workers to get some time where other processes want the cores.
    let spin = entry_with("spin", "spin.wat", &json!({ "deadline_ms": 1_500 }));
    let server = Server::start(json!({ "workers": 2, "functions": [spin] }));
    // The kernel puts both connections on the same worker in half of the rounds.
    for round in 0..8 {
        let before = server.thread_cpu_times("worker-");
        assert_eq!(before.len(), 2);
        let mut loops: Vec<Raw> = (0..2).map(|_| Raw::connect(server.address)).collect();
        loops.iter_mut().for_each(|raw| raw.send(post_bytes("/spin", b"", "")));
        for raw in &mut loops {
            assert_eq!(raw.reply().expect("a reply").status, 504);
        }
        let after = server.thread_cpu_times("worker-");
        for (before, after) in before.iter().zip(&after) {
            assert!(*after - *before >= Duration::from_millis(50), "round {round}: a worker was idle: {before:?}, {after:?}");
        }
    }
    server.stop();
}

/// A deadline that passes while a gibibyte is being filled or copied: those instructions are guest code as any other, so they are preempted and
/// killed at the end of a quantum. What can delay that is one page fault of the kernel.
#[test]
fn a_deadline_inside_a_large_memory_fill_is_kept() {
    let fill = json!({ "deadline_ms": 40, "memory_bytes_max": 1_u64 << 30 });
    let server =
        Server::start(json!({ "workers": 1, "functions": [entry_with("fill", "fill.wat", &fill), entry("echo", "echo.wat")] }));
    let client = server.client();
    // In processor time, since the machine may be busy with other things; filling all of it takes several times as long. A host that takes the processor away counts that, too, so the least of five tells.
    let times = (0..5).map(|_| {
        let before = server.cpu_time();
        assert_failure(&client.post("/fill", ""), 504, "deadline", "deadline_exceeded", Some("fill"));
        let used = server.cpu_time() - before;
        assert_eq!(client.post("/echo", "x").text(), "x");
        used
    });
    let used = times.min().expect("five");
    assert!(used <= Duration::from_millis(100), "{used:?}");
    server.stop();
}

/// A sandbox that begins while the timer runs already gets what is left of its quantum after the first tick, not a whole one more. Its budget is looked at when the
/// run is over.
#[test]
fn a_run_is_a_quantum_at_most() {
    const QUANTUM: Duration = Duration::from_millis(600);
    let spin = entry_with("spin", "spin.wat", &json!({ "cpu_ms_max": 1 }));
    let functions = json!([spin, entry_with("busy", "busy.wat", &json!({ "deadline_ms": 20_000 }))]);
    let server = Server::start(json!({ "workers": 1, "quantum_us": QUANTUM.as_micros() as u64, "functions": functions }));
    let [mut first, mut second] = [(); 2].map(|()| Raw::connect(server.address));
    let work = |rounds: u64| post_bytes("/busy", &rounds.to_le_bytes(), "");
    // What takes two thirds of a quantum. Of several, the one that nothing else on the machine has delayed.
    let times = (0..5).map(|_| {
        let start = Instant::now();
        first.send(work(10_000_000));
        assert_eq!(first.reply().expect("a reply").status, 200);
        start.elapsed()
    });
    let rounds = 10_000_000 * 400 / (times.min().expect("five").as_millis() as u64).max(1);
    // By the server's own clock. Where the machine takes the processor away it ran for longer: with a whole quantum more it always does.
    let mut ran = || {
        // The timer is started in these two thirds; what comes next begins in the last third.
        first.send(work(rounds));
        std::thread::sleep(Duration::from_millis(50));
        second.send(post_bytes("/spin", b"", "server-timing-request: 1\r\n"));
        assert_eq!(first.reply().expect("a reply").status, 200);
        let reply = second.reply().expect("a reply");
        assert_failure(&reply, 500, "cpu_limit", "cpu_limit", Some("spin"));
        let timing = reply.header("server-timing").expect("times").to_owned();
        let time = timing.split(", ").find_map(|part| part.strip_prefix("cpu;dur="));
        Duration::from_secs_f64(time.and_then(|time| time.parse::<f64>().ok()).expect("a time") / 1_000.0)
    };
    let times: Vec<Duration> = (0..6).map(|_| ran()).collect();
    let is_one = |ran: &Duration| (QUANTUM / 6..QUANTUM + QUANTUM / 6).contains(ran);
    assert!(times.iter().any(is_one), "it ran for {times:?}");
    server.stop();
}
