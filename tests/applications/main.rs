//! gRPC applications as their users have them: built by the toolchains of their languages, beside the servers that the same sources are otherwise.
//!
//! They are compiled for minutes, so they run only where they are named: `make test-applications`.

mod checks;
mod shop;
