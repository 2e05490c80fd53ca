//! What is in the store.

use serde::{Deserialize, Serialize};

/// `user/U`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) salt: String,
    /// Of the password.
    pub(crate) digest: String,
    pub(crate) country: u32,
}

/// `limit/U` (of a transfer), `issuer/I` (of a payment with that issuer's cards).
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Limit {
    pub(crate) cents_max: u64,
}

/// `route/FROM/TO` is a list of these.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Flight {
    pub(crate) flight: u32,
    /// The day of the week on which it does not fly.
    pub(crate) rests_on: u32,
}

/// `fare/F`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Fare {
    pub(crate) km: u32,
    pub(crate) cents_per_km: u32,
    pub(crate) tax_cents: u32,
}

/// `city/C` is a list of these.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Hotel {
    pub(crate) hotel: u32,
    /// A night.
    pub(crate) cents: u64,
    /// From the middle of the city.
    pub(crate) km: u64,
}

/// `season/W`: what a day of the week costs.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Season {
    pub(crate) percent: u64,
}

/// `reservation/B` and, when it is paid for, `paid/B`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Reservation {
    pub(crate) user: u32,
    pub(crate) hotel: u32,
    pub(crate) cents: u64,
}

/// What the sensors of a room say at an hour.
pub(crate) type Readings = [u16; 4];

/// `sensors/H`: by the hour.
pub(crate) type Day = Vec<Readings>;

/// `comfort/H`, in tenths of a degree.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Comfort {
    pub(crate) low: u32,
    pub(crate) high: u32,
}

/// `air/H/HOUR`: above zero it heats, below it cools.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Air {
    pub(crate) power: i32,
}

/// `cart/U` is a list of these.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Item {
    pub(crate) product: u32,
    pub(crate) count: u32,
}

/// `product/P`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Product {
    pub(crate) cents: u64,
    pub(crate) grams: u64,
}

/// `country/C`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Country {
    pub(crate) is_served: bool,
}

/// `order/N`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Order {
    pub(crate) user: u32,
    pub(crate) cents: u64,
    pub(crate) grams: u64,
}

/// `payment/N`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Payment {
    pub(crate) cents: u64,
    pub(crate) issuer: u32,
}

/// `shipment/N`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Shipment {
    pub(crate) parcels: u64,
    pub(crate) country: u32,
}
