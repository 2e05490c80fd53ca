//! What we say that functions may import, and what they may: sdk/wit, its flat form in words, C, Rust and Go, and the runtime's own table.

use awsm_abi::component::{self, INTERFACES};
use awsm_abi::types::ValType;
use sledge::host::{self, Effect};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{Resolve, Type, TypeDefKind};

/// Functions by the module that they are imported from.
type Interfaces = BTreeMap<String, BTreeSet<String>>;

/// Modules of the flat form by the packages that describe them, where they are called otherwise.
const RENAMED: [(&str, &str); 1] = [("sledge:keyvalue", "sledge:kv")];
/// What only the flat form has: components get whole lists, and calls by gRPC are descriptors of WASI preview 1.
const FLAT_ONLY: [(&str, &str); 7] = [
    ("sledge:call", "rest"),
    ("sledge:rpc", "begin"),
    ("sledge:rpc", "head"),
    ("sledge:rpc", "trailers"),
    ("sledge:rpc", "call"),
    ("sledge:rpc", "accept"),
    ("sledge:rpc", "answer"),
];

fn sdk(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk").join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(sdk(path)).unwrap_or_else(|error| panic!("sdk/{path}: {error}"))
}

/// What the runtime offers beside WASI.
fn offered() -> Interfaces {
    let mut offered = Interfaces::new();
    for function in host::offered().filter(|function| function.module.starts_with("sledge:")) {
        offered.entry(function.module.to_owned()).or_default().insert(function.name.to_owned());
    }
    offered
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    text.split_once(begin)?.1.split_once(end).map(|(found, _)| found)
}

#[test]
fn the_wit_files_are_valid_and_describe_what_is_offered() {
    let mut described = Interfaces::new();
    for file in fs::read_dir(sdk("wit")).expect("sdk/wit").map(|file| file.expect("a file").path()) {
        if file.extension().is_none_or(|extension| extension != "wit") {
            continue;
        }
        let mut resolve = Resolve::default();
        let source = fs::read_to_string(&file).expect("text");
        resolve.push_str(&file, &source).unwrap_or_else(|error| panic!("{error:?}"));
        for (_, interface) in &resolve.interfaces {
            let package = &resolve.packages[interface.package.expect("a package")].name;
            let package = format!("{}:{}", package.namespace, package.name);
            let module = RENAMED.iter().find(|(name, _)| *name == package).map_or(package.as_str(), |(_, module)| module);
            let names = interface.functions.values().map(|function| function.item_name().to_owned());
            described.entry(module.to_owned()).or_default().extend(names);
        }
        assert!(resolve.worlds.iter().next().is_some(), "{}: no world imports it", file.display());
    }
    for (module, name) in FLAT_ONLY {
        assert!(described.entry(module.to_owned()).or_default().insert(name.to_owned()), "{module} {name}");
    }
    assert_eq!(described, offered());
}

/// What of sdk/wit components do not get: `wasi:http` has it.
const NOT_FOR_COMPONENTS: &str = "sledge:fetch/client@0.1";

/// Whether a value of that type holds a list or a string.
fn holds_list(resolve: &Resolve, ty: &Type) -> bool {
    let any = |types: &[Type]| types.iter().any(|ty| holds_list(resolve, ty));
    let Type::Id(id) = ty else { return matches!(ty, Type::String) };
    match &resolve.types[*id].kind {
        TypeDefKind::List(_) => true,
        TypeDefKind::Type(ty) | TypeDefKind::Option(ty) => holds_list(resolve, ty),
        TypeDefKind::Result(result) => result.ok.iter().chain(&result.err).any(|ty| holds_list(resolve, ty)),
        TypeDefKind::Tuple(tuple) => any(&tuple.types),
        TypeDefKind::Record(record) => record.fields.iter().any(|field| holds_list(resolve, &field.ty)),
        TypeDefKind::Variant(variant) => variant.cases.iter().filter_map(|case| case.ty).any(|ty| holds_list(resolve, &ty)),
        TypeDefKind::Handle(_) | TypeDefKind::Resource | TypeDefKind::Enum(_) | TypeDefKind::Flags(_) => false,
        // What comes through them is no part of the result.
        TypeDefKind::Stream(_) | TypeDefKind::Future(_) => false,
        other => panic!("{other:?}"),
    }
}

/// A list of core types.
fn core(types: &[WasmType]) -> Vec<ValType> {
    let core = |ty: &WasmType| match ty {
        WasmType::I32 | WasmType::Pointer | WasmType::Length => ValType::I32,
        WasmType::I64 | WasmType::PointerOrI64 => ValType::I64,
        WasmType::F32 => ValType::F32,
        WasmType::F64 => ValType::F64,
    };
    types.iter().map(core).collect()
}

