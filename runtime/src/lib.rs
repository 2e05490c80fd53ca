//! Sledge: a serverless runtime for one machine. It loads functions that `awsm` compiled, and runs each request in a fresh sandbox.
//!
//! ```text
//!   socket -> http -> scheduler -> execution -> sledge-sandbox
//!                                      ~> host     (calls of the guest, carried out on the worker's stack)
//! ```
//!
//! * [`cli`]: the command line; [`config`]: what an operator can set; [`prepare`]: what a server needs; [`server`]: its life; [`systemd`]: what a service manager has to do with it;
//! * [`load`], [`compile`], [`function`] and [`snapshot`]: from a file to something that can be invoked;
//! * [`deploy`]: what is served, and changing it while it is served; [`admin`]: the door through which operators do;
//! * [`http`]: connections, routes, requests; [`scheduler`]: queues, workers, who runs when;
//! * [`execution`]: one invocation in its sandbox; [`host`]: what guests can call; [`phases`]: the parts of its work, and what they need;
//! * [`outcome`]: how requests end, and what clients are told; [`memory_stack`]: whether a trap was an overflow of C's own stack;
//! * [`notice`]: what whoever waits is told; [`metrics`]: what happens, in numbers; [`logging`]: and in words; [`telemetry`]: and
//!   in spans;
//! * [`health`]: what is wrong while the server serves;
//! * [`memory`] and [`kernel`]: what the machine has, and lets a server have; [`confine`]: what a server gives up.
//!
//! Imports run in the direction of the arrows; results come back as values or messages. All `unsafe` code is in `sledge-sandbox`.

#![forbid(unsafe_code)]

pub mod abort;
pub mod admin;
pub mod cli;
pub mod compile;
pub mod config;
pub mod confine;
pub mod deploy;
pub mod execution;
pub mod function;
pub mod health;
pub mod host;
pub mod http;
pub mod kernel;
pub mod kv;
pub mod load;
pub mod logging;
pub mod memory;
pub mod memory_stack;
pub mod metrics;
pub mod notice;
pub mod outcome;
pub mod phases;
pub mod prepare;
pub mod scheduler;
pub mod server;
pub mod snapshot;
pub mod symbols;
pub mod systemd;
pub mod telemetry;
pub mod upstream;
