//! Whether a module's imports can be served, before anything is compiled: only its types and imports are read.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use wasmparser::{CompositeInnerType, Encoding, FuncType, Parser, Payload, TypeRef, ValType as Parsed};

use crate::imports::{Function, INTERFACES, Interface};
use crate::limits::TYPES_MAX;
use crate::text::{self, NAME_CHARACTERS_MAX};
use crate::types::ValType;

/// How alike an unknown name must be to a known one to be taken for a slip of the pen (Jaro-Winkler, 0 to 1).
const LIKENESS_MIN: f64 = 0.85;
/// Imports that a message names.
const NAMED_MAX: usize = 20;

/// What begins the name of the custom section in which a compiler leaves the world of a module that is to become a component.
const WORLD_SECTION: &str = "component-type";
/// What begins the names of imported modules by the newer of the two rules for naming what becomes a component (wit-component, `Standard32`).
const STANDARD_PREFIX: &str = "cm32p2|";
/// What begins the names of imported modules whose functions are about resources that the module exports itself.
const EXPORT_PREFIX: &str = "[export]";

/// How `awsm compile` ends its refusal of a component that imports what is not on offer, where that may be accepted. A program that runs `awsm` for a user says
/// it otherwise: what that user can set.
pub const ALLOW_ADVICE: &str = "compile it with --allow-unknown-imports";

/// Module names that say for which host a module was made, and what to do.
const HOSTS: &[(&str, &str)] = &[
    ("wasi_unstable", "it was built for WASI before preview 1; build it for wasm32-wasip1"),
    ("gojs", "it was built for a browser; build it with GOOS=wasip1"),
    ("go", "it was built for a browser; build it with GOOS=wasip1"),
    ("rb-js-abi-host", "it needs a JavaScript host"),
    ("wbg", "it was built by wasm-bindgen for a JavaScript host; build it for wasm32-wasip1 without it"),
    ("__wbindgen_placeholder__", "it was built for wasm-bindgen and a JavaScript host; build it for wasm32-wasip1 without it"),
    ("wasi", "threads are not supported; build it for wasm32-wasip1"),
    ("a", "it was built by Emscripten for a JavaScript host; build it for wasm32-wasip1"),
    ("env", "what is declared but not defined, or was built by Emscripten, is imported from there"),
];

/// Why a module cannot be served: it imports what is not on offer.
#[derive(Debug)]
pub struct Refused {
    /// All that, or more than a message names.
    missing: Vec<Missing>,
    /// How it is known that the module is to become a component first.
    sign: Option<Sign>,
}