/// Of our own interfaces, and of those that the components in `functions/components/store` and `spin` import.
#[test]
fn what_components_may_import_is_flat_as_wit_says() {
    let mut resolve = Resolve::default();
    let drafts = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/functions/components/store/wit/deps");
    for folder in [sdk("wit"), drafts] {
        for file in fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()) {
            if file.extension().is_some_and(|extension| extension == "wit") {
                let source = fs::read_to_string(&file).expect("text");
                resolve.push_str(&file, &source).unwrap_or_else(|error| panic!("{error:?}"));
            }
        }
    }
    let mut found = BTreeSet::new();
    for (id, interface) in &resolve.interfaces {
        let name = component::track(&resolve.id_of(id).expect("a name"));
        if name == NOT_FOR_COMPONENTS {
            continue;
        }
        let offered = INTERFACES.iter().find(|offered| offered.name == name).unwrap_or_else(|| panic!("{name} is not offered"));
        assert_eq!(offered.functions.len(), interface.functions.len(), "{name}");
        for (wanted, function) in &interface.functions {
            let offered = component::function(&name, wanted).unwrap_or_else(|| panic!("{name} {wanted} is not offered"));
            let signature = resolve.wasm_signature(AbiVariant::GuestImport, function);
            assert!(!signature.indirect_params, "{name} {wanted}");
            let types = (core(&signature.params), core(&signature.results));
            assert_eq!((offered.params.to_vec(), offered.results.to_vec()), types, "{name} {wanted}");
            let allocates = function.result.is_some_and(|ty| holds_list(&resolve, &ty));
            assert_eq!(offered.allocates, allocates, "{name} {wanted}");
            let ends = function.result.map_or(0, |ty| ends_in(&resolve, &ty));
            assert_eq!(offered.ends.len(), ends, "{name} {wanted}");
        }
        for (ty, id) in &interface.types {
            if matches!(resolve.types[*id].kind, TypeDefKind::Resource) {
                assert!(component::resource(&name, ty).is_some(), "{name} {ty} has no number");
            }
        }
        found.insert(name);
    }
    let others = INTERFACES.iter().filter(|interface| !found.contains(interface.name)).map(|interface| interface.name);
    let others: Vec<_> = others.filter(|name| !name.starts_with("wasi:")).collect();
    assert!(others.is_empty() && found.len() == 18, "{others:?} {found:?}");
}

/// The WIT that the Rust bindings of that name hold, as the component in `functions/components` uses them.
pub(crate) fn wit_of(bindings: &str, component: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/functions/components").join(component);
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", "wasm32-wasip2"]).current_dir(folder);
    let output = cargo.output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|package| package["name"] == bindings).expect("the bindings");
    Path::new(package["manifest_path"].as_str().expect("a path")).with_file_name("wit")
}

/// How many streams and futures a result holds.
fn ends_in(resolve: &Resolve, ty: &Type) -> usize {
    let Type::Id(id) = ty else { return 0 };
    match &resolve.types[*id].kind {
        TypeDefKind::Stream(_) | TypeDefKind::Future(_) => 1,
        TypeDefKind::Tuple(tuple) => tuple.types.iter().map(|ty| ends_in(resolve, ty)).sum(),
        TypeDefKind::Result(result) => result.ok.map_or(0, |ty| ends_in(resolve, &ty)),
        _ => 0,
    }
}

/// Packages of WASI that are drafts.
const DRAFTS: [&str; 2] = ["wasi:keyvalue/", "wasi:config/"];

#[test]
fn wasi_is_flat_as_the_wit_of_its_bindings_says() {
    for (bindings, component, tracks) in [("wasip2", "http", "@0.2"), ("wasip3", "service", "@0.3")] {
        // What is behind a gate, too.
        let mut resolve = Resolve { all_features: true, ..Resolve::default() };
        resolve.push_dir(wit_of(bindings, component)).unwrap_or_else(|error| panic!("{bindings}: {error:?}"));
        let interfaces: BTreeMap<String, _> = resolve
            .interfaces
            .iter()
            .map(|(id, interface)| (component::track(&resolve.id_of(id).expect("a name")), interface))
            .collect();
        let offered = INTERFACES.iter().filter(|offered| offered.name.starts_with("wasi:") && offered.name.ends_with(tracks));
        let mut compared = 0;
        for offered in offered {
            // Drafts are in no bindings; their WIT is compared above.
            let Some(interface) = interfaces.get(offered.name) else {
                assert!(DRAFTS.iter().any(|draft| offered.name.starts_with(draft)), "{}", offered.name);
                continue;
            };
            for function in offered.functions {
                let name = format!("{} {}", offered.name, function.name);
                let wanted = interface.functions.get(function.name).unwrap_or_else(|| panic!("{name} is in no WIT"));
                let signature = resolve.wasm_signature(AbiVariant::GuestImport, wanted);
                assert!(!signature.indirect_params, "{name}");
                let types = (core(&signature.params), core(&signature.results));
                assert_eq!((function.params.to_vec(), function.results.to_vec()), types, "{name}");
                let ends = wanted.result.map_or(0, |ty| ends_in(&resolve, &ty));
                assert_eq!(function.ends.len(), ends, "{name}");
                compared += 1;
            }
            let missing: Vec<_> =
                interface.functions.keys().filter(|name| component::function(offered.name, name).is_none()).collect();
            assert!(missing.is_empty(), "{}: {missing:?}", offered.name);
        }
        assert!(compared > 80, "{bindings}: {compared}");
    }
}

