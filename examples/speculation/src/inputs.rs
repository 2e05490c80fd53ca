//! Inputs of the workflows, drawn from a seed: as users would make them, or with branches and repetitions as often as a measurement wants them.

use serde_json::{Value, json};

use crate::Application;
use crate::data::{self, CITIES, DATES, FLIGHTS, HOURS, ISSUERS, USERS};
use crate::functions::access::password;
use crate::functions::cards;
use crate::random::{Random, Zipf};

/// Inputs that are repeated.
const KEPT: usize = 32;
/// Numbers of bookings, transfers and orders that a seed has for itself.
const NUMBERS_EACH: u64 = 1_000_000_000;
/// Seeds that have numbers of their own: all numbers are exact in JSON.
const SEEDS: u64 = 1_000_000;

/// Which ways executions take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// What users, days and cards make of it.
    Natural,
    /// Each branch goes the common way so many times of a hundred, whatever the others do.
    Branches {
        /// 100 for the common path alone.
        percent: u32,
    },
    /// All branches go the common way so many times of a hundred; otherwise one of them, each as often as the others, is the first that does not.
    Whole {
        /// 100 for the common path alone.
        percent: u32,
    },
}

/// What inputs are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Which ways executions take.
    pub paths: Paths,
    /// How many times of a hundred an input is one that came before.
    pub repeats_percent: u32,
    /// How much each function computes.
    pub work: u64,
}

impl Default for Mix {
    fn default() -> Mix {
        Mix { paths: Paths::Natural, repeats_percent: 0, work: 0 }
    }
}

/// An endless series of inputs of an application. The same seed gives the same series.
#[derive(Clone, Debug)]
pub struct Inputs {
    application: Application,
    mix: Mix,
    random: Random,
    users: Zipf,
    flights: Zipf,
    cities: Zipf,
    /// That of the last booking, transfer or order.
    number: u64,
    kept: Vec<String>,
}

/// Where a branch is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Any,
    Common,
    Other,
}

use Way::{Any, Common, Other};

impl Way {
    fn allows(self, is_common: bool) -> bool {
        match self {
            Any => true,
            Common => is_common,
            Other => !is_common,
        }
    }
}

/// Of all branches, in their order.
type Ways = [Way; 4];

impl Inputs {
    /// The series of a seed.
    #[must_use]
    pub fn new(application: Application, seed: u64, mix: Mix) -> Inputs {
        Inputs {
            application,
            mix,
            random: Random::of(application.name(), seed),
            users: Zipf::new(USERS),
            flights: Zipf::new(FLIGHTS),
            cities: Zipf::new(CITIES),
            number: seed % SEEDS * NUMBERS_EACH,
            kept: Vec::new(),
        }
    }

    fn ways(&mut self) -> Ways {
        let branches = self.application.branches();
        match self.mix.paths {
            Paths::Natural => [Any; 4],
            Paths::Branches { percent } => std::array::from_fn(|_| if self.random.is(percent) { Common } else { Other }),
            Paths::Whole { percent } if self.random.is(percent) => [Common; 4],
            Paths::Whole { .. } => {
                let other = self.random.below(branches as u32) as usize;
                std::array::from_fn(|branch| if branch == other { Other } else { Common })
            }
        }
    }

    fn fresh(&mut self) -> String {
        let ways = self.ways();
        self.number += 1;
        let user = self.users.draw(&mut self.random);
        let mut input = match self.application {
            Application::Login => self.login(user, ways),
            Application::Banking => self.banking(user, ways),
            Application::FlightBook => self.flight_book(user, ways),
            Application::HotelBook => self.hotel_book(user, ways),
            Application::SmartHome => self.smart_home(user, ways),
            Application::OnlinePurchase => self.online_purchase(user, ways),
        };
        input["work"] = json!(self.mix.work);
        input.to_string()
    }

    fn login(&mut self, user: u32, [granted, ..]: Ways) -> Value {
        json!({ "user": user, "password": self.password(user, granted) })
    }

