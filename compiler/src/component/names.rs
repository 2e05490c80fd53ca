//! What component instances are called: by the names in the component, by what they are exported or passed as, or by the component of which they are.
//!
//! wasmtime-environ numbers instances in the order in which they are made, and keeps no names. Here a component is instantiated once more, with nothing but names:
//! components, instances, and what those export. Where that comes to another number of instances, no name is trusted.

use std::collections::HashMap;
use std::rc::Rc;

use awsm_abi::component::cut;
use awsm_abi::limits::COMPONENT_INSTANCES_MAX;
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentName, ComponentNameSectionReader, ComponentOuterAliasKind,
    KnownCustom, Parser, Payload,
};

/// The name of each of so many component instances, as far as it is known; where there are more than an artifact names, of as many as it may, and none is known.
/// `component` is valid.
pub(super) fn of_instances(component: &[u8], count: usize) -> Vec<Option<String>> {
    let unknown = || vec![None; count.min(COMPONENT_INSTANCES_MAX)];
    if count > COMPONENT_INSTANCES_MAX {
        return unknown();
    }
    let Some(root) = read(component) else { return unknown() };
    let mut maker = Maker { names: Vec::new(), count_max: count, work: 0 };
    match maker.instantiate(&root, &Made::default(), None, 0) {
        Some(_) if maker.names.len() == count => maker.names.iter().map(|name| name.as_deref().map(str::to_owned)).collect(),
        _ => unknown(),
    }
}

/// A component, as far as it has to do with instances.
#[derive(Default)]
struct Component {
    name: Option<Rc<str>>,
    steps: Vec<Step>,
    /// Names by index.
    instances: HashMap<u32, Rc<str>>,
    components: HashMap<u32, Rc<str>>,
}

/// What is a component or an instance: its kind, and its index or place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Component,
    Instance,
}

/// What a component does, in its order.
enum Step {
    Define(Rc<Component>),
    Import(Kind, Rc<str>),
    Instantiate { component: u32, arguments: Vec<(Kind, Rc<str>, u32)> },
    Bundle(Vec<(Kind, Rc<str>, u32)>),
    Alias(Kind, u32, Rc<str>),
    AliasOuter { count: u32, index: u32 },
    Export(Kind, Rc<str>, u32),
}

/// The components of each component around one, innermost first.
type Outer = Rc<[Rc<[Option<Defined>]>]>;

/// What there is in a component instance.
#[derive(Clone, Default)]
struct Made {
    components: Vec<Option<Defined>>,
    instances: Vec<Option<Rc<Exports>>>,
    outer: Outer,
}

/// A component where it is defined, and what it sees there.
#[derive(Clone)]
struct Defined {
    component: Rc<Component>,
    outer: Outer,
    name: Option<Rc<str>>,
}

/// What an instance exports, and which of all it is, if it is one of a component.
#[derive(Default)]
struct Exports {
    number: Option<usize>,
    components: HashMap<Rc<str>, Defined>,
    instances: HashMap<Rc<str>, Rc<Exports>>,
}

/// Makes instances.
struct Maker {
    names: Vec<Option<Rc<str>>>,
    count_max: usize,
    /// What it has done, in things that it looked at or copied.
    work: usize,
}

/// Nesting of components, and likewise of instances, that is followed.
const DEPTH_MAX: usize = 100;

/// Work that is done for names: a component can define and instantiate others so that each step copies all that came before.
const WORK_MAX: usize = 1 << 20;

