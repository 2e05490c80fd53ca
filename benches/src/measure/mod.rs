//! The measurements behind `promises.toml`: one function a promise, of the promise's name, a file a group.
//!
//! What several of them need (a compiled function, a running server) is made once and kept in a [`Bench`].

mod applications;
mod compile;
mod components;
mod engines;
mod first_light;
mod grpc;
mod io;
mod microtasks;
mod mixed;
mod nuclio;
mod operators;
mod order;
mod polybench;
mod redis;
mod runtime;
mod sandbox;
pub mod served;
mod server;
mod shared;
mod sharing;
mod shop;
mod speculation;
mod workflows;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::compiler::{self, Artifact};
use crate::example::{Example, GPS_EKF};
use crate::peers::report::Report;
use crate::polybench::summary::Summary;
use crate::server::{Function, Server};

/// Measures the number of one promise, in its unit.
pub type Measurement = fn(&mut Bench) -> Result<f64>;

/// All measurements by the names of their promises.
const MEASUREMENTS: &[(&str, Measurement)] = &[
    ("demo-fresh-clone-minutes", first_light::demo_fresh_clone_minutes),
    ("gps-ekf-warm-median-us", first_light::gps_ekf_warm_median_us),
    ("gps-ekf-so-kb", first_light::gps_ekf_so_kb),
    ("sledge-binary-mb", first_light::sledge_binary_mb),
    ("sledge-links-llvm", first_light::sledge_links_llvm),
    ("polybench-c-geomean-ratio", polybench::c_geomean),
    ("polybench-c-within-1.1x-kernels", polybench::c_within),
    ("polybench-c-worst-ratio", polybench::c_worst),
    ("polybench-c-march-native-geomean-ratio", polybench::c_march_native_geomean),
    ("polybench-foreign-geomean-ratio", polybench::foreign_geomean),
    ("polybench-foreign-within-1.1x-kernels", polybench::foreign_within),
    ("polybench-simd-geomean-ratio", polybench::simd_geomean),
    ("polybench-simd-within-1.1x-kernels", polybench::simd_within),
    ("polybench-software-geomean-ratio", polybench::software_geomean),
    ("compile-go-o3-mb-per-s", compile::o3_mb_per_s),
    ("compile-go-o1-mb-per-s", compile::o1_mb_per_s),
    ("compile-go-o3-peak-mb", compile::o3_peak_mb),
    ("compile-go-o1-peak-mb", compile::o1_peak_mb),
    ("shared-image-48-private-ratio", shared::private_ratio),
    ("shared-image-new-sandbox-us", shared::new_sandbox_us),
    ("nuclio-ping-ratio", nuclio::ping),
    ("nuclio-echo-small-ratio", nuclio::echo_small),
    ("nuclio-echo-1m-ratio", nuclio::echo_1m),
    ("nuclio-gps-ekf-ratio", nuclio::gps_ekf),
    ("nuclio-ocr-ratio", nuclio::ocr),
    ("nuclio-image-classify-ratio", nuclio::image_classify),
    ("nuclio-image-resize-ratio", nuclio::image_resize),
    ("nuclio-plate-detect-ratio", nuclio::plate_detect),
    ("warm-empty-median-us", sandbox::empty_median_us),
    ("warm-empty-p99-us", sandbox::empty_p99_us),
    ("warm-hello-median-us", sandbox::hello_median_us),
    ("warm-hello-p99-us", sandbox::hello_p99_us),
    ("ping-10-throughput-ratio", runtime::ping_10),
    ("ping-100-throughput-ratio", runtime::ping_100),
    ("ping-10-p99-ratio", runtime::ping_10_p99),
    ("ping-100-p99-ratio", runtime::ping_100_p99),
    ("ping-reconnect-throughput-ratio", runtime::ping_reconnect),
    ("ping-1-more-median-us", runtime::ping_1_more_us),
    ("echo-1k-throughput-ratio", runtime::echo_1k),
    ("echo-10k-throughput-ratio", runtime::echo_10k),
    ("echo-100k-throughput-ratio", runtime::echo_100k),
    ("echo-1m-throughput-ratio", runtime::echo_1m),
    ("isolation-ping-median-ms", runtime::isolation_p50_ms),
    ("isolation-ping-p99-ms", runtime::isolation_p99_ms),
    ("isolation-long-throughput-ratio", runtime::isolation_long),
    ("isolation-sum-throughput-ratio", runtime::isolation_sum),
    ("overload-goodput-ratio", runtime::overload),
    ("preemption-ratio", sandbox::preemption_ratio),
    ("overload-1.2x-goodput-ratio", order::goodput_1_2),
    ("overload-1.7x-goodput-ratio", order::goodput_1_7),
    ("overload-4x-goodput-ratio", order::goodput_4),
    ("overload-10x-goodput-ratio", order::goodput_10),
    ("overload-accepted-p99-ms", order::p99_ms),
    ("simulated-seeds-per-s", order::simulated),
    ("start-ten-functions-ms", server::start_ms),
    ("idle-memory-ten-functions-mb", server::idle_mb),
    ("ping-observed-throughput-ratio", server::observed),
    ("replacements-failed", server::replacements_failed),
    ("slow-heads-p99-ratio", server::slow_heads_p99),
    ("h2spec-failed-cases", server::h2spec_failed),
    ("gps-ekf-execution-ratio", applications::gps_ekf),
    ("ocr-execution-ratio", applications::ocr),
    ("image-classify-execution-ratio", applications::image_classify),
    ("image-resize-execution-ratio", applications::image_resize),
    ("plate-detect-execution-ratio", applications::plate_detect),
    ("gps-ekf-served-throughput-ratio", served::gps_ekf),
    ("applications-served-throughput-least-ratio", served::throughput),
    ("applications-served-mean-worst-ratio", served::mean),
    ("applications-served-p99-worst-ratio", served::p99),
    ("kv-get-median-us", io::kv_get_median_us),
    ("kv-redis-get-ratio", redis::get_ratio),
    ("kv-redis-50-waiting-cpu-ratio", redis::waiting_cpu_ratio),
    ("invoke-median-us", io::invoke_median_us),
    ("blocked-sandbox-kb", io::blocked_sandbox_kb),
    ("blocked-1000-ping-p99-ratio", io::blocked_ping_p99_ratio),
    ("fetch-1000-ping-p99-ratio", io::fetch_ping_p99_ratio),
    ("http2-flood-cpu-s", operators::flood::cpu_s),
    ("many-functions-cpu-ratio", operators::many::many_functions_cpu_ratio),
    ("hot-after-scan-cpu-ratio", operators::many::hot_after_scan_cpu_ratio),
    ("start-us-per-function", operators::many::start_us_per_function),
    ("start-growth-ratio", operators::many::start_growth_ratio),
    ("import-refusal-ms", operators::imports::refusal_ms),
    ("dev-rust-compile-ms", operators::dev::rust_compile_ms),
    ("component-add-ns", components::add_ns),
    ("component-list-ns", components::list_ns),
    ("component-string-ns", components::string_ns),
    ("component-method-ns", components::method_ns),
    ("component-string-async-ratio", components::string_async_ratio),
    ("component-add-async-ratio", components::add_async_ratio),
    ("component-instance-median-us", components::instance_median_us),
    ("component-hello-throughput-ratio", components::hello_throughput_ratio),
    ("component-hello-wasmtime-ratio", components::hello_wasmtime_ratio),
    ("component-python-wasmtime-ratio", engines::python_wasmtime_ratio),
    ("component-js-wasmtime-ratio", engines::js_wasmtime_ratio),
    ("component-python-compile-cpu-s", engines::python_compile_cpu_s),
    ("component-python-again-cpu-s", engines::python_again_cpu_s),
    ("component-js-compile-cpu-s", engines::js_compile_cpu_s),
    ("component-js-again-cpu-s", engines::js_again_cpu_s),
    ("component-compile-peak-gb", engines::compile_peak_gb),
    ("compile-ruby-o3-cpu-s", operators::ruby::compile_cpu_s),
    ("grpc-go-message-ratio", grpc::go_message_ratio),
    ("grpc-go-many-ratio", grpc::go_many_ratio),
    ("grpc-go-one-ratio", grpc::go_one_ratio),
    ("grpc-rust-message-ratio", grpc::rust_message_ratio),
    ("grpc-rust-many-ratio", grpc::rust_many_ratio),
    ("grpc-rust-one-ratio", grpc::rust_one_ratio),
    ("grpc-shop-median-ratio", shop::median_ratio),
    ("grpc-shop-cpu-ratio", shop::cpu_ratio),
    ("grpc-shop-memory-ratio", shop::memory_ratio),
    ("sort-makespan-ratio", microtasks::makespan_ratio),
    ("sort-makespan-16-cpu-ratio", microtasks::cpu_ratio),
    ("sort-makespan-8-classes-ratio", microtasks::classes_ratio),
    ("sort-write-gain-ratio", microtasks::write_ratio),
    ("sort-computing-classes-ratio", microtasks::computing_ratio),
    ("game-tick-p99-slices", microtasks::tick_slices),
    ("mxfaas-mean-ratio", mixed::mean_ratio),
    ("mxfaas-p99-ratio", mixed::p99_ratio),
    ("mxfaas-throughput-ratio", mixed::throughput_ratio),
    ("mxfaas-memory-ratio", mixed::memory_ratio),
    ("mxfaas-ceiling-ratio", mixed::ceiling_ratio),
    ("mxfaas-hogs-p99-ratio", mixed::hogs_ratio),
    ("workflow-express-step-us", workflows::express_step_us),
    ("workflow-one-state-ratio", workflows::one_state_ratio),
    ("workflow-durable-steps-per-s", workflows::durable_steps_per_s),
    ("workflow-durable-step-fsync-ratio", workflows::durable_step_fsync_ratio),
    ("workflow-waiting-bytes", workflows::waiting_bytes),
    ("workflow-peer-steps-ratio", workflows::peer_steps_ratio),
    ("workflow-peer-memory-ratio", workflows::peer_memory_ratio),
    ("sharing-serializable-read-us", sharing::serializable_read_us),
    ("sharing-redis-round-trips", sharing::redis_round_trips),
    ("sharing-hot-key-commands", sharing::hot_key_commands),
    ("sharing-one-client-p50-ratio", sharing::one_client_p50_ratio),
    ("sharing-memo-cpu-ratio", sharing::memo_cpu_ratio),
    ("sharing-memo-p50-us", sharing::memo_p50_us),
    ("sharing-memo-remote-us", sharing::memo_remote_us),
    ("speculation-faaschain-ratio", speculation::faaschain_ratio),
    ("speculation-trainticket-ratio", speculation::trainticket_ratio),
    ("speculation-alibaba-ratio", speculation::alibaba_ratio),
    ("speculation-ceiling-ratio", speculation::ceiling_ratio),
    ("speculation-calls-ceiling-ratio", speculation::calls_ceiling_ratio),
    ("speculation-seven-functions-ratio", speculation::seven_functions_ratio),
    ("speculation-throughput-ratio", speculation::throughput_ratio),
    ("speculation-throughput-stalls-ratio", speculation::throughput_stalls_ratio),
    ("speculation-p99-percent", speculation::p99_percent),
    ("speculation-wasted-90-percent", speculation::wasted_90_percent),
    ("speculation-wasted-70-percent", speculation::wasted_70_percent),
    ("speculation-wasted-50-percent", speculation::wasted_50_percent),
    ("speculation-near-ratio", speculation::near_ratio),
    ("speculation-saturated-ratio", speculation::saturated_ratio),
    ("speculation-poison-ratio", speculation::poison_ratio),
    ("speculation-poison-mb", speculation::poison_mb),
    ("speculation-simulated-within-percent", speculation::simulated_within_percent),
    ("speculation-p99-simulated-ratio", speculation::p99_simulated_ratio),
];

