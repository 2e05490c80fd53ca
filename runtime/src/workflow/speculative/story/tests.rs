//! What is said of runs, and how much is kept.

use serde_json::{Value, json};
use sledge_workflow::machine::{Failure, Purpose, TaskId};
use tokio::sync::Notify;

use super::explained::{Explained, ExplainedGuess, ExplainedRun, Outcome, RunResult};
use super::kept::{BYTES_MAX, STORIES_MAX};
use super::tale::{About, Tale};
use super::*;
use crate::config::SpeculationLevel;
use crate::kv::{BucketName, Commit as StoreCommit, KvError};
use crate::txn::pipeline::{ColumnId, Dewey, Pipeline};
use crate::txn::{Isolation, Outside};
use sledge_sandbox::Budget;

/// A story that is over, of an execution of that name.
fn tale(story: Story, name: &str, took: At) -> Tale {
    let about = About {
        workflow: "w".into(),
        name: name.into(),
        id: format!("arn:{name}").into(),
        level: SpeculationLevel::Outputs,
        started_ms: 1_000,
        took,
        outcome: Outcome::Succeeded,
        error: None,
    };
    Tale { about, story }
}

/// What is said of one.
pub(in crate::workflow::speculative) fn told(story: Story) -> Explained {
    tale(story, "w-1", 10_000).explained()
}

fn task(state: &str) -> StartTask {
    let resource = Resource::Function { name: format!("f-{state}").into(), qualifier: None, callback: false };
    task_of(state, resource, Value::Null)
}

fn task_of(state: &str, resource: Resource, input: Value) -> StartTask {
    StartTask {
        task: TaskId(0),
        position: Vec::new(),
        state: state.into(),
        resource: Arc::new(resource),
        input: Arc::new(input),
        token: None,
        deadline_ms: None,
        heartbeat_s: None,
        attempt: 0,
        purpose: Purpose::Work,
    }
}

fn at(story: &mut Story, us: u64) {
    story.at(Duration::from_micros(us));
}

/// Columns of a pipeline, to be named.
fn columns(count: u64) -> Vec<ColumnId> {
    let pipeline = Pipeline::new(None, Arc::new(Notify::new()));
    let isolation = Isolation { contention: Arc::default(), outside: Outside::Refused };
    (0..count).map(|number| pipeline.open(Dewey::new(&[number]), &isolation).unwrap().0).collect()
}

fn commit(columns: &[ColumnId]) -> Group {
    Group::Commit { columns: columns.to_vec(), commit: StoreCommit::new(Vec::new(), Vec::new()) }
}

fn key(name: &str) -> BucketKey {
    BucketName::new(b"b").unwrap().key(name.as_bytes()).unwrap()
}

/// States A, B and so on, one after the other, all of them begun: the first one is due, each other one begins behind it.
fn begun(states: u32) -> Story {
    let mut story = Story::default();
    for number in 0..states {
        let state = String::from(char::from(b'A' + u8::try_from(number).unwrap()));
        story.asked(RunId(number), &vec![number, 0], &task(&state));
        let before: Option<Arc<str>> = number.checked_sub(1).map(|before| char::from(b'A' + before as u8).to_string().into());
        story.begun(RunId(number), number == 0, before.as_ref());
    }
    story
}

fn reasons(explained: &Explained) -> Vec<(&str, &str)> {
    let reasons = explained.runs.iter().filter_map(|run| run.reason.as_ref());
    reasons.map(|reason| (&*reason.code, &*reason.text)).collect()
}

