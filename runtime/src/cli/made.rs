//! Which files of a project its builds write: a change of those during a build is no edit.
//!
//! Nothing in the system says which program wrote a file. A file that a build creates is the build's. A file that was there before and changes
//! during a build may have been edited meanwhile, so the project is built again; what still changes in the last of those builds is the build's. What
//! changes while nothing is built has been edited, whatever was thought of it before.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::watch::Files;

/// Files that builds write, as far as is known.
#[derive(Debug, Default)]
pub(super) struct Made(BTreeSet<PathBuf>);

impl Made {
    /// Takes how the files were before and after a build; which of them may have been edited meanwhile.
    pub(super) fn built(&mut self, before: &Files, after: &Files) -> Vec<PathBuf> {
        let (created, changed): (Vec<_>, Vec<_>) = after.changed_since(before).into_iter().partition(|path| !before.has(path));
        self.0.extend(created);
        changed.into_iter().filter(|path| !self.0.contains(path)).collect()
    }

    /// Takes what changes with every build.
    pub(super) fn extend(&mut self, files: Vec<PathBuf>) {
        self.0.extend(files);
    }

    /// Takes how the files were before and after nothing was built.
    pub(super) fn edited(&mut self, before: &Files, after: &Files) {
        for path in after.changed_since(before) {
            self.0.remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, u64)]) -> Files {
        all.iter().map(|(path, bytes)| (PathBuf::from(path), (*bytes, None))).collect()
    }

    #[test]
    fn what_a_build_creates_is_its_own_and_what_it_changes_may_be_an_edit() {
        let mut made = Made::default();
        let (source, with_output) = (files(&[("a.c", 1)]), files(&[("a.c", 1), ("a.o", 1)]));
        assert_eq!(made.built(&source, &with_output), [""; 0].map(PathBuf::from));
        let edited_too = files(&[("a.c", 2), ("a.o", 2)]);
        assert_eq!(made.built(&with_output, &edited_too), [PathBuf::from("a.c")]);
    }

    #[test]
    fn what_changes_while_nothing_is_built_is_edited() {
        let mut made = Made::default();
        made.extend(vec![PathBuf::from("a.c")]);
        let (before, after) = (files(&[("a.c", 1)]), files(&[("a.c", 2)]));
        assert!(made.built(&before, &after).is_empty());
        made.edited(&before, &after);
        assert_eq!(made.built(&before, &after), [PathBuf::from("a.c")]);
    }
}
