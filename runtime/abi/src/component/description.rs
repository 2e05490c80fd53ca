//! What an artifact says of the component that it was made of: for people, who read it in messages, backtraces and `awsm inspect`. No code depends on it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::descriptor::{Descriptor, ImportSource};
use crate::limits::{COMPONENT_CALLS_MAX, COMPONENT_INSTANCES_MAX, COMPONENT_NAME_BYTES_MAX, INLINED_MAX, WORLD_BYTES_MAX};

/// A component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Its imports and exports, in WIT; empty where they are not known. At most [`WORLD_BYTES_MAX`].
    pub world: String,
    /// The names of its component instances, in the order in which they are made. The first is the component itself. Where there are more than
    /// [`COMPONENT_INSTANCES_MAX`], so many, without names.
    pub instances: Vec<Option<String>>,
    /// What each step of the plan is.
    pub roles: Vec<Role>,
    /// The functions through which one instance calls another, sorted by module and function.
    pub calls: Vec<Call>,
}

/// What an instance of a core module is in a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// What the canonical ABI keeps between calls.
    State,
    /// Generated code between core code and what it calls.
    Glue,
    /// Generated code that passes values from one component instance to another.
    Adapter,
    /// Code of that component instance.
    Code(u32),
}

/// A function of an adapter: a call from one component instance to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Index of the adapter's module.
    pub module: u32,
    /// Index in the module's function space.
    pub function: u32,
    /// Name of the function that it calls, as the core module exports it.
    pub name: String,
    /// The component instance that calls.
    pub caller: u32,
    /// The one that is called.
    pub callee: u32,
    /// Index of that function among those that the module imports.
    pub target: u32,
    /// Where in the module it is called: before that, arguments are passed; behind it, results.
    pub at: u32,
    /// Whether the compiler knew both functions where they are called, so that no table is looked at.
    pub direct: bool,
}

/// What was being done as a component trapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing<'a> {
    /// Values were passed between instances.
    Passing(&'a Call, Direction),
    /// Code of that component instance ran, or what it called of the host.
    Running(u32),
}

/// Which values of a call are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The arguments.
    Arguments,
    /// The results.
    Results,
}

impl Direction {
    /// One of the values, in a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Direction::Arguments => "argument",
            Direction::Results => "result",
        }
    }
}

/// A name as it stands between backticks. Names come from the component: no control bytes of theirs reach a terminal, and no backtick of theirs ends it.
fn quoted(name: &str) -> String {
    name.escape_debug().to_string().replace('`', "\\u{60}")
}

/// As much of a name as people are told.
#[must_use]
pub fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(COMPONENT_NAME_BYTES_MAX)]
}

impl Call {
    /// The function's name without the interface that tools write before it: `greet` of `a:b/c#greet`.
    #[must_use]
    pub fn function_name(&self) -> &str {
        self.name.rsplit_once('#').map_or(&*self.name, |(_, function)| function)
    }
}

impl Description {
    /// What a component instance is called in a message.
    #[must_use]
    pub fn instance(&self, index: u32) -> String {
        let Some(Some(name)) = self.instances.get(index as usize) else {
            return if index == 0 { "the component".to_string() } else { alloc::format!("instance {index}") };
        };
        let is_shared = self.instances.iter().flatten().filter(|other| *other == name).nth(1).is_some();
        let number = if is_shared { alloc::format!(" (number {index})") } else { String::new() };
        alloc::format!("instance `{}`{number}", quoted(name))
    }

    /// The call that a function of a module is.
    #[must_use]
    pub fn call(&self, module: u32, function: u32) -> Option<&Call> {
        let first = self.calls.partition_point(|call| (call.module, call.function) < (module, function));
        self.calls.get(first).filter(|call| (call.module, call.function) == (module, function))
    }

