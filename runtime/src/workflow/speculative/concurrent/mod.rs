//! Executions at the same time, from seeds: express and durable ones, of random definitions, on one store, that go ahead of themselves while everything goes wrong that can. What they reply and leave is what
//! they do without speculation.
//!
//! ```text
//!   World --a seed says what happens--> Execution [Plan, Pipeline] <--guesses-- the tables, or made up
//!     |  another client writes                 |  runs begin, go on, trap, are killed, are dropped, and go on for a while
//!     |  a function is deployed anew           |  commits are sent, conflict, fail, or their answers are lost
//!     |  the server dies, the disk fails       '---> history: what was committed, in that order --> check: one after the other, on a plain map
//! ```
//!
//! The plan, the columns, the tables and, where a test says so, the store are the real ones. What stands in for the drivers is in `execution`.

mod disk;
mod execution;
mod functions;
mod history;
mod oracle;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fastrand::Rng;
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{About, Limits};

use self::functions::definition;
use self::world::{Counts, World};
use crate::kv::{Embedded, KvLimits};
use crate::txn::mutants::{Mutant, with};
use crate::txn::tests::pipeline::{Store, in_model};
use crate::txn::tests::seeds::{each, each_is_noticed, seeds};

const SIMULATIONS: u64 = 10_000;
/// The same on the embedded store, each commit of which another thread makes.
const EMBEDDED: u64 = 300;
/// Histories of which each group fails once.
const FAILURES: u64 = 12;
/// Within so many of them each mistake has to be noticed.
const NOTICED: u64 = 1_000;

fn about() -> About {
    let text: Arc<str> = "x".into();
    let [id, name, role, machine_id, machine_name] = std::array::from_fn(|_| Arc::clone(&text));
    About { id, name, role, machine_id, machine_name, token_prefix: "".into() }
}

/// Express executions make way for others now and then.
fn limits(is_durable: bool) -> Limits {
    if is_durable { Limits::default() } else { Limits { transitions_per_step: 8, ..Limits::default() } }
}

/// Plays one; what is wrong with it.
fn play(seed: u64, store: Store, fails_at: Option<u64>) -> Result<(Counts, u64), String> {
    let mut rng = Rng::with_seed(seed ^ (1 << 63));
    let definitions: Vec<Definition> = (0..rng.usize(1..3))
        .map(|_| {
            let text = definition(&mut rng).to_string();
            Definition::parse(&text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
        })
        .collect();
    // Several of one definition learn from each other.
    let executions = (0..rng.usize(2..5)).map(|_| (&definitions[rng.usize(..definitions.len())], rng.u32(..3) == 0)).collect();
    World::new(seed, store, executions, fails_at).play()
}

/// Plays one with that mistake; what is wrong with it, or that it panics.
fn played(seed: u64, store: Store, mutant: Option<Mutant>) -> Result<(Counts, u64), String> {
    let played = catch_unwind(AssertUnwindSafe(|| with(mutant, || play(seed, store, None))));
    played.unwrap_or_else(|_| Err("it panics".to_owned()))
}

#[track_caller]
fn right(seed: u64, played: Result<(Counts, u64), String>) -> [u64; Counts::ALL] {
    played.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")).0.all()
}

#[test]
fn executions_at_the_same_time_are_as_one_function_after_the_other() {
    let counts = each(seeds(SIMULATIONS), |seed| right(seed, played(seed, in_model(), None)));
    println!("{counts:?}");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn executions_at_the_same_time_in_the_embedded_store_are_as_one_function_after_the_other() {
    let store = Embedded::in_memory(KvLimits::default()).unwrap();
    let counts = each(seeds(EMBEDDED), |seed| {
        let space = store.space(&format!("{seed}"));
        right(seed, played(seed, Store::Embedded(space), None))
    });
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

/// The store fails once: at the first group, at the second one, and so on.
#[test]
fn a_store_that_fails_at_any_group_changes_nothing_but_the_answer_of_its_function() {
    each(0..FAILURES, |seed| {
        let (_, groups) = play(seed, in_model(), None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        for group in 1..=groups {
            play(seed, in_model(), Some(group)).unwrap_or_else(|wrong| panic!("seed {seed}, group {group}: {wrong}"));
        }
        []
    });
}

/// Every mistake is noticed; which seed does is shown by `--nocapture`.
#[test]
fn each_mistake_is_noticed_within_a_thousand_seeds() {
    use Mutant::{ForwardedFromFarthest, LoggedAhead, LostReadBit, OtherEntry, OutOfOrder, StaleEpoch};
    use Mutant::{RefusedIsLeft, RefusedIsRead};
    let of_order = [LostReadBit, StaleEpoch, OutOfOrder, OtherEntry, ForwardedFromFarthest, LoggedAhead];
    let of_failures = [RefusedIsRead, RefusedIsLeft];
    each_is_noticed(&[&of_order[..], &of_failures].concat(), 0..NOTICED, |seed, mutant| played(seed, in_model(), mutant).err());
}
