//! Changes of a few lines in a file of an original.

use std::path::Path;

use crate::Error;

/// The file `path` of `sources` with the second text in the place of the first, of each change.
///
/// # Errors
/// Where the first is not in it: the original is another than was known here.
pub fn make<'a>(
    sources: &Path,
    path: &Path,
    bytes: Vec<u8>,
    changes: impl Iterator<Item = (&'static str, &'a str)>,
) -> Result<Vec<u8>, Error> {
    let mut changes = changes.peekable();
    if changes.peek().is_none() {
        return Ok(bytes);
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    for (before, after) in changes {
        if !text.contains(before) {
            return Err(Error::Changed { file: sources.join(path), missing: before.trim() });
        }
        text = text.replace(before, after);
    }
    Ok(text.into_bytes())
}
