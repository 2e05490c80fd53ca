//! One task of a distributed sort, after *Microtasks* (section II): it reads, processes and writes, each in a phase of its own.
//!
//! The query says what to do:
//!
//! | `do` | the task |
//! |---|---|
//! | `partition` | reads chunk `number` (phase 1), divides its records by their first byte (2), writes a piece for each of the `categories` (3) |
//! | `sort` | collects the pieces of category `number` from all `chunks` (phase 4), sorts them (5), stores the sorted category (6) |
//! | `put` | writes the body as chunk `number` |
//! | `get` | replies with the sorted category `number` |
//!
//! The first two reply with a line of names and numbers: wall-clock microseconds of each phase, records, their checksum.

pub mod place;
pub mod records;

use std::fmt::Write as _;
use std::hint::black_box;
use std::str::FromStr;
use std::time::Instant;

use place::Place;
use records::RECORD_BYTES;
use sledge::{Reply, Request};

/// The phases' names, from 0.
const PHASES: [&str; 7] = ["begin", "read", "divide", "write", "collect", "sort", "store"];
const READ: u32 = 1;
const DIVIDE: u32 = 2;
const WRITE: u32 = 3;
const COLLECT: u32 = 4;
const SORT: u32 = 5;
const STORE: u32 = 6;

/// What the query says.
struct Task<'a> {
    query: &'a str,
    number: usize,
    chunks: usize,
    categories: usize,
    /// Bytes of a chunk, from which those of a piece follow.
    chunk_bytes: usize,
    /// Bytes of an object at most.
    block_bytes: usize,
    /// How often records are hashed beside what sorting takes: stands for processing that is heavier.
    rounds: u64,
    place: Place,
}

/// The value of a name in a query.
fn text<'a>(query: &'a str, name: &str) -> Result<&'a str, String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.find_map(|(known, value)| (known == name).then_some(value));
    value.ok_or_else(|| format!("the query has no `{name}`"))
}

fn number<T: FromStr>(query: &str, name: &str) -> Result<T, String> {
    let value = text(query, name)?;
    value.parse().map_err(|_| format!("`{name}` is `{value}`; it has to be a number"))
}

impl<'a> Task<'a> {
    fn new(query: &'a str) -> Result<Task<'a>, String> {
        let positive = |name: &str| match number(query, name)? {
            0 => Err(format!("`{name}` is 0; it has to be larger")),
            more => Ok(more),
        };
        let task = Task {
            query,
            number: number(query, "number")?,
            chunks: positive("chunks")?,
            categories: positive("categories")?,
            chunk_bytes: positive("chunk_bytes")?,
            block_bytes: positive("block_bytes")?,
            rounds: number(query, "rounds")?,
            place: Place::open(text(query, "place")?, number(query, "transfer")?)?,
        };
        if task.categories > 256 {
            return Err(format!("{} categories; a byte has 256 values", task.categories));
        }
        Ok(task)
    }

    /// Writes bytes as blocks `PREFIX-0`, `PREFIX-1` and so on.
    fn write_blocks(&self, prefix: &str, bytes: &[u8]) -> Result<(), String> {
        let blocks = bytes.chunks(self.block_bytes).enumerate();
        let objects: Vec<_> = blocks.map(|(block, bytes)| (format!("{prefix}-{block}"), bytes)).collect();
        self.place.write(&objects)
    }

    /// Checks the records as often as the task says.
    fn hashed(&self, bytes: &[u8]) -> u64 {
        // The last one counts; the optimiser may not know that.
        (0..=self.rounds).rev().fold(0, |_, salt| black_box(records::checksum(bytes, salt)))
    }

    fn partition(&self) -> Result<Reply, String> {
        let mut clock = Clock::start(READ);
        let blocks = self.chunk_bytes.div_ceil(self.block_bytes);
        let names: Vec<String> = (0..blocks).map(|block| format!("input-{}-{block}", self.number)).collect();
        let bytes = self.place.read(&names, self.block_bytes)?;
        clock.enter(DIVIDE);
        let checksum = self.hashed(&bytes);
        let parts = records::partition(&bytes, self.categories);
        clock.enter(WRITE);
        let name = |category: usize| format!("piece-{category}-{}", self.number);
        let pieces: Vec<_> = parts.iter().enumerate().map(|(category, part)| (name(category), &part[..])).collect();
        self.place.write(&pieces)?;
        Ok(clock.reply(bytes.len(), checksum))
    }

    fn sort(&self) -> Result<Reply, String> {
        let mut clock = Clock::start(COLLECT);
        let names: Vec<String> = (0..self.chunks).map(|chunk| format!("piece-{}-{chunk}", self.number)).collect();
        let bytes = self.place.read(&names, self.chunk_bytes / self.categories)?;
        clock.enter(SORT);
        let checksum = self.hashed(&bytes);
        let sorted = records::sort(&bytes);
        clock.enter(STORE);
        self.write_blocks(&format!("sorted-{}", self.number), &sorted)?;
        Ok(clock.reply(bytes.len(), checksum))
    }
}

/// Tells the server where a task is, and keeps how long each phase lasted.
struct Clock {
    since: Instant,
    line: String,
    phase: u32,
}

impl Clock {
    fn start(phase: u32) -> Clock {
        sledge::phase(phase);
        Clock { since: Instant::now(), line: String::new(), phase }
    }