    fn banking(&mut self, user: u32, [granted, allowed, ..]: Ways) -> Value {
        let to = (user + self.random.between(1, USERS - 1)) % USERS;
        let limit = data::limit(user) as u32;
        let amount =
            if self.goes(allowed, 92) { self.random.between(1, limit) } else { self.random.between(limit + 1, 2 * limit) };
        json!({
            "user": user, "password": self.password(user, granted), "transfer": self.number, "to": to, "amount_cents": amount,
        })
    }

    fn flight_book(&mut self, user: u32, [granted, found, left, valid]: Ways) -> Value {
        let flight = self.flights.draw(&mut self.random);
        let (from, to) = data::airports(flight);
        let is_right = |date| match data::flies(flight, date) {
            true => found.allows(true) && left.allows(!data::is_full(flight, date)),
            false => found.allows(false),
        };
        let date = self.searched(DATES, is_right);
        json!({
            "user": user, "password": self.password(user, granted), "booking": self.number, "from": from, "to": to,
            "flight": flight, "date": date, "seats": self.random.between(1, 4), "card": self.card(user, valid, Common),
        })
    }

    fn hotel_book(&mut self, user: u32, [free, paid, ..]: Ways) -> Value {
        let city = self.cities.draw(&mut self.random);
        let (nights, km_cents) = (self.random.between(1, 3), 100 * self.random.between(1, 3));
        let date = self.searched(DATES, |date| free.allows(data::has_room(city, date, nights, u64::from(km_cents))));
        json!({
            "user": user, "booking": self.number, "city": city, "date": date, "nights": nights, "km_cents": km_cents,
            "card": self.card(user, Common, paid),
        })
    }

    fn smart_home(&mut self, user: u32, [granted, outside, ..]: Ways) -> Value {
        let hour = self.searched(HOURS, |hour| outside.allows(data::needs_air(user, hour)));
        json!({ "user": user, "password": self.password(user, granted), "home": user, "hour": hour })
    }

    fn online_purchase(&mut self, user: u32, [granted, reached, valid, paid]: Ways) -> Value {
        // The next user that lives where the branch goes.
        let user = (user..USERS).chain(0..user).find(|user| reached.allows(data::is_served(*user))).unwrap_or(user);
        json!({
            "user": user, "password": self.password(user, granted), "order": self.number, "card": self.card(user, valid, paid),
        })
    }

    /// One of `count` numbers that is right: a random one, or the next one after it.
    fn searched(&mut self, count: u32, is_right: impl Fn(u32) -> bool) -> u32 {
        let first = self.random.below(count);
        (first..count).chain(0..first).find(|number| is_right(*number)).unwrap_or(first)
    }

    /// Whether a branch goes the common way, which it does so many times of a hundred if it may go both.
    fn goes(&mut self, way: Way, percent: u32) -> bool {
        match way {
            Any => self.random.is(percent),
            Common => true,
            Other => false,
        }
    }

    fn password(&mut self, user: u32, granted: Way) -> String {
        if self.goes(granted, 96) { password(user) } else { format!("{}?", password(user)) }
    }

    /// Each user has one card that is right.
    fn card(&mut self, user: u32, valid: Way, pays: Way) -> String {
        let (is_valid, pays) = (self.goes(valid, 98), self.goes(pays, 97));
        let place = if pays { user % (ISSUERS - 1) } else { ISSUERS - 1 };
        cards::made(data::issuer(place), user, is_valid)
    }
}