    /// What was being done, by where functions were as it stopped, innermost first: each one's module, index and offset in the module. `roles` gives the role of
    /// a module, where it has one. None where a module's instances have several roles: which of them it was is not known.
    pub fn doing(
        &self,
        frames: impl IntoIterator<Item = (u32, u32, u32)>,
        role: impl Fn(u32) -> Option<Role>,
    ) -> Option<Doing<'_>> {
        for (module, function, offset) in frames {
            match role(module)? {
                Role::State | Role::Glue => {}
                Role::Code(instance) => return Some(Doing::Running(instance)),
                Role::Adapter => {
                    if let Some(call) = self.call(module, function) {
                        let direction = if offset <= call.at { Direction::Arguments } else { Direction::Results };
                        return Some(Doing::Passing(call, direction));
                    }
                }
            }
        }
        None
    }

    /// The same in words.
    #[must_use]
    pub fn words(&self, doing: Doing<'_>) -> String {
        let mut words = String::new();
        // Writing to a string cannot fail.
        let _ = match doing {
            Doing::Running(instance) => write!(words, "{}", self.instance(instance)),
            Doing::Passing(call, _) => {
                let (callee, name) = (self.instance(call.callee), quoted(call.function_name()));
                write!(words, "`{name}` of {callee}, called by {}", self.instance(call.caller))
            }
        };
        words
    }
}

