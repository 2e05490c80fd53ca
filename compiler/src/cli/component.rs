//! What `awsm inspect` shows of a component: its world, its instances, and what their imports are met by. It reads what an outsider may have written, so
//! that it looks up every index.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use awsm::Outline;
use awsm_abi::component::{CANONICAL, Call, Description, Role};
use awsm_abi::descriptor::{ImportSource, Instantiation};

use super::artifact::Artifact;

/// A component, in an artifact or not.
pub(super) struct Component<'a> {
    description: &'a Description,
    plan: &'a [Instantiation],
    /// For each step of the plan, the imports that the host meets.
    host: Vec<Vec<(&'a str, &'a str)>>,
    /// The artifact, which knows what became of functions.
    artifact: Option<&'a Artifact<'a>>,
}

impl<'a> Component<'a> {
    /// That of which an artifact was made, if it was made of one.
    pub(super) fn in_artifact(artifact: &'a Artifact<'a>) -> Option<Component<'a>> {
        let descriptor = &artifact.descriptor;
        let host = descriptor.plan.iter().map(|step| {
            let imports = descriptor.modules.get(step.module as usize).map_or(&[][..], |module| &module.imports);
            let from_host = imports.iter().zip(&step.imports).filter(|(_, source)| **source == ImportSource::Host);
            from_host.map(|(import, _)| (&*import.module, &*import.name)).collect()
        });
        let description = descriptor.component.as_ref()?;
        Some(Component { description, plan: &descriptor.plan, host: host.collect(), artifact: Some(artifact) })
    }

    /// One that was not compiled.
    pub(super) fn outlined(outline: &'a Outline) -> Component<'a> {
        let host = outline.host.iter().map(|imports| imports.iter().map(|(module, name)| (&**module, &**name)).collect());
        Component { description: &outline.description, plan: &outline.plan, host: host.collect(), artifact: None }
    }

    /// Writes what there is to say, without the world.
    pub(super) fn describe(&self, text: &mut String) {
        let mut line = |key: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key:<13}{value}");
        };
        for (number, name) in (0_u32..).zip(&self.description.instances) {
            let name = name.as_deref().map_or_else(String::new, |name| format!(" {name:?}"));
            line("component", &format!("{number}{name}"));
            let steps = self.steps_of(number);
            if !steps.is_empty() {
                let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
                line("  code", &format!("instance{} {}", if steps.len() == 1 { "" } else { "s" }, steps.join(", ")));
            }
            for call in self.description.calls.iter().filter(|call| call.caller == number) {
                let callee = self.description.instance(call.callee);
                line("  calls", &format!("{:?} of {callee}: {}", call.function_name(), self.manner(call)));
            }
            for (interface, function) in self.met_by_host(number) {
                line("  host", &format!("{interface:?} {function:?}"));
            }
        }
    }

    /// The steps of the plan that are a component instance's code.
    fn steps_of(&self, number: u32) -> Vec<usize> {
        let roles = self.description.roles.iter().enumerate();
        roles.filter(|(_, role)| **role == Role::Code(number)).map(|(step, _)| step).collect()
    }

    /// How a call is made.
    fn manner(&self, call: &Call) -> String {
        let direct = if call.direct { "direct" } else { "through a table" };
        let Some(artifact) = self.artifact else { return direct.to_owned() };
        let inlined = inlined_in(artifact, call);
        match inlined.as_slice() {
            [] => direct.to_owned(),
            [one] => format!("{direct}, inlined in {one}"),
            [first, others @ ..] => format!("{direct}, inlined in {first} and {} more", others.len()),
        }
    }

    /// The functions of the host that a component instance imports, through glue.
    fn met_by_host(&self, number: u32) -> Vec<(&'a str, &'a str)> {
        let steps = self.steps_of(number);
        let sources = steps.iter().filter_map(|step| self.plan.get(*step)).flat_map(|step| &step.imports);
        let glue = sources.filter_map(|source| match source {
            ImportSource::Instance { instance, .. } => Some(*instance as usize),
            ImportSource::Host => None,
        });
        let glue = glue.filter(|step| self.description.roles.get(*step) == Some(&Role::Glue));
        let mut functions: Vec<_> =
            glue.filter_map(|step| self.host.get(step)).flatten().filter(|(module, _)| *module != CANONICAL).copied().collect();
        functions.sort_unstable();
        functions.dedup();
        functions
    }
}

/// The symbols of the functions into which the adapter of a call was inlined, as far as something of it is left there that may trap.
fn inlined_in(artifact: &Artifact<'_>, call: &Call) -> Vec<String> {
    let mut symbols = BTreeSet::new();
    let module = artifact.descriptor.modules.get(call.module as usize);
    let Some(place) = module.and_then(|module| Some((module, call.function.checked_sub(module.imported_functions())? as usize)))
    else {
        return Vec::new();
    };
    let (module, defined) = place;
    let own = module.functions.get(defined).and_then(|function| Some((function.code?, function.code_bytes)));
    let is_of_call = |wasm_offset: u32| {
        let place = artifact.descriptor.place(wasm_offset).and_then(|(module, offset)| artifact.place(module, offset));
        place.is_some_and(|place| (place.module, place.function) == (call.module as usize, defined))
    };
    let is_own = |text: usize, offset: u32| {
        own.is_some_and(|(code, bytes)| {
            code.text as usize == text && offset.checked_sub(code.offset).is_some_and(|past| past < bytes)
        })
    };
    // Instructions of its own, and what it calls and was inlined in turn.
    let rows = artifact.texts.iter().enumerate().flat_map(|(index, text)| text.rows.iter().map(move |row| (index, row)));
    let rows = rows.map(|(text, row)| (text, row.code_offset, row.wasm_offset));
    let inlined = artifact.descriptor.inlined.iter().map(|row| (row.text as usize, row.start, row.call));
    for (text, offset, wasm_offset) in rows.chain(inlined) {
        if is_of_call(wasm_offset) && !is_own(text, offset) {
            let start = artifact.texts.get(text).map(|text| text.start.wrapping_add(offset.into()));
            let symbol = start.and_then(|address| artifact.symbol_at(address));
            symbols.extend(symbol.map(|(symbol, _)| symbol.escape_debug().to_string()));
        }
    }
    symbols.into_iter().collect()
}

/// The world as lines of their own. Whatever else it is, it is no control bytes.
pub(super) fn world(text: &str) -> String {
    let mut lines = String::from("world\n");
    for line in text.lines() {
        let line: String = line.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
        let indent = if line.is_empty() { "" } else { "  " };
        let _ = writeln!(lines, "{indent}{line}");
    }
    lines
}
