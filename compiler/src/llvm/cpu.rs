//! Which processor features the code may use.

use awsm_abi::cpu::Arch;

use super::host;
use crate::error::CompileError;
use crate::options::Cpu;

/// A processor to generate code for.
#[derive(Clone, Debug)]
pub(crate) struct TargetCpu {
    /// Its instruction set.
    pub(crate) arch: Arch,
    /// LLVM's name of the processor whose timings guide scheduling and cost models.
    pub(crate) tune: String,
    /// Features beyond the architecture's first version; all from [`Arch::features`].
    pub(crate) features: Vec<String>,
}

/// Features of x86-64's levels, as lengths of prefixes of [`Arch::features`].
#[derive(Clone, Copy)]
enum Level {
    V1,
    V2,
    V3,
    V4,
}

impl Level {
    fn last_feature(self) -> Option<&'static str> {
        match self {
            Level::V1 => None,
            Level::V2 => Some("sse4.2"),
            Level::V3 => Some("xsave"),
            Level::V4 => Some("avx512vl"),
        }
    }

    fn features(self) -> Vec<String> {
        let all = Arch::X86_64.features();
        let count = self.last_feature().and_then(|last| all.iter().position(|&feature| feature == last)).map_or(0, |at| at + 1);
        all[..count].iter().map(|&feature| feature.to_owned()).collect()
    }
}

/// Processors by name, which is also LLVM's, and the level that all of that name have.
const X86_64: &[(&str, Level)] = &[
    ("x86-64", Level::V1),
    ("x86-64-v2", Level::V2),
    ("x86-64-v3", Level::V3),
    ("x86-64-v4", Level::V4),
    ("nehalem", Level::V2),
    ("sandybridge", Level::V2),
    ("ivybridge", Level::V2),
    ("haswell", Level::V3),
    ("broadwell", Level::V3),
    ("skylake", Level::V3),
    ("skylake-avx512", Level::V4),
    ("cascadelake", Level::V4),
    ("icelake-client", Level::V4),
    ("icelake-server", Level::V4),
    ("tigerlake", Level::V4),
    ("alderlake", Level::V3),
    ("sapphirerapids", Level::V4),
    ("graniterapids", Level::V4),
    ("znver1", Level::V3),
    ("znver2", Level::V3),
    ("znver3", Level::V3),
    ("znver4", Level::V4),
    ("znver5", Level::V4),
];

/// What ARMv8.2-A and later processors for Linux have beyond the first version.
const V8_2: &[&str] = &["crc", "lse", "rdm", "dotprod", "fullfp16", "rcpc"];

/// Processors by name, and their features.
const AARCH64: &[(&str, &[&str])] = &[
    ("cortex-a53", &["crc"]), // Raspberry Pi 3
    ("cortex-a55", V8_2),
    ("cortex-a72", &["crc"]), // Raspberry Pi 4
    ("cortex-a73", &["crc"]),
    ("cortex-a76", V8_2), // Raspberry Pi 5
    ("cortex-a78", V8_2),
    ("neoverse-n1", V8_2),
    ("neoverse-n2", V8_2),
    ("neoverse-v1", V8_2),
    ("neoverse-v2", V8_2),
    ("apple-m1", V8_2),
];

/// AMD's processors gather and scatter no faster than one element at a time, and LLVM's cost model takes them for faster: gramschmidt takes 1.44
/// times as long as by clang -O3 with them and 0.97 times without (Zen 5).
const AVOIDED_ON_ZEN: &[&str] = &["prefer-no-gather", "prefer-no-scatter"];

/// Features that code must not use although the processor has them. With `gfni`, LLVM 22.1 makes an arithmetic shift of bytes by zero flip their lower bits
/// where nothing has removed that shift before, as at -O0.
const MISCOMPILED: &[&str] = &["gfni"];

/// The names that [`Cpu::Named`] accepts.
pub(crate) fn names(arch: Arch) -> Vec<&'static str> {
    match arch {
        Arch::X86_64 => X86_64.iter().map(|(name, _)| *name).collect(),
        Arch::Aarch64 => AARCH64.iter().map(|(name, _)| *name).collect(),
    }
}

