//! What components import beside WASI 0.2: key-value stores in each form, configuration, other functions, messages.

use crate::components;
use crate::kv::{Redis, Versions};
use crate::{entry, entry_with};
use serde_json::{Value, json};
use sledge_tests::process;
use sledge_tests::programs;
use sledge_tests::server::Server;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

/// The artifact of the component in `functions/components/store`.
pub(crate) fn artifact() -> PathBuf {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| components::built("store"));
    MADE.clone()
}

/// The component as `web`, with more keys of the server's configuration and of its own, beside others.
fn server(config: &Value, more: &Value, others: &[Value]) -> Server {
    let mut web = json!({ "name": "web", "path": artifact(), "deadline_ms": 20_000 });
    for (key, value) in more.as_object().expect("an object") {
        web[key] = value.clone();
    }
    let functions: Vec<_> = others.iter().cloned().chain([web]).collect();
    let mut config = config.clone();
    (config["workers"], config["functions"]) = (json!(1), json!(functions));
    Server::start(config)
}

/// Runs operations, of which each has to come to what stands behind it.
#[track_caller]
fn check(server: &Server, operations: &[(&str, &str)]) {
    // Line by line: some name versions that the store has given to those before.
    let mut versions = Versions::default();
    for (operation, expected) in operations {
        let reply = server.client().post("/web", versions.asked(operation));
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(versions.answered(reply.text().trim_end_matches('\n'), expected), *expected, "{operation}");
    }
}

#[test]
fn components_use_the_store_in_every_form() {
    every_form(&json!({ "kv": "memory" }));
}

#[test]
fn components_use_redis_in_every_form() {
    let redis = Redis::start();
    every_form(&json!({ "kv": redis.url() }));
}

