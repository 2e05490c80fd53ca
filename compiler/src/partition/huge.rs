//! Functions that are too large for the level at which a module is compiled.

use awsm_abi::limits::OPTIMISED_OPERATORS_MAX;
use wasmparser::Operator;

use super::body_bytes;
use crate::error::CompileError;
use crate::module::{FuncIdx, Module};
use crate::options::{Effort, OptLevel};

/// Stores without a branch between them up to which a function is optimised. Straight-line vectorisation and register coalescing compare each with the others. In a
/// library of data that is placed when it is loaded, the function that the linker makes to relocate it (`__wasm_apply_data_relocs`) has tens of thousands.
pub(super) const STRAIGHT_STORES_MAX: usize = 4096;

/// The least that a store takes in a body: opcode, alignment, offset.
const STORE_BYTES_MIN: usize = 3;

/// A function that is optimised less than was asked for.
pub(crate) struct Huge {
    pub(crate) function: FuncIdx,
    pub(super) size: Size,
}

/// In which respect a function is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// All operators.
    Operators(u64),
    /// Stores without a branch between them.
    StraightStores(usize),
}

impl Huge {
    /// How hard it is optimised.
    pub(super) const fn effort(&self) -> Effort {
        match self.size {
            Size::Operators(_) => Effort::Level(OptLevel::O1),
            Size::StraightStores(_) => Effort::GivenUp,
        }
    }

    /// What to tell about it.
    pub(crate) fn warning(&self, module: &Module<'_>) -> String {
        let name = module.function_names[self.function.0 as usize].as_deref().unwrap_or("");
        let (prefix, number) = (module.index.prefix(), self.function.0);
        match self.size {
            Size::Operators(operators) => format!(
                "{prefix}function {number} {name:?} has {operators} operators: it is optimised as by -O 1, since it has more than {OPTIMISED_OPERATORS_MAX}"
            ),
            Size::StraightStores(stores) => format!(
                "{prefix}function {number} {name:?} has {stores} stores without a branch between them: it is optimised as by -O 1, with fast register \
                 allocation, since they are more than {STRAIGHT_STORES_MAX}"
            ),
        }
    }
}

/// Functions of which LLVM's passes cannot be asked to optimise all: parts of the pipelines grow with the square of a function, others with that of a block.
pub(super) fn find_huge(module: &Module<'_>, opt_level: OptLevel) -> Result<Vec<Huge>, CompileError> {
    let mut huge = Vec::new();
    for function in module.defined_functions() {
        let Some(index) = module.defined(function) else { continue };
        // Most functions are too small to be either: no operator is shorter than a byte.
        if body_bytes(module, index) <= (STRAIGHT_STORES_MAX * STORE_BYTES_MIN).min(OPTIMISED_OPERATORS_MAX) {
            continue;
        }
        let (mut operators, mut stores, mut longest) = (0, 0, 0);
        for operator in module.bodies[index].get_operators_reader()? {
            let operator = operator?;
            operators += 1;
            if is_branch(&operator) {
                stores = 0;
            }
            stores += usize::from(is_store(&operator));
            longest = longest.max(stores);
        }
        if longest > STRAIGHT_STORES_MAX {
            huge.push(Huge { function, size: Size::StraightStores(longest) });
        } else if opt_level > OptLevel::O1 && operators > OPTIMISED_OPERATORS_MAX as u64 {
            huge.push(Huge { function, size: Size::Operators(operators) });
        }
    }
    Ok(huge)
}

/// Whether an operator writes a number or a vector to memory.
const fn is_store(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::I32Store { .. }
            | Operator::I64Store { .. }
            | Operator::F32Store { .. }
            | Operator::F64Store { .. }
            | Operator::I32Store8 { .. }
            | Operator::I32Store16 { .. }
            | Operator::I64Store8 { .. }
            | Operator::I64Store16 { .. }
            | Operator::I64Store32 { .. }
            | Operator::V128Store { .. }
    )
}

/// Whether a basic block may end or begin at an operator.
const fn is_branch(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::Loop { .. }
            | Operator::If { .. }
            | Operator::Else
            | Operator::End
            | Operator::Br { .. }
            | Operator::BrIf { .. }
            | Operator::BrTable { .. }
            | Operator::Return
            | Operator::Unreachable
    )
}
