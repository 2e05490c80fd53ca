//! What executions are given: inputs that take the common path and come again as often as is wanted, or that are made to be predicted wrongly.

use std::collections::HashMap;
use std::fmt;

use anyhow::Result;
use serde::{Serialize, Serializer};
use serde_json::Value;
use speculation::graphs::{self, Graph, Pace, Split};
use speculation::{Inputs, Mix, Paths, Step};

use super::native::{Known, Native};
use super::place::Place;
use super::program::{GRAPHS_SEED, Program, Suite};
use crate::load::Expected;
use crate::random::Random;
use crate::sharing::load::Asked;

/// Inputs that come again, as many as the packages have.
const KEPT: u32 = 32;
/// Of a graph so many inputs' replies are computed natively: that takes as long as an execution computes.
const GRAPH_REPLIES: usize = 4;
/// So many executions take the common path, and then as many another one.
const BLOCK: usize = 40;
/// How far the seed of those is from that of the common path.
const OTHER_SEED: u64 = 500_000;
/// Different inputs of the railway, beside those that come again. Their number and that of works have no common divisor, so that they meet in all pairs.
const JOURNEYS: u32 = 397;
/// By so many units the work of new inputs differs: each function has the work in its input, which is new by that, too.
const VARIED: u32 = 400;

/// How often predictions can be right, of a hundred executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Hits {
    /// Each branch goes the common way so often.
    pub paths: u32,
    /// An input has come before so often.
    pub repeats: u32,
}

impl Hits {
    /// The paper's.
    pub fn of_paper(suite: Suite) -> Hits {
        match suite {
            Suite::FaasChain | Suite::Alibaba => Hits { paths: 90, repeats: 90 },
            Suite::TrainTicket => Hits { paths: 98, repeats: 96 },
        }
    }

    /// Both the same.
    pub fn both(percent: u32) -> Hits {
        Hits { paths: percent, repeats: percent }
    }
}

/// What inputs are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Right so often.
    Hits(Hits),
    /// Of workflows: the way changes as soon as it is learned, and no input comes again.
    Ways,
    /// Always the same input: all executions use the same keys.
    OneKey,
    /// No input comes again.
    Tables,
}

/// Those that are to do harm.
pub const POISON: [Kind; 3] = [Kind::Ways, Kind::OneKey, Kind::Tables];

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Hits(Hits { paths, repeats }) => f.pad(&format!("{paths} % paths, {repeats} % repeats")),
            Kind::Ways => f.pad("ways that change"),
            Kind::OneKey => f.pad("the same keys"),
            Kind::Tables => f.pad("inputs that never come again"),
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How much functions compute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Work {
    /// Units of [`speculation`] for a millisecond.
    pub units_per_ms: f64,
    /// Units of [`sharing`] for a millisecond.
    pub seals_per_ms: f64,
    /// How long each function is to compute, in milliseconds. Graphs have times of their own.
    pub busy_ms: f64,
    /// Hundredths of the graphs' times, for each millisecond of a read.
    pub graph_percent: f64,
    /// For how much of that functions of graphs compute.
    pub graph_busy: Split,
}

/// Shortest read for which graphs are made: a store that is nearer takes less time than they are to wait.
const READ_MS_MIN: f64 = 0.2;

impl Work {
    /// What graphs are told, if the store is there.
    fn pace(&self, place: Place, common_percent: u32) -> Pace {
        let read_ms = (place.delay().as_secs_f64() * 1e3).max(READ_MS_MIN);
        Pace {
            units_per_ms: self.units_per_ms.round() as u32,
            read_us: (read_ms * 1e3).round() as u32,
            time_percent: (self.graph_percent * read_ms).round().max(1.0) as u32,
            common_percent,
        }
    }

    fn units(&self) -> u64 {
        (self.units_per_ms * self.busy_ms).round() as u64
    }

    fn seals(&self) -> u64 {
        (self.seals_per_ms * self.busy_ms).round() as u64
    }
}

