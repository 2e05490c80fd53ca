//! What `sledge` is measured against for components that serve `wasi:http`: the HTTP server of `native`, with each request in a fresh instance of
//! wasmtime. Built with the feature `wasmtime`; `peer-wasmtime-http COMPONENT` answers all paths.
//!
//! wasmtime is tuned as in `peer-wasmtime`. The host's side is wasmtime's own crate for `wasi:http`. Nothing interrupts a component.
#![forbid(unsafe_code)]

use anyhow::{Context, Result, anyhow};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use sledge_benches::front;
use tokio::sync::oneshot;
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::p2::bindings::ProxyPre;
use wasmtime_wasi_http::p2::bindings::http::types::Scheme;
use wasmtime_wasi_http::p2::body::HyperOutgoingBody;
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

/// What a memory or table keeps from one request to the next; beyond that its pages go back to the system.
const RESIDENT_BYTES: usize = 4 << 20;
/// Elements of the largest table that an engine in a component has.
const TABLE_ELEMENTS_MAX: usize = 100_000;
/// Core instances, and tables, of all requests at once. A component in Python has more than ten instances, and a hundred clients ask; wasmtime's default is 1,000.
const CORE_INSTANCES_MAX: u32 = 10_000;
/// What wasmtime keeps of an instance beside its memories.
const INSTANCE_BYTES_MAX: usize = 8 << 20;

/// The host's side of one request.
struct Client {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    table: ResourceTable,
}

impl WasiView for Client {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for Client {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: Default::default() }
    }
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("expected is COMPONENT")?;
    let load = || {
        let engine = Engine::new(&config())?;
        let component = Component::from_file(&engine, &path)?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
        ProxyPre::new(linker.instantiate_pre(&component)?)
    };
    let proxy = load().map_err(|error: wasmtime::Error| anyhow!("{path}: {error:#}"))?;
    front::serve_responses(async move |request| {
        answer(&proxy, request).await.unwrap_or_else(|error| {
            eprintln!("{error:#}");
            let mut response = Response::new(HyperOutgoingBody::default());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        })
    })
}

fn config() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(CORE_INSTANCES_MAX)
        .total_tables(CORE_INSTANCES_MAX)
        .linear_memory_keep_resident(RESIDENT_BYTES)
        .table_keep_resident(RESIDENT_BYTES)
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_core_instance_size(INSTANCE_BYTES_MAX)
        .max_component_instance_size(INSTANCE_BYTES_MAX)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Runs the component, which goes on after its response's head was sent.
async fn answer(proxy: &ProxyPre<Client>, request: Request<Incoming>) -> wasmtime::Result<Response<HyperOutgoingBody>> {
    let client = Client { wasi: WasiCtx::builder().build(), http: WasiHttpCtx::new(), table: ResourceTable::new() };
    let mut store = Store::new(proxy.engine(), client);
    let (sender, receiver) = oneshot::channel();
    let request = store.data_mut().http().new_incoming_request(Scheme::Http, request)?;
    let response = store.data_mut().http().new_response_outparam(sender)?;
    let proxy = proxy.clone();
    let task = tokio::task::spawn_local(async move {
        let instance = proxy.instantiate_async(&mut store).await?;
        instance.wasi_http_incoming_handler().call_handle(store, request, response).await
    });
    match receiver.await {
        Ok(response) => Ok(response?),
        Err(_) => match task.await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) => Err(wasmtime::Error::msg("the component set no response")),
            Err(error) => Err(wasmtime::Error::msg(error.to_string())),
        },
    }
}
