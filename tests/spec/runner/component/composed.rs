//! A component of a script as a command: it is put into a component that gives it what it imports, makes an instance of it, and calls what the script calls.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sledge_tests::canonical::{Encoding, Flat, Image};
use wasm_encoder::{CanonicalOption, ComponentBuilder, ComponentExportKind, ExportKind, ModuleArg};
use wasmparser::component_types::{ComponentEntityType, ComponentFuncType, ComponentInstanceTypeId};
use wasmparser::types::{Types, TypesRef};
use wasmparser::{Payload, Validator, WasmFeatures};
use wast::component::WastVal;

use super::types::Writer;
use super::values::Values;
use crate::engine::Failure;

/// What a command exports.
const RUN: &str = "wasi:cli/run@0.2.3";

/// A component that scripts may import from and make instances of.
#[derive(Clone)]
pub(super) struct Definition {
    pub(super) bytes: std::rc::Rc<[u8]>,
    types: std::rc::Rc<Types>,
}

/// A call, and the result that a script expects of it, where it expects one.
pub(super) struct Call<'a, 'w> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a WastVal<'w>>,
    pub(super) expected: Option<Vec<&'a WastVal<'w>>>,
}

impl Definition {
    /// # Errors
    /// When the component is not valid.
    pub(super) fn new(bytes: Vec<u8>) -> Result<Definition, Failure> {
        let types = Validator::new_with_features(WasmFeatures::all()).validate_all(&bytes);
        let types = types.map_err(|error| Failure::Invalid(error.to_string()))?;
        Ok(Definition { bytes: bytes.into(), types: types.into() })
    }

    /// What this component is called where no script names it: the host of scripts.
    pub(super) fn host() -> Result<Definition, Failure> {
        let bytes = wat::parse_str(include_str!("host.wat")).map_err(|error| Failure::Internal(error.to_string()))?;
        Definition::new(bytes)
    }

    fn function(&self, name: &str) -> Result<&ComponentFuncType, Failure> {
        let types = self.types.as_ref().as_ref();
        match types.component_item_for_export(name).map(|item| item.ty) {
            Some(ComponentEntityType::Func(id)) => Ok(&self.types[id]),
            _ => Err(Failure::Missing(format!("no exported function {name}"))),
        }
    }

