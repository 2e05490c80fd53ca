//! Memory of the whole server: what is idle goes back to the system, what all share is never exceeded and told apart from a function's own limit.

use crate::{assert_failure, entry, entry_with};
use serde_json::json;
use sledge_tests::http::{Raw, Reply, post_bytes};
use sledge_tests::programs::{self, sledge};
use sledge_tests::server::Server;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time in which something must have happened that usually takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;

/// The smallest total, for tests that reach it.
const TOTAL: u64 = 16 * MIB;

#[test]
fn memory_that_is_not_needed_goes_back_to_the_system_and_no_worker_wakes_up_for_it_afterwards() {
    let server = Server::start(json!({ "idle_memory_ms": 3_000, "functions": [entry("heavy", "heavy.wat")] }));
    let before = server.private_bytes();
    for _ in 0..3 {
        assert_eq!(server.client().post("/heavy", "").text(), "h");
    }
    let used = server.private_bytes();
    // The sandbox has 32 MiB for itself. The bound leaves room for what starting took and the server gives back meanwhile.
    assert!(used > before + 24 * MIB, "{before} before, {used} with an idle sandbox");
    let start = Instant::now();
    while server.private_bytes() > before + 8 * MIB {
        assert!(start.elapsed() < TIMEOUT, "{before} before, {} long after the last request", server.private_bytes());
        std::thread::yield_now();
    }
    // Several times as long as it takes to look for something to give back. First wait until every thread sleeps.
    let start = Instant::now();
    loop {
        let switches = server.context_switches();
        std::thread::sleep(Duration::from_secs(1));
        if server.context_switches() == switches {
            break;
        }
        assert!(start.elapsed() < TIMEOUT, "a thread wakes up again and again");
    }
    assert_eq!(server.client().post("/heavy", "").text(), "h");
    server.stop();
}

/// What was allocated for large bodies and for deployments is not kept for later, whichever thread's it was.
#[test]
fn the_heap_of_a_server_that_has_come_to_rest_is_small() {
    const DEPLOYMENTS: usize = 100;
    const CLIENTS: usize = 16;
    const REQUESTS: usize = 10;
    let server = Server::start(json!({ "idle_memory_ms": 100, "workers": 2, "functions": [entry("echo", "echo.wat")] }));
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    let before = server.private_bytes();
    let echo = wat::parse_file(programs::tests_folder().join("e2e/functions/echo.wat")).expect("WAT");
    for _ in 0..DEPLOYMENTS {
        assert_eq!(server.admin().deploy("other", &json!({}), &echo).status, 200);
    }
    let body = vec![b'x'; 1_000_000];
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| (0..REQUESTS).for_each(|_| assert!(server.client().post("/echo", &body).body == body)));
        }
    });
    let start = Instant::now();
    // Not what is resident of the program's file: that is more after the first deployment, and none of the heap.
    while server.private_bytes() > before + 4 * MIB {
        assert!(start.elapsed() < TIMEOUT, "{before} before, {} long after the last request", server.private_bytes());
        std::thread::sleep(Duration::from_millis(10));
    }
    server.stop();
}

#[test]
fn memory_that_is_to_be_kept_is_kept() {
    let server = Server::start(json!({ "idle_memory_ms": 0, "functions": [entry("heavy", "heavy.wat")] }));
    assert_eq!(server.client().post("/heavy", "").text(), "h");
    let used = server.private_bytes();
    std::thread::sleep(Duration::from_millis(500));
    assert!(server.private_bytes() + 8 * MIB > used);
    server.stop();
}

