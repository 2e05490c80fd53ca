//! Why a request is not accepted, in AWS's words.

use crate::error::{ApiError, ErrorCode};

/// Why a signature is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request has no signature.
    #[error("Request is missing Authentication Token")]
    Missing,
    /// A part of the signature is absent or cannot be read; the text says which.
    #[error("{0}")]
    Incomplete(String),
    /// No such access key, or a session token, which the server never gives.
    #[error("The security token included in the request is invalid.")]
    UnknownKey,
    /// The signature is for another request, key, time or service; the text says what is known.
    #[error("{0}")]
    Invalid(String),
    /// The body is too large to be hashed.
    #[error("The request is too large")]
    TooLarge,
}

impl Refusal {
    pub(super) fn incomplete(text: impl Into<String>) -> Refusal {
        Refusal::Incomplete(text.into())
    }

    pub(super) fn invalid(text: impl Into<String>) -> Refusal {
        Refusal::Invalid(text.into())
    }

    pub(super) fn mismatch() -> Refusal {
        Refusal::invalid(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. \
             Consult the service documentation for details.",
        )
    }

    pub(super) fn unsigned(header: &str) -> Refusal {
        Refusal::invalid(format!("{header} must be a 'SignedHeader' in the AWS Authorization."))
    }

    pub(super) fn date(value: &str) -> Refusal {
        let given = value.chars().take(40).collect::<String>();
        Refusal::incomplete(format!(
            "Date must be in ISO-8601 'basic format'. Got '{given}'. See http://en.wikipedia.org/wiki/ISO_8601"
        ))
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> ApiError {
        let code = match refusal {
            Refusal::Missing => ErrorCode::MissingAuthenticationTokenException,
            Refusal::Incomplete(_) => ErrorCode::IncompleteSignatureException,
            Refusal::UnknownKey => ErrorCode::UnrecognizedClientException,
            Refusal::Invalid(_) => ErrorCode::InvalidSignatureException,
            Refusal::TooLarge => return ApiError::too_large(),
        };
        ApiError::new(code, refusal.to_string())
    }
}
