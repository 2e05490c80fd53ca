//! Checksums against mistakes, work that takes time, and the digests of passwords.

use sha2::{Digest, Sha256};

/// Numbers that a unit of work hashes.
const UNIT: u64 = 64;
/// How often a password is hashed. A real service takes Argon2.
const PASSWORD_ROUNDS: u32 = 8;

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

/// A number of two numbers.
pub(crate) fn joined(first: u64, second: u64) -> u64 {
    mix(mix(first, second), first >> 32)
}

/// The same number, hashed on for so many units. A unit takes the same time whatever the number is, and none can be left out.
pub(crate) fn worked(hash: u64, units: u64) -> u64 {
    (0..units).fold(hash, |hash, _| (0..UNIT).fold(hash, mix))
}

/// As replies have it.
pub(crate) fn text(digest: u64) -> String {
    format!("{digest:016x}")
}

/// What is kept of a password.
pub(crate) fn password(salt: &str, password: &str) -> String {
    let first = Sha256::new().chain_update(salt).chain_update(password).finalize();
    let last = (1..PASSWORD_ROUNDS).fold(first, |digest, _| Sha256::digest(digest));
    last.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_adds_up() {
        let first = hash(b"reply", 0);
        assert_eq!(worked(worked(first, 3), 4), worked(first, 7));
        assert!(first != worked(first, 1) && worked(first, 0) == first);
    }

    #[test]
    fn a_password_has_its_own_digest_for_each_salt() {
        let digest = password("salt", "word");
        assert_eq!(digest.len(), 64);
        assert!(digest != password("salu", "word") && digest != password("salt", "wore"));
    }
}
