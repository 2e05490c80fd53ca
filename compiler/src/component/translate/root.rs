//! The last instance: what the server calls of the component.

use awsm_abi::component as abi;
use awsm_abi::text;
use awsm_abi::types::ValType;
use wasmtime_environ::component::{CanonicalOptions, CoreDef, Export, TypeFuncIndex, TypeTupleIndex};

use super::super::glue::{ENTRIES_PER_ROOT, Glue, Returned, Root, RootKind, Signature, Source};
use super::lowered::rebuilt_for;
use super::options::{encoding, return_options};
use super::{Builder, unsupported, wit};
use crate::error::CompileError;

/// The interface of a command, with its track, and what it exports.
const RUN: (&str, &str) = ("wasi:cli/run@0.2", "run");
/// The same where it is async.
const RUN_ASYNC: (&str, &str) = ("wasi:cli/run@0.3", "run");
/// The interface of what answers HTTP requests.
const HANDLER: (&str, &str) = ("wasi:http/incoming-handler@0.2", "handle");
/// The same where it is async.
pub(super) const HANDLER_ASYNC: (&str, &str) = ("wasi:http/handler@0.3", "handle");

/// Whether an interface, given with its track, is that of what answers HTTP requests.
pub(super) fn is_handler(interface: &str) -> bool {
    [HANDLER.0, HANDLER_ASYNC.0].contains(&interface)
}
/// Exports that a message names.
const EXPORTS_NAMED_MAX: usize = 20;

/// How a component is entered.
#[derive(Clone, Copy)]
enum Entry {
    /// It answers HTTP requests, as WASI 0.2 has it.
    Handler,
    /// The same of WASI 0.3.
    Service,
    /// A command.
    Run,
}

impl Entry {
    /// Its type in WIT, as [`Builder::function_wit`] writes it.
    const fn wit(self, is_async: bool) -> &'static str {
        match (self, is_async) {
            (Entry::Handler, _) => "func(own<wasi:http/types@0.2/incoming-request>, own<wasi:http/types@0.2/response-outparam>)",
            (Entry::Service, _) => {
                "async func(own<wasi:http/types@0.3/request>) -> result<own<wasi:http/types@0.3/response>, error-code>"
            }
            (Entry::Run, false) => "func() -> result",
            (Entry::Run, true) => "async func() -> result",
        }
    }

    /// The type of what is called when its result has been taken.
    fn post_return(self) -> Signature {
        match self {
            Entry::Handler => Signature::new(&[], &[]),
            Entry::Run | Entry::Service => Signature::new(&[ValType::I32], &[]),
        }
    }
}

