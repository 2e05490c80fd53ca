//! The name section. It is a custom section: whatever is wrong in it is ignored, as the specification asks.

use awsm_abi::descriptor::ExternKind;
use wasmparser::{Name, NameSectionReader};

use super::Module;

/// Takes the module's and the functions' names.
pub(super) fn read(module: &mut Module<'_>, reader: NameSectionReader<'_>) {
    module.function_names.resize(module.functions.len(), None);
    for name in reader.into_iter().map_while(Result::ok) {
        match name {
            Name::Module { name, .. } => module.name = Some(name.to_owned()),
            Name::Function(names) => {
                for naming in names.into_iter().map_while(Result::ok) {
                    if let Some(slot) = module.function_names.get_mut(naming.index as usize) {
                        *slot = Some(naming.name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
}

/// Names functions that have no name after their first export.
pub(super) fn complete(module: &mut Module<'_>) {
    module.function_names.resize(module.functions.len(), None);
    for export in module.exports.iter().filter(|export| export.kind == ExternKind::Function) {
        let slot = &mut module.function_names[export.index as usize];
        if slot.is_none() {
            *slot = Some(export.name.clone());
        }
    }
}
