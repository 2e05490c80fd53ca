//! What a journey costs.

use serde::{Deserialize, Serialize};

use crate::world::Error;

use super::Call;
use super::records::{Percent, Rates};
use super::trips::Of;

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RatesAsk {
    pub(super) route: u32,
    pub(super) train: u32,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct PricesAsk {
    pub(super) trip: u32,
    pub(super) route: u32,
    pub(super) train: u32,
    pub(super) date: u32,
    pub(super) km: u32,
    /// Of the user.
    pub(super) grade: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Prices {
    pub(super) comfort_cents: u32,
    pub(super) economy_cents: u32,
}

pub(super) fn rates(call: &mut Call<'_>, ask: RatesAsk) -> Result<Rates, Error> {
    call.read(&format!("rates/{}/{}", ask.route, ask.train))
}

/// How many percent a grade pays.
pub(super) fn discount(call: &mut Call<'_>, ask: Of) -> Result<Percent, Error> {
    call.read(&format!("discount/{}", ask.number))
}

/// How many percent a date costs.
pub(super) fn holiday(call: &mut Call<'_>, ask: Of) -> Result<Percent, Error> {
    call.read(&format!("holiday/{}", ask.number))
}

pub(super) fn prices(call: &mut Call<'_>, ask: PricesAsk) -> Result<Prices, Error> {
    let PricesAsk { trip, route, train, date, km, grade } = ask;
    let rates: Rates = call.ask("ts-rates", RatesAsk { route, train })?;
    let discount: Percent = call.ask("ts-discount", Of { number: grade })?;
    let holiday: Percent = call.ask("ts-holiday", Of { number: date })?;
    let prices = priced(km, rates, discount, holiday);
    call.write(&format!("quote/{trip}/{date}/{km}/{grade}"), &prices)?;
    Ok(prices)
}

fn priced(km: u32, rates: Rates, discount: Percent, holiday: Percent) -> Prices {
    let of = |rate: u32| {
        let cents = u64::from(km) * u64::from(rate) * u64::from(discount.percent) * u64::from(holiday.percent) / 100_000;
        u32::try_from(cents).unwrap_or(u32::MAX)
    };
    Prices { comfort_cents: of(rates.comfort), economy_cents: of(rates.economy) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grade_and_date_change_the_price() {
        let rates = Rates { comfort: 250, economy: 100 };
        let at = |discount, holiday| priced(300, rates, Percent { percent: discount }, Percent { percent: holiday });
        assert_eq!(at(100, 100), Prices { comfort_cents: 7_500, economy_cents: 3_000 });
        assert_eq!(at(80, 150), Prices { comfort_cents: 9_000, economy_cents: 3_600 });
    }
}
