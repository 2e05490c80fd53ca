//! Canonical ids of function types: two types have the same id exactly when they are equal in structure, in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use awsm_abi::types::FuncType;

use crate::limits::CANONICAL_TYPES_MAX;

#[derive(Default)]
struct Interner {
    ids: HashMap<Arc<FuncType>, u32>,
    /// The type with id `i + 1` at `i`: no type has the id 0.
    types: Vec<Arc<FuncType>>,
}

fn interner() -> MutexGuard<'static, Interner> {
    static INTERNER: OnceLock<Mutex<Interner>> = OnceLock::new();
    // A panic in between would leave at most a type without id.
    INTERNER.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The id of a type; none when there are too many types in this process already.
pub(crate) fn canonical_id(ty: &FuncType) -> Option<u32> {
    let mut interner = interner();
    if let Some(&id) = interner.ids.get(ty) {
        return Some(id);
    }
    if interner.types.len() >= CANONICAL_TYPES_MAX {
        return None;
    }
    let ty = Arc::new(ty.clone());
    interner.types.push(Arc::clone(&ty));
    let id = interner.types.len() as u32;
    interner.ids.insert(ty, id);
    Some(id)
}

/// The type that has this id.
pub(crate) fn by_id(id: u32) -> Option<Arc<FuncType>> {
    interner().types.get((id as usize).checked_sub(1)?).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use awsm_abi::types::ValType::{F32, I32};

    #[test]
    fn equal_types_have_one_id() {
        let ty = |params: &[_]| FuncType { params: params.to_vec(), results: vec![I32] };
        let id = canonical_id(&ty(&[I32, F32])).unwrap();
        assert_eq!(canonical_id(&ty(&[I32, F32])), Some(id));
        assert_ne!(canonical_id(&ty(&[F32, I32])), Some(id));
        assert_eq!(*by_id(id).unwrap(), ty(&[I32, F32]));
        assert_eq!(by_id(0), None);
        assert_eq!(by_id(u32::MAX), None);
    }
}
