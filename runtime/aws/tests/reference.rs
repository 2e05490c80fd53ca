//! Signatures beside AWS's own signer: what it signs verifies, and no change of it does.

mod support;

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{PayloadChecksumKind, SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use http::{HeaderName, HeaderValue, Method};
use sledge_aws::Signer;
use support::Sample;

const KEY: &str = "EXAMPLEKEYACME";
const SECRET: &str = "made-up/secret+of=tests";

/// Signs a request with AWS's signer.
fn signed(sample: &mut Sample, region: &str, time_s: u64, hash: bool) {
    let identity = Credentials::new(KEY, SECRET, None, None, "test").into();
    let mut settings = SigningSettings::default();
    if hash {
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    }
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("states")
        .time(SystemTime::UNIX_EPOCH + Duration::from_secs(time_s))
        .settings(settings)
        .build()
        .unwrap();
    let query = sample.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
    let uri = format!("http://{}{}{query}", sample.headers["host"].to_str().unwrap(), sample.path);
    let headers = sample.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    let request = SignableRequest::new(sample.method.as_str(), uri, headers, SignableBody::Bytes(&sample.body)).unwrap();
    let (instructions, _) = sign(request, &parameters.into()).unwrap().into_parts();
    let headers = instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>();
    for (name, value) in headers {
        sample.set(&name, &value);
    }
}

fn pick(random: &mut fastrand::Rng, alphabet: &str, most: usize) -> String {
    let characters = alphabet.chars().collect::<Vec<_>>();
    (0..random.usize(..=most)).map(|_| characters[random.usize(..characters.len())]).collect()
}

/// A request of any kind, not only of those that the service has.
fn any(random: &mut fastrand::Rng) -> Sample {
    let mut sample = Sample::of("StartExecution", "");
    sample.method = random.choice([Method::POST, Method::GET, Method::PUT]).unwrap();
    sample.path = format!("/{}", pick(random, "ab/.~-_:@!$&'()*+,;=09", 20)) + random.choice(["", "%20", "%2F", "/"]).unwrap();
    if random.bool() {
        sample.query = Some(
            (0..random.usize(..5))
                .map(|_| {
                    format!("{}={}", pick(random, "abAB-_.~", 4), pick(random, "abAB-_.~+:/", 6))
                        + random.choice(["", "%20", "%C3%A4"]).unwrap()
                })
                .collect::<Vec<_>>()
                .join("&"),
        );
    }
    sample.body = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
    for _ in 0..random.usize(..4) {
        let name = format!("x-{}", pick(random, "abc-xyz", 6));
        sample.headers.insert(
            HeaderName::try_from(name).unwrap(),
            HeaderValue::try_from(format!("v{}", pick(random, "ab  ,;=", 12))).unwrap(),
        );
    }
    sample
}

#[test]
fn what_the_reference_signs_verifies() {
    for seed in 0..2_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sample = any(&mut random);
        let region = random.choice(["local", "eu-central-1", "us-gov_1.x"]).unwrap();
        let time_s = random.u64(0..4_000_000_000);
        signed(&mut sample, region, time_s, random.bool());
        let now_ms = i64::try_from(time_s).unwrap() * 1_000 + random.i64(-299_000..299_000);
        let expected = Signer { key_id: KEY.to_owned(), region: region.to_owned() };
        assert_eq!(sample.verify(now_ms, KEY, SECRET), Ok(expected), "seed {seed}: {sample:?}");
    }
}

/// Another byte at a place of a text, of those that a header can have.
fn changed(text: &[u8], place: usize, random: &mut fastrand::Rng) -> Vec<u8> {
    let mut text = text.to_vec();
    let before = text[place];
    while text[place] == before {
        text[place] = random.u8(32..127);
    }
    text
}

#[test]
fn no_request_with_one_changed_byte_verifies() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sample =
            Sample::of("StartExecution", r#"{"stateMachineArn": "arn:aws:states:local:acme:stateMachine:order", "input": "{}"}"#);
        sample.path = "/a/bc".to_owned();
        sample.query = Some("key=value&other=thing".to_owned());
        let time_s = 1_800_000_000;
        signed(&mut sample, "local", time_s, seed % 2 == 0);
        let now_ms = i64::try_from(time_s).unwrap() * 1_000;
        assert!(sample.verify(now_ms, KEY, SECRET).is_ok());
        let refuse = |other: &Sample, what: &str| {
            assert!(other.verify(now_ms, KEY, SECRET).is_err(), "seed {seed}: {what} changed: {other:?}");
        };
        for place in 0..sample.body.len() {
            refuse(&Sample { body: changed(&sample.body, place, &mut random), ..sample.clone() }, "the body");
        }
        for name in sample.headers.keys() {
            let value = sample.headers[name].as_bytes();
            for place in 0..value.len() {
                let mut other = sample.clone();
                other.headers.insert(name, HeaderValue::from_bytes(&changed(value, place, &mut random)).unwrap());
                // A space at the end of a value is no part of it, in HTTP as in a signature.
                refuse(&other, name.as_str());
            }
            let mut other = sample.clone();
            other.headers.remove(name);
            refuse(&other, name.as_str());
            other.headers.append(name, sample.headers[name].clone());
            other.headers.append(name, sample.headers[name].clone());
            refuse(&other, name.as_str());
        }
        for place in 1..sample.path.len() {
            let path = String::from_utf8(changed(sample.path.as_bytes(), place, &mut random)).unwrap();
            refuse(&Sample { path, ..sample.clone() }, "the path");
        }
        let query = sample.query.clone().unwrap();
        for place in 0..query.len() {
            let query = String::from_utf8(changed(query.as_bytes(), place, &mut random)).unwrap();
            refuse(&Sample { query: Some(query), ..sample.clone() }, "the query");
        }
        for method in [Method::GET, Method::PUT, Method::PATCH, Method::HEAD] {
            refuse(&Sample { method, ..sample.clone() }, "the method");
        }
    }
}

#[test]
fn no_signature_with_one_changed_bit_verifies() {
    let mut sample = Sample::of("ListStateMachines", "{}");
    signed(&mut sample, "local", 1_800_000_000, false);
    let text = sample.headers["authorization"].to_str().unwrap().to_owned();
    for place in 0..text.len() {
        for bit in 0..7 {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 1 << bit;
            let Ok(value) = HeaderValue::from_bytes(&bytes) else { continue };
            let mut other = sample.clone();
            other.headers.insert("authorization", value);
            assert!(other.verify(1_800_000_000_000, KEY, SECRET).is_err(), "{other:?}");
        }
    }
}

#[test]
fn a_signed_hash_that_is_not_the_bodys_is_refused() {
    let own = Sample::of("ListStateMachines", "{}");
    let refused = |hash: &str| {
        let mut sample = own.clone();
        sample.set("x-amz-content-sha256", hash);
        signed(&mut sample, "local", 1_800_000_000, false);
        sample.verify(1_800_000_000_000, KEY, SECRET).is_err()
    };
    assert!(!refused("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"));
    for hash in [
        "UNSIGNED-PAYLOAD",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "44136FA355B3678A1146AD16F7E8649E94FB4FC21FE77E8310C060F61CAAFF8A",
    ] {
        assert!(refused(hash), "{hash}");
    }
}
