//! Signature Version 4 in the header `Authorization`.
//!
//! - `authorization`: the header's parts; `canonical`: the request as it was signed; `secret`: keys and what is derived of them;
//!   `refusal`: why a request is not accepted.
//!
//! The verifier is stricter than AWS where a gap would let a request be changed: each header `x-amz-*` has to be signed (`x-amz-target` names the operation), names
//! of signed headers are in ascending order without repetition, and the body's hash is computed, never taken from the client. Signed queries (presigned URLs) and
//! session tokens are not accepted.
//!
//! A request that was recorded verifies again for [`SKEW_MAX_S`] seconds, as at AWS: TLS keeps it private.

mod authorization;
mod canonical;
mod refusal;
mod secret;

use sha2::{Digest, Sha256};

pub use refusal::Refusal;
pub use secret::Secret;

use crate::arn::is_scope;
use crate::instant::Instant;
use crate::limits::{BODY_MAX, SKEW_MAX_S, TARGET_MAX};
use crate::message::Message;
use authorization::{Authorization, Credential};

/// Whose signature it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// The access key's ID.
    pub key_id: String,
    /// The region that the client signed for.
    pub region: String,
}

/// Verifies a request's signature for a `service` at a time in milliseconds since 1970, with the secret that `secrets` has for an access key's ID.
///
/// # Errors
/// A [`Refusal`]: which converts to the error that AWS answers.
pub fn verify(
    message: &Message<'_>,
    service: &str,
    now_ms: i64,
    secrets: impl FnOnce(&str) -> Option<Secret>,
) -> Result<Signer, Refusal> {
    if message.body.len() > BODY_MAX {
        return Err(Refusal::TooLarge);
    }
    if message.path.len() > TARGET_MAX || message.query.is_some_and(|query| query.len() > TARGET_MAX) {
        return Err(Refusal::incomplete(format!("The path or the query has more than {TARGET_MAX} bytes. ")));
    }
    let header = credentials(message)?;
    let authorization =
        Authorization::read(header, message.headers.contains_key("x-amz-date") || message.headers.contains_key("date"))?;
    let (date_header, signed_at) = date(message)?;
    check_age(signed_at, now_ms)?;
    check_signed(message, date_header, &authorization.signed_headers)?;
    check_scope(&authorization.credential, service, signed_at)?;
    let Credential { key_id, region, .. } = authorization.credential;
    if message.headers.contains_key("x-amz-security-token") {
        return Err(Refusal::UnknownKey);
    }
    let secret = secrets(key_id).ok_or(Refusal::UnknownKey)?;

    let body_hash = hex(&Sha256::digest(message.body));
    if message.headers.get_all("x-amz-content-sha256").iter().any(|given| given.as_bytes() != body_hash.as_bytes()) {
        return Err(Refusal::mismatch());
    }
    let request = canonical::request(message, &authorization.signed_headers, &body_hash)?;
    let signed_at = signed_at.basic();
    let scope = authorization.credential.scope();
    let text = format!("{}\n{signed_at}\n{scope}\n{}", authorization::ALGORITHM, hex(&Sha256::digest(&request)));
    if secret.has_signed(&authorization.credential, text.as_bytes(), &authorization.signature) {
        Ok(Signer { key_id: key_id.to_owned(), region: region.to_owned() })
    } else {
        Err(Refusal::mismatch())
    }
}

/// The header with the signature.
fn credentials<'a>(message: &Message<'a>) -> Result<&'a str, Refusal> {
    let in_query =
        message.query.is_some_and(|query| query.split('&').any(|pair| pair.split('=').next() == Some("X-Amz-Algorithm")));
    if !message.headers.contains_key("authorization") {
        return Err(Refusal::Missing);
    }
    if in_query {
        return Err(Refusal::invalid("Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."));
    }
    message.header("authorization").ok_or_else(|| Refusal::incomplete("Authorization header is repeated or is not text. "))
}

/// The header with the time of the signature, and the time.
fn date(message: &Message<'_>) -> Result<(&'static str, Instant), Refusal> {
    let (name, read) = if message.headers.contains_key("x-amz-date") {
        ("x-amz-date", Instant::from_basic as fn(&str) -> Option<Instant>)
    } else {
        ("date", Instant::from_http as fn(&str) -> Option<Instant>)
    };
    let value = message.header(name).unwrap_or_default();
    let instant = read(value).ok_or_else(|| Refusal::date(value))?;
    Ok((name, instant))
}

fn check_age(signed_at: Instant, now_ms: i64) -> Result<(), Refusal> {
    let now = Instant::from_ms(now_ms).ok_or_else(Refusal::mismatch)?;
    let minutes = SKEW_MAX_S / 60;
    let (at, now_text) = (signed_at.basic(), now.basic());
    if signed_at.seconds() < now.seconds().saturating_sub(SKEW_MAX_S) {
        let bound = now.plus(-SKEW_MAX_S).basic();
        return Err(Refusal::invalid(format!(
            "Signature expired: {at} is now earlier than {bound} ({now_text} - {minutes} min.)"
        )));
    }
    if signed_at.seconds() > now.seconds().saturating_add(SKEW_MAX_S) {
        let bound = now.plus(SKEW_MAX_S).basic();
        let text = format!("Signature not yet current: {at} is still later than {bound} ({now_text} + {minutes} min.)");
        return Err(Refusal::invalid(text));
    }
    Ok(())
}

/// The host, the date and everything that tells the service what to do are signed.
fn check_signed(message: &Message<'_>, date: &str, signed: &[&str]) -> Result<(), Refusal> {
    if !signed.contains(&"host") {
        return Err(Refusal::unsigned("'Host' or ':authority'"));
    }
    if !signed.contains(&date) {
        return Err(Refusal::unsigned(&format!("'{date}'")));
    }
    match message.headers.keys().find(|name| name.as_str().starts_with("x-amz-") && !signed.contains(&name.as_str())) {
        Some(name) => Err(Refusal::unsigned(&format!("'{name}'"))),
        None => Ok(()),
    }
}

fn check_scope(credential: &Credential<'_>, service: &str, signed_at: Instant) -> Result<(), Refusal> {
    let Credential { date, region, service: scoped, terminator, .. } = credential;
    let mut text = String::new();
    if !is_scope(region) {
        text += &format!("Credential should be scoped to a valid region, not '{region}'. ");
    }
    if *scoped != service {
        text += &format!("Credential should be scoped to correct service: '{service}'. ");
    }
    if *terminator != authorization::TERMINATOR {
        text += &format!("Credential should be scoped with a valid terminator: 'aws4_request', not '{terminator}'. ");
    }
    let signed_at = signed_at.basic();
    let day = signed_at.get(..8).unwrap_or_default();
    if *date != day {
        text += "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: ";
        text += &format!("'{date}' != '{day}', from '{signed_at}'. ");
    }
    if text.is_empty() { Ok(()) } else { Err(Refusal::invalid(text)) }
}

/// In lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
