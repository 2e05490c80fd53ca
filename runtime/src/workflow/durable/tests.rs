//! Durable executions on a real store, whose disk a crash can be played to, with functions that are played, too.

mod ahead;
mod calls;
mod crashes;
mod datasets;
mod hot;
mod life;
mod moves;
mod outbox;
mod pins;
mod queues;
mod quota;
mod servers;
mod steer;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::StatusCode;
use serde_json::json;
use sledge_workflow::definition::Definition;
use tokio::runtime::{Builder, LocalOptions};

use super::*;
use crate::config::{FunctionConfig, WorkflowConfig};
use crate::invoke::by_hand;
use crate::invoke::function::{Function, Home, Neighbours};
use crate::invoke::urgency::Root;
use crate::kv::embedded::tests::disk::Disk;
use crate::kv::embedded::tests::open_folding;
use crate::kv::{BucketKey, BucketName, Change, Commit};
use crate::outcome::Failure;
use crate::reply::{self, Content, Record, Reply, ReplyHead};
use crate::speculate::depth::Load;
use crate::txn::Transaction;
use crate::workflow::{Call, Workflows};

const TENANT: &str = "t";
/// No test waits longer.
const TIME_MAX: Duration = Duration::from_secs(60);

fn bucket() -> BucketName {
    BucketName::new(b"b").unwrap()
}

fn key(name: &str) -> BucketKey {
    bucket().key(name.as_bytes()).unwrap()
}

/// What the store holds under a key. On a thread of its own: connections to Redis belong to a thread and its runtime.
fn stored(space: &Space, name: &str) -> Option<crate::kv::Entry> {
    match space {
        Space::Embedded(space) => space.get(&bucket(), name.as_bytes(), |entry| entry.cloned()).unwrap(),
        Space::Redis(_) => thread::scope(|scope| {
            let read = || {
                let deadline = Instant::now() + TIME_MAX;
                loop {
                    match wait(space.read(&bucket(), key(name))) {
                        // The answer was lost.
                        Err(KvError::Unavailable(_)) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                        read => return read.unwrap(),
                    }
                }
            };
            scope.spawn(read).join().unwrap()
        }),
    }
}

/// Functions that run at once, within their task's transaction.
#[derive(Clone)]
struct Played {
    space: Space,
    runs: Arc<AtomicU64>,
    room: Arc<Room>,
}

/// Whether there is room for calls, and how many were refused.
#[derive(Default)]
struct Room {
    is_full: AtomicBool,
    refused: AtomicU64,
    /// Functions take up to so many milliseconds, by chance; at once if it is 0.
    slow_ms: AtomicU64,
    /// What functions were called with, and have answered.
    calls: Mutex<Vec<(Value, Value)>>,
}

impl Played {
    /// What a key holds, as the call sees it.
    fn number(&self, transaction: &Transaction, name: &str) -> i64 {
        let key = key(name);
        let of_store = || stored(&self.space, name);
        let entry = match transaction.read(&key).unwrap() {
            Some(known) => known,
            None => transaction.learn(&key, of_store()).unwrap(),
        };
        entry.map_or(0, |entry| String::from_utf8(entry.value.to_vec()).unwrap().parse().unwrap())
    }

    fn run(&self, function: &Function, input: &Value, transaction: &Transaction) -> Result<(u16, Value), Failure> {
        let text = |key: &str| input[key].as_str().unwrap_or_default();
        let change = |name: &str, change| transaction.make(&Commit::new(Vec::new(), vec![(key(name), change)])).unwrap();
        match text("do") {
            "add" => drop(change(text("key"), Change::Add(input["by"].as_i64().unwrap_or(1)))),
            "bump" => {
                let saw = self.number(transaction, text("key"));
                change(text("key"), Change::Put(Bytes::from((saw + 1).to_string())));
            }
            "flaky" => {
                let before = self.number(transaction, text("key"));
                change(text("key"), Change::Put(Bytes::from((before + 1).to_string())));
                if before < input["times"].as_i64().unwrap_or(1) {
                    return Ok((500, json!({ "errorType": "Flaky" })));
                }
            }
            "link" => {
                let linked = (self.number(transaction, text("from")) * 3 + 1) % 1_000;
                change(text("to"), Change::Put(Bytes::from(linked.to_string())));
                if !text("shared").is_empty() {
                    let shared = self.number(transaction, text("shared"));
                    change(text("shared"), Change::Put(Bytes::from((shared + 1).to_string())));
                }
                let output = json!({ "n": linked, "big": linked % 2 == 0, "of": input["n"] });
                self.room.calls.lock().unwrap().push((input.clone(), output.clone()));
                return Ok((200, output));
            }
            "which" => return Ok((200, json!(function.digest.map(|digest| digest.to_hex().to_string())))),
            "trap" => {
                change(text("key"), Change::Add(1_000_000));
                return Err(Failure::Exit(1));
            }
            _ => {}
        }
        Ok((200, input.clone()))
    }