#[test]
fn the_flat_form_is_documented_as_it_is() {
    let text = text("wit/README.md");
    let mut documented = Interfaces::new();
    for section in text.split("\n## ").skip(1).filter(|section| section.starts_with('`')) {
        let Some(module) = between(section, "`", "`") else { continue };
        let rows = section.lines().filter_map(|line| between(line, "| `", "` |")).map(str::to_owned);
        documented.insert(module.to_owned(), rows.collect());
    }
    assert_eq!(documented, offered());
}

/// What the compiler lets pass, WASI's included.
#[test]
fn the_list_of_what_may_be_imported_is_that_of_what_is_offered() {
    let listed = awsm_abi::imports::INTERFACES.iter().flat_map(|interface| {
        interface.functions.iter().map(|function| (interface.module, function.name, function.params, function.results))
    });
    let offered = host::offered().map(|function| (function.module, function.name, function.params, function.results));
    assert_eq!(listed.collect::<Vec<_>>(), offered.collect::<Vec<_>>());
}

/// Of every function, WASI's included.
#[test]
fn effects_are_documented_as_they_are() {
    let mut effects = Interfaces::new();
    for function in host::offered() {
        let effect = match function.effect {
            Effect::Safe => "safe",
            Effect::Stream => "stream",
            Effect::Head => "head",
            Effect::Entropy => "entropy",
            Effect::Log => "log",
            Effect::KvRead => "kv-read",
            Effect::KvWrite => "kv-write",
            Effect::Call => "call",
            Effect::Reply => "reply",
            Effect::External => "external",
            // That of calls, by the folder that they work on.
            Effect::Scratch => unreachable!("a function declares it"),
        };
        effects.entry(effect.to_owned()).or_default().insert(format!("{} {}", function.module, function.name));
    }
    let text = text("wit/README.md");
    let (_, section) = text.split_once("\n## Effects\n").expect("a section");
    let mut documented = Interfaces::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names = documented.entry(cells[1].trim_matches('`').to_owned()).or_default();
        for group in cells[3].split("; ") {
            let (module, functions) = group.split_once("`: ").expect("a module");
            names.extend(functions.split(", ").map(|name| format!("{} {name}", module.trim_start_matches('`'))));
        }
    }
    assert_eq!(documented, effects);
}

#[test]
fn c_and_rust_import_what_is_offered() {
    let header = text("c/sledge.h");
    let mut imported = Interfaces::new();
    for import in header.split("SLEDGE_IMPORT(\"").skip(1) {
        let (module, rest) = import.split_once("\", \"").expect("a module");
        imported.entry(module.to_owned()).or_default().insert(rest.split_once('"').expect("a name").0.to_owned());
    }
    assert_eq!(imported, offered(), "sledge.h");

    // `header` is left out on purpose: the whole head is read at once.
    let host = text("rust/src/sys/host.rs");
    let mut imported = Interfaces::new();
    for block in host.split("wasm_import_module = \"").skip(1) {
        let (module, rest) = block.split_once('"').expect("a module");
        let names = rest.split("#[link_name = \"").skip(1).map(|import| import.split('"').next().expect("a name").to_owned());
        imported.insert(module.to_owned(), names.collect());
    }
    imported.entry("sledge:http".to_owned()).or_default().insert("header".to_owned());
    // Of another library.
    imported.extend(offered().into_iter().filter(|(module, _)| module == "sledge:rpc"));
    assert_eq!(imported, offered(), "the Rust SDK");
}

#[test]
fn go_imports_what_is_offered() {
    // Left out on purpose: the whole head is read at once, and a commit does what the others do.
    let left_out = [
        ("sledge:http", "header"),
        ("sledge:http", "add-trailer"),
        ("sledge:kv", "set-many"),
        ("sledge:kv", "delete-many"),
        // Of another library.
        ("sledge:rpc", "begin"),
        ("sledge:rpc", "head"),
        ("sledge:rpc", "trailers"),
        ("sledge:rpc", "call"),
        ("sledge:rpc", "accept"),
        ("sledge:rpc", "answer"),
    ];
    let host = text("go/host_wasip1.go");
    let mut imported = Interfaces::new();
    let imports = host.lines().filter_map(|line| line.strip_prefix("//go:wasmimport ")?.split_once(' '));
    for (module, name) in imports.chain(left_out) {
        assert!(imported.entry(module.to_owned()).or_default().insert(name.to_owned()), "{module} {name}");
    }
    assert_eq!(imported, offered());
}
