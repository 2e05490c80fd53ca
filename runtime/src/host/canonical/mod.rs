//! The canonical ABI from the host's side: how host functions of components get their arguments and give their results.
//!
//! ```text
//!   wrapper --(table, flat arguments, address of the result)--> HostFunction, Code::Canonical
//!     Call::borrowed, ::owned     handle -> table in the state's memory -> representation -> Resources     (handles, resources)
//!     Call::text_within, ::bytes, ::list   addresses in the component's memory -> values                   (lift, strings)
//!     Call::lower                 value -> bytes and blocks -> written at once, or by `resume`              (lower, glue)
//!     Call::until_ready           pollables -> Call::wait                                                  (readiness)
//!     Call::wait                  suspends the guest, or becomes an operation                              (operations)
//! ```
//!
//! What `awsm_abi::component` says is agreed on holds here. All of it is untrusted: a plain module may import these functions, and then makes up tables, handles
//! and representations. It reaches no more by that than its own invocation's resources, whose types are checked again. What the component model forbids
//! ends the invocation ([`ComponentTrap`](crate::component_trap::ComponentTrap)).

mod glue;
mod handles;
mod lift;
mod lower;
mod operations;
mod readiness;
mod resources;
mod strings;
#[cfg(test)]
mod tests;

use awsm_abi::types::ValType;

use super::{Call, Code, Effect, Flat, HostFunction, Stop};

pub(in crate::host) use glue::FUNCTIONS;
pub(in crate::host) use lift::{Lift, Lifting};
pub(in crate::host) use lower::{Lower, Lowering, Own, Place, enums, errors, variant};
pub(in crate::host) use operations::{FUNCTIONS as OPERATIONS, Operations};
pub(in crate::host) use readiness::{Look, Pollable, Subject};
pub(in crate::host) use resources::{FIRST_LASTING, Resource, Resources, Typed, number};
#[cfg(test)]
pub(in crate::host) use tests::World;

/// A host function of a component. `params` begin with the handle table.
pub(in crate::host) const fn canonical(
    module: &'static str,
    name: &'static str,
    params: &'static [ValType],
    results: &'static [ValType],
    effect: Effect,
    code: fn(&mut Call<'_>) -> Result<Flat, Stop>,
) -> HostFunction {
    HostFunction { module, name, params, results, effect, code: Code::Canonical(code) }
}
