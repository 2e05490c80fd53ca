//! Where things stand in their .proto files, and the comments there.

use std::collections::HashMap;

use protox::prost_reflect::DescriptorPool;
use protox::prost_reflect::prost_types::source_code_info::Location;

use super::editions::Features;
use super::error::{Place, ProtoError};
use super::text::printable;

/// By what is sorted that stands in one file.
pub(super) type Order = (Option<(u32, u32)>, Vec<i32>);

/// The locations of all files, by the paths of descriptors (`SourceCodeInfo` in descriptor.proto).
pub(super) struct Sources {
    /// What files of an edition say of their fields and enums.
    pub features: Features,
    files: HashMap<String, HashMap<Vec<i32>, Location>>,
}

impl Sources {
    pub(super) fn of(pool: &DescriptorPool, features: Features) -> Sources {
        let locations = |info: &Location| (info.path.clone(), info.clone());
        let files = pool.file_descriptor_protos().map(|file| {
            let info = file.source_code_info.iter().flat_map(|info| &info.location);
            // The first of a path: `extend` blocks and the like repeat some.
            let mut places = HashMap::new();
            info.map(locations).for_each(|(path, location)| {
                places.entry(path).or_insert(location);
            });
            (file.name().to_owned(), places)
        });
        Sources { features, files: files.collect() }
    }

    /// Where what has this path stands; its name, where that has a place of its own.
    pub(super) fn place(&self, file: &str, path: &[i32]) -> Place {
        /// The field `name` of all descriptors.
        const NAME: i32 = 1;
        let places = self.files.get(file);
        let location = places.and_then(|places| places.get(&[path, &[NAME]].concat()).or_else(|| places.get(path)));
        let position = location.and_then(|location| match location.span.as_slice() {
            [line, column, ..] => Some((u32::try_from(*line).ok()? + 1, u32::try_from(*column).ok()? + 1)),
            _ => None,
        });
        Place { file: file.to_owned(), position }
    }

    /// The comment before it, then the one behind it, in lines.
    pub(super) fn comments(&self, file: &str, path: &[i32]) -> Vec<String> {
        let Some(location) = self.files.get(file).and_then(|places| places.get(path)) else { return Vec::new() };
        let mut lines = Vec::new();
        for comment in [location.leading_comments(), location.trailing_comments()] {
            lines.extend(comment.lines().map(|line| printable(line.strip_prefix(' ').unwrap_or(line).trim_end())));
        }
        let is_text = |line: &String| !line.is_empty();
        let Some(first) = lines.iter().position(is_text) else { return Vec::new() };
        let last = lines.iter().rposition(is_text).unwrap_or(first);
        lines[first..=last].to_vec()
    }

    /// An order of what stands in one file: by lines, and by paths where these are not known.
    pub(super) fn order(&self, file: &str, path: &[i32]) -> Order {
        (self.place(file, path).position, path.to_vec())
    }

    /// Says that something has no image in WIT.
    pub(super) fn unsupported(&self, file: &str, path: &[i32], message: impl Into<String>) -> ProtoError {
        ProtoError::Unsupported { place: self.place(file, path), message: message.into() }
    }
}