/// The measurement of the promise `name`.
pub fn find(name: &str) -> Option<Measurement> {
    MEASUREMENTS.iter().find(|(known, _)| *known == name).map(|(_, measurement)| *measurement)
}

/// What measurements share during one run.
#[derive(Debug)]
pub struct Bench {
    // In this order: the server goes before the folder that its files are in.
    server: Option<Server>,
    gps_ekf: Option<Artifact>,
    polybench: Option<Summary>,
    runtime: Option<runtime::Runtime>,
    compile: Option<compile::Costs>,
    /// What compiling components with engines costs, by language.
    engines: [Option<engines::Costs>; 2],
    served: Option<served::Served>,
    many: Option<operators::many::Many>,
    starts: Option<operators::many::Starts>,
    overload: Option<order::Overload>,
    /// gRPC between servers and between functions, by language.
    grpc: [Option<grpc::Costs>; 2],
    shop: Option<shop::Costs>,
    /// Beside Nuclio.
    nuclio: Option<Report>,
    sorted: Option<microtasks::Sorted>,
    /// The suite of MXFaaS.
    mixed: Option<mixed::Mixed>,
    /// Workflows beside moto.
    moto: Option<workflows::Peer>,
    /// The suites of SpecFaaS.
    speculated: Option<speculation::Speculated>,
    folder: TempDir,
}

