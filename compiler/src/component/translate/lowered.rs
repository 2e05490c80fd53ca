//! Functions that a component imports and the host answers, as they are lowered; and what becomes of those that it does not offer.

use std::collections::BTreeSet;

use awsm_abi::component as abi;
use awsm_abi::importable::ALLOW_ADVICE;
use awsm_abi::text;
use awsm_abi::types::ValType;
use wasmtime_environ::component::{
    CanonicalOptions, CanonicalOptionsDataModel, InterfaceType, LinearMemoryOptions, LoweredIndex, OptionsIndex,
    RuntimeComponentInstanceIndex, TypeFuncIndex,
};

use super::super::glue::{ENTRIES_PER_OPERATION, Ends, Glue, Lowered, Operation, Signature};
use super::options::encoding;
use super::root::is_handler;
use super::{Builder, unsupported};
use crate::error::CompileError;

/// How a call of an async function of the host is lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AsyncForm {
    /// It returns when it is over.
    Synchronous,
    /// It returns the state of a subtask.
    Flat,
    /// The same, and its parameters are in memory.
    InMemory,
}

impl Builder<'_> {
    /// The wrapper of a call that the host answers.
    pub(super) fn lower(
        &mut self,
        index: LoweredIndex,
        lower_ty: TypeFuncIndex,
        options: OptionsIndex,
        ty: &Signature,
        glue: &mut Glue,
    ) -> Result<Option<String>, CompileError> {
        let options = &self.component.options[options];
        let (import, path) = &self.component.imports[self.lowerings[&index]];
        let name = &self.component.import_types[*import].0;
        let interface = abi::track(name);
        let [function_name] = path.as_slice() else {
            return Ok(self.missing(name, "only functions of interfaces are offered", options, ty, glue));
        };
        let Some(function) = abi::function(&interface, function_name) else {
            let what = format!("`{function_name}`: {}", Self::instead(name, &interface));
            return Ok(self.missing(name, &what, options, ty, glue));
        };
        let function_type = &self.types[lower_ty];
        let mut form = AsyncForm::Synchronous;
        let mut expected = Signature::new(function.params, function.results);
        let results = self.types.canonical_abi(&InterfaceType::Tuple(function_type.results)).flat_count;
        let has_place = results.is_none_or(|count| count > 1);
        if options.async_ {
            (form, expected) = lowered_async(function, has_place);
        }
        let ends = self.ends_of(function, lower_ty);
        let has_same_type = match form {
            AsyncForm::Synchronous => true,
            // Neither a place for a result nor parameters in memory are to be seen in the core function's type. What is no address must not become one.
            AsyncForm::Flat | AsyncForm::InMemory => {
                let given = function.params.len().checked_sub(usize::from(has_place));
                let given = given.and_then(|given| function.params.get(..given));
                let results = InterfaceType::Tuple(function_type.results);
                (function.ends.is_empty() || form == AsyncForm::Flat)
                    && given.is_some_and(|given| self.is_flat(&InterfaceType::Tuple(function_type.params), given))
                    && (has_place || self.is_flat(&results, function.results))
            }
        };
        let (true, true, Some(ends)) = (*ty == expected, has_same_type, ends) else {
            let what = format!("`{function_name}`: it is offered with another type");
            return Ok(self.missing(name, &what, options, ty, glue));
        };
        let realloc = match options.data_model {
            CanonicalOptionsDataModel::LinearMemory(LinearMemoryOptions { realloc, .. }) => realloc,
            CanonicalOptionsDataModel::Gc {} => return Err(unsupported("the canonical ABI for garbage collection")),
        };
        let realloc = realloc.and_then(|index| self.reallocs.get(&index)).cloned();
        if function.allocates && realloc.is_none() {
            return Err(unsupported(format!("`{function_name}` of `{name}` without realloc")));
        }
        let instance = options.instance.as_u32();
        let table = self.state.table(instance);
        let encoding = encoding(options.string_encoding);
        let has_tasks = self.state.concurrency.is_some();
        let lowered = Lowered { interface: &interface, function, instance, table, encoding, realloc, has_tasks };
        if !function.ends.is_empty() {
            return self.lower_ends(&lowered, &ends, options.instance, (ty, form), glue).map(Some);
        }
        Ok(Some(match function_type.async_ && self.state.concurrency.is_some() {
            true => self.operation(&lowered, lower_ty, form, ty, glue)?,
            false => glue.lower(&lowered, ty),
        }))
    }

    /// The wrapper of a call of an async function that the host answers.
    fn operation(
        &mut self,
        call: &Lowered<'_>,
        function: TypeFuncIndex,
        form: AsyncForm,
        ty: &Signature,
        glue: &mut Glue,
    ) -> Result<String, CompileError> {
        if let Some(concurrency) = &mut self.state.concurrency {
            concurrency.has_operations = true;
        }
        if form == AsyncForm::Synchronous {
            self.may_wait(call.instance);
        }
        let entry = self.new_entries(ENTRIES_PER_OPERATION);
        let mut loaded = None;
        if form == AsyncForm::InMemory {
            let params = self.loaded(self.types[function].params, glue);
            let params =
                params.ok_or_else(|| unsupported(format!("`{}` with parameters of so many cases", call.function.name)))?;
            loaded = Some(params);
        }
        let result = self.types.canonical_abi(&InterfaceType::Tuple(self.types[function].results));
        let operation = Operation {
            record: self.state.instance(call.instance),
            table: call.table,
            entry,
            is_lowered_async: form != AsyncForm::Synchronous,
            loaded,
            result_bytes: result.size32,
        };
        Ok(glue.operation(call, &operation, ty))
    }

    /// The wrapper of a call that the host answers with streams and futures, at once.
    fn lower_ends(
        &mut self,
        call: &Lowered<'_>,
        ends: &Ends,
        instance: RuntimeComponentInstanceIndex,
        (ty, form): (&Signature, AsyncForm),
        glue: &mut Glue,
    ) -> Result<String, CompileError> {
        let record = self.record(instance);
        let Some(concurrency) = &mut self.state.concurrency else {
            return Err(unsupported(format!("`{}` where nothing is read or written", call.function.name)));
        };
        concurrency.has_operations = true;
        Ok(glue.lower_ends(call, record, ends, ty, form != AsyncForm::Synchronous))
    }

    /// An import that the host does not offer: for this the component is refused, or a call of it traps.
    fn missing(&mut self, name: &str, what: &str, options: &CanonicalOptions, ty: &Signature, glue: &mut Glue) -> Option<String> {
        if self.unknown_imports {
            let name = text::name(name);
            self.warnings.insert(format!("not all that is imported from `{name}` is offered: a call of the rest traps"));
            return Some(glue.unsupported(options.instance.as_u32(), ty));
        }
        self.missing.push(Missing { interface: name.to_owned(), what: text::line(what) });
        None
    }

    /// Why an import is not met: it is of a release candidate or for another component, the interface is not offered, or not that function of it.
    fn instead(name: &str, interface: &str) -> String {
        if is_handler(interface) {
            return "another component has to answer it".to_owned();
        }
        if abi::candidate(name).is_some() {
            return "it is of a release candidate".to_owned();
        }
        let names: Vec<&str> = abi::INTERFACES.iter().map(|offered| offered.name).collect();
        match names.contains(&interface) {
            true => "the interface is offered without that function".to_owned(),
            false => "the interface is not offered".to_owned(),
        }
    }

    /// What is said of imports that the host does not offer.
    pub(super) fn refusal(&self) -> CompileError {
        /// Imports that are named.
        const NAMED_MAX: usize = 20;
        let mut message = match self.missing.len() {
            1 => String::from("1 import of this component is not offered:"),
            count => format!("{count} imports of this component are not offered:"),
        };
        for Missing { interface, what } in self.missing.iter().take(NAMED_MAX) {
            message.push_str(&format!("\n  `{}` {what}", text::name(interface)));
        }
        if self.missing.len() > NAMED_MAX {
            message.push_str("\n  ...");
        }
        let is_inner = |missing: &&Missing| is_handler(&abi::track(&missing.interface));
        if self.missing.iter().any(|missing| is_inner(&missing)) {
            message.push_str(
                "\nit is middleware, which passes requests on: compose it with the component that answers those, \
                 `awsm compose FILE --plug ANSWERING.wasm -o OUT.wasm`",
            );
        }
        let others: Vec<&Missing> = self.missing.iter().filter(|missing| !is_inner(missing)).collect();
        let releases: BTreeSet<&str> = others.iter().filter_map(|missing| abi::candidate(&missing.interface)).collect();
        for release in releases.into_iter().take(NAMED_MAX) {
            message.push_str(&format!("\n{}", rebuilt_for(release)));
        }
        if !others.is_empty() {
            let which = if others.len() == self.missing.len() { "them" } else { "the others" };
            message.push_str(&format!("\nif it calls none of {which}, {ALLOW_ADVICE}"));
        }
        CompileError::Component { message }
    }
}

/// An import that the host does not offer.
pub(super) struct Missing {
    /// The name of what is imported, or of the interface that has it.
    interface: String,
    /// Which function, and why.
    what: String,
}

/// What to do with a component for a release candidate of WASI.
pub(super) fn rebuilt_for(release: &str) -> String {
    let release = text::name(release);
    format!(
        "release candidates of WASI are not supported, {release} is: build the component again, with tools and bindings for WASI {release}"
    )
}

/// The form and type of a function of the host that is lowered as async. `has_place`: whether its last parameter says where the result goes.
fn lowered_async(function: &abi::Function, has_place: bool) -> (AsyncForm, Signature) {
    /// CanonicalABI.md, `MAX_FLAT_ASYNC_PARAMS`; the place of the result is not counted.
    const PARAMS_MAX: usize = 4;
    let mut params = function.params.to_vec();
    let mut form = AsyncForm::Flat;
    if params.len().saturating_sub(usize::from(has_place)) > PARAMS_MAX {
        form = AsyncForm::InMemory;
        params = vec![ValType::I32; 1 + usize::from(has_place)];
    }
    if !function.results.is_empty() {
        params.push(ValType::I32);
    }
    (form, Signature { params, results: vec![ValType::I32] })
}
