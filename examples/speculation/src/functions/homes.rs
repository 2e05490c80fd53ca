//! Homes: temperatures, and what is done about them.

use serde::{Deserialize, Serialize};

use crate::records::{Air, Comfort, Day, Readings};
use crate::world::Error;

use super::Call;

/// What a sensor says at most, and the temperature that it stands for, in tenths of a degree.
const READING_MAX: u32 = 4_095;
const TENTHS_MAX: u32 = 500;

#[derive(Deserialize)]
pub(super) struct At {
    home: u32,
    hour: u32,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Raw {
    readings: Readings,
}

#[derive(Serialize)]
pub(super) struct Normal {
    tenths: u32,
}

#[derive(Deserialize)]
pub(super) struct Compare {
    home: u32,
    tenths: u32,
}

#[derive(Serialize)]
pub(super) struct Compared {
    outside: bool,
}

#[derive(Deserialize)]
pub(super) struct TurnAir {
    #[serde(flatten)]
    at: At,
    tenths: u32,
}

#[derive(Serialize)]
pub(super) struct Done {
    home: u32,
    hour: u32,
    power: i32,
}

/// The temperature that most sensors agree on: the mean of the two in the middle.
pub(crate) fn tenths(mut readings: Readings) -> u32 {
    readings.sort_unstable();
    (u32::from(readings[1]) + u32::from(readings[2])) * TENTHS_MAX / (2 * READING_MAX)
}

/// What a sensor says at a temperature.
pub(crate) fn reading(tenths: u32) -> u16 {
    (tenths * READING_MAX).div_ceil(TENTHS_MAX) as u16
}

pub(crate) fn is_outside(tenths: u32, Comfort { low, high }: Comfort) -> bool {
    !(low..=high).contains(&tenths)
}

pub(super) fn read(call: &mut Call<'_>, At { home, hour }: At) -> Result<Raw, Error> {
    let day: Day = call.read(&format!("sensors/{home}"))?;
    let readings = day.get(hour as usize).ok_or_else(|| Error::Asked(format!("`hour` is {hour}; a day has {}", day.len())))?;
    Ok(Raw { readings: *readings })
}

pub(super) fn normalize(_: &mut Call<'_>, Raw { readings }: Raw) -> Result<Normal, Error> {
    Ok(Normal { tenths: tenths(readings) })
}

pub(super) fn compare(call: &mut Call<'_>, Compare { home, tenths }: Compare) -> Result<Compared, Error> {
    let comfort: Comfort = call.read(&format!("comfort/{home}"))?;
    Ok(Compared { outside: is_outside(tenths, comfort) })
}

/// Heats or cools, the more the further the temperature is from what is wanted.
pub(super) fn turn_air(call: &mut Call<'_>, TurnAir { at: At { home, hour }, tenths }: TurnAir) -> Result<Air, Error> {
    let Comfort { low, high } = call.read(&format!("comfort/{home}"))?;
    let power = (i64::from(low.midpoint(high)) - i64::from(tenths)) / 5;
    let air = Air { power: power.clamp(-100, 100) as i32 };
    call.write(&format!("air/{home}/{hour}"), &air)?;
    Ok(air)
}

/// What the air conditioner does in that hour, which is nothing if it was not turned on.
pub(super) fn done(call: &mut Call<'_>, At { home, hour }: At) -> Result<Done, Error> {
    let air: Option<Air> = call.find(&format!("air/{home}/{hour}"))?;
    Ok(Done { home, hour, power: air.map_or(0, |air| air.power) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broken_sensor_changes_nothing() {
        let all = [215, 215, 215, 215].map(reading);
        assert_eq!(tenths(all), 215);
        assert_eq!(tenths([all[0], 0, all[2], all[3]]), 215);
        assert_eq!(tenths([all[0], all[1], 4_095, all[3]]), 215);
    }
}
