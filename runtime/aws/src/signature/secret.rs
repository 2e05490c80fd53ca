//! Secret access keys, and the keys that are derived of them for a day, a region and a service.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::authorization::Credential;

/// A secret access key. It is never printed.
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// The secret key as the client has it.
    #[must_use]
    pub fn new(secret: impl Into<Box<str>>) -> Secret {
        Secret(secret.into())
    }

    /// Whether this secret made the signature of the text. It compares in constant time.
    pub(super) fn has_signed(&self, credential: &Credential<'_>, text: &[u8], signature: &[u8; 32]) -> bool {
        let mut key = keyed(format!("AWS4{}", self.0).as_bytes());
        for part in [credential.date, credential.region, credential.service, credential.terminator] {
            key.update(part.as_bytes());
            key = keyed(&key.finalize().into_bytes());
        }
        key.update(text);
        key.verify_slice(signature).is_ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}
