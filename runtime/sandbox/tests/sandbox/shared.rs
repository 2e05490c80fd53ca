//! Images that all sandboxes of a template share: what one writes is its own, and what none writes is there once.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use awsm_abi::descriptor::{ConstOp, DataSegment, SegmentMode};
use awsm_abi::types::Bounds;
use sledge_sandbox::limits::{PRIVATE_AHEAD_BYTES, SHARED_IMAGE_BYTES_MIN};
use sledge_sandbox::*;

use crate::guest::{LIMITS, call, parts, worker};
use crate::traps::{in_another_process, is_doomed};

pub(crate) const MIB: usize = 1 << 20;
pub(crate) const BIG: SandboxLimits = SandboxLimits { memory_bytes_max: 128 << 20, ..LIMITS };
const MODES: [Bounds; 2] = [Bounds::Guard, Bounds::Software];

/// Bytes of which no page is zero, and no two are alike.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8 ^ (at >> 12) as u8 | 1).collect()
}

/// Data of the pattern at some addresses, in a memory of so many bytes.
#[derive(Clone)]
pub(crate) struct Data {
    segments: Vec<(usize, usize)>,
    memory_bytes: usize,
}

/// Neither begins nor ends at a page.
pub(crate) fn data(bytes: usize) -> Data {
    Data { segments: vec![(70_001, bytes)], memory_bytes: (70_001 + bytes + 100_000).next_multiple_of(65_536) }
}

impl Data {
    pub(crate) fn template(&self, bounds: Bounds) -> Template {
        let mut parts = parts();
        let module = &mut parts.descriptor.modules[0];
        module.bounds[0] = bounds;
        module.memories[0].ty.pages_min = (self.memory_bytes / 65_536) as u64;
        module.memories[0].ty.pages_max = None;
        parts.blob.resize(8, 0);
        module.data.truncate(1);
        for &(address, bytes) in &self.segments {
            let mode = SegmentMode::Active { target: 0, offset: vec![ConstOp::I32Const(address as i32)] };
            module.data.push(DataSegment { mode, blob_start: parts.blob.len() as u64, bytes: bytes as u64 });
            parts.blob.extend(pattern(bytes));
        }
        Template::new(&parts.load(), &BIG).unwrap()
    }

    /// What a new memory holds.
    pub(crate) fn memory(&self) -> Vec<u8> {
        let mut memory = vec![0; self.memory_bytes];
        for &(address, bytes) in &self.segments {
            memory[address..address + bytes].copy_from_slice(&pattern(bytes));
        }
        memory
    }
}

pub(crate) fn bytes(sandbox: &mut Sandbox) -> &[u8] {
    let main = sandbox.main_instance().unwrap();
    let length = sandbox.memory_bytes();
    let address = sandbox.memory(main).unwrap().slice(0, length).unwrap().as_ptr();
    // SAFETY: The memory's bytes, as long as the sandbox is borrowed.
    unsafe { std::slice::from_raw_parts(address, length as usize) }
}

fn write(sandbox: &mut Sandbox, address: usize, with: u8, bytes: usize) {
    let main = sandbox.main_instance().unwrap();
    sandbox.memory(main).unwrap().slice_mut(address as u64, bytes as u64).unwrap().fill(with);
}

pub(crate) fn store(sandbox: &mut Sandbox, address: usize) {
    call(sandbox, "store", &[address as i32, 0x5a5a_5a5a]).unwrap();
}

/// Of the mappings that make up a sandbox's memory: bytes that are its own, and whether one is of a file in memory.
pub(crate) fn own_bytes(sandbox: &mut Sandbox) -> (usize, bool) {
    let memory = bytes(sandbox).as_ptr_range();
    own_bytes_in(memory.start.addr()..memory.end.addr())
}

/// The same of mappings in a range of addresses.
pub(crate) fn own_bytes_in(Range { start, end }: Range<usize>) -> (usize, bool) {
    let (mut own, mut mapped, mut inside) = (0, false, false);
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let first = line.split_whitespace().next().unwrap();
        if let Some((from, to)) = first.split_once('-')
            && let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
        {
            inside = from < end && to > start;
            mapped |= inside && line.contains("memfd:sledge-image");
        } else if inside && first == "Anonymous:" {
            own += line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10;
        }
    }
    (own, mapped)
}

/// The files of images that this process has open, of that size.
fn images(bytes: usize) -> Vec<PathBuf> {
    let folder = std::fs::read_dir("/proc/self/fd").unwrap();
    let paths = folder.filter_map(|entry| Some(entry.ok()?.path()));
    let is_image = |path: &PathBuf| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().contains("memfd:sledge-image"))
            && std::fs::metadata(path).is_ok_and(|file| file.len() == bytes as u64)
    };
    paths.filter(is_image).collect()
}

fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

#[test]
fn no_sandbox_sees_what_another_wrote_whatever_became_of_it() {
    const SEED: u64 = 71_902;
    let _worker = worker();
    for bounds in MODES {
        let data = data(MIB + 1_234);
        let (template, image) = (data.template(bounds), data.memory());
        let mut random = random(SEED);
        let mut pool = Pool::new();
        // One is in use all the time, with writes of its own.
        let mut beside = pool.take(&template).unwrap();
        write(&mut beside, 200_000, 0xbb, 5_000);
        let mut expected = image.clone();
        expected[200_000..205_000].fill(0xbb);
        for cycle in 0..200 {
            let what = format!("{bounds}, seed {SEED}, cycle {cycle}");
            let mut sandbox = pool.take(&template).unwrap();
            assert!(bytes(&mut sandbox) == image, "{what}");
            if random(3) == 0 {
                let grown = call(&mut sandbox, "grow", &[random(30) as i32]).unwrap();
                assert_eq!(grown, [Value::I32((data.memory_bytes >> 16) as i32)]);
                let all = bytes(&mut sandbox);
                assert!(all[..image.len()] == image && all[image.len()..].iter().all(|&byte| byte == 0), "{what}, grown");
            }
            let end = sandbox.memory_bytes() as usize;
            (0..random(12)).for_each(|_| store(&mut sandbox, random(end - 3)));
            (0..random(3)).for_each(|_| {
                let length = random(60_000).min(end);
                write(&mut sandbox, random(end - length + 1), 0xa5, length);
            });
            if random(4) == 0 {
                call(&mut sandbox, "memory_init", &[random(end - 4) as i32]).unwrap();
            }
            if random(25) == 0 {
                call(&mut sandbox, "scribble", &[0x33]).unwrap();
            }
            match random(6) {
                0 => drop(call(&mut sandbox, "unreachable", &[]).unwrap_err()),
                1 => sandbox.kill(),
                _ => {}
            }
            pool.put(sandbox);
            assert!(bytes(&mut beside) == expected, "{what}, beside");
        }
        assert_eq!(own_bytes(&mut template.instantiate().unwrap()).1, cfg!(target_os = "linux"), "{bounds}: it was shared");
    }
}

/// Where the budget allows few sandboxes: the memory of one template's becomes another's, whose image is copied, shared, or elsewhere.
#[test]
fn nothing_of_an_image_stays_in_a_memory_that_becomes_another_templates() {
    const SEED: u64 = 40_117;
    let _worker = worker();
    for bounds in MODES {
        let budget = Budget::new(16 << 20);
        let sizes = [data(MIB), data(600_000), data(40_000), Data { segments: vec![(400_000, 700_000)], ..data(MIB) }];
        let tenants = sizes.map(|data| (data.template(bounds).within(&budget), data.memory()));
        let pools = Pools::new(2);
        pools.lend_to(&budget);
        let mut random = random(SEED);
        let mut exhausted = 0;
        for cycle in 0..400 {
            let (template, image) = &tenants[random(tenants.len())];
            // Whatever else a server keeps.
            let other = budget.claim(random(12) as u64 * MIB as u64);
            exhausted += u32::from(budget.reserve(2 << 20).is_none());
            let mut sandbox = pools.take(random(2), template).unwrap();
            assert!(bytes(&mut sandbox) == image, "{bounds}, seed {SEED}, cycle {cycle}");
            let end = sandbox.memory_bytes() as usize;
            (0..random(6)).for_each(|_| store(&mut sandbox, random(end - 3)));
            drop(other);
            pools.put(random(2), sandbox, Instant::now());
        }
        assert!(exhausted > 20, "{exhausted} times only");
        (0..2).for_each(|worker| pools.clear(worker));
        drop(tenants);
        assert_eq!(budget.bytes_used(), 0);
    }
}

