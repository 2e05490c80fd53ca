//! The log beside the tree: where commits are durable first, with one write and one sync a group.
//!
//! ```text
//!   block 0, 1   slots: checksum, magic, nonce                                 which trees this log belongs to
//!   block 2..    records: checksum, magic, nonce, sequence, length, changes    each begins in a block of its own, the rest of its last block is zero
//! ```
//!
//! What holds, and what breaks if it does not:
//!
//! * **A nonce for each opening.** The tree says which nonce the records have that count. Each time that the store is opened, all that the log holds is written to the tree, in one transaction
//!   together with a new random nonce. So whatever was in the log before, whole, half written, or written and not synced, is dead from then on, and a sequence may be used again. The nonce is also the checksum's
//!   seed. No guest knows it: values that look like records are none.
//! * **Places mean nothing, sequences everything.** Records that count have the tree's nonce and sequences above the tree's, one after the other without a gap. So the log is a ring: the place of a
//!   record is free when the tree has the record for good, and never before ([`Log::folded`]).
//! * **A block has bytes of one record.** A write that fails cannot harm what was acknowledged before: it touches no block of that.
//! * **One record is under way at a time.** So a crash can tear the last one only. A record that is missing while a later one is there is damage, and not the end ([`Scan::lost`]).
//! * **The file is zeroed before it is used.** Where blocks are allocated and written already, a sync writes no size and no extents: one record costs one sync of the disk.
//!
//! It knows neither entries nor indexes.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use redb::StorageBackend;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::FileError;
use super::file::LogError;
use super::frame::{self, Changes};

/// What a record and a slot begin at a multiple of: the largest unit that disks in use write.
const BLOCK_BYTES: usize = 4 << 10;
const BLOCK: u64 = BLOCK_BYTES as u64;
/// Blocks in turn for the nonce, so that one that is half written does not destroy the one before.
const SLOTS: u64 = 2;
/// Where records begin.
const START: u64 = SLOTS * BLOCK;

const SLOT_MAGIC: [u8; 8] = *b"sledgeL1";
const RECORD_MAGIC: [u8; 8] = *b"sledgeR1";
const CHECKSUM_BYTES: usize = 16;
/// Checksum, magic, nonce, sequence, length.
pub(super) const HEADER_BYTES: usize = CHECKSUM_BYTES + 32;

/// The longest record; a group of commits that is longer is written to the tree at once.
pub(super) const RECORD_BYTES_MAX: usize = 16 << 20;
/// How large the log may become. The writer waits for the tree before.
pub(super) const LOG_BYTES_MAX: u64 = 64 << 20;
/// A log that has become larger becomes that small when the store is opened.
const KEPT_BYTES: u64 = 8 << 20;
/// By how much it grows: as much as it has, within these.
const GROWTH_BYTES_MIN: u64 = 64 << 10;
const GROWTH_BYTES_MAX: u64 = 1 << 20;
/// Zeros that are written at once.
const ZEROS: usize = 256 << 10;

/// An open log.
#[derive(Debug)]
pub(super) struct Log {
    backend: Box<dyn StorageBackend>,
    /// Of the records that are written.
    nonce: u64,
    /// Up to where the file was zeroed, or written.
    capacity: u64,
    /// The records that the tree may not have, in the order of their sequences; their places are a part of the ring.
    live: VecDeque<Live>,
    live_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    sequence: u64,
    at: u64,
    end: u64,
}

/// What was found in a log.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The changes behind the tree's, in order.
    pub(super) changes: Vec<Changes>,
    /// The first sequence that is missing although a later one is there.
    pub(super) lost: Option<u64>,
}

impl Log {
    /// Takes a file for a log, whatever it holds; an empty one, too.
    pub(super) fn open(backend: Box<dyn StorageBackend>) -> io::Result<Log> {
        let capacity = backend.len()? / BLOCK * BLOCK;
        Ok(Log { backend, nonce: 0, capacity, live: VecDeque::new(), live_bytes: 0 })
    }

    /// Whether this is a file of something else, which must not be written to: there is something in place of the first slot's magic. One that a crash left half made is not.
    pub(super) fn is_foreign(&self) -> io::Result<bool> {
        let mut head = [0; CHECKSUM_BYTES + SLOT_MAGIC.len()];
        let bytes = usize::try_from(self.backend.len()?).unwrap_or(usize::MAX).min(head.len());
        self.backend.read(0, &mut head[..bytes])?;
        let found = &head[CHECKSUM_BYTES..];
        Ok(found.iter().zip(SLOT_MAGIC).any(|(byte, magic)| *byte != 0 && *byte != magic))
    }

