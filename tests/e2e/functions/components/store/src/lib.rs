//! A component that uses everything beside WASI 0.2 that the host offers, for the end-to-end tests: each line of the request's body is an operation, each line of
//! the response what came of it.

use std::io::Write as _;

use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};
use wasip2::io::streams::StreamError;

mod bindings {
    wit_bindgen::generate!({
        path: [
            "wit/deps/keyvalue-draft.wit",
            "wit/deps/keyvalue-draft2.wit",
            "wit/deps/config-rc1.wit",
            "wit/deps/config-draft.wit",
            "wit/deps/config-2024.wit",
            "wit/deps/spin.wit",
            "../../../../../sdk/wit/keyvalue.wit",
            "../../../../../sdk/wit/call.wit",
            "../../../../../sdk/wit/note.wit",
            "../../../../../sdk/wit/http.wit",
            "wit/world.wit",
        ],
        world: "test:store/all",
        generate_all,
    });
}

use bindings::fermyon::spin;
use bindings::sledge;
use bindings::wasi;
use sledge::keyvalue::store::{Expected, Outcome, Write};
use sledge::note::notes::Level;
use wasi::keyvalue0_2_0_draft as draft;
use wasi::keyvalue0_2_0_draft2 as draft2;
use wasi::{config0_2_0_draft, config0_2_0_draft_2024_09_27, config0_2_0_rc_1};

wasip2::http::proxy::export!(Function);

struct Function;

impl Guest for Function {
    fn handle(request: IncomingRequest, outparam: ResponseOutparam) {
        let body = request.consume().unwrap();
        let stream = body.stream().unwrap();
        let mut text = Vec::new();
        loop {
            match stream.blocking_read(1 << 16) {
                Ok(bytes) => text.extend(bytes),
                Err(StreamError::Closed) => break,
                Err(error) => panic!("{error:?}"),
            }
        }
        let mut reply = String::new();
        for line in String::from_utf8(text).unwrap().lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (interface, rest) = words.split_first().expect("an interface");
            let said = match *interface {
                "draft" => in_draft(rest),
                "draft2" => in_draft2(rest),
                "spin" => in_spin(rest),
                "own" => in_own(rest),
                "config" => in_config(rest),
                "call" => in_call(rest),
                "note" => in_notes(rest),
                "http" => in_exchange(rest),
                other => format!("no {other}"),
            };
            reply.push_str(&said);
            reply.push('\n');
        }
        let response = OutgoingResponse::new(Fields::new());
        let body = response.body().unwrap();
        ResponseOutparam::set(outparam, Ok(response));
        let mut out = body.write().unwrap();
        out.write_all(reply.as_bytes()).unwrap();
        drop(out);
        OutgoingBody::finish(body, None).unwrap();
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// `rep:N:X` is X so many times.
fn long(word: &str) -> String {
    let mut parts = word.split(':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("rep"), Some(times), Some(text)) => text.repeat(times.parse().unwrap()),
        _ => word.to_owned(),
    }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn pairs(words: &[&str]) -> Vec<(String, Vec<u8>)> {
    let pair = |word: &&str| word.split_once('=').map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()));
    words.iter().filter_map(pair).collect()
}

/// Operations on a bucket that three packages have alike.
macro_rules! common {
    ($bucket:expr, $words:expr, $otherwise:expr) => {
        match $words {
            ["get", key] => format!("{:?}", $bucket.get(&long(key)).map(|value| value.map(text))),
            ["set", key, value] => format!("{:?}", $bucket.set(&long(key), long(value).as_bytes())),
            ["delete", key] => format!("{:?}", $bucket.delete(key)),
            ["exists", key] => format!("{:?}", $bucket.exists(key)),
            other => $otherwise(&$bucket, other),
        }
    };
}

fn in_draft(words: &[&str]) -> String {
    let (name, words) = words.split_first().expect("a bucket");
    let bucket = match draft::store::open(if *name == "-" { "" } else { name }) {
        Ok(bucket) => bucket,
        Err(error) => return format!("{error:?}"),
    };
    common!(bucket, words, |bucket: &draft::store::Bucket, words: &[&str]| match words {
        ["increment", key, delta] => format!("{:?}", draft::atomics::increment(bucket, key, delta.parse().unwrap())),
        ["get-many", keys @ ..] => {
            let found = draft::batch::get_many(bucket, &strings(keys));
            format!(
                "{:?}",
                found.map(|found| found.into_iter().map(|pair| pair.map(|(key, value)| (key, text(value)))).collect::<Vec<_>>())
            )
        }
        ["set-many", all @ ..] => format!("{:?}", draft::batch::set_many(bucket, &pairs(all))),
        ["delete-many", keys @ ..] => format!("{:?}", draft::batch::delete_many(bucket, &strings(keys))),
        ["fill", count] => {
            let count: usize = count.parse().unwrap();
            let keys: Vec<_> = (0..count).map(|index| (format!("k{index:06}"), Vec::new())).collect();
            for some in keys.chunks(1000) {
                draft::batch::set_many(bucket, some).unwrap();
            }
            format!("{count}")
        }
        ["list"] => {
            let (mut all, mut cursor, mut pages) = (Vec::new(), None, 0);
            loop {
                let response = bucket.list_keys(cursor).unwrap();
                all.extend(response.keys);
                pages += 1;
                cursor = response.cursor;
                if cursor.is_none() {
                    break format!("{} {pages} {:?} {:?}", all.len(), all.first(), all.last());
                }
            }
        }
        ["cursor", number] => format!("{:?}", bucket.list_keys(Some(number.parse().unwrap())).map(|response| response.keys)),
        other => format!("no {other:?}"),
    })
}

