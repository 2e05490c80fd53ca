//! Earlier versions of functions: kept for the executions that are pinned to them, and loaded when a task calls one.
//!
//! The trait is what durable executions need of it. The [deployer](crate::deploy) carries it out: it knows files, settings and the compiler.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::invoke::function::Function;

/// Why a version is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotKept {
    /// There is no room: so many are kept, or so many bytes.
    #[error("{0}")]
    Full(String),
    /// It cannot be copied.
    #[error("{0}")]
    Impossible(String),
}

/// Keeps versions of functions. All calls may wait for the disk, and loading also for the compiler.
pub trait Keeper: Send + Sync + fmt::Debug {
    /// Has the file of a function outlive the version that is served. It is on the disk when this returns.
    ///
    /// # Errors
    /// When there is no room, or the file is not what the function was made of any more.
    fn keep(&self, function: &Arc<Function>) -> Result<(), NotKept>;

    /// Whether the file with that digest is kept.
    fn has(&self, digest: &blake3::Hash) -> bool;

    /// The version of a function with that digest, with the settings of the one that is served.
    ///
    /// # Errors
    /// Why it cannot be had now.
    fn load(&self, tenant: &str, name: &str, digest: &blake3::Hash) -> Result<Arc<Function>, String>;

    /// Removes what is kept and not needed any more. What is served stays for the next execution, unless `all` is to go that is not needed.
    fn sweep(&self, needed: &HashSet<blake3::Hash>, all: bool);

    /// Unloads versions that are not needed any more, and those that no task has called for a time. It waits until all threads have let go of them.
    fn unload(&self, needed: &HashSet<blake3::Hash>);
}