    /// The nonces of the last openings: one of them is the tree's, if the tree belongs to this log.
    pub(super) fn nonces(&self) -> io::Result<[Option<u64>; SLOTS as usize]> {
        let mut nonces = [None; SLOTS as usize];
        for (slot, nonce) in (0..).zip(&mut nonces) {
            let mut bytes = [0; CHECKSUM_BYTES + 16];
            if self.backend.len()? < (slot + 1) * BLOCK {
                break;
            }
            self.backend.read(slot * BLOCK, &mut bytes)?;
            let found = u64_at(&bytes, CHECKSUM_BYTES + 8);
            let is_good = bytes[CHECKSUM_BYTES..].starts_with(&SLOT_MAGIC) && bytes[..CHECKSUM_BYTES] == checksum(&bytes, found);
            *nonce = is_good.then_some(found);
        }
        Ok(nonces)
    }

    /// Says that records with the nonce `next` may follow: before the tree says so, and durably. A crash in between leaves a tree that has `current`, whose slot stays.
    pub(super) fn announce(&mut self, current: Option<u64>, next: u64) -> io::Result<()> {
        let nonces = self.nonces()?;
        // Were it the slot of the tree's nonce, the tree would have no log after a crash.
        let slot = u64::from(current.is_some() && nonces[0] == current);
        let mut block = vec![0; BLOCK_BYTES];
        block[CHECKSUM_BYTES..CHECKSUM_BYTES + 8].copy_from_slice(&SLOT_MAGIC);
        block[CHECKSUM_BYTES + 8..CHECKSUM_BYTES + 16].copy_from_slice(&next.to_le_bytes());
        let sum = checksum(&block[..CHECKSUM_BYTES + 16], next);
        block[..CHECKSUM_BYTES].copy_from_slice(&sum);
        self.backend.write(slot * BLOCK, &block)?;
        self.backend.sync_data()?;
        self.capacity = self.capacity.max((slot + 1) * BLOCK);
        Ok(())
    }

    /// Begins anew with that nonce, when the tree has it, and with it all that the log held.
    pub(super) fn begin(&mut self, nonce: u64) -> io::Result<()> {
        self.nonce = nonce;
        self.live.clear();
        self.live_bytes = 0;
        if self.capacity > KEPT_BYTES {
            self.backend.set_len(KEPT_BYTES)?;
            self.capacity = KEPT_BYTES;
        }
        Ok(())
    }

    /// Bytes of what the tree may not have.
    pub(super) const fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Writes a record for good. `frame` has [`HEADER_BYTES`] for the header, and the changes.
    ///
    /// # Errors
    /// `NotMade` where nothing of it was written. After `Unknown`, this log must not be used any more: what is there says only the disk.
    pub(super) fn append(&mut self, sequence: u64, frame: &mut Vec<u8>) -> Result<(), LogError> {
        let not_made = |error| LogError::NotMade(FileError::Log(error));
        let bytes = blocks(frame.len());
        let at = self.place(bytes).ok_or_else(|| not_made(io::ErrorKind::StorageFull.into()))?;
        let end = at + bytes;
        self.reserve_to(end).map_err(not_made)?;
        self.seal(sequence, frame);
        // A write that fails may have written all of it: then a crash would leave a whole record.
        self.backend.write(at, frame).map_err(|error| LogError::Unknown(FileError::Log(error)))?;
        self.backend.sync_data().map_err(|error| LogError::Unknown(FileError::Log(error)))?;
        self.live.push_back(Live { sequence, at, end });
        self.live_bytes += bytes;
        Ok(())
    }

    /// The tree has what was written up to that sequence, durably: these places are free.
    pub(super) fn folded(&mut self, sequence: u64) {
        while let Some(first) = self.live.front().copied().filter(|first| first.sequence <= sequence) {
            self.live.pop_front();
            self.live_bytes -= first.end - first.at;
        }
    }

    /// Makes room for a record of so many bytes, in a log that holds nothing.
    pub(super) fn reserve(&mut self, bytes: usize) -> io::Result<()> {
        self.reserve_to(START + blocks(HEADER_BYTES + bytes))?;
        self.backend.sync_data()
    }

    /// What the log holds with that nonce, above that sequence.
    pub(super) fn scan(&self, nonce: u64, sequence: u64) -> io::Result<Scan> {
        let mut found = self.found(nonce, sequence)?;
        let mut scan = Scan::default();
        let mut next = sequence + 1;
        while let Some(changes) = found.remove(&next) {
            scan.changes.push(changes);
            next += 1;
        }
        scan.lost = (!found.is_empty()).then_some(next);
        Ok(scan)
    }