fn in_draft2(words: &[&str]) -> String {
    let (name, words) = words.split_first().expect("a bucket");
    let bucket = match draft2::store::open(name) {
        Ok(bucket) => bucket,
        Err(error) => return format!("{error:?}"),
    };
    common!(bucket, words, |bucket: &draft2::store::Bucket, words: &[&str]| match words {
        ["increment", key, delta] => format!("{:?}", draft2::atomics::increment(bucket, key, delta.parse().unwrap())),
        ["get-many", keys @ ..] => {
            let found = draft2::batch::get_many(bucket, &strings(keys));
            format!("{:?}", found.map(|found| found.into_iter().map(|(key, value)| (key, value.map(text))).collect::<Vec<_>>()))
        }
        ["set-many", all @ ..] => format!("{:?}", draft2::batch::set_many(bucket, &pairs(all))),
        ["delete-many", keys @ ..] => format!("{:?}", draft2::batch::delete_many(bucket, &strings(keys))),
        ["list"] => {
            let (mut all, mut cursor, mut pages) = (Vec::new(), None, 0);
            loop {
                let response = bucket.list_keys(cursor.as_deref()).unwrap();
                all.extend(response.keys);
                pages += 1;
                cursor = response.cursor;
                if cursor.is_none() {
                    break format!("{} {pages} {:?} {:?}", all.len(), all.first(), all.last());
                }
            }
        }
        ["cursor", text] => format!("{:?}", bucket.list_keys(Some(text)).map(|response| response.keys)),
        // Swaps twice: what another has changed in between is seen by the second.
        ["cas", key, between, value] => {
            let cas = draft2::atomics::Cas::new(bucket, key).unwrap();
            let before = cas.current().unwrap().map(text);
            if *between != "-" {
                bucket.set(key, between.as_bytes()).unwrap();
            }
            match draft2::atomics::swap(cas, value.as_bytes()) {
                Ok(()) => format!("{before:?} swapped"),
                Err(draft2::atomics::CasError::StoreError(error)) => format!("{before:?} {error:?}"),
                Err(draft2::atomics::CasError::CasFailed(cas)) => {
                    let now = cas.current().unwrap().map(text);
                    let again = draft2::atomics::swap(cas, value.as_bytes()).is_ok();
                    format!("{before:?} failed {now:?} {again}")
                }
            }
        }
        other => format!("no {other:?}"),
    })
}

fn in_spin(words: &[&str]) -> String {
    if let ["variable", name] = words {
        return format!("{:?}", spin::variables::get(name));
    }
    let (name, words) = words.split_first().expect("a store");
    let store = match spin::key_value::Store::open(name) {
        Ok(store) => store,
        Err(error) => return format!("{error:?}"),
    };
    common!(store, words, |store: &spin::key_value::Store, words: &[&str]| match words {
        ["list"] => {
            let keys = store.get_keys();
            format!("{:?}", keys.map(|keys| (keys.len(), keys.first().cloned(), keys.last().cloned())))
        }
        other => format!("no {other:?}"),
    })
}

