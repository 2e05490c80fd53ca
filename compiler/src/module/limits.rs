//! Checks against [`awsm_abi::limits`], made before anything of that size is allocated.

use crate::error::CompileError;

/// Fails when there are more than `limit` of `what`.
pub(crate) fn check(what: &'static str, found: u64, limit: u64, offset: u64) -> Result<(), CompileError> {
    if found > limit { Err(CompileError::Limit { what, found, limit, offset }) } else { Ok(()) }
}
