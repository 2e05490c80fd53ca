//! What a kernel is compiled by, and how.

use std::fmt;

use anyhow::{Result, bail};

/// A way from a kernel's C source to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// `clang -O3`, what everything is compared with.
    Native,
    /// `clang -O3 -march=native`, which may use fused multiplication and addition, and so round differently.
    NativeMarch,
    /// A function of `awsm`.
    Function {
        /// Where its WebAssembly comes from.
        source: Source,
        /// How accesses are kept inside the memory.
        bounds: Bounds,
        /// Compiled for the processor that runs it, or for any.
        cpu: Cpu,
    },
    /// wasmtime, by [`Source::Foreign`] or [`Source::Simd`].
    Wasmtime(Source),
}

/// The compiler that makes the WebAssembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// `awsm compile KERNEL.c`.
    C,
    /// `clang --target=wasm32-wasi -O3`: a module that was not built for awsm.
    Foreign,
    /// The same with `-msimd128`: WebAssembly's vectors.
    Simd,
}

/// awsm's `--bounds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// By guard pages.
    Guard,
    /// By guard pages, with the memory's base in a segment register.
    Segment,
    /// By comparing.
    Software,
    /// Not at all.
    None,
}

/// awsm's `--cpu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cpu {
    /// This machine's.
    Native,
    /// The least of its architecture.
    Baseline,
}

impl Source {
    /// All of them.
    pub const ALL: [Source; 3] = [Source::C, Source::Foreign, Source::Simd];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Source::C => "c",
            Source::Foreign => "foreign",
            Source::Simd => "simd",
        }
    }

    /// The source of that name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn parse(name: &str) -> Result<Source> {
        match Source::ALL.into_iter().find(|source| source.name() == name) {
            Some(source) => Ok(source),
            None => bail!("there is no source '{name}'; there are c, foreign and simd"),
        }
    }
}

impl Bounds {
    /// All of them.
    pub const ALL: [Bounds; 4] = [Bounds::Guard, Bounds::Segment, Bounds::Software, Bounds::None];

    /// As awsm calls it.
    pub fn name(self) -> &'static str {
        match self {
            Bounds::Guard => "guard",
            Bounds::Segment => "segment",
            Bounds::Software => "software",
            Bounds::None => "none",
        }
    }

    /// The mode of that name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn parse(name: &str) -> Result<Bounds> {
        match Bounds::ALL.into_iter().find(|bounds| bounds.name() == name) {
            Some(bounds) => Ok(bounds),
            None => bail!("there is no mode '{name}'; there are guard, segment, software and none"),
        }
    }
}

impl Cpu {
    /// As awsm calls it.
    pub fn name(self) -> &'static str {
        match self {
            Cpu::Native => "native",
            Cpu::Baseline => "baseline",
        }
    }
}

impl Variant {
    /// From C in the default mode for this processor: what the first promises are about.
    pub const C_GUARD: Variant = Variant::Function { source: Source::C, bounds: Bounds::Guard, cpu: Cpu::Native };
    /// The same with explicit checks.
    pub const C_SOFTWARE: Variant = Variant::Function { source: Source::C, bounds: Bounds::Software, cpu: Cpu::Native };
    /// The same from WebAssembly of another compiler.
    pub const FOREIGN_GUARD: Variant = Variant::Function { source: Source::Foreign, bounds: Bounds::Guard, cpu: Cpu::Native };
    /// The same from such with vectors.
    pub const SIMD_GUARD: Variant = Variant::Function { source: Source::Simd, bounds: Bounds::Guard, cpu: Cpu::Native };

    /// What the promises are about, and what is reported with them: the same for any processor.
    pub const PROMISED: [Variant; 9] = [
        Variant::Native,
        Variant::NativeMarch,
        Variant::C_GUARD,
        Variant::FOREIGN_GUARD,
        Variant::SIMD_GUARD,
        Variant::C_SOFTWARE,
        Variant::Function { source: Source::C, bounds: Bounds::Guard, cpu: Cpu::Baseline },
        Variant::Function { source: Source::Foreign, bounds: Bounds::Guard, cpu: Cpu::Baseline },
        Variant::Function { source: Source::Simd, bounds: Bounds::Guard, cpu: Cpu::Baseline },
    ];

    /// Another runtime, with WebAssembly that was not made for awsm.
    pub const WASMTIME: [Variant; 2] = [Variant::Wasmtime(Source::Foreign), Variant::Wasmtime(Source::Simd)];

    /// Both native ones; for each mode, from each source, for this processor; and for any processor in the first mode.
    pub fn all(modes: &[Bounds], sources: &[Source]) -> Vec<Variant> {
        let mut variants = vec![Variant::Native, Variant::NativeMarch];
        for (index, &bounds) in modes.iter().enumerate() {
            for &source in sources {
                variants.push(Variant::Function { source, bounds, cpu: Cpu::Native });
                if index == 0 {
                    variants.push(Variant::Function { source, bounds, cpu: Cpu::Baseline });
                }
            }
        }
        variants
    }

    /// The variant of that name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn parse(name: &str) -> Result<Variant> {
        let mut known = vec![Variant::Native, Variant::NativeMarch];
        for source in Source::ALL {
            known.push(Variant::Wasmtime(source));
            for bounds in Bounds::ALL {
                known.extend([Cpu::Native, Cpu::Baseline].map(|cpu| Variant::Function { source, bounds, cpu }));
            }
        }
        match known.into_iter().find(|variant| variant.to_string() == name) {
            Some(variant) => Ok(variant),
            None => bail!("no variant is named '{name}'"),
        }
    }

    /// Must it compute to the last bit what [`Variant::Native`] does?
    pub fn is_exact(self) -> bool {
        self != Variant::NativeMarch
    }
}

/// In one word, of which files and columns are named.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Variant::Native => "native".to_owned(),
            Variant::NativeMarch => "native-march".to_owned(),
            Variant::Function { source, bounds, cpu } => {
                let cpu = if *cpu == Cpu::Native { "" } else { "-baseline" };
                format!("{}-{}{cpu}", source.name(), bounds.name())
            }
            Variant::Wasmtime(source) => format!("wasmtime-{}", source.name()),
        };
        f.pad(&name)
    }
}