impl Builder<'_> {
    /// The last instance: what the server calls.
    pub(super) fn entry(&mut self) -> Result<(), CompileError> {
        // The newer version first: the older one may be what the adapter of a library exports, and do nothing.
        let entries = [(HANDLER_ASYNC, Entry::Service), (HANDLER, Entry::Handler), (RUN_ASYNC, Entry::Run), (RUN, Entry::Run)];
        let found = entries.into_iter().find_map(|(export, entry)| Some((export, entry, self.lifted(export.0, export.1)?)));
        let Some((export, entry, (func, ty, options))) = found else {
            return Err(self.no_entry());
        };
        // What the server passes and takes is of that type, whatever the component says.
        let (expected, declared) = (entry.wit(export == RUN_ASYNC), self.function_wit(&self.types[ty]));
        if declared != expected {
            let ((interface, name), declared) = (export, wit::told(&declared));
            return Err(CompileError::component(&format!(
                "`{name}` of `{interface}` is exported with another type: expected `{expected}`, found `{declared}`"
            )));
        }
        let (func, result_type, options) = (func.clone(), self.types[ty].results, options.clone());
        let post_return = options.post_return.and_then(|index| self.post_returns.get(&index)).cloned();
        let (instance, ty) = (options.instance, entry.post_return());
        let post_return = post_return.map(|function| self.post_return(&function, instance, &ty)).transpose()?;
        let is_service = matches!(entry, Entry::Service);
        if options.async_ || is_service {
            return self.run_task(&func, result_type, &options, is_service, post_return);
        }
        let table = self.state.table(instance.as_u32());
        let callee = self.source(&func)?;
        // Only then can the host pass on something by itself.
        let has_operations = self.state.concurrency.as_ref().is_some_and(|concurrency| concurrency.has_operations);
        let mut glue = Glue::new(None);
        match entry {
            Entry::Handler => glue.handler(&callee, post_return.as_ref(), table, has_operations),
            Entry::Run | Entry::Service => glue.run(&callee, post_return.as_ref(), has_operations),
        }
        let (text, linked) = glue.finish();
        self.instantiate(&text, &linked)?;
        Ok(())
    }

    /// What is said of a component that exports nothing that the server calls.
    fn no_entry(&self) -> CompileError {
        let mut names = self.component.exports.raw_iter().map(|(name, _)| name.as_str());
        if let Some((name, release)) = names.find_map(|name| Some((name, abi::candidate(name)?))) {
            return CompileError::component(&format!("this component exports `{}`; {}", text::name(name), rebuilt_for(release)));
        }
        let exports = self.component.exports.raw_iter().map(|(name, _)| format!("`{}`", text::name(name)));
        let exports: Vec<String> = exports.take(EXPORTS_NAMED_MAX + 1).collect();
        let exports = match exports.len() {
            0 => "nothing".to_owned(),
            1..=EXPORTS_NAMED_MAX => exports.join(", "),
            _ => format!("{} and more", exports[..EXPORTS_NAMED_MAX].join(", ")),
        };
        let message = format!(
            "this component exports none of `wasi:http/incoming-handler`, `wasi:http/handler` (which answer requests) and `wasi:cli/run` (a command); it exports {exports}"
        );
        CompileError::Component { message }
    }

    /// A function that the component exports in an interface of that track.
    fn lifted(&self, interface: &str, name: &str) -> Option<(&CoreDef, TypeFuncIndex, &CanonicalOptions)> {
        let (_, (index, _)) = self.component.exports.raw_iter().find(|(name, _)| abi::track(name.as_str()) == interface)?;
        let Export::Instance { exports, .. } = &self.component.export_items[*index] else { return None };
        let (_, (index, _)) = exports.raw_iter().find(|(found, _)| found.as_str() == name)?;
        match &self.component.export_items[*index] {
            Export::LiftedFunction { ty, func, options } => Some((func, *ty, &self.component.options[*options])),
            _ => None,
        }
    }

    /// The last instance, where what the server calls is a task. `post_return`: of what is lifted as synchronous.
    fn run_task(
        &mut self,
        function: &CoreDef,
        result_type: TypeTupleIndex,
        options: &CanonicalOptions,
        is_service: bool,
        post_return: Option<Source>,
    ) -> Result<(), CompileError> {
        let kind = match is_service {
            false => RootKind::Command,
            true => RootKind::Service {
                table: self.state.table(options.instance.as_u32()),
                encoding: encoding(options.string_encoding),
            },
        };
        // A response goes on its way while the task waits.
        if let Some(concurrency) = &mut self.state.concurrency {
            concurrency.has_operations |= is_service;
        }
        // What a response says of an error may be a string.
        let memory = options.memory().filter(|_| is_service).and_then(|index| self.memories.get(&index)).cloned();
        let mut glue = Glue::new(memory.as_ref());
        let mut returned = None;
        if !options.async_ {
            let loaded = self.loaded(result_type, &mut glue).ok_or_else(|| unsupported("a result of so many cases"))?;
            returned = Some(Returned { loaded, post_return });
        }
        let root = Root {
            kind,
            record: self.record(options.instance),
            entry: self.new_entries(ENTRIES_PER_ROOT),
            result_type: result_type.as_u32(),
            options: return_options(options.memory().map(|index| index.as_u32()), encoding(options.string_encoding)),
            callee: self.source(function)?,
            callback: options.callback.and_then(|index| self.callbacks.get(&index)).cloned(),
            throws: self.throws,
            returned,
        };
        glue.run_root(&root);
        let (text, linked) = glue.finish();
        self.instantiate(&text, &linked).map(drop)
    }
}