    /// All records with that nonce above that sequence, by their sequences.
    pub(super) fn found(&self, nonce: u64, above: u64) -> io::Result<BTreeMap<u64, Changes>> {
        let (mut found, length) = (BTreeMap::new(), self.backend.len()?);
        let mut at = START;
        while at + BLOCK <= length {
            at += match self.record(at, length, nonce)? {
                Some((sequence, bytes, changes)) => {
                    if sequence > above {
                        found.insert(sequence, changes);
                    }
                    bytes
                }
                None => BLOCK,
            };
        }
        Ok(found)
    }

    /// The record that begins there, if one does: its sequence, how many bytes its blocks have, and the changes.
    fn record(&self, at: u64, length: u64, nonce: u64) -> io::Result<Option<(u64, u64, Changes)>> {
        let mut header = [0; HEADER_BYTES];
        self.backend.read(at, &mut header)?;
        let (found, sequence) = (u64_at(&header, CHECKSUM_BYTES + 8), u64_at(&header, CHECKSUM_BYTES + 16));
        if !header[CHECKSUM_BYTES..].starts_with(&RECORD_MAGIC) || found != nonce {
            return Ok(None);
        }
        let Ok(bytes) = usize::try_from(u64_at(&header, CHECKSUM_BYTES + 24)) else { return Ok(None) };
        // The length is not checked yet: it may be anything.
        if bytes > RECORD_BYTES_MAX || at + blocks(HEADER_BYTES + bytes) > length {
            return Ok(None);
        }
        let mut frame = vec![0; HEADER_BYTES + bytes];
        self.backend.read(at, &mut frame)?;
        let is_good = frame[..CHECKSUM_BYTES] == checksum(&frame, nonce);
        let changes = if is_good { frame::decode(&frame[HEADER_BYTES..]) } else { None };
        Ok(changes.map(|changes| (sequence, blocks(HEADER_BYTES + bytes), changes)))
    }

    /// Where a record of so many bytes may be written: behind the last one, or in front of the first one.
    fn place(&self, bytes: u64) -> Option<u64> {
        let (Some(first), Some(last)) = (self.live.front(), self.live.back()) else {
            return Some(START).filter(|at| at + bytes <= LOG_BYTES_MAX);
        };
        let free_end = if last.at < first.at { first.at } else { self.capacity };
        if last.end + bytes <= free_end {
            return Some(last.end);
        }
        if last.at < first.at {
            // What is live is on both sides: there is no more.
            return None;
        }
        if START + bytes <= first.at {
            return Some(START);
        }
        Some(last.end).filter(|at| at + bytes <= LOG_BYTES_MAX)
    }

    /// Has the file zeroed up to there. The sync of what is written next is that of the zeros, too.
    fn reserve_to(&mut self, end: u64) -> io::Result<()> {
        if end <= self.capacity {
            return Ok(());
        }
        let growth = self.capacity.clamp(GROWTH_BYTES_MIN, GROWTH_BYTES_MAX);
        let wanted = end.max((self.capacity + growth).min(LOG_BYTES_MAX));
        let zeros = vec![0; ZEROS.min((wanted - self.capacity) as usize)];
        while self.capacity < wanted {
            let bytes = zeros.len().min((wanted - self.capacity) as usize);
            match self.backend.write(self.capacity, &zeros[..bytes]) {
                Ok(()) => self.capacity += bytes as u64,
                // More than is needed now is a matter of speed.
                Err(_) if self.capacity >= end => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Fills in the header, and zeros up to the end of the block.
    fn seal(&self, sequence: u64, frame: &mut Vec<u8>) {
        let bytes = (frame.len() - HEADER_BYTES) as u64;
        let fields = [u64::from_le_bytes(RECORD_MAGIC), self.nonce, sequence, bytes];
        for (at, field) in (CHECKSUM_BYTES..).step_by(8).zip(fields) {
            frame[at..at + 8].copy_from_slice(&field.to_le_bytes());
        }
        let sum = checksum(frame, self.nonce);
        frame[..CHECKSUM_BYTES].copy_from_slice(&sum);
        frame.resize(blocks(frame.len()) as usize, 0);
    }
}

/// Of what follows the checksum.
fn checksum(bytes: &[u8], nonce: u64) -> [u8; CHECKSUM_BYTES] {
    xxh3_128_with_seed(&bytes[CHECKSUM_BYTES..], nonce).to_le_bytes()
}

/// Bytes of the blocks for so many bytes.
const fn blocks(bytes: usize) -> u64 {
    (bytes as u64).next_multiple_of(BLOCK)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