    fn answer(&self, function: &Function, input: &Value, transaction: &Transaction) -> Reply {
        self.reply(self.run(function, input, transaction), transaction)
    }

    fn reply(&self, replied: Result<(u16, Value), Failure>, transaction: &Transaction) -> Reply {
        transaction.settle(replied.is_ok(), Some(&self.space));
        let head = |status| ReplyHead { status: StatusCode::from_u16(status).unwrap(), ..ReplyHead::default() };
        let (result, head) = match replied {
            Ok((status, output)) => (Ok(Content::Whole(output.to_string().into())), Some(Box::new(head(status)))),
            Err(failure) => (Err(failure), None),
        };
        let zero = Duration::ZERO;
        Reply { result, head, trailers: None, queued: zero, ran: zero, record: Record::default() }
    }
}

impl Runner for Played {
    fn root(&self) -> Root {
        Root::default()
    }

    fn load(&self) -> Load {
        Load { percent: 0, waiting: 0, workers: 1 }
    }

    fn begin(&self, call: Call<'_>) -> Result<reply::Answer, Failure> {
        let Call { function, input, joins, .. } = call;
        if self.room.is_full.load(Ordering::Relaxed) {
            self.room.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Failure::Busy);
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        let transaction = Transaction::of_call(&joins.expect("a task's transaction"));
        let input: Value = serde_json::from_slice(&input.body.into_bytes()).unwrap();
        let slow_ms = self.room.slow_ms.load(Ordering::Relaxed);
        if slow_ms == 0 {
            return Ok(self.answer(function, &input, &transaction).into());
        }
        let (own, function) = (self.clone(), Arc::clone(function));
        let [before, behind] = [(); 2].map(|()| Duration::from_millis(fastrand::u64(..=slow_ms)));
        Ok(reply::Answer::later(async move {
            tokio::time::sleep(before).await;
            let replied = own.run(&function, &input, &transaction);
            tokio::time::sleep(behind).await;
            Ok(own.reply(replied, &transaction))
        }))
    }

    fn send(&self, _: &Arc<Function>, _: Bytes) -> Result<(), Failure> {
        Ok(())
    }

    fn ended(&self, _: &Function, _: Option<&Failure>) {}
}

/// A server's executions, on a thread of their own.
struct Served {
    store: Arc<Store>,
    executions: Executions,
    workflows: HashMap<String, Arc<Workflow>>,
    neighbours: Arc<Neighbours>,
    /// The functions that are served.
    functions: Mutex<HashMap<String, Arc<Function>>>,
    runs: Arc<AtomicU64>,
    room: Arc<Room>,
    stop: watch::Sender<bool>,
    kill: Option<oneshot::Sender<()>>,
    freeze: mpsc::UnboundedSender<Duration>,
    thread: Option<JoinHandle<()>>,
}

/// The function that tasks call; what it does is up to [`Played`].
fn played() -> Arc<Function> {
    Arc::new(Function::new(by_hand::loaded(&FunctionConfig::new("f", "f.wasm")), Home::alone()))
}

fn workflow_config(name: &str, settings: &Value) -> WorkflowConfig {
    let mut config = json!({ "name": name, "path": "none.json", "tenant": TENANT, "type": "standard" });
    for (key, value) in settings.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    serde_json::from_value(config).unwrap()
}

impl Served {
    /// Serves these workflows with what is on the disk.
    fn start(disk: &Disk, workflows: &[(&str, Value)]) -> Served {
        Served::start_with(disk, workflows, &json!({}))
    }

    fn start_with(disk: &Disk, workflows: &[(&str, Value)], settings: &Value) -> Served {
        Served::start_pinned(disk, workflows, settings, (&[played()], None))
    }

    /// The same with these functions, and what keeps versions of them.
    fn start_pinned(
        disk: &Disk,
        workflows: &[(&str, Value)],
        settings: &Value,
        (functions, keeper): (&[Arc<Function>], Option<Arc<dyn Keeper>>),
    ) -> Served {
        let store = Store::Embedded(open_folding(disk, &Arc::default()));
        let executions = Executions::of(&store);
        Served::of((store, executions), workflows, settings, (functions, keeper))
    }