#[test]
fn an_image_cannot_be_written_to_by_any_other_way_either() {
    let _worker = worker();
    let data = Data { segments: vec![(65_536, 11 * 65_536)], memory_bytes: 16 * 65_536 };
    let mut sandbox = data.template(Bounds::Guard).instantiate().unwrap();
    let paths = images(11 * 65_536);
    assert!(!paths.is_empty(), "there is a file");
    for path in paths {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let refused = |done: std::io::Result<()>| done.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
        assert!(refused(file.write_all_at(b"other", 0)), "written");
        assert!(refused(file.set_len(65_536)) && refused(file.set_len(20 * 65_536)), "of another length");
        // SAFETY: A new mapping at an address of the kernel's choice; if there is one, nothing uses it.
        let mapped = unsafe {
            use std::os::fd::AsRawFd;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), 65_536, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_eq!(mapped, libc::MAP_FAILED);
        let seals = rustix::fs::fcntl_get_seals(&file).unwrap();
        use rustix::fs::SealFlags;
        assert!(seals.contains(SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL), "{seals:?}");
    }
    assert!(bytes(&mut sandbox) == data.memory());
}

#[test]
fn small_images_are_copied() {
    let _worker = worker();
    let page = rustix::param::page_size();
    for (bytes, is_shared) in [(SHARED_IMAGE_BYTES_MIN - page, false), (SHARED_IMAGE_BYTES_MIN, true)] {
        let data = Data { segments: vec![(65_536, bytes)], memory_bytes: 65_536 + bytes.next_multiple_of(65_536) };
        let mut sandbox = data.template(Bounds::Guard).instantiate().unwrap();
        let (own, mapped) = own_bytes(&mut sandbox);
        assert_eq!(mapped, is_shared, "{bytes}");
        assert_eq!(own, if is_shared { 0 } else { bytes }, "{bytes}");
        assert!(self::bytes(&mut sandbox) == data.memory());
    }
}

#[test]
fn what_lies_between_two_segments_takes_no_memory() {
    let _worker = worker();
    // 40 MiB, of which no other test has one.
    let data = Data { segments: vec![(65_536, 300_000), (40 * MIB, 300_000)], memory_bytes: 41 * MIB };
    let template = data.template(Bounds::Guard);
    let page = rustix::param::page_size();
    let files = images((40 * MIB + 300_000).next_multiple_of(page) - 65_536);
    assert_eq!(files.len(), 1);
    let taken = std::fs::metadata(&files[0]).unwrap().blocks() * 512;
    assert!(taken < MIB as u64, "{taken}");
    assert!(bytes(&mut template.instantiate().unwrap()) == data.memory());
}

#[test]
fn a_snapshot_has_all_of_the_image_and_what_was_written() {
    let _worker = worker();
    for bounds in MODES {
        let data = data(MIB);
        let mut sandbox = data.template(bounds).instantiate().unwrap();
        let mut expected = data.memory();
        for address in [100, 300_000, 1_000_000] {
            store(&mut sandbox, address);
            expected[address..address + 4].fill(0x5a);
        }
        let snapshot = sandbox.snapshot().unwrap();
        drop(sandbox);
        let mut pool = Pool::new();
        for _ in 0..3 {
            let mut sandbox = pool.take(&snapshot).unwrap();
            assert!(bytes(&mut sandbox) == expected, "{bounds}");
            store(&mut sandbox, 500_000);
            pool.put(sandbox);
        }
    }
}

#[test]
fn a_sandbox_has_for_itself_what_runs_write_and_a_new_one_begins_with_that() {
    let _worker = worker();
    for bounds in MODES {
        let template = data(4 * MIB).template(bounds);
        let mut pool = Pool::new();
        for cycle in 0..4 {
            let mut sandbox = pool.take(&template).unwrap();
            (0..4).for_each(|i| store(&mut sandbox, (1 + i) * MIB));
            // All of it is read.
            assert_eq!(bytes(&mut sandbox).iter().filter(|&&byte| byte == 0x5a).count(), own_and_pattern(), "cycle {cycle}");
            pool.put(sandbox);
        }
        let mut used = pool.take(&template).unwrap();
        let (own, _) = own_bytes(&mut used);
        let page = rustix::param::page_size();
        assert!((4 * page..40 * page.max(8192)).contains(&own), "{bounds}: {own}");
        let mut new = pool.take(&template).unwrap();
        let (of_new, mapped) = own_bytes(&mut new);
        assert!(mapped && (4 * page..=own).contains(&of_new), "{bounds}: {of_new} of {own}");
        // Of runs that write everywhere, all is private; once they no longer do, it is given back.
        call(&mut new, "scribble", &[7]).unwrap();
        pool.put(new);
        for _ in 0..200 {
            let mut sandbox = pool.take(&template).unwrap();
            (0..4).for_each(|i| store(&mut sandbox, (1 + i) * MIB));
            pool.put(sandbox);
        }
        let mut sandbox = pool.take(&template).unwrap();
        let (later, _) = own_bytes(&mut sandbox);
        assert!(later <= 3 * MIB, "{bounds}: {later}");
        assert!(bytes(&mut sandbox) == data(4 * MIB).memory());
    }
}

