//! Users and their passwords.

use serde::{Deserialize, Serialize};

use crate::digest;
use crate::records::User;
use crate::world::Error;

use super::Call;

#[derive(Deserialize)]
pub(super) struct Credentials {
    user: u32,
    password: String,
}

#[derive(Serialize)]
pub(super) struct Granted {
    granted: bool,
}

/// A user that is asked about.
#[derive(Deserialize)]
pub(super) struct Of {
    pub(super) user: u32,
}

#[derive(Serialize)]
pub(super) struct Welcome {
    user: u32,
    name: String,
    token: String,
}

#[derive(Serialize)]
pub(super) struct Refused {
    user: u32,
    reason: &'static str,
}

/// Whether the password is the user's. There is none for a user that is not known.
pub(super) fn check(call: &mut Call<'_>, ask: Credentials) -> Result<Granted, Error> {
    let user: Option<User> = call.find(&format!("user/{}", ask.user))?;
    Ok(Granted { granted: user.is_some_and(|user| digest::password(&user.salt, &ask.password) == user.digest) })
}

/// Begins a session.
pub(super) fn welcome(call: &mut Call<'_>, Of { user }: Of) -> Result<Welcome, Error> {
    let User { name, salt, .. } = call.read(&format!("user/{user}"))?;
    let token = digest::text(digest::hash(salt.as_bytes(), u64::from(user)));
    call.write(&format!("session/{user}"), &token)?;
    Ok(Welcome { user, name, token })
}

/// Notes that the password was wrong.
pub(super) fn refuse(call: &mut Call<'_>, ask: Of) -> Result<Refused, Error> {
    call.world.add(&format!("refused/{}", ask.user), 1)?;
    fail(call, ask)
}

pub(super) fn fail(_: &mut Call<'_>, Of { user }: Of) -> Result<Refused, Error> {
    Ok(Refused { user, reason: "the password is wrong" })
}

/// The password of a user that the setup writes.
pub(crate) fn password(user: u32) -> String {
    format!("word-{:04x}", digest::hash(b"password", u64::from(user)) & 0xffff)
}
