//! What the system says of this process.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// Numbers of `/proc/self`, where it can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// Processor time of all threads, in seconds.
    pub cpu_seconds: f64,
    /// Page faults for which nothing had to be read, and others.
    pub faults: [u64; 2],
    /// Resident bytes.
    pub resident_bytes: u64,
    /// Reserved bytes: with guarded memories, far more than there are.
    pub virtual_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open files and sockets.
    pub files: u64,
    /// How many there may be.
    pub files_max: u64,
}

/// Asks the system.
#[must_use]
pub fn process() -> Process {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let files = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let files_max = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    Process { files, files_max, ..of(&stat, clock_ticks_per_second(), page_size() as u64).unwrap_or_default() }
}

/// The fields of proc_pid_stat(5), counted from the one behind the name, which may hold anything.
fn of(stat: &str, ticks_per_second: u64, page_bytes: u64) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Process {
        cpu_seconds: (number(11)? + number(12)?) as f64 / ticks_per_second as f64,
        faults: [number(7)?, number(9)?],
        threads: number(17)?,
        virtual_bytes: number(20)?,
        resident_bytes: number(21)? * page_bytes,
        ..Process::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_manual() {
        let stat = "77 (a ) b) S 1 2 3 4 5 6 700 8 900 10 150 50 13 14 15 16 9 18 19 4096 3 22";
        let process = of(stat, 100, 4096).unwrap();
        let expected =
            Process { cpu_seconds: 2.0, faults: [700, 900], resident_bytes: 3 * 4096, virtual_bytes: 4096, ..Process::default() };
        assert_eq!(process, Process { threads: 9, ..expected });
        assert_eq!(of("nonsense", 100, 4096), None);
        assert!(super::process().resident_bytes > 0 && super::process().files > 2);
    }
}
