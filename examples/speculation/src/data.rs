//! What the setup writes, each record made of its number alone. The setup writes the same bytes whenever it runs.

use crate::digest;
use crate::functions::access::password;
use crate::functions::homes::{is_outside, reading};
use crate::functions::hotels::{NIGHTS_MAX, best, on_day};
use crate::random::Random;
use crate::records::{Comfort, Country, Day, Fare, Flight, Hotel, Item, Limit, Product, Season, User};
use crate::world::json;

/// Users. Each has an account, a home and a cart.
pub(crate) const USERS: u32 = 256;
pub(crate) const FLIGHTS: u32 = 48;
pub(crate) const CITIES: u32 = 12;
const HOTELS_EACH: u32 = 6;
const PRODUCTS: u32 = 200;
const COUNTRIES: u32 = 16;
/// Days on which flights go and stays begin.
pub(crate) const DATES: u32 = 28;
pub(crate) const HOURS: u32 = 24;

const AIRPORTS: u32 = 12;
/// Issuers of cards. The last one pays nothing.
const FIRST_ISSUER: u32 = 4_000;
pub(crate) const ISSUERS: u32 = 8;
/// Seats, rooms and cents of which there are always enough.
const ENOUGH: i64 = 1_000_000_000_000;

/// All entries.
pub(crate) fn entries() -> Vec<(String, Vec<u8>)> {
    let mut entries = Vec::new();
    users(&mut entries);
    flights(&mut entries);
    hotels(&mut entries);
    homes(&mut entries);
    shop(&mut entries);
    crate::graphs::entries(&mut entries);
    entries
}

type Entries = Vec<(String, Vec<u8>)>;

fn numbered<T: serde::Serialize>(entries: &mut Entries, kind: &str, count: u32, record: impl Fn(u32) -> T) {
    entries.extend((0..count).map(|number| (format!("{kind}/{number}"), json(&record(number)))));
}

fn users(entries: &mut Entries) {
    numbered(entries, "user", USERS, |user| {
        let salt = digest::text(digest::hash(b"salt", u64::from(user)));
        let digest = digest::password(&salt, &password(user));
        User { name: format!("user {user}"), salt, digest, country: country(user) }
    });
    numbered(entries, "limit", USERS, |user| Limit { cents_max: limit(user) });
    numbered(entries, "balance", USERS, |_| ENOUGH);
    entries.extend((0..ISSUERS).map(|place| {
        let cents_max = if place + 1 == ISSUERS { 0 } else { ENOUGH as u64 };
        (format!("issuer/{}", issuer(place)), json(&Limit { cents_max }))
    }));
}

/// The most that a user may transfer at once.
pub(crate) fn limit(user: u32) -> u64 {
    u64::from(Random::of("limit", u64::from(user)).between(10, 50)) * 10_000
}

/// An issuer's number.
pub(crate) fn issuer(place: u32) -> u32 {
    FIRST_ISSUER + place
}

/// Where a user lives.
fn country(user: u32) -> u32 {
    Random::of("country", u64::from(user)).below(COUNTRIES)
}

/// Whether the shop delivers where a user lives: to all countries but one.
pub(crate) fn is_served(user: u32) -> bool {
    country(user) != COUNTRIES - 1
}

/// Where a flight goes. Two go from one airport to the same other one.
pub(crate) fn airports(flight: u32) -> (u32, u32) {
    let from = flight % AIRPORTS;
    (from, (from + 1 + flight / AIRPORTS % 2) % AIRPORTS)
}

fn rests_on(flight: u32) -> u32 {
    flight % 7
}

pub(crate) fn flies(flight: u32, date: u32) -> bool {
    date % 7 != rests_on(flight)
}

/// Whether there is no seat from the beginning.
pub(crate) fn is_full(flight: u32, date: u32) -> bool {
    (date * 3 + flight).is_multiple_of(10)
}

fn flights(entries: &mut Entries) {
    for from in 0..AIRPORTS {
        for to in 0..AIRPORTS {
            let goes = (0..FLIGHTS).filter(|flight| airports(*flight) == (from, to));
            let flights: Vec<Flight> = goes.map(|flight| Flight { flight, rests_on: rests_on(flight) }).collect();
            if !flights.is_empty() {
                entries.push((format!("route/{from}/{to}"), json(&flights)));
            }
        }
    }
    numbered(entries, "fare", FLIGHTS, |flight| {
        let mut random = Random::of("fare", u64::from(flight));
        Fare { km: random.between(300, 9_000), cents_per_km: random.between(6, 14), tax_cents: random.between(1_000, 9_000) }
    });
    for flight in 0..FLIGHTS {
        numbered(entries, &format!("seats/{flight}"), DATES, |date| if is_full(flight, date) { 0 } else { ENOUGH });
    }
}

