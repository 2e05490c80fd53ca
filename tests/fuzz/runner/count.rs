//! Counting what the interpreter executes: every stretch of a function that runs from its first operator to its last, or traps at the last,
//! adds one to a number in a memory of its own. So each operator is counted each time it is begun, and none that was not.

use crate::sections::{Body, Sections, name};
use anyhow::Result;
use std::collections::BTreeMap;
use wasm_encoder::{ExportKind, Instruction, MemArg, MemArgTarget};

/// The export of the memory that holds the numbers.
pub(crate) const MEMORY: &str = "fuzz: counts";

/// How often each operator was executed.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// A module that counts, and what its numbers stand for.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) wasm: Vec<u8>,
    stretches: Vec<Vec<&'static str>>,
}

impl Counting {
    pub(crate) fn new(wasm: &[u8]) -> Result<Counting> {
        let mut sections = Sections::read(wasm)?;
        let memory = sections.spaces.memories.len() as u32;
        let mut stretches: Vec<Vec<&'static str>> = Vec::new();
        let mut bodies = Vec::new();
        for (i, body) in std::mem::take(&mut sections.bodies).iter().enumerate() {
            let Some(signature) = sections.spaces.signature(sections.spaces.functions_imported + i) else { continue };
            let mut body = Body::read(body, signature)?;
            let mut stretch = None;
            for operator in std::mem::take(&mut body.operators) {
                let this = name(&operator);
                let at = *stretch.get_or_insert_with(|| {
                    let offset = stretches.len() as u64 * 8;
                    let at = MemArg { offset, align: 3, target: MemArgTarget::Memory(memory), ordering: None };
                    body.emit([Instruction::I32Const(0), Instruction::I32Const(0), Instruction::I64Load(at)]);
                    body.emit([Instruction::I64Const(1), Instruction::I64Add, Instruction::I64Store(at)]);
                    stretches.push(Vec::new());
                    stretches.len() - 1
                });
                stretches[at].push(this);
                if ends_stretch(this) {
                    stretch = None;
                }
                body.keep(operator)?;
            }
            bodies.push(body.finish());
        }
        sections.add_memory((stretches.len() as u64 * 8).div_ceil(65536).max(1));
        sections.exports.export(MEMORY, ExportKind::Memory, memory);
        Ok(Counting { wasm: sections.finish(&bodies), stretches })
    }

    /// Adds what an instance counted.
    pub(crate) fn add(&self, numbers: &[u8], to: &mut Counts) {
        for (stretch, number) in self.stretches.iter().zip(numbers.chunks_exact(8)) {
            let number = u64::from_le_bytes(number.try_into().unwrap_or_default());
            if number > 0 {
                stretch.iter().for_each(|operator| *to.entry(operator).or_default() += number);
            }
        }
    }
}

/// Whether what follows this operator is not always executed after it, or not only after it.
fn ends_stretch(operator: &str) -> bool {
    const KINDS: &[&str] = &[
        "Br",
        "Call",
        "Return",
        "Loop",
        "If",
        "Else",
        "End",
        "Try",
        "Catch",
        "Throw",
        "Rethrow",
        "Delegate",
        "Unreachable",
        "Load",
        "Store",
        "Atomic",
        "Div",
        "Rem",
        "Memory",
        "Table",
        "AsNonNull",
        "Cast",
        "Struct",
        "Array",
    ];
    let truncates = operator.contains("TruncF") && !operator.contains("Sat");
    truncates || KINDS.iter().any(|kind| operator.contains(kind))
}
