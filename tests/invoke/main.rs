//! Invocations without a server: a guest that is compiled here, its sandbox, and the loop that runs it. What ends an invocation, and what is left of it.

mod alone;
mod driver;
mod guest;
mod initialised;
