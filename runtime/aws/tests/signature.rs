//! Refusals of signatures, in AWS's words; and signatures that AWS has published.

mod support;

use sledge_aws::limits::{AUTHORIZATION_MAX, BODY_MAX, SIGNED_BYTES_MAX, SIGNED_HEADERS_MAX, TARGET_MAX};
use sledge_aws::{ApiError, ErrorCode, Refusal, Secret, verify};
use support::Sample;

/// 2015-08-30T12:36:00Z.
const NOW_MS: i64 = 1_440_938_160_000;
const HEX: &str = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";

/// A request with a header `Authorization` and a date, for the service of AWS's examples.
fn sample(authorization: &str) -> Sample {
    let mut sample = Sample::of("ListStateMachines", "");
    sample.headers.clear();
    sample.set("host", "example.amazonaws.com").set("x-amz-date", "20150830T123600Z").set("authorization", authorization);
    sample
}

fn header(credential: &str, signed: &str, signature: &str) -> String {
    format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed}, Signature={signature}")
}

fn good() -> String {
    header("AKIDEXAMPLE/20150830/us-east-1/service/aws4_request", "host;x-amz-date", HEX)
}

fn outcome(sample: &Sample) -> Result<String, Refusal> {
    let secret = |id: &str| (id == "AKIDEXAMPLE").then(|| Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"));
    verify(&sample.message(), "service", NOW_MS, secret).map(|signer| signer.region)
}

fn refusal(sample: &Sample) -> (ErrorCode, String) {
    let error = ApiError::from(outcome(sample).unwrap_err());
    (error.code(), error.message().to_owned())
}

/// The signatures of the requests get-vanilla, post-vanilla-query and get-header-value-trim of AWS's test suite.
#[test]
fn published_signatures_verify() {
    let mut get = sample(&good());
    get.method = http::Method::GET;
    assert_eq!(outcome(&get), Ok("us-east-1".to_owned()));

    let scope = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
    let mut post = sample(&header(scope, "host;x-amz-date", "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"));
    post.query = Some("Param1=value1".to_owned());
    assert_eq!(outcome(&post), Ok("us-east-1".to_owned()));

    let mut trimmed = sample(&header(
        scope,
        "host;my-header1;my-header2;x-amz-date",
        "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    ));
    trimmed.method = http::Method::GET;
    trimmed.set("my-header1", " value1").set("my-header2", " \"a   b   c\"");
    assert_eq!(outcome(&trimmed), Ok("us-east-1".to_owned()));
}

#[test]
fn unsigned_requests_are_refused() {
    let missing = (ErrorCode::MissingAuthenticationTokenException, "Request is missing Authentication Token".to_owned());
    let mut unsigned = sample("");
    assert_eq!(refusal(&unsigned), missing);
    unsigned.headers.remove("authorization");
    assert_eq!(refusal(&unsigned), missing);
    for other in ["Bearer abc", "Basic abc", "aws4-hmac-sha256 x"] {
        assert_eq!(refusal(&sample(other)), missing);
    }
    unsigned.query = Some("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00".to_owned());
    assert_eq!(refusal(&unsigned), missing);
    unsigned.set("authorization", &good());
    let (code, text) = refusal(&unsigned);
    assert_eq!(code, ErrorCode::InvalidSignatureException);
    assert_eq!(text, "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.");
}

#[test]
fn incomplete_signatures_are_refused_with_what_is_absent() {
    let scope = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
    for (authorization, text) in [
        (
            "AWS4-HMAC-SHA256".to_owned(),
            "Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' parameter. \
             Authorization header requires 'SignedHeaders' parameter. ",
        ),
        (
            format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host"),
            "Authorization header requires 'Signature' parameter. ",
        ),
        (header("", "host", HEX), "Authorization header requires 'Credential' parameter. "),
        ("AWS4-HMAC-SHA512 x".to_owned(), "Unsupported AWS 'algorithm': 'AWS4-HMAC-SHA512' (only AWS4-HMAC-SHA256 for now). "),
        (format!("{}, x", good()), "'x' not a valid key=value pair (missing equal-sign) in Authorization header. "),
        (format!("{}, Region=a", good()), "'Region' is unknown or repeated in Authorization header. "),
        (format!("{}, Signature={HEX}", good()), "'Signature' is unknown or repeated in Authorization header. "),
        (
            header("AKIDEXAMPLE", "host", HEX),
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got 'AKIDEXAMPLE'",
        ),
    ] {
        let (code, message) = refusal(&sample(&authorization));
        assert_eq!((code, message.as_str()), (ErrorCode::IncompleteSignatureException, text), "{authorization}");
    }
}

#[test]
fn dates_are_read_and_checked() {
    let mut undated = sample(&good());
    undated.headers.remove("x-amz-date");
    let (code, text) = refusal(&undated);
    assert_eq!(code, ErrorCode::IncompleteSignatureException);
    assert_eq!(text, "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ");
    undated.set("date", "Sun, 30 Aug 2015 12:36:00 GMT");
    assert_eq!(refusal(&undated).1, "'date' must be a 'SignedHeader' in the AWS Authorization.");

    let at = |date: &str| refusal(sample(&good()).set("x-amz-date", date));
    let text = "Date must be in ISO-8601 'basic format'. Got '2015'. See http://en.wikipedia.org/wiki/ISO_8601";
    assert_eq!(at("2015"), (ErrorCode::IncompleteSignatureException, text.to_owned()));
    let text = "Signature expired: 20150830T123059Z is now earlier than 20150830T123100Z (20150830T123600Z - 5 min.)";
    assert_eq!(at("20150830T123059Z"), (ErrorCode::InvalidSignatureException, text.to_owned()));
    let text = "Signature not yet current: 20150830T124101Z is still later than 20150830T124100Z (20150830T123600Z + 5 min.)";
    assert_eq!(at("20150830T124101Z"), (ErrorCode::InvalidSignatureException, text.to_owned()));
    assert!(at("20150830T123100Z").1.contains("does not match"));
    assert!(at("20150830T124100Z").1.contains("does not match"));
}

#[test]
fn scopes_are_checked_part_by_part() {
    let (code, text) = refusal(&sample(&header("AKIDEXAMPLE/20150831/us east/states/aws5_request", "host;x-amz-date", HEX)));
    assert_eq!(code, ErrorCode::InvalidSignatureException);
    assert_eq!(
        text,
        "Credential should be scoped to a valid region, not 'us east'. Credential should be scoped to correct service: 'service'. Credential should be \
         scoped with a valid terminator: 'aws4_request', not 'aws5_request'. Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date \
         from HTTP: '20150831' != '20150830', from '20150830T123600Z'. "
    );
}

#[test]
fn what_tells_the_service_what_to_do_has_to_be_signed() {
    let scope = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
    for (signed, text) in [
        ("x-amz-date", "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."),
        ("host", "'x-amz-date' must be a 'SignedHeader' in the AWS Authorization."),
        ("host;x-amz-date", "'x-amz-target' must be a 'SignedHeader' in the AWS Authorization."),
        ("x-amz-date;host", "SignedHeaders must have each name once, in lower case and in ascending order. "),
        ("host;host;x-amz-date", "SignedHeaders must have each name once, in lower case and in ascending order. "),
        ("Host;x-amz-date", "SignedHeaders must have each name once, in lower case and in ascending order. "),
        ("host;;x-amz-date", "SignedHeaders must have each name once, in lower case and in ascending order. "),
    ] {
        let mut sample = sample(&header(scope, signed, HEX));
        sample.set("x-amz-target", "AWSStepFunctions.ListStateMachines");
        assert_eq!(refusal(&sample), (ErrorCode::InvalidSignatureException, text.to_owned()), "{signed}");
    }
}

#[test]
fn unknown_keys_session_tokens_and_other_hashes_are_refused() {
    let text = "The security token included in the request is invalid.".to_owned();
    let unknown = sample(&good().replace("AKIDEXAMPLE", "AKIDOTHER"));
    assert_eq!(refusal(&unknown), (ErrorCode::UnrecognizedClientException, text.clone()));
    let signed = "host;x-amz-date;x-amz-security-token";
    let mut session = sample(&header("AKIDEXAMPLE/20150830/us-east-1/service/aws4_request", signed, HEX));
    session.set("x-amz-security-token", "token");
    assert_eq!(refusal(&session), (ErrorCode::UnrecognizedClientException, text));
    for hash in ["UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", HEX] {
        let signed = "host;x-amz-content-sha256;x-amz-date";
        let mut other = sample(&header("AKIDEXAMPLE/20150830/us-east-1/service/aws4_request", signed, HEX));
        other.set("x-amz-content-sha256", hash);
        assert!(refusal(&other).1.starts_with("The request signature we calculated does not match"), "{hash}");
    }
}

#[test]
fn sizes_are_limited() {
    let scope = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
    let text = |sample: &Sample| {
        let (code, text) = refusal(sample);
        assert_eq!(code, ErrorCode::IncompleteSignatureException);
        text
    };
    assert!(text(&sample(&"AWS4-".repeat(AUTHORIZATION_MAX))).contains("bytes"));
    let names = (0..=SIGNED_HEADERS_MAX).map(|number| format!("a{number:04}")).collect::<Vec<_>>().join(";");
    assert!(text(&sample(&header(scope, &names, HEX))).contains("names"));
    let mut long = sample(&header(scope, "a;host;x-amz-date", HEX));
    long.set("a", &"x".repeat(SIGNED_BYTES_MAX));
    assert!(text(&long).contains("signed headers"));
    let mut long = sample(&good());
    long.query = Some("x".repeat(TARGET_MAX + 1));
    assert!(text(&long).contains("query"));
    let mut large = sample(&good());
    large.body = vec![b' '; BODY_MAX + 1];
    assert_eq!(refusal(&large).0, ErrorCode::RequestEntityTooLargeException);
}

#[test]
fn secrets_are_not_printed() {
    assert_eq!(format!("{:?}", Secret::new("secret")), "Secret(..)");
}
