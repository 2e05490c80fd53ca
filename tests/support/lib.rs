//! What several of this crate's tests share. Knows the programs under test only by their files, output and sockets.

pub mod admin;
pub mod canonical;
pub mod command;
pub mod components;
pub mod golden;
pub mod hostile;
pub mod http;
pub mod machine;
pub mod process;
pub mod programs;
pub mod random;
pub mod server;
pub mod sources;
pub mod spec;
#[cfg(feature = "compiler")]
pub mod traced;
pub mod xml;
