//! How many instances a component makes, before they are made.
//!
//! wasmtime-environ translates a component by making all of its instances: thirty components, of which each makes two instances of the one before, are a billion. So they are
//! counted first. What a component makes depends on nothing but its definition, the components that it sees around it, and what it is given. Only components and
//! instances matter of that. They are numbered, so that what exports the same has one number, and each combination is gone through once.
//!
//! What is valid is followed exactly, as wasmtime-environ follows it. What cannot be followed is not valid, or refused.

use std::collections::HashMap;
use std::rc::Rc;

use awsm_abi::limits::{COMPONENT_INSTANCES_MAX, COMPONENT_STEPS_MAX, MODULES_MAX};

use super::definitions::{Capture, Definition, Kind, Step, Stop, definitions};
use super::validate;
use crate::error::CompileError;

/// Steps of counting. Each is one of making the instances, or one of few that look at it.
const WORK_MAX: u64 = 4 * COMPONENT_STEPS_MAX as u64;

/// Refuses a component that makes more than may be.
///
/// # Errors
/// What is too much, and where; what is not valid, if that is why nothing is known.
pub(super) fn check(component: &[u8]) -> Result<(), CompileError> {
    match definitions(component).and_then(Census::of) {
        Ok(_) => Ok(()),
        Err(Stop::Refused(message)) => Err(CompileError::Component { message }),
        Err(Stop::Unknown) => {
            validate(component).map_err(|error| CompileError::invalid(error.offset() as u64, error.message()))?;
            Err(CompileError::Component { message: "a component whose instances cannot be counted (a bug)".to_owned() })
        }
    }
}

/// A component or instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    /// What the host would give.
    Foreign,
    /// The component of that number.
    Component(u32),
    /// The instance of that number: all that export the same are one.
    Instance(u32),
}

/// A component where it is defined: its definition, and what it captures.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Closure {
    definition: usize,
    captured: Rc<[Value]>,
}

/// The number of a component, and what an instance of it is given.
type Instantiation = (u32, Rc<[Value]>);

/// What an instance exports, sorted.
type Exports<'a> = Rc<[(Kind, &'a str, Value)]>;

/// What there is of something with all that is in it, as far as it can be counted.
#[derive(Clone, Copy, Default)]
struct Count {
    instances: u64,
    core_instances: u64,
    work: u64,
}

/// What is counted: its name, how many may be, and the number.
type Counted = (&'static str, u64, fn(&Count) -> u64);

const COUNTED: [Counted; 3] = [
    ("component instances", COMPONENT_INSTANCES_MAX as u64, |count| count.instances),
    ("core instances", MODULES_MAX as u64, |count| count.core_instances),
    ("definitions and arguments in its instances", COMPONENT_STEPS_MAX as u64, |count| count.work),
];

impl Count {
    fn add(&mut self, other: Count) {
        self.instances = self.instances.saturating_add(other.instances);
        self.core_instances = self.core_instances.saturating_add(other.core_instances);
        self.work = self.work.saturating_add(other.work);
    }

    /// What is too much.
    fn excess(&self) -> Option<&'static Counted> {
        COUNTED.iter().find(|(_, limit, of)| of(self) > *limit)
    }
}

/// An instance in the making.
struct Frame<'a> {
    component: u32,
    closure: Closure,
    arguments: Rc<[Value]>,
    /// How many steps and imports are done.
    done: usize,
    imported: usize,
    components: Vec<Value>,
    instances: Vec<Value>,
    exports: Vec<(Kind, &'a str, Value)>,
    count: Count,
}

