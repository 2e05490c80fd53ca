//! Every function that a module may import from the host, with its signature.
//!
//! The compiler refuses what is not here before it works in vain; the runtime's own table (`runtime/src/host`) is kept equal to this one by a test.

use crate::types::ValType::{self, I32, I64};

/// The functions of one module name.
#[derive(Debug)]
pub struct Interface {
    /// The imports' module name.
    pub module: &'static str,
    /// Its functions.
    pub functions: &'static [Function],
}

/// A function that the host offers.
#[derive(Debug)]
pub struct Function {
    /// The import's field name.
    pub name: &'static str,
    /// Parameter types.
    pub params: &'static [ValType],
    /// Result types.
    pub results: &'static [ValType],
}

const fn function(name: &'static str, params: &'static [ValType], results: &'static [ValType]) -> Function {
    Function { name, params, results }
}

/// All of them.
pub const INTERFACES: &[Interface] = &[
    Interface {
        module: "wasi_snapshot_preview1",
        functions: &[
            function("args_get", &[I32, I32], &[I32]),
            function("args_sizes_get", &[I32, I32], &[I32]),
            function("clock_res_get", &[I32, I32], &[I32]),
            function("clock_time_get", &[I32, I64, I32], &[I32]),
            function("environ_get", &[I32, I32], &[I32]),
            function("environ_sizes_get", &[I32, I32], &[I32]),
            function("fd_advise", &[I32, I64, I64, I32], &[I32]),
            function("fd_allocate", &[I32, I64, I64], &[I32]),
            function("fd_close", &[I32], &[I32]),
            function("fd_datasync", &[I32], &[I32]),
            function("fd_fdstat_get", &[I32, I32], &[I32]),
            function("fd_fdstat_set_flags", &[I32, I32], &[I32]),
            function("fd_fdstat_set_rights", &[I32, I64, I64], &[I32]),
            function("fd_filestat_get", &[I32, I32], &[I32]),
            function("fd_filestat_set_size", &[I32, I64], &[I32]),
            function("fd_filestat_set_times", &[I32, I64, I64, I32], &[I32]),
            function("fd_pread", &[I32, I32, I32, I64, I32], &[I32]),
            function("fd_prestat_dir_name", &[I32, I32, I32], &[I32]),
            function("fd_prestat_get", &[I32, I32], &[I32]),
            function("fd_pwrite", &[I32, I32, I32, I64, I32], &[I32]),
            function("fd_read", &[I32, I32, I32, I32], &[I32]),
            function("fd_readdir", &[I32, I32, I32, I64, I32], &[I32]),
            function("fd_renumber", &[I32, I32], &[I32]),
            function("fd_seek", &[I32, I64, I32, I32], &[I32]),
            function("fd_sync", &[I32], &[I32]),
            function("fd_tell", &[I32, I32], &[I32]),
            function("fd_write", &[I32, I32, I32, I32], &[I32]),
            function("path_create_directory", &[I32, I32, I32], &[I32]),
            function("path_filestat_get", &[I32, I32, I32, I32, I32], &[I32]),
            function("path_filestat_set_times", &[I32, I32, I32, I32, I64, I64, I32], &[I32]),
            function("path_link", &[I32, I32, I32, I32, I32, I32, I32], &[I32]),
            function("path_open", &[I32, I32, I32, I32, I32, I64, I64, I32, I32], &[I32]),
            function("path_readlink", &[I32, I32, I32, I32, I32, I32], &[I32]),
            function("path_remove_directory", &[I32, I32, I32], &[I32]),
            function("path_rename", &[I32, I32, I32, I32, I32, I32], &[I32]),
            function("path_symlink", &[I32, I32, I32, I32, I32], &[I32]),
            function("path_unlink_file", &[I32, I32, I32], &[I32]),
            function("poll_oneoff", &[I32, I32, I32, I32], &[I32]),
            function("proc_exit", &[I32], &[]),
            function("proc_raise", &[I32], &[I32]),
            function("random_get", &[I32, I32], &[I32]),
            function("sched_yield", &[], &[I32]),
            function("sock_accept", &[I32, I32, I32], &[I32]),
            function("sock_recv", &[I32, I32, I32, I32, I32, I32], &[I32]),
            function("sock_send", &[I32, I32, I32, I32, I32], &[I32]),
            function("sock_shutdown", &[I32, I32], &[I32]),
        ],
    },
    Interface {
        module: "sledge:kv",
        functions: &[
            function("open", &[I32, I32], &[I32]),
            function("get", &[I32, I32, I32, I32, I32, I32], &[I32]),
            function("exists", &[I32, I32, I32], &[I32]),
            function("list-keys", &[I32, I32, I32, I32, I32, I32, I32], &[I32]),
            function("get-many", &[I32, I32, I32, I32, I32, I32], &[I32]),
            function("set", &[I32, I32, I32, I32, I32, I32], &[I32]),
            function("delete", &[I32, I32, I32], &[I32]),
            function("increment", &[I32, I32, I32, I64, I32], &[I32]),
            function("compare-and-swap", &[I32, I32, I32, I64, I32, I32, I32], &[I32]),
            function("set-many", &[I32, I32, I32, I32], &[I32]),
            function("delete-many", &[I32, I32, I32], &[I32]),
            function("commit", &[I32, I32, I32, I32, I32, I32], &[I32]),
        ],
    },
    Interface {
        module: "sledge:call",
        functions: &[
            function("invoke", &[I32, I32, I32, I32, I32, I32], &[I32]),
            function("start", &[I32, I32, I32, I32], &[I32]),
            function("wait", &[I32, I32, I32], &[I32]),
            function("rest", &[I32, I32], &[I32]),
            function("send", &[I32, I32, I32, I32], &[I32]),
        ],
    },
    Interface {
        module: "sledge:note",
        functions: &[function("log", &[I32, I32, I32], &[I32]), function("phase", &[I32], &[I32])],
    },
    Interface {
        module: "sledge:http",
        functions: &[
            function("method", &[I32, I32], &[I32]),
            function("target", &[I32, I32], &[I32]),
            function("header", &[I32, I32, I32, I32], &[I32]),
            function("headers", &[I32, I32], &[I32]),
            function("trailer", &[I32, I32, I32, I32], &[I32]),
            function("status", &[I32], &[I32]),
            function("set-header", &[I32, I32, I32, I32], &[I32]),
            function("add-header", &[I32, I32, I32, I32], &[I32]),
            function("set-trailer", &[I32, I32, I32, I32], &[I32]),
            function("add-trailer", &[I32, I32, I32, I32], &[I32]),
            function("stream", &[I64], &[I32]),
        ],
    },
    Interface {
        module: "sledge:fetch",
        functions: &[
            function("send", &[I32, I32, I32, I32, I32, I32, I32, I32, I32], &[I32]),
            function("status", &[I32], &[I32]),
            function("headers", &[I32, I32, I32], &[I32]),
            function("read", &[I32, I32, I32], &[I32]),
            function("close", &[I32], &[I32]),
        ],
    },
    Interface {
        module: "sledge:rpc",
        functions: &[
            function("begin", &[I32, I32, I32, I32, I32, I32, I64, I32], &[I32]),
            function("head", &[I32, I32, I32], &[I32]),
            function("trailers", &[I32, I32, I32], &[I32]),
            function("call", &[I32, I32, I32, I32, I32, I32, I64, I32, I32, I32], &[I32]),
            function("accept", &[I32, I32, I32], &[I32]),
            function("answer", &[I32, I32, I32, I32, I32, I32], &[I32]),
        ],
    },
];
