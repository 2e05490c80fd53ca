//! What an invocation that is watched is known to have done; and that a guard ends it before a host call.

use hyper::{HeaderMap, Method, Uri};
use sledge::config::{Config, DirConfig, DirWrite, FunctionConfig};
use sledge::host::{
    Body, Context, Effect, EffectTrace, HeadField, LogLines, Objection, ReplyBytes, RequestHead, Streams, Waiter, Watch, Writer,
};
use sledge::invoke::alone;
use sledge::invoke::driver::Driver;
use sledge::invoke::function::{Function, Home};
use sledge::kv::{BucketKey, BucketName, KV_MEMORY, KvLimits, Store};
use sledge::load;
use sledge::outcome::Failure;
use sledge_sandbox::WorkerThread;
use sledge_tests::programs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Runs a function on lines of input; how it ended, what it replied, and what watched it.
fn watched(file: &str, lines: &str, watch: Watch) -> (Result<(), Failure>, String, Watch) {
    let mut config = FunctionConfig::new("f", programs::function(file));
    config.args = vec!["bucket".to_owned()];
    watched_function(&config, lines, watch)
}

/// The same of a function that is configured so.
fn watched_function(config: &FunctionConfig, lines: &str, watch: Watch) -> (Result<(), Failure>, String, Watch) {
    let loaded = load::function(config, &load::compiler(&Config::default())).expect("a function");
    let store = Store::open(Path::new(KV_MEMORY), KvLimits::default(), &Arc::default(), String::new).expect("a store");
    let function = Function::new(loaded, Home { kv: Some(store.space("tenant")), ..Home::alone() });
    let log = LogLines::new(Arc::clone(&function.process), Arc::clone(&function.log), Writer::default());
    let input = Body::from(bytes::Bytes::from(lines.to_owned()));
    let streams = Streams::of_request(input, ReplyBytes::default(), 1 << 20, log);
    let mut headers = HeaderMap::new();
    headers.insert("x-one", "1".parse().expect("a value"));
    let head = RequestHead { method: Method::PUT, target: Uri::from_static("/f?a=b"), headers, is_secure: false };
    let context = Context::new(Arc::clone(&function.process), streams).with_head(Some(Box::new(head))).watched(watch);
    // A worker's timer and signals are its thread's.
    let run = move || {
        let worker = WorkerThread::enter(Duration::from_millis(5)).expect("a worker");
        worker.arm();
        let mut driver = Driver::new(Box::new(function.template.instantiate().expect("a sandbox")), context);
        let result =
            alone::run(&mut driver, &function.program, Some(Instant::now() + Duration::from_secs(20)), Waiter::default());
        let watch = driver.take_watch().expect("what watches it");
        let reply = String::from_utf8(driver.finish().reply.to_vec()).expect("text");
        (result, reply, *watch)
    };
    thread::spawn(run).join().expect("no panic")
}

fn key(name: &str) -> BucketKey {
    BucketName::new(b"bucket").and_then(|bucket| bucket.key(name.as_bytes()).ok()).expect("a key")
}

fn effects(trace: &EffectTrace) -> Vec<Effect> {
    let all = [
        Effect::Safe,
        Effect::Stream,
        Effect::Head,
        Effect::Entropy,
        Effect::Log,
        Effect::KvRead,
        Effect::KvWrite,
        Effect::Call,
        Effect::Reply,
        Effect::Scratch,
        Effect::External,
    ];
    all.into_iter().filter(|effect| trace.effects.contains(*effect)).collect()
}

#[test]
fn what_was_read_of_a_store_is_known_with_its_version_and_what_was_written() {
    let lines =
        "get a\nset a 1\nset b 2\nget a\nexists b\nvalues b none\nswap a 1 x\nswap a 7 y\nlist pre 100\nadd n 5\ndelete b\n";
    let (result, reply, watch) = watched("kv.c", lines, Watch::default());
    assert_eq!(result, Ok(()), "{reply}");
    let trace = watch.trace;
    // A swap that was made has read the version that it expected; of one that was not, nothing is known but that.
    let read = [("a", 0), ("a", 1), ("b", 2), ("b", 2), ("none", 0), ("a", 1)];
    assert_eq!(trace.read, read.map(|(name, version)| (key(name), version)), "{reply}");
    assert_eq!(trace.written, ["a", "b", "a", "n", "b"].map(key));
    assert_eq!(trace.listed, [(BucketName::new(b"bucket").expect("a name"), Box::from(*b"pre"))]);
    let known = effects(&trace);
    assert!([Effect::Stream, Effect::KvRead, Effect::KvWrite].iter().all(|effect| known.contains(effect)), "{known:?}");
    assert!(![Effect::Head, Effect::Entropy, Effect::Call].iter().any(|effect| known.contains(effect)), "{known:?}");
}

