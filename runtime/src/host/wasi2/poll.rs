//! `wasi:io/poll`: waiting for any of several things.

use awsm_abi::types::ValType::I32;

use crate::component_trap::ComponentTrap;
use crate::host::Effect::Entropy;
use crate::host::canonical::{Pollable, Subject, canonical};
use crate::host::{Call, Flat, HostFunction, Stop};

/// Module name of the imports.
const MODULE: &str = "wasi:io/poll@0.2";
/// Pollables of one call.
const POLLABLES_MAX: usize = 4_096;

/// The interface. What waits can see the time.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(MODULE, "[method]pollable.ready", &[I32, I32], &[I32], Entropy, ready),
    canonical(MODULE, "[method]pollable.block", &[I32, I32], &[], Entropy, block),
    canonical(MODULE, "poll", &[I32, I32, I32, I32], &[I32], Entropy, poll),
];

/// `ready(self) -> bool`
fn ready(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let subject = call.borrowed::<Pollable>(1)?.0;
    Ok(Flat::from(!call.ready(&[subject])?.is_empty()))
}

/// `block(self)`
fn block(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let subject = call.borrowed::<Pollable>(1)?.0;
    if call.ready(&[subject])?.is_empty() {
        return Err(call.until_ready(&[subject], block));
    }
    Ok(Flat::NONE)
}

/// `poll(list<borrow<pollable>>) -> list<u32>`: the places in the list of those that are ready, as soon as there is one.
fn poll(call: &mut Call<'_>) -> Result<Flat, Stop> {
    match call.args.u32(2) as usize {
        0 => return Err(ComponentTrap::NoPollables.into()),
        1..=POLLABLES_MAX => {}
        _ => return Err(ComponentTrap::TooMany { max: POLLABLES_MAX, what: "pollables polled" }.into()),
    }
    let handles = call.list::<u32>(1)?;
    let mut subjects = Vec::with_capacity(handles.len());
    for handle in handles {
        let representation = call.representation_of::<Pollable>(handle)?;
        subjects.push(call.context.ports.resource::<Pollable>(representation)?.0);
    }
    wait(call, subjects)
}

/// Waits until one is ready.
fn wait(call: &mut Call<'_>, subjects: Vec<Subject>) -> Result<Flat, Stop> {
    let ready = call.ready(&subjects)?;
    if !ready.is_empty() {
        return call.lower(3, ready);
    }
    let again = subjects.clone();
    Err(call.until_ready(&subjects, move |call| wait(call, again)))
}
