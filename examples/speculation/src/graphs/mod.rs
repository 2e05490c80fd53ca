//! Call graphs like those of Alibaba's services: functions that compute, wait and call others, without the code of which only statistics are known.
//!
//! All functions are one stub. It is told in its body how much it computes, how often it reads and writes, and what it calls with which
//! chance. What it does follows from its body, so the same input takes the same way.

mod generated;

use serde::{Deserialize, Serialize};

use crate::digest;
use crate::functions::checked_work;
use crate::random::Random;
use crate::world::{Error, World, asked, json, parse};

pub use generated::{Graph, Pace, Split, five, five_with};

/// The names of the stub, by depth: a function may be waited for four times by itself, and a graph is five deep.
pub const STUBS: [&str; 5] = ["stub-1", "stub-2", "stub-3", "stub-4", "stub-5"];

/// Most reads of a function.
pub const READS_MAX: u32 = 64;

/// Functions of a graph that have records of their own to read.
const NODES: u32 = 32;

/// What one function of a graph does.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Node {
    /// Its number in the graph.
    node: u32,
    work: u64,
    reads: u32,
    writes: bool,
    calls: Vec<Edge>,
}

/// A call that it makes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Edge {
    /// How many of a hundred inputs make it.
    percent: u32,
    /// Whether what it gives depends on what the last callee has replied.
    follows: bool,
    to: Node,
}

/// The body of a stub.
#[derive(Debug, Deserialize, Serialize)]
struct Ask {
    input: u64,
    node: Node,
}

/// What a stub says.
#[derive(Debug, Deserialize, Serialize)]
struct Reply {
    node: u32,
    /// How many functions have run, itself included.
    ran: u32,
    /// Of all that it was told and has read.
    digest: u64,
}

/// What the functions read.
pub(crate) fn entries(entries: &mut Vec<(String, Vec<u8>)>) {
    for node in 0..NODES {
        for number in 0..READS_MAX {
            let value = Random::of("stub", u64::from(node * READS_MAX + number)).below(u32::MAX);
            entries.push((format!("stub/{node}/{number}"), json(&value)));
        }
    }
}

/// What the stub replies, if that is its name.
pub(crate) fn answer(name: &str, world: &mut dyn World, body: &[u8]) -> Option<Result<Vec<u8>, Error>> {
    let depth = STUBS.iter().position(|stub| *stub == name)?;
    Some(serve(world, depth, body))
}

fn serve(world: &mut dyn World, depth: usize, body: &[u8]) -> Result<Vec<u8>, Error> {
    let Ask { input, node } = asked(body)?;
    if node.reads > READS_MAX || node.node >= NODES {
        return Err(Error::Asked(format!(
            "node {} reads {} times; {READS_MAX} are the most, for nodes below {NODES}",
            node.node, node.reads
        )));
    }
    let mut state = digest::joined(input, u64::from(node.node));
    for number in 0..node.reads {
        let key = format!("stub/{}/{}", node.node, (input % u64::from(READS_MAX)) as u32 ^ number);
        let value =
            world.get(&key)?.ok_or_else(|| Error::Broken(format!("{key} is not in the store; `{}` writes it", crate::SETUP)))?;
        state = digest::hash(&value, state);
    }
    state = digest::worked(state, checked_work(node.work)?);
    let (mut ran, mut last) = (1, 0);
    for (edge, place) in node.calls.into_iter().zip(0..) {
        if !is_made(input, node.node, place, edge.percent) {
            continue;
        }
        let Some(callee) = STUBS.get(depth + 1) else {
            return Err(Error::Asked(format!("the graph is deeper than {} functions", STUBS.len())));
        };
        let given = digest::joined(digest::joined(input, place), if edge.follows { last } else { 0 });
        let reply = world.call(callee, &json(&Ask { input: given, node: edge.to }))?;
        let reply: Reply = parse(callee, &reply)?;
        (ran, last) = (ran + reply.ran, reply.digest);
        state = digest::joined(state, last);
    }
    if node.writes {
        world.set(&format!("stubbed/{}/{}", node.node, input % 256), digest::text(state).as_bytes())?;
    }
    Ok(json(&Reply { node: node.node, ran, digest: state }))
}

/// Whether the function makes the call in this place for this input.
fn is_made(input: u64, node: u32, place: u64, percent: u32) -> bool {
    Random::of("call", digest::joined(digest::joined(input, u64::from(node)), place)).is(percent)
}
