//! What each type and service is called in WIT, and which messages have themselves inside.
//!
//! Names are given to all types of all files that were read, whichever are wanted: a name does not depend on which services are chosen.

use std::collections::{BTreeMap, HashMap};

use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use super::cycles::circles;
use super::names::{Package, Scope, kebab};

/// The interface of a package's types.
const TYPES: &str = "types";

/// The package of the types that come with Protobuf.
const GOOGLE: &str = "google.protobuf";

/// Messages that reach each other by their fields.
#[derive(Debug)]
pub(super) struct Cycle {
    /// In the order of their names.
    pub members: Vec<MessageDescriptor>,
    /// The record with a list of nodes for each member, where there are several.
    pub lists: Option<String>,
}

/// The names of one package of Protobuf.
#[derive(Debug)]
pub(super) struct Room {
    pub package: Package,
    /// The interface that has its types.
    pub types: String,
    /// What is taken in that interface.
    pub scope: Scope,
}

/// The names of all that was read.
#[derive(Debug)]
pub(super) struct Catalog {
    pub rooms: BTreeMap<String, Room>,
    /// Messages and enums by full name: their package, and their name there.
    types: HashMap<String, (String, String)>,
    /// Variants of oneofs, and nodes of messages in a cycle, by full name.
    variants: HashMap<String, String>,
    nodes: HashMap<String, String>,
    services: HashMap<String, String>,
    pub cycles: Vec<Cycle>,
    cycle_of: HashMap<String, usize>,
}

impl Catalog {
    pub(super) fn of(pool: &DescriptorPool) -> Catalog {
        let mut catalog = Catalog {
            rooms: BTreeMap::new(),
            types: HashMap::new(),
            variants: HashMap::new(),
            nodes: HashMap::new(),
            services: HashMap::new(),
            cycles: Vec::new(),
            cycle_of: HashMap::new(),
        };
        let mut messages: Vec<MessageDescriptor> = pool.all_messages().filter(|message| !message.is_map_entry()).collect();
        messages.sort_by_key(|message| key(message.full_name(), message.package_name()));
        catalog.name_types(pool, &messages);
        catalog.name_oneofs(&messages);
        catalog.find_cycles(&messages);
        catalog
    }

    fn name_types(&mut self, pool: &DescriptorPool, messages: &[MessageDescriptor]) {
        let mut packages: BTreeMap<String, (Vec<String>, Vec<String>)> =
            pool.files().map(|file| (file.package_name().to_owned(), Default::default())).collect();
        let enums = pool.all_enums().map(|one| (one.full_name().to_owned(), one.package_name().to_owned()));
        let named = messages.iter().map(|one| (one.full_name().to_owned(), one.package_name().to_owned()));
        for (full, package) in named.chain(enums) {
            packages.entry(package).or_default().0.push(full);
        }
        for service in pool.services() {
            packages.entry(service.package_name().to_owned()).or_default().1.push(service.full_name().to_owned());
        }
        for (proto, (mut types, mut services)) in packages {
            let wish = |full: &String| kebab(inside(full, &proto));
            let mut scope = Scope::default();
            // Outer ones before inner ones.
            types.sort_by_key(|full| key(full, &proto));
            let names = scope.assign(&types.iter().map(wish).collect::<Vec<_>>());
            self.types.extend(types.into_iter().zip(names).map(|(full, name)| (full, (proto.clone(), name))));
            let mut interfaces = Scope::default();
            services.sort_unstable();
            let names = interfaces.assign(&services.iter().map(wish).collect::<Vec<_>>());
            self.services.extend(services.into_iter().zip(names));
            let room = Room { package: Package::of(&proto), types: interfaces.claim(TYPES), scope };
            self.rooms.insert(proto, room);
        }
    }

