//! The documentation as a site.
//!
//! The chapters are the documents of the repository, where they stand: `docs/SUMMARY.md` lists them. [`assemble`] puts copies of them into one folder, from which mdBook
//! makes the site:
//!
//! ```text
//!   docs/SUMMARY.md -> summary -+-> each chapter -> generated (configuration, commands, metrics, WIT) -> links -> src/
//!                               +-> SUMMARY.md                                                                     |
//!                                                                        html::check <- book/ <- mdbook build <----+
//! ```
//!
//! Links between documents lead to the same places on a code host and in the site.

#![forbid(unsafe_code)]

mod assemble;
pub mod generated;
pub mod html;
pub mod links;
pub mod summary;

pub use assemble::{Site, assemble};

use std::path::{Component, Path, PathBuf};

/// A path without `.` and `..`, as far as they can be carried out.
#[must_use]
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// The repository whose documents these are.
#[must_use]
pub fn repository() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}
