//! Sandboxes that are used again: whatever a script asks of a module of its own is asked once more of sandboxes from a pool, in several rounds,
//! between which the sandbox is made dirty, given back and taken again. What a reset forgets changes an answer.
//!
//! One pool serves a whole script and keeps one idle sandbox, so that each module's sandboxes follow those of the one before.

use crate::engine::{Failure, Instance, Module, Store};
use crate::script::Outcome;
use crate::values;
use sledge_sandbox::{Pool, Sandbox, Template};
use sledge_tests::spec::Event;
use wast::{WastExecute, WastRet};

/// The first round's sandbox is new, the second one's has been looked through for what changed, the third one's was restored by what is known.
const ROUNDS: usize = 3;

/// How much of a memory is overwritten between rounds, from its beginning and from its end.
const DIRTY_BYTES: u64 = 1 << 16;

/// What a directive expects.
#[derive(Debug)]
pub(crate) enum Expected<'a> {
    Return(Vec<WastRet<'a>>),
    AnyReturn,
    Trap(&'a str),
    Exception,
}

impl Expected<'_> {
    fn is_return(&self) -> bool {
        matches!(self, Expected::Return(_) | Expected::AnyReturn)
    }
}

/// A directive that can be repeated.
struct Step<'a> {
    line: usize,
    what: &'static str,
    exec: WastExecute<'a>,
    expected: Expected<'a>,
}

/// A module, and what was asked of its instance.
struct Asked<'a> {
    instance: Instance,
    module: Module,
    steps: Vec<Step<'a>>,
}

/// The modules of a script that depend on no other.
#[derive(Default)]
pub(crate) struct Reuse<'a> {
    asked: Vec<Asked<'a>>,
}

impl<'a> Reuse<'a> {
    /// Adds an instance that nothing else uses.
    pub(crate) fn add(&mut self, instance: Instance, module: &Module) {
        if Store::stands_alone(module) {
            self.asked.push(Asked { instance, module: module.clone(), steps: Vec::new() });
        }
    }

    /// Others may use this one from now on.
    pub(crate) fn remove(&mut self, instance: Instance) {
        self.asked.retain(|asked| asked.instance != instance);
    }

    /// A directive was carried out.
    pub(crate) fn note(&mut self, instance: Instance, at: (usize, &'static str), exec: WastExecute<'a>, expected: Expected<'a>) {
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.instance == instance) {
            asked.steps.push(Step { line: at.0, what: at.1, exec, expected });
        }
    }

    /// Asks it all again.
    pub(crate) fn run(self, store: &mut Store, report: &mut dyn FnMut(Event)) {
        let mut pool = Pool::new();
        let mut directives = 0;
        for asked in &self.asked {
            // Where nothing ever returns, no sandbox is given back.
            if asked.steps.iter().any(|step| step.expected.is_return()) {
                directives += module(store, &mut pool, asked, report);
            }
        }
        report(Event::Reused { directives, rounds: ROUNDS });
    }
}

/// All rounds of one module; how many directives each has.
fn module(store: &mut Store, pool: &mut Pool, asked: &Asked<'_>, report: &mut dyn FnMut(Event)) -> usize {
    let mut fail = |at: &Step<'_>, expected: String, got: String| {
        report(Event::Begin { line: at.line, what: format!("{} on a reused sandbox", at.what) });
        report(Event::Fail { expected, got });
    };
    let first = &asked.steps[0];
    let template = match store.template(&asked.module) {
        Ok(template) => template,
        Err(failure) => {
            fail(first, "a template".to_string(), failure.to_string());
            return 0;
        }
    };
    for round in 0..ROUNDS {
        if round > 0 && pool.idle() != 1 {
            fail(first, "a sandbox in the pool".to_string(), format!("none after round {round}"));
            break;
        }
        match one_round(store, pool, &template, &asked.steps) {
            Ok(true) => {}
            Ok(false) => return 0,
            Err((step, expected, got)) => {
                fail(step, expected, format!("{got}, in round {} of {ROUNDS}", round + 1));
                break;
            }
        }
    }
    // So that the pool's one place is the next module's.
    pool.forget(&template);
    asked.steps.len()
}

type Differs<'s, 'a> = (&'s Step<'a>, String, String);

/// Whether the sandbox went back to the pool.
fn one_round<'s, 'a>(
    store: &mut Store,
    pool: &mut Pool,
    template: &Template,
    steps: &'s [Step<'a>],
) -> Result<bool, Differs<'s, 'a>> {
    let sandbox = store.take(pool, template);
    let mut sandbox = sandbox.map_err(|failure| (&steps[0], "a sandbox".to_string(), failure.to_string()))?;
    for step in steps {
        if let Outcome::Fail { expected, got } = step.run(store, &mut sandbox) {
            return Err((step, expected, got));
        }
    }
    // What has trapped is not used again, so the last call must be one that returns, as it did before or not.
    let mut returning = steps.iter().rev().filter(|step| step.expected.is_return() && step.is_call());
    let returns = returning.any(|step| matches!(step.run(store, &mut sandbox), Outcome::Pass));
    if returns {
        make_dirty(&mut sandbox);
        pool.put(sandbox);
    }
    Ok(returns)
}

impl Step<'_> {
    fn is_call(&self) -> bool {
        matches!(self.exec, WastExecute::Invoke(_))
    }

    fn run(&self, store: &mut Store, sandbox: &mut Sandbox) -> Outcome {
        let got = match &self.exec {
            WastExecute::Invoke(invoke) => {
                let arguments = invoke.args.iter().map(values::argument).collect::<Result<Vec<_>, _>>();
                let arguments = arguments.map_err(Failure::Unsupported);
                arguments.and_then(|arguments| store.invoke_in(sandbox, invoke.name, &arguments))
            }
            WastExecute::Get { global, .. } => Store::global_in(sandbox, global).map(|value| vec![value]),
            WastExecute::Wat(_) => Err(Failure::Unsupported("a module".to_string())),
        };
        self.expected.check(got)
    }
}

/// Overwrites the main memory's ends, as the host does.
fn make_dirty(sandbox: &mut Sandbox) {
    let Some(mut memory) = sandbox.main_instance().and_then(|instance| sandbox.memory(instance)) else { return };
    let bytes = memory.len().min(DIRTY_BYTES);
    for address in [0, memory.len() - bytes] {
        if let Ok(slice) = memory.slice_mut(address, bytes) {
            slice.fill(0xa5);
        }
    }
}
