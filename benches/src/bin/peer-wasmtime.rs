//! What `sledge` is measured against: the same HTTP server as `native`, with each request in a fresh instance of wasmtime. Built with the
//! feature `wasmtime`; `peer-wasmtime NAME=MODULE...` serves each module at /NAME.
//!
//! wasmtime as its documentation tunes it for fast instantiation: Cranelift at its highest level for this processor, everything compiled and linked
//! before the first request, instances from a pool, memories that begin as copies on write and keep their pages. Bounds by guard pages. A request
//! runs from its begin to its end on the server's only thread: nothing interrupts it, which costs wasmtime something where it is asked for, and
//! which `sledge` always does.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use hyper::StatusCode;
use sledge_benches::front;
use sledge_benches::wasi::{self, Process};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module, ModuleExport, PoolingAllocationConfig,
    Store,
};

/// More than any of the functions has.
const MEMORY_BYTES_MAX: usize = 64 << 20;
/// What a memory keeps from one request to the next; beyond that its pages go back to the system.
const RESIDENT_BYTES: usize = 4 << 20;
/// Instances that are kept ready. Only one runs at a time.
const INSTANCES: u32 = 100;

/// Ready to be instantiated.
struct Function {
    instance: InstancePre<Process>,
    memory: ModuleExport,
    start: ModuleExport,
}

fn main() -> Result<()> {
    let engine = Engine::new(&config()).map_err(|error| anyhow!("{error:#}"))?;
    let mut linker = Linker::new(&engine);
    wasi::add(&mut linker).map_err(|error| anyhow!("{error:#}"))?;
    let mut functions = HashMap::new();
    for argument in std::env::args().skip(1) {
        let (name, module) = argument.split_once('=').with_context(|| format!("expected is NAME=MODULE, not {argument}"))?;
        functions.insert(format!("/{name}"), Function::load(&engine, &linker, Path::new(module))?);
    }
    front::serve(async move |request| {
        let function = functions.get(request.uri().path()).ok_or(StatusCode::NOT_FOUND)?;
        let body = front::body(request).await;
        function.call(&engine, body).map_err(|error| {
            eprintln!("{error:#}");
            StatusCode::INTERNAL_SERVER_ERROR
        })
    })
}

fn config() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(INSTANCES)
        .total_memories(INSTANCES)
        .total_tables(INSTANCES)
        .max_memory_size(MEMORY_BYTES_MAX)
        .linear_memory_keep_resident(RESIDENT_BYTES)
        .table_keep_resident(RESIDENT_BYTES)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

impl Function {
    fn load(engine: &Engine, linker: &Linker<Process>, path: &Path) -> Result<Function> {
        let load = || {
            let module = Module::from_file(engine, path)?;
            let export = |name: &str| module.get_export_index(name).ok_or_else(|| wasmtime::Error::msg(format!("no {name}")));
            let (memory, start) = (export("memory")?, export("_start")?);
            Ok(Function { instance: linker.instantiate_pre(&module)?, memory, start })
        };
        load().map_err(|error: wasmtime::Error| anyhow!("{}: {error:#}", path.display()))
    }

    fn call(&self, engine: &Engine, body: Bytes) -> Result<Bytes> {
        let mut store = Store::new(engine, Process::new(body));
        let run = |store: &mut Store<Process>| {
            let instance = self.instance.instantiate(&mut *store)?;
            store.data_mut().memory =
                instance.get_module_export(&mut *store, &self.memory).and_then(|export| export.into_memory());
            let start = instance.get_module_export(&mut *store, &self.start).and_then(|export| export.into_func());
            let start = start.ok_or_else(|| wasmtime::Error::msg("_start is no function"))?;
            start.typed::<(), ()>(&*store)?.call(&mut *store, ())
        };
        let result = run(&mut store);
        let process = store.into_data();
        match (process.exit_code, result) {
            (None | Some(0), Ok(())) | (Some(0), Err(_)) => Ok(Bytes::from(process.output)),
            (Some(code), _) => Err(anyhow!("exit status {code}: {}", process.errors.escape_ascii())),
            (None, Err(error)) => Err(anyhow!("{error:#}")),
        }
    }
}
