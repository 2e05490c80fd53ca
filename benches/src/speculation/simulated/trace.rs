//! What executions do, as the same functions do it natively: which run needs what of which other one, and what can be known of that before.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context, Result};
use serde_json::Value;
use speculation::{Application, Step};

use super::super::program::Program;
use super::super::source::Execution;
use super::ways::Ways;

/// Functions that run on a wrong way at most.
const WRONG_MAX: usize = 6;

/// How what goes ahead comes to a run from the one before it.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// The way is known: there is no choice, or it was predicted right.
    Right,
    /// These would run in its place.
    Wrong(Vec<Run>),
    /// Nothing is predicted.
    Unknown,
}

/// A read of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The last run before this one that writes it, in the same execution.
    pub from: Option<usize>,
}

/// A run of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its function.
    pub function: String,
    /// How many functions wait for it.
    pub depth: usize,
    /// Its reads of different keys.
    pub reads: Vec<Read>,
    /// Whether it writes.
    pub writes: bool,
    /// Runs whose answers are in its input.
    pub needs: Vec<usize>,
    /// How it is come to where answers are known.
    pub by_answers: Way,
    /// How it is come to where only the ways of earlier executions are known.
    pub by_paths: Way,
    /// Whether all that it reads is as it was when the same execution ran before.
    pub unchanged: bool,
    /// What it computes, to the mean of its function.
    pub weight: f64,
}

/// An execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// In the order of the program.
    pub runs: Vec<Run>,
    /// Whether it ran before: what its functions answer, and what they call, is known.
    pub known: bool,
}

impl Trace {
    /// Whether its functions call each other.
    pub fn is_tree(&self) -> bool {
        self.runs.iter().any(|run| run.depth > 0)
    }

    /// Where a run and all that it calls end.
    pub fn end_of(&self, run: usize) -> usize {
        let depth = self.runs[run].depth;
        run + 1 + self.runs[run + 1..].iter().take_while(|below| below.depth > depth).count()
    }
}

/// What a definition says of its tasks, by their functions.
#[derive(Debug, Default)]
struct Tasks {
    /// The fields of the execution that are in a function's input, and that which it sets.
    fields: HashMap<String, (Vec<String>, Option<String>)>,
    /// Functions behind which there is a choice.
    chosen: BTreeSet<String>,
}

/// The first part of a path in the execution's data.
fn field(path: &str) -> Option<String> {
    Some(path.strip_prefix("$.")?.split('.').next()?.to_owned())
}

impl Tasks {
    fn of(application: Application) -> Result<Tasks> {
        let definition: Value = serde_json::from_str(application.definition())?;
        let states = definition["States"].as_object().context("a definition without states")?;
        let mut tasks = Tasks::default();
        for state in states.values() {
            let Some(function) = state["Resource"].as_str().and_then(|resource| resource.strip_prefix("fn:")) else { continue };
            let given = state["Parameters"].as_object().into_iter().flat_map(|all| all.values());
            let needs = given.filter_map(|path| field(path.as_str()?)).collect();
            let sets = state["ResultPath"].as_str().and_then(field);
            tasks.fields.insert(function.to_owned(), (needs, sets));
            if state["Next"].as_str().is_some_and(|next| states[next]["Type"] == "Choice") {
                tasks.chosen.insert(function.to_owned());
            }
        }
        Ok(tasks)
    }

    /// Which of the runs before it have set what a function is given.
    fn needs(&self, before: &[Step], function: &str) -> Vec<usize> {
        let Some((needs, _)) = self.fields.get(function) else { return Vec::new() };
        let sets =
            |step: &Step, name: &String| self.fields.get(&step.function).is_some_and(|(_, sets)| sets.as_ref() == Some(name));
        needs.iter().filter_map(|name| before.iter().rposition(|step| sets(step, name))).collect()
    }
}

/// What became of an execution with some body when it ran last.
struct Last {
    functions: Vec<String>,
    /// The versions of what its functions have read.
    read: Vec<Vec<u64>>,
}

/// Follows executions in their order.
struct Reader {
    tasks: Tasks,
    ways: Ways,
    last: HashMap<Vec<u8>, Last>,
    /// How often what is under a key was changed.
    versions: HashMap<String, u64>,
    /// What a function did when it ran last.
    likely: BTreeMap<String, Run>,
}

/// What these executions do, in their order, of which the first `learned` only tell what is known of the others.
///
/// # Errors
///
/// If a definition cannot be read.
pub fn traces(program: Program, executions: &[Execution], learned: usize) -> Result<Vec<Trace>> {
    let tasks = if let Program::Workflow(application) = program { Tasks::of(application)? } else { Tasks::default() };
    let (ways, last, versions) = (Ways::default(), HashMap::new(), HashMap::new());
    let mut reader = Reader { tasks, ways, last, versions, likely: BTreeMap::new() };
    let all: Vec<Trace> = executions.iter().map(|execution| reader.read(execution)).collect();
    let mut traces: Vec<Trace> = all.into_iter().skip(learned).collect();
    if let Program::Graph(_) = program {
        weigh(&mut traces, &executions[learned..])?;
    }
    Ok(traces)
}

