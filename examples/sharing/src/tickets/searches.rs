//! The applications that look for tickets.

use serde::{Deserialize, Serialize};

use crate::world::Error;

use super::Call;
use super::extras::{FoodAsk, Luggage, LuggageAsk};
use super::people::Search;
use super::places::{Ids, Names, Stations};
use super::prices::{Prices, PricesAsk};
use super::records::{Contact, Count, Dishes, Number, Percent, Route, Train, Trip, User};
use super::seats::{self, SeatsAsk, SoldAsk};
use super::trips::{Of, Times, TimesAsk};

/// How many days `ts-left` looks at.
pub(super) const FRAME_DAYS: u32 = 3;

/// From one station to another.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Journey {
    /// The train.
    pub trip: u32,
    /// The day.
    pub date: u32,
    /// The station where the user gets on.
    pub from: String,
    /// The station where the user gets off.
    pub to: String,
    /// The user that travels.
    pub user: u32,
}

/// The same without a user, from that day on.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Left {
    trip: u32,
    date: u32,
    from: String,
    to: String,
}

impl From<Journey> for Left {
    fn from(Journey { trip, date, from, to, .. }: Journey) -> Left {
        Left { trip, date, from, to }
    }
}

/// What `ts-tickets` offers.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Tickets {
    train: String,
    times: Times,
    left: Count,
    prices: Prices,
}

/// What `ts-trip-info` says.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Page {
    user: String,
    telephone: String,
    /// Where the train comes from and goes to.
    whole: Names,
    tickets: Tickets,
    menu: Dishes,
    luggage: Luggage,
    assurance_cents: u32,
    delay_min: u32,
}

/// What `ts-travel` says of a train.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Travel {
    train: String,
    departs_min: u32,
    /// Seats that are left, if it goes from the one station to the other.
    left: Option<Count>,
}

/// A train on its way, and where a journey is on it.
struct Ride {
    trip: Trip,
    route: Route,
    train: Train,
    from: usize,
    to: usize,
    stations: Stations,
}

/// Where two stations are on a route.
fn places(route: &Route, stations: &Stations) -> Result<(usize, usize), Error> {
    let place = |id: u32| route.stations.iter().position(|station| *station == id);
    match (place(stations.from.id), place(stations.to.id)) {
        (Some(from), Some(to)) if from < to && to < route.km.len() => Ok((from, to)),
        _ => Err(Error::Asked("the train does not go from the one station to the other".to_owned())),
    }
}

/// Two stations, and a train with its route, whether it goes from the one to the other or not.
fn found(call: &mut Call<'_>, from: &str, to: &str, trip: u32) -> Result<(Stations, Trip, Route, Train), Error> {
    let stations = call.ask("ts-station-ids", Names { from: from.to_owned(), to: to.to_owned() })?;
    let trip: Trip = call.ask("ts-trip", Of { number: trip })?;
    let route = call.ask("ts-route", Of { number: trip.route })?;
    let train = call.ask("ts-train", Of { number: trip.train })?;
    Ok((stations, trip, route, train))
}

fn ride(call: &mut Call<'_>, ask: &Journey) -> Result<Ride, Error> {
    let (stations, trip, route, train) = found(call, &ask.from, &ask.to, ask.trip)?;
    let (from, to) = places(&route, &stations)?;
    Ok(Ride { trip, route, train, from, to, stations })
}

/// What can be bought: when it runs, which seats are left, what they cost.
fn offer(call: &mut Call<'_>, ask: &Journey, ride: &Ride, user: &User) -> Result<Tickets, Error> {
    let Ride { trip, route, train, from, to, .. } = ride;
    let (from_km, to_km) = (route.km[*from], route.km[*to]);
    let times =
        TimesAsk { trip: ask.trip, date: ask.date, departs_min: trip.departs_min, km_per_h: train.km_per_h, from_km, to_km };
    let times = call.ask("ts-times", times)?;
    let (first, last) = (*from as u32, *to as u32);
    let seats = SeatsAsk { trip: ask.trip, date: ask.date, route: trip.route, from: first, to: last, all: trip.seats };
    let left = call.ask("ts-seats", seats)?;
    let km = to_km.saturating_sub(from_km);
    let prices = PricesAsk { trip: ask.trip, route: trip.route, train: trip.train, date: ask.date, km, grade: user.grade };
    let prices = call.ask("ts-prices", prices)?;
    Ok(Tickets { train: train.name.clone(), times, left, prices })
}

