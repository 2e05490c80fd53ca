//! `grpc.health.v1`.

use super::{Application, Call, config, connect, free_address, is_own, own, shop, text, unary};
use crate::http::run;
use prost::Message;
use rustix::process::Signal;
use serde_json::json;
use sledge_tests::http::TIME_MAX;
use std::collections::BTreeMap;
use std::fs;

const CHECK: &str = "/grpc.health.v1.Health/Check";
const LIST: &str = "/grpc.health.v1.Health/List";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;
const SERVICE_UNKNOWN: i32 = 3;

#[derive(Clone, Copy, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    status: i32,
}

#[derive(Clone, PartialEq, Message)]
struct List {
    #[prost(btree_map = "string, message", tag = "1")]
    statuses: BTreeMap<String, Status>,
}

fn name(service: &str) -> Vec<u8> {
    if service.is_empty() { Vec::new() } else { text(1, service) }
}

fn status(message: bytes::Bytes) -> i32 {
    Status::decode(message).expect("a status").status
}

#[test]
fn services_are_served_or_not_or_unknown() {
    let own = free_address();
    let application = Application::new(&config(&[shop(&json!({ "listen": own.to_string() }))]));
    let server = application.start();
    run(async {
        let connection = connect(own).await;
        for service in ["", "shop.Echo"] {
            assert_eq!(unary(&connection, CHECK, &name(service)).await.map(status), Ok(SERVING), "{service:?}");
        }
        // What clients cannot call is as unknown as what is not there.
        for service in ["shop.Ledger", "shop.Ech", "shop", "grpc"] {
            let unknown = ("5".to_owned(), format!("unknown service `{service}`"));
            assert_eq!(unary(&connection, CHECK, &name(service)).await, Err(unknown));
        }
        let list = List::decode(unary(&connection, LIST, b"").await.unwrap()).expect("a list").statuses;
        let list: Vec<_> = list.iter().map(|(name, status)| (&**name, status.status)).collect();
        assert_eq!(list, [("", SERVING), ("shop.Echo", SERVING)]);
        let (nothing, broken) = (Call::begin(&connection, CHECK), unary(&connection, CHECK, &[7]));
        let mut nothing = nothing.await;
        nothing.end();
        assert_eq!((nothing.status().await.0, broken.await.unwrap_err().0), ("12".to_owned(), "13".to_owned()));
        // Where no application is, there is no such service.
        let connection = connect(server.address).await;
        assert_eq!(unary(&connection, CHECK, b"").await.unwrap_err().0, "12");
    });
    server.stop();
}

#[test]
fn what_changes_is_told_to_clients_that_watch() {
    let mut config = config(&[shop(&json!({}))]);
    config["ready_when_degraded"] = false.into();
    let application = Application::new(&config);
    fs::write(application.built("echo.so"), "no artifact").expect("write");
    let mut server = application.start();
    run(async {
        let connection = connect(server.address).await;
        assert_eq!(unary(&connection, CHECK, &name("shop.Echo")).await.map(status), Ok(NOT_SERVING));
        assert_eq!(unary(&connection, CHECK, b"").await.map(status), Ok(NOT_SERVING));
        let mut watches = Vec::new();
        for (service, now) in [("shop.Echo", NOT_SERVING), ("", NOT_SERVING), ("shop.New", SERVICE_UNKNOWN)] {
            let mut watch = Call::begin(&connection, WATCH).await;
            watch.say(&name(service)).await;
            watch.end();
            assert_eq!(status(watch.hear().await.expect("a status")), now, "{service:?}");
            watches.push(watch);
        }
        application.build("echo");
        config["applications"][0]["functions"][0]["services"] = json!(["shop.Echo", "shop.New"]);
        config["applications"][0]["protos"] = json!([]);
        application.configure(&config);
        server.signal(Signal::HUP);
        for watch in &mut watches {
            assert_eq!(status(watch.hear().await.expect("a status")), SERVING);
        }
        // One that goes does not disturb the others.
        drop(watches.pop());
        server.signal(Signal::TERM);
        for watch in &mut watches {
            assert_eq!(status(watch.hear().await.expect("a status")), NOT_SERVING);
            assert_eq!(watch.status().await, ("14".to_owned(), "stopping".to_owned()));
        }
    });
    assert!(server.wait(TIME_MAX).success());
}

#[test]
fn a_function_that_offers_it_is_called() {
    let mut config = config(&[shop(&json!({}))]);
    config["functions"] = json!([own("/grpc.health.v1.Health/Check")]);
    let application = Application::new(&config);
    let server = application.start();
    run(async {
        let connection = connect(server.address).await;
        assert!(is_own(&connection, CHECK).await);
        assert!(unary(&connection, LIST, b"").await.is_ok());
    });
    server.stop();
}
