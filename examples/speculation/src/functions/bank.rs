//! Transfers between accounts.

use serde::{Deserialize, Serialize};

use crate::records::{Limit, User};
use crate::world::Error;

use super::Call;

#[derive(Deserialize)]
pub(super) struct Transfer {
    user: u32,
    to: u32,
    amount_cents: u64,
}

#[derive(Deserialize)]
pub(super) struct Numbered {
    /// The number of the transfer.
    transfer: u64,
    #[serde(flatten)]
    what: Transfer,
}

#[derive(Serialize)]
pub(super) struct Allowed {
    allowed: bool,
}

#[derive(Serialize)]
pub(super) struct Moved {
    moved_cents: u64,
}

#[derive(Serialize)]
pub(super) struct Receipt {
    transfer: u64,
    from: u32,
    to: u32,
    amount_cents: u64,
    text: String,
}

#[derive(Serialize)]
pub(super) struct Declined {
    declined_cents: u64,
    limit_cents: u64,
}

/// Whether the amount is within the user's limit, and goes to another account.
pub(super) fn check(call: &mut Call<'_>, Transfer { user, to, amount_cents }: Transfer) -> Result<Allowed, Error> {
    let limit: Limit = call.read(&format!("limit/{user}"))?;
    let receiver: Option<User> = call.find(&format!("user/{to}"))?;
    Ok(Allowed { allowed: user != to && receiver.is_some() && (1..=limit.cents_max).contains(&amount_cents) })
}

/// Moves the money. What all accounts have together stays the same.
pub(super) fn transfer(call: &mut Call<'_>, Transfer { user, to, amount_cents }: Transfer) -> Result<Moved, Error> {
    let amount = i64::try_from(amount_cents).map_err(|_| Error::Asked(format!("`amount_cents` is {amount_cents}")))?;
    let [from_key, to_key] = [user, to].map(|account| format!("balance/{account}"));
    let from: i64 = call.read(&from_key)?;
    let to: i64 = call.read(&to_key)?;
    if from_key != to_key {
        call.write(&from_key, &from.saturating_sub(amount))?;
        call.write(&to_key, &to.saturating_add(amount))?;
    }
    Ok(Moved { moved_cents: amount_cents })
}

pub(super) fn receipt(call: &mut Call<'_>, Numbered { transfer, what }: Numbered) -> Result<Receipt, Error> {
    let Transfer { user: from, to, amount_cents } = what;
    let receiver: User = call.read(&format!("user/{to}"))?;
    let text = format!("{}.{:02} to {}", amount_cents / 100, amount_cents % 100, receiver.name);
    let receipt = Receipt { transfer, from, to, amount_cents, text };
    call.write(&format!("receipt/{transfer}"), &receipt)?;
    Ok(receipt)
}

pub(super) fn decline(call: &mut Call<'_>, Transfer { user, amount_cents, .. }: Transfer) -> Result<Declined, Error> {
    let limit: Limit = call.read(&format!("limit/{user}"))?;
    Ok(Declined { declined_cents: amount_cents, limit_cents: limit.cents_max })
}
