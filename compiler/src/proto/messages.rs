//! Types: the interface `types` of a package, from its messages and enums.
//!
//! ```text
//! message          record; none of its fields: enum with one case; a wrapper of wrappers.proto: its scalar
//! oneof            variant, in an option
//! enum             open: variant, with `unrecognized(s32)`; closed: enum
//! in a cycle       record of a node, in which a message of the cycle is an index; the message itself is a record with the list of nodes
//! ```

use std::collections::{BTreeSet, HashMap};

use protox::prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use super::catalog::{Catalog, Cycle, wrapped};
use super::names::{Scope, written};
use super::select::Selection;
use super::sources::{Order, Sources};
use super::uses::{Uses, members};
use super::write::Text;

/// The line of what is deprecated.
pub(super) const DEPRECATED: &str = "Deprecated.";

/// The case of numbers that an open enum does not name.
const UNRECOGNIZED: &str = "unrecognized";

/// A message or an enum.
enum Item<'s> {
    Message(&'s MessageDescriptor),
    Enum(&'s EnumDescriptor),
}

/// Writes the interface of a package's types, if any of them is wanted.
pub(super) fn write(catalog: &Catalog, sources: &Sources, selection: &Selection, proto: &str, text: &mut Text) {
    let messages = selection.messages.values().filter(|message| message.package_name() == proto);
    let enums = selection.enums.values().filter(|one| one.package_name() == proto);
    let mut items: Vec<(_, Item<'_>)> = Vec::new();
    items.extend(messages.map(|one| (place(sources, one.parent_file().name(), one.path()), Item::Message(one))));
    items.extend(enums.map(|one| (place(sources, one.parent_file().name(), one.path()), Item::Enum(one))));
    let Some(room) = catalog.rooms.get(proto).filter(|_| !items.is_empty()) else { return };
    items.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut types =
        Types { catalog, sources, uses: Uses::in_types(catalog, proto), text: Text::default(), lists: BTreeSet::new() };
    for (_, item) in &items {
        match item {
            Item::Message(message) => types.message(message),
            Item::Enum(one) => types.one_of_numbers(one),
        }
    }
    text.gap();
    text.open(&format!("interface {}", written(&room.types)));
    types.uses.write(text);
    text.gap();
    text.insert(&types.text.finish());
    text.close();
}

/// An order of types: by file, then as they stand in it.
fn place(sources: &Sources, file: &str, path: &[i32]) -> (String, Order) {
    (file.to_owned(), sources.order(file, path))
}

/// The interface in the making.
struct Types<'c> {
    catalog: &'c Catalog,
    sources: &'c Sources,
    uses: Uses<'c>,
    text: Text,
    /// Cycles whose record of lists is written.
    lists: BTreeSet<usize>,
}

impl Types<'_> {
    fn message(&mut self, message: &MessageDescriptor) {
        let full = message.full_name();
        let name = written(self.catalog.type_name(full).1);
        let mut docs = vec![format!("Message `{full}`.")];
        let is_deprecated = message.descriptor_proto().options.as_ref().is_some_and(|options| options.deprecated());
        docs.extend(self.words(message.parent_file().name(), message.path(), is_deprecated));
        self.text.gap();
        if let Some(field) = wrapped(message) {
            let scalar = self.value(&field.kind(), None);
            self.text.docs(&docs);
            self.text.line(&format!("type {name} = {scalar};"));
        } else if message.fields().len() == 0 {
            docs.push("It has no fields.".to_owned());
            self.text.docs(&docs);
            self.text.block(&format!("enum {name}"), &[(Vec::new(), "empty".to_owned())]);
        } else if let Some(at) = self.catalog.cycle_of(full) {
            let cycle = &self.catalog.cycles[at];
            docs.push(self.tree_words(message, cycle));
            self.text.docs(&docs);
            let node = written(self.catalog.node(full));
            let nodes = cycle.lists.as_deref().map_or(format!("list<{node}>"), written);
            self.text.block(&format!("record {name}"), &[(Vec::new(), format!("nodes: {nodes}"))]);
            if self.lists.insert(at) {
                self.lists_of(cycle);
            }
            self.text.gap();
            self.text.docs(&[format!("A message of `{name}`.")]);
            self.record(message, &node, Some(at));
        } else {
            self.text.docs(&docs);
            self.record(message, &name, None);
        }
    }

    /// How the nodes of a tree are numbered.
    fn tree_words(&self, message: &MessageDescriptor, cycle: &Cycle) -> String {
        let first = if cycle.lists.is_some() {
            format!("element 0 of `{}`", self.catalog.type_name(message.full_name()).1)
        } else {
            "element 0".to_owned()
        };
        format!(
            "A tree: the message itself is {first} of its nodes, and each index is the next one of its list, in the order of a walk in depth."
        )
    }

    /// The record that has, of several messages in a cycle, the nodes of each.
    fn lists_of(&mut self, cycle: &Cycle) {
        let Some(lists) = &cycle.lists else { return };
        let list = |member: &MessageDescriptor| {
            let (_, name) = self.catalog.type_name(member.full_name());
            (Vec::new(), format!("{}: list<{}>", written(name), written(self.catalog.node(member.full_name()))))
        };
        let items: Vec<_> = cycle.members.iter().map(list).collect();
        self.text.gap();
        self.text.docs(&["The nodes of a tree, by their kind.".to_owned()]);
        self.text.block(&format!("record {}", written(lists)), &items);
    }

    /// The record of a message's fields, and the variants of its oneofs.
    fn record(&mut self, message: &MessageDescriptor, name: &str, cycle: Option<usize>) {
        let mut fields: Vec<Member> = Vec::new();
        let mut variants = Vec::new();
        let file = message.parent_file();
        for field in ordered(message) {
            match field.containing_oneof().filter(|oneof| !oneof.is_synthetic()) {
                None => {
                    let docs = self.field_words(&field, cycle);
                    let kind = self.field(&field, cycle);
                    fields.push((docs, field.name().to_owned(), Some(kind)));
                }
                // In the place of its first field.
                Some(oneof) if !variants.contains(&oneof) => {
                    let docs = self.words(file.name(), oneof.path(), false);
                    let variant = written(self.catalog.variant(oneof.full_name()));
                    fields.push((docs, oneof.name().to_owned(), Some(format!("option<{variant}>"))));
                    variants.push(oneof);
                }
                Some(_) => {}
            }
        }
        let items = fields_of(named(fields, &mut Scope::default()));
        self.text.block(&format!("record {name}"), &items);
        for oneof in variants {
            let mut cases = Vec::new();
            for field in oneof.fields() {
                let docs = self.field_words(&field, cycle);
                let kind = self.value(&field.kind(), cycle);
                cases.push((docs, field.name().to_owned(), Some(kind)));
            }
            let items = cases_of(named(cases, &mut Scope::default()));
            self.text.gap();
            self.text.docs(&[format!("Oneof `{}`.", oneof.full_name())]);
            self.text.block(&format!("variant {}", written(self.catalog.variant(oneof.full_name()))), &items);
        }
    }

    fn field(&mut self, field: &FieldDescriptor, cycle: Option<usize>) -> String {
        if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
            let key = self.value(&entry.map_entry_key_field().kind(), cycle);
            let value = self.value(&entry.map_entry_value_field().kind(), cycle);
            return format!("list<tuple<{key}, {value}>>");
        }
        let value = self.value(&field.kind(), cycle);
        if field.is_list() {
            format!("list<{value}>")
        } else if self.sources.features.has_presence(field) {
            format!("option<{value}>")
        } else {
            value
        }
    }

    fn value(&mut self, kind: &Kind, cycle: Option<usize>) -> String {
        let scalar = match kind {
            Kind::Double => "f64",
            Kind::Float => "f32",
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => "s32",
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => "s64",
            Kind::Uint32 | Kind::Fixed32 => "u32",
            Kind::Uint64 | Kind::Fixed64 => "u64",
            Kind::Bool => "bool",
            Kind::String => "string",
            Kind::Bytes => "list<u8>",
            Kind::Message(message) if self.is_edge(message, cycle) => "u32",
            Kind::Message(message) => return self.uses.name(message.full_name()),
            Kind::Enum(one) => return self.uses.name(one.full_name()),
        };
        scalar.to_owned()
    }

    /// Whether a message is one of the cycle, and an index stands for it.
    fn is_edge(&self, message: &MessageDescriptor, cycle: Option<usize>) -> bool {
        cycle.is_some() && self.catalog.cycle_of(message.full_name()) == cycle
    }

    fn field_words(&self, field: &FieldDescriptor, cycle: Option<usize>) -> Vec<String> {
        let options = field.field_descriptor_proto().options.as_ref();
        let is_deprecated = options.is_some_and(|options| options.deprecated());
        let mut docs = self.words(field.parent_file().name(), field.path(), is_deprecated);
        if let Some(default) = &field.field_descriptor_proto().default_value {
            docs.push(format!("Default: `{}`.", super::text::printable(default)));
        }
        if let Some(target) = super::catalog::target(field).filter(|target| self.is_edge(target, cycle)) {
            let lists = cycle.is_some_and(|at| self.catalog.cycles[at].lists.is_some());
            let list = format!("nodes.{}", self.catalog.type_name(target.full_name()).1);
            docs.push(format!("An index in `{}`.", if lists { &list } else { "nodes" }));
        }
        docs
    }

    fn words(&self, file: &str, path: &[i32], is_deprecated: bool) -> Vec<String> {
        let mut docs = self.sources.comments(file, path);
        docs.extend(is_deprecated.then(|| DEPRECATED.to_owned()));
        docs
    }

    /// An enum. Several names of one number are one case: the first's.
    fn one_of_numbers(&mut self, one: &EnumDescriptor) {
        let file = one.parent_file();
        let name = written(self.catalog.type_name(one.full_name()).1);
        let mut cases: Vec<(String, Vec<String>)> = Vec::new();
        let mut case_of: HashMap<i32, usize> = HashMap::new();
        let mut values: Vec<_> = one.values().collect();
        values.sort_by(|one, other| one.path().cmp(other.path()));
        for value in values {
            let options = value.enum_value_descriptor_proto().options.as_ref();
            let docs = self.words(file.name(), value.path(), options.is_some_and(|options| options.deprecated()));
            let at = *case_of.entry(value.number()).or_insert(cases.len());
            match cases.get_mut(at) {
                Some((_, docs)) => docs.push(format!("Also `{}`.", value.name())),
                None => cases.push((value.name().to_owned(), docs)),
            }
        }
        let mut scope = Scope::default();
        let cases = cases.into_iter().map(|(name, docs)| (docs, name, None)).collect();
        let mut items = cases_of(named(cases, &mut scope));
        let is_closed = self.sources.features.is_closed(one);
        if !is_closed {
            let docs = vec!["A number that has no name here.".to_owned()];
            items.push((docs, format!("{}(s32)", written(&scope.claim(UNRECOGNIZED)))));
        }
        let is_deprecated = one.enum_descriptor_proto().options.as_ref().is_some_and(|options| options.deprecated());
        let mut docs = vec![format!("Enum `{}`.", one.full_name())];
        docs.extend(self.words(file.name(), one.path(), is_deprecated));
        self.text.gap();
        self.text.docs(&docs);
        self.text.block(&format!("{} {name}", if is_closed { "enum" } else { "variant" }), &items);
    }
}

