//! `error-code`: why there is no response, or no more of a body.

use awsm_abi::types::ValType::I32;

use super::TYPES;
use crate::host::Effect::Stream;
use crate::host::canonical::{Lower, Lowering, Place, canonical, variant};
use crate::host::wasi2::error::IoError;
use crate::host::{BodyError, Call, Flat, HostFunction, Stop};
use crate::upstream::{Cause, Failure};

/// The cases' names, in their order.
const NAMES: [&str; 39] = [
    "DNS-timeout",
    "DNS-error",
    "destination-not-found",
    "destination-unavailable",
    "destination-IP-prohibited",
    "destination-IP-unroutable",
    "connection-refused",
    "connection-terminated",
    "connection-timeout",
    "connection-read-timeout",
    "connection-write-timeout",
    "connection-limit-reached",
    "TLS-protocol-error",
    "TLS-certificate-error",
    "TLS-alert-received",
    "HTTP-request-denied",
    "HTTP-request-length-required",
    "HTTP-request-body-size",
    "HTTP-request-method-invalid",
    "HTTP-request-URI-invalid",
    "HTTP-request-URI-too-long",
    "HTTP-request-header-section-size",
    "HTTP-request-header-size",
    "HTTP-request-trailer-section-size",
    "HTTP-request-trailer-size",
    "HTTP-response-incomplete",
    "HTTP-response-header-section-size",
    "HTTP-response-header-size",
    "HTTP-response-body-size",
    "HTTP-response-trailer-section-size",
    "HTTP-response-trailer-size",
    "HTTP-response-transfer-coding",
    "HTTP-response-content-coding",
    "HTTP-response-timeout",
    "HTTP-upgrade-failed",
    "HTTP-protocol-error",
    "loop-detected",
    "configuration-error",
    "internal-error",
];
/// How many cases there are.
pub(in crate::host) const CASES: u32 = NAMES.len() as u32;
/// The case that says something in words.
pub(super) const INTERNAL_ERROR: u32 = CASES - 1;

/// An `error-code`, as far as the host says any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum ErrorCode {
    DnsError,
    DestinationUnavailable,
    DestinationIpProhibited,
    ConnectionRefused,
    ConnectionTerminated,
    ConnectionTimeout,
    ConnectionReadTimeout,
    ConnectionLimitReached,
    TlsProtocolError,
    HttpRequestDenied,
    /// So much was written of a request that was to have another length.
    HttpRequestBodySize(u64),
    HttpRequestMethodInvalid,
    HttpRequestUriInvalid,
    /// So much was written of a response that was to have another length.
    HttpResponseBodySize(u64),
    HttpProtocolError,
    /// What a component has said, by its case; nothing is kept of what else it said.
    Said(u8),
}

impl ErrorCode {
    /// Its case.
    const fn case(self) -> u8 {
        match self {
            ErrorCode::DnsError => 1,
            ErrorCode::DestinationUnavailable => 3,
            ErrorCode::DestinationIpProhibited => 4,
            ErrorCode::ConnectionRefused => 6,
            ErrorCode::ConnectionTerminated => 7,
            ErrorCode::ConnectionTimeout => 8,
            ErrorCode::ConnectionReadTimeout => 9,
            ErrorCode::ConnectionLimitReached => 11,
            ErrorCode::TlsProtocolError => 12,
            ErrorCode::HttpRequestDenied => 15,
            ErrorCode::HttpRequestBodySize(_) => 17,
            ErrorCode::HttpRequestMethodInvalid => 18,
            ErrorCode::HttpRequestUriInvalid => 19,
            ErrorCode::HttpResponseBodySize(_) => 28,
            ErrorCode::HttpProtocolError => 35,
            ErrorCode::Said(case) => case,
        }
    }

    /// Its name.
    pub(in crate::host) const fn name(self) -> &'static str {
        NAMES[self.case() as usize]
    }
}

/// The name of a case that a component says.
pub(super) fn name(case: u32) -> &'static str {
    NAMES.get(case as usize).copied().unwrap_or_default()
}

/// Looks at what a case holds beside numbers and strings, where the case is argument `index`: options, in the form in which it is flat.
pub(super) fn check_payload(call: &Call<'_>, index: usize, case: u32) -> Result<(), Stop> {
    let options: &[usize] = match case {
        // A text and a number, which may both be missing.
        1 | 24 | 27 | 30 => &[1, 4],
        14 => &[1, 3],
        22 if call.is_some(index + 1)? => &[2, 5],
        17 | 21 | 23 | 26 | 28 | 29 | 31 | 32 | INTERNAL_ERROR => &[1],
        _ => &[],
    };
    options.iter().try_for_each(|place| call.is_some(index + place).map(drop))
}

/// Whether a case blames another server: resolving, connecting, TLS, and what is wrong with a response.
pub(super) const fn is_of_upstream(case: u32) -> bool {
    matches!(case, 0..=14 | 25..=34)
}

impl From<&Failure> for ErrorCode {
    fn from(failure: &Failure) -> ErrorCode {
        match failure {
            Failure::NotAllowed { .. } => ErrorCode::HttpRequestDenied,
            Failure::AddressNotAllowed { .. } => ErrorCode::DestinationIpProhibited,
            Failure::Unreachable { cause: Cause::Name, .. } => ErrorCode::DnsError,
            Failure::Unreachable { cause: Cause::Refused, .. } => ErrorCode::ConnectionRefused,
            Failure::Unreachable { cause: Cause::Tls, .. } => ErrorCode::TlsProtocolError,
            Failure::Unreachable { cause: Cause::Other, .. } => ErrorCode::DestinationUnavailable,
            Failure::ConnectTimeout => ErrorCode::ConnectionTimeout,
            Failure::Timeout(_) => ErrorCode::ConnectionReadTimeout,
            Failure::NotRecorded { bytes, .. } => ErrorCode::HttpRequestBodySize(*bytes as u64),
            Failure::Reset(_) | Failure::Broken(_) => ErrorCode::HttpProtocolError,
        }
    }
}

impl From<BodyError> for ErrorCode {
    fn from(error: BodyError) -> ErrorCode {
        match error {
            BodyError::TooLarge => ErrorCode::HttpProtocolError,
            BodyError::TooSlow => ErrorCode::ConnectionReadTimeout,
            BodyError::Broken => ErrorCode::ConnectionTerminated,
        }
    }
}

impl Lower for ErrorCode {
    // `option<field-size-payload>` is the largest of what cases hold, `option<u64>` the most aligned.
    const SIZE: u32 = variant::size(24, Self::ALIGN);
    const ALIGN: u32 = 8;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        to.case(place, self.case());
        let payload = place.plus(variant::payload(Self::ALIGN));
        match self {
            ErrorCode::DnsError => (Some("address not available"), None::<u16>).lower(to, payload),
            ErrorCode::HttpRequestBodySize(bytes) | ErrorCode::HttpResponseBodySize(bytes) => Some(bytes).lower(to, payload),
            _ => Ok(()),
        }
    }
}

/// The function that is in no resource.
pub(in crate::host) const FUNCTIONS: &[HostFunction] =
    &[canonical(TYPES, "http-error-code", &[I32, I32, I32], &[I32], Stream, http_error_code)];

/// `http-error-code(err: borrow<io-error>) -> option<error-code>`
fn http_error_code(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let code = call.borrowed::<IoError>(1)?.http;
    call.lower(2, code)
}
