//! The railway: 24 trains a day between 20 stations, for 30 days, and what the setup writes of it. All of it is made of numbers alone.

use crate::random::Random;
use crate::world::json;

use super::records::{Contact, Count, Day, Dishes, Number, Order, Percent, Rates, Route, Seat, Station, Train, Trip, User};
use super::searches::{FRAME_DAYS, Journey};

/// Trains a day.
pub const TRIPS: u32 = 24;
/// Days.
pub const DATES: u32 = 30;
/// The first day for which there are orders: what is sold for earlier ones never changes.
const ORDERS_FROM: u32 = 20;
/// Orders for each train and day.
const ORDERS_EACH: u32 = 8;
/// All orders.
pub(super) const ORDERS: u32 = TRIPS * (DATES - ORDERS_FROM) * ORDERS_EACH;
/// Days that journeys begin on: `ts-left` looks at others behind them.
const JOURNEY_DATES: u32 = ORDERS_FROM - FRAME_DAYS + 1;

const ROUTES: u32 = 10;
const STOPS: usize = 6;
const TRAINS: u32 = 4;
const USERS: u32 = 100;
const GRADES: u32 = 4;

const STATIONS: [&str; 20] = [
    "Aachen",
    "Bremen",
    "Celle",
    "Dresden",
    "Erfurt",
    "Fulda",
    "Gera",
    "Halle",
    "Ingolstadt",
    "Jena",
    "Kassel",
    "Leipzig",
    "Mainz",
    "Nauen",
    "Oldenburg",
    "Passau",
    "Rostock",
    "Stuttgart",
    "Trier",
    "Ulm",
];
const TRAIN_NAMES: [&str; TRAINS as usize] = ["express", "fast", "regional", "night"];
const DISHES: [&str; 8] = ["soup", "bread", "salad", "rice", "noodles", "apple", "cake", "coffee"];

impl Journey {
    /// One of those that a driver asks for: by each train, on the days whose seats never change.
    #[must_use]
    pub fn numbered(input: u32) -> Journey {
        let trip = input % TRIPS;
        let date = input / TRIPS % JOURNEY_DATES;
        let mut random = Random::of("journey", input % (TRIPS * JOURNEY_DATES));
        let route = route(self::trip(trip).route);
        let from = random.below(STOPS as u32 - 1);
        let to = random.between(from + 1, STOPS as u32 - 1);
        let name = |place: u32| STATIONS[route.stations[place as usize] as usize].to_owned();
        Journey { trip, date, from: name(from), to: name(to), user: random.below(USERS) }
    }
}

/// The trips from one number up to another with their seats and orders; with the first also what all share.
pub(super) fn entries(from: u32, to: u32) -> impl Iterator<Item = (String, Vec<u8>)> {
    let common = if from == 0 { common() } else { Vec::new() };
    common.into_iter().chain((from..to).flat_map(of_trip))
}

fn numbered<T: serde::Serialize>(kind: &str, count: u32, record: impl Fn(u32) -> T) -> Vec<(String, Vec<u8>)> {
    (0..count).map(|number| (format!("{kind}/{number}"), json(&record(number)))).collect()
}

fn common() -> Vec<(String, Vec<u8>)> {
    let random = |kind: &str, number: u32, first: u32, last: u32| Random::of(kind, number).between(first, last);
    let mut entries = Vec::new();
    for (id, name) in (0..).zip(STATIONS) {
        let station = Station { id, stay_min: random("station", id, 1, 5) };
        entries.push((format!("station/{name}"), json(&station)));
        entries.push((format!("name/{id}"), json(&name)));
        entries.push((format!("station-food/{id}"), json(&dishes("station-food", id))));
    }
    entries.extend(numbered("route", ROUTES, route));
    entries.extend(numbered("share", ROUTES, |number| Percent { percent: random("share", number, 70, 100) }));
    for number in 0..ROUTES {
        entries.extend(numbered(&format!("rates/{number}"), TRAINS, |train| {
            let economy = random("rates", number * TRAINS + train, 60, 140);
            Rates { comfort: economy * 2, economy }
        }));
    }
    let train = |number: u32| Train { name: TRAIN_NAMES[number as usize].to_owned(), km_per_h: 80 + 40 * (TRAINS - number) };
    entries.extend(numbered("train", TRAINS, train));
    entries.extend(numbered("train-food", TRAINS, |number| dishes("train-food", number)));
    entries.extend(numbered("luggage-rates", TRAINS, |number| Number { number: 200 + 100 * number }));
    entries.extend(numbered("luggage-limits", GRADES, |number| Number { number: 2 + number }));
    entries.extend(numbered("assurance", GRADES, |number| Number { number: 500 - 100 * number }));
    entries.extend(numbered("discount", GRADES, |number| Percent { percent: 100 - 5 * number }));
    entries.extend(numbered("calendar", DATES, |date| Day { slower_percent: random("calendar", date, 0, 15) }));
    entries.extend(numbered("holiday", DATES, |date| Percent { percent: if date % 7 == 6 { 130 } else { 100 } }));
    entries.extend(numbered("refund", DATES.div_ceil(7), |week| Percent { percent: 50 + 10 * week }));
    let user = |number: u32| User { name: format!("user {number}"), grade: random("grade", number, 0, GRADES - 1) };
    entries.extend(numbered("user", USERS, user));
    entries.extend(numbered("contact", USERS, |number| {
        let [telephone, document] = ["telephone", "document"].map(|kind| random(kind, number, 1_000_000, 9_999_999).to_string());
        Contact { telephone, document }
    }));
    entries.extend(numbered("account", USERS, |number| Number { number: 1_000_000 + number }));
    entries
}

