//! What an interface names of others: the lines `use`, and what each type is called inside.

use std::collections::BTreeMap;

use super::catalog::Catalog;
use super::names::{Package, Scope, kebab, written};
use super::write::Text;

/// The package of what all services share, and its interface.
pub(super) const GRPC: &str = "sledge:grpc/types@0.1.0";

/// The names of one interface, while it is written.
pub(super) struct Uses<'c> {
    catalog: &'c Catalog,
    /// The package of Protobuf whose interface this is, and whether it is the one of its types.
    home: &'c str,
    is_types: bool,
    scope: Scope,
    /// What is called here what: by interface and name there.
    local: BTreeMap<(String, String), String>,
}

impl<'c> Uses<'c> {
    /// In the interface of a package's types.
    pub(super) fn in_types(catalog: &'c Catalog, home: &'c str) -> Uses<'c> {
        let scope = catalog.rooms.get(home).map(|room| room.scope.clone()).unwrap_or_default();
        Uses { catalog, home, is_types: true, scope, local: BTreeMap::new() }
    }

    /// In the interface of a service, whose functions have these names.
    pub(super) fn in_service(catalog: &'c Catalog, home: &'c str, scope: Scope) -> Uses<'c> {
        Uses { catalog, home, is_types: false, scope, local: BTreeMap::new() }
    }

    /// A message or an enum, as it is called here.
    pub(super) fn name(&mut self, full: &str) -> String {
        let (proto, name) = self.catalog.type_name(full);
        if proto == self.home && self.is_types {
            return written(name);
        }
        let Some(room) = self.catalog.rooms.get(proto) else { return String::new() };
        let interface = if proto == self.home { written(&room.types) } else { room.package.interface(&room.types) };
        let other = format!("{}-{name}", room.package.name);
        self.used(interface, name, &other)
    }

    /// A type that all services share.
    pub(super) fn grpc(&mut self, name: &str) -> String {
        self.used(GRPC.to_owned(), name, &format!("grpc-{name}"))
    }

    fn used(&mut self, interface: String, name: &str, other: &str) -> String {
        let scope = &mut self.scope;
        let claim = || if scope.is_free(name) { scope.claim(name) } else { scope.claim(other) };
        written(self.local.entry((interface, name.to_owned())).or_insert_with(claim))
    }

    /// The lines `use`.
    pub(super) fn write(&self, text: &mut Text) {
        let mut interfaces: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((interface, name), local) in &self.local {
            let one = if name == local { written(name) } else { format!("{} as {}", written(name), written(local)) };
            interfaces.entry(interface).or_default().push(one);
        }
        for (interface, names) in interfaces {
            text.line(&format!("use {interface}.{{{}}};", names.join(", ")));
        }
    }
}

/// The package of what all services share.
pub(super) fn grpc_package() -> Package {
    Package { namespace: "sledge".to_owned(), name: "grpc".to_owned(), version: Some("0.1.0".to_owned()) }
}

/// Names for members of one type: identifiers of Protobuf, and for each whose name went to another a line that says so.
pub(super) fn members<'n>(identifiers: impl IntoIterator<Item = &'n str>, scope: &mut Scope) -> Vec<(String, Option<String>)> {
    let identifiers: Vec<&str> = identifiers.into_iter().collect();
    let wishes: Vec<String> = identifiers.iter().map(|identifier| kebab(identifier)).collect();
    let names = scope.assign(&wishes);
    let note = |(at, name): (usize, String)| {
        let is_other = name != wishes[at];
        let note = is_other
            .then(|| format!("`{}` in Protobuf; `{}` would be too close to another name here.", identifiers[at], wishes[at]));
        (name, note)
    };
    names.into_iter().enumerate().map(note).collect()
}
