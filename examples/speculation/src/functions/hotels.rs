//! Hotels: those of a city, the best of them, its rooms, and what is paid for.

use serde::{Deserialize, Serialize};

use crate::records::{Hotel, Reservation, Season};
use crate::world::Error;

use super::Call;

/// Most nights of a stay.
pub(crate) const NIGHTS_MAX: u32 = 3;

#[derive(Deserialize)]
pub(super) struct Search {
    city: u32,
    date: u32,
}

#[derive(Deserialize)]
pub(super) struct Rank {
    hotels: Vec<Hotel>,
    /// What a kilometre to the middle of the city is worth.
    km_cents: u64,
}

#[derive(Deserialize)]
pub(super) struct Stay {
    hotel: u32,
    date: u32,
    nights: u32,
}

#[derive(Deserialize)]
pub(super) struct Reserve {
    #[serde(flatten)]
    stay: Stay,
    user: u32,
    /// Of a night.
    cents: u64,
    booking: u64,
}

#[derive(Deserialize)]
pub(super) struct Pay {
    booking: u64,
    card: String,
}

#[derive(Deserialize)]
pub(super) struct Confirm {
    user: u32,
    booking: u64,
    cents: u64,
}

#[derive(Serialize)]
pub(super) struct Found {
    hotels: Vec<Hotel>,
}

#[derive(Serialize)]
pub(super) struct Best {
    hotel: u32,
    cents: u64,
}

#[derive(Serialize)]
pub(super) struct Free {
    free: bool,
}

#[derive(Serialize)]
pub(super) struct Reserved {
    booking: u64,
}

#[derive(Serialize)]
pub(super) struct Paid {
    paid: bool,
    cents: u64,
}

#[derive(Serialize)]
pub(super) struct Confirmed {
    booking: u64,
    text: String,
}

#[derive(Serialize)]
pub(super) struct Sorry {
    city: u32,
    date: u32,
    reason: &'static str,
}

/// What the hotels of a city cost on a day.
pub(crate) fn on_day(mut hotels: Vec<Hotel>, season: Season) -> Vec<Hotel> {
    hotels.iter_mut().for_each(|hotel| hotel.cents = hotel.cents * season.percent / 100);
    hotels
}

/// The one that costs least, the way to the middle of the city included.
pub(crate) fn best(hotels: &[Hotel], km_cents: u64) -> Option<Hotel> {
    hotels.iter().min_by_key(|hotel| (hotel.cents + hotel.km * km_cents, hotel.hotel)).copied()
}

pub(super) fn search(call: &mut Call<'_>, Search { city, date }: Search) -> Result<Found, Error> {
    let Some(hotels) = call.find(&format!("city/{city}"))? else {
        return Err(Error::Asked(format!("`city` is {city}; there is none with that number")));
    };
    let season = call.read(&format!("season/{}", date % 7))?;
    Ok(Found { hotels: on_day(hotels, season) })
}

pub(super) fn rank(_: &mut Call<'_>, Rank { hotels, km_cents }: Rank) -> Result<Best, Error> {
    let best = best(&hotels, km_cents).ok_or_else(|| Error::Asked("`hotels` is empty".to_owned()))?;
    Ok(Best { hotel: best.hotel, cents: best.cents })
}

/// Whether there is a room in each night.
pub(super) fn check(call: &mut Call<'_>, Stay { hotel, date, nights }: Stay) -> Result<Free, Error> {
    if !(1..=NIGHTS_MAX).contains(&nights) {
        return Err(Error::Asked(format!("`nights` is {nights}; it has to be 1 to {NIGHTS_MAX}")));
    }
    let mut free = true;
    for night in date..date.saturating_add(nights) {
        let rooms: i64 = call.read(&format!("rooms/{hotel}/{night}"))?;
        free &= rooms > 0;
    }
    Ok(Free { free })
}

pub(super) fn reserve(call: &mut Call<'_>, ask: Reserve) -> Result<Reserved, Error> {
    let Reserve { stay: Stay { hotel, date, nights }, user, cents, booking } = ask;
    for night in date..date.saturating_add(nights.min(NIGHTS_MAX)) {
        call.world.add(&format!("rooms/{hotel}/{night}"), -1)?;
    }
    let cents = cents.saturating_mul(u64::from(nights));
    call.write(&format!("reservation/{booking}"), &Reservation { user, hotel, cents })?;
    Ok(Reserved { booking })
}

/// Charges what was reserved. If the issuer of the card does not pay, the reservation stays, and lapses.
pub(super) fn pay(call: &mut Call<'_>, Pay { booking, card }: Pay) -> Result<Paid, Error> {
    let reservation: Reservation = call.read(&format!("reservation/{booking}"))?;
    let (_, paid) = super::cards::charge(call, &card, reservation.cents)?;
    if paid {
        call.write(&format!("paid/{booking}"), &reservation)?;
    }
    Ok(Paid { paid, cents: reservation.cents })
}

pub(super) fn confirm(call: &mut Call<'_>, Confirm { user, booking, cents }: Confirm) -> Result<Confirmed, Error> {
    let user: crate::records::User = call.read(&format!("user/{user}"))?;
    Ok(Confirmed { booking, text: format!("{} has paid {}.{:02}", user.name, cents / 100, cents % 100) })
}

pub(super) fn sorry(_: &mut Call<'_>, Search { city, date }: Search) -> Result<Sorry, Error> {
    Ok(Sorry { city, date, reason: "there is no room, or the card does not pay for it" })
}
