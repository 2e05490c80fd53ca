//! Sledge: a serverless runtime for one machine. It loads functions that `awsm` compiled, and runs each request in a fresh sandbox.
//!
//! ```text
//!   socket -> http -> invoke -> worker -> invoke::driver -> sledge-sandbox
//!                                 |              ~> host   (calls of the guest, carried out on the worker's stack)
//!                                 `-> schedule   (which invocation runs next)
//! ```
//!
//! * [`cli`]: the command line; [`config`]: what an operator can set; [`secret`]: and what stands elsewhere; [`server`]: a server's life; [`systemd`]: what a service
//!   manager has to do with it;
//! * [`load`], [`compile`]: from a file to something that can be invoked;
//! * [`deploy`]: what is served, and changing it while it is served; [`admin`]: the API through which operators do;
//! * [`http`], [`tls`]: connections, routes, requests;
//! * [`invoke`]: functions, and one invocation from its admission to its reply; [`schedule`]: what runs when; [`worker`]: the thread that carries that out; [`watch`]: and what
//!   interrupts it;
//! * [`host`]: what guests can call; [`kv`] and [`upstream`]: what is behind that; [`txn`]: an invocation's reads and writes of the store as one commit; [`workflow`]: functions in the order that a definition says; [`blocking`]: work that would block a worker;
//! * [`reply`]: what a function answers, from its sandbox to where it is waited for, and `timeout`: how long; [`memo`]: answers that are given again;
//! * [`grpc`]: what gRPC says in HTTP's words; [`phases`]: the parts of a function's work, and what they need; [`outcome`]: how requests end, and what clients are told; [`memory_stack`]: whether a trap was
//!   an overflow of C's own stack; [`component_trap`]: traps that the component model has besides;
//! * [`notice`]: what a client that waits is told; [`metrics`]: what happens, in numbers, of [`counters`] (`sync`: what they are made of); [`logging`]: and in words; [`telemetry`]: and in spans;
//! * [`health`]: what is wrong while the server serves;
//! * [`memory`] and [`kernel`]: what the machine has, and lets a server have; [`confine`]: what a server gives up.
//!
//! Imports lead in one direction: no folder imports one that imports it (`tests/structure`). All `unsafe` code is in `sledge-sandbox`.

#![forbid(unsafe_code)]
// They panic where the reader has gone.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod abort;
pub mod admin;
pub mod blocking;
pub mod cli;
pub mod compile;
pub mod component_trap;
pub mod config;
pub mod confine;
pub mod counters;
pub mod deploy;
pub mod grpc;
pub mod health;
pub mod host;
pub mod http;
pub mod invoke;
pub mod kernel;
pub mod kv;
pub mod load;
pub mod logging;
pub mod memo;
pub mod memory;
pub mod memory_stack;
pub mod metrics;
pub mod notice;
pub mod outcome;
pub mod phases;
pub mod reply;
pub mod secret;
pub mod server;
pub mod speculate;
pub mod symbols;
mod sync;
pub mod systemd;
pub mod telemetry;
mod timeout;
pub mod tls;
pub mod txn;
pub mod upstream;
pub mod watch;
pub mod worker;
pub mod workflow;

pub use sledge_schedule as schedule;
