//! Worlds: one for each function, which exports the services that it offers and imports those that it calls; and one for all of them together.

use std::collections::BTreeSet;

use protox::prost_reflect::{DescriptorPool, ServiceDescriptor};

use super::Function;
use super::catalog::Catalog;
use super::error::ProtoError;
use super::names::{Scope, written};
use super::text::printable;
use super::write::Text;

/// The world of what several functions are together.
const APPLICATION: &str = "application";

/// Services that an error lists.
const LISTED_MAX: usize = 20;

/// A function, with its services.
pub(super) struct World {
    name: String,
    pub exports: Vec<ServiceDescriptor>,
    pub imports: Vec<ServiceDescriptor>,
}

/// The worlds of these functions.
pub(super) fn of_functions(pool: &DescriptorPool, functions: &[Function]) -> Result<Vec<World>, ProtoError> {
    let found = |names: &[String]| -> Result<Vec<ServiceDescriptor>, ProtoError> {
        let names: BTreeSet<&String> = names.iter().collect();
        names.into_iter().map(|name| service(pool, name)).collect()
    };
    let mut names = BTreeSet::new();
    let mut worlds = Vec::new();
    for function in functions {
        let name = function.name.clone();
        let refused = |reason: &str| ProtoError::Name { what: "world", name: name.clone(), reason: reason.to_owned() };
        wit_parser::validate_id(&name).map_err(|error| refused(&format!("no name of WIT: {error:#}")))?;
        if !names.insert(name.to_ascii_lowercase()) {
            return Err(refused("it is there twice"));
        }
        worlds.push(World { exports: found(&function.exports)?, imports: found(&function.imports)?, name: name.clone() });
    }
    Ok(worlds)
}

/// A world for each service, which exports it.
pub(super) fn of_services<'s>(catalog: &Catalog, services: impl Iterator<Item = &'s ServiceDescriptor>) -> Vec<World> {
    let mut scope = Scope::default();
    let world = |service: &ServiceDescriptor| {
        let name = catalog.service(service.full_name());
        let other =
            catalog.rooms.get(service.package_name()).map(|room| format!("{}-{name}", room.package.name)).unwrap_or_default();
        let name = if scope.is_free(name) { scope.claim(name) } else { scope.claim(&other) };
        World { name, exports: vec![service.clone()], imports: Vec::new() }
    };
    services.map(world).collect()
}

/// Writes the worlds, and that of all together where there are several.
pub(super) fn write(catalog: &Catalog, worlds: &[World], text: &mut Text) {
    let interface = |service: &ServiceDescriptor| catalog.interface(service.full_name(), service.package_name());
    for world in worlds {
        let names = |services: &[ServiceDescriptor]| services.iter().map(interface).collect::<BTreeSet<_>>();
        write_one(text, &world.name, "", &names(&world.imports), &names(&world.exports));
    }
    if worlds.len() < 2 {
        return;
    }
    let mut scope = Scope::default();
    worlds.iter().for_each(|world| drop(scope.claim(&world.name)));
    let exports: BTreeSet<String> = worlds.iter().flat_map(|world| world.exports.iter().map(interface)).collect();
    let imports: BTreeSet<String> = worlds.iter().flat_map(|world| world.imports.iter().map(interface)).collect();
    let imports = imports.difference(&exports).cloned().collect();
    let words = "All functions together: what they offer, and what they call and none of them offers.";
    write_one(text, &scope.claim(APPLICATION), words, &imports, &exports);
}

fn write_one(text: &mut Text, name: &str, words: &str, imports: &BTreeSet<String>, exports: &BTreeSet<String>) {
    text.gap();
    if !words.is_empty() {
        text.docs(&[words.to_owned()]);
    }
    text.open(&format!("world {}", written(name)));
    imports.iter().for_each(|interface| text.line(&format!("import {interface};")));
    exports.iter().for_each(|interface| text.line(&format!("export {interface};")));
    text.close();
}

fn service(pool: &DescriptorPool, name: &str) -> Result<ServiceDescriptor, ProtoError> {
    pool.get_service_by_name(name).ok_or_else(|| {
        let services: Vec<String> = pool.services().map(|service| format!("{:?}", service.full_name())).collect();
        let more = if services.len() > LISTED_MAX { format!(" and {} more", services.len() - LISTED_MAX) } else { String::new() };
        let offer = if services.is_empty() {
            "there are none".to_owned()
        } else {
            format!("there are {}{more}", services[..services.len().min(LISTED_MAX)].join(", "))
        };
        ProtoError::Service { name: printable(name), offer }
    })
}
