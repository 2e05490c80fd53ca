//! Random schedules, from seeds.

use super::*;

/// What a random schedule knows of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Waits,
    Blocked,
    Over,
}

/// Whatever arrives: nothing is lost, nothing ends twice, no time is lost, deadlines and budgets are kept to within a quantum.
#[test]
fn random_arrivals_all_end_once() {
    for seed in 1..60u64 {
        let policy = POLICIES[seed as usize % POLICIES.len()];
        let mut played = Played::new(policy);
        let (mut state, mut arrived) = (seed, 0);
        let start = played.now;
        played.wanted = random(&mut state, 2) == 0;
        while arrived < 200 {
            played.play(100_000, |played| {
                for _ in 0..random(&mut state, 4) {
                    if arrived < 200 {
                        arrived += 1;
                        let tenant = random(&mut state, 5) as u32;
                        let (run, budget) = (1 + random(&mut state, 3_000), 1 + random(&mut state, 4_000));
                        let deadline = micros(1 + random(&mut state, 100_000));
                        played.arrive_for(tenant, "any", run, deadline, micros(budget));
                    }
                }
            });
        }
        played.play(100_000, |_| {});
        assert_eq!(played.core.waiting(), 0, "seed {seed}");
        assert_eq!(played.ended.len() + played.given.len(), 200, "seed {seed}");
        let cpu: Duration = played.tasks.iter().map(|guest| guest.task.cpu).sum();
        assert_eq!(played.now - start, cpu, "seed {seed}: time passed while no guest ran");
        for guest in &played.tasks {
            assert!(guest.task.cpu < guest.task.cpu_max + QUANTUM, "seed {seed}: {:?}", guest.task);
        }
        let latest = played.ended.iter().filter(|ended| ended.killed == Some(Why::Deadline)).map(|ended| ended.took).max();
        assert!(latest.is_none_or(|took| took <= micros(100_000) + QUANTUM), "seed {seed}: {latest:?}");
    }
}

