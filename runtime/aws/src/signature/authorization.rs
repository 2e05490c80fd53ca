//! The header `Authorization`: `AWS4-HMAC-SHA256 Credential=ID/DATE/REGION/SERVICE/aws4_request, SignedHeaders=A;B, Signature=HEX`.

use super::refusal::Refusal;
use crate::limits::{AUTHORIZATION_MAX, SIGNED_HEADERS_MAX};

/// The one algorithm.
pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// What ends a scope.
pub(super) const TERMINATOR: &str = "aws4_request";
/// Characters of a client's text that an error quotes.
const QUOTED_MAX: usize = 100;

/// What the header says.
pub(super) struct Authorization<'a> {
    pub(super) credential: Credential<'a>,
    /// In strictly ascending order.
    pub(super) signed_headers: Vec<&'a str>,
    pub(super) signature: [u8; 32],
}

/// Which key, and for what it is derived.
pub(super) struct Credential<'a> {
    pub(super) key_id: &'a str,
    pub(super) date: &'a str,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) terminator: &'a str,
}

impl<'a> Credential<'a> {
    fn read(text: &'a str) -> Result<Credential<'a>, Refusal> {
        match text.split('/').collect::<Vec<_>>().as_slice() {
            &[key_id, date, region, service, terminator] => Ok(Credential { key_id, date, region, service, terminator }),
            _ => {
                let about = "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term";
                Err(Refusal::incomplete(format!("{about}, got '{}'", quote(text))))
            }
        }
    }

    /// The scope, as it is signed.
    pub(super) fn scope(&self) -> String {
        format!("{}/{}/{}/{}", self.date, self.region, self.service, self.terminator)
    }
}

impl<'a> Authorization<'a> {
    /// Reads the header. `dated` says whether the request has a date, of which AWS complains here.
    pub(super) fn read(text: &'a str, dated: bool) -> Result<Authorization<'a>, Refusal> {
        if text.len() > AUTHORIZATION_MAX {
            return Err(Refusal::incomplete(format!("Authorization header has more than {AUTHORIZATION_MAX} bytes. ")));
        }
        if !text.starts_with("AWS4-") {
            return Err(Refusal::Missing);
        }
        let (algorithm, parameters) = text.split_once(' ').unwrap_or((text, ""));
        if algorithm != ALGORITHM {
            let text = format!("Unsupported AWS 'algorithm': '{}' (only {ALGORITHM} for now). ", quote(algorithm));
            return Err(Refusal::incomplete(text));
        }
        let [credential, signature, signed_headers] = parameters_of(parameters)?;
        let mut missing = String::new();
        for (name, value) in [("Credential", credential), ("Signature", signature), ("SignedHeaders", signed_headers)] {
            if value.is_none_or(str::is_empty) {
                missing += &format!("Authorization header requires '{name}' parameter. ");
            }
        }
        if !dated {
            missing += "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ";
        }
        match (credential, signature, signed_headers) {
            (Some(credential), Some(signature), Some(signed)) if missing.is_empty() => Ok(Authorization {
                credential: Credential::read(credential)?,
                signature: signature_of(signature).ok_or_else(Refusal::mismatch)?,
                signed_headers: names_of(signed)?,
            }),
            _ => Err(Refusal::incomplete(missing)),
        }
    }
}

/// The values of `Credential`, `Signature` and `SignedHeaders`.
fn parameters_of(text: &str) -> Result<[Option<&str>; 3], Refusal> {
    let mut values = [None; 3];
    for parameter in text.split(',').map(|parameter| parameter.trim_start_matches(' ')).filter(|_| !text.is_empty()) {
        let (name, value) = parameter.split_once('=').ok_or_else(|| {
            let about = "not a valid key=value pair (missing equal-sign) in Authorization header. ";
            Refusal::incomplete(format!("'{}' {about}", quote(parameter)))
        })?;
        let place = ["Credential", "Signature", "SignedHeaders"].iter().position(|known| *known == name);
        match place.and_then(|place| values.get_mut(place)) {
            Some(slot @ None) => *slot = Some(value),
            _ => {
                let about = "is unknown or repeated in Authorization header. ";
                return Err(Refusal::incomplete(format!("'{}' {about}", quote(name))));
            }
        }
    }
    Ok(values)
}

/// 32 bytes of 64 lower-case digits.
fn signature_of(text: &str) -> Option<[u8; 32]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() || pairs.len() != 32 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? * 16 + digit(*low)?;
    }
    Some(bytes)
}

fn names_of(text: &str) -> Result<Vec<&str>, Refusal> {
    let names = text.split(';').take(SIGNED_HEADERS_MAX + 1).collect::<Vec<_>>();
    if names.len() > SIGNED_HEADERS_MAX {
        return Err(Refusal::incomplete(format!("SignedHeaders has more than {SIGNED_HEADERS_MAX} names. ")));
    }
    let lower = |name: &&str| !name.is_empty() && !name.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii_graphic());
    if names.iter().all(lower) && names.is_sorted_by(|one, next| one < next) {
        Ok(names)
    } else {
        Err(Refusal::invalid("SignedHeaders must have each name once, in lower case and in ascending order. "))
    }
}

fn quote(text: &str) -> String {
    text.chars().take(QUOTED_MAX).collect()
}
