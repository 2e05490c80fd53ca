//! How far the code of a function is optimised, where that is not what its settings say: at first its code is what can be there soon.

use std::time::Duration;

use crate::compile::OPT_LEVEL_MAX;
use crate::config::{FunctionConfig, Instance, Snapshot};

/// The level of the first tier.
pub const FIRST_LEVEL: u8 = 0;

/// A module with fewer bytes of function bodies is there soon at any level: at level 3 it takes less than a second of processor time.
pub const FUNCTION_BYTES_MIN: u64 = 64 << 10;

/// How many times as long a request of the first tier may take: what `cpu_ms_max` and `deadline_ms` allow is meant for optimised code.
const LENIENCE: u32 = 4;

/// How many times as large the stack of a request of the first tier is: unoptimised code keeps more there.
const STACK_LENIENCE: u64 = 2;

/// How far a function's code is optimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tier {
    /// As its settings say: there is one tier.
    #[default]
    Only,
    /// Not at all: optimised code is to take its place.
    First,
    /// As its settings say. Either the first tier was there before it, or it was compiled earlier.
    Optimised,
}

impl Tier {
    /// What a limit is for code of this tier.
    #[must_use]
    pub fn allowing(self, time: Duration) -> Duration {
        if self == Tier::First { time.saturating_mul(LENIENCE) } else { time }
    }

    /// How many bytes a stack has for code of this tier.
    #[must_use]
    pub const fn allowing_stack(self, bytes: u64) -> u64 {
        match self {
            Tier::First => bytes.saturating_mul(STACK_LENIENCE),
            Tier::Only | Tier::Optimised => bytes,
        }
    }

    /// What operators read; nothing where there is one tier.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Tier::Only => None,
            Tier::First => Some("first"),
            Tier::Optimised => Some("optimised"),
        }
    }
}

/// Whether a module with so many bytes of function bodies gets a first tier by its settings. Where an instance is kept, a change of the code would lose what it holds; where an initialisation has read files, a second one might read
/// others.
#[must_use]
pub fn has_first(config: &FunctionConfig, function_bytes: u64) -> bool {
    let reads_files = config.snapshot == Snapshot::SharedSeed && !config.dirs.is_empty();
    function_bytes >= FUNCTION_BYTES_MIN && config.opt_level == OPT_LEVEL_MAX && config.instance == Instance::Call && !reads_files
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use awsm_abi::importable;

    use super::*;
    use crate::config::{DirConfig, DirWrite};

    #[test]
    fn only_what_can_be_exchanged_and_is_worth_it_has_a_first_tier() {
        let plain = FunctionConfig::new("f", "f.wasm");
        let has = |change: fn(&mut FunctionConfig)| {
            let mut config = plain.clone();
            change(&mut config);
            has_first(&config, FUNCTION_BYTES_MIN)
        };
        fn folder() -> DirConfig {
            DirConfig { host: PathBuf::from("/"), guest: "/".to_owned(), write: DirWrite::No, within: None }
        }
        assert!(has(|_| ()) && !has_first(&plain, FUNCTION_BYTES_MIN - 1));
        assert!(!has(|config| config.opt_level = 2) && !has(|config| config.opt_level = 0));
        assert!(!has(|config| config.instance = Instance::Application));
        assert!(has(|config| config.snapshot = Snapshot::SharedSeed) && has(|config| config.dirs = vec![folder()]));
        assert!(!has(|config| {
            config.snapshot = Snapshot::SharedSeed;
            config.dirs = vec![folder()];
        }));
    }

    #[test]
    fn function_bodies_are_counted_in_modules_and_components() {
        let module = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x04\x01\x02\0\x0b";
        let component = [b"\0asm\x0d\0\x01\0\x01\x18".as_slice(), module].concat();
        let counted = [module.as_slice(), &component, b"nonsense"].map(importable::function_bytes);
        assert_eq!(counted, [3, 3, 0]);
    }

    #[test]
    fn limits_are_lenient_at_first_and_no_limit_stays_none() {
        let second = Duration::from_secs(1);
        assert_eq!([Tier::Only, Tier::First, Tier::Optimised].map(|tier| tier.allowing(second).as_secs()), [1, 4, 1]);
        assert_eq!(Tier::First.allowing(Duration::MAX), Duration::MAX);
        assert_eq!(
            [Tier::Only, Tier::First, Tier::Optimised].map(|tier| tier.allowing_stack(1 << 20)),
            [1 << 20, 2 << 20, 1 << 20]
        );
    }
}
