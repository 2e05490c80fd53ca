//! How many files the process may have open, and how many of them are connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sledge_sandbox::limits::sealed_files_max;

/// Connections at the same time, where the configuration does not say otherwise.
const CONNECTIONS_MAX: usize = 65_536;
/// Open files that are neither for connections nor for [images](sealed_files_max): sockets that listen, the admin API, what is being loaded and compiled.
const FILES_RESERVED: u64 = 256;

/// Connections at the same time of a process that may have so many open files.
pub(crate) fn connections_of(files_max: u64) -> usize {
    let others = FILES_RESERVED + sealed_files_max(files_max);
    usize::try_from(files_max.saturating_sub(others).max(1)).unwrap_or(CONNECTIONS_MAX).min(CONNECTIONS_MAX)
}

/// Lets this process have as many open files as it is allowed to; how many that is.
pub(crate) fn raise_files_max() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let Some(maximum) = limit.maximum else { return u64::MAX };
    match setrlimit(Resource::Nofile, Rlimit { current: Some(maximum), ..limit }) {
        Ok(()) => maximum,
        Err(_) => limit.current.unwrap_or(maximum),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_to_images_and_to_everything_else() {
        for (files, connections) in
            [(1_024, 640), (4_096, 3_328), (1 << 20, CONNECTIONS_MAX), (u64::MAX, CONNECTIONS_MAX), (100, 1)]
        {
            assert_eq!(connections_of(files), connections, "{files}");
            let taken = connections as u64 + sealed_files_max(files) + FILES_RESERVED;
            assert!(connections == 1 || taken <= files, "{files}");
        }
    }
}
