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

/// Processors by name: the level that all of that name have, and whose timings to use.
const X86_64: &[(&str, Level, &str)] = &[
    ("x86-64", Level::V1, "x86-64"),
    ("x86-64-v2", Level::V2, "x86-64-v2"),
    ("x86-64-v3", Level::V3, "x86-64-v3"),
    ("x86-64-v4", Level::V4, "x86-64-v4"),
    ("nehalem", Level::V2, "nehalem"),
    ("sandybridge", Level::V2, "sandybridge"),
    ("ivybridge", Level::V2, "ivybridge"),
    ("haswell", Level::V3, "haswell"),
    ("broadwell", Level::V3, "broadwell"),
    ("skylake", Level::V3, "skylake"),
    ("skylake-avx512", Level::V4, "skylake-avx512"),
    ("cascadelake", Level::V4, "cascadelake"),
    ("icelake-client", Level::V4, "icelake-client"),
    ("icelake-server", Level::V4, "icelake-server"),
    ("tigerlake", Level::V4, "tigerlake"),
    ("alderlake", Level::V3, "alderlake"),
    ("sapphirerapids", Level::V4, "sapphirerapids"),
    ("graniterapids", Level::V4, "graniterapids"),
    ("znver1", Level::V3, "znver1"),
    ("znver2", Level::V3, "znver2"),
    ("znver3", Level::V3, "znver3"),
    ("znver4", Level::V4, "znver4"),
    ("znver5", Level::V4, "znver5"),
];

/// AMD's processors gather and scatter no faster than one element at a time, and LLVM's cost model believes otherwise: gramschmidt takes 1.44
/// times as long as by clang -O3 with them and 0.97 times without (Zen 5).
const AVOIDED_ON_ZEN: &[&str] = &["prefer-no-gather", "prefer-no-scatter"];

/// The names that [`Cpu::Named`] accepts.
pub(crate) fn names() -> Vec<&'static str> {
    X86_64.iter().map(|(name, ..)| *name).collect()
}

impl TargetCpu {
    /// What `cpu` means on the architecture this runs on.
    pub(crate) fn resolve(cpu: &Cpu) -> Result<TargetCpu, CompileError> {
        let arch = Arch::HOST;
        let baseline = match arch {
            Arch::X86_64 => "x86-64",
            Arch::Aarch64 => "generic",
        };
        match cpu {
            Cpu::Baseline => Ok(TargetCpu { arch, tune: baseline.to_owned(), features: Vec::new() }),
            Cpu::Native => {
                host::initialise();
                let host = host::cpu_features();
                let known = arch.features().iter().filter(|known| host.iter().any(|feature| feature == *known));
                Ok(TargetCpu { arch, tune: host::cpu_name(), features: known.map(|&feature| feature.to_owned()).collect() })
            }
            Cpu::Named(name) => match X86_64.iter().find(|(known, ..)| known == name) {
                Some((_, level, tune)) if arch == Arch::X86_64 => {
                    Ok(TargetCpu { arch, tune: (*tune).to_owned(), features: level.features() })
                }
                _ => Err(CompileError::Options {
                    option: "cpu",
                    value: name.clone(),
                    reason: format!("not known for {}; give native, baseline, or one of {}", arch.name(), names().join(", ")),
                }),
            },
        }
    }

    /// LLVM's name of the architecture's first processor.
    pub(super) fn base(&self) -> &'static str {
        match self.arch {
            Arch::X86_64 => "x86-64",
            Arch::Aarch64 => "generic",
        }
    }

    /// The features as LLVM wants them, and what it should avoid although the processor has it.
    pub(super) fn feature_string(&self) -> String {
        let avoided = if self.tune.starts_with("znver") { AVOIDED_ON_ZEN } else { &[] };
        let features = self.features.iter().map(String::as_str).chain(avoided.iter().copied());
        features.map(|feature| format!("+{feature}")).collect::<Vec<_>>().join(",")
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
        let error = TargetCpu::resolve(&Cpu::Named("pentium".to_owned())).unwrap_err().to_string();
        assert!(error.contains("pentium") && error.contains("znver4"), "{error}");
    }
}
