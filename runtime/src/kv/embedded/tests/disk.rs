//! A disk whose content a crash can be played to: whatever was not synced may be there or not. It fails when it is told to, and has as much room as it is given.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    synced: Vec<u8>,
    /// What is read: what the system keeps in its cache.
    now: Vec<u8>,
    /// Writes since the last sync.
    writes: Vec<(usize, Vec<u8>)>,
    /// Writes and syncs there were.
    operations: usize,
    /// From which of these on they fail, how many, and with which error.
    failing: Option<(usize, usize, i32)>,
    /// The largest file for which there is room.
    bytes_max: Option<usize>,
    seed: u64,
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

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

    /// Of what was not synced, some is on the disk.
    fn lose_some(&mut self, seed: &mut u64) {
        for (at, bytes) in std::mem::take(&mut self.writes) {
            if random(seed) % 2 == 1 {
                let end = (at + bytes.len()).max(self.synced.len());
                self.synced.resize(end, 0);
                self.synced[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
    }
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Opens it, each time as the server opens a file that failed before: what is not on the disk is forgotten.
    pub(crate) fn source(&self) -> impl FnMut() -> io::Result<Disk> + Send + use<> {
        let disk = self.clone();
        move || {
            disk.sync_data()?;
            let mut state = disk.state();
            state.now = state.synced.clone();
            drop(state);
            Ok(disk.clone())
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

    pub(crate) fn bytes(&self) -> usize {
        self.state().now.len()
    }

    /// What is there after a crash now; of what was not synced, some.
    pub(crate) fn crashed(&self, seed: &mut u64) -> Disk {
        let state = self.state();
        let mut after = State { synced: state.synced.clone(), writes: state.writes.clone(), ..State::default() };
        drop(state);
        after.lose_some(seed);
        after.now = after.synced.clone();
        Disk(Arc::new(Mutex::new(after)))
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        let from = state.now.get(offset as usize..offset as usize + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(from);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        state.now.resize(len as usize, 0);
        // Sizes of files are kept at once: what is new is zero.
        state.synced.resize(len as usize, 0);
        state.writes.retain(|(at, bytes)| at + bytes.len() <= len as usize);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        let result = state.operate();
        if result.is_err() {
            // As Linux does: some of it is on the disk, all of it in the cache, and none of it is tried again.
            let mut seed = state.seed;
            state.lose_some(&mut seed);
            state.seed = seed;
            return result;
        }
        state.writes.clear();
        state.synced = state.now.clone();
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
        if state.bytes_max.is_some_and(|bytes_max| bytes_max < at + data.len()) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        if state.now.len() < at + data.len() {
            state.now.resize(at + data.len(), 0);
        }
        state.now[at..at + data.len()].copy_from_slice(data);
        state.writes.push((at, data.to_vec()));
        result
    }
}