impl Iterator for Inputs {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if !self.kept.is_empty() && self.random.is(self.mix.repeats_percent) {
            let place = self.random.below(self.kept.len() as u32) as usize;
            return self.kept.get(place).cloned();
        }
        let input = self.fresh();
        if self.kept.len() < KEPT {
            self.kept.push(input.clone());
        }
        Some(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;
    use std::collections::{BTreeMap, BTreeSet};

    fn inputs(application: Application, paths: Paths, repeats_percent: u32) -> Inputs {
        Inputs::new(application, 7, Mix { paths, repeats_percent, work: 0 })
    }

    type Path = Vec<String>;

    fn memory() -> Memory {
        let mut memory = Memory::new();
        memory.setup().unwrap();
        memory
    }

    /// How often each path was taken by so many executions.
    fn paths(memory: &mut Memory, inputs: Inputs, count: usize) -> BTreeMap<Path, usize> {
        let mut paths = BTreeMap::new();
        let application = inputs.application;
        for input in inputs.take(count) {
            memory.take_steps();
            memory.execute(application, input.as_bytes()).unwrap_or_else(|error| panic!("{input}: {error}"));
            let path = memory.take_steps().into_iter().map(|step| step.function).collect();
            *paths.entry(path).or_default() += 1;
        }
        paths
    }

    /// The one that all executions take if no branch goes another way.
    fn common(memory: &mut Memory, application: Application) -> Path {
        let taken = paths(memory, inputs(application, Paths::Whole { percent: 100 }, 0), 100);
        assert_eq!(taken.len(), 1, "{application:?}: {taken:?}");
        taken.into_keys().next().unwrap()
    }

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        for application in Application::ALL {
            let of = |seed| Inputs::new(application, seed, Mix::default()).take(40).collect::<Vec<_>>();
            assert_eq!(of(3), of(3));
            assert_ne!(of(3), of(4));
        }
    }

    #[test]
    fn the_common_path_is_taken_as_often_as_is_wanted() {
        let mut memory = memory();
        for application in Application::ALL {
            let common = common(&mut memory, application);
            for percent in [90, 50, 0] {
                let taken = paths(&mut memory, inputs(application, Paths::Whole { percent }, 0), 500);
                let times = taken.get(&common).copied().unwrap_or_default();
                assert!(times.abs_diff(5 * percent as usize) <= percent as usize, "{application:?} {percent}: {taken:?}");
                // Each branch has a way of its own out of the common path.
                assert_eq!(taken.len(), application.branches() + usize::from(percent > 0), "{application:?}: {taken:?}");
            }
        }
    }

    #[test]
    fn each_branch_goes_the_common_way_as_often_as_is_wanted() {
        let mut memory = memory();
        for application in Application::ALL {
            let common = common(&mut memory, application);
            let taken = paths(&mut memory, inputs(application, Paths::Branches { percent: 70 }, 0), 1_000);
            let expected = 1_000.0 * 0.7_f64.powi(application.branches() as i32);
            assert!((taken[&common] as f64 - expected).abs() < 60.0, "{application:?}: {expected} {taken:?}");
        }
    }

    #[test]
    fn natural_inputs_take_all_ways_and_most_the_common_one() {
        let mut memory = memory();
        for application in Application::ALL {
            let common = common(&mut memory, application);
            let taken = paths(&mut memory, inputs(application, Paths::Natural, 0), 1_000);
            let ran: BTreeSet<&String> = taken.keys().flatten().collect();
            assert_eq!(ran.len(), application.functions().count(), "{application:?}: {taken:?}");
            assert!((500..980).contains(&taken[&common]), "{application:?}: {taken:?}");
        }
    }

    #[test]
    fn inputs_are_repeated_as_often_as_is_wanted() {
        let all: Vec<String> = inputs(Application::FlightBook, Paths::Natural, 75).take(2_000).collect();
        let different = all.iter().collect::<BTreeSet<_>>().len();
        assert!((430..570).contains(&different), "{different}");
        let all: Vec<String> = inputs(Application::FlightBook, Paths::Natural, 0).take(500).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 500);
    }

    #[test]
    fn numbers_of_different_seeds_are_different_and_exact() {
        let first = |seed| {
            let input: Value =
                serde_json::from_str(&Inputs::new(Application::Banking, seed, Mix::default()).next().unwrap()).unwrap();
            input["transfer"].as_u64().unwrap()
        };
        assert_eq!((first(0), first(2)), (1, 2_000_000_001));
        assert!(first(u64::MAX) < 1 << 53);
    }
}
