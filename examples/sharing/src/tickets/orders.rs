//! Orders, and taking them back. All that a cancellation writes has the order's number in it: a second one writes the same once more, and nothing is paid twice.

use serde::{Deserialize, Serialize};

use crate::world::{Error, json, parse};

use super::Call;
use super::records::{Number, Order, Percent, Seat};
use super::trips::Of;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    pub(super) order: u32,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Cancelled {
    order: u32,
    refund_cents: u32,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct PayBack {
    user: u32,
    order: u32,
    cents: u32,
}

pub(super) fn cancel(call: &mut Call<'_>, ask: Cancel) -> Result<Cancelled, Error> {
    let order: Order = call.ask("ts-order", Of { number: ask.order })?;
    let rate: Percent = call.ask("ts-refund-rate", Of { number: order.date })?;
    let cents = order.cents * rate.percent / 100;
    let paid: PayBack = call.ask("ts-pay-back", PayBack { user: order.user, order: ask.order, cents })?;
    release(call, &format!("sold/{}/{}", order.trip, order.date), ask.order)?;
    call.write(&format!("order/{}", ask.order), &Order { is_cancelled: true, ..order })?;
    Ok(Cancelled { order: ask.order, refund_cents: paid.cents })
}

/// Gives the seat of an order back, and keeps what others do with the seats of that train at the same time.
///
/// Each attempt that fails is another request's that succeeded, so all requests together get on. How often one of them loses depends on how many there are; its deadline is the limit.
fn release(call: &mut Call<'_>, key: &str, order: u32) -> Result<(), Error> {
    loop {
        let Some(entry) = call.world.get(key)? else {
            return Err(Error::Broken(format!("{key} is not in the store")));
        };
        let mut seats: Vec<Seat> = parse(key, &entry.value)?;
        seats.retain(|seat| seat.order != Some(order));
        if call.world.swap(key, entry.version, &json(&seats))? {
            return Ok(());
        }
    }
}

pub(super) fn order(call: &mut Call<'_>, ask: Of) -> Result<Order, Error> {
    call.read(&format!("order/{}", ask.number))
}

/// How many percent of its price come back of an order for a date.
pub(super) fn refund_rate(call: &mut Call<'_>, ask: Of) -> Result<Percent, Error> {
    call.read(&format!("refund/{}", ask.number / 7))
}

pub(super) fn pay_back(call: &mut Call<'_>, ask: PayBack) -> Result<PayBack, Error> {
    let limit: Number = call.read(&format!("account/{}", ask.user))?;
    let paid = PayBack { cents: ask.cents.min(limit.number), ..ask };
    call.write(&format!("paid-back/{}/{}", paid.user, paid.order), &paid)?;
    Ok(paid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, World};

    /// A store with one entry, which another writer changes before so many of the swaps.
    struct Rival {
        entry: Entry,
        changes: usize,
    }

    fn seat(number: u32, order: Option<u32>) -> Seat {
        Seat { comfort: false, number, from: 0, to: 1, order }
    }

    impl World for Rival {
        fn get(&mut self, _: &str) -> Result<Option<Entry>, Error> {
            Ok(Some(self.entry.clone()))
        }

        fn swap(&mut self, _: &str, version: u64, value: &[u8]) -> Result<bool, Error> {
            if self.changes > 0 {
                self.changes -= 1;
                let mut seats: Vec<Seat> = serde_json::from_slice(&self.entry.value).unwrap();
                seats.push(seat(100 + self.changes as u32, None));
                self.entry = Entry { version: self.entry.version + 1, value: json(&seats) };
            }
            let is_made = version == self.entry.version;
            if is_made {
                self.entry = Entry { version: version + 1, value: value.to_owned() };
            }
            Ok(is_made)
        }

        fn set(&mut self, _: &str, _: &[u8]) -> Result<(), Error> {
            panic!("it would overwrite what others have written");
        }

        fn set_many(&mut self, _: &[(String, Vec<u8>)]) -> Result<(), Error> {
            panic!("it would overwrite what others have written");
        }

        fn call(&mut self, name: &str, _: &[u8]) -> Result<Vec<u8>, Error> {
            panic!("{name} is not needed");
        }
    }

    fn released(changes: usize) -> (Result<(), Error>, Vec<u32>) {
        let entry = Entry { version: 1, value: json(&[seat(1, Some(7)), seat(2, Some(8))]) };
        let mut rival = Rival { entry, changes };
        let done = release(&mut Call { world: &mut rival, work: 0 }, "sold/0/20", 7);
        let seats: Vec<Seat> = serde_json::from_slice(&rival.entry.value).unwrap();
        (done, seats.iter().map(|seat| seat.number).collect())
    }

    #[test]
    fn a_seat_is_given_back_beside_others_that_are_sold() {
        assert_eq!(released(0), (Ok(()), vec![2]));
        assert_eq!(released(3), (Ok(()), vec![2, 102, 101, 100]));
        let (done, seats) = released(1_000);
        assert!(done.is_ok() && seats.len() == 1_001 && seats[0] == 2);
    }
}