/// Of the program's own code, what only starting took is given back.
#[test]
fn a_server_that_has_started_keeps_little_of_its_program_in_memory() {
    let server = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let program = std::fs::canonicalize(sledge()).expect("the program").display().to_string();
    // Size and what is resident of the program's code, in KiB (proc_pid_smaps(5)).
    let of_program = || {
        let smaps = std::fs::read_to_string(format!("/proc/{}/smaps", server.pid())).expect("smaps");
        let (mut is_meant, mut sums) = (false, [0; 2]);
        for line in smaps.lines() {
            let (key, rest) = line.split_once(char::is_whitespace).expect("two words");
            if !key.ends_with(':') {
                is_meant = rest.starts_with("r-xp") && rest.ends_with(&program);
            } else if let Some(at) = ["Size:", "Rss:"].iter().position(|known| is_meant && key == *known) {
                sums[at] += rest.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
            }
        }
        sums
    };
    let start = Instant::now();
    loop {
        let [size, resident] = of_program();
        assert!(size > 1_000, "{program} is not mapped");
        if resident < size / 2 {
            break;
        }
        assert!(start.elapsed() < TIMEOUT, "{resident} of {size} KiB");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(server.client().post("/echo", "x").text(), "x");
    server.stop();
}

/// Sends requests to `/spin` until one of them is refused; those that run, and the refusal.
fn spinning_until_refused(server: &Server) -> (Vec<Raw>, Reply) {
    let mut spinning: Vec<Raw> = Vec::new();
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < TIMEOUT, "never refused");
        let mut raw = Raw::connect(server.address);
        raw.send(post_bytes("/spin", b"", ""));
        spinning.push(raw);
        if let Some(at) = spinning.iter_mut().position(|raw| raw.answers_within(Duration::from_millis(10))) {
            let refused = spinning.swap_remove(at).reply().expect("a reply");
            return (spinning, refused);
        }
    }
}

#[test]
fn an_exhausted_server_answers_503_and_a_function_at_its_own_limit_500() {
    let functions = json!([
        entry_with("spin", "spin.wat", &json!({ "deadline_ms": 60_000 })),
        entry_with("small", "grow.wat", &json!({ "memory_bytes_max": 4 * 65536 })),
        entry("grow", "grow.wat"),
        entry("echo", "echo.wat"),
    ]);
    // With one worker, a sandbox is reset before the next one is made.
    let server = Server::start(json!({ "workers": 1, "memory_total_bytes_max": TOTAL, "functions": functions }));
    let client = server.client();
    // It grows to what all have; that it gives up for want of memory may be otherwise the next time.
    let refused = client.post("/grow", "t");
    assert_failure(&refused, 503, "unavailable", "no_memory", Some("grow"));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_failure(&client.post("/small", "t"), 500, "trap", "memory_limit", Some("small"));
    // One that does not give up is told, and goes on.
    let pages = client.post("/grow", "r").body;
    let pages = u32::from_le_bytes(pages.try_into().expect("four bytes"));
    assert!(u64::from(pages) * 65536 > TOTAL / 2 && u64::from(pages) * 65536 < TOTAL, "{pages} pages");
    // No room for another sandbox.
    let (spinning, refused) = spinning_until_refused(&server);
    assert_failure(&refused, 503, "unavailable", "no_memory", Some("spin"));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert!(spinning.len() >= 4, "{} at once", spinning.len());
    drop(spinning);
    let start = Instant::now();
    while client.post("/echo", "x").status != 200 {
        assert!(start.elapsed() < TIMEOUT, "nothing was given back");
    }
    server.stop();
}

/// A first write to a page of the image that all sandboxes share needs a page of the sandbox's own: where there is none, that request is told so.
#[test]
fn a_write_to_a_shared_image_that_finds_no_memory_is_answered_503() {
    // The image has 32 MiB, and so has each sandbox that writes to all of it.
    let functions = json!([entry("heavy", "heavy.wat"), entry("echo", "echo.wat")]);
    let server = Server::start(json!({ "workers": 1, "memory_total_bytes_max": 48 * MIB, "functions": functions }));
    let client = server.client();
    for _ in 0..3 {
        let refused = client.post("/heavy", "");
        assert_failure(&refused, 503, "unavailable", "no_memory", Some("heavy"));
        assert!(refused.header("retry-after").is_some(), "{refused:?}");
        assert_eq!(client.post("/echo", "x").text(), "x");
    }
    server.stop();
}