#[test]
fn a_run_is_told_from_its_begin_to_its_commit() {
    let mut story = begun(2);
    let guess = Told::Guess(Ok(json!(1)));
    story.told(RunId(0), &guess);
    story.told(RunId(1), &Told::Hole);
    at(&mut story, 1_000);
    story.ended(RunId(1), &Ok(json!(2)), &Told::Hole);
    at(&mut story, 2_000);
    story.ended(RunId(0), &Ok(json!(1)), &guess);
    story.decided(&commit(&columns(2)));
    at(&mut story, 5_000);
    story.decided(&Group::Committed { columns: columns(2), calls: Vec::new(), findings: Vec::new() });
    story.committed(&[RunId(0), RunId(1)]);
    let explained = told(story);
    let [first, second] = &explained.runs[..] else { panic!("{explained:?}") };
    assert_eq!((first.result, first.begun_us, first.ended_us, first.over_us), (RunResult::Committed, 0, Some(2_000), 5_000));
    assert_eq!((second.result, second.ended_us, second.over_us), (RunResult::Adopted, Some(1_000), 5_000));
    assert_eq!((second.behind.as_deref(), second.behind_run, second.commit), (Some("A"), Some(0), Some(0)));
    assert_eq!((second.function.as_deref(), &second.reason, &second.path[..]), (Some("f-B"), &None, &[1, 0][..]));
    assert_eq!(first.guess, Some(ExplainedGuess { what: Guess::Answer, at_us: 0, right: Some(true) }));
    assert_eq!(second.guess, Some(ExplainedGuess { what: Guess::Shape, at_us: 0, right: Some(true) }));
    let commits: Vec<_> = explained.commits.iter().map(|commit| (commit.began_us, commit.ended_us, commit.runs)).collect();
    assert_eq!(commits, [(2_000, 5_000, 2)]);
    // 2 ms and 1 ms, and for each of them a commit of 3 ms.
    assert_eq!(explained.in_sequence_us, 9_000);
    let text = serde_json::to_string(&explained).unwrap();
    assert_eq!(serde_json::from_str::<Explained>(&text).unwrap(), explained);
}

#[test]
fn a_run_for_which_a_known_answer_stands_is_told_as_that_unless_it_has_to_run() {
    let mut story = begun(3);
    (1..3).for_each(|run| story.skipped(RunId(run)));
    (0..3).for_each(|run| story.ended(RunId(run), &Ok(json!(1)), &Told::Nothing));
    story.squashed(RunId(2), Cause::Changed(Some(key("k"))), None);
    story.committed(&[RunId(0), RunId(1)]);
    let results: Vec<RunResult> = told(story).runs.iter().map(|run| run.result).collect();
    assert_eq!(results, [RunResult::Committed, RunResult::Skipped, RunResult::Squashed]);
}

#[test]
fn why_a_run_does_not_count_is_said_in_a_sentence() {
    let mut story = begun(7);
    let ids = columns(2);
    story.squashed(RunId(1), Cause::Wrote(ids[0], key("user:7")), Some(&"A".into()));
    story.squashed(RunId(2), Cause::Listed(ids[0], BucketName::new(b"users").unwrap()), Some(&"A".into()));
    story.squashed(RunId(3), Cause::Gone(ids[1]), None);
    // The first reason is the one.
    story.squashed(RunId(3), Cause::Sum, None);
    story.squashed(RunId(4), Cause::Changed(Some(key("\u{fc}"))), None);
    story.again(RunId(5), RunId(9), &vec![5, 0], &task("F"));
    let explained = told(story);
    let expected = [
        ("ended", "the execution ended without it"),
        ("read_too_early", "it had read b/user:7 before A wrote it"),
        ("listed_too_early", "it had listed users before A changed the keys there"),
        ("read_in_vain", "it had read what a run before it had written, and that does not count"),
        ("changed", "another execution or request has changed b/\\xc3\\xbc since it read that"),
        ("made_room", "a run before it needed the room"),
        ("ended", "the execution ended without it"),
    ];
    assert_eq!(reasons(&explained), expected);
    assert_eq!(explained.runs[1].reason.as_ref().and_then(|reason| reason.key.as_deref()), Some("b/user:7"));
    // What was asked for again has not begun: there is nothing to say of it.
    assert_eq!((explained.runs.len(), explained.runs[5].result), (7, RunResult::Squashed));
}

#[test]
fn a_dropped_run_names_what_was_guessed_wrong_at_that_moment() {
    let mut story = begun(4);
    let wrong = Told::Guess(Ok(json!(1)));
    story.told(RunId(0), &wrong);
    story.ended(RunId(0), &Ok(json!(2)), &wrong);
    story.dropped(RunId(1), Why::OtherInput);
    at(&mut story, 1_000);
    story.dropped(RunId(2), Why::NotAsked);
    let late = Failure { error: Some("Late".into()), cause: None };
    story.ended(RunId(3), &Err(late), &Told::Hole);
    story.asked(RunId(7), &vec![7, 0], &task("H"));
    story.begun(RunId(7), false, None);
    story.dropped(RunId(7), Why::NotAsked);
    let explained = told(story);
    let expected = [
        ("ended", "the execution ended without it"),
        ("other_input", "its state is asked for with another input: the answer of A was guessed wrong"),
        // It is another moment.
        ("not_asked", "its state is not asked for any more"),
        ("ended", "the execution ended without it"),
        ("not_asked", "its state is not asked for any more: D failed, which was not expected"),
    ];
    assert_eq!(reasons(&explained), expected);
    assert_eq!(explained.runs[0].guess.and_then(|guess| guess.right), Some(false));
    assert_eq!(explained.runs[3].error.as_deref(), Some("Late"));
}