impl Maker {
    /// Makes an instance, and all instances in it. None where it cannot be followed.
    fn instantiate(&mut self, component: &Component, given: &Made, name: Option<Rc<str>>, depth: usize) -> Option<Exports> {
        let number = self.names.len();
        if number >= self.count_max || depth > DEPTH_MAX {
            return None;
        }
        self.work(component.steps.len())?;
        self.names.push(name.or_else(|| component.name.clone()));
        let mut made = Made { outer: given.outer.clone(), ..Made::default() };
        let (mut components, mut instances) = (given.components.iter(), given.instances.iter());
        let mut exports = Exports { number: Some(number), ..Exports::default() };
        for step in &component.steps {
            match step {
                Step::Define(defined) => {
                    let index = made.components.len() as u32;
                    self.work(made.components.len() + made.outer.len() + 1)?;
                    let own = Rc::from(made.components.as_slice());
                    let outer = std::iter::once(own).chain(made.outer.iter().cloned()).collect();
                    let name = component.components.get(&index).cloned().or_else(|| defined.name.clone());
                    made.components.push(Some(Defined { component: defined.clone(), outer, name }));
                }
                Step::Import(Kind::Component, _) => made.components.push(components.next().cloned().flatten()),
                Step::Import(Kind::Instance, _) => made.instances.push(instances.next().cloned().flatten()),
                Step::Instantiate { component: index, arguments } => {
                    let defined = made.components.get(*index as usize)?.clone()?;
                    self.work(defined.component.steps.len() + arguments.len())?;
                    let given = made.given(&defined, arguments)?;
                    let place = made.instances.len() as u32;
                    let name = component.instances.get(&place).cloned().or(defined.name);
                    let inner = self.instantiate(&defined.component, &given, name, depth + 1)?;
                    made.instances.push(Some(Rc::new(inner)));
                }
                Step::Bundle(items) => {
                    self.work(items.len())?;
                    let mut bundle = Exports::default();
                    for (kind, name, index) in items {
                        self.export(&mut bundle, &made, *kind, name, *index);
                    }
                    made.instances.push(Some(Rc::new(bundle)));
                }
                Step::Alias(Kind::Component, instance, name) => {
                    let from = made.instances.get(*instance as usize)?;
                    let found = from.as_ref().and_then(|from| from.components.get(name)).cloned();
                    made.components.push(found);
                }
                Step::Alias(Kind::Instance, instance, name) => {
                    let from = made.instances.get(*instance as usize)?;
                    let found = from.as_ref().and_then(|from| from.instances.get(name)).cloned();
                    made.instances.push(found);
                }
                Step::AliasOuter { count: 0, index } => {
                    let found = made.components.get(*index as usize)?.clone();
                    made.components.push(found);
                }
                Step::AliasOuter { count, index } => {
                    let outer = made.outer.get(*count as usize - 1)?;
                    let found = outer.get(*index as usize)?.clone();
                    made.components.push(found);
                }
                Step::Export(kind, name, index) => {
                    self.export(&mut exports, &made, *kind, name, *index);
                    match kind {
                        Kind::Component => made.components.push(made.components.get(*index as usize)?.clone()),
                        Kind::Instance => made.instances.push(made.instances.get(*index as usize)?.clone()),
                    }
                }
            }
        }
        Some(exports)
    }

    /// Counts what is about to be done; none where that is too much.
    fn work(&mut self, work: usize) -> Option<()> {
        self.work += work;
        (self.work <= WORK_MAX).then_some(())
    }

    /// Exports something. An instance that has no name is called what it is exported as.
    fn export(&mut self, exports: &mut Exports, made: &Made, kind: Kind, name: &Rc<str>, index: u32) {
        match kind {
            Kind::Component => {
                if let Some(Some(component)) = made.components.get(index as usize) {
                    exports.components.insert(name.clone(), component.clone());
                }
            }
            Kind::Instance => {
                if let Some(Some(instance)) = made.instances.get(index as usize) {
                    if let Some(known) = instance.number.and_then(|number| self.names.get_mut(number)) {
                        known.get_or_insert_with(|| cut(name).into());
                    }
                    exports.instances.insert(name.clone(), instance.clone());
                }
            }
        }
    }
}

impl Made {
    /// What an instance is given, in the order in which its component imports it.
    fn given(&self, defined: &Defined, arguments: &[(Kind, Rc<str>, u32)]) -> Option<Made> {
        let arguments: HashMap<&str, u32> = arguments.iter().map(|(_, name, index)| (&**name, *index)).collect();
        let mut given = Made { outer: defined.outer.clone(), ..Made::default() };
        for step in &defined.component.steps {
            let Step::Import(kind, name) = step else { continue };
            let index = arguments.get(&**name).map(|index| *index as usize);
            match (kind, index) {
                (Kind::Component, Some(index)) => given.components.push(self.components.get(index)?.clone()),
                (Kind::Instance, Some(index)) => given.instances.push(self.instances.get(index)?.clone()),
                (Kind::Component, None) => given.components.push(None),
                (Kind::Instance, None) => given.instances.push(None),
            }
        }
        Some(given)
    }
}

/// Reads a component with those in it.
fn read(bytes: &[u8]) -> Option<Component> {
    // The components around what is read; modules among them are none.
    let mut around: Vec<Option<Component>> = Vec::new();
    let mut current = Some(Component::default());
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::ComponentSection { .. } | Payload::ModuleSection { .. } if around.len() >= DEPTH_MAX => return None,
            Payload::ComponentSection { .. } => around.push(current.replace(Component::default())),
            Payload::ModuleSection { .. } => around.push(current.take()),
            Payload::End(_) => {
                let Some(outer) = around.pop() else { break };
                let inner = std::mem::replace(&mut current, outer);
                if let (Some(outer), Some(inner)) = (&mut current, inner) {
                    outer.steps.push(Step::Define(Rc::new(inner)));
                }
            }
            payload => {
                if let Some(component) = &mut current {
                    component.read(payload)?;
                }
            }
        }
    }
    current
}