/// An execution that is asked for.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The request.
    pub asked: Asked,
    /// Which functions run.
    pub steps: Vec<Step>,
}

/// An endless series of executions of a program.
#[derive(Debug)]
pub struct Source {
    program: Program,
    drawn: Drawn,
    /// Those that come again.
    known: HashMap<String, Known>,
}

#[derive(Debug)]
enum Drawn {
    /// In turn so many of each.
    Turns(Box<[Inputs; 2]>, usize),
    Same(String),
    Mixed(Mixed),
}

/// Inputs that come again, and new ones between them.
#[derive(Debug)]
struct Mixed {
    random: Random,
    repeats: u32,
    kept: Vec<String>,
    fresh: Fresh,
    /// How many new ones there were.
    number: u32,
}

/// Where new inputs come from.
#[derive(Debug)]
enum Fresh {
    Workflow { inputs: Box<Inputs>, work: u64 },
    Tickets { name: &'static str, work: u64 },
    Graph { graph: Box<Graph>, pace: Pace },
}

fn ticket(name: &str, number: u32, work: u64) -> String {
    sharing::body(name, number, u32::try_from(work).unwrap_or(sharing::WORK_MAX).min(sharing::WORK_MAX))
}

impl Fresh {
    /// Those that come again, which are the first.
    fn kept(&mut self) -> Vec<String> {
        let number = |number: u32| match self {
            Fresh::Workflow { inputs, .. } => inputs.next().unwrap_or_default(),
            Fresh::Tickets { name, work } => ticket(name, number, *work),
            Fresh::Graph { graph, pace } => graph.body(u64::from(number), *pace),
        };
        (0..KEPT).map(number).collect()
    }

    fn next(&mut self, number: u32) -> Result<String> {
        Ok(match self {
            Fresh::Workflow { inputs, work } => {
                let mut input: Value = serde_json::from_str(&inputs.next().unwrap_or_default())?;
                input["work"] = varied(*work, number).into();
                input.to_string()
            }
            Fresh::Tickets { name, work } => ticket(name, KEPT + number % JOURNEYS, varied(*work, number)),
            Fresh::Graph { graph, pace } => graph.body(u64::from(KEPT) + u64::from(number), *pace),
        })
    }
}

impl Mixed {
    fn new(mut fresh: Fresh, repeats: u32, seed: u64) -> Mixed {
        Mixed { random: Random(seed), repeats, kept: fresh.kept(), fresh, number: 0 }
    }

    fn next(&mut self) -> Result<String> {
        if self.random.below(100) < u64::from(self.repeats) {
            let place = self.random.below(self.kept.len() as u64) as usize;
            return Ok(self.kept[place].clone());
        }
        self.number += 1;
        self.fresh.next(self.number - 1)
    }
}

/// Work that is about as much as that of inputs which come again, and another one for each new input for a long time.
fn varied(work: u64, number: u32) -> u64 {
    let (offset, half) = (u64::from(number % VARIED), u64::from(VARIED / 2));
    if offset < half && work > half { work - 1 - offset } else { work + 1 + offset % half }
}

impl Source {
    /// The same series for the same seed.
    pub fn new(program: Program, kind: Kind, place: Place, work: &Work, seed: u64) -> Source {
        let Hits { paths, repeats } = if let Kind::Hits(hits) = kind { hits } else { Hits { paths: 100, repeats: 0 } };
        let fresh = match program {
            Program::Workflow(application) => {
                let paths = match kind {
                    Kind::Hits(_) => Paths::Branches { percent: paths },
                    Kind::Tables => Paths::Natural,
                    Kind::Ways | Kind::OneKey => Paths::Whole { percent: 100 },
                };
                let mix = |paths| Mix { paths, repeats_percent: 0, work: work.units() };
                if kind == Kind::Ways {
                    // Each with numbers of orders, bookings and transfers of its own: what the other writes under the same number while an execution runs would be in its reply.
                    let both = [(seed, 100), (seed + OTHER_SEED, 0)];
                    let both = both.map(|(seed, percent)| Inputs::new(application, seed, mix(Paths::Whole { percent })));
                    return Source { program, drawn: Drawn::Turns(Box::new(both), 0), known: HashMap::new() };
                }
                Fresh::Workflow { inputs: Box::new(Inputs::new(application, seed, mix(paths))), work: work.units() }
            }
            Program::Tickets(name) => Fresh::Tickets { name, work: work.seals() },
            Program::Graph(number) => Fresh::Graph {
                graph: Box::new(graphs::five_with(GRAPHS_SEED, work.graph_busy)[number].clone()),
                pace: work.pace(place, paths),
            },
        };
        let mut mixed = Mixed::new(fresh, repeats, seed);
        let drawn = if kind == Kind::OneKey { Drawn::Same(mixed.kept.swap_remove(0)) } else { Drawn::Mixed(mixed) };
        Source { program, drawn, known: HashMap::new() }
    }

