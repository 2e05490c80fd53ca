//! Carries out a script's directives in their order and reports each.
//!
//! Knows the meaning of directives, nothing of how modules are compiled or run: that is the [`engine`](crate::engine).

use crate::component::{self, Components, Wanted};
use crate::engine::{Failure, Instance, Module, Store};
use crate::reuse::{Expected, Reuse};
use crate::values::{self, Val};
use sledge_sandbox::TrapCode;
use sledge_tests::spec::{Event, Mode, Script};
use std::collections::HashMap;
use std::time::Instant;
use wast::parser::ParseBuffer;
use wast::token::Id;
use wast::{QuoteWat, Wast, WastDirective, WastExecute, WastInvoke, Wat};

/// What became of a directive.
pub(crate) enum Outcome {
    Pass,
    Fail { expected: String, got: String },
    Skip { reason: String },
}

/// Runs a script to its end, whatever its directives do.
///
/// # Errors
/// When there is no store to run it in.
pub(crate) fn run(script: &Script, mode: Mode, report: &mut dyn FnMut(Event)) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut runner = Runner {
        store: Store::new(mode, script)?,
        modules: HashMap::new(),
        instances: HashMap::new(),
        registered: HashMap::new(),
        current: None,
    };
    let spectest = runner.store.spectest().map_err(|failure| anyhow::anyhow!("spectest: {failure}"))?;
    runner.registered.insert("spectest".to_string(), spectest);
    if let Err(error) = run_text(&mut runner, &script.text, report) {
        report(Event::Begin { line: error.span().linecol_in(&script.text).0 + 1, what: "script".to_string() });
        report(Event::Fail { expected: "a script".to_string(), got: error.message() });
    }
    report(Event::Done {
        modules: runner.store.modules_compiled,
        compile_ms: millis(runner.store.compile_time),
        total_ms: millis(start.elapsed()),
    });
    Ok(())
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn run_text(runner: &mut Runner, text: &str, report: &mut dyn FnMut(Event)) -> Result<(), wast::Error> {
    let mut lexer = wast::lexer::Lexer::new(text);
    lexer.allow_confusing_unicode(true);
    let buffer = ParseBuffer::new_with_lexer(lexer)?;
    let wast = wast::parser::parse::<Wast<'_>>(&buffer)?;
    let mut reuse = Reuse::default();
    let mut components = Components::default();
    for directive in wast.directives {
        let line = directive.span().linecol_in(text).0 + 1;
        let what = keyword(&directive);
        report(Event::Begin { line, what: what.to_string() });
        report(match runner.directive(directive, (line, what), &mut reuse, &mut components) {
            Outcome::Pass => Event::Pass,
            Outcome::Fail { expected, got } => Event::Fail { expected, got },
            Outcome::Skip { reason } => Event::Skip { reason },
        });
    }
    reuse.run(&mut runner.store, report);
    Ok(())
}

