//! What a simulation plays: a pool, its functions, and what happens to them at which time. All of it follows from a seed, and can be written to a file.

use serde::{Deserialize, Serialize};
use sledge_schedule::{Classes, Policy, Shares};

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// From `from` to `to`.
    pub(crate) fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// Once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Between 0 and 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A simulation. Times are in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// For what is left to chance: how long wake-ups take, how late ticks come.
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    /// Requests come through other threads than the workers'.
    pub(crate) dedicated: bool,
    pub(crate) policy: Policy,
    /// Whether microtasks have classes, and how these are used.
    #[serde(default)]
    pub(crate) classes: Option<Classed>,
    pub(crate) quantum: u64,
    pub(crate) requests_max: usize,
    pub(crate) functions: Vec<Function>,
    /// In the order of time.
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Classed {
    is_static: bool,
    believes: bool,
    limits: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Function {
    pub(crate) tenant: u32,
    pub(crate) weight: u32,
    pub(crate) deadline: u64,
    pub(crate) cpu_max: u64,
    pub(crate) concurrency_max: Option<usize>,
    pub(crate) queue_max: Option<usize>,
    /// Its concurrency follows what its invocations do, whatever `concurrency_max` says.
    #[serde(default)]
    pub(crate) follows: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) at: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum What {
    /// A client asks for something, through that worker's connections.
    Request {
        function: usize,
        door: usize,
        script: Vec<Part>,
        /// After how long the client goes, if it does not wait.
        leaves: Option<u64>,
        /// No sandbox is to be had.
        no_memory: bool,
        /// It is begun ahead.
        #[serde(default)]
        ahead: Option<Ahead>,
    },
    /// The function gets a new version, with these limits of concurrency.
    Deploy {
        function: usize,
        concurrency_max: Option<usize>,
        queue_max: Option<usize>,
        #[serde(default)]
        follows: bool,
    },
    /// A worker is woken for nothing.
    Wake { worker: usize },
    /// The server takes no more requests.
    Drain,
    /// The server ends what still runs.
    Kill,
}

/// What becomes of an invocation that is begun ahead.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Ahead {
    /// On whose behalf, and its place there.
    pub(crate) root: u64,
    pub(crate) path: [u32; 2],
    /// After how long it is known whether it is asked for, if it ever is; and that.
    pub(crate) settled: Option<(u64, bool)>,
}

/// A part of what an invocation does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    /// The guest computes.
    Run(u64),
    /// A host call computes: no tick ends that.
    Host(u64),
    /// The guest waits for a time.
    Sleep(u64),
    /// A host call waits for something that takes so long.
    Pend(u64),
    /// The guest says that another phase begins, and perhaps, rightly or not, for how long it computes.
    Phase(Option<u64>),
    /// It calls a function.
    Call { function: usize, script: Vec<Part>, waits: bool },
}

/// The longest that a host call computes.
pub(crate) const HOST_MAX: u64 = 200_000;

impl Plan {
    /// The plan of a seed.
    pub(crate) fn random(seed: u64) -> Plan {
        let mut random = Random(seed);
        let quantum = random.pick(&[100_000, 500_000, 500_000, 2_000_000]);
        let workers = random.range(1, 6) as usize;
        let round_robin = Policy::RoundRobin;
        let policy = random.pick(&[round_robin, round_robin, round_robin, Policy::RoundRobinStrict, Policy::Fifo, Policy::Edf]);
        let tenants = random.range(1, 3);
        let functions: Vec<Function> = (0..random.range(1, 6)).map(|_| Function::random(&mut random, tenants)).collect();
        let costs: Vec<u64> = functions.iter().map(|_| random.pick(&[5_000, 50_000, 300_000, 2_000_000])).collect();
        let mean = costs.iter().sum::<u64>() as f64 / costs.len() as f64;
        let load = 0.3 + 2.7 * random.part();
        let requests_max = if random.once_in(4) { random.range(4, 60) as usize } else { usize::MAX };
        let mut plan = Plan {
            seed,
            workers,
            dedicated: random.once_in(3),
            policy,
            classes: None,
            quantum,
            requests_max,
            functions,
            steps: Vec::new(),
        };
        let mut at = 0;
        for _ in 0..2_000 {
            // Now and then many at once.
            let pause = if random.once_in(4) { 0.1 } else { 1.3 };
            at += (-(1.0 - random.part()).ln() * mean * pause / (load * workers as f64)) as u64;
            let what = plan.what(&mut random, &costs);
            plan.steps.push(Step { at, what });
        }
        if random.once_in(2) {
            // In the middle of it.
            at = random.range(at * 3 / 4, at);
        }
        let drain = Step { at, what: What::Drain };
        let kill = Step { at: at + random.below(100_000_000), what: What::Kill };
        plan.steps.extend([drain, kill]);
        plan.steps.sort_by_key(|step| step.at);
        plan.add_classes();
        plan.add_following();
        plan.add_ahead();
        plan
    }

