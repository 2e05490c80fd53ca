//! Records of 100 bytes, as in the sort benchmark (sortbenchmark.org): the first 10 bytes are the key. Nothing here knows where records are kept.

/// Bytes of a record.
pub const RECORD_BYTES: usize = 100;
/// Bytes of a record's key, which come first.
pub const KEY_BYTES: usize = 10;

/// The category of a record: the values of its first byte, divided evenly.
pub fn category(record: &[u8; RECORD_BYTES], categories: usize) -> usize {
    usize::from(record[0]) * categories / 256
}

/// The records of each category, in their order. What is behind the last whole record is dropped.
pub fn partition(bytes: &[u8], categories: usize) -> Vec<Vec<u8>> {
    let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
    let mut counts = vec![0; categories];
    for record in records {
        counts[category(record, categories)] += 1;
    }
    let mut parts: Vec<Vec<u8>> = counts.into_iter().map(|count| Vec::with_capacity(count * RECORD_BYTES)).collect();
    for record in records {
        parts[category(record, categories)].extend_from_slice(record);
    }
    parts
}

/// The records in the order of their keys. Records with equal keys stay in their order.
pub fn sort(bytes: &[u8]) -> Vec<u8> {
    let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
    // Keys with numbers are moved, not records.
    let mut order: Vec<([u8; KEY_BYTES], u32)> = records
        .iter()
        .zip(0..)
        .map(|(record, number)| (*record.first_chunk().expect("a record is longer than its key"), number))
        .collect();
    order.sort_unstable();
    let mut sorted = Vec::with_capacity(bytes.len());
    for (_, number) in order {
        sorted.extend_from_slice(&records[number as usize]);
    }
    sorted
}

/// A number of all bytes of a record. The salt makes it another one.
pub fn hash(record: &[u8; RECORD_BYTES], salt: u64) -> u64 {
    let (words, rest) = record.as_chunks::<8>();
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let hash = words.iter().fold(salt ^ 0x5bd1_e995, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
}

/// The sum of all records' hashes: the same whatever their order is, and another one if a record is lost, changed or there twice.
pub fn checksum(bytes: &[u8], salt: u64) -> u64 {
    let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
    records.iter().fold(0, |sum: u64, record| sum.wrapping_add(hash(record, salt)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records with these first bytes, and their place at their end.
    fn records(first: &[u8]) -> Vec<u8> {
        let record = |(place, byte): (usize, &u8)| {
            let mut record = [0; RECORD_BYTES];
            (record[0], record[RECORD_BYTES - 1]) = (*byte, place as u8);
            record
        };
        first.iter().enumerate().flat_map(record).collect()
    }

    fn ends(bytes: &[u8]) -> Vec<(u8, u8)> {
        bytes.as_chunks::<RECORD_BYTES>().0.iter().map(|record| (record[0], record[RECORD_BYTES - 1])).collect()
    }

    #[test]
    fn categories_divide_the_first_byte() {
        let parts = partition(&records(&[255, 0, 63, 64, 128, 0]), 4);
        let found: Vec<_> = parts.iter().map(|part| ends(part)).collect();
        assert_eq!(found, [vec![(0, 1), (63, 2), (0, 5)], vec![(64, 3)], vec![(128, 4)], vec![(255, 0)]]);
    }

    #[test]
    fn equal_keys_stay_in_their_order() {
        assert_eq!(ends(&sort(&records(&[9, 3, 9, 1, 3]))), [(1, 3), (3, 1), (3, 4), (9, 0), (9, 2)]);
    }

    #[test]
    fn a_checksum_is_that_of_the_set() {
        let all = records(&[9, 3, 9, 1, 3]);
        assert_eq!(checksum(&all, 0), checksum(&sort(&all), 0));
        assert_ne!(checksum(&all, 0), checksum(&all, 1));
        let lost = &all[RECORD_BYTES..];
        let twice = [&all[..], &all[..RECORD_BYTES]].concat();
        let mut changed = all.clone();
        changed[50] ^= 1;
        for other in [lost, &twice, &changed] {
            assert_ne!(checksum(&all, 0), checksum(other, 0));
        }
    }
}
