//! Whether this processor has the features that an artifact requires, by the names of [`awsm_abi::cpu`].

use awsm_abi::cpu::Arch;

use crate::error::LoadError;

/// Checks every feature.
pub(super) fn check(features: &[String]) -> Result<(), LoadError> {
    for name in features {
        let why = match available(name) {
            Some(true) => continue,
            Some(false) => "this processor has not",
            None => "this runtime does not know",
        };
        return Err(LoadError::CpuFeature { name: name.escape_debug().to_string(), why });
    }
    Ok(())
}

/// The features that artifacts may name and this processor has.
pub fn cpu_features() -> impl Iterator<Item = &'static str> {
    Arch::HOST.features().iter().copied().filter(|name| detect(name) == Some(true))
}

/// Whether the processor has the feature; none when artifacts for this architecture do not name it.
fn available(name: &str) -> Option<bool> {
    if !Arch::HOST.features().contains(&name) {
        return None;
    }
    detect(name)
}

macro_rules! detect {
    ($is_detected:ident, $name:expr, { $($llvm:literal => $rust:tt),* $(,)? }) => {
        match $name {
            $($llvm => Some(std::arch::$is_detected!($rust)),)*
            _ => None,
        }
    };
}

#[cfg(target_arch = "x86_64")]
fn detect(name: &str) -> Option<bool> {
    if name == "sahf" {
        // Which the standard library does not detect: CPUID leaf 8000_0001h, ecx bit 0. Asked once: virtual machines take microseconds to answer.
        static SAHF: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        return Some(*SAHF.get_or_init(|| {
            let extended = std::arch::x86_64::__cpuid(0x8000_0000).eax >= 0x8000_0001;
            extended && std::arch::x86_64::__cpuid(0x8000_0001).ecx & 1 != 0
        }));
    }
    detect!(is_x86_feature_detected, name, {
        "cx16" => "cmpxchg16b",
        "popcnt" => "popcnt",
        "sse3" => "sse3",
        "ssse3" => "ssse3",
        "sse4.1" => "sse4.1",
        "sse4.2" => "sse4.2",
        "avx" => "avx",
        "avx2" => "avx2",
        "bmi" => "bmi1",
        "bmi2" => "bmi2",
        "f16c" => "f16c",
        "fma" => "fma",
        "lzcnt" => "lzcnt",
        "movbe" => "movbe",
        "xsave" => "xsave",
        "avx512f" => "avx512f",
        "avx512bw" => "avx512bw",
        "avx512cd" => "avx512cd",
        "avx512dq" => "avx512dq",
        "avx512vl" => "avx512vl",
        "adx" => "adx",
        "aes" => "aes",
        "avx512bitalg" => "avx512bitalg",
        "avx512ifma" => "avx512ifma",
        "avx512vbmi" => "avx512vbmi",
        "avx512vbmi2" => "avx512vbmi2",
        "avx512vnni" => "avx512vnni",
        "avx512vpopcntdq" => "avx512vpopcntdq",
        "avxvnni" => "avxvnni",
        "gfni" => "gfni",
        "pclmul" => "pclmulqdq",
        "sha" => "sha",
        "vaes" => "vaes",
        "vpclmulqdq" => "vpclmulqdq",
    })
}

#[cfg(target_arch = "aarch64")]
fn detect(name: &str) -> Option<bool> {
    detect!(is_aarch64_feature_detected, name, {
        "crc" => "crc",
        "lse" => "lse",
        "rdm" => "rdm",
        "dotprod" => "dotprod",
        "fullfp16" => "fp16",
        "rcpc" => "rcpc",
        "aes" => "aes",
        "sha2" => "sha2",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_that_artifacts_may_name_can_be_detected() {
        for name in Arch::HOST.features() {
            assert!(detect(name).is_some(), "{name}");
        }
    }

    #[test]
    fn an_unknown_feature_is_named() {
        let error = check(&["no-such-thing".to_string()]).unwrap_err().to_string();
        assert!(error.contains("`no-such-thing`") && error.contains("--cpu baseline"), "{error}");
    }
}
