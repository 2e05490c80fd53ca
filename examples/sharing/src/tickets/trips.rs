//! Trips, their routes and trains, and when they run.

use serde::{Deserialize, Serialize};

use crate::world::Error;

use super::Call;
use super::records::{Day, Number, Route, Train, Trip};

/// The number of what is wanted.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Of {
    pub(super) number: u32,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TimesAsk {
    pub(super) trip: u32,
    pub(super) date: u32,
    pub(super) departs_min: u32,
    pub(super) km_per_h: u32,
    /// From the first station to those of the journey.
    pub(super) from_km: u32,
    pub(super) to_km: u32,
}

/// Minutes of the first day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Times {
    pub(super) leaves_min: u32,
    pub(super) arrives_min: u32,
}

pub(super) fn trip(call: &mut Call<'_>, ask: Of) -> Result<Trip, Error> {
    call.read(&format!("trip/{}", ask.number))
}

pub(super) fn route(call: &mut Call<'_>, ask: Of) -> Result<Route, Error> {
    call.read(&format!("route/{}", ask.number))
}

pub(super) fn train(call: &mut Call<'_>, ask: Of) -> Result<Train, Error> {
    call.read(&format!("train/{}", ask.number))
}

pub(super) fn times(call: &mut Call<'_>, ask: TimesAsk) -> Result<Times, Error> {
    let day: Day = call.read(&format!("calendar/{}", ask.date))?;
    let times = timed(&ask, day);
    call.write(&format!("times/{}/{}/{}-{}", ask.trip, ask.date, ask.from_km, ask.to_km), &times)?;
    Ok(times)
}

fn timed(ask: &TimesAsk, day: Day) -> Times {
    let minutes = |km: u32| {
        let hundredths = u64::from(km) * 60 * u64::from(100 + day.slower_percent) / u64::from(ask.km_per_h.max(1));
        (hundredths / 100) as u32
    };
    let at = |km: u32| ask.departs_min.saturating_add(minutes(km));
    Times { leaves_min: at(ask.from_km), arrives_min: at(ask.to_km) }
}

pub(super) fn delays(call: &mut Call<'_>, ask: Of) -> Result<Number, Error> {
    call.read(&format!("delays/{}", ask.number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_are_slower_on_some_days() {
        let ask = TimesAsk { trip: 1, date: 2, departs_min: 600, km_per_h: 120, from_km: 60, to_km: 180 };
        let at = |slower_percent: u32| timed(&ask, Day { slower_percent });
        assert_eq!(at(0), Times { leaves_min: 630, arrives_min: 690 });
        assert_eq!(at(10), Times { leaves_min: 633, arrives_min: 699 });
    }
}