const fn kind(kind: ComponentExternalKind) -> Option<Kind> {
    match kind {
        ComponentExternalKind::Component => Some(Kind::Component),
        ComponentExternalKind::Instance => Some(Kind::Instance),
        _ => None,
    }
}

impl Component {
    /// Takes what a section says of components and instances.
    fn read(&mut self, payload: Payload<'_>) -> Option<()> {
        match payload {
            Payload::ComponentImportSection(section) => {
                for import in section {
                    let import = import.ok()?;
                    self.steps.extend(kind(import.ty.kind()).map(|kind| Step::Import(kind, import.name.name.into())));
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    let export = export.ok()?;
                    let name = || export.name.name.into();
                    self.steps.extend(kind(export.kind).map(|kind| Step::Export(kind, name(), export.index)));
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section {
                    match alias.ok()? {
                        ComponentAlias::InstanceExport { kind: of, instance_index, name } => {
                            self.steps.extend(kind(of).map(|kind| Step::Alias(kind, instance_index, name.into())));
                        }
                        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
                            self.steps.push(Step::AliasOuter { count, index });
                        }
                        _ => {}
                    }
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section {
                    self.steps.push(match instance.ok()? {
                        ComponentInstance::Instantiate { component_index, args } => {
                            let one = |kind: Kind, name: &str, index| (kind, name.into(), index);
                            let arguments = args.iter().filter_map(|a| Some(one(kind(a.kind)?, a.name, a.index)));
                            Step::Instantiate { component: component_index, arguments: arguments.collect() }
                        }
                        ComponentInstance::FromExports(exports) => Step::Bundle(
                            exports.iter().filter_map(|e| Some((kind(e.kind)?, e.name.name.into(), e.index))).collect(),
                        ),
                    });
                }
            }
            Payload::CustomSection(section) => {
                if let KnownCustom::ComponentName(names) = section.as_known() {
                    self.read_names(names);
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Takes names as far as they can be read: what is in a custom section makes no component invalid.
    fn read_names(&mut self, names: ComponentNameSectionReader<'_>) {
        for subsection in names {
            match subsection {
                Ok(ComponentName::Component { name, .. }) => self.name = Some(cut(name).into()),
                Ok(ComponentName::Instances(names)) => {
                    self.instances
                        .extend(names.into_iter().map_while(Result::ok).map(|naming| (naming.index, cut(naming.name).into())));
                }
                Ok(ComponentName::Components(names)) => {
                    self.components
                        .extend(names.into_iter().map_while(Result::ok).map(|naming| (naming.index, cut(naming.name).into())));
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, count: usize) -> Vec<Option<String>> {
        of_instances(&wat::parse_str(text).expect("a component"), count)
    }

    fn some(names: &[&str]) -> Vec<Option<String>> {
        names.iter().map(|name| Some((*name).to_owned()).filter(|name| !name.is_empty())).collect()
    }

    #[test]
    fn instances_have_the_names_that_the_component_gives() {
        let text = r#"(component $whole
            (component $library (component $part) (instance $inner (instantiate $part)) (instance (instantiate $part)))
            (instance $first (instantiate $library))
            (instance (instantiate $library)))"#;
        assert_eq!(names(text, 7), some(&["whole", "first", "inner", "part", "library", "inner", "part"]));
        // Another number is another component.
        assert_eq!(names(text, 8), some(&[""; 8]));
        assert_eq!(names(text, 6), some(&[""; 6]));
        assert_eq!(names(text, usize::MAX), some(&[""; COMPONENT_INSTANCES_MAX]));
    }

    #[test]
    fn what_is_too_much_work_has_no_names() {
        let of = |components: usize| format!("(component $whole {})", "(component)".repeat(components));
        assert_eq!(names(&of(1_000), 1), some(&["whole"]));
        assert_eq!(names(&of(2_000), 1), some(&[""]));
    }

    #[test]
    fn components_are_found_where_they_come_from() {
        let text = r#"(component
            (component $shared)
            (component $giver (component $given) (export "given" (component $given)))
            (instance $giver (instantiate $giver))
            (alias export $giver "given" (component $given))
            (component $taker
              (import "taken" (component $taken))
              (alias outer 1 $shared (component $alias))
              (instance (instantiate $taken))
              (instance $shared (instantiate $alias)))
            (instance $taker (instantiate $taker (with "taken" (component $given)))))"#;
        assert_eq!(names(text, 5), some(&["", "giver", "taker", "given", "shared"]));
    }

    #[test]
    fn what_has_no_name_is_called_what_it_is_exported_as() {
        let text = r#"(component (component) (instance (instantiate 0)) (export "a:b/c" (instance 0)))"#;
        assert_eq!(names(text, 2), some(&["", "a:b/c"]));
    }
}
