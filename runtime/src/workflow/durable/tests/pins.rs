//! Executions call the versions of functions with which they began.

use std::collections::HashSet;
use std::sync::Mutex;

use blake3::Hash;

use super::*;
use crate::kv::redis::tests::played::OwnServer;
use crate::workflow::keeper::NotKept;

fn digest(version: &str) -> Hash {
    blake3::hash(version.as_bytes())
}

/// A version of a function.
fn function(name: &str, version: &str) -> Arc<Function> {
    let home = Home { digest: Some(digest(version)), ..Home::alone() };
    Arc::new(Function::new(by_hand::loaded(&FunctionConfig::new(name, "f.wasm")), home))
}

/// A disk for files of functions that outlives servers: what is there, and whether there is room for more.
#[derive(Debug, Default)]
struct Shelf {
    files: Mutex<HashMap<Hash, Arc<Function>>>,
    max: Mutex<Option<usize>>,
    keeps: AtomicU64,
}

impl Shelf {
    fn digests(&self) -> HashSet<Hash> {
        self.files.lock().unwrap().keys().copied().collect()
    }

    fn lose(&self, version: &str) -> Option<Arc<Function>> {
        self.files.lock().unwrap().remove(&digest(version))
    }

    fn wait_for(&self, versions: &[&str]) {
        let wanted: HashSet<Hash> = versions.iter().map(|version| digest(version)).collect();
        let begun = Instant::now();
        while self.digests() != wanted {
            assert!(begun.elapsed() < TIME_MAX, "{:?} are kept, not {versions:?}", self.digests());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Keeper for Shelf {
    fn keep(&self, function: &Arc<Function>) -> Result<(), NotKept> {
        self.keeps.fetch_add(1, Ordering::Relaxed);
        let mut files = self.files.lock().unwrap();
        if self.max.lock().unwrap().is_some_and(|max| files.len() >= max) {
            return Err(NotKept::Full("the shelf is full".to_owned()));
        }
        files.insert(function.digest.unwrap(), Arc::clone(function));
        Ok(())
    }

    fn has(&self, digest: &Hash) -> bool {
        self.files.lock().unwrap().contains_key(digest)
    }

    fn load(&self, tenant: &str, name: &str, digest: &Hash) -> Result<Arc<Function>, String> {
        assert_eq!(tenant, TENANT);
        let found = self.files.lock().unwrap().get(digest).cloned();
        found.filter(|function| function.name() == name).ok_or_else(|| "it is not on the shelf".to_owned())
    }

    fn sweep(&self, needed: &HashSet<Hash>, _: bool) {
        self.files.lock().unwrap().retain(|digest, _| needed.contains(digest));
    }

    fn unload(&self, _: &HashSet<Hash>) {}
}

fn which(name: &str, next: Option<&str>) -> Value {
    let mut state = json!({ "Type": "Task", "Resource": format!("fn:{name}"), "Parameters": { "do": "which" }, "ResultPath": format!("$.{name}") });
    match next {
        Some(next) => state["Next"] = json!(next),
        None => state["End"] = json!(true),
    }
    state
}

/// Calls a function that its input names.
fn dynamic(next: Option<&str>) -> Value {
    let parameters = json!({ "FunctionName.$": "$.name", "Payload": { "do": "which" } });
    let mut state = json!({ "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": parameters, "ResultPath": "$.dynamic" });
    match next {
        Some(next) => state["Next"] = json!(next),
        None => state["End"] = json!(true),
    }
    state
}

/// Waits for the token of a callback, which the function never gives.
fn waits(next: &str) -> Value {
    json!({ "Type": "Wait", "SecondsPath": "$.wait", "Next": next })
}

fn two_tasks() -> Vec<(&'static str, Value)> {
    let states = json!({ "F": which("f", Some("W")), "W": waits("F2"), "F2": which("f", Some("G")), "G": which("g", None) });
    let mut states = states;
    states["F2"]["ResultPath"] = json!("$.again");
    vec![("two", machine("F", &states))]
}

fn hex(version: &str) -> Value {
    json!(digest(version).to_hex().as_str())
}

fn serve(disk: &Disk, shelf: &Arc<Shelf>, workflows: &[(&str, Value)], versions: &[(&str, &str)]) -> Served {
    let functions: Vec<_> = versions.iter().map(|(name, version)| function(name, version)).collect();
    let keeper: Arc<dyn Keeper> = Arc::clone(shelf) as _;
    Served::start_pinned(disk, workflows, &json!({}), (&functions, Some(keeper)))
}

impl Served {
    fn pinned(&self, workflow: &str, name: &str) -> Vec<(String, Hash, bool)> {
        let summary = self.summary(workflow, name).unwrap();
        let pinned = wait(self.executions.pinned(&self.place(workflow, name), &summary)).unwrap();
        pinned.into_iter().map(|pinned| (pinned.function.to_string(), pinned.digest, pinned.is_served)).collect()
    }

    fn output(&self, workflow: &str, name: &str) -> Value {
        let ended = self.end_of(workflow, name);
        assert_eq!(ended.status, Status::Succeeded, "{ended:?}");
        Arc::unwrap_or_clone(ended.output.unwrap())
    }

    fn wait_for_event(&self, workflow: &str, name: &str, event: &str) {
        let begun = Instant::now();
        while !self.events(workflow, name).iter().any(|known| known == event) {
            assert!(begun.elapsed() < TIME_MAX, "{name} never comes to {event}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn an_execution_calls_the_versions_with_which_it_began() {
    let shelf = Arc::new(Shelf::default());
    let served = serve(&Disk::default(), &shelf, &two_tasks(), &[("f", "f1"), ("g", "g1")]);
    served.begin("two", "old", json!({ "wait": 3 })).unwrap();
    served.wait_for_event("two", "old", "WaitStateEntered");
    served.replace(&function("f", "f2"));
    served.replace(&function("g", "g2"));
    served.begin("two", "new", json!({ "wait": 0 })).unwrap();
    let pinned = served.pinned("two", "old");
    assert_eq!(pinned, [("f".to_owned(), digest("f1"), false), ("g".to_owned(), digest("g1"), false)]);
    let new = served.output("two", "new");
    assert_eq!((&new["f"], &new["again"], &new["g"]), (&hex("f2"), &hex("f2"), &hex("g2")));
    let old = served.output("two", "old");
    assert_eq!((&old["f"], &old["again"], &old["g"]), (&hex("f1"), &hex("f1"), &hex("g1")));
    // All versions are copied once, however many executions have them.
    for number in 0..20 {
        served.begin("two", &format!("e{number}"), json!({ "wait": 0 })).unwrap();
        served.output("two", &format!("e{number}"));
    }
    assert_eq!(shelf.keeps.load(Ordering::Relaxed), 4);
    served.stop();
}

#[test]
fn pins_outlive_restarts_and_kills_and_what_no_execution_needs_is_removed() {
    let (disk, shelf) = (Disk::default(), Arc::new(Shelf::default()));
    let served = serve(&disk, &shelf, &two_tasks(), &[("f", "f1"), ("g", "g1")]);
    served.begin("two", "old", json!({ "wait": 5 })).unwrap();
    served.begin("two", "short", json!({ "wait": 0 })).unwrap();
    served.output("two", "short");
    served.wait_for_event("two", "old", "WaitStateEntered");
    served.kill();
    let disk = disk.crashed(&mut 3);
    shelf.files.lock().unwrap().insert(digest("else"), function("f", "else"));
    let served = serve(&disk, &shelf, &two_tasks(), &[("f", "f2"), ("g", "g2")]);
    // At the start goes what no execution needs.
    shelf.wait_for(&["f1", "g1"]);
    served.begin("two", "new", json!({ "wait": 0 })).unwrap();
    assert_eq!(served.output("two", "new")["f"], hex("f2"));
    let old = served.output("two", "old");
    assert_eq!((&old["again"], &old["g"]), (&hex("f1"), &hex("g1")));
    served.stop();
    let served = serve(&disk, &shelf, &two_tasks(), &[("f", "f2"), ("g", "g2")]);
    shelf.wait_for(&[]);
    let journal = &served.executions.0.journal;
    let begun = Instant::now();
    while !journal.sets().unwrap().is_empty() {
        assert!(begun.elapsed() < TIME_MAX, "sets to which nothing is pinned are in the journal");
    }
    served.stop();
}

#[test]
fn a_task_waits_for_a_version_that_is_missing_until_it_is_there_or_the_execution_is_moved() {
    let (disk, shelf) = (Disk::default(), Arc::new(Shelf::default()));
    let served = serve(&disk, &shelf, &two_tasks(), &[("f", "f1"), ("g", "g1")]);
    for name in ["found", "moved"] {
        served.begin("two", name, json!({ "wait": 2 })).unwrap();
        served.wait_for_event("two", name, "WaitStateEntered");
    }
    served.replace(&function("f", "f2"));
    let lost = shelf.lose("f1").unwrap();
    for name in ["found", "moved"] {
        served.wait_for_event("two", name, "WaitStateExited");
    }
    thread::sleep(Duration::from_millis(300));
    assert_eq!(served.events("two", "found").last().unwrap(), "LambdaFunctionScheduled", "no other version is called");
    let moved = wait(served.executions.repin(served.place("two", "moved"), false)).unwrap();
    // It goes on at once, and may have ended by now.
    assert!(matches!(moved.status, Status::Running | Status::Succeeded), "{:?}", moved.status);
    let output = served.output("two", "moved");
    assert_eq!((&output["f"], &output["again"], &output["g"]), (&hex("f1"), &hex("f2"), &hex("g1")));
    shelf.files.lock().unwrap().insert(digest("f1"), lost);
    let output = served.output("two", "found");
    assert_eq!((&output["f"], &output["again"]), (&hex("f1"), &hex("f1")));
    // What has ended is not moved.
    for name in ["found", "none"] {
        let refused = wait(served.executions.repin(served.place("two", name), false)).unwrap_err();
        assert!(matches!(refused, Refused::NotRepinnable(_) | Refused::NoExecution), "{refused:?}");
    }
    served.stop();
}

/// Also one that is only in the journal, and for good.
#[test]
fn an_execution_that_was_moved_stays_so() {
    let (disk, shelf) = (Disk::default(), Arc::new(Shelf::default()));
    let served = serve(&disk, &shelf, &two_tasks(), &[("f", "f1"), ("g", "g1")]);
    served.begin("two", "one", json!({ "wait": 6 })).unwrap();
    served.wait_for_event("two", "one", "WaitStateEntered");
    served.replace(&function("f", "f2"));
    wait(served.executions.repin(served.place("two", "one"), false)).unwrap();
    assert_eq!(served.pinned("two", "one")[0], ("f".to_owned(), digest("f2"), true));
    served.kill();
    let disk = disk.crashed(&mut 11);
    let served = serve(&disk, &shelf, &two_tasks(), &[("f", "f3"), ("g", "g1")]);
    shelf.wait_for(&["f2", "g1"]);
    let output = served.output("two", "one");
    assert_eq!((&output["f"], &output["again"], &output["g"]), (&hex("f1"), &hex("f2"), &hex("g1")));
    served.stop();
}

#[test]
fn a_function_that_only_the_input_names_is_pinned_when_it_is_called_first() {
    let (disk, shelf) = (Disk::default(), Arc::new(Shelf::default()));
    let mut again = dynamic(None);
    again["ResultPath"] = json!("$.again");
    let workflows = [("dynamic", machine("D", &json!({ "D": dynamic(Some("W")), "W": waits("D2"), "D2": again })))];
    let served = serve(&disk, &shelf, &workflows, &[("f", "f1"), ("g", "g1")]);
    served.begin("dynamic", "one", json!({ "name": "f", "wait": 4 })).unwrap();
    served.wait_for_event("dynamic", "one", "WaitStateEntered");
    assert_eq!(served.pinned("dynamic", "one"), [("f".to_owned(), digest("f1"), true)]);
    served.kill();
    let disk = disk.crashed(&mut 5);
    let served = serve(&disk, &shelf, &workflows, &[("f", "f2"), ("g", "g1")]);
    let output = served.output("dynamic", "one");
    assert_eq!((&output["dynamic"]["Payload"], &output["again"]["Payload"]), (&hex("f1"), &hex("f1")));
    served.stop();
}

#[test]
fn calls_of_functions_by_themselves_and_inner_executions_are_pinned_when_they_begin() {
    let shelf = Arc::new(Shelf::default());
    let outer = json!({ "W": waits("Inner"), "Inner": { "Type": "Task", "Resource": "workflow:two", "ResultPath": "$.inner", "Next": "F" }, "F": which("f", None) });
    let mut workflows = two_tasks();
    workflows.push(("outer", machine("W", &outer)));
    let served = serve(&Disk::default(), &shelf, &workflows, &[("f", "f1"), ("g", "g1")]);
    served.begin("outer", "one", json!({ "wait": 1 })).unwrap();
    served.replace(&function("f", "f2"));
    let output = served.output("outer", "one");
    assert_eq!((&output["inner"]["f"], &output["f"]), (&hex("f2"), &hex("f1")));
    let alone = served.executions.workflow(TENANT, "fn:g").unwrap();
    let Started { place, summary } = wait(served.executions.start(&alone, None, json!({ "do": "which" }))).unwrap();
    assert_eq!(summary.pins.len(), 1);
    assert_eq!(wait(served.executions.wait(place)).unwrap().output.as_deref(), Some(&hex("g1")));
    served.stop();
}

/// What was kept may be gone when an execution is redriven, since it had ended.
#[test]
fn a_redriven_execution_keeps_its_pins_as_long_as_they_are_there() {
    let shelf = Arc::new(Shelf::default());
    let fails = json!({ "F": which("f", Some("No")), "No": { "Type": "Choice", "Choices": [{ "Variable": "$.f", "StringEquals": "none", "Next": "Again" }], "Default": "Trap" },
        "Trap": { "Type": "Task", "Resource": "fn:g", "Parameters": { "do": "flaky", "key": "tries" }, "ResultPath": null, "Next": "Again" }, "Again": which("f", None) });
    let served = serve(&Disk::default(), &shelf, &[("fails", machine("F", &fails))], &[("f", "f1"), ("g", "g1")]);
    let output = |name: &str| {
        served.begin("fails", name, json!({})).unwrap();
        assert_eq!(served.end_of("fails", name).status, Status::Failed);
        // The function fails the first time only.
        let key = key("tries");
        let reset = Commit::new(Vec::new(), vec![(key, Change::Put(Bytes::from("1")))]);
        wait(served.store.space(TENANT).commit(reset)).unwrap();
        served.replace(&function("f", "f2"));
        if name == "gone" {
            shelf.lose("f1").unwrap();
        }
        wait(served.executions.redrive(served.place("fails", name))).unwrap();
        let output = served.output("fails", name);
        // As it was, for the next one.
        served.replace(&function("f", "f1"));
        let reset = Commit::new(Vec::new(), vec![(bucket().key(b"tries").unwrap(), Change::Put(Bytes::from("0")))]);
        wait(served.store.space(TENANT).commit(reset)).unwrap();
        output["f"].clone()
    };
    assert_eq!(output("kept"), hex("f1"));
    assert_eq!(output("gone"), hex("f2"));
    served.stop();
}

#[test]
fn without_room_executions_begin_all_the_same_and_are_not_pinned() {
    let shelf = Arc::new(Shelf::default());
    *shelf.max.lock().unwrap() = Some(1);
    let served = serve(&Disk::default(), &shelf, &two_tasks(), &[("f", "f1"), ("g", "g1")]);
    served.begin("two", "one", json!({ "wait": 3 })).unwrap();
    served.wait_for_event("two", "one", "WaitStateEntered");
    assert_eq!(served.pinned("two", "one"), [("f".to_owned(), digest("f1"), true)]);
    served.replace(&function("f", "f2"));
    served.replace(&function("g", "g2"));
    // One that makes room where it can: not of what another needs that is only in the journal.
    served.begin("two", "other", json!({ "wait": 0 })).unwrap();
    assert_eq!(served.output("two", "other")["f"], hex("f2"));
    let output = served.output("two", "one");
    assert_eq!((&output["again"], &output["g"]), (&hex("f1"), &hex("g2")));
    // What no execution needs makes room.
    *shelf.max.lock().unwrap() = Some(2);
    served.replace(&function("f", "f3"));
    served.replace(&function("g", "g3"));
    served.begin("two", "two", json!({ "wait": 3 })).unwrap();
    shelf.wait_for(&["f3", "g3"]);
    served.stop();
}

/// Servers that share a store in Redis keep files each for itself.
#[test]
fn a_server_that_takes_over_without_the_version_calls_no_other_one() {
    let redis = OwnServer::start();
    let serve = |shelf: &Arc<Shelf>, version: &str| {
        let store = Store::Redis(redis.client());
        let executions = Executions::leased(&store, Duration::from_millis(600));
        let keeper: Arc<dyn Keeper> = Arc::clone(shelf) as _;
        let functions = [function("f", version), function("g", "g1")];
        Served::of((store, executions), &two_tasks(), &json!({}), (&functions, Some(keeper)))
    };
    let shelves = [Arc::new(Shelf::default()), Arc::new(Shelf::default())];
    let first = serve(&shelves[0], "f1");
    for name in ["found", "moved"] {
        first.begin("two", name, json!({ "wait": 1 })).unwrap();
        first.wait_for_event("two", name, "WaitStateEntered");
    }
    first.kill();
    let second = serve(&shelves[1], "f2");
    for name in ["found", "moved"] {
        second.wait_for_event("two", name, "WaitStateExited");
    }
    thread::sleep(Duration::from_millis(300));
    for name in ["found", "moved"] {
        assert_eq!(second.events("two", name).last().unwrap(), "LambdaFunctionScheduled", "no other version is called");
        assert_eq!(second.pinned("two", name)[0], ("f".to_owned(), digest("f1"), false));
    }
    wait(second.executions.repin(second.place("two", "moved"), false)).unwrap();
    assert_eq!(second.output("two", "moved")["again"], hex("f2"));
    // A copy of the file is found, without a restart.
    let file = shelves[0].files.lock().unwrap().get(&digest("f1")).cloned().unwrap();
    shelves[1].files.lock().unwrap().insert(digest("f1"), file);
    let output = second.output("two", "found");
    assert_eq!((&output["f"], &output["again"]), (&hex("f1"), &hex("f1")));
    second.stop();
}

/// What is queued is moved with its versions, and holds those in the journal alone.
#[test]
fn what_is_queued_is_moved_to_the_versions_that_are_served() {
    let (disk, shelf) = (Disk::default(), Arc::new(Shelf::default()));
    let definition =
        machine("W", &json!({ "W": { "Type": "Wait", "SecondsPath": "$.wait", "Next": "F" }, "F": which("f", None) }));
    let serve = |disk: &Disk, version: &str| {
        let keeper: Arc<dyn Keeper> = Arc::clone(&shelf) as _;
        let limits = json!({ "limits": { "running_max": 1 } });
        Served::start_pinned(disk, &[("w", definition.clone())], &limits, (&[function("f", version)], Some(keeper)))
    };
    let served = serve(&disk, "f1");
    for (name, wait) in [("first", 3), ("second", 0)] {
        served.begin("w", name, json!({ "wait": wait })).unwrap();
    }
    served.replace(&function("f", "f2"));
    let moved = wait(served.executions.repin(served.place("w", "second"), false)).unwrap();
    assert_eq!((moved.status, moved.moves), (Status::New, 0));
    assert_eq!(served.pinned("w", "second"), [("f".to_owned(), digest("f2"), true)]);
    // What makes room for another one removes neither.
    *shelf.max.lock().unwrap() = Some(2);
    served.replace(&function("f", "f3"));
    served.begin("w", "third", json!({ "wait": 0 })).unwrap();
    shelf.wait_for(&["f1", "f2"]);
    served.kill();
    let served = serve(&disk.crashed(&mut 3), "f3");
    shelf.wait_for(&["f1", "f2"]);
    assert_eq!((&served.output("w", "first")["f"], &served.output("w", "second")["f"]), (&hex("f1"), &hex("f2")));
    served.stop();
}
