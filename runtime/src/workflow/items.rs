//! `ItemReader` and `ResultWriter` of a Map: items from the key-value store, results to it.
//!
//! | resource | items |
//! |---|---|
//! | `kv:get` | those in the value of one key: JSON, JSONL or CSV |
//! | `kv:list` | `{"Key": ...}` for each key of a bucket that begins with a prefix |
//! | `kv:scan` | `{"Key": ..., "Value": ...}` for each of them |
//!
//! A bucket is read page by page: keys that are there all the time are given, those that come or go meanwhile may be. Results are one commit.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use serde_json::{Value, json};
use sledge_workflow::dataset::{self, DatasetError, Format, Items};
use sledge_workflow::definition::Resource;
use sledge_workflow::definition::resource::KeyValueOperation;
use sledge_workflow::machine::{Failure, Purpose, StartTask};

use super::failure::{failed, of_store};
use super::store::{bucket_of, parsed};
use crate::kv::{BucketName, COMMIT_KEYS_MAX, Change, Commit, Entry, KvError, Outcome, Space, VALUE_BYTES_MAX};

/// Why a dataset was not read or written.
pub(super) enum Unread {
    /// The store does not do it.
    Store(KvError),
    /// Something is wrong with what was asked for, or with what is there.
    Dataset(Failure),
}

impl From<KvError> for Unread {
    fn from(error: KvError) -> Unread {
        Unread::Store(error)
    }
}

impl From<Failure> for Unread {
    fn from(failure: Failure) -> Unread {
        Unread::Dataset(failure)
    }
}

impl From<DatasetError> for Unread {
    fn from(error: DatasetError) -> Unread {
        Unread::Dataset(failed("KeyValue.Dataset", error.to_string()))
    }
}

impl Unread {
    /// As the failure of the task.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Unread::Store(error) => of_store(&error),
            Unread::Dataset(failure) => failure,
        }
    }
}

/// Carries out the task of an `ItemReader` or a `ResultWriter`, by itself.
pub(super) async fn carry_out(space: &Space, start: &StartTask) -> Result<Value, Unread> {
    if start.purpose == Purpose::Read {
        return read(space, start).await;
    }
    let Results { commit, output } = Results::of(&start.input)?;
    match space.clone().commit(commit).await? {
        Outcome::Committed { .. } => Ok(output),
        // Nothing was expected.
        Outcome::Conflict { .. } => Err(KvError::Unavailable("a conflict without a condition".to_owned()).into()),
    }
}

/// The items that an `ItemReader` asks for.
pub(super) async fn read(space: &Space, start: &StartTask) -> Result<Value, Unread> {
    let Resource::KeyValue { operation } = &*start.resource else {
        return Err(failed("States.Runtime", "ItemReader reads in the key-value store alone").into());
    };
    let (input, config) = (&*start.input, &start.input["ReaderConfig"]);
    let bucket = bucket_of(input)?;
    let items_max = config["MaxItems"].as_u64();
    match operation {
        KeyValueOperation::List | KeyValueOperation::Scan => {
            let prefix = match &input["Prefix"] {
                Value::Null => "",
                Value::String(prefix) => prefix,
                _ => return Err(failed("States.Runtime", "Prefix is to be a text").into()),
            };
            let with_values = *operation == KeyValueOperation::Scan;
            bucket_items(space, &bucket, prefix.as_bytes(), with_values, Items::new(items_max)).await
        }
        _ => {
            let Some(key) = input["Key"].as_str() else {
                return Err(failed("States.Runtime", "kv:get needs Key, a text").into());
            };
            let format: Format = serde_json::from_value(config.clone()).unwrap_or_default();
            let Some(entry) = space.read(&bucket, bucket.key(key.as_bytes())?).await? else {
                return Err(failed("KeyValue.NoSuchKey", format!("there is no key {key:?} in the bucket")).into());
            };
            Ok(dataset::read(&entry.value, &format, items_max)?)
        }
    }
}

/// An item for each key of a bucket that begins so.
async fn bucket_items(
    space: &Space,
    bucket: &BucketName,
    prefix: &[u8],
    with_values: bool,
    mut items: Items,
) -> Result<Value, Unread> {
    let mut after: Option<Bytes> = None;
    while items.missing() > 0 {
        let keys = page(space, bucket, prefix, after.as_deref(), items.missing().min(COMMIT_KEYS_MAX)).await?;
        let Some(last) = keys.last() else { break };
        after = Some(last.clone());
        for key in &keys {
            let name = String::from_utf8_lossy(key);
            if !with_values {
                items.push(json!({ "Key": name }))?;
                continue;
            }
            // One that has gone meanwhile is left out.
            if let Some(Entry { value, .. }) = space.read(bucket, bucket.key(key)?).await? {
                items.push(json!({ "Key": name, "Value": parsed(&value) }))?;
            }
        }
        // Other executions have their turn: nothing has to be waited for in the embedded store.
        tokio::task::yield_now().await;
    }
    Ok(items.into_value())
}

/// The next keys, at most so many.
pub(super) async fn page(
    space: &Space,
    bucket: &BucketName,
    prefix: &[u8],
    after: Option<&[u8]>,
    keys_max: usize,
) -> Result<Vec<Bytes>, KvError> {
    match space {
        Space::Embedded(space) => {
            let mut keys = Vec::new();
            space.keys(bucket, prefix, after, |key| {
                keys.push(Bytes::copy_from_slice(key));
                keys.len() < keys_max
            })?;
            Ok(keys)
        }
        Space::Redis(space) => {
            let after = after.map(|after| bucket.key(after)).transpose()?;
            let (mut keys, _) = space.clone().keys(bucket.clone(), bucket.key(prefix)?, after).await?;
            keys.truncate(keys_max);
            Ok(keys)
        }
    }
}

/// What a `ResultWriter` writes, and what it answers when that is written.
pub(super) struct Results {
    pub commit: Commit,
    pub output: Value,
}

impl Results {
    /// Reads a task's input.
    pub(super) fn of(input: &Value) -> Result<Results, Unread> {
        let bucket = bucket_of(input)?;
        let written = dataset::written(input, VALUE_BYTES_MAX)?;
        let change = |(key, text): (String, Vec<u8>)| Ok((bucket.key(key.as_bytes())?, Change::Put(text.into())));
        let changes = written.files.into_iter().map(change).collect::<Result<Vec<_>, KvError>>()?;
        let commit = Commit::new(Vec::new(), changes);
        commit.check()?;
        Ok(Results { commit, output: written.output })
    }
}