fn choice() -> Definition {
    let text = r#"{ "StartAt": "Which", "States": {
        "Which": { "Type": "Choice", "Choices": [{ "Variable": "$.a", "IsPresent": true, "Next": "A" }], "Default": "B" },
        "A": { "Type": "Succeed" }, "B": { "Type": "Succeed" } } }"#;
    Definition::parse(text).unwrap()
}

#[test]
fn a_run_that_another_state_asks_for_is_one_of_that() {
    let mut story = begun(1);
    story.asked_by(RunId(0), &"Z".into());
    assert_eq!(told(story).runs[0].state, "Z");
}

#[test]
fn a_guessed_way_is_right_or_wrong_when_the_execution_comes_there() {
    let definition = choice();
    let which = definition.find("Which").unwrap();
    let way = |went: Option<Target>| {
        let (mut story, path) = (begun(2), WayPath::default());
        // By another path it is another guess.
        story.went_ahead(&definition, (which, path.then(which, Target::Default)), Target::Default, true);
        story.went_ahead(&definition, (which, path), Target::Rule(0), true);
        let mut trail = Trail::default();
        if let Some(went) = went {
            trail.went(which, went);
        }
        story.went_really(&definition, &trail);
        story.dropped(RunId(1), Why::NotAsked);
        told(story)
    };
    let shown = |explained: &Explained| {
        let ways = explained.ways.iter();
        ways.map(|way| format!("{} {} {:?} {:?}", way.state, way.guessed, way.went, way.right)).collect::<Vec<_>>()
    };
    let other = "Which B None None";
    assert_eq!(shown(&way(None)), [other, "Which A None None"]);
    assert_eq!(shown(&way(Some(Target::Rule(0)))), [other, "Which A Some(\"A\") Some(true)"]);
    let wrong = way(Some(Target::Default));
    assert_eq!(shown(&wrong), [other, "Which A Some(\"B\") Some(false)"]);
    assert_eq!(reasons(&wrong)[1].1, "its state is not asked for any more: the way at Which was guessed wrong");
    assert!(!reasons(&way(Some(Target::Rule(0))))[1].1.contains("wrong"));
}

#[test]
fn commits_that_were_not_made_are_told_and_what_has_nothing_to_commit_has_none() {
    let mut story = begun(2);
    let ids = columns(2);
    let groups = [
        Group::Stale { column: ids[0], key: Some(key("k")) },
        Group::Again,
        Group::Failed { columns: ids.clone(), error: KvError::Unknown("x".to_owned()) },
    ];
    for group in &groups {
        story.decided(&commit(&ids));
        story.decided(group);
    }
    // The store was not asked.
    story.decided(&Group::Stale { column: ids[0], key: None });
    story.committed(&[RunId(0)]);
    let explained = told(story);
    let undone: Vec<_> = explained.commits.iter().map(|commit| (commit.undone.unwrap(), commit.key.as_deref())).collect();
    assert_eq!(undone, [(Undone::Conflict, Some("b/k")), (Undone::Again, None), (Undone::Failed, None)]);
    assert_eq!((explained.runs[0].result, explained.runs[0].commit), (RunResult::Committed, None));
}

#[test]
fn what_is_carried_out_for_good_and_what_is_refused_is_told() {
    let mut story = Story::default();
    let invoke = Resource::LambdaInvoke { callback: false };
    story.asked(RunId(1), &vec![0, 0], &task_of("A", invoke, json!({ "FunctionName": "g".repeat(1_000) })));
    story.carried_out(RunId(1));
    story.asked(RunId(2), &vec![1, 0], &task("B"));
    story.begun(RunId(2), false, Some(&"A".into()));
    story.refused(RunId(2));
    at(&mut story, 700);
    story.ended(RunId(1), &Err(Failure { error: Some("E".repeat(1_000).into()), cause: None }), &Told::Nothing);
    story.begun(RunId(2), true, None);
    let explained = told(story);
    let [first, second] = &explained.runs[..] else { panic!("{explained:?}") };
    assert_eq!((first.result, first.over_us, first.error.as_ref().unwrap().len()), (RunResult::CarriedOut, 700, NAME_BYTES_MAX));
    assert_eq!(first.function.as_ref().unwrap().len(), NAME_BYTES_MAX);
    assert_eq!((second.begun_us, second.refused, second.behind.as_deref()), (700, 1, None));
}

