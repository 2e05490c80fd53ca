//! What `awsm inspect` shows of a component: its world, its instances, and what their imports are met by. It reads what the component's author may have written, so
//! that it looks up every index.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use awsm::Outline;
use awsm_abi::component::{CANONICAL, Call, Description, Role};
use awsm_abi::descriptor::{Function, ImportSource, Instantiation, ModuleDescriptor};
use awsm_abi::text;

use super::artifact::{Artifact, Place};

/// A component, in an artifact or not.
pub(super) struct Component<'a> {
    description: &'a Description,
    plan: &'a [Instantiation],
    /// For each step of the plan, the imports that the host meets.
    host: Vec<Vec<(&'a str, &'a str)>>,
    /// What became of the calls in an artifact.
    inlined: Inlined<'a>,
}

/// The symbols of the functions into which others were inlined, these by module and index.
type Inlined<'a> = HashMap<(u32, u32), BTreeSet<&'a str>>;

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
        Some(Component { description, plan: &descriptor.plan, host: host.collect(), inlined: inlined_in(artifact) })
    }

    /// One that was not compiled.
    pub(super) fn outlined(outline: &'a Outline) -> Component<'a> {
        let host = outline.host.iter().map(|imports| imports.iter().map(|(module, name)| (&**module, &**name)).collect());
        Component { description: &outline.description, plan: &outline.plan, host: host.collect(), inlined: Inlined::new() }
    }

    /// Writes what there is to say, without the world.
    pub(super) fn describe(&self, text: &mut String) {
        let mut line = |key: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key:<13}{value}");
        };
        let mut calls: HashMap<u32, Vec<&Call>> = HashMap::new();
        for call in &self.description.calls {
            calls.entry(call.caller).or_default().push(call);
        }
        let mut callees: HashMap<u32, String> = HashMap::new();
        for (number, name) in (0_u32..).zip(&self.description.instances) {
            let name = name.as_deref().map_or_else(String::new, |name| format!(" {name:?}"));
            line("component", &format!("{number}{name}"));
            let steps = self.steps_of(number);
            if !steps.is_empty() {
                let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
                line("  code", &format!("instance{} {}", if steps.len() == 1 { "" } else { "s" }, steps.join(", ")));
            }
            for call in calls.remove(&number).unwrap_or_default() {
                let callee = callees.entry(call.callee).or_insert_with(|| self.description.instance(call.callee));
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
        let mut inlined = self.inlined.get(&(call.module, call.function)).into_iter().flatten().map(|one| one.escape_debug());
        match (inlined.next(), inlined.count()) {
            (None, _) => direct.to_owned(),
            (Some(one), 0) => format!("{direct}, inlined in {one}"),
            (Some(first), others) => format!("{direct}, inlined in {first} and {others} more"),
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
        let glue: BTreeSet<usize> = glue.filter(|step| self.description.roles.get(*step) == Some(&Role::Glue)).collect();
        let mut functions: Vec<_> = glue
            .into_iter()
            .filter_map(|step| self.host.get(step))
            .flatten()
            .filter(|(module, _)| *module != CANONICAL)
            .copied()
            .collect();
        functions.sort_unstable();
        functions.dedup();
        functions
    }
}

/// For the functions of adapters that are calls, by module and index: the symbols of the functions into which each was inlined, as far as something of it is left there
/// that may trap.
fn inlined_in<'a>(artifact: &'a Artifact<'_>) -> Inlined<'a> {
    let descriptor = &artifact.descriptor;
    let imported: Vec<u32> = descriptor.modules.iter().map(ModuleDescriptor::imported_functions).collect();
    let calls = descriptor.component.iter().flat_map(|component| &component.calls);
    let mut inlined: Inlined<'a> = calls.map(|call| ((call.module, call.function), BTreeSet::new())).collect();
    // Instructions of its own, and what it calls and was inlined in turn.
    let rows = artifact.texts.iter().enumerate().flat_map(|(index, text)| text.rows.iter().map(move |row| (index, row)));
    let rows = rows.map(|(text, row)| (text, row.code_offset, row.wasm_offset));
    let around = descriptor.inlined.iter().map(|row| (row.text as usize, row.start, row.call));
    for (text, offset, wasm_offset) in rows.chain(around) {
        let place = descriptor.place(wasm_offset).and_then(|(module, offset)| artifact.place(module, offset));
        let Some(Place { module, function, .. }) = place else { continue };
        let Some(symbols) = inlined.get_mut(&(module as u32, imported[module] + function as u32)) else { continue };
        let Function { code, code_bytes, .. } = descriptor.modules[module].functions[function];
        let past = code.filter(|code| code.text as usize == text).and_then(|code| offset.checked_sub(code.offset));
        if past.is_none_or(|past| past >= code_bytes) {
            let start = artifact.texts.get(text).map(|text| text.start.wrapping_add(offset.into()));
            let symbol = start.and_then(|address| artifact.symbol_at(address));
            symbols.extend(symbol.map(|(symbol, _)| symbol));
        }
    }
    inlined
}

/// The world as lines of their own, whatever names are in it.
pub(super) fn world(wit: &str) -> String {
    let mut lines = String::from("world\n");
    for line in wit.lines() {
        let indent = if line.is_empty() { "" } else { "  " };
        let _ = writeln!(lines, "{indent}{}", text::line(line));
    }
    lines
}
