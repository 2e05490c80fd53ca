//! The servers that are compared.

/// What `sledge` is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// The same hyper with handlers in Rust: no sandbox, no process, the limit.
    Hyper,
    /// The same hyper with a process for each request.
    Process,
    /// The same hyper with an instance of wasmtime for each request.
    Wasmtime,
    /// `wasmtime serve`.
    WasmtimeServe,
    /// node.
    Node,
    /// Nuclio's processor with its runtime for shells.
    Nuclio,
    /// Nuclio's processor with its runtime for Go.
    NuclioGo,
}

/// What `sledge` is called in tables.
pub const SLEDGE: &str = "sledge";

impl Peer {
    /// All of them.
    pub const ALL: [Peer; 7] =
        [Peer::Hyper, Peer::Process, Peer::Wasmtime, Peer::WasmtimeServe, Peer::Node, Peer::Nuclio, Peer::NuclioGo];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Hyper => "hyper",
            Peer::Process => "process",
            Peer::Wasmtime => "wasmtime",
            Peer::WasmtimeServe => "wasmtime-serve",
            Peer::Node => "node",
            Peer::Nuclio => "nuclio",
            Peer::NuclioGo => "nuclio-go",
        }
    }

    /// What it is, for readers of the table.
    pub fn description(self) -> &'static str {
        match self {
            Peer::Hyper => "hyper (Rust) on one thread with handlers in its process: no sandbox, the limit",
            Peer::Process => {
                "the same server, which starts the native program (clang -O3 -march=native) for each request: fork, exec, wait"
            }
            Peer::Wasmtime => {
                "the same server around the wasmtime crate: compiled and linked before the first request, pooling allocator that keeps pages \
                 resident, a fresh instance for each request, which nothing interrupts"
            }
            Peer::WasmtimeServe => {
                "`wasmtime serve` as it comes, with the function as a component of wasi:http: a fresh instance for each request"
            }
            Peer::Node => {
                "node's own HTTP server; ping and echo are JavaScript without a sandbox, all others the same WebAssembly in a fresh instance for \
                 each request, on V8"
            }
            Peer::Nuclio => {
                "Nuclio's processor with its shell runtime, which starts a shell for each request, which becomes the native program; a worker, \
                 requests wait for it, no logs"
            }
            Peer::NuclioGo => {
                "the same processor with its Go runtime, which calls a handler in Go in its own process, without a sandbox or a process for it"
            }
        }
    }
}