    fn body(&mut self) -> Result<String> {
        match &mut self.drawn {
            Drawn::Turns(both, number) => {
                let turn = *number / BLOCK % 2;
                *number += 1;
                Ok(both[turn].next().unwrap_or_default())
            }
            Drawn::Same(body) => Ok(body.clone()),
            Drawn::Mixed(mixed) => mixed.next(),
        }
    }

    /// The next ones, with what they have to reply.
    ///
    /// # Errors
    ///
    /// If one fails natively.
    pub fn take(&mut self, count: usize, native: &mut Native) -> Result<Vec<Execution>> {
        (0..count).map(|_| self.execution(native)).collect()
    }

    fn execution(&mut self, native: &mut Native) -> Result<Execution> {
        let body = self.body()?;
        let Known { reply, steps } = match self.known.get(&body) {
            Some(known) => known.clone(),
            None => {
                let replies = match (&self.drawn, self.program) {
                    (Drawn::Mixed(mixed), Program::Graph(_)) => mixed.kept[..GRAPH_REPLIES].contains(&body),
                    _ => true,
                };
                let known = native.execute(self.program, &body, replies)?;
                let comes_again = match &self.drawn {
                    Drawn::Mixed(mixed) => mixed.kept.contains(&body),
                    Drawn::Same(_) => true,
                    Drawn::Turns(..) => false,
                };
                if comes_again {
                    self.known.insert(body.clone(), known.clone());
                }
                known
            }
        };
        let asked = Asked {
            path: self.program.path(),
            body: body.into_bytes(),
            expected: reply.map_or(Expected::Status(200), Expected::Body),
        };
        Ok(Execution { asked, steps })
    }
}

/// The requests alone.
pub fn requests(executions: &[Execution]) -> Vec<Asked> {
    executions.iter().map(|execution| execution.asked.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;

    /// About as a machine has it, and next to none, for what runs natively.
    const SPLIT: Split = Split { callers_percent: 10, leaves_percent: 32 };
    const WORK: Work =
        Work { units_per_ms: 10_000.0, seals_per_ms: 10_000.0, busy_ms: 0.2, graph_percent: 20.0, graph_busy: SPLIT };
    const LITTLE: Work = Work { units_per_ms: 10.0, seals_per_ms: 10.0, ..WORK };
    const PLACE: Place = Place::Redis(Duration::from_millis(1));

    fn source(name: &str, kind: Kind, work: &Work) -> Source {
        Source::new(Program::named(name).unwrap(), kind, PLACE, work, 3)
    }

    fn bodies(source: &mut Source, count: usize) -> Vec<String> {
        (0..count).map(|_| source.body().unwrap()).collect()
    }

    #[test]
    fn inputs_come_again_as_often_as_is_wanted() {
        for program in Program::all() {
            for percent in [100, 70, 0] {
                let all = bodies(&mut source(program.name(), Kind::Hits(Hits::both(percent)), &WORK), 1_000);
                let different = all.iter().collect::<HashSet<_>>().len();
                let expected = 10 * (100 - percent as usize) + if percent == 0 { 0 } else { KEPT as usize };
                assert!(different.abs_diff(expected) <= 60, "{} {percent}: {different} of {expected}", program.name());
            }
        }
    }

    /// Natural inputs of a login are few, and functions are asked for less than their workflow.
    #[test]
    fn what_is_new_is_new_to_each_function() {
        for name in ["login", "ts-left"] {
            let mut source = source(name, Kind::Hits(Hits::both(50)), &WORK);
            let mut works = HashMap::new();
            for body in bodies(&mut source, 400) {
                let body: Value = serde_json::from_str(&body).unwrap();
                *works.entry(body["work"].as_u64().unwrap()).or_insert(0_usize) += 1;
            }
            let most = works.values().max().unwrap();
            assert!((150..250).contains(most) && works.len() > 150, "{name}: {works:?}");
        }
        assert_eq!([0, 199, 200, 399, 400].map(|number| varied(2_000, number)), [1_999, 1_800, 2_001, 2_200, 1_999]);
        assert_eq!([0, 200].map(|number| varied(0, number)), [1, 1]);
    }

    #[test]
    fn ways_change_as_soon_as_they_are_learned() {
        let mut native = Native::new().unwrap();
        let all = source("login", Kind::Ways, &LITTLE).take(4 * BLOCK, &mut native).unwrap();
        let last = |execution: &Execution| execution.steps.last().unwrap().function.clone();
        for (number, execution) in all.iter().enumerate() {
            let expected = if (number / BLOCK).is_multiple_of(2) { "login-welcome" } else { "login-refuse" };
            assert_eq!(last(execution), expected, "{number}");
        }
    }

    /// Executions of several clients run at the same time, and what another one has written in between is in a reply.
    #[test]
    fn no_two_executions_write_under_the_same_number() {
        for (name, number) in [("online-purchase", "order"), ("banking", "transfer"), ("hotel-book", "booking")] {
            for kind in [Kind::Ways, Kind::Tables] {
                let mut numbers = HashSet::new();
                for body in bodies(&mut source(name, kind, &WORK), 6 * BLOCK) {
                    let body: Value = serde_json::from_str(&body).unwrap();
                    assert!(numbers.insert(body[number].as_u64().unwrap()), "{name}, {kind}: {body}");
                }
            }
        }
    }

    #[test]
    fn one_key_is_one_input_and_tables_never_see_one_again() {
        for name in ["banking", "ts-cancel", "graph-12"] {
            let different = |kind| bodies(&mut source(name, kind, &WORK), 500).into_iter().collect::<HashSet<_>>().len();
            assert_eq!((different(Kind::OneKey), different(Kind::Tables)), (1, 500), "{name}");
        }
    }

    #[test]
    fn graphs_wait_for_a_few_reads_wherever_the_store_is() {
        for (ms, percent) in [(0.0, 4), (0.2, 4), (1.0, 20), (5.0, 100)] {
            let pace = WORK.pace(Place::Redis(Duration::from_secs_f64(ms / 1e3)), 90);
            assert_eq!(pace.time_percent, percent, "{ms}");
        }
        assert_eq!(WORK.pace(Place::Embedded, 90).read_us, 200);
    }

    #[test]
    fn replies_are_known_of_what_is_computed() {
        let mut native = Native::new().unwrap();
        for (name, all) in [("hotel-book", true), ("ts-left", true), ("graph-12", false)] {
            let some = source(name, Kind::Hits(Hits::both(50)), &LITTLE).take(80, &mut native).unwrap();
            let known = some.iter().filter(|one| matches!(one.asked.expected, Expected::Body(_))).count();
            assert!(if all { known == 80 } else { (1..40).contains(&known) }, "{name}: {known}");
        }
    }
}
