//! What `make demo`, `make promises`, `make polybench` and `make bench` share: the example functions with their right
//! answers, both programs as child processes, an HTTP client, and the arithmetic of latencies.
//!
//! Sits outside the product: it knows `awsm` and `sledge` only by their command lines and over HTTP, as a
//! user does, and neither knows it. Every reply is checked before anything about it is timed or printed.
#![forbid(unsafe_code)]

pub mod applications;
pub mod checkout;
pub mod child;
pub mod client;
pub mod compiler;
pub mod cores;
pub mod ecdf;
pub mod example;
pub mod front;
pub mod gps;
pub mod latency;
pub mod load;
pub mod measure;
pub mod moto;
pub mod native;
pub mod network;
pub mod peers;
pub mod phases;
pub mod photograph;
pub mod pictures;
pub mod plot;
pub mod polybench;
pub mod printed;
pub mod promise;
mod random;
pub mod row;
pub mod run;
pub mod scenario;
pub mod server;
pub mod sharing;
pub mod simple;
pub mod simulated;
pub mod soak;
pub mod speculation;
pub mod spread;
pub mod steps;
pub mod store;
pub mod street;
pub mod tables;
pub mod warm;
#[cfg(feature = "wasmtime")]
pub mod wasi;
pub mod workload;
