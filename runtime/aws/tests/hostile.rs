//! Mutated requests: whatever a client sends is answered, and nothing panics. Failures name their seed.

mod support;

use http::{HeaderName, HeaderValue, Method};
use serde_json::Value;
use sledge_aws::{ErrorCode, ExecutionArn, MachineArn, Message, Operation, RequestId, SERVICE, Secret, answer};
use support::Sample;

const BODIES: &[&str] = &[
    r#"{"stateMachineArn":"arn:aws:states:local:acme:stateMachine:order","name":"one","input":"{\"a\":[1,2.5e3,null]}","traceHeader":"Root=1"}"#,
    r#"{"executionArn":"arn:aws:states:local:acme:execution:order:one","maxResults":7,"reverseOrder":true,"nextToken":"abc","error":"\ud83d\ude00"}"#,
    r#"{"taskToken":"tttt","output":"[1,2]","error":"No","cause":"because","includedData":"ALL_DATA","statusFilter":"FAILED"}"#,
];

const DICTIONARY: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\u0000",
    "\\ud800",
    ":",
    ",",
    "null",
    "-",
    "1e999",
    "99999999999999999999",
    "arn:",
    "é",
    "\u{fffd}",
    "\\",
    "maxResults",
    "/",
    "AWS4-HMAC-SHA256 ",
    "Credential=",
    "Signature=",
    "SignedHeaders=",
    ";",
    "=",
    "%",
    "%C3",
    "+",
    "..",
    "aws4_request",
];

fn mutate(random: &mut fastrand::Rng, text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..random.usize(1..6) {
        let place = random.usize(..=text.len());
        match random.u8(..5) {
            0 if place < text.len() => text[place] = random.u8(..),
            1 if place < text.len() => drop(text.remove(place)),
            2 => text.truncate(place),
            3 => {
                let word = random.choice(DICTIONARY.iter()).unwrap().as_bytes();
                text.splice(place..place, word.iter().copied());
            }
            _ => {
                let end = random.usize(place..=text.len());
                let copy = text[place..end].to_vec();
                text.splice(place..place, copy);
            }
        }
    }
    text
}

fn mutate_text(random: &mut fastrand::Rng, text: &str) -> String {
    String::from_utf8_lossy(&mutate(random, text.as_bytes())).into_owned()
}

/// Reads a request in every way, and renders what comes of it.
fn serve(message: &Message<'_>) -> Result<(), ErrorCode> {
    let secret = |_: &str| Some(Secret::new("made-up"));
    let signed = sledge_aws::verify(message, SERVICE, 1_800_000_000_000, secret);
    assert!(signed.is_err());
    let outcome = sledge_aws::Request::read(message);
    let error = outcome.as_ref().err().map(|error| error.code());
    let response = answer::render::<Value>(&outcome.map(|_| answer::Answer::SendTask {}), RequestId(1));
    let body: Value = serde_json::from_slice(response.body()).unwrap();
    assert!(body.is_object());
    assert!(response.body().len() < 64 * 1_024);
    error.map_or(Ok(()), Err)
}

#[test]
fn mutated_bodies_are_answered() {
    let (mut read, mut refused) = (0, 0);
    for seed in 0..10_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let operation = random.choice(Operation::ALL).unwrap();
        let body = random.choice(BODIES).unwrap().as_bytes();
        let body = mutate(&mut random, body);
        match serve(&Sample::of(operation.name(), body).message()) {
            Ok(()) => read += 1,
            Err(ErrorCode::UnknownOperationException | ErrorCode::InternalFailure) => panic!("seed {seed}"),
            Err(_) => refused += 1,
        }
    }
    assert!(read > 200 && refused > 2_000, "{read} read, {refused} refused");
}

#[test]
fn mutated_headers_paths_and_queries_are_answered() {
    let authorization = "AWS4-HMAC-SHA256 Credential=KEY/20270115/local/states/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=\
                         5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    for seed in 0..10_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sample = Sample::of("ListStateMachines", "{}");
        sample.set("x-amz-date", "20270115T080000Z").set("authorization", authorization);
        for _ in 0..random.usize(1..4) {
            let names = sample.headers.keys().cloned().collect::<Vec<HeaderName>>();
            let name = random.choice(names).unwrap();
            let value = mutate(&mut random, sample.headers[&name].as_bytes());
            match (HeaderValue::from_bytes(&value), random.u8(..8)) {
                (_, 0) => drop(sample.headers.remove(&name)),
                (Ok(value), 1) => drop(sample.headers.append(name, value)),
                (Ok(value), _) => drop(sample.headers.insert(name, value)),
                (Err(_), _) => {}
            }
            if sample.headers.is_empty() {
                break;
            }
        }
        if random.bool() {
            sample.query = Some(mutate_text(&mut random, "a=b&c=%20d+e"));
        }
        if random.bool() {
            sample.path = mutate_text(&mut random, "/a/../b%20c/./");
        }
        sample.method = random.choice([Method::POST, Method::GET, Method::from_bytes(b"X").unwrap()]).unwrap();
        let _ = serve(&sample.message());
    }
}

#[test]
fn mutated_arns_are_refused_or_written_back_unchanged() {
    let arns = [
        "arn:aws:states:local:acme:stateMachine:order",
        "arn:aws:states:eu-central-1:1234:execution:order:one",
        "arn:aws:states:local:acme:express:order:one:7",
    ];
    for seed in 0..50_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let arn = random.choice(arns).unwrap();
        let text = mutate_text(&mut random, arn);
        if let Ok(arn) = text.parse::<MachineArn>() {
            assert_eq!(arn.to_string(), text, "seed {seed}");
        }
        if let Ok(arn) = text.parse::<ExecutionArn>() {
            assert_eq!(arn.to_string(), text, "seed {seed}");
        }
    }
}
