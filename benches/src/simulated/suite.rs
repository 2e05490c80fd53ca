//! The suite of *MXFaaS*: nine functions, and four applications whose first function calls all others.
//!
//! Busy times are those of the paper's artifact; those of the applications' functions are ours. How often each asks the store is as in `examples/sharing`.

use super::calibration::{self, Run};
use super::model::{Between, Costs, Function, Nanoseconds, Settings, Varies};

/// By how much processor time varies.
const VARIES: Varies = Varies::By(0.2);
/// What a function of an application computes.
const CALLED: Nanoseconds = 300_000;

/// Something that is asked for: functions, of which some are the ones that clients ask.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// All functions.
    pub functions: Vec<Function>,
    /// Those that are asked, with their parts of all requests.
    pub asked: Vec<(usize, f64)>,
}

/// Names, busy times in microseconds, and accesses.
const FUNCTIONS: [(&str, Nanoseconds, usize); 9] = [
    ("lr-serv", 1_300, 3),
    ("cnn-serv", 135_000, 5),
    ("rnn-serv", 11_000, 4),
    ("ml-train", 2_363_000, 5),
    ("vid-conv", 24_000, 5),
    ("img-rotate", 52_000, 4),
    ("img-resize", 2_800, 4),
    ("create-order", 500, 8),
    ("pay-order", 500, 8),
];
/// Names, functions, and accesses of all of them together.
const APPLICATIONS: [(&str, usize, usize); 4] =
    [("ts-tickets", 15, 17), ("ts-trip-info", 24, 27), ("ts-left", 5, 10), ("ts-cancel", 4, 7)];
/// Functions that are asked at the same time, each for as much of the processors.
const TOGETHER: [&str; 6] = ["create-order", "pay-order", "lr-serv", "img-resize", "rnn-serv", "vid-conv"];

impl Program {
    fn alone(function: Function) -> Program {
        Program { name: function.name.clone(), functions: vec![function], asked: vec![(0, 1.0)] }
    }

    fn application(name: &str, count: usize, accesses: usize, wait: Nanoseconds) -> Program {
        let function = |index: usize| {
            // The first ones have one more.
            let own = accesses / count + usize::from(index < accesses % count);
            Function { varies: VARIES, ..Function::even(&format!("{name}-{index}"), CALLED, own, wait) }
        };
        let mut functions: Vec<Function> = (0..count).map(function).collect();
        let first = &mut functions[0];
        first.between.extend((1..count).map(Between::Calls));
        first.bursts = vec![CALLED / (first.between.len() as u64 + 1); first.between.len() + 1];
        Program { name: name.to_owned(), functions, asked: vec![(0, 1.0)] }
    }

    /// Processor time of the mean request, with what the server needs for it.
    pub fn busy(&self, settings: &Settings) -> Nanoseconds {
        let parts: f64 = self.asked.iter().map(|(_, part)| part).sum();
        let busy = self.asked.iter().map(|(function, part)| part / parts * self.busy_of(*function, settings) as f64);
        busy.sum::<f64>() as Nanoseconds + settings.costs.read + settings.costs.write
    }

    fn busy_of(&self, index: usize, settings: &Settings) -> Nanoseconds {
        let Function { bursts, between, initialise, .. } = &self.functions[index];
        let first = if settings.images { 0 } else { *initialise };
        let others = between.iter().map(|between| match between {
            Between::Waits(_) => settings.costs.trip,
            Between::Calls(called) => settings.costs.call + self.busy_of(*called, settings),
        });
        bursts.iter().sum::<Nanoseconds>() + others.sum::<Nanoseconds>() + first
    }

    /// How long the mean request waits for the store.
    pub fn idle(&self) -> Nanoseconds {
        let parts: f64 = self.asked.iter().map(|(_, part)| part).sum();
        self.asked.iter().map(|(function, part)| part / parts * self.idle_of(*function) as f64).sum::<f64>() as Nanoseconds
    }

    fn idle_of(&self, index: usize) -> Nanoseconds {
        let between = self.functions[index].between.iter();
        between
            .map(|between| match between {
                Between::Waits(wait) => *wait,
                Between::Calls(called) => self.idle_of(*called),
            })
            .sum()
    }

    /// How many bursts the mean request has.
    pub fn bursts(&self) -> usize {
        let all: usize = self.functions.iter().map(|function| function.bursts.len()).sum();
        all.div_ceil(self.asked.len())
    }
}

/// All programs with the store so far away; those that a run has measured without a load are as they were there.
pub fn programs(delay: Nanoseconds, run: Option<&Run>, costs: &Costs) -> Vec<Program> {
    let function = |(name, busy_us, accesses): &(&str, Nanoseconds, usize)| {
        let known = run.and_then(|run| measured(run, name, delay, costs));
        let function = known.unwrap_or_else(|| Function::even(name, busy_us * 1_000, *accesses, delay));
        Function { varies: VARIES, ..function }
    };
    let functions: Vec<Function> = FUNCTIONS.iter().map(function).collect();
    let together: Vec<Function> = functions.iter().filter(|function| TOGETHER.contains(&&*function.name)).cloned().collect();
    let part = |(index, function): (usize, &Function)| (index, 1.0 / function.bursts.iter().sum::<Nanoseconds>() as f64);
    let asked = together.iter().enumerate().map(part).collect();
    let together = Program { name: "six together".to_owned(), functions: together, asked };
    let applications = APPLICATIONS.iter().map(|(name, count, accesses)| Program::application(name, *count, *accesses, delay));
    functions.into_iter().map(Program::alone).chain([together]).chain(applications).collect()
}

/// What a run says of a function with the store as far away: what it does with its image, and what initialising it costs.
fn measured(run: &Run, name: &str, delay: Nanoseconds, costs: &Costs) -> Option<Function> {
    let program =
        run.programs.iter().find(|program| program.program == name && calibration::nanoseconds(program.delay_ms) == delay)?;
    let column = |name: &str| program.columns.iter().find(|column| column.column == name);
    let warm = column("prewarmed")?;
    let initialise = column("nightcore").map_or(0.0, |cold| cold.cpu_ms - warm.cpu_ms);
    let settings = Settings::new(run.workers, *costs);
    let function = calibration::function(program, warm, costs, settings.quantum);
    // Each client's own noise is left out: figures compare what servers do.
    Some(Function { initialise: calibration::nanoseconds(initialise), noise: Vec::new(), ..function })
}
