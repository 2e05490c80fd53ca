//! Canonical ids of types: two types have the same id exactly when they stand at the same place of recursion groups that are equal in structure, in
//! this process (core specification, section 3.1.2). Within canonical types, concrete types are canonical ids too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use awsm_abi::ModuleDescriptor;
use awsm_abi::types::{FuncType, HeapType, RefKind, RefType, ValType};

use crate::limits::CANONICAL_TYPES_MAX;

/// Set in the number of a type of the group itself, which is not known before the group is; never in an id.
const WITHIN: u32 = 1 << 31;

/// A type of a group that is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Member {
    ty: FuncType,
    supertype: Option<u32>,
    is_final: bool,
}

/// A type that has an id.
struct Known {
    ty: Arc<FuncType>,
    supertype: Option<u32>,
}

#[derive(Default)]
struct Interner {
    /// The id of the first type of each group.
    groups: HashMap<Box<[Member]>, u32>,
    /// The type with id `i + 1` at `i`: no type has the id 0.
    types: Vec<Known>,
}

impl Interner {
    /// The id of a group's first type; the others' follow.
    fn group(&mut self, members: Box<[Member]>) -> Option<u32> {
        if let Some(&first) = self.groups.get(&members) {
            return Some(first);
        }
        if members.len() > CANONICAL_TYPES_MAX - self.types.len() {
            return None;
        }
        let first = self.types.len() as u32 + 1;
        let id = |number: u32| if number & WITHIN == 0 { number } else { first + (number & !WITHIN) };
        for member in &members {
            self.types.push(Known { ty: Arc::new(member.ty.map(id)), supertype: member.supertype.map(id) });
        }
        self.groups.insert(members, first);
        Some(first)
    }

    fn known(&self, id: u32) -> Option<&Known> {
        self.types.get((id as usize).checked_sub(1)?)
    }
}

fn interner() -> MutexGuard<'static, Interner> {
    static INTERNER: OnceLock<Mutex<Interner>> = OnceLock::new();
    // A panic in between would leave at most types without a group.
    INTERNER.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ids of a module's types, which the loader has checked; none when there are too many types in this process already.
pub(crate) fn canonical_ids(module: &ModuleDescriptor) -> Option<Vec<u32>> {
    let mut interner = interner();
    let mut ids: Vec<u32> = Vec::with_capacity(module.types.len());
    for &count in &module.groups {
        let start = ids.len();
        let number = |index: u32| match ids.get(index as usize) {
            Some(&id) => id,
            None => WITHIN | (index - start as u32),
        };
        let types = &module.types[start..start + count as usize];
        let members =
            types.iter().map(|ty| Member { ty: ty.ty.map(number), supertype: ty.supertype.map(number), is_final: ty.is_final });
        let first = interner.group(members.collect())?;
        ids.extend(first..first + count);
    }
    Some(ids)
}

/// The type that has this id.
pub(crate) fn by_id(id: u32) -> Option<Arc<FuncType>> {
    interner().known(id).map(|known| Arc::clone(&known.ty))
}

/// Whether the type with id `ty` is `of` or is declared to be a subtype of it, through others perhaps.
pub(crate) fn is_subtype(ty: u32, of: u32) -> bool {
    if ty == of {
        return true;
    }
    let interner = interner();
    let mut at = ty;
    // Supertypes have smaller ids.
    while let Some(supertype) = interner.known(at).and_then(|known| known.supertype).filter(|&supertype| supertype < at) {
        if supertype == of {
            return true;
        }
        at = supertype;
    }
    false
}

/// Whether values of canonical type `ty` are of canonical type `of` (core specification, section 3.3.3).
pub(crate) fn matches(ty: ValType, of: ValType) -> bool {
    match (ty, of) {
        (ValType::Ref(ty), ValType::Ref(of)) => (of.nullable || !ty.nullable) && heap_matches(ty.heap, of.heap),
        _ => ty == of,
    }
}

/// Whether what a reference to canonical `heap` refers to is `of`.
pub(crate) fn heap_matches(heap: HeapType, of: HeapType) -> bool {
    match (heap, of) {
        _ if heap == of => true,
        (HeapType::Concrete(ty), HeapType::Concrete(of)) => is_subtype(ty, of),
        (HeapType::NoFunc, _) => of.kind() == RefKind::Func,
        (HeapType::Concrete(_), HeapType::Func) | (HeapType::NoExtern, HeapType::Extern) | (HeapType::NoExn, HeapType::Exn) => {
            true
        }
        _ => false,
    }
}

/// Whether null is of a type.
pub(crate) fn takes_null(ty: ValType, kind: RefKind) -> bool {
    matches!(ty, ValType::Ref(RefType { nullable: true, heap }) if heap.kind() == kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use awsm_abi::types::ValType::{F32, I32};

    fn member(params: &[ValType], supertype: Option<u32>) -> Member {
        Member { ty: FuncType { params: params.to_vec(), results: vec![I32] }, supertype, is_final: false }
    }

    fn reference(number: u32) -> ValType {
        ValType::Ref(RefType { nullable: false, heap: HeapType::Concrete(number) })
    }

    #[test]
    fn equal_groups_have_one_id() {
        let group = |members: &[Member]| interner().group(members.into()).unwrap();
        let id = group(&[member(&[I32, F32], None)]);
        assert_eq!(group(&[member(&[I32, F32], None)]), id);
        assert_ne!(group(&[member(&[F32, I32], None)]), id);
        assert_eq!(by_id(id).unwrap().params, [I32, F32]);
        assert!(by_id(0).is_none() && by_id(u32::MAX).is_none());
        // The same type in a larger group is another one.
        let first = group(&[member(&[I32, F32], None), member(&[reference(WITHIN)], None)]);
        assert_ne!(first, id);
        assert_eq!(group(&[member(&[I32, F32], None), member(&[reference(WITHIN)], None)]), first);
        assert_eq!(by_id(first + 1).unwrap().params, [reference(first)]);
    }

    #[test]
    fn references_match_as_the_specification_says() {
        let base = interner().group([member(&[F32; 5], None)].into()).unwrap();
        let middle = interner().group([member(&[F32; 5], Some(base))].into()).unwrap();
        let leaf = interner().group([member(&[F32; 5], Some(middle))].into()).unwrap();
        assert!(is_subtype(leaf, base) && is_subtype(middle, base) && !is_subtype(base, leaf));
        assert!(matches(reference(leaf), reference(base)) && !matches(reference(base), reference(leaf)));
        assert!(matches(reference(leaf), ValType::FUNCREF) && !matches(ValType::FUNCREF, reference(leaf)));
        let null = ValType::Ref(RefType::nullable(HeapType::NoFunc));
        assert!(matches(null, ValType::FUNCREF) && !matches(null, reference(leaf)) && !matches(null, ValType::EXTERNREF));
        assert!(takes_null(null, RefKind::Func) && !takes_null(reference(leaf), RefKind::Func));
    }
}
