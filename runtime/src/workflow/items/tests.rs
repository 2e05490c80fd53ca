//! Items and results in both stores: in this process, and in a Redis server.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use sledge_workflow::machine::TaskId;

use super::*;
use crate::kv::{KV_MEMORY, KvLimits, Store};

/// A Redis server that ends with the test.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start() -> Server {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("redis-server, which scripts/setup installs");
        let server = Server { child, port };
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "redis-server does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn start(resource: &str, purpose: Purpose, input: Value) -> StartTask {
    StartTask {
        task: TaskId(1),
        position: Vec::new(),
        state: "M".into(),
        resource: Arc::new(Resource::parse(resource).unwrap()),
        input: Arc::new(input),
        token: None,
        deadline_ms: None,
        heartbeat_s: None,
        attempt: 0,
        purpose,
    }
}

/// Calls `with` with the share of a tenant in each store.
fn in_each_store(with: impl AsyncFn(&Space)) {
    let server = Server::start();
    for kv in [KV_MEMORY.to_owned(), format!("redis://127.0.0.1:{}", server.port)] {
        println!("{kv}");
        // Connections belong to the runtime.
        wait(async {
            let store = Store::open(Path::new(&kv), KvLimits::default(), &Arc::default(), String::new).unwrap();
            with(&store.space("t")).await;
        });
    }
}

async fn put(space: &Space, keys: impl Iterator<Item = (String, &'static [u8])>) {
    let bucket = BucketName::new(b"b").unwrap();
    let change =
        |(key, value): (String, &'static [u8])| (bucket.key(key.as_bytes()).unwrap(), Change::Put(Bytes::from_static(value)));
    let commit = Commit::new(Vec::new(), keys.map(change).collect());
    assert!(matches!(space.clone().commit(commit).await, Ok(Outcome::Committed { .. })));
}

async fn items(space: &Space, resource: &str, mut input: Value, config: Value) -> Result<Value, Failure> {
    input["Bucket"] = json!("b");
    input["ReaderConfig"] = config;
    carry_out(space, &start(resource, Purpose::Read, input)).await.map_err(Unread::into_failure)
}

#[test]
fn both_stores_give_the_same_items() {
    in_each_store(async |space| {
        // More than a page, and others before and behind.
        for chunk in 0..3 {
            put(space, (0..700).map(|number| (format!("in/{chunk}-{number:03}"), &b"{\"v\":1}"[..]))).await;
        }
        put(space, ["im", "in", "in0", "z"].into_iter().map(|key| (key.to_owned(), &b"text"[..]))).await;
        let all = items(space, "kv:list", json!({ "Prefix": "in/" }), json!({})).await.unwrap();
        let keys: Vec<_> = all.as_array().unwrap().iter().map(|item| item["Key"].as_str().unwrap().to_owned()).collect();
        assert_eq!(keys.len(), 2_100);
        assert!(keys.is_sorted() && keys[0] == "in/0-000" && keys[2_099] == "in/2-699");
        let some = items(space, "kv:scan", json!({ "Prefix": "in/1" }), json!({ "MaxItems": 2 })).await.unwrap();
        let item = |key: &str| json!({ "Key": key, "Value": { "v": 1 } });
        assert_eq!(some, json!([item("in/1-000"), item("in/1-001")]));
        let text = items(space, "kv:scan", json!({ "Prefix": "z" }), json!({})).await.unwrap();
        assert_eq!(text, json!([{ "Key": "z", "Value": "text" }]));
        assert_eq!(items(space, "kv:list", json!({ "Prefix": "none" }), json!({})).await, Ok(json!([])));
        let whole = items(space, "kv:list", json!({}), json!({ "MaxItems": 1 })).await;
        assert_eq!(whole, Ok(json!([{ "Key": "im" }])), "without a prefix");
        put(space, [("csv".to_owned(), &b"a,b\n1,2\n"[..])].into_iter()).await;
        let csv = items(space, "kv:get", json!({ "Key": "csv" }), json!({ "InputType": "CSV" })).await;
        assert_eq!(csv, Ok(json!([{ "a": "1", "b": "2" }])));
        for (resource, input, error) in [
            ("kv:get", json!({ "Key": "none" }), "KeyValue.NoSuchKey"),
            ("kv:get", json!({ "Key": "z" }), "KeyValue.Dataset"),
            ("kv:get", json!({ "Key": 1 }), "States.Runtime"),
            ("kv:get", json!({ "Key": "k".repeat(2_000) }), "KeyValue.TooLarge"),
            ("kv:list", json!({ "Prefix": 1 }), "States.Runtime"),
            ("kv:list", json!({ "Prefix": "k".repeat(2_000) }), "KeyValue.TooLarge"),
        ] {
            let failure = items(space, resource, input.clone(), json!({ "InputType": "JSON" })).await.unwrap_err();
            assert_eq!(failure.error.as_deref(), Some(error), "{resource} {input}");
        }
    });
}

#[test]
fn both_stores_keep_results() {
    in_each_store(async |space| {
        let results = json!([{ "Index": 0, "Input": 1, "Output": 2 }, { "Index": 1, "Error": "E", "Cause": "c" }]);
        let input = json!({ "Bucket": "b", "Folder": "out/e/1", "MapRunArn": "arn:1", "WriterConfig": {}, "Results": results });
        let writes = start("kv:set", Purpose::Write, input);
        let output = carry_out(space, &writes).await.map_err(Unread::into_failure).unwrap();
        assert_eq!(output["ResultWriterDetails"], json!({ "Bucket": "b", "Key": "out/e/1/manifest.json" }));
        let kept = items(space, "kv:scan", json!({ "Prefix": "out/" }), json!({})).await.unwrap();
        let keys: Vec<_> = kept.as_array().unwrap().iter().map(|item| item["Key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["out/e/1/FAILED_0.json", "out/e/1/SUCCEEDED_0.json", "out/e/1/manifest.json"]);
        assert_eq!(kept[1]["Value"][0]["Output"], "2");
        let large: Vec<_> = (0..9).map(|index| json!({ "Index": index, "Output": "y".repeat(600_000) })).collect();
        let input = json!({ "Bucket": "b", "Folder": "large", "MapRunArn": "arn:1", "WriterConfig": {}, "Results": large });
        let failure = carry_out(space, &start("kv:set", Purpose::Write, input)).await.map_err(Unread::into_failure).unwrap_err();
        assert_eq!(failure.error.as_deref(), Some("KeyValue.TooLarge"));
        assert_eq!(items(space, "kv:list", json!({ "Prefix": "large" }), json!({})).await, Ok(json!([])), "nothing of it");
    });
}