impl Bench {
    /// Nothing compiled and nothing running yet.
    ///
    /// # Errors
    ///
    /// If there is no room for temporary files.
    pub fn new() -> Result<Bench> {
        let folder = tempfile::Builder::new().prefix("sledge-promises-").tempdir().context("cannot create a temporary folder")?;
        Ok(Bench {
            server: None,
            gps_ekf: None,
            polybench: None,
            runtime: None,
            compile: None,
            engines: [None; 2],
            served: None,
            many: None,
            starts: None,
            overload: None,
            grpc: [None; 2],
            shop: None,
            nuclio: None,
            sorted: None,
            mixed: None,
            moto: None,
            speculated: None,
            folder,
        })
    }

    /// gps-ekf, compiled with default options.
    fn gps_ekf(&mut self) -> Result<&Artifact> {
        if self.gps_ekf.is_none() {
            let output = self.folder.path().join("gps-ekf.so");
            self.gps_ekf = Some(compiler::compile(&GPS_EKF.source(), &output)?);
        }
        self.gps_ekf.as_ref().context("gps-ekf was just compiled")
    }

    /// `sledge` and what it is compared with.
    fn runtime(&mut self) -> Result<&mut runtime::Runtime> {
        if self.runtime.is_none() {
            self.runtime = Some(runtime::Runtime::start(self.folder.path())?);
        }
        self.runtime.as_mut().context("both servers were just started")
    }

