//! The admin API: where operators change and watch a running server. HTTP and JSON, on a Unix socket that only its owner can open, or on TCP
//! with a token; never on the port where functions are served.
//!
//! * [`address`]: where it is; [`listener`]: listening, connections;
//! * [`access`]: what clients may do, by their tokens;
//! * [`api`]: what can be asked; `workflows`: of workflows and their executions; [`client`]: asking, for `sledge deploy` and its like;
//! * [`states`]: the API of AWS Step Functions, at an address of its own, for clients with access keys.
//!
//! It has a thread of its own, and what takes long has others: workers never wait for it.

pub mod access;
pub mod address;
pub mod api;
pub mod client;
pub mod listener;
pub mod states;
mod workflows;

pub use address::Address;
pub use api::Api;
pub use client::Client;