/// Bytes 0x5a of the image of 4 MiB, with what the test above has written.
fn own_and_pattern() -> usize {
    let mut memory = data(4 * MIB).memory();
    (1..5).for_each(|mib| memory[mib * MIB..mib * MIB + 4].fill(0x5a));
    memory.iter().filter(|&&byte| byte == 0x5a).count()
}

#[cfg(target_arch = "x86_64")] // system calls are counted there only
#[test]
fn a_warm_request_of_a_shared_image_takes_no_page_fault_and_no_system_call() {
    use crate::syscalls::{Counts, count};
    let _worker = worker();
    for bounds in MODES {
        let template = data(4 * MIB).template(bounds);
        let mut pool = Pool::new();
        let mut cycle = || {
            let mut sandbox = pool.take(&template).unwrap();
            for i in 0..60 {
                call(&mut sandbox, "load", &[i * 65_536]).unwrap();
            }
            for address in [0, 100_000, 101_000, 2 * MIB, 4 * MIB] {
                store(&mut sandbox, address);
            }
            let main = sandbox.main_instance().unwrap();
            sandbox.memory(main).unwrap().write(3 << 20, b"by the host").unwrap();
            pool.put(sandbox);
        };
        (0..5).for_each(|_| cycle());
        let counted = (0..20).map(|_| count(|| (0..20).for_each(|_| cycle())));
        let least = counted.min_by_key(|counts| counts.faults as usize + counts.calls.len()).unwrap();
        assert_eq!(least, Counts::default(), "{bounds}");
        // Nor the writes of a new sandbox, once it is known where they go.
        let mut new = [pool.take(&template).unwrap(), pool.take(&template).unwrap()];
        let first = count(|| [100_000, 2 * MIB, 4 * MIB].into_iter().for_each(|address| store(&mut new[1], address)));
        assert!(first.calls.is_empty(), "{bounds}: {first:?}");
    }
}

#[test]
fn the_budget_has_the_image_once_and_what_each_sandbox_may_write() {
    const IMAGE: usize = 16 * MIB;
    let _worker = worker();
    let data = Data { segments: vec![(0, IMAGE)], memory_bytes: IMAGE + 65_536 };
    let plain = data.template(Bounds::Guard);
    let budget = Budget::new(1 << 30);
    let template = plain.within(&budget);
    assert_eq!(budget.bytes_used(), 0, "nothing runs yet");
    let mut pool = Pool::new();
    let mut first = pool.take(&template).unwrap();
    let with_image = budget.bytes_used();
    let second = pool.take(&template).unwrap();
    let one = budget.bytes_used() - with_image;
    assert_eq!(with_image, one + IMAGE as u64, "the image, once");
    let small = BIG.stack_bytes as u64 + 65_536 + PRIVATE_AHEAD_BYTES as u64;
    assert!((small..small + 500_000).contains(&one), "{one}");
    assert_eq!(first.memory_bytes(), (IMAGE + 65_536) as u64, "the sandbox's own limit counts all of it");
    assert_eq!(first.counted_bytes(), (IMAGE + 65_536) as u64);
    // More than in advance.
    call(&mut first, "scribble", &[1]).unwrap();
    assert_eq!(budget.bytes_used(), with_image + one + (IMAGE - PRIVATE_AHEAD_BYTES) as u64, "and what became private");
    let (mut other, budget_of_other) = (plain.instantiate().unwrap(), Budget::new(1 << 30));
    assert_eq!(call(&mut other, "load", &[0]), Ok(vec![Value::I32(i32::from_le_bytes(pattern(4).try_into().unwrap()))]));
    drop(plain.within(&budget_of_other).instantiate().unwrap());
    assert!(budget_of_other.bytes_used() >= IMAGE as u64, "each budget has it");
    first.kill();
    drop((first, second));
    assert_eq!(budget.bytes_used(), IMAGE as u64, "the image is there as long as the template");
    pool.clear();
    drop((template, plain, other));
    assert_eq!((budget.bytes_used(), budget_of_other.bytes_used()), (0, 0));
}

