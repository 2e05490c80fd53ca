//! A shop: carts, prices, orders, payments and parcels.

use serde::{Deserialize, Serialize};

use crate::records::{Country, Item, Order, Payment, Product, Shipment, User};
use crate::world::Error;

use super::Call;
use super::access::Of;

/// The most that a parcel weighs.
const PARCEL_GRAMS_MAX: u64 = 10_000;

#[derive(Deserialize, Serialize)]
pub(super) struct Items {
    items: Vec<Item>,
}

#[derive(Serialize)]
pub(super) struct Price {
    cents: u64,
    grams: u64,
}

#[derive(Serialize)]
pub(super) struct Reached {
    reached: bool,
}

#[derive(Serialize)]
pub(super) struct Reserved {
    reserved: u32,
}

#[derive(Deserialize)]
pub(super) struct Place {
    order: u64,
    #[serde(flatten)]
    what: Order,
}

#[derive(Deserialize)]
pub(super) struct Pay {
    order: u64,
    card: String,
    cents: u64,
}

#[derive(Deserialize)]
pub(super) struct Numbered {
    order: u64,
}

#[derive(Serialize)]
pub(super) struct Placed {
    order: u64,
}

#[derive(Serialize)]
pub(super) struct Paid {
    paid: bool,
}

#[derive(Serialize)]
pub(super) struct Shipped {
    parcels: u64,
}

#[derive(Serialize)]
pub(super) struct Receipt {
    order: u64,
    cents: u64,
    issuer: u32,
    parcels: u64,
    country: u32,
}

#[derive(Serialize)]
pub(super) struct Sorry {
    user: u32,
    reason: &'static str,
}

/// What is in the user's cart.
pub(super) fn cart(call: &mut Call<'_>, Of { user }: Of) -> Result<Items, Error> {
    Ok(Items { items: call.read(&format!("cart/{user}"))? })
}

pub(super) fn price(call: &mut Call<'_>, Items { items }: Items) -> Result<Price, Error> {
    let mut price = Price { cents: 0, grams: 0 };
    for Item { product, count } in items {
        let product: Product = call.read(&format!("product/{product}"))?;
        price.cents += product.cents * u64::from(count);
        price.grams += product.grams * u64::from(count);
    }
    Ok(price)
}

/// Whether the shop delivers where the user lives.
pub(super) fn reach(call: &mut Call<'_>, Of { user }: Of) -> Result<Reached, Error> {
    let user: User = call.read(&format!("user/{user}"))?;
    let country: Country = call.read(&format!("country/{}", user.country))?;
    Ok(Reached { reached: country.is_served })
}

/// Takes the goods: what is sold of each product is counted.
pub(super) fn reserve(call: &mut Call<'_>, Items { items }: Items) -> Result<Reserved, Error> {
    let mut reserved = 0;
    for Item { product, count } in items {
        call.world.add(&format!("sold/{product}"), i64::from(count))?;
        reserved += count;
    }
    Ok(Reserved { reserved })
}

pub(super) fn order(call: &mut Call<'_>, Place { order, what }: Place) -> Result<Placed, Error> {
    call.write(&format!("order/{order}"), &what)?;
    Ok(Placed { order })
}

pub(super) fn pay(call: &mut Call<'_>, Pay { order, card, cents }: Pay) -> Result<Paid, Error> {
    let (issuer, paid) = super::cards::charge(call, &card, cents)?;
    if paid {
        call.write(&format!("payment/{order}"), &Payment { cents, issuer })?;
    }
    Ok(Paid { paid })
}

pub(super) fn ship(call: &mut Call<'_>, Numbered { order }: Numbered) -> Result<Shipped, Error> {
    let Order { user, grams, .. } = call.read(&format!("order/{order}"))?;
    let User { country, .. } = call.read(&format!("user/{user}"))?;
    let parcels = grams.div_ceil(PARCEL_GRAMS_MAX).max(1);
    call.write(&format!("shipment/{order}"), &Shipment { parcels, country })?;
    Ok(Shipped { parcels })
}

pub(super) fn receipt(call: &mut Call<'_>, Numbered { order }: Numbered) -> Result<Receipt, Error> {
    let Payment { cents, issuer } = call.read(&format!("payment/{order}"))?;
    let Shipment { parcels, country } = call.read(&format!("shipment/{order}"))?;
    Ok(Receipt { order, cents, issuer, parcels, country })
}

pub(super) fn sorry(_: &mut Call<'_>, Of { user }: Of) -> Result<Sorry, Error> {
    Ok(Sorry { user, reason: "the shop does not deliver there" })
}
