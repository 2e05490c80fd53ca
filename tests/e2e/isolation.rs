//! Every request has a sandbox as new, and gets its own answer.

use crate::{LISTENERS, entry, entry_with};
use serde_json::json;
use sledge_tests::server::Server;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `state.wat` finds in a new sandbox.
fn fresh() -> Vec<u8> {
    let words: [u32; 9] = [0x1111_1111, 1, 0x2222_2222, 0, 0, 3, 4, 1, 0];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// By way of real host calls: what they read and write ends at the last byte of memory.
#[test]
fn the_host_touches_nothing_behind_the_end_of_memory() {
    let server = Server::start(json!({ "functions": [entry("edges", "edges.wat")] }));
    let reply = server.client().post("/edges", "");
    assert_eq!((reply.status, reply.text().as_str()), (200, "ok"), "{reply:?} {}", reply.text());
    server.stop();
}

#[test]
fn nothing_is_left_of_the_request_before() {
    let server = Server::start(json!({ "workers": 1, "functions": [entry("state", "state.wat"), entry("other", "state.wat")] }));
    let client = server.client();
    for round in 0..30 {
        for name in ["state", "other"] {
            let body = vec![0xab; round * 100];
            let reply = client.post(&format!("/{name}"), &body);
            assert_eq!(reply.status, 200, "round {round}: {}", reply.text());
            assert_eq!(reply.body[..36], fresh(), "round {round} of {name}");
            assert_eq!(reply.body[36..], body, "round {round} of {name}");
        }
    }
    server.stop();
}

/// Of requests that trap, are killed or exit, nothing is left either.
#[test]
fn nothing_is_left_of_a_request_that_failed() {
    let functions = json!([
        entry("state", "state.wat"),
        entry("traps", "traps.wat"),
        entry_with("spin", "spin.wat", &json!({ "deadline_ms": 20 })),
        entry_with("grow", "grow.wat", &json!({ "memory_bytes_max": 200 * 65536 })),
    ]);
    let server = Server::start(json!({ "workers": 1, "functions": functions }));
    let client = server.client();
    for _ in 0..5 {
        for (path, body, status) in
            [("/traps", "m", 500), ("/traps", "r", 500), ("/spin", "", 504), ("/grow", "t", 500), ("/grow", "r", 200)]
        {
            assert_eq!(client.post(path, body).status, status, "{path} {body}");
            let reply = client.post("/state", "");
            assert_eq!((reply.status, reply.body), (200, fresh()), "after {path} {body}");
            assert_eq!(client.post("/traps", "-").text(), "ok", "after {path} {body}");
        }
    }
    server.stop();
}

#[test]
fn concurrent_clients_get_their_own_answers() {
    for listeners in LISTENERS {
        concurrent_clients(listeners);
    }
}

fn concurrent_clients(listeners: &str) {
    const CLIENTS: usize = 24;
    const REQUESTS: usize = 60;
    let functions = json!([
        entry("echo", "echo.wat"),
        entry("state", "state.wat"),
        entry("traps", "traps.wat"),
        entry_with("spin", "spin.wat", &json!({ "deadline_ms": 30 })),
    ]);
    let server = Server::start(json!({ "listeners": listeners, "workers": 2, "functions": functions }));
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client_number in 0..CLIENTS {
            let (server, answered) = (&server, &answered);
            scope.spawn(move || {
                // Half of the clients keep their connection, the others make one for each request.
                let mut client = server.client();
                for request in 0..REQUESTS {
                    if client_number % 2 == 0 {
                        client = server.client();
                    }
                    let body = format!("{client_number}/{request} ").repeat(1 + (client_number * 37 + request * 101) % 400);
                    let reply = client.post("/echo", &body);
                    assert_eq!((reply.status, reply.text()), (200, body.clone()));
                    match request % 6 {
                        1 => assert_eq!(client.post("/traps", "u").status, 500),
                        3 => assert_eq!(client.post("/state", "").body, fresh()),
                        5 if client_number < 4 => assert_eq!(client.post("/spin", "").status, 504),
                        _ => {}
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(answered.into_inner(), CLIENTS * REQUESTS);
    server.stop();
}

/// The random source gives each sandbox something else.
#[test]
fn randomness_is_not_shared() {
    let server = Server::start(json!({ "functions": [entry("random", "random.wat")] }));
    let client = server.client();
    let replies: HashSet<Vec<u8>> = (0..50).map(|_| client.post("/random", "").body).collect();
    assert_eq!(replies.len(), 50);
    assert!(replies.iter().all(|reply| reply.len() == 16));
    server.stop();
}