#[test]
fn where_the_budget_is_exhausted_a_first_write_is_refused_and_only_that_request_fails() {
    const IMAGE: usize = 8 * MIB;
    let _worker = worker();
    for bounds in MODES {
        let data = Data { segments: vec![(0, IMAGE)], memory_bytes: IMAGE + 65_536 };
        let plain = data.template(bounds);
        let one = {
            let budget = Budget::new(1 << 30);
            let _sandbox = plain.within(&budget).instantiate().unwrap();
            budget.bytes_used()
        };
        let budget = Budget::new(one + 4 * MIB as u64);
        let template = plain.within(&budget);
        let mut pool = Pool::new();
        let (mut first, mut second) = (pool.take(&template).unwrap(), pool.take(&template).unwrap());
        let trap = call(&mut first, "scribble", &[1]).unwrap_err();
        assert_eq!(trap.code, TrapCode::MemoryOutOfBounds, "{bounds}");
        assert_eq!((first.refusal(), first.was_refused_copy()), (Some(Refusal::Exhausted), true));
        assert!(budget.bytes_used() <= budget.bytes_max());
        // The other one has what was counted for it in advance.
        store(&mut second, 5 * MIB);
        assert_eq!((second.refusal(), second.was_refused_copy()), (None, false));
        // By the host it is an error that the host sees.
        let main = second.main_instance().unwrap();
        assert!(second.memory(main).unwrap().slice_mut(0, IMAGE as u64).is_err());
        assert_eq!((second.refusal(), second.was_refused_copy()), (Some(Refusal::Exhausted), true));
        pool.put(first);
        assert_eq!(pool.idle(), 0, "what trapped is discarded");
        pool.put(second);
        let mut second = pool.take(&template).unwrap();
        assert_eq!((second.refusal(), second.was_refused_copy()), (None, false), "of the run before");
        assert!(bytes(&mut second) == data.memory(), "{bounds}");
        // There is room again.
        assert!(second.memory(main).unwrap().slice_mut(0, 3 << 20).is_ok());
    }
}

#[test]
fn where_no_such_file_can_be_had_images_are_copied() {
    if !is_doomed() {
        let output = in_another_process("shared::where_no_such_file_can_be_had_images_are_copied");
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let _worker = worker();
    let data = data(MIB);
    let artifact = data.template(Bounds::Guard).artifact().clone();
    let limit = rustix::process::Rlimit { current: Some(4096), maximum: Some(4096) };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    let budget = Budget::new(1 << 30);
    let template = Template::new(&artifact, &BIG).unwrap().within(&budget);
    let mut sandbox = template.instantiate().unwrap();
    let (own, mapped) = own_bytes(&mut sandbox);
    assert!(!mapped && own >= MIB, "{own}");
    assert!(budget.bytes_used() >= sandbox.memory_bytes(), "all of it is its own, and counted");
    assert!(bytes(&mut sandbox) == data.memory());
}

/// The figures of a reactor that has initialised 32 MiB. In a process of its own: other tests have private memory, too.
#[test]
fn many_sandboxes_of_a_large_reactor_have_little_of_their_own_and_are_made_at_once() {
    const SANDBOXES: usize = 48;
    const IMAGE: usize = 32 * MIB;
    if !is_doomed() {
        let output =
            in_another_process("shared::many_sandboxes_of_a_large_reactor_have_little_of_their_own_and_are_made_at_once");
        assert!(output.status.success(), "{output:?}");
        print!("{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let _worker = worker();
    let data = Data { segments: vec![(65_536, IMAGE)], memory_bytes: IMAGE + 8 * 65_536 };
    let template = data.template(Bounds::Guard);
    let mut pool = Pool::new();
    let run = |sandbox: &mut Sandbox| {
        (0..20).for_each(|i| store(sandbox, (1 + i) * MIB));
        (0..512).for_each(|i| drop(call(sandbox, "load", &[i * 65_536]).unwrap()));
    };
    // One that has learned.
    for _ in 0..2 {
        let mut sandbox = pool.take(&template).unwrap();
        run(&mut sandbox);
        pool.put(sandbox);
    }
    pool.clear();
    let before = private_bytes();
    let start = thread_time();
    let mut sandboxes: Vec<_> = (0..SANDBOXES).map(|_| pool.take(&template).unwrap()).collect();
    let each = (thread_time() - start) / SANDBOXES as u32;
    let made = private_bytes() - before;
    sandboxes.iter_mut().for_each(|sandbox| run(sandbox));
    let used = private_bytes() - before;
    println!("each {each:?}, made {} KiB, used {} KiB", made >> 10, used >> 10);
    assert!(used <= SANDBOXES * IMAGE / 10, "{used}");
    // 24 ms to copy it: the bound is what a busy machine keeps.
    assert!(each < Duration::from_millis(4), "{each:?}");
}

/// Private memory of this process.
fn private_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    lines.map(|line| line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10).sum()
}

fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
