//! The functions of the workflows. Each gets what it needs in its body, reads or writes what belongs to it, and replies.
//!
//! What a function replies follows from its body and from what the setup has written, whatever others do at the same time: counters that
//! many executions change (seats, rooms, goods) are in no reply, and are so large that nothing is sold out but what the setup says.

pub(crate) mod access;
mod bank;
pub(crate) mod cards;
mod flights;
pub(crate) mod homes;
pub(crate) mod hotels;
mod shop;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::digest;
use crate::world::{Error, World, asked, json, parse};

/// Most work of a function.
pub const WORK_MAX: u64 = 100_000_000;

type Function = fn(&mut Call<'_>, &[u8]) -> Result<Vec<u8>, Error>;

const TABLE: [(&str, Function); 47] = [
    ("login-check", |call, body| call.serve(body, access::check)),
    ("login-welcome", |call, body| call.serve(body, access::welcome)),
    ("login-refuse", |call, body| call.serve(body, access::refuse)),
    ("bank-login", |call, body| call.serve(body, access::check)),
    ("bank-check", |call, body| call.serve(body, bank::check)),
    ("bank-transfer", |call, body| call.serve(body, bank::transfer)),
    ("bank-receipt", |call, body| call.serve(body, bank::receipt)),
    ("bank-decline", |call, body| call.serve(body, bank::decline)),
    ("bank-fail", |call, body| call.serve(body, access::fail)),
    ("flight-login", |call, body| call.serve(body, access::check)),
    ("flight-search", |call, body| call.serve(body, flights::search)),
    ("flight-seats", |call, body| call.serve(body, flights::seats)),
    ("flight-price", |call, body| call.serve(body, flights::price)),
    ("flight-card", |call, body| call.serve(body, cards::check)),
    ("flight-reserve", |call, body| call.serve(body, flights::reserve)),
    ("flight-pay", |call, body| call.serve(body, flights::pay)),
    ("flight-ticket", |call, body| call.serve(body, flights::ticket)),
    ("flight-none", |call, body| call.serve(body, flights::none)),
    ("flight-decline", |call, body| call.serve(body, cards::decline)),
    ("flight-fail", |call, body| call.serve(body, access::fail)),
    ("hotel-search", |call, body| call.serve(body, hotels::search)),
    ("hotel-rank", |call, body| call.serve(body, hotels::rank)),
    ("hotel-check", |call, body| call.serve(body, hotels::check)),
    ("hotel-reserve", |call, body| call.serve(body, hotels::reserve)),
    ("hotel-pay", |call, body| call.serve(body, hotels::pay)),
    ("hotel-confirm", |call, body| call.serve(body, hotels::confirm)),
    ("hotel-sorry", |call, body| call.serve(body, hotels::sorry)),
    ("home-login", |call, body| call.serve(body, access::check)),
    ("home-read", |call, body| call.serve(body, homes::read)),
    ("home-normalize", |call, body| call.serve(body, homes::normalize)),
    ("home-compare", |call, body| call.serve(body, homes::compare)),
    ("home-turn-air", |call, body| call.serve(body, homes::turn_air)),
    ("home-done", |call, body| call.serve(body, homes::done)),
    ("home-fail", |call, body| call.serve(body, access::fail)),
    ("shop-login", |call, body| call.serve(body, access::check)),
    ("shop-cart", |call, body| call.serve(body, shop::cart)),
    ("shop-price", |call, body| call.serve(body, shop::price)),
    ("shop-reach", |call, body| call.serve(body, shop::reach)),
    ("shop-card", |call, body| call.serve(body, cards::check)),
    ("shop-reserve", |call, body| call.serve(body, shop::reserve)),
    ("shop-order", |call, body| call.serve(body, shop::order)),
    ("shop-pay", |call, body| call.serve(body, shop::pay)),
    ("shop-ship", |call, body| call.serve(body, shop::ship)),
    ("shop-receipt", |call, body| call.serve(body, shop::receipt)),
    ("shop-decline", |call, body| call.serve(body, cards::decline)),
    ("shop-sorry", |call, body| call.serve(body, shop::sorry)),
    ("shop-fail", |call, body| call.serve(body, access::fail)),
];

/// Their names.
pub const FUNCTIONS: [&str; TABLE.len()] = {
    let mut names = [""; TABLE.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = TABLE[at].0;
        at += 1;
    }
    names
};

/// How much is computed, beside what is asked.
#[derive(Deserialize)]
struct Work {
    work: u64,
}

/// What a function says, and a checksum of that, which is hashed on for as long as the work says.
#[derive(Serialize)]
struct Sealed<T> {
    #[serde(flatten)]
    reply: T,
    seal: String,
}

/// A function at work.
pub(crate) struct Call<'a> {
    world: &'a mut dyn World,
}

/// The work that a body asks for.
pub(crate) fn checked_work(work: u64) -> Result<u64, Error> {
    if work > WORK_MAX {
        return Err(Error::Asked(format!("`work` is {work}; it has to be 0 to {WORK_MAX}")));
    }
    Ok(work)
}

impl Call<'_> {
    fn serve<Q, A>(&mut self, body: &[u8], function: impl FnOnce(&mut Self, Q) -> Result<A, Error>) -> Result<Vec<u8>, Error>
    where
        Q: DeserializeOwned,
        A: Serialize,
    {
        let Work { work } = asked(body)?;
        let work = checked_work(work)?;
        let reply = function(self, asked(body)?)?;
        let seal = digest::text(digest::worked(digest::hash(&json(&reply), 0), work));
        Ok(json(&Sealed { reply, seal }))
    }

    /// A record of the store, if there is one.
    fn find<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, Error> {
        self.world.get(key)?.map(|value| parse(key, &value)).transpose()
    }

    /// A record that has to be there.
    fn read<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, Error> {
        self.find(key)?
            .ok_or_else(|| Error::Broken(format!("{key} is not in the store; `{}` and earlier functions write it", crate::SETUP)))
    }

    fn write<T: Serialize>(&mut self, key: &str, record: &T) -> Result<(), Error> {
        self.world.set(key, &json(record))
    }
}

/// What the function of that name replies, if there is one.
pub(crate) fn answer(name: &str, world: &mut dyn World, body: &[u8]) -> Option<Result<Vec<u8>, Error>> {
    let (_, function) = TABLE.iter().find(|(known, _)| *known == name)?;
    Some(function(&mut Call { world }, body))
}
