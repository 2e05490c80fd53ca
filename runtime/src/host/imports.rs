//! From an artifact's imports to host functions, once per loaded function.

use std::fmt::Write as _;

use awsm_abi::component::{CANONICAL, REQUESTS, SERVED};
use awsm_abi::descriptor::{Descriptor, Import, ImportSource, ImportType, ModuleDescriptor};
use awsm_abi::importable;
use awsm_abi::text;
use awsm_abi::types::FuncType;
use sledge_sandbox::prefetch;

use super::{Effect, HostFunction, call, canonical, fetch, http, kv, note, rpc, spin, spin3, wasi, wasi2, wasi3, worlds};

/// Host functions by interface.
pub type Offer = &'static [&'static [HostFunction]];

/// Every host function there is.
const OFFERED: Offer =
    &[wasi::FUNCTIONS, kv::FUNCTIONS, call::FUNCTIONS, note::FUNCTIONS, http::FUNCTIONS, fetch::FUNCTIONS, rpc::FUNCTIONS];

/// Every host function there is, with its signature and its effect.
pub fn offered() -> impl Iterator<Item = &'static HostFunction> {
    OFFERED.iter().copied().flatten()
}

/// Every host function that the wrappers of components import, with the effect and the signature that it has there.
pub fn offered_to_components() -> impl Iterator<Item = &'static HostFunction> {
    let interfaces = [wasi2::FUNCTIONS, wasi3::FUNCTIONS, worlds::FUNCTIONS, &[spin::FUNCTIONS, spin3::FUNCTIONS]];
    canonical::FUNCTIONS.iter().chain(canonical::OPERATIONS).chain(interfaces.into_iter().flatten().copied().flatten())
}

/// Why an artifact's imports cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It is not on offer.
    #[error("imports {kind} `{}` `{}`, which this server does not offer; {offer}", text::name(module), text::name(name))]
    Unknown {
        /// Its kind.
        kind: &'static str,
        /// Module name.
        module: String,
        /// Field name.
        name: String,
        /// What is on offer instead.
        offer: String,
    },
    /// It is offered with another signature.
    #[error("imports `{}` `{}` as {wanted}, but it is {offered}", text::name(module), text::name(name))]
    Signature {
        /// Module name.
        module: String,
        /// Field name.
        name: String,
        /// The signature that the artifact wants.
        wanted: String,
        /// The signature on offer.
        offered: String,
    },
}

/// A host function as one artifact imports it.
#[derive(Debug)]
pub struct ImportedFunction {
    /// The host function.
    pub function: &'static HostFunction,
}

/// The host functions that an artifact imports: for each instance of its plan a table indexed by imported function.
#[derive(Debug)]
pub struct Imports {
    instances: Vec<Vec<Option<ImportedFunction>>>,
}

impl Imports {
    /// Resolves every import that comes from the host.
    ///
    /// # Errors
    /// At the first import that is not on offer, or has another signature.
    pub fn resolve(descriptor: &Descriptor) -> Result<Imports, ImportError> {
        Imports::resolve_with(descriptor, OFFERED)
    }

    /// The same with other host functions than the server's own.
    ///
    /// # Errors
    /// As for [`Imports::resolve`].
    pub fn resolve_with(descriptor: &Descriptor, offered: Offer) -> Result<Imports, ImportError> {
        let mut instances = Vec::with_capacity(descriptor.plan.len());
        for step in &descriptor.plan {
            let Some(module) = descriptor.modules.get(step.module as usize) else { continue };
            let mut functions = Vec::new();
            for (import, source) in module.imports.iter().zip(&step.imports) {
                let resolved = match source {
                    ImportSource::Host => Some(ImportedFunction { function: find(module, import, offered)? }),
                    ImportSource::Instance { .. } => None,
                };
                if matches!(import.ty, ImportType::Function { .. }) {
                    functions.push(resolved);
                }
            }
            instances.push(functions);
        }
        Ok(Imports { instances })
    }

    /// Has the caches fetch them.
    pub(crate) fn prefetch(&self) {
        if let Some(functions) = self.instances.last() {
            prefetch(&**functions);
        }
    }

    /// Whether one of them asks what a request says beside its body.
    #[must_use]
    pub fn read_head(&self) -> bool {
        let is_of_head = |function: &HostFunction| {
            [http::MODULE, worlds::EXCHANGE].contains(&function.module) || function.effect == Effect::Head
        };
        self.serve_http() || self.instances.iter().flatten().flatten().any(|imported| is_of_head(imported.function))
    }

