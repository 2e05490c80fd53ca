//! Adapters of which one side is asynchronous: what they import to start a task, and the functions of that task. Both are found in their code.

use std::collections::HashMap;

use wasmtime_environ::component::{CoreDef, RuntimeComponentInstanceIndex, Trampoline};
use wasmtime_environ::wasmparser::{Operator, Parser, Payload};
use wasmtime_environ::{EntityIndex, EntityRef as _, EntityType, FuncIndex, StaticModuleIndex};

use super::super::glue::{Adapter, ENTRIES_PER_ADAPTER, Glue, Signature, Source};
use super::options::return_options;
use super::{Builder, unsupported};
use crate::error::CompileError;

/// How names begin under which an adapter imports what starts a task, and exports what belongs to it.
const PREPARE: &str = "[prepare-call]";
const COPY_PARAMS: &str = "[async-start]";
const COPY_RESULT: &str = "[async-return]";
const CALLEE: &str = "[adapter-callee]";

/// In the place of the number of results: the caller is asynchronous, with or without a result.
const ASYNC_WITH_RESULT: i32 = -2;
const ASYNC_WITHOUT_RESULT: i32 = -1;

/// The last number when a task is started whose function is lifted as async.
const CALLEE_IS_ASYNC: i32 = 1;

/// Numbers that an adapter passes when it prepares a call.
const PREPARE_NUMBERS: usize = 6;

/// The adapters of a module of which one side is asynchronous.
#[derive(Debug, Default)]
pub(super) struct TaskAdapters {
    /// What the module imports for them, by name.
    sources: HashMap<String, Source>,
    /// Each with its name.
    adapters: Vec<(String, Adapter)>,
    module: Option<StaticModuleIndex>,
}

impl TaskAdapters {
    /// What stands for an import.
    pub(super) fn source(&self, name: &str) -> Option<Source> {
        self.sources.get(name).cloned()
    }
}

/// Whether a trampoline belongs to an adapter that starts tasks; it is made for each adapter by itself.
pub(super) const fn is_of_adapter(trampoline: &Trampoline) -> bool {
    matches!(trampoline, Trampoline::PrepareCall { .. } | Trampoline::SyncStartCall { .. } | Trampoline::AsyncStartCall { .. })
}

