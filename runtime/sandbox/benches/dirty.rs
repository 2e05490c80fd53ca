//! Ways to make a memory again what its image says, side by side: each writes to some pages, as a run would, and restores. Printed: nanoseconds
//! for both together, medians. What the kernel refuses is printed as `-`.
//!
//! | way | how it knows what to restore |
//! |---|---|
//! | learned | it knows: those pages were written to before (the way of `sledge-sandbox`) |
//! | whole | it does not: everything is copied |
//! | scan | PAGEMAP_SCAN of pages written since the last one, which write-protects them again (userfaultfd, Linux 6.7) |
//! | soft-dirty | `/proc/self/pagemap` after writing 4 to `/proc/self/clear_refs`, which is for the whole process |
//! | discard | nothing to know: madvise(DONTNEED), and the image is copied into fresh pages |
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

use std::fs::File;
use std::io::Write as _;
use std::os::fd::FromRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::ptr;
use std::time::Instant;

const PAGE: usize = 4096;

/// A memory and its image.
struct Memory {
    bytes: &'static mut [u8],
    image: Vec<u8>,
}

impl Memory {
    fn new(size: usize) -> Memory {
        // SAFETY: A fresh mapping of that size, never unmapped.
        let bytes = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let at = libc::mmap(ptr::null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            libc::madvise(at, size, libc::MADV_NOHUGEPAGE);
            std::slice::from_raw_parts_mut(at.cast::<u8>(), size)
        };
        let image: Vec<u8> = (0..size).map(|at| (at / 61) as u8).collect();
        bytes.copy_from_slice(&image);
        Memory { bytes, image }
    }

    fn restore(&mut self, range: std::ops::Range<usize>) {
        self.bytes[range.clone()].copy_from_slice(&self.image[range]);
    }
}

/// Restores a memory, of which these pages were written to; false when it cannot.
type Way<'a> = &'a mut dyn FnMut(&mut Memory, &[usize]) -> bool;

/// The median of writing to `dirty` pages and restoring, in nanoseconds.
fn measure(size: usize, dirty: &[usize], restore: Way<'_>) -> Option<f64> {
    let mut memory = Memory::new(size);
    let mut once = |check: bool| {
        for page in dirty {
            memory.bytes[page * PAGE + 123] ^= 0xff;
        }
        let done = restore(&mut memory, dirty);
        assert!(!check || !done || *memory.bytes == *memory.image, "restored");
        done
    };
    for _ in 0..5 {
        if !once(true) {
            return None;
        }
    }
    let mut times: Vec<f64> = (0..301)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..5 {
                once(false);
            }
            start.elapsed().as_nanos() as f64 / 5.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    Some(times[150])
}

fn learned(memory: &mut Memory, dirty: &[usize]) -> bool {
    dirty.iter().for_each(|page| memory.restore(page * PAGE..(page + 1) * PAGE));
    true
}

fn whole(memory: &mut Memory, _: &[usize]) -> bool {
    memory.restore(0..memory.bytes.len());
    true
}

fn discard(memory: &mut Memory, _: &[usize]) -> bool {
    // SAFETY: Our own pages, whose contents are not needed.
    let done = unsafe { libc::madvise(memory.bytes.as_mut_ptr().cast(), memory.bytes.len(), libc::MADV_DONTNEED) };
    memory.restore(0..memory.bytes.len());
    done == 0
}

/// Finds pages written to by their soft-dirty bits.
fn soft_dirty(pagemap: &File, clear: &mut File) -> impl FnMut(&mut Memory, &[usize]) -> bool {
    let mut first = true;
    move |memory, _| {
        let mut entries = vec![0u8; memory.bytes.len() / PAGE * 8];
        let at = memory.bytes.as_ptr() as usize / PAGE * 8;
        let known = pagemap.read_exact_at(&mut entries, at as u64).is_ok();
        let mut found = 0;
        for (page, entry) in entries.as_chunks::<8>().0.iter().enumerate() {
            if u64::from_ne_bytes(*entry) & 1 << 55 != 0 {
                found += 1;
                memory.restore(page * PAGE..(page + 1) * PAGE);
            }
        }
        let cleared = clear.write_all(b"4").is_ok();
        // A kernel without this feature says that nothing is dirty.
        let works = known && cleared && found > 0;
        if first {
            memory.restore(0..memory.bytes.len());
        }
        first = false;
        works
    }
}

