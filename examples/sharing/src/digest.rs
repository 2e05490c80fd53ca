//! Checksums: against mistakes, not against attackers.

fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// A number of all bytes. The salt makes it another one.
pub(crate) fn hash(bytes: &[u8], salt: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(salt ^ bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let hash = rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
    mix(hash, hash >> 32)
}

/// The same, hashed over again for so many rounds: each takes as long as the first, and none can be left out.
pub(crate) fn sealed(bytes: &[u8], rounds: u32) -> u64 {
    (0..rounds).fold(hash(bytes, 0), |before, _| hash(bytes, before))
}

/// As replies have it.
pub(crate) fn text(digest: u64) -> String {
    format!("{digest:016x}")
}
