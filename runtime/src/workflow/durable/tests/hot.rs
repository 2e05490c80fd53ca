//! Many executions that change the same key at the same time.

use futures_util::future::join_all;

use super::*;

/// Executions that change one key.
const MANY: u64 = 1_000;

/// Executions of that workflow that are started at the same time.
async fn start_all(served: &Served, count: u64) -> Vec<String> {
    let names: Vec<_> = (0..count).map(|number| format!("e{number}")).collect();
    let start = |name: &String| served.executions.start(&served.workflows["hot"], Some(name.clone()), json!({}));
    join_all(names.iter().map(start)).await.into_iter().for_each(|started| drop(started.unwrap()));
    names
}

async fn end_all(served: &Served, names: &[String]) {
    for name in names {
        assert_eq!(served.executions.wait(served.place("hot", name)).await.unwrap().status, Status::Succeeded);
    }
}

/// How many times the executions of that workflow have conflicted, when `MANY` of them, started at once, have changed the key once each.
fn conflicts(definition: Value) -> (u64, Served) {
    let served = Served::start(&Disk::default(), &[("hot", definition)]);
    wait(async { end_all(&served, &start_all(&served, MANY).await).await });
    assert_eq!(served.number("a"), MANY as i64);
    (served.workflows["hot"].reach.contention.conflicts_sum(), served)
}

/// Without the line of the key each of them conflicts as often as others are left: half a million times.
#[test]
fn operations_of_one_key_conflict_a_few_times_each_whatever_their_number() {
    let add = json!({ "Type": "Task", "Resource": "kv:add", "Parameters": { "Bucket": "b", "Key": "a" }, "End": true });
    let (conflicts, served) = conflicts(machine("A", &json!({ "A": add })));
    assert!(conflicts <= 3 * MANY, "{conflicts} conflicts of {MANY} operations");
    served.stop();
}

#[test]
fn functions_that_change_one_key_run_a_few_times_each_whatever_their_number() {
    let bump = call(&json!({ "do": "bump", "key": "a" }), None);
    let (conflicts, served) = conflicts(machine("A", &json!({ "A": bump })));
    let runs = served.runs.load(Ordering::Relaxed);
    assert!(conflicts <= 3 * MANY && runs <= 4 * MANY, "{conflicts} conflicts, {runs} runs of {MANY} functions");
    served.stop();
}

/// What waits for the hot key has no place: other functions, and other keys, are not waited for.
#[test]
fn what_does_not_change_the_hot_key_does_not_wait_for_those_that_do() {
    let bump = |key: &str| machine("A", &json!({ "A": call(&json!({ "do": "bump", "key": key }), None) }));
    let served = Served::start(&Disk::default(), &[("hot", bump("a")), ("cold", bump("other"))]);
    let contention = &served.workflows["hot"].reach.contention;
    // It is held by a request of a client, as it were, for as long as the test wants.
    (0..3).for_each(|_| contention.conflicted(&key("a"), Instant::now()));
    let first = wait(contention.line(&key("a"))).unwrap();
    // All but the few whose commits come first conflict, and stand in the line then.
    let names = wait(start_all(&served, 100));
    served.begin("cold", "one", json!({})).unwrap();
    assert_eq!(served.end_of("cold", "one").status, Status::Succeeded);
    let waiting = names.iter().filter(|name| served.summary("hot", name).unwrap().is_open()).count();
    assert!(waiting > 8, "{waiting} wait for the key, no more than there are places");
    drop(first);
    wait(end_all(&served, &names));
    assert_eq!((served.number("a"), served.number("other")), (100, 1));
    served.stop();
}
