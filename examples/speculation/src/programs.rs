//! The applications once more, as plain programs. They say what the workflows have to do, and are no part of what is served.

use serde_json::{Map, Value};

use crate::world::{asked, parse};
use crate::{Application, Error, Memory};

/// An execution.
struct Run<'a> {
    memory: &'a mut Memory,
    input: Map<String, Value>,
}

/// What a function has replied.
struct Reply {
    bytes: Vec<u8>,
    value: Map<String, Value>,
}

/// A field that an earlier function has replied.
type Given<'a> = (&'a str, &'a Value);

impl Reply {
    fn field<'a>(&'a self, name: &'a str) -> Given<'a> {
        (name, self.value.get(name).unwrap_or(&Value::Null))
    }

    fn says(&self, name: &str) -> bool {
        self.value.get(name) == Some(&Value::Bool(true))
    }
}

impl Run<'_> {
    /// Calls a function with fields of the execution's input, and what earlier ones have replied.
    fn task(&mut self, name: &str, fields: &[&str], given: &[Given<'_>]) -> Result<Reply, Error> {
        let mut body: Map<String, Value> = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).clone())).collect();
        for field in fields.iter().chain(&["work"]) {
            let value = self.input.get(*field).ok_or_else(|| Error::Asked(format!("the input has no `{field}`")))?;
            body.insert((*field).to_owned(), value.clone());
        }
        let bytes = self.memory.answer(name, &crate::world::json(&body))?;
        Ok(Reply { value: parse(name, &bytes)?, bytes })
    }

    /// Whether a function says so.
    fn when(&mut self, name: &str, fields: &[&str], what: &str) -> Result<bool, Error> {
        Ok(self.task(name, fields, &[])?.says(what))
    }

    /// The last function: its reply is the output.
    fn last(&mut self, name: &str, fields: &[&str]) -> Result<Vec<u8>, Error> {
        Ok(self.task(name, fields, &[])?.bytes)
    }
}

pub(crate) fn execute(application: Application, memory: &mut Memory, input: &[u8]) -> Result<Vec<u8>, Error> {
    let mut run = Run { memory, input: asked(input)? };
    match application {
        Application::Login => login(&mut run),
        Application::Banking => banking(&mut run),
        Application::FlightBook => flight_book(&mut run),
        Application::HotelBook => hotel_book(&mut run),
        Application::SmartHome => smart_home(&mut run),
        Application::OnlinePurchase => online_purchase(&mut run),
    }
}

const CREDENTIALS: [&str; 2] = ["user", "password"];

fn login(run: &mut Run<'_>) -> Result<Vec<u8>, Error> {
    let granted = run.when("login-check", &CREDENTIALS, "granted")?;
    run.last(if granted { "login-welcome" } else { "login-refuse" }, &["user"])
}

fn banking(run: &mut Run<'_>) -> Result<Vec<u8>, Error> {
    let transfer = ["user", "to", "amount_cents"];
    if !run.when("bank-login", &CREDENTIALS, "granted")? {
        return run.last("bank-fail", &["user"]);
    }
    if !run.when("bank-check", &transfer, "allowed")? {
        return run.last("bank-decline", &transfer);
    }
    run.task("bank-transfer", &transfer, &[])?;
    run.last("bank-receipt", &["transfer", "user", "to", "amount_cents"])
}

fn flight_book(run: &mut Run<'_>) -> Result<Vec<u8>, Error> {
    let seats = ["flight", "date", "seats"];
    if !run.when("flight-login", &CREDENTIALS, "granted")? {
        return run.last("flight-fail", &["user"]);
    }
    if !run.when("flight-search", &["from", "to", "flight", "date"], "found")? || !run.when("flight-seats", &seats, "left")? {
        return run.last("flight-none", &seats);
    }
    let price = run.task("flight-price", &seats, &[])?;
    if !run.when("flight-card", &["card"], "valid")? {
        return run.last("flight-decline", &["card"]);
    }
    run.task("flight-reserve", &["booking", "flight", "date", "seats"], &[])?;
    run.task("flight-pay", &["booking", "flight", "date", "seats", "card"], &[])?;
    let ticket = run.last("flight-ticket", &["booking", "flight", "date", "seats", "user"])?;
    let (_, cents) = price.field("cents");
    Ok([format!(r#"{{"cents":{cents},"ticket":"#).as_bytes(), &ticket, b"}"].concat())
}

fn hotel_book(run: &mut Run<'_>) -> Result<Vec<u8>, Error> {
    let found = run.task("hotel-search", &["city", "date"], &[])?;
    let best = run.task("hotel-rank", &["km_cents"], &[found.field("hotels")])?;
    let (hotel, cents) = (best.field("hotel"), best.field("cents"));
    if !run.task("hotel-check", &["date", "nights"], &[hotel])?.says("free") {
        return run.last("hotel-sorry", &["city", "date"]);
    }
    run.task("hotel-reserve", &["user", "date", "nights", "booking"], &[hotel, cents])?;
    let paid = run.task("hotel-pay", &["booking", "card"], &[])?;
    if !paid.says("paid") {
        return run.last("hotel-sorry", &["city", "date"]);
    }
    Ok(run.task("hotel-confirm", &["user", "booking"], &[paid.field("cents")])?.bytes)
}

fn smart_home(run: &mut Run<'_>) -> Result<Vec<u8>, Error> {
    if !run.when("home-login", &CREDENTIALS, "granted")? {
        return run.last("home-fail", &["user"]);
    }
    let raw = run.task("home-read", &["home", "hour"], &[])?;
    let normal = run.task("home-normalize", &[], &[raw.field("readings")])?;
    let tenths = normal.field("tenths");
    if run.task("home-compare", &["home"], &[tenths])?.says("outside") {
        run.task("home-turn-air", &["home", "hour"], &[tenths])?;
    }
    run.last("home-done", &["home", "hour"])
}

fn online_purchase(run: &mut Run<'_>) -> Result<Vec<u8>, Error> {
    if !run.when("shop-login", &CREDENTIALS, "granted")? {
        return run.last("shop-fail", &["user"]);
    }
    let cart = run.task("shop-cart", &["user"], &[])?;
    let price = run.task("shop-price", &[], &[cart.field("items")])?;
    let (cents, grams) = (price.field("cents"), price.field("grams"));
    if !run.when("shop-reach", &["user"], "reached")? {
        return run.last("shop-sorry", &["user"]);
    }
    if !run.when("shop-card", &["card"], "valid")? {
        return run.last("shop-decline", &["card"]);
    }
    run.task("shop-reserve", &[], &[cart.field("items")])?;
    run.task("shop-order", &["order", "user"], &[cents, grams])?;
    if !run.task("shop-pay", &["order", "card"], &[cents])?.says("paid") {
        return run.last("shop-decline", &["card"]);
    }
    run.task("shop-ship", &["order"], &[])?;
    run.last("shop-receipt", &["order"])
}