impl Builder<'_> {
    /// Notes which instances may wait to enter another one by an adapter of a module, both sides of which are synchronous.
    pub(super) fn note_entered(&mut self, index: StaticModuleIndex, arguments: &[CoreDef]) -> Result<(), CompileError> {
        let translated = &self.static_modules[index];
        let functions = translated.module.imports().zip(arguments).filter(|((.., ty), _)| matches!(ty, EntityType::Function(_)));
        let enter = functions.map(|(_, argument)| argument).position(|argument| {
            matches!(argument, CoreDef::Trampoline(index) if matches!(self.trampolines[*index], Trampoline::EnterSyncCall))
        });
        if let Some(enter) = enter {
            for caller in callers_that_wait(translated.wasm, enter as u32)? {
                self.may_wait(caller);
            }
        }
        Ok(())
    }

    /// Makes what the adapters of a module import to start tasks.
    pub(super) fn task_adapters(
        &mut self,
        index: StaticModuleIndex,
        arguments: &[CoreDef],
    ) -> Result<TaskAdapters, CompileError> {
        let mut made = TaskAdapters { module: Some(index), ..TaskAdapters::default() };
        if !arguments.iter().any(|def| matches!(def, CoreDef::Trampoline(index) if is_of_adapter(&self.trampolines[*index]))) {
            return Ok(made);
        }
        let prepared = prepared_calls(self.static_modules[index].wasm)?;
        let translated = &self.static_modules[index];
        let imports: Vec<_> = translated.module.imports().zip(arguments).collect();
        let functions = imports.iter().filter(|((_, _, ty), _)| matches!(ty, EntityType::Function(_)));
        let functions: Vec<_> = functions.map(|((_, name, ty), argument)| (*name, ty.clone(), (*argument).clone())).collect();
        for (place, (name, ty, argument)) in functions.iter().enumerate() {
            let Some(adapter) = name.strip_prefix(PREPARE) else { continue };
            let prepare = self.function_type(ty)?;
            let prepared = prepared.get(&(place as u32));
            let Some((prepared, (start_name, start_type, start))) =
                prepared.and_then(|prepared| Some((prepared, functions.get(prepared.start as usize)?)))
            else {
                return Err(unsupported("an adapter of an unknown form (a bug)"));
            };
            let numbers = &prepared.numbers;
            let (callee, callee_type) = self.callee(index, adapter, &functions)?;
            let CoreDef::Trampoline(prepare_index) = argument else { return Err(unsupported("an adapter without task (a bug)")) };
            let Trampoline::PrepareCall { memory } = &self.trampolines[*prepare_index] else {
                return Err(unsupported("an adapter without task (a bug)"));
            };
            let options = return_options(memory.map(|index| index.as_u32()), numbers[4] as u32);
            let CoreDef::Trampoline(start) = start else { return Err(unsupported("an adapter without start (a bug)")) };
            let (callback, post_return, is_sync) = match &self.trampolines[*start] {
                Trampoline::SyncStartCall { callback } => (*callback, None, true),
                Trampoline::AsyncStartCall { callback, post_return } => (*callback, *post_return, false),
                _ => return Err(unsupported("an adapter without start (a bug)")),
            };
            let caller_index = numbers[0] as u32;
            if is_sync {
                self.may_wait(caller_index);
            }
            let instance = RuntimeComponentInstanceIndex::from_u32(numbers[1] as u32);
            let sync_results = if is_sync { Some(self.function_type(start_type)?.results) } else { None };
            let post_return = post_return.and_then(|index| self.post_returns.get(&index)).cloned();
            let post_return = match post_return {
                Some(function) => {
                    let ty = Signature::new(&callee_type.results, &[]);
                    Some(self.post_return(&function, instance, &ty)?)
                }
                None => None,
            };
            let has_result_pointer = match numbers[5] {
                ASYNC_WITH_RESULT => true,
                ASYNC_WITHOUT_RESULT => false,
                count => count > 1,
            };
            let adapter = (
                adapter.to_owned(),
                Adapter {
                    caller: self.state.instance(caller_index),
                    caller_index,
                    callee_instance: self.state.instance(instance.as_u32()),
                    result_type: numbers[2] as u32,
                    options,
                    is_async_type: numbers[3] != 0,
                    is_lifted_async: is_sync || prepared.last == CALLEE_IS_ASYNC,
                    params: prepare.params,
                    has_result_pointer,
                    entry: self.new_entries(ENTRIES_PER_ADAPTER),
                    callee,
                    callee_type,
                    callback: callback.and_then(|index| self.callbacks.get(&index)).cloned(),
                    post_return,
                },
            );
            let mut glue = Glue::new(None);
            let prepare = glue.prepare(&adapter.1);
            let run = sync_results.map(|results| glue.run_task(&results));
            let (text, linked) = glue.finish();
            let instance = self.instantiate(&text, &linked)?;
            made.sources.insert((*name).to_owned(), Source { instance, export: prepare });
            let start = run.map_or(Source::state("task start"), |export| Source { instance, export });
            made.sources.insert((*start_name).to_owned(), start);
            made.adapters.push(adapter);
        }
        Ok(made)
    }

    /// Adds the functions of an adapter module's tasks, after the module, which copies what they are given and return.
    pub(super) fn task_functions(&mut self, made: TaskAdapters) -> Result<(), CompileError> {
        let (Some(module), place) = (made.module, self.plan.len() - 1) else { return Ok(()) };
        for (name, adapter) in made.adapters {
            let exported = |prefix: &str| {
                let export = format!("{prefix}{name}");
                let (_, ty) = self.exported_function(module, &export)?;
                Ok::<_, CompileError>((Source { instance: place, export }, ty))
            };
            let (start, give_back) = (exported(COPY_PARAMS)?, exported(COPY_RESULT)?);
            let mut glue = Glue::new(None);
            glue.task_functions(&adapter, &start, &give_back, self.throws);
            let (text, linked) = glue.finish();
            self.instantiate(&text, &linked)?;
        }
        Ok(())
    }

    /// What an adapter calls in the end.
    fn callee(
        &mut self,
        index: StaticModuleIndex,
        adapter: &str,
        functions: &[(&str, EntityType, CoreDef)],
    ) -> Result<(Source, Signature), CompileError> {
        let (function, ty) = self.exported_function(index, &format!("{CALLEE}{adapter}"))?;
        let (_, _, argument) =
            functions.get(function.index()).ok_or_else(|| unsupported("an adapter that calls itself (a bug)"))?;
        Ok((self.source(argument)?, ty))
    }

    /// A function that a module exports.
    fn exported_function(&self, index: StaticModuleIndex, name: &str) -> Result<(FuncIndex, Signature), CompileError> {
        let module = &self.static_modules[index].module;
        let found = module.exports.iter().find(|(export, _)| module.strings[**export] == *name);
        let Some((_, EntityIndex::Function(function))) = found else {
            return Err(unsupported(format!("an adapter without `{name}` (a bug)")));
        };
        let ty = module.functions[*function].signature.unwrap_module_type_index();
        Ok((*function, self.signature(ty)?))
    }

    /// The type of a function of an adapter, without the functions and numbers that come first.
    fn function_type(&self, ty: &EntityType) -> Result<Signature, CompileError> {
        let EntityType::Function(ty) = ty else { return Err(unsupported("an adapter without function (a bug)")) };
        let ty = self.types.module_types()[ty.unwrap_module_type_index()].unwrap_func();
        let mut params: Vec<_> = ty.params().iter().collect();
        let references = params.iter().filter(|ty| super::value(ty).is_err()).count();
        if references == 2 {
            params.drain(..2 + PREPARE_NUMBERS);
        } else {
            params.clear();
        }
        let values = params.into_iter().map(super::value).collect::<Result<_, _>>()?;
        Ok(Signature { params: values, results: ty.results().iter().map(super::value).collect::<Result<_, _>>()? })
    }
}