    /// Whether one of them uses the key-value store, in whatever form.
    #[must_use]
    pub fn use_store(&self) -> bool {
        let uses = |function: &HostFunction| matches!(function.effect, Effect::KvRead | Effect::KvWrite);
        self.instances.iter().flatten().flatten().any(|imported| uses(imported.function))
    }

    /// Whether it is a component that serves requests through `wasi:http`.
    #[must_use]
    pub fn serve_http(&self) -> bool {
        let is_request = |function: &HostFunction| function.module == CANONICAL && [REQUESTS, SERVED].contains(&function.name);
        self.instances.iter().flatten().flatten().any(|imported| is_request(imported.function))
    }

    /// The host function behind an instance's imported function.
    #[must_use]
    pub fn get(&self, instance: usize, import: u32) -> Option<&ImportedFunction> {
        self.instances.get(instance)?.get(import as usize)?.as_ref()
    }
}

fn find(module: &ModuleDescriptor, import: &Import, offered: Offer) -> Result<&'static HostFunction, ImportError> {
    let unknown = |kind| ImportError::Unknown {
        kind,
        module: import.module.clone(),
        name: import.name.clone(),
        offer: offer(&import.module, &import.name, offered),
    };
    let ty = match import.ty {
        ImportType::Function { ty, .. } => ty,
        ImportType::Table(_) => return Err(unknown("the table")),
        ImportType::Memory(_) => return Err(unknown("the memory")),
        ImportType::Global(_) => return Err(unknown("the global")),
        ImportType::Tag(_) => return Err(unknown("the tag")),
    };
    let wanted = module.types.get(ty as usize).map(|row| &row.ty).ok_or_else(|| unknown("a function without a type,"))?;
    let is_wanted = |function: &&HostFunction| function.module == import.module && function.name == import.name;
    let found = offered.iter().copied().flatten().chain(offered_to_components()).find(is_wanted);
    let function = found.ok_or_else(|| unknown("the function"))?;
    if wanted.params == function.params && wanted.results == function.results {
        return Ok(function);
    }
    Err(ImportError::Signature {
        module: import.module.clone(),
        name: import.name.clone(),
        wanted: wanted.to_string(),
        offered: FuncType { params: function.params.to_vec(), results: function.results.to_vec() }.to_string(),
    })
}