    /// The names of imports, with their types.
    fn imports(&self) -> Result<Vec<(String, ComponentEntityType)>, Failure> {
        let mut names = Vec::new();
        // What is inside of components and modules that it holds is not its own.
        let mut depth = 0;
        for payload in wasmparser::Parser::new(0).parse_all(&self.bytes) {
            match payload.map_err(|error| Failure::Internal(error.to_string()))? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        names.push(import.map_err(|error| Failure::Internal(error.to_string()))?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        let types = self.types.as_ref().as_ref();
        Ok(names.into_iter().filter_map(|name| Some((name.clone(), types.component_item_for_import(&name)?.ty))).collect())
    }

    fn exports(&self, name: &str) -> Option<ComponentEntityType> {
        self.types.as_ref().as_ref().component_item_for_export(name).map(|item| item.ty)
    }
}

/// A command that does nothing, and holds a component, whatever it is, of which it makes no instance.
pub(super) fn unused(component: &[u8]) -> Vec<u8> {
    let mut builder = ComponentBuilder::default();
    builder.component_raw(Some("subject"), component);
    let module = r#"(module (func (export "run") (result i32) (i32.const 0)))"#;
    let module = builder.core_module_raw(None, &wat::parse_str(module).expect("a module"));
    let instance = builder.core_instantiate(None, module, []);
    export_run(&mut builder, instance);
    builder.finish()
}

/// The command that calls these functions of an instance of a component, one after the other. `others` are instances by name that it may import.
///
/// # Errors
/// When a function is missing, or a value has no image.
pub(super) fn command(
    host: &Definition,
    others: &BTreeMap<String, Definition>,
    definition: &Definition,
    calls: &[Call<'_, '_>],
) -> Result<Vec<u8>, Failure> {
    let mut builder = ComponentBuilder::default();
    let host_instance = {
        let component = builder.component_raw(Some("host"), &host.bytes);
        builder.instantiate(Some("host"), component, Vec::<(&str, _, _)>::new())
    };
    let subject = builder.component_raw(Some("subject"), &definition.bytes);
    let arguments = arguments(&mut builder, host, host_instance, others, definition)?;
    let instance = builder.instantiate(Some("subject"), subject, arguments);

    // What calls is beside what it calls: a component may not call what it holds.
    let types = definition.types.as_ref().as_ref();
    let values = Values(types);
    let mut made = Image::new(Encoding::Utf8, "(return (i32.const 1))");
    let mut writer = Writer { types, inner: ComponentBuilder::default(), arguments: Vec::new() };
    let mut names: Vec<&str> = Vec::new();
    let mut functions = Vec::new();
    let mut imports = String::new();
    for call in calls {
        let function = definition.function(call.name)?;
        let index = names.iter().position(|name| *name == call.name).unwrap_or(names.len());
        if index == names.len() {
            names.push(call.name);
            let given = builder.alias_export(instance, call.name, ComponentExportKind::Func);
            let imported = writer.import(&mut builder, &format!("f{index}"), function, given);
            functions.push(imported.map_err(Failure::Unsupported)?);
            let (params, result) = values.signature(function).map_err(Failure::Unsupported)?;
            let (params, results) = Image::signature(&params, result.as_ref());
            let list = |types: &[Flat]| types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(" ");
            let _ = writeln!(
                imports,
                "(import \"f\" \"{index}\" (func $f{index} (param {}) (result {})))",
                list(&params),
                list(&results)
            );
        }
        add_call(&mut made, values, &format!("$f{index}"), function, call).map_err(Failure::Unsupported)?;
    }
    let Writer { mut inner, arguments, .. } = writer;
    lower_and_run(&mut inner, &functions, &imports, &made)?;
    let driver = builder.component(Some("driver"), inner);
    let driver = builder.instantiate(Some("driver"), driver, arguments);
    let run = builder.alias_export(driver, RUN, ComponentExportKind::Instance);
    builder.export(RUN, ComponentExportKind::Instance, run, None);
    Ok(builder.finish())
}

/// Adds a call to what is made.
fn add_call(
    made: &mut Image,
    values: Values<'_>,
    name: &str,
    function: &ComponentFuncType,
    call: &Call<'_, '_>,
) -> Result<(), String> {
    let (params, result) = values.signature(function)?;
    if call.arguments.len() != params.len() {
        return Err(format!("{} arguments for {} parameters", call.arguments.len(), params.len()));
    }
    let arguments = function.params.iter().zip(&call.arguments).map(|((_, ty), value)| values.value(*ty, value));
    let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
    let expected = match (call.expected.as_deref(), function.result) {
        (None, _) | (Some([]), None) => None,
        (Some([value]), Some(ty)) => Some(values.value(ty, value)?),
        (Some(expected), _) => {
            let count = usize::from(result.is_some());
            return Err(format!("{} results expected of a function that has {count}", expected.len()));
        }
    };
    made.call(name, &params, result.as_ref(), &arguments, expected.as_ref());
    Ok(())
}

/// Adds the core modules that hold the memory and make the calls, and what the composition exports.
fn lower_and_run(builder: &mut ComponentBuilder, functions: &[u32], imports: &str, made: &Image) -> Result<(), Failure> {
    let data = made.data();
    let free = made.memory.len().next_multiple_of(16);
    let pages = free / 0x1_0000 + 16;
    let memory = format!(
        "(module
           (memory (export \"memory\") {pages})
           (data (i32.const 0) \"{data}\")
           (global $free (mut i32) (i32.const {free}))
           (func (export \"realloc\") (param i32 i32 i32 i32) (result i32)
             (global.set $free (i32.and (i32.add (global.get $free) (i32.sub (local.get 2) (i32.const 1))) (i32.sub (i32.const 0) (local.get 2))))
             (memory.copy (global.get $free) (local.get 0)
               (select (local.get 1) (local.get 3) (i32.lt_u (local.get 1) (local.get 3))))
             (global.get $free)
             (global.set $free (i32.add (global.get $free) (local.get 3)))
             (block $fits
               (br_if $fits (i32.le_u (global.get $free) (i32.mul (memory.size) (i32.const 0x10000))))
               (br_if $fits (i32.ge_s
                 (memory.grow (i32.add (i32.shr_u (local.get 3) (i32.const 16)) (i32.const 1)))
                 (i32.const 0)))
               unreachable)))"
    );
    let driver = format!(
        "(module
           (import \"m\" \"memory\" (memory 1))
           {imports}
           {differ}
           (func (export \"run\") (result i32) {locals}
             {code}
             (i32.const 0)))",
        differ = Image::DIFFER,
        locals = made.locals,
        code = made.code,
    );
    let parse = |text: &str| wat::parse_str(text).map_err(|error| Failure::Internal(error.to_string()));
    let memory = builder.core_module_raw(Some("memory"), &parse(&memory)?);
    let driver = builder.core_module_raw(Some("driver"), &parse(&driver)?);
    let memory_instance = builder.core_instantiate(None, memory, []);
    let memory = builder.core_alias_export(None, memory_instance, "memory", ExportKind::Memory);
    let realloc = builder.core_alias_export(None, memory_instance, "realloc", ExportKind::Func);
    let mut lowered = Vec::new();
    for (index, function) in functions.iter().enumerate() {
        let options = [CanonicalOption::UTF8, CanonicalOption::Memory(memory), CanonicalOption::Realloc(realloc)];
        lowered.push((index.to_string(), builder.lower_func(None, *function, options)));
    }
    let lowered: Vec<_> = lowered.iter().map(|(name, function)| (name.as_str(), ExportKind::Func, *function)).collect();
    let functions = builder.core_instantiate_exports(None, lowered);
    let driver_instance = builder.core_instantiate(
        None,
        driver,
        [("m", ModuleArg::Instance(memory_instance)), ("f", ModuleArg::Instance(functions))],
    );
    export_run(builder, driver_instance);
    Ok(())
}

/// Exports `run` of a core instance as what a command is.
fn export_run(builder: &mut ComponentBuilder, instance: u32) {
    let run = builder.core_alias_export(None, instance, "run", ExportKind::Func);
    let (result, encoder) = builder.type_defined(None);
    encoder.result(None, None);
    let (ty, mut encoder) = builder.type_function(None);
    encoder
        .params(Vec::<(&str, wasm_encoder::ComponentValType)>::new())
        .result(Some(wasm_encoder::ComponentValType::Type(result)));
    let run = builder.lift_func(None, run, ty, []);
    let exported = builder.instantiate_exports(None, [("run", ComponentExportKind::Func, run)]);
    builder.export(RUN, ComponentExportKind::Instance, exported, None);
}

/// What a component is given for its imports: of the script's host, of instances that the script has made, and empty instances.
fn arguments(
    builder: &mut ComponentBuilder,
    host: &Definition,
    host_instance: u32,
    others: &BTreeMap<String, Definition>,
    definition: &Definition,
) -> Result<Vec<(String, ComponentExportKind, u32)>, Failure> {
    let mut arguments = Vec::new();
    for (name, ty) in definition.imports()? {
        let kind = kind(&ty);
        if let Some(offered) = host.exports(&name) {
            if self::kind(&offered) != kind {
                return Err(Failure::Unlinkable(format!("`{name}` is of another kind")));
            }
            let index = builder.alias_export(host_instance, &name, kind);
            arguments.push((name, kind, index));
            continue;
        }
        let index = match (ty, others.get(&name)) {
            (ComponentEntityType::Instance(_), Some(other)) => {
                let component = builder.component_raw(Some(&name), &other.bytes);
                let given = self::arguments(builder, host, host_instance, others, other)?;
                builder.instantiate(Some(&name), component, given)
            }
            (ComponentEntityType::Instance(id), None) => empty(builder, definition.types.as_ref().as_ref(), id, &name)?,
            // Types are given with what uses them, or are free.
            _ => return Err(Failure::Unlinkable(format!("unknown import {name}"))),
        };
        arguments.push((name, kind, index));
    }
    Ok(arguments)
}

/// An instance that has nothing but instances like itself.
fn empty(builder: &mut ComponentBuilder, types: TypesRef<'_>, id: ComponentInstanceTypeId, name: &str) -> Result<u32, Failure> {
    let mut exports = Vec::new();
    for (export, item) in &types[id].exports {
        let ComponentEntityType::Instance(id) = item.ty else {
            return Err(Failure::Unlinkable(format!("unknown import {name} {export}")));
        };
        exports.push((export.as_str(), ComponentExportKind::Instance, empty(builder, types, id, export)?));
    }
    Ok(builder.instantiate_exports(None, exports))
}

const fn kind(ty: &ComponentEntityType) -> ComponentExportKind {
    match ty {
        ComponentEntityType::Module(_) => ComponentExportKind::Module,
        ComponentEntityType::Func(_) => ComponentExportKind::Func,
        ComponentEntityType::Value(_) => ComponentExportKind::Value,
        ComponentEntityType::Type { .. } => ComponentExportKind::Type,
        ComponentEntityType::Instance(_) => ComponentExportKind::Instance,
        ComponentEntityType::Component(_) => ComponentExportKind::Component,
    }
}
