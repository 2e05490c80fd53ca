//! Typed JSON, in and out.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::reply::{Failed, IntoReply, Outgoing};
use crate::request::{FromRequest, Head, Refused};

/// A body in JSON. As a parameter it answers what is none, or has other fields, with status 400 and the place; as a reply it says its content type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(
    /// What it says.
    pub T,
);

impl<'a, T: DeserializeOwned> FromRequest<'a> for Json<T> {
    type Refused = Refused;

    fn from_request(body: &'a [u8], _: impl FnOnce() -> Head) -> Result<Json<T>, Refused> {
        serde_json::from_slice(body).map(Json).map_err(|error| Refused(format!("the body: {error}")))
    }
}

impl<T: Serialize> IntoReply for Json<T> {
    fn reply(self, to: &mut impl Outgoing) -> Result<(), Failed> {
        let text = serde_json::to_vec(&self.0).map_err(|error| Failed(format!("the reply is no JSON: {error}")))?;
        to.header("content-type", b"application/json")?;
        to.body(&text)
    }
}