    fn name_oneofs(&mut self, messages: &[MessageDescriptor]) {
        for message in messages {
            for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
                let wish = format!("{}-{}-oneof", self.type_name(message.full_name()).1, kebab(oneof.name()));
                let name = self.claim(message.package_name(), &wish);
                self.variants.insert(oneof.full_name().to_owned(), name);
            }
        }
    }

    fn find_cycles(&mut self, messages: &[MessageDescriptor]) {
        let index: HashMap<&str, usize> = messages.iter().enumerate().map(|(at, one)| (one.full_name(), at)).collect();
        let edges: Vec<Vec<usize>> = messages
            .iter()
            .map(|message| message.fields().filter_map(|field| index.get(target(&field)?.full_name()).copied()).collect())
            .collect();
        for circle in circles(&edges) {
            let members: Vec<MessageDescriptor> = circle.into_iter().map(|at| messages[at].clone()).collect();
            let first = self.type_name(members[0].full_name()).1.to_owned();
            for member in &members {
                let wish = format!("{}-node", self.type_name(member.full_name()).1);
                let name = self.claim(member.package_name(), &wish);
                self.nodes.insert(member.full_name().to_owned(), name);
                self.cycle_of.insert(member.full_name().to_owned(), self.cycles.len());
            }
            let is_one = members.len() == 1;
            let lists = (!is_one).then(|| self.claim(members[0].package_name(), &format!("{first}-nodes")));
            self.cycles.push(Cycle { members, lists });
        }
    }

    fn claim(&mut self, proto: &str, wish: &str) -> String {
        self.rooms.get_mut(proto).map(|room| room.scope.claim(wish)).unwrap_or_default()
    }

    /// The package and the name of a message or an enum.
    pub(super) fn type_name(&self, full: &str) -> (&str, &str) {
        self.types.get(full).map_or(("", ""), |(package, name)| (package, name))
    }

    /// The name of a oneof's variant.
    pub(super) fn variant(&self, full: &str) -> &str {
        self.variants.get(full).map_or("", String::as_str)
    }

    /// The name of the record of a node, of a message in a cycle.
    pub(super) fn node(&self, full: &str) -> &str {
        self.nodes.get(full).map_or("", String::as_str)
    }

    /// The name of a service's interface.
    pub(super) fn service(&self, full: &str) -> &str {
        self.services.get(full).map_or("", String::as_str)
    }

    /// The cycle in which a message is, by its place in `cycles`.
    pub(super) fn cycle_of(&self, full: &str) -> Option<usize> {
        self.cycle_of.get(full).copied()
    }

    /// The interface of a service, as other packages name it.
    pub(super) fn interface(&self, service: &str, proto: &str) -> String {
        self.rooms.get(proto).map(|room| room.package.interface(self.service(service))).unwrap_or_default()
    }
}

/// The message that a field has inside, once or often.
pub(super) fn target(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    let Kind::Message(message) = field.kind() else { return None };
    if !field.is_map() {
        return Some(message);
    }
    match message.map_entry_value_field().kind() {
        Kind::Message(value) => Some(value),
        _ => None,
    }
}

/// The scalar inside of one of Protobuf's wrappers (wrappers.proto).
pub(super) fn wrapped(message: &MessageDescriptor) -> Option<FieldDescriptor> {
    let is_wrapper = message.package_name() == GOOGLE
        && matches!(
            message.name(),
            "DoubleValue"
                | "FloatValue"
                | "Int64Value"
                | "UInt64Value"
                | "Int32Value"
                | "UInt32Value"
                | "BoolValue"
                | "StringValue"
                | "BytesValue"
        );
    let mut fields = message.fields();
    let field = fields.next().filter(|field| is_wrapper && field.name() == "value" && !field.is_list())?;
    let is_scalar = !matches!(field.kind(), Kind::Message(_) | Kind::Enum(_));
    (is_scalar && fields.next().is_none()).then_some(field)
}

/// A full name without its package.
fn inside<'n>(full: &'n str, package: &str) -> &'n str {
    full.strip_prefix(package).map_or(full, |rest| rest.trim_start_matches('.'))
}

/// Outer types before inner ones, then by name.
fn key(full: &str, package: &str) -> (usize, String) {
    (inside(full, package).matches('.').count(), full.to_owned())
}
