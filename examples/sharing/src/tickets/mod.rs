//! Five applications of a railway, after the TrainTicket benchmark: functions that call each other and read and write small records.
//!
//! Each function is a step: it gets a question by value, reads or writes what belongs to it, asks others, and replies. Nothing is shared
//! but the store, and each function asks one thing after the other.

mod data;
mod extras;
mod orders;
mod people;
mod places;
mod prices;
mod records;
mod searches;
mod seats;
mod trips;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::digest;
use crate::serving::{WORK_MAX, asked, setup_asked, setup_reply};
use crate::world::{Error, World, json, parse, write_all};

pub use data::{DATES, TRIPS};
pub use searches::Journey;

/// What their names begin with.
pub(crate) const PREFIX: &str = "ts-";
/// The name of the function that writes the railway's data.
pub(crate) const SETUP: &str = "ts-setup";

/// What clients ask.
pub const APPLICATIONS: [&str; 4] = ["ts-tickets", "ts-trip-info", "ts-left", "ts-cancel"];

/// What clients ask, too: an application that is not in the table of MXFaaS, but in that of SpecFaaS.
pub const TRAVEL: &str = "ts-travel";

type Step = fn(&mut Call<'_>, &[u8]) -> Result<Reply, Error>;

/// All functions: the applications' own, and those that they call.
const TABLE: [(&str, Step); 32] = [
    ("ts-tickets", |call, body| call.serve(body, searches::tickets)),
    ("ts-trip-info", |call, body| call.serve(body, searches::trip_info)),
    ("ts-left", |call, body| call.serve(body, searches::left)),
    ("ts-cancel", |call, body| call.serve(body, orders::cancel)),
    ("ts-station-ids", |call, body| call.serve(body, places::station_ids)),
    ("ts-station-names", |call, body| call.serve(body, places::station_names)),
    ("ts-trip", |call, body| call.serve(body, trips::trip)),
    ("ts-route", |call, body| call.serve(body, trips::route)),
    ("ts-train", |call, body| call.serve(body, trips::train)),
    ("ts-times", |call, body| call.serve(body, trips::times)),
    ("ts-delays", |call, body| call.serve(body, trips::delays)),
    ("ts-sold", |call, body| call.serve(body, seats::sold)),
    ("ts-share", |call, body| call.serve(body, seats::share)),
    ("ts-seats", |call, body| call.serve(body, seats::seats)),
    ("ts-rates", |call, body| call.serve(body, prices::rates)),
    ("ts-discount", |call, body| call.serve(body, prices::discount)),
    ("ts-holiday", |call, body| call.serve(body, prices::holiday)),
    ("ts-prices", |call, body| call.serve(body, prices::prices)),
    ("ts-user", |call, body| call.serve(body, people::user)),
    ("ts-contact", |call, body| call.serve(body, people::contact)),
    ("ts-remember", |call, body| call.serve(body, people::remember)),
    ("ts-train-food", |call, body| call.serve(body, extras::train_food)),
    ("ts-station-food", |call, body| call.serve(body, extras::station_food)),
    ("ts-food", |call, body| call.serve(body, extras::food)),
    ("ts-luggage-rates", |call, body| call.serve(body, extras::luggage_rates)),
    ("ts-luggage-limits", |call, body| call.serve(body, extras::luggage_limits)),
    ("ts-luggage", |call, body| call.serve(body, extras::luggage)),
    ("ts-assurance", |call, body| call.serve(body, extras::assurance)),
    ("ts-order", |call, body| call.serve(body, orders::order)),
    ("ts-refund-rate", |call, body| call.serve(body, orders::refund_rate)),
    ("ts-pay-back", |call, body| call.serve(body, orders::pay_back)),
    (TRAVEL, |call, body| call.serve(body, searches::travel)),
];

/// Their names.
pub const STEPS: [&str; TABLE.len()] = {
    let mut names = [""; TABLE.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = TABLE[at].0;
        at += 1;
    }
    names
};

/// What a function is asked.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Message<T> {
    ask: T,
    /// Rounds of the seal, for it and all that it calls.
    #[serde(default)]
    work: u32,
}

/// What it says, and a checksum of that.
#[derive(Debug, Deserialize, Serialize)]
struct Sealed<T> {
    reply: T,
    seal: String,
}

/// The bytes of such a reply.
struct Reply(Vec<u8>);

/// A function at work.
struct Call<'a> {
    world: &'a mut dyn World,
    work: u32,
}

impl Call<'_> {
    fn serve<Q, A>(&mut self, body: &[u8], step: impl FnOnce(&mut Self, Q) -> Result<A, Error>) -> Result<Reply, Error>
    where
        Q: DeserializeOwned,
        A: Serialize,
    {
        let Message { ask, work } = asked(body)?;
        if work > WORK_MAX {
            return Err(Error::Asked(format!("`work` is {work}; it has to be 0 to {WORK_MAX}")));
        }
        self.work = work;
        let reply = step(self, ask)?;
        let seal = digest::text(digest::sealed(&json(&reply), self.work));
        Ok(Reply(json(&Sealed { reply, seal })))
    }

    /// What another function says.
    fn ask<Q: Serialize, A: DeserializeOwned>(&mut self, name: &str, ask: Q) -> Result<A, Error> {
        let reply = self.world.call(name, &json(&Message { ask, work: self.work }))?;
        Ok(parse::<Sealed<A>>(name, &reply)?.reply)
    }

    /// A record of the store.
    fn read<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, Error> {
        crate::world::read_json(self.world, key)
    }

    fn write<T: Serialize>(&mut self, key: &str, record: &T) -> Result<(), Error> {
        self.world.set(key, &json(record))
    }
}

pub(crate) fn answer(name: &str, world: &mut dyn World, body: &[u8]) -> Result<Vec<u8>, Error> {
    if name == SETUP {
        let ask = setup_asked(body, TRIPS)?;
        return Ok(setup_reply(write_all(world, data::entries(ask.from, ask.to.min(TRIPS)))?));
    }
    match TABLE.iter().find(|(known, _)| *known == name) {
        Some((_, step)) => Ok(step(&mut Call { world, work: 0 }, body)?.0),
        None => Err(Error::Asked(format!("there is no function `{name}`"))),
    }
}

/// The body of request number `input` to an application.
pub(crate) fn body(name: &str, input: u32, work: u32) -> String {
    let message = match name {
        "ts-cancel" => json(&Message { ask: orders::Cancel { order: input % data::ORDERS }, work }),
        "ts-left" | TRAVEL => json(&Message { ask: searches::Left::from(Journey::numbered(input)), work }),
        _ => json(&Message { ask: Journey::numbered(input), work }),
    };
    String::from_utf8(message).unwrap_or_default()
}
