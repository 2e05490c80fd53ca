//! Addresses with a meaning of their own: not the public Internet's, or leading to this machine, its link or many machines.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::pattern::Network;

/// Networks that are not the public Internet's (IANA's registries of special-purpose addresses).
const SPECIAL_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// The same of IPv6, where what is not 2000::/3 is not public at all; these are in it. Those that stand for an address of IPv4 are among them.
const SPECIAL_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Networks that no larger one opens: this machine, its link, and those that stand for many machines.
const NEAR: [Network; 8] = [
    Network { address: IpAddr::V4(Ipv4Addr::new(0, 0, 0, 0)), bits: 8 },
    Network { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), bits: 8 },
    Network { address: IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), bits: 16 },
    // Multicast, what is reserved, and broadcast.
    Network { address: IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), bits: 3 },
    Network { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), bits: 128 },
    Network { address: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 },
    Network { address: IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), bits: 10 },
    Network { address: IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), bits: 8 },
];

/// Whether an address is the public Internet's.
pub(super) fn is_public(address: IpAddr) -> bool {
    let is_in = |network: IpAddr, bits| Network { address: network, bits }.contains(address);
    match address {
        IpAddr::V4(_) => !SPECIAL_V4.iter().any(|&(network, bits)| is_in(network.into(), bits)),
        IpAddr::V6(_) => {
            is_in(PUBLIC_V6.0.into(), PUBLIC_V6.1) && !SPECIAL_V6.iter().any(|&(network, bits)| is_in(network.into(), bits))
        }
    }
}

/// Whether a listed network opens every address that `other` opens.
pub(super) fn opens_all_of(listed: &Network, other: &Network) -> bool {
    listed.holds(other) && NEAR.iter().all(|near| !near.holds(other) || near.holds(listed))
}

/// Whether a listed network opens an address that is in it: this machine's and its link's addresses have to be meant.
pub(super) fn opens(listed: &Network, address: IpAddr) -> bool {
    listed.contains(address) && NEAR.iter().all(|near| !near.contains(address) || near.holds(listed))
}
