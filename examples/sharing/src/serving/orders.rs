//! CreateOrd and PayOrd: an order service. What is written has the order's number in its key, so that the same order twice is the same order.

use serde::{Deserialize, Serialize};

use crate::digest;
use crate::world::{Error, World, json, read_json};

use super::Output;

/// What a user wants to buy.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Cart {
    pub(super) user: u32,
    pub(super) product: u32,
    pub(super) count: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct User {
    /// The number of the discount.
    pub(super) grade: u32,
    /// The number of the currency of the account.
    pub(super) currency: u32,
    /// The number of the way of payment.
    pub(super) method: u32,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Price {
    pub(super) cents: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Stock {
    pub(super) count: u64,
}

/// Of a price, an exchange or a payment.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Share {
    pub(super) per_mille: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Limits {
    pub(super) count_max: u64,
    pub(super) cents_max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Order {
    pub(super) order: u32,
    pub(super) user: u32,
    pub(super) product: u32,
    pub(super) count: u64,
    pub(super) cents: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Account {
    pub(super) cents: u64,
}

/// A withdrawal.
#[derive(Clone, Copy, Debug, Serialize)]
struct Payment {
    order: u32,
    /// In the account's currency.
    cents: u64,
}

pub(super) fn create(world: &mut dyn World, input: u32, work: u32) -> Result<Output, Error> {
    let cart: Cart = read_json(world, &format!("cart/{input}"))?;
    let user: User = read_json(world, &format!("user/{}", cart.user))?;
    let price: Price = read_json(world, &format!("price/{}", cart.product))?;
    let stock: Stock = read_json(world, &format!("stock/{}", cart.product))?;
    let discount: Share = read_json(world, &format!("discount/{}", user.grade))?;
    let limits: Limits = read_json(world, "limits")?;
    let order = ordered(input, cart, price, stock, discount, limits)?;
    world.set(&format!("order/{input}"), &json(&order))?;
    world.set(&format!("reserved/{}/{input}", cart.product), cart.count.to_string().as_bytes())?;
    Ok(receipt(&json(&order), work, format!("{} cents", order.cents)))
}

/// The order of a cart.
pub(super) fn ordered(
    order: u32,
    cart: Cart,
    price: Price,
    stock: Stock,
    discount: Share,
    limits: Limits,
) -> Result<Order, Error> {
    let Cart { user, product, count } = cart;
    if count == 0 || count > limits.count_max || count > stock.count {
        return Err(Error::Broken(format!("cart {order}: {count} of product {product}, of which there are {}", stock.count)));
    }
    let cents = price.cents * count * (1_000 - discount.per_mille.min(1_000)) / 1_000;
    if cents > limits.cents_max {
        return Err(Error::Broken(format!("cart {order}: {cents} cents; {} are the most", limits.cents_max)));
    }
    Ok(Order { order, user, product, count, cents })
}

pub(super) fn pay(world: &mut dyn World, input: u32, work: u32) -> Result<Output, Error> {
    let order: Order = read_json(world, &format!("order/{input}"))?;
    let user: User = read_json(world, &format!("user/{}", order.user))?;
    let account: Account = read_json(world, &format!("account/{}", order.user))?;
    let rate: Share = read_json(world, &format!("rate/{}", user.currency))?;
    let fee: Share = read_json(world, &format!("fee/{}", user.method))?;
    let limits: Limits = read_json(world, "limits")?;
    let payment = payment(order, account, rate, fee, limits)?;
    // The ledger is what an account has spent. The record of one order is written once more by a second payment of it, not added.
    world.set(&format!("ledger/{}/{input}", order.user), &json(&payment))?;
    world.set(&format!("paid/{input}"), payment.cents.to_string().as_bytes())?;
    Ok(receipt(&json(&payment), work, format!("{} cents of {}", payment.cents, account.cents)))
}

fn payment(order: Order, account: Account, rate: Share, fee: Share, limits: Limits) -> Result<Payment, Error> {
    let cents = order.cents * rate.per_mille / 1_000;
    let cents = cents + cents * fee.per_mille / 1_000;
    if cents > account.cents || order.cents > limits.cents_max {
        return Err(Error::Broken(format!("order {}: {cents} cents; the account has {}", order.order, account.cents)));
    }
    Ok(Payment { order: order.order, cents })
}

/// A record, and its seal.
fn receipt(record: &[u8], work: u32, result: String) -> Output {
    let seal = digest::text(digest::sealed(record, work));
    Output { bytes: [record, seal.as_bytes()].concat(), result }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { count_max: 5, cents_max: 10_000 };

    #[test]
    fn a_cart_is_checked_and_priced() {
        let order = |count: u64, stock: u64, per_mille: u64, limits: Limits| {
            ordered(
                9,
                Cart { user: 1, product: 2, count },
                Price { cents: 1_999 },
                Stock { count: stock },
                Share { per_mille },
                limits,
            )
        };
        assert_eq!(order(3, 3, 100, LIMITS), Ok(Order { order: 9, user: 1, product: 2, count: 3, cents: 5_397 }));
        for refused in [
            order(3, 2, 0, LIMITS),
            order(0, 3, 0, LIMITS),
            order(6, 9, 0, LIMITS),
            order(3, 3, 0, Limits { cents_max: 5_996, ..LIMITS }),
        ] {
            assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
        }
    }

    #[test]
    fn a_payment_has_rate_and_fee_and_needs_the_money() {
        let order = Order { order: 9, user: 1, product: 2, count: 1, cents: 1_000 };
        let pay = |cents: u64| payment(order, Account { cents }, Share { per_mille: 1_500 }, Share { per_mille: 20 }, LIMITS);
        assert_eq!(pay(1_530).map(|payment| payment.cents), Ok(1_530));
        assert!(pay(1_529).is_err());
    }
}
