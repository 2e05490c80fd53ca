//! Requests to other servers that are recorded in the commit of their invocation's transaction (`effects = "outbox"`), and sent after it.
//!
//! A request is acknowledged at once, with status 202, no body, and its id in `sledge-outbox`. From then on it is a part of the transaction: what becomes of that becomes of it. The server
//! that gets it knows it by the same id (`idempotency-key`).

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{Entry, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::context::IDEMPOTENCY_KEY;
use super::{Call, HostFunction, fetch};
use crate::kv::{Change, Commit, KvError, outbox};
use crate::txn::Transaction;
use crate::upstream::Failure;
use crate::upstream::posted::{self, POSTED_BYTES_MAX};

/// In which header of an acknowledgement a request's id is.
const OUTBOX: HeaderName = HeaderName::from_static("sledge-outbox");

/// Whether a host function makes requests that can be recorded, or reads what they came to.
pub(super) fn takes(function: &HostFunction) -> bool {
    function.module == fetch::MODULE || function.module.starts_with("wasi:http/")
}

/// Where an invocation's requests are recorded.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    transaction: Arc<Transaction>,
    function: Box<str>,
}

impl Recorder {
    /// That of the invocation that makes the call, if its requests are recorded.
    pub(super) fn of(call: &Call<'_>) -> Option<Recorder> {
        let transaction = call.context.transaction().filter(|transaction| transaction.has_outbox())?;
        Some(Recorder { transaction: Arc::clone(transaction), function: call.context.name().into() })
    }

    /// Records a request, and acknowledges it.
    ///
    /// # Errors
    /// When it is too large, by itself or with what the transaction has already.
    pub(super) fn record(&self, mut request: Request<Bytes>) -> Result<Response<()>, Failure> {
        let id = format!("{:032x}", fastrand::u128(..));
        let named = HeaderValue::try_from(&id);
        // A name of the function's own stays.
        if let (Entry::Vacant(vacant), Ok(named)) = (request.headers_mut().entry(IDEMPOTENCY_KEY), &named) {
            vacant.insert(named.clone());
        }
        let json = Bytes::from(posted::write(&self.function, &request).to_string());
        let bytes = json.len();
        let put = |json: Bytes| -> Result<(), KvError> {
            let commit = Commit::new(Vec::new(), vec![(outbox::key(&id)?, Change::Put(json))]);
            self.transaction.make(&commit).map(drop)
        };
        let made = if bytes > POSTED_BYTES_MAX {
            Err(KvError::TooLarge { what: "a request", bytes, bytes_max: POSTED_BYTES_MAX })
        } else {
            put(json)
        };
        made.map_err(|error| Failure::NotRecorded { bytes, why: error.to_string() })?;
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::ACCEPTED;
        if let Ok(named) = named {
            response.headers_mut().insert(OUTBOX, named);
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::outbox::{Bell, Outbox};
    use crate::txn::{Isolation, Outside};

    fn recorder() -> Recorder {
        let outside = Outside::Outbox(Outbox::of(&Arc::new(Bell::default()), "t"));
        Recorder { transaction: Transaction::begin(&Isolation { contention: Arc::default(), outside }), function: "f".into() }
    }

    fn request(body: &[u8]) -> Request<Bytes> {
        Request::post("http://h.example/a").body(Bytes::copy_from_slice(body)).unwrap()
    }

    /// What the recorder's transaction would commit.
    fn recorded(recorder: &Recorder) -> Vec<(String, Request<Bytes>)> {
        let changes = recorder.transaction.made().changes;
        let read = |(key, change): (crate::kv::BucketKey, Change)| {
            assert_eq!(key.bucket(), b"sledge:outbox");
            let Change::Put(json) = change else { panic!("{change:?}") };
            let json = serde_json::from_slice(&json).unwrap();
            (String::from_utf8(key.key().to_vec()).unwrap(), posted::read(&json).unwrap())
        };
        changes.into_iter().map(read).collect()
    }

    #[test]
    fn a_request_is_a_part_of_its_transaction_and_acknowledged_with_its_id() {
        let recorder = recorder();
        let acknowledged = recorder.record(request(b"body")).unwrap();
        let id = acknowledged.headers()[OUTBOX].to_str().unwrap().to_owned();
        assert_eq!((acknowledged.status(), id.len()), (StatusCode::ACCEPTED, 32));
        let all = recorded(&recorder);
        assert_eq!((all.len(), &all[0].0, &all[0].1.headers()[IDEMPOTENCY_KEY]), (1, &id, &acknowledged.headers()[OUTBOX]));
        assert_eq!((all[0].1.uri(), &**all[0].1.body()), (request(b"").uri(), &b"body"[..]));
        // A name of the function's own stays.
        let mut own = request(b"");
        own.headers_mut().insert(IDEMPOTENCY_KEY, HeaderValue::from_static("own"));
        recorder.record(own).unwrap();
        let own = recorded(&recorder).into_iter().filter(|(_, request)| request.headers()[IDEMPOTENCY_KEY] == "own");
        assert_eq!(own.count(), 1);
    }

    #[test]
    fn a_request_that_is_too_large_is_not_recorded_and_the_transaction_goes_on() {
        let recorder = recorder();
        let refused = recorder.record(request(&vec![b'x'; POSTED_BYTES_MAX])).unwrap_err();
        assert!(matches!(&refused, Failure::NotRecorded { why, .. } if why.contains("262144")), "{refused}");
        let refused = (0..).find_map(|_| recorder.record(request(&vec![b'x'; POSTED_BYTES_MAX - 1_000])).err()).unwrap();
        assert!(matches!(&refused, Failure::NotRecorded { why, .. } if why.contains("a transaction")), "{refused}");
        assert_eq!(recorded(&recorder).len(), 16, "4 MiB");
    }

    #[test]
    fn requests_of_a_function_that_fails_are_not_made_and_those_of_its_caller_are() {
        let outer = recorder();
        let [fails, works] = [false, true].map(|ended_well| {
            let callee = Recorder { transaction: Transaction::join(&outer.transaction), function: "callee".into() };
            callee.record(request(b"")).unwrap();
            let settled = callee.transaction.settle(ended_well, None);
            assert!(matches!(settled, crate::txn::Settled::Done), "{settled:?}");
            recorded(&outer).len()
        });
        assert_eq!((fails, works), (0, 1));
    }
}