/// What each function of a graph computes stands in its body: one stub has many of them.
fn weigh(traces: &mut [Trace], executions: &[Execution]) -> Result<()> {
    let mut sums: HashMap<String, (f64, f64)> = HashMap::new();
    for (trace, execution) in traces.iter_mut().zip(executions) {
        let body: Value = serde_json::from_slice(&execution.asked.body)?;
        let mut works = HashMap::new();
        note_works(&body["node"], &mut works);
        for (run, step) in trace.runs.iter_mut().zip(&execution.steps) {
            let node = step.reads.first().and_then(|key| key.split('/').nth(1)).and_then(|node| node.parse::<u64>().ok());
            run.weight = node.and_then(|node| works.get(&node)).copied().context("a function that is not in its graph")?;
            let (sum, count) = sums.entry(run.function.clone()).or_default();
            (*sum, *count) = (*sum + run.weight, *count + 1.0);
        }
    }
    for run in traces.iter_mut().flat_map(|trace| &mut trace.runs) {
        let (sum, count) = sums[&run.function];
        run.weight *= count / sum.max(f64::MIN_POSITIVE);
    }
    Ok(())
}

fn note_works(node: &Value, works: &mut HashMap<u64, f64>) {
    if let (Some(number), Some(work)) = (node["node"].as_u64(), node["work"].as_f64()) {
        works.insert(number, work);
    }
    node["calls"].as_array().into_iter().flatten().for_each(|edge| note_works(&edge["to"], works));
}

impl Reader {
    fn read(&mut self, execution: &Execution) -> Trace {
        let steps = &execution.steps;
        let last = self.last.remove(&execution.asked.body);
        let mut runs: Vec<Run> = Vec::with_capacity(steps.len());
        let mut read = Vec::with_capacity(steps.len());
        for (at, step) in steps.iter().enumerate() {
            let mut seen = BTreeSet::new();
            let keys: Vec<&String> = step.reads.iter().filter(|key| seen.insert(key.as_str())).collect();
            let from = |key: &String| steps[..at].iter().rposition(|earlier| earlier.writes.contains(key));
            let reads: Vec<Read> = keys.iter().map(|key| Read { from: from(key) }).collect();
            // What the same execution has written is the same again, if what wrote it is.
            let version = |key: &&String| match from(key) {
                Some(_) => 0,
                None => self.versions.get(key.as_str()).copied().unwrap_or_default(),
            };
            let versions: Vec<u64> = keys.iter().map(version).collect();
            let writers = || reads.iter().filter_map(|read| read.from);
            let was = last.as_ref().filter(|last| last.functions.get(at) == Some(&step.function));
            let unchanged = was.is_some_and(|last| last.read[at] == versions) && writers().all(|from| runs[from].unchanged);
            let run = Run {
                function: step.function.clone(),
                depth: step.depth,
                reads,
                writes: !step.writes.is_empty(),
                needs: self.tasks.needs(&steps[..at], &step.function),
                by_answers: self.by_answers(last.as_ref(), steps, at),
                by_paths: self.by_paths(steps, at),
                unchanged,
                weight: 1.0,
            };
            for key in &step.writes {
                *self.versions.entry(key.clone()).or_default() += 1;
            }
            read.push(versions);
            runs.push(run);
        }
        let functions: Vec<String> = steps.iter().map(|step| step.function.clone()).collect();
        self.ways.went(&functions);
        self.likely.extend(runs.iter().map(|run| (run.function.clone(), without_others(run))));
        let known = last.is_some();
        self.last.insert(execution.asked.body.clone(), Last { functions, read });
        Trace { runs, known }
    }

    fn by_answers(&self, last: Option<&Last>, steps: &[Step], at: usize) -> Way {
        let Some(before) = at.checked_sub(1).filter(|before| self.tasks.chosen.contains(&steps[*before].function)) else {
            return Way::Right;
        };
        let Some(last) = last.filter(|last| last.functions.get(before) == Some(&steps[before].function)) else {
            return Way::Unknown;
        };
        if last.functions.get(at) == Some(&steps[at].function) {
            return Way::Right;
        }
        Way::Wrong(last.functions[at..].iter().take(WRONG_MAX).filter_map(|name| self.likely.get(name).cloned()).collect())
    }

