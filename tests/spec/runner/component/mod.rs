//! Components in scripts.
//!
//! What a script asks of a component's instance is asked of a command that holds the component: see [`composed`]. Every directive has a command of its own, which
//! makes the calls of the directives before it once more, in a fresh sandbox.

mod composed;
mod types;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use awsm_abi::component::Violation;
use sledge_sandbox::TrapCode;
use wast::component::WastVal;
use wast::core::{NanPattern, WastArgCore, WastRetCore};
use wast::{QuoteWat, WastArg, WastExecute, WastInvoke, WastRet, Wat};

use self::composed::{Call, Definition};
use crate::engine::{Failure, Store};
use crate::script::Outcome;

/// The components of a script.
#[derive(Default)]
pub(crate) struct Components<'a> {
    host: Option<Definition>,
    /// By identifier; the last one has none.
    definitions: BTreeMap<Option<String>, Definition>,
    instances: Vec<Instance<'a>>,
    /// Indices of instances by identifier; the last one has none.
    named: BTreeMap<Option<String>, usize>,
    /// What was refused by name, and is not asked anything.
    left_out: BTreeSet<Option<String>>,
}

/// What was asked of an instance.
struct Instance<'a> {
    definition: Definition,
    calls: Vec<(String, Vec<WastVal<'a>>)>,
    /// It trapped: nothing can be called any more.
    is_dead: bool,
}