/// What to tell the author of a function that imports something that is not there.
fn offer(module: &str, name: &str, offered: Offer) -> String {
    let of_module = |function: &&HostFunction| function.module == module;
    let functions: Vec<_> = offered.iter().copied().flatten().chain(offered_to_components()).filter(of_module).collect();
    if functions.is_empty() {
        let mut text = "on offer are the modules".to_owned();
        for functions in offered {
            let name = functions.first().map_or("", |function| function.module);
            let _ = write!(text, " `{name}` ({} functions)", functions.len());
        }
        return text;
    }
    let nearest = importable::nearest(name, functions.iter().map(|function| function.name));
    let hint = nearest.map_or_else(String::new, |nearest| format!("the nearest is `{nearest}`, "));
    let names = functions.iter().map(|function| function.name).collect::<Vec<_>>().join(", ");
    format!("{hint}on offer from `{module}` are: {names}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use awsm_abi::cpu::Arch;
    use awsm_abi::descriptor::{CodeRef, Instantiation, TypeDescriptor};
    use awsm_abi::types::{MemoryType, ValType};

    fn importing(module: &str, name: &str, ty: Option<FuncType>) -> Descriptor {
        let thunk = CodeRef { text: 0, offset: 0 };
        let memory = MemoryType { pages_min: 1, pages_max: None, memory64: false, shared: false };
        let import = Import {
            module: module.to_owned(),
            name: name.to_owned(),
            ty: if ty.is_some() { ImportType::Function { ty: 0, thunk } } else { ImportType::Memory(memory) },
        };
        let module = ModuleDescriptor {
            name: None,
            groups: vec![1; usize::from(ty.is_some())],
            types: ty.into_iter().map(|ty| TypeDescriptor { ty, supertype: None, is_final: true, entry: None }).collect(),
            exceptions: false,
            imports: vec![import],
            functions: Vec::new(),
            tables: Vec::new(),
            memories: Vec::new(),
            bounds: Vec::new(),
            segment: false,
            globals: Vec::new(),
            tags: Vec::new(),
            exports: Vec::new(),
            start: None,
            wasm_base: 0,
            elements: Vec::new(),
            data: Vec::new(),
        };
        Descriptor {
            compiler: String::new(),
            opt_level: 0,
            arch: Arch::HOST,
            cpu_features: Vec::new(),
            modules: vec![module],
            plan: vec![Instantiation { module: 0, imports: vec![ImportSource::Host] }],
            component: None,
            inlined: Vec::new(),
        }
    }

    fn ty(params: &[ValType], results: &[ValType]) -> Option<FuncType> {
        Some(FuncType { params: params.to_vec(), results: results.to_vec() })
    }

    fn error(descriptor: &Descriptor) -> String {
        Imports::resolve(descriptor).unwrap_err().to_string()
    }

    #[test]
    fn a_known_import_is_found_by_instance_and_index() {
        let descriptor = importing("wasi_snapshot_preview1", "sched_yield", ty(&[], &[ValType::I32]));
        let imports = Imports::resolve(&descriptor).unwrap();
        assert_eq!(imports.get(0, 0).unwrap().function.name, "sched_yield");
        assert!(imports.get(0, 1).is_none());
        assert!(imports.get(1, 0).is_none());
    }

    #[test]
    fn an_unknown_module_is_named_with_what_is_on_offer() {
        let message = error(&importing("wasi_unstable", "fd_write", ty(&[], &[])));
        let expected = "imports the function `wasi_unstable` `fd_write`, which this server does not offer; \
                        on offer are the modules `wasi_snapshot_preview1` (46 functions) `sledge:kv` (12 functions) \
                        `sledge:call` (5 functions) `sledge:note` (2 functions) `sledge:http` (11 functions) `sledge:fetch` (5 functions) \
                        `sledge:rpc` (6 functions)";
        assert_eq!(message, expected);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let message = error(&importing("wasi_snapshot_preview1", "fd_wrte", ty(&[], &[])));
        assert!(
            message.contains("the nearest is `fd_write`, on offer from `wasi_snapshot_preview1` are: args_get, "),
            "{message}"
        );
    }

    #[test]
    fn a_wrong_signature_and_a_wrong_kind_are_refused() {
        let message = error(&importing("wasi_snapshot_preview1", "fd_close", ty(&[ValType::I64], &[ValType::I32])));
        assert_eq!(message, "imports `wasi_snapshot_preview1` `fd_close` as (i64) -> (i32), but it is (i32) -> (i32)");
        let message = error(&importing("env", "memory", None));
        assert!(message.starts_with("imports the memory `env` `memory`, which this server does not offer; "), "{message}");
    }

    #[test]
    fn no_host_function_has_too_many_parameters_or_stands_twice() {
        let all: Vec<_> = super::offered().chain(offered_to_components()).collect();
        for (index, function) in all.iter().enumerate() {
            assert!(function.params.len() <= super::super::PARAMS_MAX, "{}", function.name);
            assert!(!function.params.contains(&ValType::V128), "{}: an argument has 64 bits at most", function.name);
            assert!(function.results.len() <= 1, "{}", function.name);
            assert!(all[..index].iter().all(|other| (other.module, other.name) != (function.module, function.name)));
        }
    }

    /// What components may import is what the compiler's glue passes on, each with the handle table before its parameters.
    #[test]
    fn what_is_offered_to_components_is_what_the_glue_imports() {
        use std::collections::BTreeMap;

        use awsm_abi::component::{CANONICAL, CANONICAL_FUNCTIONS, INTERFACES};

        type Functions = BTreeMap<(&'static str, &'static str), (Vec<ValType>, Vec<ValType>)>;

        let mut wanted = Functions::new();
        for function in CANONICAL_FUNCTIONS {
            wanted.insert((CANONICAL, function.name), (function.params.to_vec(), function.results.to_vec()));
        }
        for (interface, function) in
            INTERFACES.iter().flat_map(|interface| interface.functions.iter().map(move |function| (interface.name, function)))
        {
            // The numbers of streams and futures come last, and instead of a result or its address if it is nothing else.
            let ends = vec![ValType::I32; function.ends.len()];
            let given = function.params[..function.given()].iter().copied();
            let params = std::iter::once(ValType::I32).chain(given).chain(ends).collect();
            let results = match function {
                _ if function.allocates => vec![ValType::I32],
                _ if !function.ends.is_empty() => Vec::new(),
                _ => function.results.to_vec(),
            };
            assert!(!function.allocates || function.results.is_empty(), "{interface} {}", function.name);
            assert!(wanted.insert((interface, function.name), (params, results)).is_none(), "{interface} {}", function.name);
        }
        let types = |function: &HostFunction| (function.params.to_vec(), function.results.to_vec());
        let offered = offered_to_components().map(|function| ((function.module, function.name), types(function)));
        assert_eq!(offered.collect::<Functions>(), wanted);
    }
}