fn keyword(directive: &WastDirective<'_>) -> &'static str {
    match directive {
        WastDirective::Module(_) => "module",
        WastDirective::ModuleDefinition(_) => "module definition",
        WastDirective::ModuleInstance { .. } => "module instance",
        WastDirective::AssertMalformed { .. } => "assert_malformed",
        WastDirective::AssertInvalid { .. } => "assert_invalid",
        WastDirective::AssertInvalidCustom { .. } => "assert_invalid_custom",
        WastDirective::AssertMalformedCustom { .. } => "assert_malformed_custom",
        WastDirective::Register { .. } => "register",
        WastDirective::Invoke(_) => "invoke",
        WastDirective::AssertTrap { exec: WastExecute::Wat(_), .. } => "assert_uninstantiable",
        WastDirective::AssertTrap { .. } => "assert_trap",
        WastDirective::AssertReturn { .. } => "assert_return",
        WastDirective::AssertExhaustion { .. } => "assert_exhaustion",
        WastDirective::AssertUnlinkable { .. } => "assert_unlinkable",
        WastDirective::AssertException { .. } => "assert_exception",
        WastDirective::AssertSuspension { .. } => "assert_suspension",
        WastDirective::Thread(_) => "thread",
        WastDirective::Wait { .. } => "wait",
    }
}

struct Runner {
    store: Store,
    /// Of `module definition`, by identifier.
    modules: HashMap<Option<String>, Module>,
    /// By identifier.
    instances: HashMap<String, Instance>,
    /// By the name under which others import from it.
    registered: HashMap<String, Instance>,
    /// The module that directives mean which name none.
    current: Option<Instance>,
}

impl Runner {
    /// Carries out one directive, and notes it if it can be repeated.
    fn directive<'a>(
        &mut self,
        directive: WastDirective<'a>,
        at: (usize, &'static str),
        reuse: &mut Reuse<'a>,
        components: &mut Components<'a>,
    ) -> Outcome {
        match directive {
            WastDirective::Module(component) if component::is_component(&component) => {
                self.current = None;
                components.component(&mut self.store, component)
            }
            WastDirective::ModuleDefinition(component) if component::is_component(&component) => {
                components.definition(&mut self.store, component)
            }
            WastDirective::ModuleInstance { instance, module, .. } if components.defines(module.map(|id| id.name())) => {
                components.instance(&mut self.store, instance.map(|id| id.name()), module.map(|id| id.name()))
            }
            WastDirective::AssertMalformed { module, message, .. } | WastDirective::AssertInvalid { module, message, .. }
                if component::is_component(&module) =>
            {
                components.refused(&mut self.store, module, message)
            }
            WastDirective::AssertTrap { exec: WastExecute::Wat(Wat::Component(component)), message, .. } => {
                components.uninstantiable(&mut self.store, Wat::Component(component), message)
            }
            WastDirective::AssertUnlinkable { module: Wat::Component(component), message, .. } => {
                components.unlinkable(&mut self.store, Wat::Component(component), message)
            }
            WastDirective::Module(module) => {
                components.forget_current();
                self.module(module, reuse)
            }
            WastDirective::ModuleDefinition(module) => self.definition(module),
            WastDirective::ModuleInstance { instance, module, .. } => self.instance_of(instance, module),
            WastDirective::AssertMalformed { module, message, .. } | WastDirective::AssertInvalid { module, message, .. } => {
                self.refused(module, message)
            }
            WastDirective::Register { name, module, .. } => match self.instance(module) {
                Ok(instance) => {
                    self.registered.insert(name.to_string(), instance);
                    reuse.remove(instance);
                    Outcome::Pass
                }
                Err(got) => fail("an instance", got),
            },
            WastDirective::Invoke(invoke) => self.ask(WastExecute::Invoke(invoke), Expected::AnyReturn, at, reuse, components),
            WastDirective::AssertReturn { exec, results, .. } => self.ask(exec, Expected::Return(results), at, reuse, components),
            WastDirective::AssertTrap { exec: WastExecute::Wat(module), message, .. } => {
                trapped(self.uninstantiable(module), message)
            }
            WastDirective::AssertTrap { exec, message, .. } => self.ask(exec, Expected::Trap(message), at, reuse, components),
            WastDirective::AssertExhaustion { call, message, .. } => {
                self.ask(WastExecute::Invoke(call), Expected::Trap(message), at, reuse, components)
            }
            WastDirective::AssertUnlinkable { module, message, .. } => self.unlinkable(module, message),
            WastDirective::AssertInvalidCustom { .. } | WastDirective::AssertMalformedCustom { .. } => {
                skip("custom sections are not checked: a module is valid whatever they hold")
            }
            WastDirective::AssertException { exec, .. } => self.ask(exec, Expected::Exception, at, reuse, components),
            WastDirective::AssertSuspension { .. } => skip("stack switching is not enabled"),
            WastDirective::Thread(_) | WastDirective::Wait { .. } => skip("threads are not enabled"),
        }
    }

    /// Asks something of an instance.
    fn ask<'a>(
        &mut self,
        exec: WastExecute<'a>,
        expected: Expected<'a>,
        at: (usize, &'static str),
        reuse: &mut Reuse<'a>,
        components: &mut Components<'a>,
    ) -> Outcome {
        if let WastExecute::Invoke(invoke) = &exec
            && components.has(invoke.module.map(|id| id.name()))
        {
            let wanted = match expected {
                Expected::AnyReturn => Wanted::Nothing,
                Expected::Return(results) => Wanted::Return(results),
                Expected::Trap(message) => Wanted::Trap(message),
                Expected::Exception => return skip("an exception of a component"),
            };
            return components.ask(&mut self.store, exec, wanted);
        }
        let outcome = expected.check(self.execute(&exec));
        let id = match &exec {
            WastExecute::Invoke(invoke) => invoke.module,
            WastExecute::Get { module, .. } => *module,
            WastExecute::Wat(_) => return outcome,
        };
        if let (Outcome::Pass, Ok(instance)) = (&outcome, self.instance(id)) {
            reuse.note(instance, at, exec, expected);
        }
        outcome
    }

    fn module(&mut self, mut module: QuoteWat<'_>, reuse: &mut Reuse<'_>) -> Outcome {
        self.current = None;
        let id = module.name().map(|id| id.name().to_string());
        if let Some(id) = &id {
            self.instances.remove(id);
        }
        let compiled = match encode(&mut module).and_then(|bytes| self.store.compile(&bytes)) {
            Ok(compiled) => compiled,
            Err(failure) => return failure.unexpected("a valid module"),
        };
        match self.store.instantiate(&compiled, &self.registered) {
            Ok(instance) => {
                self.current = Some(instance);
                reuse.add(instance, &compiled);
                if let Some(id) = id {
                    self.instances.insert(id, instance);
                }
                Outcome::Pass
            }
            Err(failure) => failure.unexpected("an instance"),
        }
    }

    fn definition(&mut self, mut module: QuoteWat<'_>) -> Outcome {
        let id = module.name().map(|id| id.name().to_string());
        match encode(&mut module).and_then(|bytes| self.store.compile(&bytes)) {
            Ok(compiled) => {
                self.modules.insert(None, compiled.clone());
                if id.is_some() {
                    self.modules.insert(id, compiled);
                }
                Outcome::Pass
            }
            // Nothing is made of a definition: what there is a limit on need not be possible.
            Err(Failure::Limit(_)) => skip("a module beyond a limit, as the specification allows, that is only to be valid"),
            Err(failure) => failure.unexpected("a valid module"),
        }
    }

    fn instance_of(&mut self, instance: Option<Id<'_>>, module: Option<Id<'_>>) -> Outcome {
        let Some(module) = self.modules.get(&module.map(|id| id.name().to_string())) else {
            return fail("a module definition", "none by that name".to_string());
        };
        match self.store.instantiate(module, &self.registered) {
            Ok(made) => {
                self.current = Some(made);
                if let Some(id) = instance {
                    self.instances.insert(id.name().to_string(), made);
                }
                Outcome::Pass
            }
            Err(failure) => failure.unexpected("an instance"),
        }
    }

    /// `assert_malformed` and `assert_invalid`. Messages are not compared: each implementation has its own. Malformed text is refused by the
    /// crate `wast`, which is awsm's own parser of text; everything else by awsm.
    fn refused(&mut self, mut module: QuoteWat<'_>, message: &str) -> Outcome {
        match encode(&mut module).and_then(|bytes| self.store.compile(&bytes)) {
            Err(Failure::Text(_) | Failure::Invalid(_) | Failure::Unsupported(_) | Failure::Limit(_)) => Outcome::Pass,
            Err(other) => other.unexpected(&format!("refusal: {message}")),
            Ok(_) => fail(format!("refusal: {message}"), "it was accepted".to_string()),
        }
    }

    fn unlinkable(&mut self, mut module: Wat<'_>, message: &str) -> Outcome {
        let made = module.encode().map_err(|error| Failure::Text(error.message()));
        let made = made.and_then(|bytes| self.store.compile(&bytes));
        match made.and_then(|module| self.store.instantiate(&module, &self.registered)) {
            Err(Failure::Unlinkable(_)) => Outcome::Pass,
            Err(other) => other.unexpected(&format!("link error: {message}")),
            Ok(_) => fail(format!("link error: {message}"), "it was linked".to_string()),
        }
    }

    fn instance(&self, id: Option<Id<'_>>) -> Result<Instance, String> {
        match id {
            None => self.current.ok_or_else(|| "no module: the one before failed".to_string()),
            Some(id) => self.instances.get(id.name()).copied().ok_or_else(|| format!("no module ${}: it failed", id.name())),
        }
    }

    fn execute(&mut self, exec: &WastExecute<'_>) -> Result<Vec<Val>, Failure> {
        match exec {
            WastExecute::Invoke(invoke) => self.invoke(invoke),
            WastExecute::Get { module, global, .. } => {
                let instance = self.instance(*module).map_err(Failure::Missing)?;
                Ok(vec![self.store.global(instance, global)?])
            }
            WastExecute::Wat(_) => Err(Failure::Unsupported("a module where a call is expected".to_string())),
        }
    }

    fn uninstantiable(&mut self, mut module: Wat<'_>) -> Result<Vec<Val>, Failure> {
        let bytes = module.encode().map_err(|error| Failure::Text(error.message()))?;
        let module = self.store.compile(&bytes)?;
        self.store.instantiate(&module, &self.registered)?;
        Ok(Vec::new())
    }

    fn invoke(&mut self, invoke: &WastInvoke<'_>) -> Result<Vec<Val>, Failure> {
        let instance = self.instance(invoke.module).map_err(Failure::Missing)?;
        let arguments = invoke.args.iter().map(values::argument).collect::<Result<Vec<_>, _>>().map_err(Failure::Unsupported)?;
        self.store.invoke(instance, invoke.name, &arguments)
    }
}

fn fail(expected: impl Into<String>, got: String) -> Outcome {
    Outcome::Fail { expected: expected.into(), got }
}

fn skip(reason: &str) -> Outcome {
    Outcome::Skip { reason: reason.to_string() }
}

fn encode(module: &mut QuoteWat<'_>) -> Result<Vec<u8>, Failure> {
    module.encode().map_err(|error| Failure::Text(error.message()))
}

impl Expected<'_> {
    /// Whether that is what was expected.
    pub(crate) fn check(&self, got: Result<Vec<Val>, Failure>) -> Outcome {
        match (self, got) {
            (Expected::AnyReturn, Ok(_)) => Outcome::Pass,
            (Expected::AnyReturn, Err(failure)) => failure.unexpected("a return"),
            (Expected::Return(results), Ok(got))
                if got.len() == results.len() && results.iter().zip(&got).all(|(e, g)| values::matches(e, *g)) =>
            {
                Outcome::Pass
            }
            (Expected::Return(results), Ok(got)) => fail(values::expectation(results), values::list(&got)),
            (Expected::Return(results), Err(failure)) => failure.unexpected(&values::expectation(results)),
            (Expected::Trap(message), got) => trapped(got, message),
            (Expected::Exception, Err(Failure::Trap(TrapCode::UncaughtException))) => Outcome::Pass,
            (Expected::Exception, Err(other)) => other.unexpected("an exception"),
            (Expected::Exception, Ok(values)) => fail("an exception", values::list(&values)),
        }
    }
}

/// Whether it trapped with the message that was asked for. As in the reference interpreter a prefix is enough, either way round:
/// scripts end some messages with the element's number (`uninitialized element 2`), older ones shorten them.
fn trapped(got: Result<Vec<Val>, Failure>, message: &str) -> Outcome {
    match got {
        Err(Failure::Trap(trap)) => {
            // The suite has other words for each kind of reference.
            let message = if message.ends_with(" reference") { "null reference" } else { message };
            let trap = trap.message();
            let is_prefix = trap.starts_with(message) || message.starts_with(trap);
            if is_prefix { Outcome::Pass } else { fail(format!("trap: {message}"), format!("trap: {trap}")) }
        }
        Err(other) => other.unexpected(&format!("trap: {message}")),
        Ok(values) => fail(format!("trap: {message}"), values::list(&values)),
    }
}

impl Failure {
    fn unexpected(self, expected: &str) -> Outcome {
        fail(expected, self.to_string())
    }
}
