//! Stations: names to ids and back.

use serde::{Deserialize, Serialize};

use crate::world::Error;

use super::Call;
use super::records::Station;

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Names {
    pub(super) from: String,
    pub(super) to: String,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Stations {
    pub(super) from: Station,
    pub(super) to: Station,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Ids {
    pub(super) first: u32,
    pub(super) last: u32,
}

pub(super) fn station_ids(call: &mut Call<'_>, ask: Names) -> Result<Stations, Error> {
    let from = call.read(&format!("station/{}", ask.from))?;
    let to = call.read(&format!("station/{}", ask.to))?;
    Ok(Stations { from, to })
}

pub(super) fn station_names(call: &mut Call<'_>, ask: Ids) -> Result<Names, Error> {
    let from = call.read(&format!("name/{}", ask.first))?;
    let to = call.read(&format!("name/{}", ask.last))?;
    Ok(Names { from, to })
}
