//! Which accesses may touch the same bytes: type-based alias metadata, one class for each kind of memory that generated code sees.
//!
//! Classes are siblings under one root, so that an access of one class never aliases one of another. What LLVM's own instructions (spills,
//! slots of host calls) touch carries no class and may alias anything. LLVM has room for a class's name alone: it is that of [`AliasClass`], from
//! which passes have the class back, in Rust ([`class_named`]) and in C++ (`alias.h`).

use std::cell::RefCell;
use std::collections::HashMap;

use inkwell::context::Context;
use inkwell::values::{BasicMetadataValueEnum, MetadataValue};

use super::shared::{ALIAS_INDEX_END, ALIAS_INDEX_START, AliasClass};

/// What an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    class: AliasClass,
    /// Which of a class that stands for several.
    index: Option<u32>,
}

impl From<AliasClass> for Access {
    fn from(class: AliasClass) -> Access {
        Access { class, index: None }
    }
}

impl Access {
    /// The contents of a linear memory that the instance defines.
    pub(crate) const fn memory(index: u32) -> Access {
        Access { class: AliasClass::Memory, index: Some(index) }
    }

    fn name(self) -> String {
        let name = self.class.name();
        self.index.map_or_else(|| name.to_owned(), |index| format!("{name}{ALIAS_INDEX_START}{index}{ALIAS_INDEX_END}"))
    }
}

/// The class of that name, with or without an index.
pub(super) fn class_named(name: &str) -> Option<AliasClass> {
    let class = name.split_once(ALIAS_INDEX_START).map_or(name, |(class, _)| class);
    AliasClass::ALL.iter().copied().find(|known| known.name() == class)
}

impl AliasClass {
    /// Whether it is one of linear memory's.
    pub(super) const fn is_memory(self) -> bool {
        matches!(self, AliasClass::Memory | AliasClass::ImportedMemory)
    }
}

/// Tags, made when first asked for.
pub(super) struct AliasTags<'ctx> {
    context: &'ctx Context,
    root: MetadataValue<'ctx>,
    tags: RefCell<HashMap<Access, MetadataValue<'ctx>>>,
}

impl<'ctx> AliasTags<'ctx> {
    pub(super) fn new(context: &'ctx Context) -> AliasTags<'ctx> {
        let root = context.metadata_node(&[context.metadata_string("awsm").into()]);
        AliasTags { context, root, tags: RefCell::default() }
    }

    pub(super) fn tag(&self, access: Access) -> MetadataValue<'ctx> {
        *self.tags.borrow_mut().entry(access).or_insert_with(|| {
            let offset: BasicMetadataValueEnum<'ctx> = self.context.i64_type().const_zero().into();
            let name = self.context.metadata_string(&access.name());
            let class = self.context.metadata_node(&[name.into(), self.root.into(), offset]);
            self.context.metadata_node(&[class.into(), class.into(), offset])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_found_by_the_name_of_each_of_its_accesses() {
        for &class in AliasClass::ALL {
            assert_eq!(class_named(&Access::from(class).name()), Some(class));
        }
        assert_eq!(class_named(&Access::memory(12).name()), Some(AliasClass::Memory));
        assert_eq!(class_named("Memory of another"), None);
    }
}