/// Arrivals, ends, waits, deadlines, budgets, gifts and failures in any order: nothing is lost or run twice, the worker does not wait while something could run, the oldest of a
/// function goes first, and deadlines are kept to within a quantum.
#[test]
fn whatever_happens_nothing_is_lost_and_nothing_waits_in_vain() {
    for seed in 1..1_500_u64 {
        let policy = POLICIES[seed as usize % POLICIES.len()];
        let mut state = seed;
        let start = Instant::now();
        let (mut core, mut now, mut event) = (Core::new(policy, QUANTUM, 1, start), start, Event::Turn);
        let mut tasks: Vec<(Task, Stand)> = Vec::new();
        let (mut asked, mut steps) = (false, 0);
        loop {
            steps += 1;
            assert!(steps < 200_000, "seed {seed}: it does not end");
            core.note(event, now);
            while tasks.len() < 150 && random(&mut state, 3) == 0 {
                let id = TaskId(tasks.len() as u32);
                let tenant = random(&mut state, 3) as u32;
                let function = FunctionId(3 * tenant + random(&mut state, 3) as u32);
                let (age, cpu) = (u64::from(id.0), Duration::ZERO);
                let deadline = now + micros(random(&mut state, 60_000));
                let cpu_max = if random(&mut state, 4) == 0 { micros(random(&mut state, 4_000)) } else { Duration::MAX };
                let (arrived, tenant) = (now, TenantId(tenant));
                let task = Task {
                    id,
                    tenant,
                    function,
                    age,
                    arrived,
                    deadline,
                    cpu_max,
                    cpu,
                    started: false,
                    level: 0,
                    class: 0,
                    is_speculative: false,
                    weight: 1,
                };
                tasks.push((task, Stand::Waits));
                if random(&mut state, 4) == 0 && core.may_run_at_once(task, now) {
                    core.note(Event::Ended { ran: micros(30) }, now);
                    tasks[id.0 as usize].1 = Stand::Over;
                } else {
                    core.note(Event::Arrived(task), now);
                }
            }
            if random(&mut state, 10) == 0
                && let Some((task, stand)) = tasks.iter_mut().find(|(_, stand)| *stand == Stand::Blocked)
            {
                *stand = Stand::Waits;
                core.note(Event::Ready(task.id), now);
            }
            let action = core.decide(now);
            // Tasks whose wait was over by time stand in the queues again.
            for (task, stand) in tasks.iter_mut().filter(|(_, stand)| *stand == Stand::Blocked) {
                if !core.is_blocked(task.id) {
                    *stand = Stand::Waits;
                }
            }
            event = match action {
                Action::Run(id) => {
                    let (task, stand) = tasks[id.0 as usize];
                    assert!(stand != Stand::Over, "seed {seed}: {task:?} runs after its end");
                    assert!(now < task.deadline, "seed {seed}: {task:?} is late");
                    if policy == Policy::RoundRobin && task.cpu < QUANTUM {
                        let older = tasks[..id.0 as usize].iter().find(|(older, stand)| {
                            (older.function, *stand) == (task.function, Stand::Waits) && older.cpu < QUANTUM
                        });
                        assert_eq!(older, None, "seed {seed}: older than {task:?}");
                    }
                    let ran = micros(1 + random(&mut state, 700)).min(QUANTUM);
                    now += ran;
                    let task = &mut tasks[id.0 as usize];
                    let before = task.0.cpu;
                    match random(&mut state, 5) {
                        0 if before.is_zero() => {
                            now -= ran;
                            task.1 = Stand::Over;
                            Event::Dropped
                        }
                        0 | 1 => {
                            task.1 = Stand::Over;
                            Event::Ended { ran }
                        }
                        2 => {
                            (task.0.cpu, task.0.started, task.1) = (before + ran, true, Stand::Blocked);
                            let until = (random(&mut state, 2) == 0).then(|| now + micros(random(&mut state, 5_000)));
                            Event::Blocked { ran, until }
                        }
                        _ => {
                            (task.0.cpu, task.0.started, task.1) = (before + ran, true, Stand::Waits);
                            Event::Preempted { ran }
                        }
                    }
                }
                Action::Kill(id, why) => {
                    let (task, stand) = &mut tasks[id.0 as usize];
                    assert!(*stand != Stand::Over, "seed {seed}: {task:?} ends twice");
                    match why {
                        Why::Deadline => assert!(now >= task.deadline, "seed {seed}: {task:?} is not late"),
                        Why::Cpu => assert!(task.cpu >= task.cpu_max, "seed {seed}: {task:?} has some left"),
                        Why::Overload => assert!(!task.started && policy == Policy::RoundRobin, "seed {seed}: {task:?}"),
                        Why::Unwanted => panic!("seed {seed}: nothing is speculative"),
                        Why::Stopping => panic!("seed {seed}: the core knows nothing of the server's end"),
                    }
                    *stand = Stand::Over;
                    Event::Dropped
                }
                Action::Give(id) => {
                    let (task, stand) = &mut tasks[id.0 as usize];
                    assert!(*stand != Stand::Over, "seed {seed}: {task:?} is given away after its end");
                    *stand = Stand::Over;
                    Event::Given
                }
                Action::Slacken => panic!("seed {seed}: nothing is speculative"),
                Action::Look => Event::Looked,
                Action::Io if !asked && random(&mut state, 8) == 0 => {
                    asked = true;
                    Event::Wanted
                }
                Action::Io => {
                    asked = false;
                    Event::Turn
                }
                Action::Wait => {
                    assert_eq!(core.waiting(), 0, "seed {seed}: it waits while something could run");
                    match core.alarm() {
                        Some(at) => now = now.max(at),
                        None if tasks.len() == 150 => break,
                        None => now += micros(100),
                    }
                    Event::Turn
                }
            };
        }
        let left: Vec<_> = tasks.iter().filter(|(_, stand)| *stand != Stand::Over).collect();
        assert!(left.is_empty(), "seed {seed}: {left:?}");
    }
}
