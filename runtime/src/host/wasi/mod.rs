//! WASI preview 1 (`wasi_snapshot_preview1`), as far as programs need that read a body and write a reply.
//!
//! Every function of the interface stands in [`FUNCTIONS`] with its signature, so that programs load; those without code answer
//! [`Errno::NOSYS`]. Layouts and semantics follow wasi_snapshot_preview1.witx. All addresses come from the guest and are checked where
//! they are used; no call does more than a bounded amount of work at a time.

mod args;
mod clock;
mod errno;
mod fd;
mod process;
mod random;
#[cfg(test)]
mod tests;

use awsm_abi::types::ValType::{self, I32, I64};

use super::Effect::{External, Local, Safe};
use super::{Call, Code, Effect, HostFunction, Stop};

pub use errno::Errno;

/// Module name of the imports.
pub const MODULE: &str = "wasi_snapshot_preview1";

const fn wasi(
    name: &'static str,
    params: &'static [ValType],
    effect: Effect,
    code: fn(&mut Call<'_>) -> Result<(), Stop>,
) -> HostFunction {
    HostFunction { module: MODULE, name, params, results: &[I32], effect, code: Code::Wasi(code) }
}

const fn stub(name: &'static str, params: &'static [ValType]) -> HostFunction {
    HostFunction { module: MODULE, name, params, results: &[I32], effect: External, code: Code::WasiStub }
}

/// The interface, in alphabetical order.
pub const FUNCTIONS: &[HostFunction] = &[
    wasi("args_get", &[I32, I32], Safe, args::args_get),
    wasi("args_sizes_get", &[I32, I32], Safe, args::args_sizes_get),
    wasi("clock_res_get", &[I32, I32], Safe, clock::clock_res_get),
    wasi("clock_time_get", &[I32, I64, I32], Local, clock::clock_time_get),
    wasi("environ_get", &[I32, I32], Safe, args::environ_get),
    wasi("environ_sizes_get", &[I32, I32], Safe, args::environ_sizes_get),
    stub("fd_advise", &[I32, I64, I64, I32]),
    stub("fd_allocate", &[I32, I64, I64]),
    wasi("fd_close", &[I32], Local, fd::fd_close),
    stub("fd_datasync", &[I32]),
    wasi("fd_fdstat_get", &[I32, I32], Local, fd::fd_fdstat_get),
    wasi("fd_fdstat_set_flags", &[I32, I32], Local, fd::fd_fdstat_set_flags),
    stub("fd_fdstat_set_rights", &[I32, I64, I64]),
    stub("fd_filestat_get", &[I32, I32]),
    stub("fd_filestat_set_size", &[I32, I64]),
    stub("fd_filestat_set_times", &[I32, I64, I64, I32]),
    stub("fd_pread", &[I32, I32, I32, I64, I32]),
    wasi("fd_prestat_dir_name", &[I32, I32, I32], Safe, fd::fd_prestat),
    wasi("fd_prestat_get", &[I32, I32], Safe, fd::fd_prestat),
    stub("fd_pwrite", &[I32, I32, I32, I64, I32]),
    wasi("fd_read", &[I32, I32, I32, I32], Local, fd::fd_read),
    stub("fd_readdir", &[I32, I32, I32, I64, I32]),
    stub("fd_renumber", &[I32, I32]),
    wasi("fd_seek", &[I32, I64, I32, I32], Local, fd::fd_seek),
    stub("fd_sync", &[I32]),
    wasi("fd_tell", &[I32, I32], Local, fd::fd_seek),
    wasi("fd_write", &[I32, I32, I32, I32], Local, fd::fd_write),
    stub("path_create_directory", &[I32, I32, I32]),
    stub("path_filestat_get", &[I32, I32, I32, I32, I32]),
    stub("path_filestat_set_times", &[I32, I32, I32, I32, I64, I64, I32]),
    stub("path_link", &[I32, I32, I32, I32, I32, I32, I32]),
    stub("path_open", &[I32, I32, I32, I32, I32, I64, I64, I32, I32]),
    stub("path_readlink", &[I32, I32, I32, I32, I32, I32]),
    stub("path_remove_directory", &[I32, I32, I32]),
    stub("path_rename", &[I32, I32, I32, I32, I32, I32]),
    stub("path_symlink", &[I32, I32, I32, I32, I32]),
    stub("path_unlink_file", &[I32, I32, I32]),
    stub("poll_oneoff", &[I32, I32, I32, I32]),
    HostFunction {
        module: MODULE,
        name: "proc_exit",
        params: &[I32],
        results: &[],
        effect: Local,
        code: Code::Wasi(process::proc_exit),
    },
    stub("proc_raise", &[I32]),
    wasi("random_get", &[I32, I32], Local, random::random_get),
    wasi("sched_yield", &[], Safe, process::sched_yield),
    stub("sock_accept", &[I32, I32, I32]),
    stub("sock_recv", &[I32, I32, I32, I32, I32, I32]),
    stub("sock_send", &[I32, I32, I32, I32, I32]),
    stub("sock_shutdown", &[I32, I32]),
];
