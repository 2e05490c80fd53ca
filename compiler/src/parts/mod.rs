//! The object code of parts of large modules, kept on disk: the same code is generated once, whatever data stand beside it.
//!
//! [`mod@key`] says what a part's code depends on, [`folder`] keeps it. Who asks is the parent of [`crate::isolated`]: it reads the modules itself, so no process
//! that generates code has a say in where its output is kept.

mod folder;
mod key;

pub use folder::{PartCache, cache_folder_default};
pub(crate) use key::{Batch, Compiler, Environment, Member, PartKey, base, given_up, key};
