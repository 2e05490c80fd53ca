//! Checks what a descriptor says of the component. It is for people: nothing relies on it, but it has limits.

use awsm_abi::Descriptor;
use awsm_abi::component::Description;
use awsm_abi::limits::{COMPONENT_CALLS_MAX, COMPONENT_INSTANCES_MAX, COMPONENT_NAME_BYTES_MAX, INLINED_MAX, WORLD_BYTES_MAX};

use super::check::{Result, ensure};

/// Checks the limits, and that what is searched is sorted.
pub(super) fn check(descriptor: &Descriptor) -> Result {
    ensure(descriptor.inlined.len() <= INLINED_MAX, || format!("{} inlined functions", descriptor.inlined.len()))?;
    ensure(descriptor.inlined.is_sorted(), || "its inlined functions are not sorted".to_string())?;
    let Some(Description { world, instances, roles, calls }) = &descriptor.component else { return Ok(()) };
    ensure(world.len() <= WORLD_BYTES_MAX, || format!("a world of {} bytes", world.len()))?;
    ensure(instances.len() <= COMPONENT_INSTANCES_MAX, || format!("{} component instances", instances.len()))?;
    ensure(roles.len() == descriptor.plan.len(), || "another number of roles than plan steps".to_string())?;
    ensure(calls.len() <= COMPONENT_CALLS_MAX, || format!("{} calls between component instances", calls.len()))?;
    let names = instances.iter().flatten().chain(calls.iter().map(|call| &call.name));
    let longest = names.map(String::len).max().unwrap_or(0);
    ensure(longest <= COMPONENT_NAME_BYTES_MAX, || format!("a name of {longest} bytes in a component"))
}