/// What an adapter passes when it prepares a call: the instance that calls, the one that is called, the result's type, whether the function's type is
/// async, how strings are encoded, and how many results there are or which asynchronous form. Then it calls what starts the task.
struct Prepared {
    numbers: [i32; PREPARE_NUMBERS],
    start: u32,
    /// The last number that an asynchronous caller passes to that: whether the callee is lifted as async.
    last: i32,
}

/// The calls that adapters of a module prepare, by the function that they call for that.
fn prepared_calls(wasm: &[u8]) -> Result<HashMap<u32, Prepared>, CompileError> {
    let unknown = |_| unsupported("an adapter of an unknown form (a bug)");
    let mut found = HashMap::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::CodeSectionEntry(body) = payload.map_err(unknown)? else { continue };
        let mut references = 0;
        let mut numbers = Vec::new();
        let mut prepare = None;
        let mut last = 0;
        for operator in body.get_operators_reader().map_err(unknown)? {
            match (operator.map_err(unknown)?, references) {
                // What copies parameters, what copies the result, what is called.
                (Operator::RefFunc { .. }, _) => references += 1,
                (Operator::I32Const { value }, 2) if numbers.len() < PREPARE_NUMBERS => numbers.push(value),
                (Operator::I32Const { value }, 3) => last = value,
                (Operator::Call { function_index }, 2) => prepare = Some(function_index),
                (Operator::Call { function_index }, 3) => {
                    let numbers = <[i32; PREPARE_NUMBERS]>::try_from(std::mem::take(&mut numbers));
                    if let (Some(prepare), Ok(numbers)) = (prepare, numbers) {
                        found.insert(prepare, Prepared { numbers, start: function_index, last });
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// The instances whose calls by adapters of a module enter functions of an async type. `enter` is what adapters call first, with the number of the instance that calls,
/// whether the function's type is async, and the instance that is called.
fn callers_that_wait(wasm: &[u8], enter: u32) -> Result<Vec<u32>, CompileError> {
    let unknown = |_| unsupported("an adapter of an unknown form (a bug)");
    let mut callers = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::CodeSectionEntry(body) = payload.map_err(unknown)? else { continue };
        let mut numbers = [0; 3];
        for operator in body.get_operators_reader().map_err(unknown)? {
            match operator.map_err(unknown)? {
                Operator::I32Const { value } => numbers = [numbers[1], numbers[2], value],
                Operator::Call { function_index } if function_index == enter && numbers[1] != 0 => {
                    callers.push(numbers[0] as u32)
                }
                _ => {}
            }
        }
    }
    Ok(callers)
}