    fn of(
        (store, executions): (Store, Executions),
        workflows: &[(&str, Value)],
        settings: &Value,
        (functions, keeper): (&[Arc<Function>], Option<Arc<dyn Keeper>>),
    ) -> Served {
        let store = Arc::new(store);
        let (known, neighbours) = (Arc::new(Workflows::default()), Arc::new(Neighbours::default()));
        keeper.into_iter().for_each(|keeper| executions.pin_with(keeper));
        functions.iter().for_each(|function| neighbours.put(function));
        let functions = functions.iter().map(|function| (function.name().to_owned(), Arc::clone(function))).collect();
        let reach = Reach {
            speculation: crate::speculate::Speculation::new([0; 32], None),
            stories: crate::workflow::Stories::new(None),
            functions: Arc::clone(&neighbours),
            workflows: Arc::clone(&known),
            kv: Some(store.space(TENANT)),
            contention: Arc::default(),
            roots: Arc::default(),
            executions: Some(executions.clone()),
        };
        executions.know(TENANT, &reach);
        let workflows = workflows.iter().map(|(name, definition)| {
            let definition = Definition::parse(&definition.to_string()).map_err(|mistakes| format!("{mistakes:?}"));
            let workflow = Arc::new(Workflow::new(workflow_config(name, settings), definition, reach.clone()));
            assert_eq!(workflow.problem(), None);
            workflow.register();
            ((*name).to_owned(), workflow)
        });
        let workflows = workflows.collect();
        let runs = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = watch::channel(false);
        let (kill, killed) = oneshot::channel::<()>();
        let (freeze, mut freezes) = mpsc::unbounded_channel::<Duration>();
        let room = Arc::new(Room::default());
        let runner = Played { space: store.space(TENANT), runs: Arc::clone(&runs), room: Arc::clone(&room) };
        let own = executions.clone();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
            runtime.block_on(async {
                // Its thread does nothing else meanwhile, like that of a process that is stopped.
                tokio::task::spawn_local(async move {
                    while let Some(time) = freezes.recv().await {
                        thread::sleep(time);
                    }
                });
                tokio::select! {
                    () = own.run(runner, 8, stopped) => {}
                    _ = killed => {}
                }
            });
        });
        let (kill, thread) = (Some(kill), Some(thread));
        let functions = Mutex::new(functions);
        Served { store, executions, workflows, neighbours, functions, runs, room, stop, kill, freeze, thread }
    }

    /// Serves a function in place of the one of its name.
    fn replace(&self, function: &Arc<Function>) {
        self.neighbours.put(function);
        self.functions.lock().unwrap().insert(function.name().to_owned(), Arc::clone(function));
    }

    /// Serves another definition under the name of a workflow.
    fn redefine(&mut self, name: &str, definition: &Value) {
        let before = &self.workflows[name];
        let definition = Definition::parse(&definition.to_string()).map_err(|mistakes| format!("{mistakes:?}"));
        let workflow = Arc::new(Workflow::new(before.config.clone(), definition, before.reach.clone()));
        assert_eq!(workflow.problem(), None);
        workflow.register();
        self.workflows.insert(name.to_owned(), workflow);
    }

    /// Ends it as SIGKILL does.
    fn kill(mut self) {
        drop(self.kill.take());
        self.thread.take().unwrap().join().unwrap();
    }

    /// Ends it as SIGTERM does.
    fn stop(mut self) {
        self.stop.send(true).unwrap();
        self.thread.take().unwrap().join().unwrap();
    }

    fn begin(&self, workflow: &str, name: &str, input: Value) -> Result<Started, Refused> {
        wait(self.executions.start(&self.workflows[workflow], Some(name.to_owned()), input))
    }

    fn place(&self, workflow: &str, name: &str) -> Place {
        self.workflows[workflow].place(name)
    }

    /// What an execution is when it has ended.
    fn end_of(&self, workflow: &str, name: &str) -> Summary {
        wait(self.executions.wait(self.place(workflow, name))).unwrap()
    }

    fn summary(&self, workflow: &str, name: &str) -> Option<Summary> {
        self.executions.0.journal.summary(&self.place(workflow, name)).unwrap()
    }

    /// What a key holds.
    fn number(&self, name: &str) -> i64 {
        let text = |entry: crate::kv::Entry| String::from_utf8(entry.value.to_vec()).unwrap().parse().unwrap();
        stored(&self.store.space(TENANT), name).map_or(0, text)
    }

    /// The names of the events of an execution, in order.
    fn events(&self, workflow: &str, name: &str) -> Vec<String> {
        let id = self.summary(workflow, name).unwrap().id;
        let events = self.executions.0.journal.history(id, crate::kv::Order::Rising, None, 1_000).unwrap();
        let name = |event: &str| serde_json::from_str::<Value>(event).unwrap()["type"].as_str().unwrap().to_owned();
        events.events.iter().map(|event| name(event.get())).collect()
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(TIME_MAX, future).await.expect("it takes too long") })
}

/// A task that calls the played function with that input.
fn call(input: &Value, next: Option<&str>) -> Value {
    let mut state = json!({ "Type": "Task", "Resource": "fn:f", "Parameters": input, "ResultPath": null });
    match next {
        Some(next) => state["Next"] = json!(next),
        None => state["End"] = json!(true),
    }
    state
}

fn machine(first: &str, states: &Value) -> Value {
    json!({ "StartAt": first, "States": states })
}

fn add(name: &str) -> Value {
    json!({ "do": "add", "key": name })
}
