//! The epoll of a tokio runtime, which tokio does not tell.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::fs::fstat;
use tokio::net::UnixStream;

/// What the kernel says of this process's descriptors, one file each (proc_pid_fdinfo(5)).
const DESCRIPTORS: &str = "/proc/self/fdinfo";

/// The epoll of the runtime in whose context this is called: a descriptor of one's own for it.
///
/// A new socket is registered with the runtime; the epoll that has it is looked for in what the kernel says of all open files. So this has to happen before
/// the process gives up reading that. No other epoll can have that socket. But its runtime has several descriptors for the epoll, and each of them serves.
///
/// # Errors
/// When the system does not say.
pub fn epoll_of() -> io::Result<OwnedFd> {
    let (mark, _other_end) = UnixStream::pair()?;
    let (number_of_mark, inode) = (mark.as_raw_fd(), fstat(&mark)?.st_ino);
    for entry in std::fs::read_dir(DESCRIPTORS)? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<RawFd>().ok()) else { continue };
        // Other threads close theirs meanwhile.
        let Ok(told) = std::fs::read_to_string(format!("{DESCRIPTORS}/{number}")) else { continue };
        if watches(&told, number_of_mark, inode) {
            return sledge_sandbox::duplicate(number);
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "no epoll has the runtime's socket"))
}

/// Whether that is told of an epoll in which that descriptor is registered. Its number alone says too little: an epoll keeps what was registered under a number while
/// a child process still has it open, also when the number stands for something else. Kernels before 4.13 tell no more than the number.
fn watches(told: &str, descriptor: RawFd, inode: u64) -> bool {
    let mut targets = told.lines().filter_map(|line| line.strip_prefix("tfd:"));
    targets.any(|target| {
        let mut words = target.split_whitespace();
        let number = words.next().and_then(|number| number.parse().ok());
        let told = words.find_map(|word| u64::from_str_radix(word.strip_prefix("ino:")?, 16).ok());
        number == Some(descriptor) && told == Some(inode)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_registered_descriptor_is_told_by_its_whole_number() {
        let told = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1057\n\
                    tfd:       12 events: 80000019 data:     7f  pos:0 ino:421 sdev:e\n\
                    tfd:        4 events:       19 data:      0  pos:0 ino:421 sdev:e\n";
        assert!(watches(told, 12, 0x421) && watches(told, 4, 0x421));
        assert!(![1, 2, 15].iter().any(|number| watches(told, *number, 0x421)));
        assert!(!watches(told, 12, 421), "it was something else that had the number");
        assert!(!watches("eventfd-count: 4\n", 4, 0x421));
        assert!(!watches("tfd:       12 events: 80000019 data:     7f\n", 12, 0x421), "the number alone is not enough");
    }

    /// Two runtimes at once: each epoll becomes readable by a wake-up of its own runtime, and by nothing else.
    #[test]
    fn the_epoll_that_is_found_is_the_one_that_a_wakeup_from_elsewhere_makes_readable() {
        let runtimes = [(); 2].map(|()| Builder::new_current_thread().enable_all().build().unwrap());
        let epolls = [0, 1].map(|index: usize| {
            let _inside = runtimes[index].enter();
            epoll_of().unwrap()
        });
        let readable = |index: usize, time: Duration| {
            let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
            poll(&mut [PollFd::new(&epolls[index], PollFlags::IN)], Some(&time)).unwrap() > 0
        };
        for runtime in &runtimes {
            runtime.block_on(tokio::task::yield_now());
        }
        assert!(!readable(0, Duration::ZERO) && !readable(1, Duration::ZERO));
        // From a thread that is not the runtime's.
        drop(runtimes[1].spawn(async {}));
        assert!(readable(1, Duration::from_secs(10)));
        assert!(!readable(0, Duration::ZERO));
    }
}
