//! Food, luggage and assurances.

use serde::{Deserialize, Serialize};

use crate::world::Error;

use super::Call;
use super::records::{Dishes, Number};
use super::trips::Of;

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct FoodAsk {
    pub(super) trip: u32,
    pub(super) train: u32,
    pub(super) station: u32,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct LuggageAsk {
    pub(super) trip: u32,
    pub(super) train: u32,
    pub(super) grade: u32,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Luggage {
    pub(super) pieces_max: u32,
    pub(super) cents_each: u32,
}

pub(super) fn train_food(call: &mut Call<'_>, ask: Of) -> Result<Dishes, Error> {
    call.read(&format!("train-food/{}", ask.number))
}

pub(super) fn station_food(call: &mut Call<'_>, ask: Of) -> Result<Dishes, Error> {
    call.read(&format!("station-food/{}", ask.number))
}

pub(super) fn food(call: &mut Call<'_>, ask: FoodAsk) -> Result<Dishes, Error> {
    let FoodAsk { trip, train, station } = ask;
    let mut all: Dishes = call.ask("ts-train-food", Of { number: train })?;
    let more: Dishes = call.ask("ts-station-food", Of { number: station })?;
    all.dishes.extend(more.dishes);
    call.write(&format!("menu/{trip}/{station}"), &all)?;
    Ok(all)
}

pub(super) fn luggage_rates(call: &mut Call<'_>, ask: Of) -> Result<Number, Error> {
    call.read(&format!("luggage-rates/{}", ask.number))
}

pub(super) fn luggage_limits(call: &mut Call<'_>, ask: Of) -> Result<Number, Error> {
    call.read(&format!("luggage-limits/{}", ask.number))
}

pub(super) fn luggage(call: &mut Call<'_>, ask: LuggageAsk) -> Result<Luggage, Error> {
    let LuggageAsk { trip, train, grade } = ask;
    let rate: Number = call.ask("ts-luggage-rates", Of { number: train })?;
    let limit: Number = call.ask("ts-luggage-limits", Of { number: grade })?;
    let luggage = Luggage { pieces_max: limit.number, cents_each: rate.number };
    call.write(&format!("luggage/{trip}/{grade}"), &luggage)?;
    Ok(luggage)
}

/// What it costs, in cents.
pub(super) fn assurance(call: &mut Call<'_>, ask: Of) -> Result<Number, Error> {
    call.read(&format!("assurance/{}", ask.number))
}
