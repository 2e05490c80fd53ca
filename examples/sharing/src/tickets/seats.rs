//! Seats that are sold, and those that are left.

use serde::{Deserialize, Serialize};

use crate::world::Error;

use super::Call;
use super::records::{Count, Percent, Seat};
use super::trips::Of;

/// Dates that can be asked for at once.
const DATES_MAX: usize = 8;

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SoldAsk {
    pub(super) trip: u32,
    pub(super) dates: Vec<u32>,
    /// Places on the route.
    pub(super) from: u32,
    pub(super) to: u32,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SeatsAsk {
    pub(super) trip: u32,
    pub(super) date: u32,
    pub(super) route: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    /// All seats of the train.
    pub(super) all: Count,
}

/// How many seats are taken on each of the dates somewhere between two stations.
pub(super) fn sold(call: &mut Call<'_>, ask: SoldAsk) -> Result<Vec<Count>, Error> {
    if ask.dates.len() > DATES_MAX {
        return Err(Error::Asked(format!("{} dates; {DATES_MAX} are the most", ask.dates.len())));
    }
    let mut counts = Vec::with_capacity(ask.dates.len());
    for date in &ask.dates {
        let seats: Vec<Seat> = call.read(&format!("sold/{}/{date}", ask.trip))?;
        counts.push(taken(&seats, ask.from, ask.to));
    }
    Ok(counts)
}

fn taken(seats: &[Seat], from: u32, to: u32) -> Count {
    let of = |comfort: bool| {
        let taken = seats.iter().filter(|seat| seat.comfort == comfort && seat.from < to && from < seat.to);
        let mut numbers: Vec<u32> = taken.map(|seat| seat.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len() as u32
    };
    Count { comfort: of(true), economy: of(false) }
}

/// How many percent of a route's seats may be sold for parts of it.
pub(super) fn share(call: &mut Call<'_>, ask: Of) -> Result<Percent, Error> {
    call.read(&format!("share/{}", ask.number))
}

pub(super) fn seats(call: &mut Call<'_>, ask: SeatsAsk) -> Result<Count, Error> {
    let SeatsAsk { trip, date, route, from, to, all } = ask;
    let sold: Vec<Count> = call.ask("ts-sold", SoldAsk { trip, dates: vec![date], from, to })?;
    let share: Percent = call.ask("ts-share", Of { number: route })?;
    let left = sold.first().map_or(all, |sold| left(all, *sold, share));
    call.write(&format!("left/{trip}/{date}/{from}-{to}"), &left)?;
    Ok(left)
}

/// Seats that can still be sold.
pub(super) fn left(all: Count, sold: Count, share: Percent) -> Count {
    let of = |all: u32, sold: u32| (all * share.percent / 100).saturating_sub(sold);
    Count { comfort: of(all.comfort, sold.comfort), economy: of(all.economy, sold.economy) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_free_behind_and_before_those_that_have_them() {
        let seat = |comfort, number, from, to| Seat { comfort, number, from, to, order: None };
        let seats = [seat(true, 1, 0, 2), seat(true, 1, 2, 4), seat(false, 7, 1, 3), seat(false, 8, 0, 4)];
        let taken = |from, to| taken(&seats, from, to);
        assert_eq!(taken(0, 4), Count { comfort: 1, economy: 2 });
        assert_eq!(taken(0, 1), Count { comfort: 1, economy: 1 });
        assert_eq!(taken(3, 4), Count { comfort: 1, economy: 1 });
        let all = Count { comfort: 10, economy: 2 };
        assert_eq!(left(all, taken(0, 4), Percent { percent: 90 }), Count { comfort: 8, economy: 0 });
    }
}