    fn by_paths(&self, steps: &[Step], at: usize) -> Way {
        let Some(before) = at.checked_sub(1).filter(|before| self.tasks.chosen.contains(&steps[*before].function)) else {
            return Way::Right;
        };
        let mut path: Vec<String> = steps[..=before].iter().map(|step| step.function.clone()).collect();
        let Some(next) = self.ways.next(&path) else { return Way::Unknown };
        if next == steps[at].function {
            return Way::Right;
        }
        let mut wrong = Vec::new();
        let mut next = Some(next);
        while let Some(run) = next.and_then(|name| self.likely.get(&name)).filter(|_| wrong.len() < WRONG_MAX) {
            wrong.push(run.clone());
            path.push(run.function.clone());
            next = self.ways.next(&path);
        }
        Way::Wrong(wrong)
    }
}

/// The run alone: it reads the store, and needs no answer.
fn without_others(run: &Run) -> Run {
    let reads = run.reads.iter().map(|_| Read { from: None }).collect();
    Run { reads, needs: Vec::new(), by_answers: Way::Right, by_paths: Way::Right, ..run.clone() }
}

#[cfg(test)]
mod tests {
    use speculation::graphs::Split;

    use super::super::super::USUAL;
    use super::super::super::native::Native;
    use super::super::super::source::{Hits, Kind, Source, Work};
    use super::*;

    const SPLIT: Split = Split { callers_percent: 10, leaves_percent: 32 };
    const WORK: Work = Work { units_per_ms: 50.0, seals_per_ms: 50.0, busy_ms: 0.2, graph_percent: 20.0, graph_busy: SPLIT };

    fn of(name: &str, percent: u32) -> Vec<Trace> {
        let program = Program::named(name).unwrap();
        let mut source = Source::new(program, Kind::Hits(Hits::both(percent)), USUAL, &WORK, 5);
        let executions = source.take(160, &mut Native::new().unwrap()).unwrap();
        traces(program, &executions, 100).unwrap()
    }

    fn run<'a>(trace: &'a Trace, function: &str) -> &'a Run {
        trace.runs.iter().find(|run| run.function == function).unwrap()
    }

    #[test]
    fn an_execution_is_known_when_it_comes_again_and_what_it_changes_is_not_left_out() {
        let all = of("banking", 100);
        assert_eq!(all.len(), 60);
        let known = all.iter().filter(|trace| trace.known).count();
        assert!(known > 50, "{known}");
        for trace in all.iter().filter(|trace| trace.known && trace.runs.len() == 4) {
            assert!(run(trace, "bank-login").unchanged && run(trace, "bank-check").unchanged);
            // Its own transfer has changed the balance.
            assert!(!run(trace, "bank-transfer").unchanged && run(trace, "bank-transfer").writes);
            assert!(trace.runs.iter().all(|run| run.by_answers == Way::Right));
        }
    }

    #[test]
    fn inputs_say_whose_answers_are_in_them_and_keys_who_writes_them() {
        let all = of("hotel-book", 100);
        let trace = all.iter().find(|trace| trace.runs.len() == 6).unwrap();
        let names: Vec<&str> = trace.runs.iter().map(|run| run.function.as_str()).collect();
        assert_eq!(names, ["hotel-search", "hotel-rank", "hotel-check", "hotel-reserve", "hotel-pay", "hotel-confirm"]);
        let needs: Vec<Vec<usize>> = trace.runs.iter().map(|run| run.needs.clone()).collect();
        assert_eq!(needs, [vec![], vec![0], vec![1], vec![1, 1], vec![], vec![4]]);
        assert!(trace.runs[4].reads.iter().any(|read| read.from == Some(3)), "{:?}", trace.runs[4]);
    }

    #[test]
    fn ways_are_right_as_often_as_is_wanted() {
        let all = of("login", 70);
        let share = |of: &dyn Fn(&Run) -> bool| all.iter().filter(|trace| of(&trace.runs[1])).count() as f64 / 60.0;
        let right = share(&|run| run.by_paths == Way::Right);
        assert!((0.5..0.9).contains(&right), "{right}");
        let wrong = all.iter().find_map(|trace| if let Way::Wrong(runs) = &trace.runs[1].by_paths { Some(runs) } else { None });
        assert_eq!(wrong.map(Vec::len), Some(1));
        assert!(all.iter().any(|trace| !trace.known));
    }

    #[test]
    fn functions_of_a_graph_weigh_what_they_compute() {
        let all = of("graph-12", 100);
        let of = |depth: usize| all.iter().flat_map(|trace| &trace.runs).filter(move |run| run.depth == depth);
        let mean = of(1).map(|run| run.weight).sum::<f64>() / of(1).count() as f64;
        assert!((mean - 1.0).abs() < 1e-6, "{mean}");
        assert!(of(1).any(|run| run.weight > 1.2) && of(1).any(|run| run.weight < 0.8));
    }
}
