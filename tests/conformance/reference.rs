//! Runs a command in wasmtime as `sledge run` runs it here, for the comparison: `reference COMPONENT [OPTIONS] -- ARGS`.
//!
//! Options are those of `sledge run`: `--env NAME=VALUE`, `--dir HOST::GUEST[::rw]`; `--network` for sockets, and for requests to other servers.

use std::process::ExitCode;

use clap::Parser;
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Config, Engine, Store};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_config::{WasiConfig, WasiConfigVariables};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};
use wasmtime_wasi_keyvalue::{WasiKeyValue, WasiKeyValueCtx, WasiKeyValueCtxBuilder};

/// As of a shell after SIGABRT, which is what `sledge run` answers after a trap.
const TRAPPED: u8 = 134;

#[derive(Debug, Parser)]
struct Args {
    component: std::path::PathBuf,
    #[arg(long)]
    env: Vec<String>,
    #[arg(long)]
    dir: Vec<String>,
    #[arg(long)]
    network: bool,
    #[arg(last = true)]
    args: Vec<String>,
}

struct State {
    table: ResourceTable,
    wasi: WasiCtx,
    http: WasiHttpCtx,
    variables: WasiConfigVariables,
    store: WasiKeyValueCtx,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: Default::default() }
    }
}

fn state(args: &Args) -> wasmtime::Result<State> {
    let mut builder = WasiCtx::builder();
    let name = args.component.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    builder.inherit_stdio().arg(name).args(&args.args);
    let mut variables = WasiConfigVariables::new();
    for variable in &args.env {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        builder.env(name, value);
        variables.insert(name, value);
    }
    for dir in &args.dir {
        let mut parts = dir.split("::");
        let (host, guest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let perms = if parts.next().is_some() { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
        builder.preopened_dir(host, guest, perms)?;
    }
    if args.network {
        builder.inherit_network().allow_tcp(true).allow_udp(true).allow_ip_name_lookup(true);
    }
    let (table, wasi, http) = (ResourceTable::new(), builder.build(), WasiHttpCtx::new());
    Ok(State { table, wasi, http, variables, store: WasiKeyValueCtxBuilder::new().build() })
}

async fn run(args: &Args) -> wasmtime::Result<Result<(), ()>> {
    let mut config = Config::new();
    config.wasm_component_model_async(true);
    let engine = Engine::new(&config)?;
    let component = Component::from_file(&engine, &args.component)?;
    let mut linker: Linker<State> = Linker::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi::p3::add_to_linker(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p3::add_to_linker(&mut linker)?;
    wasmtime_wasi_config::add_to_linker(&mut linker, |state: &mut State| WasiConfig::new(&state.variables))?;
    wasmtime_wasi_keyvalue::add_to_linker(&mut linker, |state: &mut State| WasiKeyValue::new(&state.store, &mut state.table))?;
    let mut store = Store::new(&engine, state(args)?);
    let instance = linker.instantiate_async(&mut store, &component).await?;
    if let Ok(command) = wasmtime_wasi::p3::bindings::Command::new(&mut store, &instance) {
        return store.run_concurrent(async move |store| command.wasi_cli_run().call_run(store).await).await?;
    }
    wasmtime_wasi::p2::bindings::Command::new(&mut store, &instance)?.wasi_cli_run().call_run(&mut store).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Args::parse()).await {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(())) => ExitCode::FAILURE,
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(I32Exit(status)) => ExitCode::from((status & 0xff) as u8),
            None => {
                eprintln!("{error:?}");
                TRAPPED.into()
            }
        },
    }
}
