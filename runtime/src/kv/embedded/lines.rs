//! A store's content as lines of JSON: what `sledge kv export` writes and `sledge kv import` reads.
//!
//! ```text
//!   {"format":2,"floor":0}                                                  where the versions of new tenants begin
//!   {"tenant":"a","version":7}                                              that of a tenant's last commit
//!   {"tenant":"a","bucket":"b","key":"k","version":7,"value":"MQ=="}        an entry; the value is base64
//! ```
//!
//! A bucket's name or a key that is no UTF-8 stands as `bucket_base64`, `key_base64`.

use std::io::{self, BufRead, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::file::{Content, Contents};
use super::{BucketKey, Entry};
use crate::kv::{BucketName, VALUE_BYTES_MAX};

/// The version of the format of these lines.
const FORMAT: u64 = 2;
/// The longest line: a value and a key, in base64.
const LINE_BYTES_MAX: u64 = (VALUE_BYTES_MAX as u64 + (16 << 10)) * 2;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

/// Why lines are no content.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("line {line}: {why}")]
    Line {
        /// From 1.
        line: usize,
        why: String,
    },
}

/// Writes all of it.
pub(super) fn write(contents: &Contents, floor: u64, out: &mut impl Write) -> io::Result<()> {
    let mut put = |line: &Line| {
        serde_json::to_writer(&mut *out, line)?;
        out.write_all(b"\n")
    };
    put(&Line { format: Some(FORMAT), floor: Some(floor), ..Line::default() })?;
    let mut tenants: Vec<_> = contents.iter().collect();
    tenants.sort_by_key(|(tenant, _)| *tenant);
    for (tenant, content) in tenants {
        let tenant = Some(tenant.to_string());
        put(&Line { tenant: tenant.clone(), version: Some(content.version), ..Line::default() })?;
        for (key, entry) in &content.entries {
            let (bucket, key) = key.split();
            let ((bucket, bucket_base64), (key, key_base64)) = (text(bucket), text(key));
            let (version, value) = (Some(entry.version), Some(BASE64.encode(&entry.value)));
            put(&Line { tenant: tenant.clone(), bucket, bucket_base64, key, key_base64, version, value, ..Line::default() })?;
        }
    }
    out.flush()
}

/// Reads all of it, and where versions of new tenants begin.
pub(super) fn read(mut lines: impl BufRead) -> Result<(Contents, u64), LineError> {
    let (mut contents, mut floor) = (Contents::new(), 0);
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        if io::Read::take(&mut lines, LINE_BYTES_MAX).read_until(b'\n', &mut text)? == 0 {
            break;
        }
        let why = |why: String| LineError::Line { line, why };
        let line: Line = serde_json::from_slice(&text).map_err(|error| why(error.to_string()))?;
        take(line, &mut contents, &mut floor).map_err(why)?;
    }
    contents.values_mut().for_each(|content| content.version = content.version.max(floor));
    Ok((contents, floor))
}

fn take(line: Line, contents: &mut Contents, floor: &mut u64) -> Result<(), String> {
    let Line { format, floor: begin, tenant, bucket, bucket_base64, key, key_base64, version, value } = line;
    if let Some(format) = format {
        *floor = begin.unwrap_or(0);
        return if format <= FORMAT { Ok(()) } else { Err(format!("format {format}, where those up to {FORMAT} are known")) };
    }
    let tenant = tenant.ok_or("names no `tenant`")?;
    let version = version.ok_or("has no `version`")?;
    let content: &mut Content = contents.entry(tenant.into()).or_default();
    content.version = content.version.max(version);
    let Some(value) = value else { return Ok(()) };
    let bytes = |text: Option<String>, base64: Option<String>, name: &str| match (text, base64) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(base64)) => BASE64.decode(base64).map_err(|error| format!("{name}_base64: {error}")),
        _ => Err(format!("needs either `{name}` or `{name}_base64`")),
    };
    let bucket = BucketName::stored(&bytes(bucket, bucket_base64, "bucket")?).ok_or("`bucket` is no name of one")?;
    let key = bucket.key(&bytes(key, key_base64, "key")?).map_err(|error| error.to_string())?;
    let value = BASE64.decode(value).map_err(|error| format!("value: {error}"))?;
    content.entries.insert(key, Entry { version, value: value.into() });
    Ok(())
}

/// Bytes as text, or else in base64.
fn text(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(BASE64.encode(bytes))),
    }
}

impl BucketKey {
    /// The bucket's name, and the key.
    fn split(&self) -> (&[u8], &[u8]) {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        (&self.0[..end], self.0.get(end + 1..).unwrap_or_default())
    }
}
