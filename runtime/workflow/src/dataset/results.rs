//! The files of a Map run: results in as many keys as they need, and a manifest that names them.
//!
//! The machine hands results over as JSON values; here they become texts, as late as possible, since texts in texts grow by each quote.

use std::io::Write as _;

use serde_json::{Value, json};

use super::format::{OutputType, Transformation, WriterConfig};
use super::{BUCKET, DatasetError};

/// What a `ResultWriter` writes, and what its Map gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The bucket.
    pub bucket: String,
    /// Keys with their values, the manifest last.
    pub files: Vec<(String, Vec<u8>)>,
    /// The state's result: `{"MapRunArn": ..., "ResultWriterDetails": {"Bucket": ..., "Key": ...}}`.
    pub output: Value,
}

/// The files of a task of a `ResultWriter`, each of at most so many bytes, the manifest aside.
///
/// # Errors
/// One result is too large for a file, or the input is not that of such a task.
pub fn written(input: &Value, file_bytes_max: usize) -> Result<Written, DatasetError> {
    let text = |key: &str| input[key].as_str().ok_or(DatasetError::NotResults);
    let (run, folder) = (text("MapRunArn")?, text("Folder")?);
    let bucket = match &input["Bucket"] {
        Value::Null => BUCKET,
        bucket => bucket.as_str().ok_or(DatasetError::NotResults)?,
    };
    let config: WriterConfig = match input.get("WriterConfig") {
        Some(config) => serde_json::from_value(config.clone()).map_err(|_| DatasetError::NotResults)?,
        None => WriterConfig::default(),
    };
    let results = input["Results"].as_array().ok_or(DatasetError::NotResults)?;
    let mut succeeded = Files::new(folder, "SUCCEEDED", config.output_type, file_bytes_max);
    let mut failed = Files::new(folder, "FAILED", config.output_type, file_bytes_max);
    for result in results {
        let index = result["Index"].as_u64().ok_or(DatasetError::NotResults)?;
        match (result.get("Output"), config.transformation) {
            (None, _) => failed.push(&failure(index, result), index)?,
            (Some(output), Transformation::None) => succeeded.push(&success(index, result, output), index)?,
            (Some(Value::Array(elements)), Transformation::Flatten) => {
                elements.iter().try_for_each(|element| succeeded.push(element, index))?;
            }
            (Some(output), _) => succeeded.push(output, index)?,
        }
    }
    let (succeeded, failed) = (succeeded.finished(), failed.finished());
    let named = |files: &[(String, Vec<u8>)]| -> Vec<Value> {
        files.iter().map(|(key, text)| json!({ "Key": key, "Size": text.len() })).collect()
    };
    let manifest = json!({
        "DestinationBucket": bucket,
        "MapRunArn": run,
        "ResultFiles": { "FAILED": named(&failed), "PENDING": [], "SUCCEEDED": named(&succeeded) },
    });
    let key = format!("{folder}/manifest.json");
    let output = json!({ "MapRunArn": run, "ResultWriterDetails": { "Bucket": bucket, "Key": &key } });
    let manifest = (key, manifest.to_string().into_bytes());
    let files = succeeded.into_iter().chain(failed).chain([manifest]).collect();
    Ok(Written { bucket: bucket.to_owned(), files, output })
}

/// An iteration that has succeeded, with its metadata.
fn success(index: u64, result: &Value, output: &Value) -> Value {
    let mut entry = begun(index, result);
    entry["Output"] = output.to_string().into();
    entry["OutputDetails"] = json!({ "Included": true });
    entry["Status"] = "SUCCEEDED".into();
    entry
}

fn failure(index: u64, result: &Value) -> Value {
    let mut entry = begun(index, result);
    entry["Error"] = result["Error"].clone();
    entry["Cause"] = result["Cause"].clone();
    entry["Status"] = "FAILED".into();
    entry
}

/// What an iteration was given, where that is known: an `ItemSelector` makes inputs that are not kept.
fn begun(index: u64, result: &Value) -> Value {
    match result.get("Input") {
        Some(input) => json!({ "Index": index, "Input": input.to_string(), "InputDetails": { "Included": true } }),
        None => json!({ "Index": index, "InputDetails": { "Included": false } }),
    }
}

/// Files of one kind that are being filled, one after the other.
struct Files<'f> {
    folder: &'f str,
    kind: &'static str,
    output_type: OutputType,
    bytes_max: usize,
    full: Vec<(String, Vec<u8>)>,
    current: Vec<u8>,
}

impl<'f> Files<'f> {
    const fn new(folder: &'f str, kind: &'static str, output_type: OutputType, bytes_max: usize) -> Files<'f> {
        Files { folder, kind, output_type, bytes_max, full: Vec::new(), current: Vec::new() }
    }

    fn push(&mut self, entry: &Value, index: u64) -> Result<(), DatasetError> {
        // With brackets, or the end of a line.
        let entry = entry.to_string();
        if entry.len() + 2 > self.bytes_max {
            return Err(DatasetError::ResultTooLarge { index, bytes_max: self.bytes_max });
        }
        // A comma or the end of a line before it, and one byte behind it.
        if !self.current.is_empty() && self.current.len() + entry.len() + 2 > self.bytes_max {
            self.close();
        }
        let before: &[u8] = match (self.output_type, self.current.is_empty()) {
            (OutputType::Json, true) => b"[",
            (OutputType::Json, false) => b",",
            (OutputType::Jsonl, true) => b"",
            (OutputType::Jsonl, false) => b"\n",
        };
        self.current.extend_from_slice(before);
        // Writing into memory does not fail.
        let _ = self.current.write_all(entry.as_bytes());
        Ok(())
    }

    fn close(&mut self) {
        let (end, extension) = match self.output_type {
            OutputType::Json => (b']', "json"),
            OutputType::Jsonl => (b'\n', "jsonl"),
        };
        let mut text = std::mem::take(&mut self.current);
        text.push(end);
        let key = format!("{}/{}_{}.{extension}", self.folder, self.kind, self.full.len());
        self.full.push((key, text));
    }

    fn finished(mut self) -> Vec<(String, Vec<u8>)> {
        if !self.current.is_empty() {
            self.close();
        }
        self.full
    }
}