impl Descriptor {
    /// Checks what it says of the component. It is for people: nothing relies on it, but it has limits, and what is searched is sorted.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_component(&self) -> Result<(), String> {
        let ensure = |holds: bool, what: fmt::Arguments<'_>| if holds { Ok(()) } else { Err(what.to_string()) };
        ensure(self.inlined.len() <= INLINED_MAX, format_args!("{} inlined functions", self.inlined.len()))?;
        ensure(self.inlined.is_sorted(), format_args!("its inlined functions are not sorted"))?;
        let Some(Description { world, instances, roles, calls }) = &self.component else { return Ok(()) };
        ensure(world.len() <= WORLD_BYTES_MAX, format_args!("a world of {} bytes", world.len()))?;
        ensure(instances.len() <= COMPONENT_INSTANCES_MAX, format_args!("{} component instances", instances.len()))?;
        ensure(roles.len() == self.plan.len(), format_args!("another number of roles than plan steps"))?;
        ensure(calls.len() <= COMPONENT_CALLS_MAX, format_args!("{} calls between component instances", calls.len()))?;
        let are_sorted = calls.is_sorted_by_key(|call| (call.module, call.function));
        ensure(are_sorted, format_args!("its calls between component instances are not sorted"))?;
        let names = instances.iter().flatten().chain(calls.iter().map(|call| &call.name));
        let longest = names.map(String::len).max().unwrap_or(0);
        ensure(longest <= COMPONENT_NAME_BYTES_MAX, format_args!("a name of {longest} bytes in a component"))
    }

    /// What the instances of a module are in the component, where all of them are the same.
    #[must_use]
    pub fn role(&self, module: u32) -> Option<Role> {
        let component = self.component.as_ref()?;
        let mut roles = self.plan.iter().zip(&component.roles).filter(|(step, _)| step.module == module).map(|(_, role)| *role);
        let first = roles.next()?;
        roles.all(|role| role == first).then_some(first)
    }

    /// What was being done in the component as it stopped: see [`Description::doing`].
    pub fn doing(&self, frames: impl IntoIterator<Item = (u32, u32, u32)>) -> Option<Doing<'_>> {
        self.component.as_ref()?.doing(frames, |module| self.role(module))
    }

    /// What the server calls of the component, in words, where its own glue takes the result: `run` of an instance. `frames` as for [`Description::doing`]; none where
    /// the innermost function but those of the state is another's.
    #[must_use]
    pub fn entered(&self, frames: impl IntoIterator<Item = (u32, u32, u32)>) -> Option<String> {
        let component = self.component.as_ref()?;
        // The glue of what the server calls is the last instance, and alone is of its module.
        let entry = self.plan.last()?;
        let innermost = frames.into_iter().find(|&(module, ..)| self.role(module) != Some(Role::State))?;
        if innermost.0 != entry.module || component.roles.last() != Some(&Role::Glue) {
            return None;
        }
        let exports = |name: &str| self.modules.get(entry.module as usize)?.exports.iter().find(|export| export.name == name);
        let name = if exports("_start").is_some() { "run" } else { "handle" };
        let called = entry.imports.iter().find_map(|source| match source {
            ImportSource::Instance { instance, .. } => match component.roles.get(*instance as usize) {
                Some(Role::Code(instance)) => Some(component.instance(*instance)),
                _ => None,
            },
            ImportSource::Host => None,
        });
        Some(alloc::format!("`{name}` of {}", called.unwrap_or_else(|| "the component".to_string())))
    }

    /// To which part of the component a function of a module belongs, in words: its module, and its component instance or what it was generated for. None where
    /// there is no component.
    #[must_use]
    pub fn part(&self, module: u32, function: u32) -> Option<String> {
        let component = self.component.as_ref()?;
        let mut words = alloc::format!("module {module}");
        let name = self.modules.get(module as usize).and_then(|module| module.name.as_deref());
        // Writing to a string cannot fail.
        let _ = name.map_or(Ok(()), |name| write!(words, " {:?}", cut(name)));
        let _ = match (self.role(module), component.call(module, function)) {
            (Some(Role::Adapter), Some(call)) => {
                let doing = component.words(Doing::Passing(call, Direction::Arguments));
                write!(words, " ({doing})")
            }
            (Some(Role::Code(instance)), _) => write!(words, " of {}", component.instance(instance)),
            (Some(role), _) => write!(words, " ({role})"),
            (None, _) => Ok(()),
        };
        Some(words)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::State => f.write_str("state"),
            Role::Glue => f.write_str("glue"),
            Role::Adapter => f.write_str("adapter"),
            Role::Code(instance) => write!(f, "code of component instance {instance}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn sample() -> Description {
        let call = Call {
            module: 2,
            function: 4,
            name: "a:b/c#greet".to_string(),
            caller: 2,
            callee: 1,
            target: 0,
            at: 100,
            direct: true,
        };
        Description {
            world: String::new(),
            instances: vec![None, Some("app".to_string()), None],
            roles: vec![Role::State, Role::Code(1), Role::Adapter, Role::Code(2)],
            calls: vec![call],
        }
    }

    #[test]
    fn the_innermost_function_that_is_not_glue_says_what_was_being_done() {
        let description = sample();
        let role = |module: u32| description.roles.get(module as usize).copied();
        let words =
            |frames: &[(u32, u32, u32)]| description.doing(frames.iter().copied(), role).map(|doing| description.words(doing));
        let greet = "`greet` of instance `app`, called by instance 2";
        assert_eq!(words(&[(0, 1, 5), (2, 4, 90), (3, 0, 7)]).as_deref(), Some(greet));
        // A helper of the adapter is not the call itself.
        assert_eq!(words(&[(2, 5, 300), (2, 4, 110), (3, 0, 7)]).as_deref(), Some(greet));
        assert_eq!(words(&[(0, 1, 5), (1, 0, 7), (2, 4, 100)]).as_deref(), Some("instance `app`"));
        // Where it is not known which instance ran, those around it did not do it.
        assert_eq!(words(&[(0, 1, 5), (9, 0, 0), (3, 0, 7)]), None);
        let direction = |offset| match description.doing([(2, 4, offset)], role) {
            Some(Doing::Passing(_, direction)) => Some(direction),
            _ => None,
        };
        assert_eq!([direction(99), direction(101)], [Some(Direction::Arguments), Some(Direction::Results)]);
    }

    #[test]
    fn the_component_itself_is_named_so() {
        assert_eq!(sample().instance(0), "the component");
    }

    #[test]
    fn instances_of_one_name_have_numbers() {
        let name = || Some("part".to_string());
        let description =
            Description { instances: vec![None, name(), Some("app".to_string()), name()], ..Description::default() };
        assert_eq!(description.instance(3), "instance `part` (number 3)");
        assert_eq!(description.instance(2), "instance `app`");
        let description = Description { instances: vec![Some("a`b".to_string())], ..Description::default() };
        assert_eq!(description.instance(0), "instance `a\\u{60}b`", "no backtick ends the name");
    }
}