/// By what a module that is to become a component is known.
#[derive(Debug)]
enum Sign {
    /// The world stands in it, in this section.
    World(String),
    /// It imports or exports, as the word says, functions of this interface.
    Interface(&'static str, String),
}

impl Refused {
    /// Whether the module is to become a component first.
    #[must_use]
    pub fn is_for_component(&self) -> bool {
        self.sign.is_some()
    }
}

/// An import that is not on offer.
#[derive(Debug)]
pub struct Missing {
    /// What is imported, in words.
    what: String,
    /// What there is instead.
    instead: String,
}

/// Bytes of the function bodies of a module, or of all modules of a component: what the time goes by that it takes to compile it. Of what is broken, those before that.
#[must_use]
pub fn function_bytes(module: &[u8]) -> u64 {
    let payloads = Parser::new(0).parse_all(module).map_while(Result::ok);
    let bytes = |payload| match payload {
        Payload::CodeSectionStart { size, .. } => u64::from(size),
        _ => 0,
    };
    payloads.map(bytes).sum()
}

/// Looks at a module's imports. Of what is no module, or a broken one, or a component, the compiler knows more to say: nothing is said here.
///
/// # Errors
/// When it imports what the host does not offer, with all such imports as far as a message names them.
pub fn check(wasm: &[u8]) -> Result<(), Refused> {
    let mut types = Vec::new();
    let mut missing = Vec::new();
    let mut interface = None;
    'sections: for payload in Parser::new(0).parse_all(wasm) {
        match payload {
            Ok(Payload::Version { encoding: Encoding::Component, .. }) => return Ok(()),
            Ok(Payload::Version { .. } | Payload::CustomSection(_)) => {}
            Ok(Payload::TypeSection(section)) => {
                let groups = section.into_iter().map_while(Result::ok);
                let all = groups.flat_map(wasmparser::RecGroup::into_types).take(TYPES_MAX);
                types.extend(all.map(|ty| match ty.composite_type.inner {
                    CompositeInnerType::Func(ty) => Some(ty),
                    _ => None,
                }));
            }
            Ok(Payload::ImportSection(section)) => {
                for import in section.into_imports().map_while(Result::ok) {
                    let instead = match import.ty {
                        TypeRef::Func(index) | TypeRef::FuncExact(index) => {
                            let Some(ty) = types.get(index as usize) else { break };
                            find(import.module, import.name, ty.as_ref())
                        }
                        _ => Err(String::from("only functions are offered")),
                    };
                    if let Err(instead) = instead {
                        if interface.is_none() && is_interface(import.module) {
                            interface = Some(text::name(import.module));
                        }
                        let ty = kind(import.ty, &types);
                        let what = format!("{ty} `{}` `{}`", text::name(import.module), text::name(import.name));
                        missing.push(Missing { what, instead });
                    }
                    // The module's author can go on with these.
                    if missing.len() > NAMED_MAX {
                        break 'sections;
                    }
                }
            }
            _ => break,
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let sign = world(wasm).or(interface.map(|interface| Sign::Interface("imports", interface))).or_else(|| exported(wasm));
    Err(Refused { missing, sign })
}

/// Whether an imported module is named as an interface is: `wasi:http/types@0.2.0`.
fn is_interface(module: &str) -> bool {
    let name = module.strip_prefix(STANDARD_PREFIX).or_else(|| module.strip_prefix(EXPORT_PREFIX)).unwrap_or(module);
    let Some((namespace, rest)) = name.split_once(':') else { return false };
    rest.split_once('/').is_some_and(|(package, interface)| ![namespace, package, interface].contains(&""))
}

/// The interface of which that is a function, if it is named as the canonical ABI names what a module exports: `wasi:cli/run@0.2.0#run`.
#[must_use]
pub fn interface_of_export(name: &str) -> Option<&str> {
    name.split_once('#').map(|(interface, _)| interface).filter(|interface| is_interface(interface))
}

/// The section that holds a module's world, if it has one.
fn world(wasm: &[u8]) -> Option<Sign> {
    Parser::new(0).parse_all(wasm).map_while(Result::ok).find_map(|payload| match payload {
        Payload::CustomSection(section) if section.name().starts_with(WORLD_SECTION) => {
            Some(Sign::World(text::name(section.name())))
        }
        _ => None,
    })
}

/// An interface that a module exports, if it exports any.
fn exported(wasm: &[u8]) -> Option<Sign> {
    Parser::new(0).parse_all(wasm).map_while(Result::ok).find_map(|payload| {
        let Payload::ExportSection(section) = payload else { return None };
        let interface = section.into_iter().map_while(Result::ok).find_map(|export| interface_of_export(export.name));
        interface.map(|interface| Sign::Interface("exports", text::name(interface)))
    })
}

/// The name that is most like one that does not exist, if one is much alike.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Nothing that is offered is nearly as long, and comparing takes as long as the product of both.
    if name.len() > NAME_CHARACTERS_MAX {
        return None;
    }
    let alike = known.map(|known| (strsim::jaro_winkler(name, known), known)).filter(|(likeness, _)| *likeness >= LIKENESS_MIN);
    alike.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// Whether it is offered; else what is.
fn find(module: &str, name: &str, ty: Option<&FuncType>) -> Result<(), String> {
    let Some(interface) = INTERFACES.iter().find(|interface| interface.module == module) else {
        let advice = HOSTS.iter().find(|(host, _)| *host == module).map(|(_, advice)| (*advice).to_string());
        let alike = || Some(format!("the nearest is `{}`", nearest(module, INTERFACES.iter().map(|one| one.module))?));
        return Err(advice.or_else(alike).unwrap_or_else(|| String::from("there is no such module")));
    };
    let Some(function) = interface.functions.iter().find(|function| function.name == name) else {
        return Err(match nearest_function(interface, name) {
            Some(function) => format!("the nearest is `{}` {}", function.name, signature(function)),
            None => format!("there is none of that name among its {} functions", interface.functions.len()),
        });
    };
    let is_same = |wanted: &[Parsed], offered: &[ValType]| {
        wanted.len() == offered.len() && wanted.iter().zip(offered).all(|(wanted, offered)| is(*wanted, *offered))
    };
    match ty {
        Some(ty) if is_same(ty.params(), function.params) && is_same(ty.results(), function.results) => Ok(()),
        _ => Err(format!("it is {}", signature(function))),
    }
}

fn nearest_function(interface: &Interface, name: &str) -> Option<&'static Function> {
    let found = nearest(name, interface.functions.iter().map(|function| function.name))?;
    interface.functions.iter().find(|function| function.name == found)
}

const fn is(wanted: Parsed, offered: ValType) -> bool {
    matches!(
        (wanted, offered),
        (Parsed::I32, ValType::I32) | (Parsed::I64, ValType::I64) | (Parsed::F32, ValType::F32) | (Parsed::F64, ValType::F64)
    )
}

fn signature(function: &Function) -> String {
    arrow(function.params, function.results)
}

fn arrow<T: fmt::Display>(params: &[T], results: &[T]) -> String {
    let list = |types: &[T]| types.iter().map(T::to_string).collect::<Vec<_>>().join(", ");
    text::name(&format!("({}) -> ({})", list(params), list(results)))
}

/// What is imported.
fn kind(ty: TypeRef, types: &[Option<FuncType>]) -> String {
    match ty {
        TypeRef::Func(index) | TypeRef::FuncExact(index) => match types.get(index as usize) {
            Some(Some(ty)) => format!("function {}", arrow(ty.params(), ty.results())),
            _ => String::from("function"),
        },
        TypeRef::Table(_) => String::from("table"),
        TypeRef::Memory(_) => String::from("memory"),
        TypeRef::Global(_) => String::from("global"),
        TypeRef::Tag(_) => String::from("tag"),
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { missing, sign } = self;
        if let Some(sign) = sign {
            return fmt::Display::fmt(sign, f);
        }
        match missing.len() {
            1 => writeln!(f, "1 of its imports is not offered:")?,
            count @ ..=NAMED_MAX => writeln!(f, "{count} of its imports are not offered:")?,
            _ => writeln!(f, "more than {NAMED_MAX} of its imports are not offered, the first of them:")?,
        }
        for Missing { what, instead } in missing.iter().take(NAMED_MAX) {
            writeln!(f, "  {what}: {instead}")?;
        }
        f.write_str("on offer are")?;
        for (index, interface) in INTERFACES.iter().enumerate() {
            let separator = if index == 0 { " " } else { ", " };
            write!(f, "{separator}`{}` ({} functions)", interface.module, interface.functions.len())?;
        }
        Ok(())
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this core module is to become a component first: ")?;
        match self {
            Sign::World(section) => {
                write!(f, "it has the section `{section}`; run `awsm componentize FILE -o COMPONENT.wasm`, and use the component")
            }
            Sign::Interface(does, interface) => write!(
                f,
                "it {does} functions of the interface `{interface}`; run `awsm componentize FILE --wit PATH -o COMPONENT.wasm` (PATH: its world in WIT), and \
                 use the component"
            ),
        }
    }
}

impl core::error::Error for Refused {}
