//! Tasks that are operations of the key-value store: `kv:get`, `kv:set`, `kv:add`, `kv:delete`, each one commit or one read.
//!
//! The input is `{"Key": ..., "Bucket": ..., "Value": ...}`; without a bucket it is `default`, as for functions. Values are JSON in the store.

use bytes::Bytes;
use serde_json::{Value, json};
use sledge_workflow::dataset::BUCKET;
use sledge_workflow::definition::resource::KeyValueOperation;
use sledge_workflow::machine::Failure;

use super::failure::{failed, of_store};
use crate::kv::{BucketKey, BucketName, Change, Commit, Entry, Outcome, Space};

/// An operation of the store, as its task's input asks for it.
pub(super) struct Asked {
    /// The bucket.
    pub bucket: BucketName,
    /// The key in it.
    pub key: BucketKey,
    /// What is done; none where the key is read.
    pub change: Option<Change>,
}

impl Asked {
    /// Reads a task's input.
    pub(super) fn read(operation: KeyValueOperation, input: &Value) -> Result<Asked, Failure> {
        let (bucket, key) = place(input)?;
        let change = match operation {
            KeyValueOperation::Get => None,
            KeyValueOperation::Set => {
                let Some(value) = input.get("Value") else { return Err(malformed("kv:set needs Value")) };
                Some(Change::Put(Bytes::from(value.to_string())))
            }
            KeyValueOperation::Add => {
                let Some(delta) = input.get("Value").map_or(Some(1), Value::as_i64) else {
                    return Err(malformed("Value of kv:add is to be a whole number of 64 bits"));
                };
                Some(Change::Add(delta))
            }
            KeyValueOperation::Delete => Some(Change::Delete),
            // A definition with such a Task is refused.
            KeyValueOperation::List | KeyValueOperation::Scan => return Err(malformed("kv:list and kv:scan are for ItemReader")),
        };
        Ok(Asked { bucket, key, change })
    }

    /// Whether it gives a sum.
    pub(super) const fn is_sum(&self) -> bool {
        matches!(self.change, Some(Change::Add(_)))
    }
}

/// The tenant's store.
///
/// # Errors
/// When there is none.
pub(super) fn space(space: Option<&Space>) -> Result<&Space, Failure> {
    space.ok_or_else(|| failed("KeyValue.Unavailable", "the server has no key-value store: set `kv` in its configuration"))
}

/// Carries one out, by itself.
pub(super) async fn carry_out(of_tenant: Option<&Space>, operation: KeyValueOperation, input: &Value) -> Result<Value, Failure> {
    let space = space(of_tenant)?;
    let asked = Asked::read(operation, input)?;
    let is_sum = asked.is_sum();
    let Some(change) = asked.change else {
        return space.read(&asked.bucket, asked.key).await.map(|entry| read(entry.as_ref())).map_err(|error| of_store(&error));
    };
    match space.clone().commit(Commit::new(Vec::new(), vec![(asked.key, change)])).await {
        Ok(Outcome::Committed { sum, .. }) => Ok(changed(is_sum, sum)),
        // Nothing was expected.
        Ok(Outcome::Conflict { .. }) => Err(failed("KeyValue.Unavailable", "a conflict without a condition")),
        Err(error) => Err(of_store(&error)),
    }
}

/// What a task that changes something gives.
pub(super) fn changed(is_sum: bool, sum: i64) -> Value {
    if is_sum { json!({ "Value": sum }) } else { json!({}) }
}

/// What a task that reads gives.
pub(super) fn read(entry: Option<&Entry>) -> Value {
    let Some(entry) = entry else { return json!({ "Value": null, "Found": false }) };
    json!({ "Value": parsed(&entry.value), "Found": true })
}

/// A value: what functions have written need not be JSON.
pub(super) fn parsed(value: &[u8]) -> Value {
    serde_json::from_slice(value).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(value).into_owned()))
}

fn place(input: &Value) -> Result<(BucketName, BucketKey), Failure> {
    let Some(key) = input["Key"].as_str() else { return Err(malformed("kv: needs Key, a text")) };
    let bucket = bucket_of(input)?;
    let key = bucket.key(key.as_bytes()).map_err(|error| of_store(&error))?;
    Ok((bucket, key))
}

/// The bucket that a task's input names.
pub(super) fn bucket_of(input: &Value) -> Result<BucketName, Failure> {
    let name = match &input["Bucket"] {
        Value::Null => BUCKET,
        Value::String(name) => name,
        _ => return Err(malformed("Bucket is to be a text")),
    };
    BucketName::new(name.as_bytes()).ok_or_else(|| malformed("Bucket is to be a name of 1 to 64 bytes"))
}

fn malformed(what: &'static str) -> Failure {
    failed("States.Runtime", what)
}