/// Makes instances, each kind of them once.
struct Census<'a> {
    definitions: Rc<[Definition<'a>]>,
    closures: Vec<Closure>,
    closure_numbers: HashMap<Closure, u32>,
    exports: Vec<Exports<'a>>,
    export_numbers: HashMap<Exports<'a>, u32>,
    /// What was made of a component and what it was given.
    made: HashMap<Instantiation, (Value, Count)>,
    /// The first component that is too large alone, and by what.
    culprit: Option<(usize, Count, &'static Counted)>,
    /// What was done here.
    work: u64,
}

impl<'a> Census<'a> {
    /// What the first definition makes, with all that is in it.
    fn of(definitions: Vec<Definition<'a>>) -> Result<Count, Stop> {
        let imports = definitions[0].steps.iter().filter(|step| matches!(step, Step::Import(..))).count();
        let mut census = Census {
            definitions: Rc::from(definitions),
            closures: Vec::new(),
            closure_numbers: HashMap::new(),
            exports: Vec::new(),
            export_numbers: HashMap::new(),
            made: HashMap::new(),
            culprit: None,
            work: 0,
        };
        let root = census.closure(0, Rc::from([]));
        let whole = census.run(root, Rc::from(vec![Value::Foreign; imports]))?;
        match census.culprit {
            None => Ok(whole),
            Some((definition, part, counted)) => Err(Stop::Refused(census.refusal(definition, &part, &whole, counted))),
        }
    }

    /// What is said of a component that makes too much.
    fn refusal(&self, definition: usize, part: &Count, whole: &Count, (what, limit, of): &Counted) -> String {
        let number = |count: &Count| match of(count) {
            u64::MAX => format!("{} or more", u64::MAX),
            number => number.to_string(),
        };
        let mut message = format!("too many {what}: this component makes {}, at most {limit} are allowed", number(whole));
        if definition != 0 {
            let offset = self.definitions[definition].offset;
            message.push_str(&format!("; the component in it at offset {offset:#x} alone makes {}", number(part)));
        }
        message
    }

    /// Makes an instance and all that are in it.
    fn run(&mut self, root: u32, arguments: Rc<[Value]>) -> Result<Count, Stop> {
        let mut frames = vec![self.frame(root, arguments)];
        loop {
            let frame = frames.last_mut().ok_or(Stop::Unknown)?;
            if let Some((component, arguments)) = self.advance(frame)? {
                let inner = self.frame(component, arguments);
                frames.push(inner);
                // None of them is like another.
                if self.made.len() + frames.len() > COMPONENT_INSTANCES_MAX {
                    return Err(Stop::Refused(format!(
                        "too many component instances: this component makes more than {COMPONENT_INSTANCES_MAX}, which is the limit"
                    )));
                }
                continue;
            }
            let Some(Frame { component, closure, arguments, mut exports, mut count, .. }) = frames.pop() else {
                return Err(Stop::Unknown);
            };
            let definition = &self.definitions[closure.definition];
            count.add(Count { instances: 1, core_instances: definition.core_instances, work: definition.work });
            if let (None, Some(counted)) = (self.culprit, count.excess()) {
                self.culprit = Some((closure.definition, count, counted));
            }
            exports.sort_unstable_by_key(|&(kind, name, _)| (kind, name));
            let value = Value::Instance(self.instance(Rc::from(exports)));
            self.made.insert((component, arguments), (value, count));
            if frames.is_empty() {
                return Ok(count);
            }
        }
    }

    fn frame(&self, component: u32, arguments: Rc<[Value]>) -> Frame<'a> {
        Frame {
            component,
            closure: self.closures[component as usize].clone(),
            arguments,
            done: 0,
            imported: 0,
            components: Vec::new(),
            instances: Vec::new(),
            exports: Vec::new(),
            count: Count::default(),
        }
    }

    /// Goes on until another instance has to be made first: of which component, and what it is given. None at the end.
    fn advance(&mut self, frame: &mut Frame<'a>) -> Result<Option<Instantiation>, Stop> {
        let definitions = Rc::clone(&self.definitions);
        while let Some(step) = definitions[frame.closure.definition].steps.get(frame.done) {
            let mut work = 1;
            let (kind, value) = match step {
                Step::Define(index) => {
                    let captures = &definitions[*index].captures;
                    work += captures.len();
                    let captured = captures.iter().map(|capture| match capture {
                        Capture::Own(index) => get(&frame.components, *index),
                        Capture::Captured(place) => get(&frame.closure.captured, *place),
                    });
                    let captured = captured.collect::<Result<Rc<[Value]>, Stop>>()?;
                    let number = self.closure(*index, captured);
                    (Kind::Component, Value::Component(number))
                }
                Step::Import(kind, _) => {
                    frame.imported += 1;
                    (*kind, get(&frame.arguments, frame.imported as u32 - 1)?)
                }
                Step::Instantiate(component, given) => {
                    work += given.len();
                    match get(&frame.components, *component)? {
                        Value::Component(number) => {
                            let steps = &definitions[self.closures[number as usize].definition].steps;
                            work += steps.len();
                            let arguments = given_to(steps, given, frame)?;
                            let Some((value, count)) = self.made.get(&(number, arguments.clone())) else {
                                return Ok(Some((number, arguments)));
                            };
                            frame.count.add(*count);
                            (Kind::Instance, *value)
                        }
                        _ => (Kind::Instance, Value::Foreign),
                    }
                }
                Step::Bundle(given) => {
                    work += given.len();
                    let exports = given.iter().map(|&(kind, name, index)| Ok((kind, name, frame.value(kind, index)?)));
                    let mut exports = exports.collect::<Result<Vec<_>, Stop>>()?;
                    exports.sort_unstable_by_key(|&(kind, name, _)| (kind, name));
                    (Kind::Instance, Value::Instance(self.instance(Rc::from(exports))))
                }
                Step::Alias(kind, instance, name) => match get(&frame.instances, *instance)? {
                    Value::Instance(number) => {
                        let exports = &self.exports[number as usize];
                        let place = exports.binary_search_by_key(&(*kind, *name), |&(kind, name, _)| (kind, name));
                        (*kind, exports[place.map_err(|_| Stop::Unknown)?].2)
                    }
                    _ => (*kind, Value::Foreign),
                },
                Step::AliasOwn(index) => (Kind::Component, get(&frame.components, *index)?),
                Step::AliasCaptured(place) => (Kind::Component, get(&frame.closure.captured, *place)?),
                Step::Export(kind, name, index) => {
                    let value = frame.value(*kind, *index)?;
                    frame.exports.push((*kind, *name, value));
                    (*kind, value)
                }
            };
            match kind {
                Kind::Component => frame.components.push(value),
                Kind::Instance => frame.instances.push(value),
            }
            frame.done += 1;
            self.work += work as u64;
            if self.work > WORK_MAX {
                return Err(Stop::Refused(format!(
                    "too many definitions and arguments in its instances: this component makes more than {COMPONENT_STEPS_MAX}, which is the limit"
                )));
            }
        }
        Ok(None)
    }

    /// The number of a component.
    fn closure(&mut self, definition: usize, captured: Rc<[Value]>) -> u32 {
        let closure = Closure { definition, captured };
        *self.closure_numbers.entry(closure).or_insert_with_key(|closure| {
            self.closures.push(closure.clone());
            self.closures.len() as u32 - 1
        })
    }

    /// The number of an instance with these exports.
    fn instance(&mut self, exports: Exports<'a>) -> u32 {
        *self.export_numbers.entry(exports).or_insert_with_key(|exports| {
            self.exports.push(exports.clone());
            self.exports.len() as u32 - 1
        })
    }
}

