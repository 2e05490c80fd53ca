//! The object code of parts of large modules, kept on disk: the same code is generated once, whatever data stand beside it.
//!
//! [`mod@key`] says what a part's code depends on, [`folder`] keeps it. The parent of [`crate::isolated`] asks for it: the parent reads the modules
//! itself, so no process that generates code has a say in where its output is kept.

mod folder;
mod key;

pub(crate) use folder::is_own;
pub(crate) use folder::user_cache;
pub use folder::{PartCache, cache_folder_default};
pub(crate) use key::{Batch, Compiler, Environment, Member, PartKey, base, given_up, key};