/// Waits until a server that has refused requests for want of memory has so much of it at most.
fn comes_down_to(server: &Server, bytes: u64) {
    let start = Instant::now();
    while server.private_bytes() > bytes {
        assert!(start.elapsed() < TIMEOUT, "{} bytes, not {bytes}", server.private_bytes());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Bodies that never become whole take no more than there is, however many they are.
#[test]
fn slow_uploads_take_no_more_memory_than_there_is() {
    const UPLOADS: usize = 30;
    let total = 32 * MIB;
    let body = vec![b'u'; 6 * MIB as usize];
    let server = Server::start(
        json!({ "memory_total_bytes_max": total, "body_timeout_ms": 600_000, "functions": [entry("echo", "echo.wat")] }),
    );
    let before = server.private_bytes();
    let refused = std::thread::scope(|scope| {
        let uploads: Vec<_> = (0..UPLOADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut raw = Raw::connect(server.address);
                    raw.send(format!("POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n\r\n", body.len() + 1));
                    raw.send(&body);
                    raw
                })
            })
            .collect();
        let mut uploads: Vec<Raw> = uploads.into_iter().map(|upload| upload.join().expect("a client")).collect();
        // All but those that fit are refused, and told so.
        let fitting = (total / (6 * MIB)) as usize;
        let start = Instant::now();
        let mut refused = Vec::new();
        while uploads.len() > fitting {
            assert!(start.elapsed() < TIMEOUT, "{} are still taken", uploads.len());
            if let Some(at) = uploads.iter_mut().position(|raw| raw.answers_within(Duration::from_millis(5))) {
                refused.push(uploads.swap_remove(at).reply().expect("a reply"));
            }
        }
        // Those that were taken wait for their last byte. What was refused goes back to the system, though it lies between theirs.
        comes_down_to(&server, before + total + 12 * MIB);
        drop(uploads);
        refused
    });
    for reply in refused {
        assert_failure(&reply, 503, "unavailable", "no_memory", Some("echo"));
    }
    let start = Instant::now();
    while server.client().post("/echo", &body).body != body {
        assert!(start.elapsed() < TIMEOUT, "nothing was given back");
    }
    server.stop();
}

/// Replies that no client reads are counted too.
#[test]
fn replies_that_no_client_reads_take_no_more_memory_than_there_is() {
    let total = 48 * MIB;
    let server = Server::start(json!({ "memory_total_bytes_max": total, "functions": [entry("echo", "echo.wat")] }));
    let before = server.private_bytes();
    let body = vec![b'r'; 7 * MIB as usize];
    let unread: Vec<Raw> = (0..20)
        .map(|_| {
            let mut raw = Raw::connect(server.address);
            raw.send(post_bytes("/echo", &body, ""));
            // The head is there, and as much as the kernel takes.
            assert!(raw.answers_within(TIMEOUT));
            raw
        })
        .collect();
    comes_down_to(&server, before + total + 12 * MIB);
    drop(unread);
    let start = Instant::now();
    while server.client().post("/echo", &body).body != body {
        assert!(start.elapsed() < TIMEOUT, "nothing was given back");
    }
    server.stop();
}

/// Where there is address space for a few sandboxes only, workers take from each other what is idle.
#[test]
fn functions_share_address_space_that_suffices_for_few_of_them() {
    // Kilobytes: room for the code arena's smallest form and for five guarded memories.
    let limit = 48 << 20;
    let files: Vec<String> = (0..4)
        .map(|number| {
            let copy = programs::folder().join(format!("few-{number}.so"));
            std::fs::copy(programs::function("echo.wat"), &copy).expect("a copy");
            copy.display().to_string()
        })
        .collect();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v \"$0\" && exec \"$@\""]).arg(limit.to_string()).arg(sledge());
    command.args(["serve", "--listen", "127.0.0.1:0", "--workers", "2"]).args(&files);
    let server = Server::start_with(&mut command);
    for round in 0..20 {
        for number in 0..4 {
            // Every request on a connection of its own, so that both workers get some.
            let reply = server.client().post(&format!("/few-{number}"), format!("{round}"));
            assert_eq!((reply.status, reply.text()), (200, format!("{round}")), "{}", server.log());
        }
    }
    server.stop();
}