/// All tickets for a journey by a train.
pub(super) fn tickets(call: &mut Call<'_>, ask: Journey) -> Result<Tickets, Error> {
    let user: User = call.ask("ts-user", Of { number: ask.user })?;
    let ride = ride(call, &ask)?;
    let tickets = offer(call, &ask, &ride, &user)?;
    let text = format!("{} to {}, date {}", ask.from, ask.to, ask.date);
    let _: Of = call.ask("ts-remember", Search { user: ask.user, text })?;
    Ok(tickets)
}

/// All that there is to know about a journey by a train.
pub(super) fn trip_info(call: &mut Call<'_>, ask: Journey) -> Result<Page, Error> {
    let user: User = call.ask("ts-user", Of { number: ask.user })?;
    let contact: Contact = call.ask("ts-contact", Of { number: ask.user })?;
    let ride = ride(call, &ask)?;
    let ends = |at: Option<&u32>| at.copied().unwrap_or_default();
    let ids = Ids { first: ends(ride.route.stations.first()), last: ends(ride.route.stations.last()) };
    let whole = call.ask("ts-station-names", ids)?;
    let tickets = offer(call, &ask, &ride, &user)?;
    let Ride { trip, stations, .. } = ride;
    let menu = call.ask("ts-food", FoodAsk { trip: ask.trip, train: trip.train, station: stations.from.id })?;
    let luggage = call.ask("ts-luggage", LuggageAsk { trip: ask.trip, train: trip.train, grade: user.grade })?;
    let assurance: Number = call.ask("ts-assurance", Of { number: user.grade })?;
    let delay: Number = call.ask("ts-delays", Of { number: ask.trip })?;
    let page = Page {
        user: user.name,
        telephone: contact.telephone,
        whole,
        tickets,
        menu,
        luggage,
        assurance_cents: assurance.number,
        delay_min: delay.number,
    };
    call.write(&format!("page/{}/{}/{}", ask.user, ask.trip, ask.date), &page)?;
    Ok(page)
}

/// How many seats of a train are left on each of some days.
pub(super) fn left(call: &mut Call<'_>, ask: Left) -> Result<Vec<Count>, Error> {
    let trip: Trip = call.read(&format!("trip/{}", ask.trip))?;
    let stations: Stations = call.ask("ts-station-ids", Names { from: ask.from, to: ask.to })?;
    let route: Route = call.ask("ts-route", Of { number: trip.route })?;
    let (from, to) = places(&route, &stations)?;
    let dates = (ask.date..ask.date.saturating_add(FRAME_DAYS)).collect();
    let sold: Vec<Count> = call.ask("ts-sold", SoldAsk { trip: ask.trip, dates, from: from as u32, to: to as u32 })?;
    let share: Percent = call.ask("ts-share", Of { number: trip.route })?;
    let left: Vec<Count> = sold.into_iter().map(|sold| seats::left(trip.seats, sold, share)).collect();
    call.write(&format!("frame/{}/{}/{from}-{to}", ask.trip, ask.date), &left)?;
    let least = left.iter().map(|left| left.comfort + left.economy).min().unwrap_or_default();
    call.write(&format!("least/{}/{}", ask.trip, ask.date), &Number { number: least })?;
    Ok(left)
}

/// Whether a train can be taken from one station to the other, and how many seats are left in it.
pub(super) fn travel(call: &mut Call<'_>, ask: Left) -> Result<Travel, Error> {
    let (stations, trip, route, train) = found(call, &ask.from, &ask.to, ask.trip)?;
    let left = match places(&route, &stations) {
        Ok((from, to)) => {
            let (from, to) = (from as u32, to as u32);
            let seats = SeatsAsk { trip: ask.trip, date: ask.date, route: trip.route, from, to, all: trip.seats };
            Some(call.ask("ts-seats", seats)?)
        }
        Err(_) => None,
    };
    Ok(Travel { train: train.name, departs_min: trip.departs_min, left })
}
