//! WASI preview 1 (`wasi_snapshot_preview1`).
//!
//! Every function of the interface stands in [`FUNCTIONS`] with its signature. Layouts and semantics follow wasi_snapshot_preview1.witx.
//! All addresses come from the guest and are checked where they are used; no call does more than a bounded amount of work at a time, nor
//! has more than a bounded amount of the host's memory; what may wait for a disk is done by [`disk`].

pub(in crate::host) mod clocks;
pub(in crate::host) mod contents;
pub(in crate::host) mod descriptors;
pub(in crate::host) mod disk;
mod environment;
mod errno;
pub(in crate::host) mod files;
pub(in crate::host) mod folders;
mod grants;
pub(in crate::host) mod paths;
pub(in crate::host) mod place;
mod poll;
mod process;
mod random;
pub(in crate::host) mod rights;
mod scratch;
mod sockets;
pub(in crate::host) mod stat;
mod streams;
#[cfg(test)]
mod tests;

use awsm_abi::types::ValType::{self, I32, I64};

use super::Effect::{Entropy, External, Safe, Stream};
use super::{Args, Call, Code, Effect, HostFunction, Stop};

pub use descriptors::DESCRIPTORS_MAX;
pub(in crate::host) use descriptors::Descriptors;
pub use errno::Errno;
pub use grants::{Access, Grant, GrantError};
pub use scratch::Usage;
pub(in crate::host) use streams::BufferList;

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

/// Whether a call of that function with these arguments, which reaches what lies outside, leaves it as it is.
#[must_use]
pub fn only_reads_files(name: &str, args: &Args) -> bool {
    match name {
        "path_open" => args.u32(4) & (paths::OFLAGS_CREAT | paths::OFLAGS_TRUNC) == 0,
        "fd_advise" | "fd_filestat_get" | "fd_pread" | "fd_readdir" | "path_filestat_get" | "path_readlink" => true,
        _ => false,
    }
}

/// Which argument of a function that [reaches what lies outside](Effect::External) is the file or folder that it is about.
pub(in crate::host) fn subject(name: &str) -> usize {
    if name == "path_symlink" { 2 } else { 0 }
}

/// The interface, in alphabetical order.
pub const FUNCTIONS: &[HostFunction] = &[
    wasi("args_get", &[I32, I32], Safe, environment::args_get),
    wasi("args_sizes_get", &[I32, I32], Safe, environment::args_sizes_get),
    wasi("clock_res_get", &[I32, I32], Safe, clocks::clock_res_get),
    wasi("clock_time_get", &[I32, I64, I32], Entropy, clocks::clock_time_get),
    wasi("environ_get", &[I32, I32], Safe, environment::environ_get),
    wasi("environ_sizes_get", &[I32, I32], Safe, environment::environ_sizes_get),
    wasi("fd_advise", &[I32, I64, I64, I32], External, files::fd_advise),
    wasi("fd_allocate", &[I32, I64, I64], External, files::fd_allocate),
    wasi("fd_close", &[I32], Stream, descriptors::fd_close),
    wasi("fd_datasync", &[I32], External, files::fd_datasync),
    wasi("fd_fdstat_get", &[I32, I32], Stream, stat::fd_fdstat_get),
    wasi("fd_fdstat_set_flags", &[I32, I32], Stream, stat::fd_fdstat_set_flags),
    wasi("fd_fdstat_set_rights", &[I32, I64, I64], Stream, descriptors::fd_fdstat_set_rights),
    wasi("fd_filestat_get", &[I32, I32], External, stat::fd_filestat_get),
    wasi("fd_filestat_set_size", &[I32, I64], External, files::fd_filestat_set_size),
    wasi("fd_filestat_set_times", &[I32, I64, I64, I32], External, stat::fd_filestat_set_times),
    wasi("fd_pread", &[I32, I32, I32, I64, I32], External, files::fd_pread),
    wasi("fd_prestat_dir_name", &[I32, I32, I32], Stream, grants::fd_prestat_dir_name),
    wasi("fd_prestat_get", &[I32, I32], Stream, grants::fd_prestat_get),
    wasi("fd_pwrite", &[I32, I32, I32, I64, I32], External, files::fd_pwrite),
    wasi("fd_read", &[I32, I32, I32, I32], Stream, streams::fd_read),
    wasi("fd_readdir", &[I32, I32, I32, I64, I32], External, folders::fd_readdir),
    wasi("fd_renumber", &[I32, I32], Stream, descriptors::fd_renumber),
    wasi("fd_seek", &[I32, I64, I32, I32], Stream, files::fd_seek),
    wasi("fd_sync", &[I32], External, files::fd_sync),
    wasi("fd_tell", &[I32, I32], Stream, files::fd_tell),
    wasi("fd_write", &[I32, I32, I32, I32], Stream, streams::fd_write),
    wasi("path_create_directory", &[I32, I32, I32], External, paths::path_create_directory),
    wasi("path_filestat_get", &[I32, I32, I32, I32, I32], External, paths::path_filestat_get),
    wasi("path_filestat_set_times", &[I32, I32, I32, I32, I64, I64, I32], External, paths::path_filestat_set_times),
    wasi("path_link", &[I32, I32, I32, I32, I32, I32, I32], External, paths::path_link),
    wasi("path_open", &[I32, I32, I32, I32, I32, I64, I64, I32, I32], External, paths::path_open),
    wasi("path_readlink", &[I32, I32, I32, I32, I32, I32], External, paths::path_readlink),
    wasi("path_remove_directory", &[I32, I32, I32], External, paths::path_remove_directory),
    wasi("path_rename", &[I32, I32, I32, I32, I32, I32], External, paths::path_rename),
    wasi("path_symlink", &[I32, I32, I32, I32, I32], External, paths::path_symlink),
    wasi("path_unlink_file", &[I32, I32, I32], External, paths::path_unlink_file),
    wasi("poll_oneoff", &[I32, I32, I32, I32], Entropy, poll::poll_oneoff),
    HostFunction {
        module: MODULE,
        name: "proc_exit",
        params: &[I32],
        results: &[],
        effect: Stream,
        code: Code::Wasi(process::proc_exit),
    },
    wasi("proc_raise", &[I32], Stream, process::proc_raise),
    wasi("random_get", &[I32, I32], Entropy, random::random_get),
    wasi("sched_yield", &[], Safe, process::sched_yield),
    wasi("sock_accept", &[I32, I32, I32], Stream, sockets::no_socket),
    wasi("sock_recv", &[I32, I32, I32, I32, I32, I32], Stream, sockets::no_socket),
    wasi("sock_send", &[I32, I32, I32, I32, I32], Stream, sockets::no_socket),
    wasi("sock_shutdown", &[I32, I32], Stream, sockets::sock_shutdown),
];
