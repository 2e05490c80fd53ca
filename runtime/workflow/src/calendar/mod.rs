//! Schedules: when a workflow is due. Pure: the caller brings the time, and the time zones are part of the binary.
//!
//! ```text
//!   expression, zone --Schedule::parse--> Schedule --next(after)--> the first time after that
//!                                                  --due(last, now, policy)--> missed times that are made up for
//! ```
//!
//! - [`schedule`]: what a caller holds; [`error`]: what is wrong with an expression; [`limits`]: every limit; [`catch_up`]: times that were missed;
//! - `read`: expressions to schedules; `fields`, `items`: cron's fields; `cron`: the search; `rate`, `once`: the other forms; `zone`: instants of wall times.
//!
//! # Forms
//! - `rate(5 minutes)`: seconds, minutes, hours or days of 24 hours, counted from an anchor.
//! - `cron(0 12 ? * MON-FRI *)`: minutes, hours, day of the month, month, day of the week (1 is Sunday), year. As EventBridge Scheduler has it
//!   (<https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html>). Three forms more are taken: `LW` (the last working day), steps in the day of the
//!   week, and ranges that run over the end (`SAT-MON`, `22-2`).
//! - `*/5 * * * *`: minutes, hours, day of the month, month, day of the week (0 and 7 are Sunday), as in crontab(5): where neither day field has a `*`, a date fits that
//!   one of them names.
//! - `at(2026-12-24T18:00:00)`: once.
//!
//! # Daylight saving
//! Expressions of cron and `at` name wall times of the zone. A wall time that does not exist is due at the first instant after the gap. One that exists twice is due at
//! the first of its two instants only. Several wall times in one gap are due once. EventBridge Scheduler has the second rule, and skips times in a gap in place of the
//! first one: here a daily run is late for some minutes rather than left out. So `*/5 * * * *` rests for the hour that is repeated; `rate` does not depend on the zone.
//!
//! # Crates
//! - `croner` matches dates and searches them, with `L`, `W` and `#`. It is maintained, and takes wall times of any type. Its own feature for `jiff` needs `jiff` 0.2, so `wall` connects both.
//!   `cron` has no `L`, `W` and `#`; `cron-parser` has no years; both need `chrono`. `jiff-cron` has no `L`, `W` and `#` either, and needs `jiff` 0.2.
//! - `croner` puts seconds first, counts weekdays from 0, refuses ranges over the end and `L` alone as a weekday, and its messages name no field. So `items` reads the
//!   fields, and hands lists of numbers on.
//! - `jiff` has the zones: a table of 200 KiB, the rules of every zone until 9999, gaps and folds as values. `chrono-tz` has tables as code, which end
//!   in 2099. Neither reads the system's files here: all machines with one version of Sledge give the same times.
//! - RustSec's database of August 2026 has no advisory for these crates or what they depend on.

pub mod catch_up;
mod cron;
pub mod error;
mod fields;
mod items;
pub mod limits;
mod once;
mod rate;
mod read;
pub mod schedule;
mod wall;
mod zone;

pub use catch_up::{CatchUp, due, due_from};
pub use error::ScheduleError;
pub use schedule::Schedule;
