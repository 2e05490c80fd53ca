//! All tables together: a workflow with known chances, tables that a client fills, and what does not depend on order.

use serde_json::json;

use super::paths::Target;
use super::*;
use crate::kv::BucketName;

/// A state by its number.
pub(super) fn state(number: u32) -> StateIndex {
    serde_json::from_value(number.into()).unwrap()
}

fn speculation() -> Arc<Speculation> {
    Speculation::new([3; 32], None)
}

/// A workflow as those of FaaSChain (SmartHome): its branches go either way by chances that may depend on how the second one went. From each state where to, and how likely the first target is, for either
/// way of that branch.
const CHAIN: [(u32, [u32; 2], [u32; 2]); 4] = [
    // Login: 95 of 100 go on.
    (0, [1, 4], [95, 95]),
    // ReadTemp: Normalize, or CompareTemp at once.
    (1, [2, 3], [70, 70]),
    // CompareTemp: TurnAir or Done; another one after Normalize.
    (2, [3, 4], [92, 92]),
    (3, [4, 4], [15, 85]),
];
const END: u32 = 4;

/// Goes through the chain; for each branch its path, and which target was taken.
fn walk(random: &mut fastrand::Rng, mut at_branch: impl FnMut(u32, Path, usize, u32)) -> Trail {
    let (mut trail, mut at, mut second) = (Trail::default(), 0, 0);
    while let Some((number, targets, chances)) = CHAIN.iter().find(|(number, ..)| *number == at) {
        let chance = chances[second];
        let taken = usize::from(random.u32(..100) >= chance);
        at_branch(*number, trail.path(), taken, chance.max(100 - chance));
        trail.went(state(*number), if taken == 0 { Target::Rule(0) } else { Target::Default });
        if at == 1 {
            second = taken;
        }
        at = targets[taken];
        assert!(at <= END);
    }
    trail
}

#[test]
fn branches_with_known_chances_are_predicted_nearly_as_well_as_possible() {
    for seed in 0..5 {
        let (mut random, speculation) = (fastrand::Rng::with_seed(seed), speculation());
        let (mut branches, mut hits, mut best) = (0, 0, 0);
        for execution in 0..5_000 {
            let mut trail = walk(&mut random, |number, path, taken, chance| {
                let way = speculation.way(1, state(number), path).map(|way| way.target);
                if execution >= 100 {
                    branches += 1;
                    best += chance;
                    hits += u32::from(way == Some([Target::Rule(0), Target::Default][taken]));
                }
            });
            speculation.went(1, &mut trail);
        }
        let (hits, best) = (hits * 100 / branches, best / branches);
        println!("seed {seed}: {hits} % of {branches} branches, at best {best} %");
        assert!(best > 80 && hits + 3 >= best, "seed {seed}: {hits} % of {best} %");
    }
}

#[test]
fn functions_of_frequent_inputs_are_predicted_as_often_as_these_come() {
    let (mut random, speculation) = (fastrand::Rng::with_seed(1), speculation());
    let of = Of { name: "f", version: 1 };
    let (mut hits, mut frequent) = (0, 0);
    for run in 0..20_000 {
        // Nine of ten inputs are one of fifty.
        let is_frequent = random.u32(..10) > 0;
        let input = json!({ "user": if is_frequent { random.u64(..50) } else { 1_000 + run } });
        let (key, answer) = (speculation.key("f", &input), Ok(Arc::new(json!({ "of": input }))));
        frequent += u32::from(is_frequent);
        hits += u32::from(speculation.answer(1, &key).is_some_and(|predicted| predicted == answer));
        speculation.answered(of, key, &answer, Rest::default());
    }
    assert!(hits <= frequent && hits + 100 >= frequent, "{hits} of {frequent}");
    let known = speculation.known();
    assert!(known.outputs[0].rates.right == u64::from(hits) && known.outputs[0].rates.wrong == 0, "{known:?}");
}

/// Executions that end in another order, and those of other workflows between them, teach the same as long as no counts are halved.
#[test]
fn what_is_predicted_does_not_depend_on_the_order_of_executions_nor_on_other_workflows() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut trails: Vec<Trail> = (0..40).map(|_| walk(&mut random, |_, _, _, _| {})).collect();
        let (one, other) = (speculation(), speculation());
        trails.iter().for_each(|trail| one.went(1, &mut trail.clone()));
        random.shuffle(&mut trails);
        for trail in &trails {
            other.went(2, &mut walk(&mut random, |_, _, _, _| {}));
            other.went(1, &mut trail.clone());
            other.forget_workflow(2);
        }
        for _ in 0..100 {
            walk(&mut random, |number, path, _, _| {
                let [one, other] = [&one, &other].map(|tables| tables.way(1, state(number), path));
                assert_eq!(one, other, "seed {seed}, state {number}");
            });
        }
    }
}

/// A call with that argument.
fn made(argument: &Bytes) -> Made {
    Made { callee: "g".into(), argument: Some(argument.clone()), reached: Duration::from_millis(1) }
}

