//! `wasi:clocks`.

use std::time::{Duration, Instant};

use awsm_abi::types::ValType::{I32, I64};
use rustix::time::{ClockId, Timespec, clock_getres};

use crate::host::Effect::{Entropy, Safe};
use crate::host::canonical::{Pollable, Subject, canonical};
use crate::host::wasi::clocks::nanoseconds;
use crate::host::{Call, Flat, HostFunction, Stop};

const MONOTONIC: &str = "wasi:clocks/monotonic-clock@0.2";
const WALL: &str = "wasi:clocks/wall-clock@0.2";
const MONOTONIC_3: &str = "wasi:clocks/monotonic-clock@0.3";
const SYSTEM: &str = "wasi:clocks/system-clock@0.3";
const TIMEZONE: &str = "wasi:clocks/timezone@0.2";
const TIMEZONE_3: &str = "wasi:clocks/timezone@0.3";
/// Every function's time is UTC.
const UTC: &str = "UTC";

/// The interfaces.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(MONOTONIC, "now", &[I32], &[I64], Entropy, now),
    canonical(MONOTONIC, "resolution", &[I32], &[I64], Safe, resolution),
    canonical(MONOTONIC, "subscribe-instant", &[I32, I64], &[I32], Entropy, subscribe_instant),
    canonical(MONOTONIC, "subscribe-duration", &[I32, I64], &[I32], Entropy, subscribe_duration),
    canonical(WALL, "now", &[I32, I32], &[], Entropy, wall_now),
    canonical(WALL, "resolution", &[I32, I32], &[], Safe, wall_resolution),
    canonical(MONOTONIC_3, "now", &[I32], &[I64], Entropy, now),
    canonical(MONOTONIC_3, "get-resolution", &[I32], &[I64], Safe, resolution),
    canonical(MONOTONIC_3, "wait-until", &[I32, I64], &[], Entropy, wait_until),
    canonical(MONOTONIC_3, "wait-for", &[I32, I64], &[], Entropy, wait_for),
    canonical(SYSTEM, "now", &[I32, I32], &[], Entropy, wall_now),
    canonical(SYSTEM, "get-resolution", &[I32], &[I64], Safe, system_resolution),
    canonical(TIMEZONE, "display", &[I32, I64, I32, I32], &[I32], Safe, display),
    canonical(TIMEZONE, "utc-offset", &[I32, I64, I32], &[I32], Safe, utc_offset),
    canonical(TIMEZONE_3, "iana-id", &[I32, I32], &[I32], Safe, iana_id),
    canonical(TIMEZONE_3, "utc-offset", &[I32, I64, I32, I32], &[], Safe, some_utc_offset),
    canonical(TIMEZONE_3, "to-debug-string", &[I32, I32], &[I32], Safe, to_debug_string),
];

/// A `datetime`: seconds and nanoseconds.
fn datetime(time: Timespec) -> (u64, u32) {
    (u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// `now() -> instant`
fn now(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat(nanoseconds(call.context.ports.entropy()?.now(ClockId::Monotonic))))
}

/// `resolution() -> duration`
fn resolution(_: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat(nanoseconds(clock_getres(ClockId::Monotonic))))
}

/// `subscribe-instant(when) -> pollable`
fn subscribe_instant(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let now = nanoseconds(call.context.ports.entropy()?.now(ClockId::Monotonic));
    subscribe(call, call.args.u64(1).saturating_sub(now))
}

/// `subscribe-duration(when) -> pollable`
fn subscribe_duration(call: &mut Call<'_>) -> Result<Flat, Stop> {
    subscribe(call, call.args.u64(1))
}

fn subscribe(call: &mut Call<'_>, nanoseconds: u64) -> Result<Flat, Stop> {
    let time = Instant::now().checked_add(Duration::from_nanos(nanoseconds));
    call.give(Pollable(Subject::At(time))).map(|own| Flat::from(own.0))
}

/// `wait-until(when)`, async
fn wait_until(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let now = nanoseconds(call.context.ports.entropy()?.now(ClockId::Monotonic));
    sleep(call, call.args.u64(1).saturating_sub(now))
}

/// `wait-for(how-long)`, async
fn wait_for(call: &mut Call<'_>) -> Result<Flat, Stop> {
    sleep(call, call.args.u64(1))
}

fn sleep(call: &mut Call<'_>, nanoseconds: u64) -> Result<Flat, Stop> {
    if nanoseconds == 0 {
        return Ok(Flat::NONE);
    }
    let time = Duration::from_nanos(nanoseconds);
    Err(call.wait(async move { tokio::time::sleep(time).await }, |_, ()| Ok(Flat::NONE)))
}

/// `get-resolution() -> duration`
fn system_resolution(_: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat(nanoseconds(clock_getres(ClockId::Realtime))))
}

/// `now() -> datetime`, and `now() -> instant`, whose seconds are the same until the year 292 billion
fn wall_now(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let now = call.context.ports.entropy()?.now(ClockId::Realtime);
    call.lower(1, datetime(now))
}

/// `resolution() -> datetime`
fn wall_resolution(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.lower(1, datetime(clock_getres(ClockId::Realtime)))
}

/// `display(when) -> timezone-display`
fn display(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.lower(3, (0_i32, UTC, false))
}

/// `utc-offset(when) -> s32`
fn utc_offset(_: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat::from(0_i32))
}

/// `iana-id() -> option<string>`
fn iana_id(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.lower(1, Some(UTC))
}

/// `utc-offset(when) -> option<s64>`
fn some_utc_offset(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.lower(3, Some(0_i64))
}

/// `to-debug-string() -> string`
fn to_debug_string(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.lower(1, UTC)
}