/// A message's fields as the file has them; prost-reflect gives them by their numbers.
fn ordered(message: &MessageDescriptor) -> Vec<FieldDescriptor> {
    let mut fields: Vec<FieldDescriptor> = message.fields().collect();
    fields.sort_by(|one, other| one.path().cmp(other.path()));
    fields
}

/// A member of a type: what stands before it, its name, and its type, which cases of numbers have not.
type Member = (Vec<String>, String, Option<String>);

/// Members with their names in WIT, from those in Protobuf.
fn named(members_of: Vec<Member>, scope: &mut Scope) -> Vec<Member> {
    let names = members(members_of.iter().map(|(_, name, _)| &**name), scope);
    let joined = |((mut docs, _, kind), (name, note)): (Member, (String, Option<String>))| {
        docs.extend(note);
        (docs, written(&name), kind)
    };
    members_of.into_iter().zip(names).map(joined).collect()
}

/// The lines of a record's fields.
fn fields_of(members: Vec<Member>) -> Vec<(Vec<String>, String)> {
    members.into_iter().map(|(docs, name, kind)| (docs, format!("{name}: {}", kind.unwrap_or_default()))).collect()
}

/// The lines of a variant's cases.
fn cases_of(members: Vec<Member>) -> Vec<(Vec<String>, String)> {
    let case = |(docs, name, kind): Member| (docs, kind.map_or(name.clone(), |kind| format!("{name}({kind})")));
    members.into_iter().map(case).collect()
}
