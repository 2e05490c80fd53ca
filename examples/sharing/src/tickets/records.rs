//! What is in the store.

use serde::{Deserialize, Serialize};

/// `station/NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Station {
    pub(super) id: u32,
    /// How long trains stop there.
    pub(super) stay_min: u32,
}

/// Seats of both classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Count {
    pub(super) comfort: u32,
    pub(super) economy: u32,
}

/// `trip/T`: a train that runs each day.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Trip {
    pub(super) route: u32,
    pub(super) train: u32,
    /// Minutes of the day.
    pub(super) departs_min: u32,
    /// All seats of its coaches.
    pub(super) seats: Count,
}

/// `route/R`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Route {
    /// Where it stops, by their ids.
    pub(super) stations: Vec<u32>,
    /// How far each is from the first.
    pub(super) km: Vec<u32>,
}

/// `train/K`: a type of train.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Train {
    pub(super) name: String,
    pub(super) km_per_h: u32,
}

/// `calendar/DATE`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Day {
    /// How much slower trains are on that day.
    pub(super) slower_percent: u32,
}

/// `sold/T/DATE` is a list of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Seat {
    pub(super) comfort: bool,
    pub(super) number: u32,
    /// The places on the route between which it is taken.
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) order: Option<u32>,
}

/// `share/R`, `discount/GRADE`, `holiday/DATE`, `refund/WEEK`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Percent {
    pub(super) percent: u32,
}

/// `rates/R/K`, in tenths of a cent for a kilometre.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Rates {
    pub(super) comfort: u32,
    pub(super) economy: u32,
}

/// `user/U`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) grade: u32,
}

/// `contact/U`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Contact {
    pub(super) telephone: String,
    pub(super) document: String,
}

/// `luggage-rates/K`, `luggage-limits/GRADE`, `assurance/GRADE`, `delays/T`, `account/U`: one number.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Number {
    pub(super) number: u32,
}

/// `train-food/K`, `station-food/S`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Dishes {
    pub(super) dishes: Vec<String>,
}

/// `order/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Order {
    pub(super) user: u32,
    pub(super) trip: u32,
    pub(super) date: u32,
    pub(super) cents: u32,
    pub(super) is_cancelled: bool,
}
