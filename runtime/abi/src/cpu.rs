//! Processor features that an artifact may require, by LLVM's names.
//!
//! `awsm` enables no other feature, so that the loader can check every one that the code may use.

use serde::{Deserialize, Serialize};

/// Instruction set of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Arch {
    /// AMD64, beginning at its first version (SSE2).
    X86_64,
    /// ARMv8-A, 64 bits, little-endian, with Advanced SIMD.
    Aarch64,
}

impl Arch {
    /// Every one.
    pub const ALL: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

    /// The architecture this crate was compiled for.
    pub const HOST: Arch = if cfg!(target_arch = "aarch64") { Arch::Aarch64 } else { Arch::X86_64 };

    /// Its name, as in target triples.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::Aarch64 => "aarch64",
        }
    }

    /// The target triple of what is made for it: Linux with glibc, though artifacts need neither.
    #[must_use]
    pub const fn triple(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64-unknown-linux-gnu",
            Arch::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The features that artifacts for this architecture may name.
    #[must_use]
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Arch::X86_64 => X86_64,
            Arch::Aarch64 => AARCH64,
        }
    }
}

/// x86-64-v2, then v3, then v4, then extensions that current processors have beside these. LLVM's names.
const X86_64: &[&str] = &[
    "cx16",
    "sahf",
    "popcnt",
    "sse3",
    "ssse3",
    "sse4.1",
    "sse4.2", // v2
    "avx",
    "avx2",
    "bmi",
    "bmi2",
    "f16c",
    "fma",
    "lzcnt",
    "movbe",
    "xsave", // v3
    "avx512f",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512vl", // v4
    "adx",
    "aes",
    "avx512bitalg",
    "avx512ifma",
    "avx512vbmi",
    "avx512vbmi2",
    "avx512vnni",
    "avx512vpopcntdq",
    "avxvnni",
    "gfni",
    "pclmul",
    "sha",
    "vaes",
    "vpclmulqdq",
];

/// ARMv8.1-A to 8.3-A's, then extensions. Scalable vectors (SVE) are not among them: no access may be wider than
/// [`ACCESS_BYTES_MAX`](crate::limits::ACCESS_BYTES_MAX), and theirs has a width that is not known before they run.
const AARCH64: &[&str] = &["crc", "lse", "rdm", "dotprod", "fullfp16", "rcpc", "aes", "sha2"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_feature_stands_twice() {
        for arch in Arch::ALL {
            let features = arch.features();
            for (i, feature) in features.iter().enumerate() {
                assert!(!features[..i].contains(feature), "{feature} stands twice");
            }
        }
    }
}