fn dishes(kind: &str, number: u32) -> Dishes {
    let mut random = Random::of(kind, number);
    let count = random.between(2, 5);
    Dishes { dishes: (0..count).map(|_| DISHES[random.below(DISHES.len() as u32) as usize].to_owned()).collect() }
}

fn route(number: u32) -> Route {
    let mut random = Random::of("route", number);
    let mut stations: Vec<u32> = Vec::new();
    while stations.len() < STOPS {
        let station = random.below(STATIONS.len() as u32);
        if !stations.contains(&station) {
            stations.push(station);
        }
    }
    let mut km = 0;
    let mut distance = |place: usize| {
        km += if place == 0 { 0 } else { random.between(30, 180) };
        km
    };
    let km = (0..STOPS).map(&mut distance).collect();
    Route { stations, km }
}

fn trip(number: u32) -> Trip {
    let mut random = Random::of("trip", number);
    let (route, train) = (random.below(ROUTES), random.below(TRAINS));
    let departs_min = random.between(300, 1_200);
    Trip { route, train, departs_min, seats: Count { comfort: random.between(40, 80), economy: random.between(200, 400) } }
}

/// A train, what is sold of it on each day, and its orders.
fn of_trip(number: u32) -> Vec<(String, Vec<u8>)> {
    let mut entries = vec![
        (format!("trip/{number}"), json(&trip(number))),
        (format!("delays/{number}"), json(&Number { number: Random::of("delays", number).below(20) })),
    ];
    for date in 0..DATES {
        let seats = sold(number, date);
        entries.push((format!("sold/{number}/{date}"), json(&seats)));
        entries.extend(seats.iter().filter_map(|seat| seat.order).map(|order| {
            let mut random = Random::of("order", order);
            let (user, cents) = (random.below(USERS), random.between(900, 30_000));
            (format!("order/{order}"), json(&Order { user, trip: number, date, cents, is_cancelled: false }))
        }));
    }
    entries
}

/// The seats that are sold: of four days of five up to 150, of the fifth up to all.
fn sold(number: u32, date: u32) -> Vec<Seat> {
    let all = trip(number).seats;
    let mut random = Random::of("sold", number * DATES + date);
    let count = if random.below(5) == 0 { random.between(150, all.economy) } else { random.between(ORDERS_EACH, 150) };
    let seat = |place: u32| {
        let comfort = random.below(6) == 0;
        let from = random.below(STOPS as u32 - 1);
        Seat {
            comfort,
            number: random.below(if comfort { all.comfort } else { all.economy }),
            from,
            to: random.between(from + 1, STOPS as u32 - 1),
            order: order(number, date, place),
        }
    };
    (0..count).map(seat).collect()
}

/// The order that has a seat, if there is one.
fn order(trip: u32, date: u32, place: u32) -> Option<u32> {
    let day = date.checked_sub(ORDERS_FROM)?;
    (place < ORDERS_EACH).then_some((trip * (DATES - ORDERS_FROM) + day) * ORDERS_EACH + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_has_a_seat() {
        let mut orders: Vec<String> =
            (0..TRIPS).flat_map(of_trip).map(|(key, _)| key).filter(|key| key.starts_with("order/")).collect();
        orders.sort_unstable();
        orders.dedup();
        assert_eq!(orders.len(), ORDERS as usize);
        assert!(orders.contains(&format!("order/{}", ORDERS - 1)));
    }

    #[test]
    fn journeys_avoid_days_with_orders_and_lead_forward() {
        for input in 0..2 * TRIPS * JOURNEY_DATES {
            let journey = Journey::numbered(input);
            assert!(journey.date + FRAME_DAYS <= ORDERS_FROM, "{journey:?}");
            let route = route(trip(journey.trip).route);
            let place = |name: &str| route.stations.iter().position(|id| STATIONS[*id as usize] == name).unwrap();
            assert!(place(&journey.from) < place(&journey.to), "{journey:?}");
        }
    }

    #[test]
    fn most_lists_of_seats_are_small() {
        let lists = entries(0, TRIPS).filter(|(key, _)| key.starts_with("sold/"));
        let sizes: Vec<usize> = lists.map(|(_, value)| value.len()).collect();
        let small = sizes.iter().filter(|bytes| **bytes < 12 << 10).count();
        assert!(small * 4 >= sizes.len() * 3 && sizes.iter().all(|bytes| *bytes < 64 << 10), "{small} of {}", sizes.len());
    }
}
