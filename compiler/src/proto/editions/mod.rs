//! Files of an edition (`edition = "2023"`), which protox does not read: what it needs to read them, and what their features say.
//!
//! ```text
//! source -> scan: what is spelled otherwise than in proto3 -> protox's parser -> lower: a descriptor as of proto2, for prost-reflect
//!        -> features: what options say of presence, enums and so on
//! ```
//!
//! To a parser, an edition is proto3 but for three things, which are respelled in the source: `edition` itself, defaults, and names that are reserved. What
//! is respelled keeps its length, so that lines and columns of errors are those of the file; only behind `edition` and reserved names, on their lines,
//! columns may be off.
//! In its meaning, nothing is left of proto2 and proto3 but features, which are options. prost-reflect finds and checks these as any others.

mod features;
mod lower;
mod scan;

use protox::file::File;

pub(super) use features::{Features, renumber};
pub(super) use scan::edition;

use super::error::{Place, ProtoError};
use lower::Lowered;

/// The edition that is read.
const EDITION: &str = "2023";

/// Its number (`Edition` in descriptor.proto).
pub(super) const EDITION_NUMBER: i32 = 1000;

/// Reads the source of a file that has an edition. `is_there`: whether there is a file of that name to be imported.
pub(super) fn read(name: &str, source: &str, is_there: impl Fn(&str) -> bool) -> Result<File, protox::Error> {
    let refused = |offset: usize, message: String| {
        let place = Place { file: name.to_owned(), position: Some(scan::position(source, offset)) };
        super::read::refused(ProtoError::Unsupported { place, message })
    };
    if let Some(edition) = edition(source).filter(|edition| edition.name != EDITION) {
        let message = format!("edition {:?} is not supported; proto2, proto3 and edition {EDITION:?} are", edition.name);
        return Err(refused(edition.offset, message));
    }
    let respelled = scan::respelled(source).map_err(|wrong| refused(wrong.offset, wrong.message))?;
    let file = File::from_source(name, &respelled)?;
    let Lowered { file, imports, wrong_defaults } = lower::lowered(file.file_descriptor_proto().clone());
    if let Some(path) = wrong_defaults.first() {
        /// The field `name` of all descriptors.
        const NAME: i32 = 1;
        let place = Place { file: name.to_owned(), position: lower::position(&file, &[&path[..], &[NAME]].concat()) };
        let message = "the default of this field is no value of its type".to_owned();
        return Err(super::read::refused(ProtoError::Unsupported { place, message }));
    }
    // protox knows the place of an import in files alone that it has parsed itself.
    for (import, span) in &imports {
        let count = imports.iter().filter(|(other, _)| other == import).count();
        let message = match (count > 1, is_there(import)) {
            (true, _) => format!("import '{import}' was listed twice"),
            (false, false) => format!("import '{import}' not found"),
            (false, true) => continue,
        };
        let place = Place { file: name.to_owned(), position: *span };
        return Err(super::read::refused(ProtoError::Unsupported { place, message: super::text::printable(&message) }));
    }
    Ok(File::from_file_descriptor_proto(file))
}
