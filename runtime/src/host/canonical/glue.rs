//! `sledge:canonical`: what wrappers and glue of a component import beside interfaces.

use awsm_abi::component::{self, CANONICAL, Violation};
use awsm_abi::types::ValType::{I32, I64};

use super::canonical;
use crate::component_trap::ComponentTrap;
use crate::host::Effect::{Head, Safe, Stream};
use crate::host::{Call, Flat, HostFunction, Stop};

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(CANONICAL, component::RESUME, &[I32], &[I64], Safe, resume),
    canonical(CANONICAL, component::TRAP, &[I32, I64], &[], Safe, trap),
    canonical(CANONICAL, component::REQUESTS, &[], &[], Head, requests),
    canonical(CANONICAL, component::DROP, &[I32], &[], Stream, drop),
    canonical(CANONICAL, component::EXIT, &[I32], &[], Stream, exit),
    canonical(CANONICAL, component::SWITCH, &[I32], &[], Safe, switch),
];

/// `resume(address) -> next`: goes on with a result that needs memory of the component, if there is one.
fn resume(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let address = call.args.u32(0);
    let Some(lowering) = call.context.lowering.as_mut() else {
        return Ok(Flat(component::RESUME_DONE.cast_unsigned()));
    };
    lowering.resume(address);
    let next = lowering.next();
    if next != component::RESUME_DONE.cast_unsigned() {
        return Ok(Flat(next));
    }
    let lowering = call.context.lowering.take().ok_or(ComponentTrap::NothingToResume)?;
    lowering.write(call.memory.as_mut().ok_or(Stop::Trap(ComponentTrap::OutOfBounds))?)?;
    Ok(Flat(next))
}

/// `trap(code, value)`: the glue saw what the component model forbids.
fn trap(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Err(match Violation::of(call.args.u32(0)) {
        Some(violation) => ComponentTrap::of(violation, Violation::value(call.args.u64(1))),
        None => ComponentTrap::Case,
    }
    .into())
}

/// `requests()`: it is imported, and there is nothing to be done.
fn requests(_: &mut Call<'_>) -> Result<Flat, Stop> {
    Ok(Flat::NONE)
}

/// `drop(representation)`: an owned handle was dropped.
fn drop(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.args.u32(0);
    call.context.ports.drop_resource(representation)?;
    Ok(Flat::NONE)
}

/// `exit(result)`: how a command ended.
fn exit(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Err(Stop::Exit(call.case(0, 2)?))
}

/// `switch(stack)`: the guest goes on on another of its stacks.
fn switch(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Err(Stop::Switch(call.args.u32(0)))
}
