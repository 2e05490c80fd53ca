//! Cards: 16 digits, of which the first four are the issuer's and the last one checks the others.

use serde::{Deserialize, Serialize};

use crate::records::Limit;
use crate::world::Error;

use super::Call;

const DIGITS: usize = 16;

#[derive(Deserialize)]
pub(super) struct Card {
    card: String,
}

#[derive(Serialize)]
pub(super) struct Valid {
    valid: bool,
}

#[derive(Serialize)]
pub(super) struct Declined {
    declined: bool,
    /// Its last digits.
    card: String,
}

/// The sum of the digits, every second one doubled (Luhn): a multiple of ten for a card.
fn sum(digits: &[u8]) -> u32 {
    let weighed = |(place, digit): (usize, &u8)| {
        let digit = u32::from(digit - b'0') << (place % 2);
        digit / 10 + digit % 10
    };
    digits.iter().rev().enumerate().map(weighed).sum()
}

/// Whether it has the digits of a card, and its issuer; `None` if it has not 16 digits.
pub(super) fn parsed(card: &str) -> Option<(bool, u32)> {
    let digits = card.as_bytes();
    let is_number = digits.len() == DIGITS && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        (sum(digits).is_multiple_of(10), digits[..4].iter().fold(0, |issuer, digit| issuer * 10 + u32::from(digit - b'0')))
    })
}

/// A card's issuer, and whether it pays so much. An issuer that is not known pays nothing.
pub(super) fn charge(call: &mut Call<'_>, card: &str, cents: u64) -> Result<(u32, bool), Error> {
    let Some((_, issuer)) = parsed(card) else {
        return Err(Error::Asked(format!("`card` has to be {DIGITS} digits")));
    };
    let limit: Option<Limit> = call.find(&format!("issuer/{issuer}"))?;
    Ok((issuer, limit.is_some_and(|limit| cents <= limit.cents_max)))
}

pub(super) fn check(_: &mut Call<'_>, Card { card }: Card) -> Result<Valid, Error> {
    Ok(Valid { valid: parsed(&card).is_some_and(|(is_valid, _)| is_valid) })
}

pub(super) fn decline(_: &mut Call<'_>, Card { card }: Card) -> Result<Declined, Error> {
    let last = card.char_indices().rev().nth(3).map_or(0, |(at, _)| at);
    Ok(Declined { declined: true, card: card[last..].to_owned() })
}

/// A card of an issuer with this account: one whose digits are right, or not.
pub(crate) fn made(issuer: u32, account: u32, is_valid: bool) -> String {
    let first = format!("{issuer:04}{account:011}");
    let check =
        (0..10).find(|check| sum(format!("{first}{check}").as_bytes()).is_multiple_of(10) == is_valid).unwrap_or_default();
    format!("{first}{check}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digit_checks_the_others() {
        // A number of which it is known that 4 checks it.
        assert_eq!(sum(b"17893729974"), 60);
        for account in 0..50 {
            assert_eq!(parsed(&made(4003, account, true)), Some((true, 4003)));
            assert_eq!(parsed(&made(4003, account, false)), Some((false, 4003)));
        }
        assert_eq!((parsed("4003"), parsed("400300000000000x")), (None, None));
    }
}
