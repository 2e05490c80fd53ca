//! A disk with two files, the tree and its log, to which a crash can be played: whatever was not synced may be there or not. It fails when it is told to, and has as much room as it is given.
//!
//! Writes and syncs of both files have one order. A sync is that of one file: a crash keeps all that was written to it before, and of the other file some.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

/// One of the disk's files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    state: Arc<Mutex<State>>,
    file: usize,
}

/// The tree and the log.
const FILES: usize = 2;
/// Which is the log.
pub(crate) const LOG: usize = 1;

#[derive(Clone, Debug, Default)]
struct Content {
    synced: Vec<u8>,
    /// What is read: what the system keeps in its cache.
    now: Vec<u8>,
    /// Up to where it was written: what is behind takes no room, whatever the file's size is.
    written: usize,
}

#[derive(Debug, Default)]
struct State {
    files: [Content; FILES],
    /// Writes since the last sync of their files: file, place, bytes.
    writes: Vec<(usize, usize, Vec<u8>)>,
    /// Writes and syncs there were, of both files.
    operations: usize,
    /// From which of these on they fail, how many, and with which error.
    failing: Option<(usize, usize, i32)>,
    /// The most bytes of both files for which there is room.
    bytes_max: Option<usize>,
    seed: u64,
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// What is smaller than this is on the disk as a whole or not at all.
const SECTOR_BYTES: usize = 512;

impl State {
    /// Counts an operation, and says whether it fails.
    fn operate(&mut self) -> io::Result<()> {
        let number = self.operations;
        self.operations += 1;
        match self.failing {
            Some((from, count, error)) if (from..from + count).contains(&number) => Err(io::Error::from_raw_os_error(error)),
            _ => Ok(()),
        }
    }

    /// Of what was not synced of that file, or of both, some is on the disk: of a write all, nothing, or some of its sectors.
    fn lose_some(&mut self, of: Option<usize>, seed: &mut u64) {
        let (mut lost, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.writes).into_iter().partition(|(file, ..)| of.is_none_or(|of| of == *file));
        self.writes = kept;
        for (file, at, bytes) in lost.drain(..) {
            let way = random(seed) % 3;
            let synced = &mut self.files[file].synced;
            for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                if way == 0 || way == 1 && random(seed) % 2 == 1 {
                    let at = at + index * SECTOR_BYTES;
                    let end = (at + sector.len()).max(synced.len());
                    synced.resize(end, 0);
                    synced[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn files(&self) -> [Disk; FILES] {
        std::array::from_fn(|file| Disk { state: Arc::clone(&self.state), file })
    }

    /// Opens it, each time as the server opens files that failed before: what is not on the disk is forgotten.
    pub(crate) fn source(&self) -> impl FnMut() -> io::Result<[Disk; FILES]> + Send + use<> {
        let files = self.files();
        move || {
            for file in &files {
                file.sync_data()?;
                let mut state = file.state();
                let content = &mut state.files[file.file];
                content.now = content.synced.clone();
            }
            Ok(files.clone())
        }
    }

    pub(crate) fn operations(&self) -> usize {
        self.state().operations
    }

    /// Lets `count` operations fail, from number `from` on.
    pub(crate) fn fail(&self, from: usize, count: usize, error: i32, seed: u64) {
        let mut state = self.state();
        (state.failing, state.seed) = (Some((from, count, error)), seed);
    }

    pub(crate) fn set_bytes_max(&self, bytes_max: Option<usize>) {
        self.state().bytes_max = bytes_max;
    }

    /// Bytes that both files take.
    pub(crate) fn bytes(&self) -> usize {
        self.state().files.iter().map(|file| file.written).sum()
    }

    /// What is there after a crash now; of what was not synced, some.
    pub(crate) fn crashed(&self, seed: &mut u64) -> Disk {
        let state = self.state();
        let mut after = State { files: state.files.clone(), writes: state.writes.clone(), ..State::default() };
        drop(state);
        after.lose_some(None, seed);
        after.files.iter_mut().for_each(|file| file.now = file.synced.clone());
        Disk { state: Arc::new(Mutex::new(after)), file: 0 }
    }

    /// Changes the bytes of a file behind the store's back.
    pub(crate) fn change(&self, file: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        change(&mut state.files[file].synced);
        state.files[file].now = state.files[file].synced.clone();
    }

    /// The bytes of a file as they are on the disk.
    pub(crate) fn synced(&self, file: usize) -> Vec<u8> {
        self.state().files[file].synced.clone()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().files[self.file].now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        let now = &state.files[self.file].now;
        let from = now.get(offset as usize..offset as usize + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(from);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        let content = &mut state.files[self.file];
        content.now.resize(len as usize, 0);
        // Sizes of files are kept at once: what is new is zero.
        content.synced.resize(len as usize, 0);
        content.written = content.written.min(len as usize);
        state.writes.retain(|(file, at, bytes)| *file != self.file || at + bytes.len() <= len as usize);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        let result = state.operate();
        if result.is_err() {
            // As Linux does: some of it is on the disk, all of it in the cache, and none of it is tried again.
            let mut seed = state.seed;
            state.lose_some(Some(self.file), &mut seed);
            state.seed = seed;
            return result;
        }
        state.writes.retain(|(file, ..)| *file != self.file);
        let content = &mut state.files[self.file];
        content.synced = content.now.clone();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let result = state.operate();
        let at = offset as usize;
        let mut seed = state.seed;
        // One that fails may be there in part.
        let data = if result.is_ok() { data } else { &data[..random(&mut seed) as usize % (data.len() + 1)] };
        state.seed = seed;
        let more = (at + data.len()).saturating_sub(state.files[self.file].written);
        let written: usize = state.files.iter().map(|file| file.written).sum();
        if more > 0 && state.bytes_max.is_some_and(|bytes_max| bytes_max < written + more) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        state.files[self.file].written += more;
        let now = &mut state.files[self.file].now;
        if now.len() < at + data.len() {
            now.resize(at + data.len(), 0);
        }
        now[at..at + data.len()].copy_from_slice(data);
        state.writes.push((self.file, at, data.to_vec()));
        result
    }
}
