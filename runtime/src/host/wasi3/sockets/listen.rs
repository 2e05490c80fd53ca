//! A `tcp-socket` to which others connect: a stream of their connections.

use std::sync::Arc;
use std::time::Duration;

use awsm_abi::component::table;

use super::{Tcp, Wasi3, unspecified};
use crate::component_trap::ComponentTrap;
use crate::host::wasi2::sockets::address::Family;
use crate::host::wasi2::sockets::listen::{accept_one, check_listen, listen_then};
use crate::host::wasi2::sockets::socket::{Binding, Socket, bind_now, may_listen, refuse_place};
use crate::host::wasi2::sockets::tcp::State;
use crate::host::wasi2::sockets::{Door, ErrorCode, Watched, answer};
use crate::host::wasi3::ends::{ADDRESS, End, Moved, Transfer};
use crate::host::{Call, Flat, Stop};

/// How long nothing is accepted where there is no room for one more, or the system has none: nothing says when there is some.
const PAUSE: Duration = Duration::from_millis(50);

/// `listen(self) -> result<stream<tcp-socket>, error-code>`
pub(super) fn listen(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let mut allowed = bind_if_unbound(call)?;
    if allowed.is_ok() {
        allowed = check_listen::<Wasi3>(call)?;
    }
    if let Err(code) = allowed {
        return answer::<Wasi3, u32>(call, 2, Err(code));
    }
    let family = call.borrowed::<Tcp>(1)?.socket.family;
    listen_then::<Wasi3>(call, move |call, listening| {
        let door = call.context.ports.sockets()?.map(|reach| reach.door());
        let listener = listening.and_then(|watched| {
            let door = door.ok_or(ErrorCode::AccessDenied)?;
            Ok(Listener { watched, family, door })
        });
        let result = match listener {
            // Its handle is known where the number was made.
            Ok(listener) => Ok(call.share(call.args.u32(3), Arc::new(listener)).map(|()| 0_u32)?),
            Err(code) => Err(code),
        };
        answer::<Wasi3, _>(call, 2, result)
    })
}

/// Binds a socket that has no address to any, if others may reach it there.
fn bind_if_unbound(call: &mut Call<'_>) -> Result<Result<(), ErrorCode>, Stop> {
    let tcp = call.borrowed::<Tcp>(1)?;
    let (State::None, Binding::None) = (&tcp.state, tcp.socket.binding) else { return Ok(Ok(())) };
    let address = unspecified(tcp.socket.family);
    if may_listen(call, address)? { bind_now::<Tcp>(call, address) } else { refuse_place(call, address).map(Err) }
}

/// The host's end of the stream of connections. It has the socket open as long as the component has the other end.
#[derive(Debug)]
struct Listener {
    watched: Arc<Watched>,
    /// That of its socket.
    family: Family,
    door: Door,
}

impl End for Listener {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        let Transfer { count: count_max, writes: false, .. } = transfer else {
            return Err(ComponentTrap::NothingToResume.into());
        };
        let mut accepted = Vec::new();
        let mut is_full = false;
        // Nothing is taken from the queue that is not given at once, so nothing is lost where the component gives up.
        for _ in 0..count_max.min(table::ROOM) {
            match accept_one(&self.watched, &self.door) {
                Ok((descriptor, remote)) => {
                    let socket = Socket::accepted(self.family, descriptor, None);
                    accepted.push(call.give(Tcp::new(socket, State::Accepted(remote)))?);
                }
                Err(ErrorCode::WouldBlock) => break,
                // It was over before it was accepted.
                Err(ErrorCode::ConnectionAborted) => {}
                // It listens no more.
                Err(ErrorCode::InvalidArgument) if accepted.is_empty() => return Ok(Moved::Dropped.into()),
                Err(_) => {
                    is_full = true;
                    break;
                }
            }
        }
        if !accepted.is_empty() {
            let count = accepted.len() as u32;
            call.lower_each(ADDRESS, accepted)?;
            return Ok(Moved::Values(count).into());
        }
        let watched = Arc::clone(&self.watched);
        let wait = async move {
            if is_full {
                tokio::time::sleep(PAUSE).await;
            } else {
                watched.readable().await;
            }
        };
        Err(call.wait(wait, move |call, ()| {
            // None are wanted: that there is something is all that is asked.
            if count_max == 0 { Ok(Moved::Values(0).into()) } else { self.transfer(call, transfer) }
        }))
    }
}