#[test]
fn a_story_has_so_many_runs_at_most_and_counts_the_others() {
    let mut story = Story::default();
    for number in 0..300 {
        story.asked(RunId(number), &vec![number, 0], &task("A"));
        // What did not begin leaves its place to others.
        story.dropped(RunId(number), Why::NotAsked);
    }
    story.asked(RunId(300), &vec![300, 0], &task("A"));
    story.begun(RunId(300), false, None);
    let explained = told(story);
    assert_eq!((explained.runs.len(), explained.left_out), (1, 0));
    let mut story = Story::default();
    for number in 0..300 {
        story.asked(RunId(number), &vec![number, 0], &task("A"));
        story.begun(RunId(number), false, None);
        story.committed(&[RunId(number)]);
    }
    let explained = told(story);
    assert_eq!((explained.runs.len(), explained.left_out), (ROWS_MAX, 300 - ROWS_MAX as u32));
}

#[test]
fn the_last_executions_of_a_workflow_are_kept() {
    let stories = Stories::new(None);
    for number in 0..STORIES_MAX + 3 {
        stories.keep(Arc::new(tale(begun(2), &format!("w-{number}"), 10)));
    }
    let last = format!("w-{}", STORIES_MAX + 2);
    assert_eq!(stories.explain("w", None).unwrap().execution, last);
    assert_eq!(stories.explain("w", Some("arn:w-5")).unwrap().execution, "w-5");
    assert!(stories.explain("w", Some("w-2")).is_none() && stories.explain("x", None).is_none());
    let listed = stories.list("w").executions;
    assert_eq!((listed.len(), &*listed[0].execution, listed[0].runs), (STORIES_MAX, &*last, 2));
    assert_eq!(stories.list("x").executions, []);
    // The same name again: the last one counts.
    stories.keep(Arc::new(tale(begun(3), "w-5", 10)));
    assert_eq!(stories.explain("w", Some("w-5")).unwrap().runs.len(), 3);
}

#[test]
fn stories_are_bounded_by_bytes_counted_in_the_servers_budget_and_given_back() {
    let budget = Budget::new(3 << 20);
    let stories = Stories::new(Some(Arc::clone(&budget)));
    let long = || {
        let mut story = Story::default();
        (0..256).for_each(|number| story.asked(RunId(number), &vec![number; 9], &task("A")));
        story
    };
    let keep = |workflow: &str, number: usize| {
        let mut tale = tale(long(), &format!("{workflow}-{number}"), 10);
        tale.about.workflow = workflow.into();
        stories.keep(Arc::new(tale));
    };
    (0..60).for_each(|number| ["v", "w"].into_iter().for_each(|workflow| keep(workflow, number)));
    let (bytes, counted) = (stories.bytes(), budget.bytes_used());
    assert!(bytes > BYTES_MAX / 2 && bytes <= BYTES_MAX, "{bytes}");
    assert!(counted >= bytes as u64 && counted < bytes as u64 + (32 << 10), "{counted} for {bytes}");
    // The oldest have gone, of both.
    assert!(["v-0", "v-9"].into_iter().all(|name| stories.explain("v", Some(name)).is_none()));
    assert!(stories.explain("v", Some("v-59")).is_some() && stories.explain("w", Some("w-0")).is_none());
    let request = budget.claim((3 << 20) - 200_000).unwrap();
    assert!(stories.bytes() <= 200_000, "they have given back");
    keep("w", 100);
    assert!(stories.bytes() <= 200_000 && budget.bytes_used() <= 3 << 20, "they take what is left");
    drop((request, stories));
    assert_eq!(budget.bytes_used(), 0);
}

/// Whether each run has one end, which fits its times.
pub(in crate::workflow::speculative) fn assert_whole(explained: &Explained) {
    for ExplainedRun { begun_us, ended_us, over_us, result, reason, behind, behind_run, .. } in &explained.runs {
        assert!(begun_us <= over_us && ended_us.is_none_or(|ended| *begun_us <= ended && ended <= *over_us), "{explained:?}");
        assert_eq!(result.counts(), reason.is_none(), "{explained:?}");
        assert!(behind_run.is_none() || behind.is_some(), "{explained:?}");
    }
}
