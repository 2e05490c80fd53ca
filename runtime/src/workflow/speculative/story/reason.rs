//! Why runs do not count, in sentences.

use super::explained::Reason;
use super::{Blamed, Over, Row, Why};
use crate::kv::BucketKey;
use crate::txn::pipeline::Cause;

impl Row {
    /// Why the run does not count, if that is so when the execution is over.
    pub(super) fn reason(&self) -> Option<Reason> {
        let reason = |code: &str, text: String, state: Option<&str>, key: Option<String>| {
            Some(Reason { code: code.to_owned(), text, state: state.map(str::to_owned), key })
        };
        let why = match &self.over {
            Some((_, Over::Left(why))) => why,
            Some((_, Over::Committed(_))) => return None,
            None if self.is_for_good && self.ended.is_some() => return None,
            None => return reason("ended", "the execution ended without it".to_owned(), None, None),
        };
        match why {
            Why::OtherInput(blamed) => {
                let (since, state) = blame(blamed.as_ref());
                reason("other_input", format!("its state is asked for with another input{since}"), state, None)
            }
            Why::NotAsked(blamed) => {
                let (since, state) = blame(blamed.as_ref());
                reason("not_asked", format!("its state is not asked for any more{since}"), state, None)
            }
            Why::Squashed(cause, by) => {
                let (by, key) = (by.as_deref(), cause_key(cause));
                let (writer, what) = (by.unwrap_or("a run before it"), key.as_deref().unwrap_or("something that it had read"));
                match cause {
                    Cause::Wrote(..) => reason("read_too_early", format!("it had read {what} before {writer} wrote it"), by, key),
                    Cause::Listed(..) => reason(
                        "listed_too_early",
                        format!("it had listed {what} before {writer} changed the keys there"),
                        by,
                        key,
                    ),
                    Cause::Gone(_) => reason(
                        "read_in_vain",
                        format!("it had read what {writer} had written, and that does not count"),
                        by,
                        None,
                    ),
                    Cause::Sum => reason("sum", "it had read a sum that only the store knows".to_owned(), None, None),
                    Cause::Set => reason(
                        "set",
                        "it had listed keys while functions before it were changing which there are".to_owned(),
                        None,
                        None,
                    ),
                    Cause::Changed(_) => reason(
                        "changed",
                        format!("another execution or request has changed {what} since it read that"),
                        None,
                        key,
                    ),
                }
            }
            Why::MadeRoom => reason("made_room", "a run before it needed the room".to_owned(), None, None),
        }
    }
}

/// What is behind it that a run is not wanted, as the end of a sentence, and the state.
fn blame(blamed: Option<&Blamed>) -> (String, Option<&str>) {
    match blamed {
        None => (String::new(), None),
        Some(Blamed::Answer(state)) => (format!(": the answer of {state} was guessed wrong"), Some(state)),
        Some(Blamed::Way(state)) => (format!(": the way at {state} was guessed wrong"), Some(state)),
        Some(Blamed::Failure(state)) => (format!(": {state} failed, which was not expected"), Some(state)),
    }
}

/// What a column has read, as text.
fn cause_key(cause: &Cause) -> Option<String> {
    match cause {
        Cause::Wrote(_, key) | Cause::Changed(Some(key)) => Some(key_text(key)),
        Cause::Listed(_, bucket) => Some(bucket.name().escape_ascii().to_string()),
        Cause::Gone(_) | Cause::Sum | Cause::Set | Cause::Changed(None) => None,
    }
}

/// A key, as its bucket, a slash, and its name.
pub(super) fn key_text(key: &BucketKey) -> String {
    format!("{}/{}", key.bucket().escape_ascii(), key.key().escape_ascii())
}