    /// What compiling a large module took.
    fn compile(&mut self) -> Result<compile::Costs> {
        match self.compile {
            Some(costs) => Ok(costs),
            None => Ok(*self.compile.insert(compile::measured(self)?)),
        }
    }

    /// The applications in sandboxes and as processes.
    fn served(&mut self) -> Result<&served::Served> {
        if self.served.is_none() {
            self.served = Some(served::measured(self.folder.path())?);
        }
        self.served.as_ref().context("they were just measured")
    }

    /// What requests of one and of many functions cost.
    fn many(&mut self) -> Result<&operators::many::Many> {
        if self.many.is_none() {
            self.many = Some(operators::many::measured(self.folder.path())?);
        }
        self.many.as_ref().context("they were just measured")
    }

    /// What starting with few and with many functions costs.
    fn starts(&mut self) -> Result<operators::many::Starts> {
        match self.starts {
            Some(starts) => Ok(starts),
            None => Ok(*self.starts.insert(operators::many::starts(self.folder.path())?)),
        }
    }

    /// What is answered in time when too much comes.
    fn overload(&mut self) -> Result<&order::Overload> {
        if self.overload.is_none() {
            self.overload = Some(order::measured(self.folder.path())?);
        }
        self.overload.as_ref().context("it was just measured")
    }

    /// The run beside Nuclio.
    fn nuclio(&mut self) -> Result<&Report> {
        if self.nuclio.is_none() {
            self.nuclio = Some(nuclio::measured()?);
        }
        self.nuclio.as_ref().context("it was just measured")
    }

    /// The distributed sort.
    fn sorted(&mut self) -> Result<&microtasks::Sorted> {
        if self.sorted.is_none() {
            self.sorted = Some(microtasks::sorted(self)?);
        }
        self.sorted.as_ref().context("it was just measured")
    }

    /// The suite of MXFaaS.
    fn mixed(&mut self) -> Result<&mixed::Mixed> {
        if self.mixed.is_none() {
            self.mixed = Some(mixed::measured(self)?);
        }
        self.mixed.as_ref().context("it was just measured")
    }

    /// Workflows beside moto.
    fn beside_moto(&mut self) -> Result<workflows::Peer> {
        match self.moto {
            Some(peer) => Ok(peer),
            None => Ok(*self.moto.insert(workflows::beside_moto()?)),
        }
    }

    /// The suites of SpecFaaS.
    fn speculated(&mut self) -> Result<&speculation::Speculated> {
        if self.speculated.is_none() {
            self.speculated = Some(speculation::measured(self)?);
        }
        self.speculated.as_ref().context("it was just measured")
    }

    /// The run of all kernels.
    fn polybench(&mut self) -> Result<&Summary> {
        if self.polybench.is_none() {
            self.polybench = Some(polybench::measured()?);
        }
        self.polybench.as_ref().context("the kernels were just measured")
    }

    /// A server that offers gps-ekf.
    fn server(&mut self) -> Result<&Server> {
        if self.server.is_none() {
            let Example { name, content_type, .. } = GPS_EKF;
            let path = self.gps_ekf()?.path.clone();
            self.server = Some(Server::start(self.folder.path(), &[Function { name, path: &path, content_type }])?);
        }
        self.server.as_ref().context("the server was just started")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::promise;

    #[test]
    fn every_promise_has_a_measurement_and_the_other_way_round() {
        let promised: HashSet<_> = promise::read().unwrap().into_iter().map(|promise| promise.name).collect();
        let measured: HashSet<_> = MEASUREMENTS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(promised, measured);
    }
}
