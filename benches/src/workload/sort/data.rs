//! What is sorted, drawn from a seed, and whether it was: nothing lost, nothing twice, everything in its order.

use anyhow::{Result, ensure};

use crate::random::Random;
use crate::workload::records::{self, KEY_BYTES, RECORD_BYTES};

/// The records of one chunk. Each says which it is, so that no two are equal.
pub fn chunk(seed: u64, number: usize, records: usize) -> Vec<u8> {
    let mut random = Random(seed ^ ((number as u64) << 32));
    let mut bytes = vec![b'.'; records * RECORD_BYTES];
    for (index, record) in bytes.as_chunks_mut::<RECORD_BYTES>().0.iter_mut().enumerate() {
        record[..8].copy_from_slice(&random.bits().to_le_bytes());
        record[8..KEY_BYTES].copy_from_slice(&random.bits().to_le_bytes()[..2]);
        record[KEY_BYTES..KEY_BYTES + 8].copy_from_slice(&(number as u64).to_le_bytes());
        record[KEY_BYTES + 8..KEY_BYTES + 16].copy_from_slice(&(index as u64).to_le_bytes());
    }
    bytes
}

/// What all records have to come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many there are.
    pub records: usize,
    /// The sum of their hashes.
    pub checksum: u64,
}

impl Sum {
    /// Of these records.
    pub fn of(bytes: &[u8]) -> Sum {
        Sum { records: bytes.len() / RECORD_BYTES, checksum: records::checksum(bytes, 0) }
    }

    /// Of both.
    #[must_use]
    pub fn and(self, other: Sum) -> Sum {
        Sum { records: self.records + other.records, checksum: self.checksum.wrapping_add(other.checksum) }
    }

    /// Whether these are the records that there were.
    ///
    /// # Errors
    ///
    /// If not; the error says what is wrong with them.
    pub fn check(self, expected: Sum) -> Result<()> {
        let (found, wanted) = (self.records, expected.records);
        ensure!(found >= wanted, "{} of {wanted} records are lost", wanted - found);
        ensure!(found == wanted, "there are {} records too many", found - wanted);
        ensure!(self == expected, "all {wanted} records are there, but not the same ones: their checksums differ");
        Ok(())
    }
}

/// Looks at the sorted categories, one after the other.
#[derive(Debug, Default)]
pub struct Sorted {
    last: [u8; KEY_BYTES],
    sum: Sum,
}

impl Sorted {
    /// The next category.
    ///
    /// # Errors
    ///
    /// If a record is not in its order, or broken off.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let (records, rest) = bytes.as_chunks::<RECORD_BYTES>();
        ensure!(rest.is_empty(), "a record is broken off after {} bytes", rest.len());
        for record in records {
            let key = record.first_chunk::<KEY_BYTES>().copied().unwrap_or_default();
            ensure!(key >= self.last, "a record with the key {key:02x?} comes behind one with {:02x?}", self.last);
            self.last = key;
        }
        self.sum = self.sum.and(Sum::of(bytes));
        Ok(())
    }

    /// Whether it was all, and nothing else.
    ///
    /// # Errors
    ///
    /// If not.
    pub fn check(self, expected: Sum) -> Result<()> {
        self.sum.check(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(all: &[u8], categories: &[&[u8]]) -> String {
        let mut sorted = Sorted::default();
        let added = categories.iter().try_for_each(|category| sorted.add(category));
        added.and_then(|()| sorted.check(Sum::of(all))).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn whatever_is_lost_doubled_or_out_of_order_is_found() {
        let all = [chunk(1, 0, 300), chunk(1, 1, 200)].concat();
        let sorted = records::sort(&all);
        let (first, second) = sorted.split_at(20_000);
        assert_eq!(checked(&all, &[first, second]), "");
        assert!(checked(&all, &[second, first]).contains("comes behind"));
        assert_eq!(checked(&all, &[first, &second[100..]]), "1 of 500 records are lost");
        assert_eq!(checked(&all, &[first]), "300 of 500 records are lost");
        assert!(checked(&all, &[first, &second[1..]]).contains("broken off"));
        let doubled = [&second[..100], second].concat();
        assert_eq!(checked(&all, &[first, &doubled]), "there are 1 records too many");
        let mut changed = second.to_vec();
        changed[60] ^= 1;
        assert!(checked(&all, &[first, &changed]).contains("not the same ones"));
        let replaced = [&second[..100], &second[..100], &second[200..]].concat();
        assert!(checked(&all, &[first, &replaced]).contains("not the same ones"));
    }
}
