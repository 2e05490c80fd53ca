//! Flights: those of a day, their seats, what they cost, and tickets.

use serde::{Deserialize, Serialize};

use crate::records::{Fare, Flight};
use crate::world::Error;

use super::Call;

/// Most seats of a booking.
const SEATS_MAX: u32 = 9;

#[derive(Deserialize)]
pub(super) struct Search {
    from: u32,
    to: u32,
    flight: u32,
    date: u32,
}

/// Seats of a flight.
#[derive(Deserialize)]
pub(super) struct Seats {
    flight: u32,
    date: u32,
    seats: u32,
}

#[derive(Deserialize)]
pub(super) struct Booking {
    booking: u64,
    #[serde(flatten)]
    what: Seats,
}

#[derive(Deserialize)]
pub(super) struct Pay {
    #[serde(flatten)]
    booking: Booking,
    card: String,
}

#[derive(Deserialize)]
pub(super) struct For {
    #[serde(flatten)]
    booking: Booking,
    user: u32,
}

#[derive(Serialize)]
pub(super) struct Found {
    found: bool,
}

#[derive(Serialize)]
pub(super) struct Left {
    left: bool,
}

#[derive(Serialize)]
pub(super) struct Price {
    cents: u64,
}

#[derive(Serialize)]
pub(super) struct Reserved {
    booking: u64,
    flight: u32,
    date: u32,
    seats: u32,
}

#[derive(Serialize)]
pub(super) struct Paid {
    booking: u64,
    cents: u64,
}

#[derive(Serialize)]
pub(super) struct Ticket {
    booking: u64,
    user: u32,
    flight: u32,
    date: u32,
    code: String,
}

#[derive(Serialize)]
pub(super) struct Missing {
    flight: u32,
    date: u32,
    reason: &'static str,
}

/// Whether the flight goes from one airport to the other, on that day.
pub(super) fn search(call: &mut Call<'_>, ask: Search) -> Result<Found, Error> {
    let flights: Option<Vec<Flight>> = call.find(&format!("route/{}/{}", ask.from, ask.to))?;
    let goes = |flight: &Flight| flight.flight == ask.flight && flight.rests_on != ask.date % 7;
    Ok(Found { found: flights.is_some_and(|flights| flights.iter().any(goes)) })
}

/// Whether there are so many seats.
pub(super) fn seats(call: &mut Call<'_>, Seats { flight, date, seats }: Seats) -> Result<Left, Error> {
    if !(1..=SEATS_MAX).contains(&seats) {
        return Err(Error::Asked(format!("`seats` is {seats}; it has to be 1 to {SEATS_MAX}")));
    }
    let left: i64 = call.read(&format!("seats/{flight}/{date}"))?;
    Ok(Left { left: left >= i64::from(seats) })
}

fn priced(call: &mut Call<'_>, Seats { flight, date, seats }: &Seats) -> Result<u64, Error> {
    let fare: Fare = call.read(&format!("fare/{flight}"))?;
    let weekend = if date % 7 >= 5 { 120 } else { 100 };
    let each = u64::from(fare.km) * u64::from(fare.cents_per_km) * weekend / 100 + u64::from(fare.tax_cents);
    Ok(each * u64::from(*seats))
}

pub(super) fn price(call: &mut Call<'_>, ask: Seats) -> Result<Price, Error> {
    Ok(Price { cents: priced(call, &ask)? })
}

pub(super) fn reserve(call: &mut Call<'_>, Booking { booking, what }: Booking) -> Result<Reserved, Error> {
    let Seats { flight, date, seats } = what;
    call.world.add(&format!("seats/{flight}/{date}"), -i64::from(seats))?;
    let reserved = Reserved { booking, flight, date, seats };
    call.write(&format!("held/{booking}"), &reserved)?;
    Ok(reserved)
}

/// Charges what the booking costs: it is priced once more, and nothing that the client or an earlier function says is taken for it.
pub(super) fn pay(call: &mut Call<'_>, Pay { booking, card }: Pay) -> Result<Paid, Error> {
    let cents = priced(call, &booking.what)?;
    let (issuer, pays) = super::cards::charge(call, &card, cents)?;
    if !pays {
        return Err(Error::Asked(format!("issuer {issuer} does not pay {cents} cents")));
    }
    let paid = Paid { booking: booking.booking, cents };
    call.write(&format!("charged/{}", paid.booking), &paid)?;
    Ok(paid)
}

pub(super) fn ticket(call: &mut Call<'_>, For { booking, user }: For) -> Result<Ticket, Error> {
    let Booking { booking, what: Seats { flight, date, .. } } = booking;
    let code = crate::digest::text(crate::digest::joined(booking, u64::from(user)))[..6].to_uppercase();
    let ticket = Ticket { booking, user, flight, date, code };
    call.write(&format!("ticket/{booking}"), &ticket)?;
    Ok(ticket)
}

pub(super) fn none(_: &mut Call<'_>, Seats { flight, date, .. }: Seats) -> Result<Missing, Error> {
    Ok(Missing { flight, date, reason: "there is no such flight on that day, or no seat in it" })
}
