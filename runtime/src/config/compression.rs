//! Which replies of a function are compressed, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BODY_BYTES_MAX;
use super::check::Problems;

/// Which replies are compressed: those of a content type that gains by it, to clients that accept it, unless the function has compressed them itself or forbids it (`cache-control: no-transform`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompressionConfig {
    /// What the server can compress with. Of those that a client likes as much as each other, the first is taken.
    #[serde(default = "encodings_default")]
    #[schemars(length(min = 1, max = 3))]
    pub encodings: Vec<Encoding>,
    /// Replies of which the length is known and smaller than this are not compressed, in bytes.
    #[serde(default = "bytes_min_default")]
    #[schemars(range(max = 1_073_741_824))]
    pub bytes_min: u64,
}

/// How a reply is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Zstandard (RFC 8878).
    Zstd,
    /// brotli (RFC 7932).
    #[serde(rename = "br")]
    Brotli,
    /// gzip (RFC 1952).
    Gzip,
}

/// Zstandard makes about the same size as gzip in a fifth of the time, brotli a smaller one in the same time.
fn encodings_default() -> Vec<Encoding> {
    vec![Encoding::Zstd, Encoding::Brotli, Encoding::Gzip]
}

/// Less is sent in one packet either way.
const fn bytes_min_default() -> u64 {
    1_024
}

/// Checks what a function says; `at` is the key.
pub(super) fn check(at: &str, compression: &CompressionConfig, problems: &mut Problems<'_>) {
    let CompressionConfig { encodings, bytes_min } = compression;
    if encodings.is_empty() {
        problems.push(
            format!("{at}.encodings"),
            "is empty; give \"zstd\", \"br\", \"gzip\" or several of them, or leave `compression` out",
        );
    }
    for (index, encoding) in encodings.iter().enumerate() {
        if encodings[..index].contains(encoding) {
            problems.push(format!("{at}.encodings[{index}]"), "is listed twice");
        }
    }
    if *bytes_min > BODY_BYTES_MAX {
        problems.push(format!("{at}.bytes_min"), format!("{bytes_min} is out of range; give 0 to {BODY_BYTES_MAX}"));
    }
}