/// What a directive expects of a call.
pub(crate) enum Wanted<'a> {
    Nothing,
    Return(Vec<WastRet<'a>>),
    Trap(&'a str),
}

/// Whether a directive is about a component.
pub(crate) fn is_component(module: &QuoteWat<'_>) -> bool {
    matches!(module, QuoteWat::Wat(Wat::Component(_)) | QuoteWat::QuoteComponent(..))
}

impl<'a> Components<'a> {
    /// Whether an identifier, or none, means a component's definition.
    pub(crate) fn defines(&self, id: Option<&str>) -> bool {
        let id = id.map(str::to_owned);
        self.definitions.contains_key(&id) || self.left_out.contains(&id)
    }

    /// Whether an identifier, or none, means a component's instance.
    pub(crate) fn has(&self, id: Option<&str>) -> bool {
        let id = id.map(str::to_owned);
        self.named.contains_key(&id) || self.left_out.contains(&id)
    }

    /// Modules follow: what names no instance means them.
    pub(crate) fn forget_current(&mut self) {
        self.named.remove(&None);
        self.left_out.remove(&None);
    }

    /// Notes a failure under an identifier, and what comes of the directive.
    fn failed(&mut self, id: Option<String>, failure: Failure, expected: &str) -> Outcome {
        self.forget_current();
        if matches!(failure, Failure::Unsupported(_)) {
            self.left_out.insert(None);
            self.left_out.insert(id);
        }
        failure.outcome(expected)
    }

    /// `component`: a definition and an instance of it.
    pub(crate) fn component(&mut self, store: &mut Store, mut component: QuoteWat<'a>) -> Outcome {
        let id = component.name().map(|id| id.name().to_owned());
        let made = encode(&mut component).and_then(Definition::new).and_then(|definition| {
            self.check(store, &definition)?;
            Ok(definition)
        });
        match made {
            Ok(definition) => {
                self.add(id, definition);
                Outcome::Pass
            }
            Err(failure) => self.failed(id, failure, "an instance"),
        }
    }

    /// `component definition`.
    pub(crate) fn definition(&mut self, store: &mut Store, mut component: QuoteWat<'a>) -> Outcome {
        let id = component.name().map(|id| id.name().to_owned());
        match encode(&mut component).and_then(Definition::new) {
            Ok(definition) => {
                if let Err(failure) = store.compile(&composed::unused(&definition.bytes)) {
                    self.definitions.remove(&None);
                    return self.failed(id, failure, "a valid component");
                }
                self.definitions.insert(None, definition.clone());
                if id.is_some() {
                    self.definitions.insert(id, definition);
                }
                Outcome::Pass
            }
            Err(failure) => failure.outcome("a valid component"),
        }
    }

    /// `component instance`.
    pub(crate) fn instance(&mut self, store: &mut Store, id: Option<&str>, definition: Option<&str>) -> Outcome {
        let Some(definition) = self.definitions.get(&definition.map(str::to_owned)).cloned() else {
            let failure = match self.left_out.contains(&definition.map(str::to_owned)) {
                true => left_out(),
                false => Failure::Missing("no such definition: it failed".to_owned()),
            };
            return self.failed(id.map(str::to_owned), failure, "an instance");
        };
        match self.check(store, &definition) {
            Ok(()) => {
                self.add(id.map(str::to_owned), definition);
                Outcome::Pass
            }
            Err(failure) => self.failed(id.map(str::to_owned), failure, "an instance"),
        }
    }

    fn add(&mut self, id: Option<String>, definition: Definition) {
        let index = self.instances.len();
        self.instances.push(Instance { definition, calls: Vec::new(), is_dead: false });
        self.left_out.remove(&None);
        self.left_out.remove(&id);
        self.named.insert(None, index);
        if id.is_some() {
            self.named.insert(id, index);
        }
    }

    /// Makes an instance, and no more.
    fn check(&mut self, store: &mut Store, definition: &Definition) -> Result<(), Failure> {
        self.run(store, definition, &[])
    }

    fn run(&mut self, store: &mut Store, definition: &Definition, calls: &[Call<'_, 'a>]) -> Result<(), Failure> {
        let host = match &self.host {
            Some(host) => host,
            None => self.host.insert(Definition::host()?),
        };
        let others = self.named.iter().filter_map(|(id, index)| Some((id.clone()?, self.instances[*index].definition.clone())));
        let command = composed::command(host, &others.collect(), definition, calls)?;
        store.command(&command)
    }

    /// `assert_invalid` and `assert_malformed`.
    pub(crate) fn refused(&mut self, store: &mut Store, mut component: QuoteWat<'_>, message: &str) -> Outcome {
        match encode(&mut component).and_then(|bytes| store.compile(&composed::unused(&bytes))) {
            Err(Failure::Text(_) | Failure::Invalid(_)) => Outcome::Pass,
            Err(other) => other.outcome(&format!("refusal: {message}")),
            // Some is refused only of what is in no other component.
            Ok(_) => match component.encode().map(|bytes| store.compile(&bytes)) {
                Ok(Err(Failure::Unsupported(refusal))) if !refusal.contains("exports neither") => Outcome::Pass,
                _ => fail(format!("refusal: {message}"), "it was accepted".to_owned()),
            },
        }
    }

    /// `assert_unlinkable`.
    pub(crate) fn unlinkable(&mut self, store: &mut Store, mut component: Wat<'a>, message: &str) -> Outcome {
        let bytes = component.encode().map_err(|error| Failure::Text(error.message()));
        let definition = bytes.and_then(Definition::new);
        match definition.and_then(|definition| self.check(store, &definition)) {
            // A composition that does not fit is not valid.
            Err(Failure::Unlinkable(_) | Failure::Invalid(_)) => Outcome::Pass,
            Err(other) => other.outcome(&format!("link error: {message}")),
            Ok(()) => fail(format!("link error: {message}"), "it was linked".to_owned()),
        }
    }

    /// `assert_trap` of a component.
    pub(crate) fn uninstantiable(&mut self, store: &mut Store, mut component: Wat<'a>, message: &str) -> Outcome {
        let bytes = component.encode().map_err(|error| Failure::Text(error.message()));
        let definition = bytes.and_then(Definition::new);
        trapped(definition.and_then(|definition| self.check(store, &definition)), message)
    }

    /// A call.
    pub(crate) fn ask(&mut self, store: &mut Store, exec: WastExecute<'a>, wanted: Wanted<'a>) -> Outcome {
        let WastExecute::Invoke(WastInvoke { module, name, args, .. }) = exec else {
            return Failure::Unsupported("something else than a call".to_owned()).outcome("a call");
        };
        let id = module.map(|id| id.name().to_owned());
        if self.left_out.contains(&id) {
            return left_out().outcome("a call");
        }
        let Some(&index) = self.named.get(&id) else {
            return Failure::Missing("no such instance: it failed".to_owned()).outcome("a call");
        };
        if self.instances[index].is_dead {
            let result = Err(Failure::Violation(Violation::Reentered));
            return match wanted {
                Wanted::Trap(message) => trapped(result, message),
                _ => fail("a return", "the instance trapped before".to_owned()),
            };
        }
        let arguments = args.into_iter().map(argument_value);
        let (expected, trap) = match wanted {
            Wanted::Return(results) => (results.into_iter().map(result_value).collect::<Option<Vec<_>>>().map(Some), None),
            Wanted::Nothing => (Some(None), None),
            Wanted::Trap(message) => (Some(None), Some(message)),
        };
        let (Some(arguments), Some(expected)) = (arguments.collect::<Option<Vec<_>>>(), expected) else {
            return Failure::Unsupported("core values of a component".to_owned()).outcome("a call");
        };
        let definition = self.instances[index].definition.clone();
        let before = std::mem::take(&mut self.instances[index].calls);
        let before_calls =
            before.iter().map(|(name, arguments)| Call { name, arguments: arguments.iter().collect(), expected: None });
        let expected = expected.as_ref().map(|values: &Vec<_>| values.iter().collect());
        let now = Call { name, arguments: arguments.iter().collect(), expected };
        let calls: Vec<Call<'_, 'a>> = before_calls.chain([now]).collect();
        let result = self.run(store, &definition, &calls);
        drop(calls);
        let instance = &mut self.instances[index];
        instance.is_dead = matches!(result, Err(Failure::Trap(_) | Failure::Violation(_)));
        instance.calls = before;
        instance.calls.push((name.to_owned(), arguments));
        match trap {
            Some(message) => trapped(result, message),
            None => result.map_or_else(|failure| failure.outcome("the expected result"), |()| Outcome::Pass),
        }
    }
}

/// An argument. Floats are written as those of core modules are.
fn argument_value(argument: WastArg<'_>) -> Option<WastVal<'_>> {
    match argument {
        WastArg::Component(value) => Some(value),
        WastArg::Core(WastArgCore::F32(value)) => Some(WastVal::F32(value)),
        WastArg::Core(WastArgCore::F64(value)) => Some(WastVal::F64(value)),
        _ => None,
    }
}

/// An expected result, likewise.
fn result_value(result: WastRet<'_>) -> Option<WastVal<'_>> {
    match result {
        WastRet::Component(value) => Some(value),
        WastRet::Core(WastRetCore::F32(NanPattern::Value(value))) => Some(WastVal::F32(value)),
        WastRet::Core(WastRetCore::F64(NanPattern::Value(value))) => Some(WastVal::F64(value)),
        _ => None,
    }
}

fn left_out() -> Failure {
    Failure::Unsupported("it is asked of a component that is left out".to_owned())
}

fn encode(component: &mut QuoteWat<'_>) -> Result<Vec<u8>, Failure> {
    component.encode().map_err(|error| Failure::Text(error.message()))
}

fn fail(expected: impl Into<String>, got: String) -> Outcome {
    Outcome::Fail { expected: expected.into(), got }
}

impl Failure {
    /// What comes of a directive that expects something else. What is refused by name is left out by that name.
    fn outcome(self, expected: &str) -> Outcome {
        match self {
            Failure::Unsupported(reason) => Outcome::Skip { reason },
            Failure::Violation(Violation::Unsupported) => {
                Outcome::Skip { reason: "it calls a built-in function that is not supported".to_owned() }
            }
            other => fail(expected, other.to_string()),
        }
    }
}

/// Whether it trapped for the reason that was asked for. Scripts have several words for one.
fn trapped(result: Result<(), Failure>, message: &str) -> Outcome {
    let expected = || format!("trap: {message}");
    let wanted = message.trim_start_matches("wasm trap: ");
    match result {
        Ok(()) => fail(expected(), "a return".to_owned()),
        Err(Failure::Violation(got)) if violations(wanted).contains(&got) => Outcome::Pass,
        Err(Failure::Trap(TrapCode::Unreachable)) if wanted.contains("unreachable") => Outcome::Pass,
        Err(Failure::Trap(got)) if wanted.starts_with(got.message()) => Outcome::Pass,
        Err(other) => other.outcome(&expected()),
    }
}

/// What a script's words stand for.
fn violations(message: &str) -> &'static [Violation] {
    let known: &[(&str, &[Violation])] = &[
        ("string pointer/length out of bounds", &[Violation::StringOutOfBounds]),
        ("string content out-of-bounds", &[Violation::StringOutOfBounds]),
        ("list content out-of-bounds", &[Violation::ListOutOfBounds]),
        ("out of bounds", &[Violation::ListOutOfBounds]),
        ("realloc return: beyond end of memory", &[Violation::StringOutOfBounds, Violation::ListOutOfBounds]),
        ("realloc return: result not aligned", &[Violation::UnalignedPointer]),
        ("unaligned pointer", &[Violation::UnalignedPointer]),
        ("string pointer not aligned", &[Violation::UnalignedPointer]),
        ("invalid utf-8", &[Violation::InvalidUtf8]),
        ("incomplete utf-8", &[Violation::InvalidUtf8]),
        ("invalid `char` bit pattern", &[Violation::InvalidChar]),
        ("discriminant ", &[Violation::InvalidDiscriminant]),
        ("invalid variant discriminant", &[Violation::InvalidDiscriminant]),
        ("unknown handle index", &[Violation::UnknownHandle]),
        ("handle index ", &[Violation::HandleType]),
        ("cannot remove owned resource while borrowed", &[Violation::Lent]),
        ("cannot leave component instance", &[Violation::MayNotLeave]),
        ("cannot enter component instance", &[Violation::Reentered]),
        ("uncaught exception propagated", &[Violation::UncaughtException]),
        ("thrown Wasm exception", &[Violation::UncaughtException]),
        ("invalid debug message pointer", &[Violation::PointerOutOfBounds]),
        ("borrow handles still remain", &[Violation::BorrowsRemain]),
        ("waitable cannot be used synchronously", &[Violation::InWaitableSet]),
        ("cannot write after being notified", &[Violation::StreamWriteAfterDrop, Violation::FutureWriteTwice]),
        ("cannot write to stream after", &[Violation::StreamWriteAfterDrop]),
        ("cannot write to future after", &[Violation::FutureWriteTwice]),
        ("cannot read after being notified", &[Violation::StreamReadAfterDrop]),
        ("cannot read from stream after", &[Violation::StreamReadAfterDrop]),
        ("cannot read from future after", &[Violation::FutureReadTwice]),
        ("cannot read from and write to intra-component", &[Violation::SameInstance]),
        ("cannot block a synchronous task", &[Violation::MayNotBlock]),
        ("cannot lift future after", &[Violation::LiftReadFuture]),
        ("cannot lift stream after", &[Violation::LiftDroppedStream]),
        ("cannot lift stream while it's in", &[Violation::LiftFromWaitableSet]),
        ("cannot lift future while it's in", &[Violation::LiftFromWaitableSet]),
        ("deadlock detected", &[Violation::Deadlock]),
        ("cannot make further progress", &[Violation::Deadlock]),
        ("cannot drop future write end", &[Violation::FutureUnwritten]),
        ("backpressure counter overflow", &[Violation::Backpressure]),
        ("async-lifted export failed", &[Violation::NotReturned]),
        ("unsupported callback code", &[Violation::CallbackCode]),
        ("invalid `task.return`", &[Violation::InvalidReturn, Violation::NothingToReturn]),
        ("`task.return` or `task.cancel` called more than once", &[Violation::ReturnedTwice, Violation::NotCancelled]),
        ("cannot have concurrent operations", &[Violation::Concurrent]),
        ("cannot drop busy", &[Violation::DropBusy]),
        ("cannot remove busy", &[Violation::LiftBusy, Violation::DropBusy]),
        ("cannot drop a subtask", &[Violation::SubtaskUnresolved]),
        ("cannot drop waitable set", &[Violation::SetInUse]),
        ("`subtask.cancel` called after", &[Violation::CancelledTwice]),
        ("stream read/write count too large", &[Violation::CopyTooLarge]),
        ("too many calls wait at once", &[Violation::StacksExhausted]),
    ];
    known.iter().find(|(words, _)| message.starts_with(words)).map_or(&[], |(_, violations)| violations)
}
