//! Packages: those that are written, whether each has a name of its own, and whether they use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use protox::prost_reflect::{DescriptorPool, FieldDescriptor, Kind};

use super::catalog::{Catalog, target};
use super::cycles::circles;
use super::error::ProtoError;
use super::names::Package;
use super::select::Selection;
use super::sources::Sources;

/// A use of one package by another: where it stands, and what it says.
struct Use {
    file: String,
    path: Vec<i32>,
    words: String,
}

/// The packages of what is selected.
///
/// # Errors
/// When two of them, or one and `ours`, want one name; when they use each other.
pub(super) fn of(
    pool: &DescriptorPool,
    catalog: &Catalog,
    sources: &Sources,
    selection: &Selection,
    ours: &[Package],
) -> Result<Vec<String>, ProtoError> {
    let mut wanted: BTreeSet<&str> = selection.messages.values().map(|one| one.package_name()).collect();
    wanted.extend(selection.enums.values().map(|one| one.package_name()));
    wanted.extend(selection.services.values().map(|one| one.package_name()));
    let mut owners: BTreeMap<Package, &str> = BTreeMap::new();
    for proto in &wanted {
        let Some(room) = catalog.rooms.get(*proto) else { continue };
        let refused = |other: String| {
            let words = format!("package `{proto}` would be `{}` in WIT, as {other} is; rename one of them", room.package);
            let file = declared(pool, proto);
            Err(sources.unsupported(&file, &PACKAGE, words))
        };
        if ours.contains(&room.package) {
            return refused("a package that `awsm proto` writes itself".to_owned());
        }
        if let Some(other) = owners.insert(room.package.clone(), proto) {
            return refused(format!("`{other}` ({})", sources.place(&declared(pool, other), &PACKAGE)));
        }
    }
    let wanted: Vec<&str> = wanted.into_iter().collect();
    check_uses(&wanted, &uses(selection), sources)?;
    Ok(wanted.into_iter().map(str::to_owned).collect())
}

/// The field `package` of `FileDescriptorProto`.
const PACKAGE: [i32; 1] = [2];

/// The first file of a package.
fn declared(pool: &DescriptorPool, proto: &str) -> String {
    pool.files().find(|file| file.package_name() == proto).map(|file| file.name().to_owned()).unwrap_or_default()
}

/// Which package uses which, and the first place where it does.
fn uses(selection: &Selection) -> BTreeMap<(String, String), Use> {
    let mut uses = BTreeMap::new();
    let mut note = |from: &str, to: &str, used: &dyn Fn() -> Use| {
        if from != to {
            uses.entry((from.to_owned(), to.to_owned())).or_insert_with(used);
        }
    };
    for message in selection.messages.values() {
        for field in message.fields() {
            let Some((package, kind)) = used(&field) else { continue };
            note(message.package_name(), &package, &|| Use {
                file: field.parent_file().name().to_owned(),
                path: field.path().to_vec(),
                words: format!("field `{}` is a `{kind}`", field.full_name()),
            });
        }
    }
    for method in selection.services.values().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        for message in [method.input(), method.output()] {
            note(method.parent_service().package_name(), message.package_name(), &|| Use {
                file: method.parent_file().name().to_owned(),
                path: method.path().to_vec(),
                words: format!("method `{}` has a `{}`", method.full_name(), message.full_name()),
            });
        }
    }
    uses
}

/// The package and the name of a field's message or enum.
fn used(field: &FieldDescriptor) -> Option<(String, String)> {
    if let Some(message) = target(field) {
        return Some((message.package_name().to_owned(), message.full_name().to_owned()));
    }
    let kind = match field.kind() {
        Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
        kind => kind,
    };
    kind.as_enum().map(|one| (one.package_name().to_owned(), one.full_name().to_owned()))
}

/// Files cannot import each other, but packages of several files can; those of WIT cannot.
fn check_uses(packages: &[&str], uses: &BTreeMap<(String, String), Use>, sources: &Sources) -> Result<(), ProtoError> {
    let index = |name: &str| packages.iter().position(|package| *package == name);
    let mut edges = vec![Vec::new(); packages.len()];
    for (from, to) in uses.keys() {
        if let (Some(from), Some(to)) = (index(from), index(to)) {
            edges[from].push(to);
        }
    }
    let Some(circle) = circles(&edges).into_iter().next() else { return Ok(()) };
    let is_in_it = |name: &str| index(name).is_some_and(|at| circle.contains(&at));
    let first = packages[circle[0]];
    let mut ways = uses.iter().filter(|((from, to), _)| is_in_it(from) && is_in_it(to));
    let out = ways.clone().find(|((from, _), _)| from == first);
    let back = ways.find(|((_, to), _)| to == first);
    let (Some(((_, other), out)), Some((_, back))) = (out, back) else { return Ok(()) };
    let words = format!(
        "packages `{first}` and `{other}` use each other: {}, and {} ({}); packages of WIT cannot",
        out.words,
        back.words,
        sources.place(&back.file, &back.path)
    );
    Err(sources.unsupported(&out.file, &out.path, words))
}
