//! What is compared: configurations of one and the same server.

use std::fmt;
use std::fmt::Write as _;

use serde::{Serialize, Serializer};

/// A configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Column {
    /// The paper's emulation of Nightcore: so many invocations of a function at a time and core. One that waits keeps its place, further ones queue. Each
    /// initialises its own image; no read is joined; requests run in turn.
    Nightcore(usize),
    /// So many invocations of a function at a time and core; each from a shared image, in turn, and no read is joined.
    Limited(f64),
    /// Perfect pre-warming: a sandbox that is initialised is there for each request, and as many run as come; in turn, and no read is joined.
    Prewarmed,
    /// All that invocations share.
    Sledge,
    /// The same, but requests run in turn in place of the oldest of each function first.
    WithoutOrder,
    /// The same, but a request that computes runs on until it waits.
    WithoutTurns,
    /// The same, but each request initialises its own image.
    WithoutImages,
    /// The same, but each read is sent.
    WithoutJoins,
    /// All, and answers from a table.
    Memo,
}

/// All that have no number.
pub const ALL: [Column; 6] =
    [Column::Prewarmed, Column::Sledge, Column::WithoutOrder, Column::WithoutImages, Column::WithoutJoins, Column::Memo];

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Column::Nightcore(_) => "nightcore",
            Column::Limited(_) => "limited",
            Column::Prewarmed => "prewarmed",
            Column::Sledge => "sledge",
            Column::WithoutOrder => "without order",
            Column::WithoutTurns => "without turns",
            Column::WithoutImages => "without images",
            Column::WithoutJoins => "without joins",
            Column::Memo => "memo",
        })
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Column {
    /// Lines of the server's configuration.
    pub fn server(self) -> String {
        let shares_nothing = matches!(self, Column::Nightcore(_) | Column::Limited(_) | Column::Prewarmed);
        let policy = match self {
            _ if shares_nothing => "round-robin-strict",
            Column::WithoutOrder => "round-robin-strict",
            Column::WithoutTurns => "fifo",
            _ => "round-robin",
        };
        let joins = !shares_nothing && self != Column::WithoutJoins;
        format!("policy = \"{policy}\"\nkv_exclusive = {joins}\n")
    }

    /// Lines of a function's configuration.
    pub fn function(self, workers: usize) -> String {
        let images = !matches!(self, Column::Nightcore(_) | Column::WithoutImages);
        let mut lines = format!("snapshot = \"{}\"\n", if images { "on" } else { "off" });
        match self {
            Column::Nightcore(each) => {
                let _ = writeln!(lines, "concurrency_max = {}", each * workers);
            }
            Column::Limited(each) => {
                let _ = writeln!(lines, "concurrency_max = {:.0}", (each * workers as f64).max(1.0));
            }
            Column::Prewarmed => {}
            _ => lines.push_str("concurrency_max = \"auto\"\n"),
        }
        if self == Column::Memo {
            lines.push_str("memo = \"auto\"\n");
        }
        lines
    }
}