/// Whatever is learned in whatever order: nothing is predicted after fewer than two samples.
#[test]
fn no_way_call_or_time_is_predicted_from_fewer_than_two_samples() {
    for seed in 0..200 {
        let (mut random, speculation) = (fastrand::Rng::with_seed(seed), speculation());
        let mut samples = [[0; 3]; 4];
        for _ in 0..12 {
            let at = random.usize(..4);
            let (number, version) = (at as u32, at as u64);
            let input = Bytes::copy_from_slice(&[random.u8(..2)]);
            let made = made(&input);
            match random.u8(..3) {
                0 => {
                    let mut trail = Trail::default();
                    trail.went(state(number), Target::Rule(random.u32(..2)));
                    speculation.went(1, &mut trail);
                    samples[at][0] += 1;
                }
                1 => {
                    speculation.called(Of { name: "f", version }, &input, &[made]);
                    samples[at][1] += 1;
                }
                _ => {
                    speculation.took(1, state(number), Duration::from_millis(1));
                    samples[at][2] += 1;
                }
            }
            for (at, [ways, calls, times]) in samples.iter().enumerate() {
                let (number, version) = (at as u32, at as u64);
                assert!(*ways >= 2 || speculation.way(1, state(number), Path::default()).is_none(), "seed {seed}");
                assert!(*calls >= 2 || speculation.calls(version, &input, Duration::ZERO).is_empty(), "seed {seed}");
                assert!(*times >= 2 || speculation.remaining(1, state(number), Duration::ZERO).is_none(), "seed {seed}");
            }
        }
    }
}

/// A client that sends what nothing was ever sent for fills the tables, and takes no more than their bound, nor anything of another tenant's.
#[test]
fn tables_that_are_filled_stay_within_their_bound_and_all_of_it_is_forgotten() {
    let (mut random, speculation) = (fastrand::Rng::with_seed(9), speculation());
    for round in 0..30_000_u64 {
        let (workflow, number, version) = (random.u64(..300), random.u32(..100), random.u64(..300));
        let input = Bytes::from(vec![random.u8(..); random.usize(..2_000)]);
        let of = Of { name: "function", version };
        match random.u8(..6) {
            0 => {
                let mut trail = Trail::default();
                (0..random.u32(..8)).for_each(|_| trail.went(state(random.u32(..100)), Target::Catch(random.u32(..20))));
                speculation.went(workflow, &mut trail);
            }
            1 => {
                let answer = Ok(Arc::new(json!({ "text": "x".repeat(random.usize(..9_000)) })));
                speculation.answered(of, speculation.key("f", &json!(round)), &answer, Rest::default());
            }
            2 => {
                let calls: Vec<_> = (0..random.u8(..9)).map(|_| made(&input)).collect();
                speculation.called(of, &input, &calls);
            }
            3 => speculation.squashed(Edge { workflow, from: state(number), to: state(1) }, Duration::from_millis(1)),
            4 => {
                let text: String = (0..random.usize(..100)).map(|_| random.alphabetic()).collect();
                let key = BucketName::new(b"b").unwrap().key(format!("k{text}").as_bytes()).unwrap();
                speculation.read_too_early(Reader { workflow, state: state(number) }, state(1), &key);
            }
            _ => speculation.took(workflow, state(number), Duration::from_millis(1)),
        }
        assert!(speculation.bytes() <= BYTES_MAX, "{}", speculation.bytes());
    }
    assert!(speculation.bytes() > BYTES_MAX / 2, "{}", speculation.bytes());
    let shown = serde_json::to_value(speculation.known()).unwrap();
    assert!(["branches", "outputs", "calls", "edges", "stalls", "times"].iter().all(|table| shown[table][0].is_object()));
    (0..300).for_each(|number| {
        speculation.forget_workflow(number);
        speculation.forget_function(number);
    });
    assert_eq!(speculation.bytes(), 0);
}

#[test]
fn tables_are_counted_in_the_servers_budget_take_nothing_from_others_and_give_back_for_requests() {
    let budget = Budget::new(1 << 20);
    let speculation = Speculation::new([3; 32], Some(Arc::clone(&budget)));
    let learn = |from: u64| {
        for number in from..from + 100 {
            let answer = Ok(Arc::new(json!("x".repeat(4_000))));
            speculation.answered(
                Of { name: "f", version: number % 7 },
                speculation.key("f", &json!(number)),
                &answer,
                Rest::default(),
            );
        }
    };
    learn(0);
    let counted = budget.bytes_used();
    assert!(counted >= speculation.bytes() as u64 && counted < speculation.bytes() as u64 + (32 << 10), "{counted}");
    let request = budget.claim((1 << 20) - 100_000).unwrap();
    assert!(budget.bytes_used() <= 1 << 20 && speculation.bytes() <= 100_000, "they have given back");
    learn(1_000);
    assert!(budget.bytes_used() <= 1 << 20 && speculation.bytes() <= 100_000, "they take what is left");
    // Less than a step is asked for, and less is there.
    drop(budget.claim((1 << 20) - budget.bytes_used() + 1).unwrap());
    drop(request);
    learn(2_000);
    assert!(speculation.bytes() > 200_000);
    drop(speculation);
    assert_eq!(budget.bytes_used(), 0);
}