fn in_own(words: &[&str]) -> String {
    let (name, words) = words.split_first().expect("a bucket");
    let bucket = match sledge::keyvalue::store::open(name) {
        Ok(bucket) => bucket,
        Err(error) => return format!("{error:?}"),
    };
    let entry = |entry: sledge::keyvalue::store::Entry| (text(entry.value), entry.version);
    let outcome = |outcome| match outcome {
        Outcome::Committed(version) => format!("committed {version}"),
        Outcome::Conflict(version) => format!("conflict {version}"),
    };
    match words {
        ["get", key] => format!("{:?}", bucket.get(key).map(|found| found.map(entry))),
        ["set", key, value] => format!("{:?}", bucket.set(&long(key), long(value).as_bytes())),
        ["delete", key] => format!("{:?}", bucket.delete(key)),
        ["exists", key] => format!("{:?}", bucket.exists(key)),
        ["list", prefix] => {
            let (mut all, mut cursor, mut pages) = (Vec::new(), None, 0);
            loop {
                let response = bucket.list_keys(prefix, cursor.as_deref()).unwrap();
                all.extend(response.keys);
                pages += 1;
                cursor = response.cursor;
                if cursor.is_none() {
                    break format!("{} {pages} {:?} {:?}", all.len(), all.first(), all.last());
                }
            }
        }
        ["increment", key, delta] => format!("{:?}", bucket.increment(key, delta.parse().unwrap())),
        ["swap", key, version, value] => {
            let swapped = bucket.compare_and_swap(key, version.parse().unwrap(), value.as_bytes());
            format!("{:?}", swapped.map(outcome))
        }
        ["get-many", keys @ ..] => {
            let found = bucket.get_many(&strings(keys));
            format!("{:?}", found.map(|found| found.into_iter().map(|found| found.map(entry)).collect::<Vec<_>>()))
        }
        ["set-many", all @ ..] => format!("{:?}", bucket.set_many(&pairs(all))),
        ["delete-many", keys @ ..] => format!("{:?}", bucket.delete_many(&strings(keys))),
        // KEY?VERSION is expected, KEY=VALUE is set, KEY! is deleted.
        ["commit", all @ ..] => {
            let (mut expected, mut writes) = (Vec::new(), Vec::new());
            for word in all {
                if let Some((key, version)) = word.split_once('?') {
                    expected.push(Expected { key: key.to_owned(), version: version.parse().unwrap() });
                } else if let Some((key, value)) = word.split_once('=') {
                    writes.push(Write { key: key.to_owned(), value: Some(value.as_bytes().to_vec()) });
                } else {
                    writes.push(Write { key: word.trim_end_matches('!').to_owned(), value: None });
                }
            }
            format!("{:?}", bucket.commit(&expected, &writes).map(outcome))
        }
        other => format!("no {other:?}"),
    }
}

fn in_config(words: &[&str]) -> String {
    match words {
        ["get", key] => format!(
            "{:?} {:?} {:?} {:?}",
            config0_2_0_rc_1::store::get(key),
            config0_2_0_draft::store::get(key),
            config0_2_0_draft::runtime::get(key),
            config0_2_0_draft_2024_09_27::store::get(key)
        ),
        ["all"] => {
            let all = config0_2_0_rc_1::store::get_all().unwrap();
            assert_eq!(config0_2_0_draft::store::get_all().unwrap(), all);
            assert_eq!(config0_2_0_draft::runtime::get_all().unwrap(), all);
            assert_eq!(config0_2_0_draft_2024_09_27::store::get_all().unwrap(), all);
            format!("{all:?}")
        }
        other => format!("no {other:?}"),
    }
}

fn in_call(words: &[&str]) -> String {
    use sledge::call::functions::{Pending, invoke, send, start};
    match words {
        ["invoke", name, input] => format!("{:?}", invoke(name, long(input).as_bytes()).map(text)),
        ["send", name, input] => format!("{:?}", send(name, long(input).as_bytes())),
        // All at once; each is waited for twice.
        ["start", name, inputs @ ..] => {
            let pending: Vec<_> = inputs.iter().map(|input| start(name, input.as_bytes())).collect();
            let reply = |pending: Result<Pending, _>| pending.and_then(|pending| Ok((pending.wait().map(text)?, pending.wait())));
            format!("{:?}", pending.into_iter().map(reply).collect::<Vec<_>>())
        }
        // None is waited for, so each makes room.
        ["drop", name, times] => {
            let all = (0..times.parse().unwrap()).all(|_| start(name, b"x").is_ok());
            format!("{all}")
        }
        ["hold", name, times] => {
            let held: Vec<_> = (0..times.parse().unwrap()).map(|_| start(name, b"x")).collect();
            let refused = held.iter().filter_map(|started| started.as_ref().err()).collect::<Vec<_>>();
            format!("{} {refused:?}", held.len() - refused.len())
        }
        other => format!("no {other:?}"),
    }
}

fn in_exchange(words: &[&str]) -> String {
    use sledge::http::exchange::{add_header, header, method, set_trailer, status, stream, target};
    match words {
        ["head", name] => format!("{:?} {:?} {:?}", method(), target(), header(name).map(text)),
        ["change"] => {
            format!("{:?} {:?} {:?} {:?}", status(201), add_header("x-a", b"b"), set_trailer("x-a", b"b"), stream(None))
        }
        other => format!("no {other:?}"),
    }
}

fn in_notes(words: &[&str]) -> String {
    match words {
        ["log", message @ ..] => {
            sledge::note::notes::log(Level::Warn, &message.join(" "));
            "logged".to_owned()
        }
        ["phase", id] => {
            sledge::note::notes::phase(id.parse().unwrap());
            "phase".to_owned()
        }
        other => format!("no {other:?}"),
    }
}
