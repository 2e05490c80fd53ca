//! `ip-socket-address`, `ip-address` and `ip-address-family`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use rustix::net::{AddressFamily, SocketAddrAny};

use super::ErrorCode;
use crate::component_trap::ComponentTrap;
use crate::host::canonical::{Lift, Lifting, Lower, Lowering, Place, enums};
use crate::host::{Call, Stop};

/// An `ip-address-family`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::host) enum Family {
    Ipv4,
    Ipv6,
}

enums! { Family }

impl Family {
    /// The system's number of it.
    pub(in crate::host) const fn system(self) -> AddressFamily {
        match self {
            Family::Ipv4 => AddressFamily::INET,
            Family::Ipv6 => AddressFamily::INET6,
        }
    }

    /// The address of a socket of this family. An address of IPv4 within IPv6, mapped or compatible, is none: sockets of IPv6 are for IPv6 only.
    ///
    /// # Errors
    /// `invalid-argument` for another one's.
    pub(in crate::host) fn check(self, address: SocketAddr) -> Result<(), ErrorCode> {
        let is_valid = match address {
            SocketAddr::V4(_) => self == Family::Ipv4,
            SocketAddr::V6(address) => self == Family::Ipv6 && !holds_ipv4(*address.ip()),
        };
        if is_valid { Ok(()) } else { Err(ErrorCode::InvalidArgument) }
    }

    /// The same of the other end.
    ///
    /// # Errors
    /// `invalid-argument` for another family's address, and for one that is not known in full.
    pub(in crate::host) fn check_remote(self, address: SocketAddr) -> Result<(), ErrorCode> {
        self.check(address)?;
        if address.ip().is_unspecified() || address.port() == 0 { Err(ErrorCode::InvalidArgument) } else { Ok(()) }
    }
}

/// Whether an address of IPv6 holds one of IPv4. The unspecified address and the loopback address only look so.
fn holds_ipv4(address: Ipv6Addr) -> bool {
    address.to_ipv4().is_some() && !address.is_unspecified() && !address.is_loopback()
}

/// Whether an address stands for one machine.
pub(in crate::host) fn is_unicast(address: SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(address) => !address.is_multicast() && !address.is_broadcast(),
        IpAddr::V6(address) => !address.is_multicast(),
    }
}

/// The address that the system says.
///
/// # Errors
/// `unknown` where it is none of IPv4 or IPv6.
pub(in crate::host) fn said(address: SocketAddrAny) -> Result<SocketAddr, ErrorCode> {
    SocketAddr::try_from(address).map_err(|_| ErrorCode::Unknown)
}

/// An `ip-socket-address`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) struct Address(pub(in crate::host) SocketAddr);

/// Where what a case of it holds begins.
const PAYLOAD: u32 = 4;

impl Lower for Address {
    const SIZE: u32 = 32;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        match self.0 {
            SocketAddr::V4(address) => {
                let [a, b, c, d] = address.ip().octets();
                (address.port(), a, b, c, d).lower(to, place.plus(PAYLOAD))
            }
            SocketAddr::V6(address) => {
                to.case(place, 1);
                let [a, b, c, d, e, f, g, h] = address.ip().segments();
                let value = (address.port(), address.flowinfo(), (a, b, c, d, e, f, g, h), address.scope_id());
                value.lower(to, place.plus(PAYLOAD))
            }
        }
    }
}

impl Lift for Address {
    const SIZE: u32 = 32;
    const ALIGN: u32 = 4;

    fn lift(from: &mut Lifting<'_, '_>, at: u64) -> Result<Address, Stop> {
        let case = u8::lift(from, at)?;
        let at = at + u64::from(PAYLOAD);
        let port = u16::lift(from, at)?;
        Ok(Address(match case {
            0 => {
                let mut octets = [0; 4];
                for (index, octet) in (0..).zip(&mut octets) {
                    *octet = u8::lift(from, at + 2 + index)?;
                }
                SocketAddrV4::new(Ipv4Addr::from(octets), port).into()
            }
            1 => {
                let mut segments = [0; 8];
                for (index, segment) in (0..).zip(&mut segments) {
                    *segment = u16::lift(from, at + 8 + 2 * index)?;
                }
                let (flow, scope) = (u32::lift(from, at + 4)?, u32::lift(from, at + 24)?);
                SocketAddrV6::new(Ipv6Addr::from(segments), port, flow, scope).into()
            }
            _ => return Err(ComponentTrap::Case.into()),
        }))
    }
}

/// An `ip-address`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) struct Ip(pub(in crate::host) IpAddr);

impl Lower for Ip {
    const SIZE: u32 = 18;
    const ALIGN: u32 = 2;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        match self.0 {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                (a, b, c, d).lower(to, place.plus(2))
            }
            IpAddr::V6(address) => {
                to.case(place, 1);
                let [a, b, c, d, e, f, g, h] = address.segments();
                (a, b, c, d, e, f, g, h).lower(to, place.plus(2))
            }
        }
    }
}

impl Call<'_> {
    /// The `ip-address-family` that is an argument.
    ///
    /// # Errors
    /// A trap, when it is none.
    pub(in crate::host) fn family(&self, index: usize) -> Result<Family, Stop> {
        Ok(if self.case(index, 2)? == 0 { Family::Ipv4 } else { Family::Ipv6 })
    }

    /// The `ip-socket-address` whose flat form begins with argument `index`.
    ///
    /// # Errors
    /// A trap, when it is none.
    pub(in crate::host) fn address(&self, index: usize) -> Result<SocketAddr, Stop> {
        let field = |offset| self.args.u32(index + offset);
        // The canonical ABI takes the low bits of what is flat.
        let port = field(1) as u16;
        Ok(if self.case(index, 2)? == 0 {
            let octet = |offset| field(offset) as u8;
            SocketAddrV4::new(Ipv4Addr::new(octet(2), octet(3), octet(4), octet(5)), port).into()
        } else {
            let mut segments = [0; 8];
            for (offset, segment) in (3..).zip(&mut segments) {
                *segment = field(offset) as u16;
            }
            SocketAddrV6::new(Ipv6Addr::from(segments), port, field(2), field(11)).into()
        })
    }
}