    fn end(&mut self) {
        let now = Instant::now();
        let _ = write!(self.line, "{} {} ", PHASES[self.phase as usize], now.duration_since(self.since).as_micros());
        self.since = now;
    }

    fn enter(&mut self, phase: u32) {
        self.end();
        self.phase = phase;
        sledge::phase(phase);
    }

    fn reply(mut self, bytes: usize, checksum: u64) -> Reply {
        self.end();
        let _ = write!(self.line, "records {} checksum {checksum}", bytes / RECORD_BYTES);
        Reply::new(200).with_header("content-type", "text/plain").with_body(self.line)
    }
}

/// The whole function. Status 400 for a query that makes no sense; 500, with the reason in the log, when data are missing.
#[sledge::function]
pub fn distributed_sort(request: Request) -> Result<Reply, String> {
    let task = match Task::new(request.head.query().unwrap_or_default()) {
        Ok(task) => task,
        Err(reason) => return Ok(Reply::new(400).with_body(reason)),
    };
    match text(task.query, "do") {
        Ok("partition") => task.partition(),
        Ok("sort") => task.sort(),
        Ok("put") => {
            task.write_blocks(&format!("input-{}", task.number), &request.body)?;
            Ok(Reply::new(200))
        }
        Ok("get") => Ok(Reply::new(200).with_body(task.place.read_all(&format!("sorted-{}", task.number), task.block_bytes)?)),
        Ok(other) => Ok(Reply::new(400).with_body(format!("`do` is `{other}`; it has to be partition, sort, put or get"))),
        Err(reason) => Ok(Reply::new(400).with_body(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sledge::testing;

    fn asked(task: &str, number: usize, body: &[u8]) -> Reply {
        let target = format!(
            "/distributed-sort?do={task}&number={number}&place=kv&chunks=2&categories=16&chunk_bytes=20000&block_bytes=6000\
             &transfer=4000&rounds=1"
        );
        testing::serve(&Request::new("POST", &target).with_body(body), distributed_sort)
    }

    /// The number behind a name in a task's reply.
    fn said(reply: &Reply, name: &str) -> u64 {
        let text = reply.text();
        let mut words = text.split(' ').skip_while(|word| *word != name);
        words.nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn two_stages_sort_everything() {
        let chunk =
            |salt: u32| (0..20_000_u32).map(|at| ((at + salt).wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<u8>>();
        let chunks = [chunk(0), chunk(7)];
        for (number, chunk) in chunks.iter().enumerate() {
            assert_eq!(asked("put", number, chunk).status, 200);
        }
        let partitioned: Vec<_> = (0..2).map(|number| asked("partition", number, &[])).collect();
        assert_eq!(testing::phases(), [READ, DIVIDE, WRITE, READ, DIVIDE, WRITE]);
        assert_eq!(said(&partitioned[0], "checksum"), records::checksum(&chunks[0], 0));
        let sorted: u64 = (0..16).map(|category| said(&asked("sort", category, &[]), "records")).sum();
        assert_eq!(sorted, 400);
        let all: Vec<u8> = (0..16).flat_map(|category| asked("get", category, &[]).body).collect();
        assert_eq!(all, records::sort(&chunks.concat()));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let missing = asked("partition", 0, &[]);
        assert!(missing.status == 500 && missing.text().contains("input-0-0 is not there"), "{missing:?}");
        let wrong = asked("shuffle", 0, &[]);
        assert!(wrong.status == 400 && wrong.text().contains("`do` is `shuffle`"), "{wrong:?}");
        let none = testing::serve(&Request::new("POST", "/distributed-sort?number=x"), distributed_sort);
        assert!(none.status == 400 && none.text().contains("`number` is `x`"), "{none:?}");
    }
}