/// The features of a processor by its name.
fn features_of(name: &str, arch: Arch) -> Option<Vec<String>> {
    match arch {
        Arch::X86_64 => X86_64.iter().find(|(known, _)| *known == name).map(|(_, level)| level.features()),
        Arch::Aarch64 => {
            let (_, features) = AARCH64.iter().find(|(known, _)| *known == name)?;
            Some(features.iter().map(|&feature| feature.to_owned()).collect())
        }
    }
}

impl TargetCpu {
    /// What `cpu` means for an instruction set.
    pub(crate) fn resolve(cpu: &Cpu, arch: Arch) -> Result<TargetCpu, CompileError> {
        let refused = |value: &str, reason: String| {
            let reason = format!("{reason} {}", names(arch).join(", "));
            Err(CompileError::Options { option: "cpu", value: value.to_owned(), reason })
        };
        match cpu {
            Cpu::Baseline => Ok(TargetCpu { arch, tune: base(arch).to_owned(), features: Vec::new() }),
            Cpu::Native if arch != Arch::HOST => {
                let reason = format!(
                    "this machine is {}, and code is wanted for {}: give baseline or one of",
                    Arch::HOST.name(),
                    arch.name()
                );
                refused("native", reason)
            }
            Cpu::Native => {
                host::initialise();
                let host = host::cpu_features();
                let is_usable = |known: &&&str| !MISCOMPILED.contains(*known) && host.iter().any(|feature| feature == *known);
                let known = arch.features().iter().filter(is_usable);
                Ok(TargetCpu { arch, tune: host::cpu_name(), features: known.map(|&feature| feature.to_owned()).collect() })
            }
            Cpu::Named(name) => match features_of(name, arch) {
                Some(features) => Ok(TargetCpu { arch, tune: name.clone(), features }),
                None => {
                    let native = if arch == Arch::HOST { "native, " } else { "" };
                    refused(name, format!("not known for {}; give {native}baseline or one of", arch.name()))
                }
            },
        }
    }

    /// LLVM's name of the architecture's first processor.
    pub(super) fn base(&self) -> &'static str {
        base(self.arch)
    }

    /// The features as LLVM wants them, and what it should avoid although the processor has it.
    pub(super) fn feature_string(&self) -> String {
        let avoided = if self.tune.starts_with("znver") { AVOIDED_ON_ZEN } else { &[] };
        let features = self.features.iter().map(String::as_str).chain(avoided.iter().copied());
        features.map(|feature| format!("+{feature}")).collect::<Vec<_>>().join(",")
    }
}

fn base(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "x86-64",
        Arch::Aarch64 => "generic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_prefixes_of_the_list_in_the_contract() {
        assert_eq!(Level::V1.features().len(), 0);
        assert_eq!(Level::V2.features(), ["cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"]);
        assert!(Level::V3.features().iter().any(|feature| feature == "avx2"));
        assert!(!Level::V3.features().iter().any(|feature| feature.starts_with("avx512")));
        assert!(Level::V4.features().iter().any(|feature| feature == "avx512vl"));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        for (name, arch, known) in [("pentium", Arch::X86_64, "znver4"), ("znver4", Arch::Aarch64, "cortex-a72")] {
            let error = TargetCpu::resolve(&Cpu::Named(name.to_owned()), arch).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(arch.name()) && error.contains(known), "{error}");
        }
    }

    #[test]
    fn the_native_processor_is_none_of_a_foreign_architecture() {
        for arch in Arch::ALL.into_iter().filter(|arch| *arch != Arch::HOST) {
            let error = TargetCpu::resolve(&Cpu::Native, arch).unwrap_err().to_string();
            assert!(error.contains("`native`") && error.contains(arch.name()) && error.contains("baseline"), "{error}");
        }
    }

    #[test]
    fn every_named_processor_has_features_of_the_contract_only() {
        for arch in Arch::ALL {
            for name in names(arch) {
                let features = features_of(name, arch).unwrap();
                assert!(features.iter().all(|feature| arch.features().contains(&feature.as_str())), "{name}: {features:?}");
            }
        }
    }
}