fn hotels_of(city: u32) -> Vec<Hotel> {
    let hotel = |place: u32| {
        let hotel = city * HOTELS_EACH + place;
        let mut random = Random::of("hotel", u64::from(hotel));
        Hotel { hotel, cents: u64::from(random.between(40, 240)) * 100, km: u64::from(random.between(0, 12)) }
    };
    (0..HOTELS_EACH).map(hotel).collect()
}

fn season(day: u32) -> Season {
    Season { percent: if day >= 5 { 130 } else { 100 } }
}

fn is_booked_out(hotel: u32, date: u32) -> bool {
    (date * 5 + hotel).is_multiple_of(16)
}

/// Whether the best hotel of a city has rooms, from the beginning, in each night.
pub(crate) fn has_room(city: u32, date: u32, nights: u32, km_cents: u64) -> bool {
    let best = best(&on_day(hotels_of(city), season(date % 7)), km_cents);
    best.is_some_and(|best| (date..date + nights).all(|night| !is_booked_out(best.hotel, night)))
}

fn hotels(entries: &mut Entries) {
    numbered(entries, "city", CITIES, hotels_of);
    numbered(entries, "season", 7, season);
    for hotel in 0..CITIES * HOTELS_EACH {
        let rooms = |date: u32| if is_booked_out(hotel, date) { 0 } else { ENOUGH };
        numbered(entries, &format!("rooms/{hotel}"), DATES + NIGHTS_MAX, rooms);
    }
}

/// The temperature in a home: the highest at noon.
fn temperature(home: u32, hour: u32) -> u32 {
    280 - 10 * hour.abs_diff(12) + home % 20
}

fn comfort(home: u32) -> Comfort {
    Comfort { low: 205 + home % 3 * 5, high: 225 + home % 5 }
}

/// Whether something is to be done about the temperature.
pub(crate) fn needs_air(home: u32, hour: u32) -> bool {
    is_outside(temperature(home, hour), comfort(home))
}

fn day(home: u32) -> Day {
    let readings = |hour: u32| {
        let mut random = Random::of("sensors", u64::from(home * HOURS + hour));
        let mut readings = [reading(temperature(home, hour)); 4];
        // One sensor says something else now and then.
        if random.is(20) {
            readings[random.below(4) as usize] = random.below(4_096) as u16;
        }
        readings
    };
    (0..HOURS).map(readings).collect()
}

fn homes(entries: &mut Entries) {
    numbered(entries, "sensors", USERS, day);
    numbered(entries, "comfort", USERS, comfort);
}

fn cart(user: u32) -> Vec<Item> {
    let mut random = Random::of("cart", u64::from(user));
    let zipf = crate::random::Zipf::new(PRODUCTS);
    let count = random.between(1, 5);
    (0..count).map(|_| Item { product: zipf.draw(&mut random), count: random.between(1, 4) }).collect()
}

fn shop(entries: &mut Entries) {
    numbered(entries, "country", COUNTRIES, |country| Country { is_served: country != COUNTRIES - 1 });
    numbered(entries, "product", PRODUCTS, |product| {
        let mut random = Random::of("product", u64::from(product));
        Product { cents: u64::from(random.between(99, 50_000)), grams: u64::from(random.between(20, 6_000)) }
    });
    numbered(entries, "sold", PRODUCTS, |_| 0);
    numbered(entries, "cart", USERS, cart);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_written_twice() {
        let mut keys: Vec<String> = entries().into_iter().map(|(key, _)| key).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    /// Inputs can be made to take each branch, whatever the user, the flight, the city and the home are.
    #[test]
    fn each_branch_can_be_taken() {
        for flight in 0..FLIGHTS {
            assert!((0..DATES).any(|date| !flies(flight, date)));
            assert!((0..DATES).any(|date| flies(flight, date) && is_full(flight, date)));
            assert!((0..DATES).any(|date| flies(flight, date) && !is_full(flight, date)));
        }
        for city in 0..CITIES {
            for (nights, km_cents) in [(1, 100), (1, 300), (3, 100), (3, 300)] {
                assert!((0..DATES).any(|date| has_room(city, date, nights, km_cents)));
                assert!((0..DATES).any(|date| !has_room(city, date, nights, km_cents)));
            }
        }
        for home in 0..USERS {
            let hours = (0..HOURS).filter(|hour| needs_air(home, *hour)).count();
            assert!((12..HOURS as usize).contains(&hours), "{home}: {hours}");
        }
        let served = (0..USERS).filter(|user| is_served(*user)).count();
        assert!((220..250).contains(&served), "{served}");
    }
}
