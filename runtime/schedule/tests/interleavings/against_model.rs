//! The exchange does what the simulator's model says: whatever two threads see of the one, they could have seen of the other, in some order of their operations.

use std::collections::BTreeSet;
use std::sync::Arc;

use crossbeam_deque::Worker as Deque;
use loom::thread;

use crate::exchange::Exchange;
use crate::model::Model;
use crate::shared::Rest;
use crate::waking::exchange;

#[derive(Clone, Copy, Debug)]
enum Step {
    Inject(usize),
    TakeInjected,
    /// Push to the own queue, and say so.
    HandOff(usize),
    /// Take back what is there, and say that nothing is.
    TakeBack,
    Steal,
    TryIdle,
    TrySlack,
    Busy,
}

/// What a worker has seen, in the order of its steps.
type Seen = Vec<Vec<usize>>;

fn on_exchange(exchange: &Exchange<usize>, index: usize, deque: &Deque<usize>, steps: &[Step]) -> Seen {
    let take_all = || std::iter::from_fn(|| deque.pop()).collect::<Vec<_>>();
    let see = |step: &Step| match *step {
        Step::Inject(work) => {
            exchange.inject(work);
            Vec::new()
        }
        Step::TakeInjected => exchange.take_injected(|_| true),
        Step::HandOff(work) => {
            deque.push(work);
            exchange.set_backlog(index, true);
            Vec::new()
        }
        Step::TakeBack => {
            let taken = take_all();
            exchange.set_backlog(index, false);
            taken
        }
        Step::Steal => {
            exchange.steal(index, deque);
            take_all()
        }
        Step::TryIdle => vec![usize::from(exchange.try_idle(index))],
        Step::TrySlack => vec![usize::from(exchange.try_slack(index))],
        Step::Busy => {
            exchange.busy(index);
            Vec::new()
        }
    };
    steps.iter().map(see).collect()
}

/// An operation of the model, as part of a step. What it sees, if it is what the step sees.
type Part = fn(&mut Model<usize>, index: usize, work: usize) -> Option<Vec<usize>>;

/// The parts of a step, between which another worker's may come, and the work that it is about.
fn parts(step: Step) -> (&'static [Part], usize) {
    const NOTHING: Option<Vec<usize>> = Some(Vec::new());
    const PUSH: Part = |model, index, work| {
        model.queues[index].push_back(work);
        None
    };
    const POP: Part = |model, index, _| Some(model.queues[index].drain(..).collect());
    match step {
        Step::Inject(work) => (
            &[|model, _, work| {
                model.inject(work);
                NOTHING
            }],
            work,
        ),
        Step::TakeInjected => (&[|model, _, _| Some(model.take_injected(|_| true))], 0),
        Step::HandOff(work) => (
            &[PUSH, |model, index, _| {
                model.set_backlog(index, true);
                NOTHING
            }],
            work,
        ),
        Step::TakeBack => (
            &[POP, |model, index, _| {
                model.set_backlog(index, false);
                None
            }],
            0,
        ),
        Step::Steal => (
            &[
                |model, index, _| {
                    model.steal(index);
                    None
                },
                POP,
            ],
            0,
        ),
        Step::TryIdle => (
            &[
                |model, index, _| {
                    model.mark(index, Rest::Idle);
                    None
                },
                |model, index, _| Some(vec![usize::from(model.stays(index))]),
            ],
            0,
        ),
        Step::TrySlack => (
            &[
                |model, index, _| {
                    model.mark(index, Rest::Slack);
                    None
                },
                |model, index, _| Some(vec![usize::from(model.stays(index))]),
            ],
            0,
        ),
        Step::Busy => (
            &[|model, index, _| {
                model.rest[index] = Rest::Busy;
                NOTHING
            }],
            0,
        ),
    }
}

/// Everything that can be seen of the model, with what is left and which workers were woken.
fn outcomes(steps: [&[Step]; 2]) -> BTreeSet<(Seen, Seen, BTreeSet<usize>)> {
    fn go(
        order: &mut Vec<usize>,
        left: [usize; 2],
        all_parts: [&[(Part, usize)]; 2],
        all: &mut BTreeSet<(Seen, Seen, BTreeSet<usize>)>,
    ) {
        if left == [0, 0] {
            let mut model = Model::new(2);
            let mut seen = [Seen::new(), Seen::new()];
            let mut next = all_parts.map(|parts| parts.iter());
            for index in order.iter().copied() {
                let (part, work) = next[index].next().expect("as many as in the order");
                seen[index].extend(part(&mut model, index, *work));
            }
            let [first, second] = seen;
            all.insert((first, second, model.wakes.into_iter().collect()));
        }
        for index in 0..2 {
            if left[index] > 0 {
                order.push(index);
                let mut left = left;
                left[index] -= 1;
                go(order, left, all_parts, all);
                order.pop();
            }
        }
    }
    let mut all = BTreeSet::new();
    let all_parts = steps.map(|steps| {
        let of_step = |step: &Step| {
            let (parts, work) = parts(*step);
            parts.iter().map(move |part| (*part, work))
        };
        steps.iter().flat_map(of_step).collect::<Vec<_>>()
    });
    go(&mut Vec::new(), [all_parts[0].len(), all_parts[1].len()], [&all_parts[0], &all_parts[1]], &mut all);
    all
}

fn check(steps: [&'static [Step]; 2]) {
    let allowed = outcomes(steps);
    assert!(allowed.len() > 1, "the order matters: {allowed:?}");
    loom::model(move || {
        let (exchange, mut deques, woken) = exchange(2);
        let (first, second) = (deques.remove(0), deques.remove(0));
        let other = {
            let exchange = Arc::clone(&exchange);
            thread::spawn(move || (on_exchange(&exchange, 1, &second, steps[1]), second))
        };
        let mine = on_exchange(&exchange, 0, &first, steps[0]);
        let (theirs, _second) = other.join().unwrap();
        let wakes = (0..2).filter(|index| woken[*index].is_woken()).collect();
        let seen = (mine, theirs, wakes);
        assert!(allowed.contains(&seen), "{steps:?}\n  gave {seen:?}\n  of {allowed:?}");
    });
}

/// Fails without the fence in `try_idle` or in `wake_one`: nothing is woken, and the worker waits.
#[test]
fn injecting_beside_a_worker_that_is_about_to_wait() {
    check([&[Step::TryIdle], &[Step::Inject(1)]]);
    check([&[Step::TryIdle, Step::TakeInjected], &[Step::Inject(1)]]);
}

/// Fails where `wake_one` passes over a worker that has only what is speculative to do.
#[test]
fn injecting_and_handing_off_beside_a_worker_that_runs_what_is_speculative() {
    check([&[Step::TrySlack], &[Step::Inject(1)]]);
    check([&[Step::TrySlack], &[Step::HandOff(1)]]);
    check([&[Step::TrySlack, Step::Busy, Step::TryIdle], &[Step::Inject(1)]]);
}

#[test]
fn handing_off_beside_a_worker_that_is_about_to_wait() {
    check([&[Step::TryIdle], &[Step::HandOff(1)]]);
    check([&[Step::HandOff(1), Step::TakeBack], &[Step::Steal]]);
}

/// Fails if `steal` leaves the backlog of an empty queue set: no other worker would ever wait again.
#[test]
fn a_queue_that_was_emptied_keeps_no_worker_awake() {
    check([&[Step::Steal, Step::Steal, Step::TryIdle], &[Step::HandOff(1)]]);
}

#[test]
fn a_worker_that_is_busy_again_beside_one_that_injects() {
    check([&[Step::TryIdle, Step::Busy], &[Step::Inject(1)]]);
}