/// The kernel's `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// A userfaultfd that notes writes by itself; none where there is no such thing, or not for us.
fn written_tracker() -> Option<File> {
    #[repr(C)]
    struct Api {
        api: u64,
        features: u64,
        ioctls: u64,
    }
    const USER_MODE_ONLY: libc::c_int = 1;
    const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
    const FEATURE_WP_UNPOPULATED: u64 = 1 << 13;
    const FEATURE_WP_ASYNC: u64 = 1 << 15;
    // SAFETY: A system call that makes a descriptor, and one that fills our structure.
    unsafe {
        let fd = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY) as libc::c_int;
        if fd < 0 {
            return None;
        }
        let file = File::from_raw_fd(fd);
        let mut api = Api { api: 0xaa, features: FEATURE_WP_UNPOPULATED | FEATURE_WP_ASYNC, ioctls: 0 };
        (libc::ioctl(fd, UFFDIO_API, &raw mut api) == 0).then_some(file)
    }
}

fn scan<'a>(tracker: &'a Option<File>, pagemap: &'a File) -> impl FnMut(&mut Memory, &[usize]) -> bool + 'a {
    use std::os::fd::AsRawFd as _;
    const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;
    const MODE_WP: u64 = 2;
    const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
    const WP_MATCHING: u64 = 1;
    const CHECK_WPASYNC: u64 = 2;
    const WRITTEN: u64 = 2;
    let mut registered = false;
    let mut regions = vec![[0u64; 3]; 4096];
    move |memory, _| {
        let Some(tracker) = tracker else { return false };
        let (start, end) = (memory.bytes.as_ptr() as u64, memory.bytes.as_ptr() as u64 + memory.bytes.len() as u64);
        if !registered {
            let mut register = [start, end - start, MODE_WP, 0u64];
            // SAFETY: The structure as the kernel wants it.
            if unsafe { libc::ioctl(tracker.as_raw_fd(), UFFDIO_REGISTER, register.as_mut_ptr()) } != 0 {
                return false;
            }
            registered = true;
        }
        let mut arg = Scan {
            size: size_of::<Scan>() as u64,
            flags: WP_MATCHING | CHECK_WPASYNC,
            start,
            end,
            regions: regions.as_mut_ptr() as u64,
            regions_len: regions.len() as u64,
            category_mask: WRITTEN,
            return_mask: WRITTEN,
            ..Scan::default()
        };
        // Restoring writes, too: so it is done first, and what it wrote is protected by a second scan.
        for flags in [0, WP_MATCHING | CHECK_WPASYNC] {
            arg.flags = flags;
            // SAFETY: As the kernel wants it; the regions are ours.
            let count = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut arg) };
            let Ok(count) = usize::try_from(count) else { return false };
            if flags == 0 {
                for [from, until, _] in &regions[..count] {
                    memory.restore((from - start) as usize..(until - start) as usize);
                }
            }
        }
        true
    }
}

fn main() {
    let pagemap = File::open("/proc/self/pagemap").unwrap();
    println!("{:>9} {:>6} {:>9} {:>9} {:>9} {:>10} {:>9}", "KiB", "dirty", "learned", "whole", "scan", "soft-dirty", "discard");
    for kib in [64, 320, 1024, 8192] {
        for count in [2, 8, 64] {
            let (size, pages) = (kib << 10, kib / 4);
            if count * 4 > pages && count > 2 {
                continue;
            }
            let dirty: Vec<usize> = (0..count).map(|i| i * pages / count).collect();
            let mut clear = File::options().write(true).open("/proc/self/clear_refs").unwrap();
            let tracker = written_tracker();
            let text = |cost: Option<f64>| cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.0}"));
            let ways: [Way<'_>; 5] =
                [&mut learned, &mut whole, &mut scan(&tracker, &pagemap), &mut soft_dirty(&pagemap, &mut clear), &mut discard];
            let [a, b, c, d, e] = ways.map(|way| text(measure(size, &dirty, way)));
            println!("{kib:>9} {count:>6} {a:>9} {b:>9} {c:>9} {d:>10} {e:>9}");
        }
    }
}