impl Frame<'_> {
    fn value(&self, kind: Kind, index: u32) -> Result<Value, Stop> {
        match kind {
            Kind::Component => get(&self.components, index),
            Kind::Instance => get(&self.instances, index),
        }
    }
}

fn get(values: &[Value], index: u32) -> Result<Value, Stop> {
    values.get(index as usize).copied().ok_or(Stop::Unknown)
}

/// What an instance is given, in the order in which its component imports it.
fn given_to(steps: &[Step<'_>], given: &[(Kind, &str, u32)], frame: &Frame<'_>) -> Result<Rc<[Value]>, Stop> {
    let by_name: HashMap<(Kind, &str), u32> = given.iter().map(|&(kind, name, index)| ((kind, name), index)).collect();
    let imports = steps.iter().filter_map(|step| match step {
        Step::Import(kind, name) => Some((*kind, *name)),
        _ => None,
    });
    imports.map(|(kind, name)| frame.value(kind, *by_name.get(&(kind, name)).ok_or(Stop::Unknown)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many component instances and core instances a component makes; none where it cannot be followed.
    fn count(text: &str) -> Option<(u64, u64)> {
        let wasm = wat::parse_str(text).expect("a component");
        let count = definitions(&wasm).and_then(Census::of).ok()?;
        Some((count.instances, count.core_instances))
    }

    #[test]
    fn what_is_not_instantiated_does_not_count() {
        let text = r"(component (core module $m) (component $c (core module $m) (core instance (instantiate $m)))
            (core instance $i (instantiate $m)) (core instance))";
        assert_eq!(count(text), Some((1, 1)));
    }

    #[test]
    fn components_are_found_where_they_come_from() {
        let text = r#"(component
            (component $shared (core module $m) (core instance (instantiate $m)) (core instance (instantiate $m)))
            (component $giver
              (component $given (component $inner (alias outer 3 $shared (component $s)) (instance (instantiate $s))) (instance (instantiate $inner)))
              (export "given" (component $given)))
            (instance $giver (instantiate $giver))
            (alias export $giver "given" (component $given))
            (component $taker
              (import "from" (instance $from (export "taken" (component))))
              (alias outer 1 $shared (component $alias))
              (alias export $from "taken" (component $taken))
              (instance (instantiate $taken))
              (instance $shared (instantiate $alias)))
            (instance $from (export "taken" (component $given)))
            (instance (instantiate $taker (with "from" (instance $from))))
            (instance (instantiate $taker (with "from" (instance $from)))))"#;
        // The whole, what gives, and twice: what takes, what it takes with two more within each other, and what is shared.
        assert_eq!(count(text), Some((2 + 2 * 5, 2 * 4)));
    }

    #[test]
    fn the_same_component_makes_what_it_is_given() {
        let text = r#"(component
            (component $none)
            (component $one (component $c) (instance (instantiate $c)))
            (component $taker (import "c" (component $c)) (instance (instantiate $c)))
            (instance (instantiate $taker (with "c" (component $none))))
            (instance (instantiate $taker (with "c" (component $one)))))"#;
        assert_eq!(count(text), Some((1 + 2 + 3, 0)));
    }

    #[test]
    fn what_cannot_be_followed_is_not_valid() {
        // An instance of a component that comes later; the text format knows it by its index.
        assert_eq!(count("(component (instance (instantiate 0)) (component))"), None);
        let wasm = wat::parse_str("(component (instance (instantiate 0)) (component))").expect("a component");
        assert!(matches!(check(&wasm), Err(CompileError::Invalid { .. })));
    }
}