fn every_form(config: &Value) {
    let server = server(config, &json!({}), &[]);
    let long = format!("draft {} get a", "x".repeat(65));
    check(
        &server,
        &[
            ("own o get k", "Ok(None)"),
            ("own o set k one", "Ok(1)"),
            ("own o get k", r#"Ok(Some(("one", 1)))"#),
            ("own o swap k 1 two", r#"Ok("committed 2")"#),
            ("own o swap k 1 three", r#"Ok("conflict 2")"#),
            ("own o increment n 5", "Ok(5)"),
            ("own o set-many a=1 b=2", "Ok(4)"),
            ("own o get-many a x b", r#"Ok([Some(("1", 4)), None, Some(("2", 4))])"#),
            ("own o commit k?2 a=9 b!", r#"Ok("committed 5")"#),
            ("own o commit k?1 a=0", r#"Ok("conflict 2")"#),
            ("own o get-many a b", r#"Ok([Some(("9", 5)), None])"#),
            ("own o list a", r#"1 1 Some("a") Some("a")"#),
            ("own o delete-many a k", "Ok(())"),
            ("own o exists k", "Ok(false)"),
            ("own o set t x", "Ok(7)"),
            ("own o increment t 1", "Err(Error::NotANumber)"),
            ("own o increment n 9223372036854775807", "Err(Error::Overflow)"),
            ("own o set rep:1025:k x", "Err(Error::TooLarge)"),
            ("own o set k rep:1048577:v", "Err(Error::TooLarge)"),
            ("own o delete n", "Ok(())"),
            ("own o exists n", "Ok(false)"),
        ],
    );
    check(
        &server,
        &[
            ("draft - get a", "Ok(None)"),
            ("draft - exists a", "Ok(false)"),
            ("draft - set a one", "Ok(())"),
            // Without a name it is the default; all forms have the same buckets.
            ("draft default get a", r#"Ok(Some("one"))"#),
            ("draft2 default get a", r#"Ok(Some("one"))"#),
            ("spin default get a", r#"Ok(Some("one"))"#),
            ("draft other get a", "Ok(None)"),
            ("draft - increment n 5", "Ok(5)"),
            ("draft2 default increment n -7", "Ok(-2)"),
            ("draft - increment n 1", r#"Err(Error::Other("the sum does not fit in 64 bits"))"#),
            ("draft - increment n 9223372036854775808", r#"Err(Error::Other("the sum does not fit in 64 bits"))"#),
            ("draft2 default get n", r#"Ok(Some("-1"))"#),
            ("draft - increment a 1", r#"Err(Error::Other("the value is no decimal number of 64 bits"))"#),
            ("draft - set-many x=1 y=2", "Ok(())"),
            ("draft - get-many x none y", r#"Ok([Some(("x", "1")), None, Some(("y", "2"))])"#),
            ("draft2 default get-many x none y", r#"Ok([("x", Some("1")), ("none", None), ("y", Some("2"))])"#),
            ("draft2 default delete-many x none", "Ok(())"),
            ("draft2 default exists x", "Ok(false)"),
            ("draft2 default set-many x=3", "Ok(())"),
            ("draft - delete-many x y", "Ok(())"),
            ("draft - get-many x y", "Ok([None, None])"),
            ("draft2 default delete a", "Ok(())"),
            ("spin default set b two", "Ok(())"),
            ("spin default exists b", "Ok(true)"),
            ("spin default delete b", "Ok(())"),
            ("draft - get b", "Ok(None)"),
            ("draft2 default cas s - one", "None swapped"),
            ("draft2 default cas s two three", r#"Some("one") failed Some("two") true"#),
            ("draft2 default get s", r#"Ok(Some("three"))"#),
            ("draft - set rep:1025:k x", r#"Err(Error::Other("a key of more than 1024 bytes"))"#),
            (
                "spin default set k rep:1048577:v",
                r#"Err(Error::Other("a value of 1048577 bytes, of which there may be 1048576"))"#,
            ),
            (&long, "Error::NoSuchStore"),
        ],
    );
    check(
        &server,
        &[
            ("draft many fill 2500", "2500"),
            ("draft many list", r#"2500 3 Some("k000000") Some("k002499")"#),
            ("draft2 many list", r#"2500 3 Some("k000000") Some("k002499")"#),
            ("own many list k", r#"2500 3 Some("k000000") Some("k002499")"#),
            ("own many list k0024", r#"100 1 Some("k002400") Some("k002499")"#),
            ("spin many list", r#"Ok((2500, Some("k000000"), Some("k002499")))"#),
            ("draft empty list", "0 1 None None"),
            ("draft many cursor 77", r#"Err(Error::Other("no cursor of this bucket"))"#),
            ("draft2 many cursor !", r#"Err(Error::Other("no cursor of this bucket"))"#),
            ("draft most fill 17000", "17000"),
            ("spin most list", r#"Err(Error::Other("more keys than one list holds"))"#),
        ],
    );
    server.stop();
}

/// Such keys fill pages of a list of which nothing is left for the component.
#[test]
fn keys_that_are_not_utf8_are_passed_over_however_many_there_are() {
    let keys = entry_with("keys", "binary-keys.wat", &json!({ "deadline_ms": 20_000 }));
    let spin = json!({ "name": "spin", "path": components::built("spin"), "deadline_ms": 20_000 });
    let server = server(&json!({ "kv": "memory" }), &json!({}), &[keys, spin]);
    assert_eq!(server.client().post("/keys", "").status, 200);
    check(
        &server,
        &[
            ("spin bin list", "Ok((0, None, None))"),
            ("draft bin list", "0 3 None None"),
            ("spin bin set z last", "Ok(())"),
            ("spin bin list", r#"Ok((1, Some("z"), Some("z")))"#),
        ],
    );
    let listed = server.client().post("/spin", "bin list 10").text();
    assert_eq!(listed.trim_end(), r#"1 Some("z") Some("z") Ok(())"#);
    server.stop();
}

#[test]
fn components_of_wasi_0_3_use_what_spin_offers() {
    let redis = Redis::start();
    let store = json!(components::built("spin"));
    for kv in ["memory", &redis.url()] {
        let function = json!({ "name": "web", "path": store, "deadline_ms": 20_000, "env": { "API_KEY": "secret" } });
        let server = Server::start(json!({ "kv": kv, "workers": 1, "functions": [function] }));
        check(
            &server,
            &[
                ("default get a", "Ok(None)"),
                ("default exists a", "Ok(false)"),
                ("default set a ö", "Ok(())"),
                ("default get a", r#"Ok(Some("ö"))"#),
                ("default exists a", "Ok(true)"),
                ("other get a", "Ok(None)"),
                ("default list 10", r#"1 Some("a") Some("a") Ok(())"#),
                ("default delete a", "Ok(())"),
                ("default list 10", "0 None None Ok(())"),
                ("many fill 2500", "2500"),
                ("many list 7", r#"2500 Some("k000000") Some("k002499") Ok(())"#),
                ("many list 4000", r#"2500 Some("k000000") Some("k002499") Ok(())"#),
                ("many first", r#"["k000000"] Ok(())"#),
                (&format!("{} get a", "x".repeat(65)), "Error::NoSuchStore"),
                ("variable api_key", r#"Ok("secret")"#),
                ("variable none", r#"Err(Error::Undefined("\"none\" is not in the function's `env`"))"#),
                ("variable Bad", r#"Err(Error::InvalidName("\"Bad\": small letters, digits and underscores, a letter first"))"#),
            ],
        );
        server.stop();
    }
}

#[test]
fn a_component_learns_that_there_is_no_store_or_no_room() {
    let server = server(&json!({}), &json!({}), &[]);
    check(
        &server,
        &[
            ("draft - get a", "Error::NoSuchStore"),
            ("draft2 default get a", "Error::NoSuchStore"),
            ("spin default get a", "Error::NoSuchStore"),
            ("own o get a", "Error::NoSuchStore"),
        ],
    );
    server.stop();
    let server = self::server(&json!({ "kv": "memory", "kv_tenant_bytes_max": 65_536 }), &json!({}), &[]);
    check(
        &server,
        &[
            ("own o set a rep:66000:x", "Err(Error::Full)"),
            ("draft - set a rep:66000:x", r#"Err(Error::Other("there is no room in the store (kv_tenant_bytes_max = 65536)"))"#),
            ("draft - set a rep:1000:x", "Ok(())"),
        ],
    );
    server.stop();
}

#[test]
fn a_component_reads_its_configuration() {
    let server = server(&json!({}), &json!({ "env": { "greeting": "hello=you", "API_KEY": "k" } }), &[]);
    let both = r#"Ok(Some("hello=you"))"#;
    check(
        &server,
        &[
            ("config get greeting", &[both; 4].join(" ")),
            ("config get greetin", &["Ok(None)"; 4].join(" ")),
            ("config all", r#"[("API_KEY", "k"), ("greeting", "hello=you")]"#),
            ("spin variable greeting", r#"Ok("hello=you")"#),
            ("spin variable api_key", r#"Ok("k")"#),
            ("spin variable nothing", r#"Err(Error::Undefined("\"nothing\" is not in the function's `env`"))"#),
            (
                "spin variable API_KEY",
                r#"Err(Error::InvalidName("\"API_KEY\": small letters, digits and underscores, a letter first"))"#,
            ),
        ],
    );
    server.stop();
}

#[test]
fn a_component_that_serves_requests_reads_their_head_and_has_its_reply_elsewhere() {
    let server = server(&json!({}), &json!({}), &[]);
    check(
        &server,
        &[
            ("http head host", &format!(r#"Some("POST") Some("/web") Some("{}")"#, server.address)),
            ("http head x-none", r#"Some("POST") Some("/web") None"#),
            ("http change", &["Err(Error::Already)"; 4].join(" ")),
        ],
    );
    server.stop();
}

#[test]
fn a_component_that_is_a_command_reads_the_head_and_says_its_own() {
    let exchange = components::built("exchange");
    let server = Server::start(json!({ "workers": 1, "functions": [{ "name": "web", "path": exchange }] }));
    let reply = server.client().post("/web?a", "body");
    assert_eq!((reply.status, reply.header("x-kind")), (201, Some("exchange")), "{reply:?}");
    let more: Vec<_> = reply.headers.iter().filter(|(name, _)| name == "x-more").map(|(_, value)| value.as_str()).collect();
    assert_eq!(more, ["1", "2"], "{reply:?}");
    assert_eq!(
        reply.text(),
        "POST /web?a None\nhost\n[Err(Error::Invalid), Err(Error::Invalid), Err(Error::Reserved), Err(Error::TooLarge)]\n\
         Ok(None) Err(Error::Invalid)\nOk(()) Err(Error::Already)\nbody"
    );
    server.stop();
    // Without a request there is no head, and what is said about the reply goes nowhere.
    let mut run = programs::sledge_command(&["run"]);
    let done = process::run(run.arg(components::built("exchange")), b"body", Duration::from_secs(300));
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert!(done.text().starts_with("  None\n\n[") && done.text().ends_with("body"), "{}", done.text());
}

#[test]
fn a_component_calls_other_functions_and_logs() {
    let slow = entry_with("slow", "spin.wat", &json!({ "deadline_ms": 50 }));
    let server = server(&json!({}), &json!({}), &[entry("echo", "echo.wat"), slow]);
    check(
        &server,
        &[
            ("call invoke echo hello", r#"Ok("hello")"#),
            ("call invoke nothing hello", "Err(Error::NotFound)"),
            ("call invoke slow hello", "Err(Error::Timeout)"),
            ("call invoke echo rep:4194305:x", "Err(Error::TooLarge)"),
            (
                "call start echo a b c",
                r#"[Ok(("a", Err(Error::Failed))), Ok(("b", Err(Error::Failed))), Ok(("c", Err(Error::Failed)))]"#,
            ),
            ("call send echo x", "Ok(())"),
            ("call drop echo 200", "true"),
            ("call hold echo 65", "64 [Error::Busy]"),
            ("call invoke echo again", r#"Ok("again")"#),
            ("note log it is logged", "logged"),
            ("note phase 3", "phase"),
        ],
    );
    server.wait_for_log("it is logged");
    server.stop();
}