#[test]
fn what_was_read_of_a_head_is_known() {
    let (result, reply, watch) = watched("head.c", "method\nheader x-one\nheader x-none\nstatus 201\n", Watch::default());
    assert_eq!((result, &*reply), (Ok(()), "PUT\n1\nerror 44\n0\n"));
    let fields = [HeadField::Method, HeadField::Header("x-none".to_owned()), HeadField::Header("x-one".to_owned())];
    assert_eq!(watch.trace.head.into_iter().collect::<Vec<_>>(), fields);
}

#[test]
fn a_guard_ends_an_invocation_before_the_call() {
    let why = "writes what others read";
    let guard =
        Watch::guarded(Box::new(move |_, effect, _| (effect == Effect::KvWrite).then_some(Objection { why, acceptable: false })));
    let (result, _, watch) = watched("kv.c", "get a\nset a 1\nget a\n", guard);
    assert_eq!(result, Err(Failure::Internal));
    assert_eq!(watch.objection, Some(("set", Objection { why, acceptable: false })));
    assert_eq!((watch.trace.read, watch.trace.written), (vec![(key("a"), 0)], Vec::new()));
    assert!(!watch.trace.effects.contains(Effect::KvWrite));
}

/// The same calls of the same functions have another effect where they work on private copies: nothing is left of them. One that reaches a folder of another kind does not.
#[test]
fn private_copies_of_files_are_nothing_outside() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept");
    std::fs::write(&kept, "kept").expect("a file");
    let core = Path::new("wasi/programs/scratch.c");
    let component = {
        let file = |name: &str| programs::folder().join(name);
        let (wasm, component, artifact) =
            (file("effects-core.wasm"), file("effects-component.wasm"), file("effects-component.so"));
        let source = programs::tests_folder().join(core);
        let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        for arguments in [
            ["compile", "--emit", "wasm", &text(&source), "-o", &text(&wasm)].as_slice(),
            &["componentize", &text(&wasm), "-o", &text(&component)],
            &["compile", &text(&component), "-o", &text(&artifact)],
        ] {
            let done = programs::run_awsm(arguments);
            assert_eq!(done.code(), 0, "{}", done.stderr);
        }
        artifact
    };
    let why = "changes what others see";
    let guard = || {
        Watch::guarded(Box::new(move |_, effect, _| (effect == Effect::External).then_some(Objection { why, acceptable: false })))
    };
    let lines = "get kept\nover kept K\nsymlink link kept\nget link\nlist .\nset new text\nrename new kept\nremove link\n";
    for path in [programs::compiled(core, &[]), component] {
        let run = |write: DirWrite| {
            let mut config = FunctionConfig::new("f", &path);
            config.dirs = vec![DirConfig { host: folder.path().to_owned(), guest: "/w".to_owned(), write, within: None }];
            watched_function(&config, lines, guard())
        };
        let (result, reply, watch) = run(DirWrite::Scratch);
        assert_eq!(result, Ok(()), "{reply}");
        assert_eq!(reply, "kept\nkept -> Kept\nok\nKept\nkept link \n -> text\nok\nok\n");
        assert!(watch.trace.effects.contains(Effect::Scratch) && !watch.trace.effects.contains(Effect::External));
        let (result, _, watch) = run(DirWrite::Yes);
        assert_eq!(result, Err(Failure::Internal));
        assert_eq!(watch.objection.map(|(_, objection)| objection), Some(Objection { why, acceptable: false }));
        assert!(!watch.trace.effects.contains(Effect::Scratch));
        assert_eq!(std::fs::read(&kept).expect("a file"), b"kept");
    }
}
