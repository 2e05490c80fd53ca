//! Tasks that are operations of the key-value store: `kv:get`, `kv:set`, `kv:add`, `kv:delete`, each one commit or one read.
//!
//! The input is `{"Key": ..., "Bucket": ..., "Value": ...}`; without a bucket it is `default`, as for functions. Values are JSON in the store.

use bytes::Bytes;
use serde_json::{Value, json};
use sledge_workflow::definition::resource::KeyValueOperation;
use sledge_workflow::machine::Failure;

use super::failure::{failed, of_store};
use crate::kv::{BucketKey, BucketName, Change, Commit, Outcome, Space};

const BUCKET: &str = "default";

/// Carries one out.
pub(super) async fn carry_out(space: Option<&Space>, operation: KeyValueOperation, input: &Value) -> Result<Value, Failure> {
    let Some(space) = space else {
        return Err(failed("KeyValue.Unavailable", "the server has no key-value store: set `kv` in its configuration"));
    };
    let (bucket, key) = place(input)?;
    let change = match operation {
        KeyValueOperation::Get => return get(space, &bucket, key).await,
        KeyValueOperation::Set => {
            let Some(value) = input.get("Value") else { return Err(malformed("kv:set needs Value")) };
            Change::Put(Bytes::from(value.to_string()))
        }
        KeyValueOperation::Add => {
            let Some(delta) = input.get("Value").map_or(Some(1), Value::as_i64) else {
                return Err(malformed("Value of kv:add is to be a whole number of 64 bits"));
            };
            Change::Add(delta)
        }
        KeyValueOperation::Delete => Change::Delete,
    };
    match space.clone().commit(Commit::new(Vec::new(), vec![(key, change)])).await {
        Ok(Outcome::Committed { sum, .. }) => {
            Ok(if operation == KeyValueOperation::Add { json!({ "Value": sum }) } else { json!({}) })
        }
        // Nothing was expected.
        Ok(Outcome::Conflict { .. }) => Err(failed("KeyValue.Unavailable", "a conflict without a condition")),
        Err(error) => Err(of_store(&error)),
    }
}

async fn get(space: &Space, bucket: &BucketName, key: BucketKey) -> Result<Value, Failure> {
    let entry = space.read(bucket, key).await.map_err(|error| of_store(&error))?;
    let Some(entry) = entry else { return Ok(json!({ "Value": null, "Found": false })) };
    // What functions have written need not be JSON.
    let value = serde_json::from_slice(&entry.value)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&entry.value).into_owned()));
    Ok(json!({ "Value": value, "Found": true }))
}

fn place(input: &Value) -> Result<(BucketName, BucketKey), Failure> {
    let Some(key) = input["Key"].as_str() else { return Err(malformed("kv: needs Key, a text")) };
    let name = match &input["Bucket"] {
        Value::Null => BUCKET,
        Value::String(name) => name,
        _ => return Err(malformed("Bucket is to be a text")),
    };
    let Some(bucket) = BucketName::new(name.as_bytes()) else {
        return Err(malformed("Bucket is to be a name of 1 to 64 bytes"));
    };
    let key = bucket.key(key.as_bytes()).map_err(|error| of_store(&error))?;
    Ok((bucket, key))
}

fn malformed(what: &'static str) -> Failure {
    failed("States.Runtime", what)
}
