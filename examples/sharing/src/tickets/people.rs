//! Users, their contacts, and what they have searched for.

use serde::{Deserialize, Serialize};

use crate::world::{Error, parse};

use super::Call;
use super::records::{Contact, User};
use super::trips::Of;

/// How many searches are kept.
const KEPT_MAX: usize = 8;

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Search {
    pub(super) user: u32,
    pub(super) text: String,
}

pub(super) fn user(call: &mut Call<'_>, ask: Of) -> Result<User, Error> {
    call.read(&format!("user/{}", ask.number))
}

pub(super) fn contact(call: &mut Call<'_>, ask: Of) -> Result<Contact, Error> {
    call.read(&format!("contact/{}", ask.number))
}

/// Puts a search behind the user's earlier ones. Of two at the same time one may be lost: nothing depends on them.
pub(super) fn remember(call: &mut Call<'_>, ask: Search) -> Result<Of, Error> {
    let key = format!("history/{}", ask.user);
    let mut searches: Vec<String> = match call.world.get(&key)? {
        Some(entry) => parse(&key, &entry.value)?,
        None => Vec::new(),
    };
    searches.push(ask.text);
    let old = searches.len().saturating_sub(KEPT_MAX);
    call.write(&key, &searches.split_off(old))?;
    Ok(Of { number: ask.user })
}
