//! Listing a folder: what only this invocation has in it, then what the host has, but for what is gone here.
//!
//! As for other folders, nothing is kept between calls. A cookie of the host's entries is the kernel's. The others, which come first, have theirs above all
//! of those: [`OWN`] and the number of the entry.

use super::tree::{Entry, FIRST_NUMBER, Id};
use super::{ScratchFolder, Work};
use crate::host::wasi::{Errno, folders};
use rustix::fs::FileType;

/// Marks a cookie that is none of the kernel's, which are positive numbers of 64 bits with a sign.
const OWN: u64 = 1 << 63;

impl ScratchFolder {
    /// Lists it from a cookie on, as [`folders::list`].
    pub(in crate::host::wasi) fn list(
        &self,
        cookie: u64,
        mut each: impl FnMut(folders::Entry<'_>) -> bool,
    ) -> Result<(u64, bool), Errno> {
        let work = self.overlay.work();
        let lower = work.tree.lower(self.id);
        if cookie == 0 || cookie & OWN != 0 {
            for (number, inode, ty, name) in own(&work, self.id, lower.is_none()) {
                let cookie_of = OWN | number;
                if cookie < cookie_of && !each(folders::Entry { cookie: cookie_of, inode, ty, name }) {
                    return Ok((cookie_of, false));
                }
            }
        }
        let Some(lower) = lower else { return Ok((cookie, true)) };
        let cookie = if cookie & OWN == 0 { cookie } else { 0 };
        work.lower().list(lower, cookie, |entry| {
            let known = work.tree.entry(self.id, entry.name.as_ref());
            match known.map(|known| known.node.and_then(|id| work.tree.node(id))) {
                None => each(entry),
                Some(None) => true,
                Some(Some(node)) => each(folders::Entry { inode: node.identity.1, ty: node.file_type(), ..entry }),
            }
        })
    }
}

/// Number, inode, type and name of what only this invocation has in a folder, in order; `.` and `..` where the host has no such folder.
fn own<'w>(work: &'w Work<'_>, folder: Id, with_dots: bool) -> Vec<(u64, u64, FileType, &'w str)> {
    let number = work.tree.node(folder).map_or(0, |node| node.identity.1);
    let dots = (1..FIRST_NUMBER).zip([".", ".."]).map(|(place, name)| (place, number, FileType::Directory, name));
    let listed = |(name, entry): (&'w std::ffi::OsString, &Entry)| {
        let node = work.tree.node(entry.node.filter(|_| !entry.hides)?)?;
        Some((entry.number, node.identity.1, node.file_type(), name.to_str()?))
    };
    let entries = work.tree.entries(folder).into_iter().flatten().filter_map(listed);
    let mut all: Vec<_> = dots.filter(|_| with_dots).chain(entries).collect();
    all.sort_unstable_by_key(|(number, ..)| *number);
    all
}