    /// Gives microtasks classes in half of the plans whose order has them; the rest of a plan does not depend on that.
    fn add_classes(&mut self) {
        let mut random = Random(self.seed ^ 0x0c1a_55e5);
        if self.policy != Policy::RoundRobin || random.once_in(2) {
            return;
        }
        let (is_static, believes, limits) = (random.once_in(4), random.once_in(2), !random.once_in(4));
        self.classes = Some(Classed { is_static, believes, limits });
        for step in &mut self.steps {
            if let What::Request { script, .. } = &mut step.what {
                add_phases(&mut random, script);
            }
        }
    }

    /// Lets the concurrency of some functions and later versions follow what they do; the rest of a plan does not depend on that.
    fn add_following(&mut self) {
        let mut random = Random(self.seed ^ 0x0f0_110e5);
        self.functions.iter_mut().for_each(|function| function.follows = random.once_in(3));
        let steps = self.steps.len();
        for (index, step) in self.steps.iter_mut().enumerate() {
            match &mut step.what {
                What::Deploy { follows, .. } => *follows = random.once_in(3),
                // They wait for long at first, and less later, so that fewer may run.
                What::Request { function, script, .. } if index < steps / 2 && self.functions[*function].follows => {
                    script.insert(0, Part::Pend(random.below(20_000_000)));
                }
                _ => {}
            }
        }
    }

    /// Begins some of the requests ahead, in two of three plans; the rest of a plan does not depend on that.
    fn add_ahead(&mut self) {
        let mut random = Random(self.seed ^ 0xa4ea_d000);
        let one_in = random.pick(&[0, 2, 4]);
        for step in &mut self.steps {
            if let What::Request { ahead, .. } = &mut step.what
                && one_in > 0
                && random.once_in(one_in)
            {
                let soon = random.pick(&[100_000, 3_000_000, 30_000_000]);
                let settled = (!random.once_in(5)).then(|| (random.below(soon), !random.once_in(4)));
                let path = [random.below(5) as u32, random.below(3) as u32];
                *ahead = Some(Ahead { root: random.below(6), path, settled });
            }
        }
    }

    fn what(&self, random: &mut Random, costs: &[u64]) -> What {
        let function = random.below(costs.len() as u64) as usize;
        match random.below(40) {
            0 => {
                let (concurrency_max, queue_max) = limits(random);
                What::Deploy { function, concurrency_max, queue_max, follows: false }
            }
            1 => What::Wake { worker: random.below(self.workers as u64) as usize },
            _ => What::Request {
                function,
                door: random.below(self.workers as u64) as usize,
                script: script(random, costs, function, 0),
                leaves: random.once_in(12).then(|| random.below(4 * costs[function])),
                no_memory: random.once_in(60),
                ahead: None,
            },
        }
    }
}

impl Function {
    fn random(random: &mut Random, tenants: u64) -> Function {
        let (concurrency_max, queue_max) = limits(random);
        Function {
            tenant: random.below(tenants) as u32,
            weight: random.pick(&[1, 1, 1, 5]),
            deadline: random.pick(&[2_000_000, 20_000_000, 1_000_000_000]),
            cpu_max: random.pick(&[1_000_000, 5_000_000, 1_000_000_000, 1_000_000_000]),
            concurrency_max,
            queue_max,
            follows: false,
        }
    }
}

impl Classed {
    /// As the scheduler is told.
    pub(crate) const fn settings(&self) -> Classes {
        let shares = if self.is_static { Shares::Static([4, 3, 2, 1]) } else { Shares::Dynamic };
        Classes { shares, believes: self.believes, limits: self.limits }
    }
}

/// Divides what computes here and there, with annotations of which many are wrong.
fn add_phases(random: &mut Random, script: &mut Vec<Part>) {
    for part in std::mem::take(script) {
        match part {
            Part::Run(time) if random.once_in(3) => {
                let first = random.below(time);
                let declared = random.once_in(2).then(|| random.pick(&[time - first, 10_000, 50_000_000]));
                script.extend([Part::Run(first), Part::Phase(declared), Part::Run(time - first)]);
            }
            Part::Call { function, script: mut callee, waits } => {
                add_phases(random, &mut callee);
                script.push(Part::Call { function, script: callee, waits });
            }
            part => script.push(part),
        }
    }
}

fn limits(random: &mut Random) -> (Option<usize>, Option<usize>) {
    let concurrency_max = random.once_in(3).then(|| random.range(1, 4) as usize);
    (concurrency_max, random.once_in(2).then(|| random.range(0, 6) as usize))
}

fn script(random: &mut Random, costs: &[u64], function: usize, depth: u32) -> Vec<Part> {
    let mut parts = Vec::new();
    for _ in 0..random.range(1, 3) {
        let long = if random.once_in(20) { 10 } else { 1 };
        parts.push(Part::Run(random.range(1, 2 * costs[function]) * long));
        match random.below(12) {
            0 => parts.push(Part::Sleep(random.below(3_000_000))),
            1 | 2 => parts.push(Part::Pend(random.below(3_000_000))),
            3 => parts.push(Part::Host(random.below(HOST_MAX))),
            4 if depth < 3 => {
                let function = random.below(costs.len() as u64) as usize;
                let script = script(random, costs, function, depth + 1);
                parts.push(Part::Call { function, script, waits: !random.once_in(4) });
            }
            _ => {}
        }
    }
    parts
}
