//! An online game, after *Microtasks* (section II): a world that is made once, in parts, and then a tick 20 times a second.
//!
//! The query says what to do. `game` is the number of a game; games have nothing in common.
//!
//! | `do` | the request |
//! |---|---|
//! | `init` | phase 1: makes the `count` regions from `from` on, by `passes` of rain, and keeps them |
//! | `join` | lets so many `players` begin |
//! | `tick` | moves all players; the body has a byte for each. Phase 2 with at most 20 of them, else phase 3. Replies with all players |

pub mod world;

use std::str::FromStr;

use sledge::{Reply, Request, kv};
use world::{Land, PLAYER_BYTES, REGIONS};

/// The phases.
const INIT: u32 = 1;
const FEW: u32 = 2;
const MANY: u32 = 3;
/// Players that are few.
const FEW_MAX: usize = 20;
/// Most players of a game.
const PLAYERS_MAX: usize = 1_000;

/// Why a request is not done.
enum Refused {
    /// It makes no sense: status 400.
    Request(String),
    /// Something does not work: status 500, and the reason in the log.
    Failed(String),
}

impl From<kv::Error> for Refused {
    fn from(error: kv::Error) -> Refused {
        Refused::Failed(error.to_string())
    }
}

fn text<'a>(query: &'a str, name: &str) -> Result<&'a str, Refused> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.find_map(|(known, value)| (known == name).then_some(value));
    value.ok_or_else(|| Refused::Request(format!("the query has no `{name}`")))
}

fn number<T: FromStr>(query: &str, name: &str) -> Result<T, Refused> {
    let value = text(query, name)?;
    value.parse().map_err(|_| Refused::Request(format!("`{name}` is `{value}`; it has to be a number")))
}

/// Where a region of a game is kept.
fn key(game: u64, region: usize) -> String {
    format!("{game}-region-{region}")
}

fn init(query: &str, game: u64) -> Result<Vec<u8>, Refused> {
    sledge::phase(INIT);
    let (from, count, passes): (usize, usize, u32) = (number(query, "from")?, number(query, "count")?, number(query, "passes")?);
    let end = from.checked_add(count).filter(|end| *end <= REGIONS * REGIONS);
    let end = end.ok_or_else(|| Refused::Request(format!("a world has {} regions", REGIONS * REGIONS)))?;
    let regions: Vec<_> = (from..end).map(|region| (key(game, region), world::region(game, region, passes))).collect();
    kv::open("game")?.set_many(&regions)?;
    Ok(Vec::new())
}

fn join(query: &str, game: u64) -> Result<Vec<u8>, Refused> {
    let count = number(query, "players")?;
    if count > PLAYERS_MAX {
        return Err(Refused::Request(format!("{count} players; a game has at most {PLAYERS_MAX}")));
    }
    let players = world::players(game, count);
    kv::open("game")?.set(format!("{game}-players"), &players)?;
    Ok(players)
}

fn tick(game: u64, inputs: &[u8]) -> Result<Vec<u8>, Refused> {
    sledge::phase(if inputs.len() <= FEW_MAX { FEW } else { MANY });
    let bucket = kv::open("game")?;
    let begin = || Refused::Failed(format!("game {game} has not begun"));
    let mut players = bucket.get(format!("{game}-players"))?.ok_or_else(begin)?.value;
    if players.len() != inputs.len() * PLAYER_BYTES {
        let (count, inputs) = (players.len() / PLAYER_BYTES, inputs.len());
        return Err(Refused::Request(format!("{inputs} inputs for {count} players")));
    }
    let names: Vec<String> = (0..REGIONS * REGIONS).map(|region| key(game, region)).collect();
    let mut regions = Vec::with_capacity(names.len() * world::REGION_BYTES);
    for entry in bucket.get_many(&names)? {
        regions.extend(entry.ok_or_else(begin)?.value);
    }
    let land = Land::new(regions).ok_or_else(begin)?;
    world::tick(&land, &mut players, inputs);
    bucket.set(format!("{game}-players"), &players)?;
    Ok(players)
}

/// The whole function.
#[sledge::function]
pub fn game(request: Request) -> Result<Reply, String> {
    let query = request.head.query().unwrap_or_default();
    let done = text(query, "do").and_then(|what| {
        let game = number(query, "game")?;
        match what {
            "init" => init(query, game),
            "join" => join(query, game),
            "tick" => tick(game, &request.body),
            other => Err(Refused::Request(format!("`do` is `{other}`; it has to be init, join or tick"))),
        }
    });
    match done {
        Ok(body) => Ok(Reply::new(200).with_body(body)),
        Err(Refused::Request(reason)) => Ok(Reply::new(400).with_body(reason)),
        Err(Refused::Failed(reason)) => Err(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sledge::testing;

    fn asked(query: &str, body: &[u8]) -> Reply {
        testing::serve(&Request::new("POST", &format!("/game?{query}")).with_body(body), game)
    }

    #[test]
    fn a_game_is_what_its_rules_say() {
        assert_eq!(asked("do=tick&game=5", &[0]).status, 500, "before it began");
        for from in (0..256).step_by(64) {
            assert_eq!(asked(&format!("do=init&game=5&from={from}&count=64&passes=3"), &[]).status, 200);
        }
        let mut players = world::players(5, 3);
        assert_eq!(asked("do=join&game=5&players=3", &[]).body, players);
        let land = Land::new((0..256).flat_map(|number| world::region(5, number, 3)).collect()).unwrap();
        for inputs in [[0, 1, 2], [3, 3, 3], [1, 0, 9]] {
            world::tick(&land, &mut players, &inputs);
            assert_eq!(asked("do=tick&game=5", &inputs).body, players);
        }
        assert_eq!(testing::phases(), [FEW, INIT, INIT, INIT, INIT, FEW, FEW, FEW]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (query, reason) in [
            ("", "no `do`"),
            ("do=tick&game=x", "`game` is `x`"),
            ("do=jump&game=1", "`do` is `jump`"),
            ("do=init&game=1&from=250&count=7&passes=1", "a world has 256 regions"),
            ("do=join&game=1&players=5000", "at most 1000"),
        ] {
            let reply = asked(query, &[]);
            assert!(reply.status == 400 && reply.text().contains(reason), "{query}: {reply:?}");
        }
        assert_eq!(asked("do=join&game=1&players=2", &[]).status, 200);
        assert!(asked("do=tick&game=1", &[0; 50]).text().contains("50 inputs for 2 players"));
        assert_eq!(testing::phases().last(), Some(&MANY));
    }
}
