//! What lists of hosts in the configuration consist of: names, addresses and networks.

use std::net::IpAddr;

/// An entry of a list, without its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// A name, or all names below one.
    Name(NamePattern),
    /// An address, or a network of them.
    Network(Network),
}

/// A name, or all names below one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamePattern {
    /// In small letters.
    name: String,
    /// Whether it stands for all names below it.
    below: bool,
}

/// A network of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) address: IpAddr,
    /// The bits that count.
    pub(super) bits: u32,
}

impl Pattern {
    /// Reads `NAME`, `*.NAME`, an address, or `ADDRESS/BITS`.
    ///
    /// # Errors
    /// Why it is none of them.
    pub(super) fn parse(host: &str) -> Result<Pattern, &'static str> {
        let (address, bits) = match host.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| "the network's length is no number")?)),
            None => (host, None),
        };
        if let Ok(address) = bare(address).parse::<IpAddr>() {
            let all = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.unwrap_or(all);
            if bits > all {
                return Err("the network's length is too large");
            }
            return Ok(Pattern::Network(Network { address, bits }));
        }
        let (name, below) = host.strip_prefix("*.").map_or((host, false), |name| (name, true));
        let is_name = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        if bits.is_some() || name.len() > 253 || !name.split('.').all(is_name) {
            return Err("neither a name nor an address");
        }
        Ok(Pattern::Name(NamePattern { name: name.to_ascii_lowercase(), below }))
    }
}

impl NamePattern {
    /// That name and no other.
    pub(super) fn only(name: &str) -> NamePattern {
        NamePattern { name: name.to_ascii_lowercase(), below: false }
    }

    /// Whether it stands for that name, in whatever letters, with or without the root's dot.
    pub(super) fn matches(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let rest = name.strip_suffix(&self.name);
        rest.is_some_and(|rest| if self.below { rest.ends_with('.') && rest.len() > 1 } else { rest.is_empty() })
    }
}

impl NamePattern {
    /// Whether it stands for all names for which `other` does.
    pub(super) fn holds(&self, other: &NamePattern) -> bool {
        match (self.below, other.below) {
            (_, false) => self.matches(&other.name),
            (false, true) => false,
            (true, true) => self.name == other.name || self.matches(&other.name),
        }
    }
}

impl Network {
    /// Whether that address is in it.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let (network, address, all) = match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => (u128::from(network.to_bits()), u128::from(address.to_bits()), 32),
            (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
            _ => return false,
        };
        // Shifting by all bits is none.
        (network ^ address).checked_shr(all - self.bits).unwrap_or(0) == 0
    }

    /// Whether all of `other` is in it.
    pub(super) fn holds(&self, other: &Network) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

/// An address without the brackets that it has beside a port.
pub(super) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// The host and the ports of an entry, if it has any.
pub(super) fn split(entry: &str) -> (&str, Option<&str>) {
    // More than one colon outside of brackets: an address of IPv6.
    match entry.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.contains(']')) {
        Some((host, ports)) => (host, Some(ports)),
        None => (entry, None),
    }
}

/// Reads a port.
///
/// # Errors
/// When it is none.
pub(super) fn port(text: &str) -> Result<u16, &'static str> {
    match text.parse() {
        Ok(port @ 1..) => Ok(port),
        _ => Err("the port is no number from 1 to 65535"),
    }
}
