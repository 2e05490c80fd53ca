//! Which hosts a function may ask: by name, and, once a name was resolved, by address.
//!
//! A name says nothing about where it leads, and its owner can change that. So an address which is not one of the public Internet's has to be
//! listed itself, however it was come by: otherwise an allowed name would open this machine and its network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The ports of entries that name none: HTTP and HTTPS.
const PORTS_DEFAULT: [u16; 2] = [80, 443];

/// Hosts and networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    hosts: Vec<Host>,
    networks: Vec<Network>,
}

/// Why an entry is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{entry}` is no host: {why}; give NAME, *.NAME, an address or a network such as 10.0.0.0/8, each with :PORT or for 80 and 443"
)]
pub struct AllowError {
    entry: String,
    why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    /// In small letters.
    name: String,
    /// Whether it stands for all names below it.
    below: bool,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    /// The bits that count.
    bits: u32,
    port: Option<u16>,
}

impl Allowed {
    /// Reads a list.
    ///
    /// # Errors
    /// At the first entry that is none.
    pub fn new(entries: &[String]) -> Result<Allowed, AllowError> {
        let mut allowed = Allowed::default();
        for entry in entries {
            allowed.add(entry).map_err(|why| AllowError { entry: entry.clone(), why })?;
        }
        Ok(allowed)
    }

    /// One host and port, wherever its name leads: for what the operator asks for, not a function.
    #[must_use]
    pub fn wherever(host: &str, port: u16) -> Allowed {
        let port = Some(port);
        let everything = |address: IpAddr| Network { address, bits: 0, port };
        let networks = vec![everything(Ipv4Addr::UNSPECIFIED.into()), everything(Ipv6Addr::UNSPECIFIED.into())];
        Allowed { hosts: vec![Host { name: host.to_ascii_lowercase(), below: false, port }], networks }
    }

    fn add(&mut self, entry: &str) -> Result<(), &'static str> {
        let (host, port) = split_port(entry)?;
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
            self.networks.push(Network { address, bits, port });
            return Ok(());
        }
        let (name, below) = host.strip_prefix("*.").map_or((host, false), |name| (name, true));
        let is_name = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        if bits.is_some() || name.len() > 253 || !name.split('.').all(is_name) {
            return Err("neither a name nor an address");
        }
        self.hosts.push(Host { name: name.to_ascii_lowercase(), below, port });
        Ok(())
    }

    /// Whether a URL may name that host: a name that is listed, or an address that is.
    #[must_use]
    pub fn names(&self, host: &str, port: u16) -> bool {
        if let Ok(address) = bare(host).parse() {
            return self.lists(address, port);
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        self.hosts.iter().filter(|known| is_port(known.port, port)).any(|known| {
            let rest = host.strip_suffix(&known.name);
            rest.is_some_and(|rest| if known.below { rest.ends_with('.') && rest.len() > 1 } else { rest.is_empty() })
        })
    }

    /// Whether a connection may go to that address, to which an allowed name was resolved.
    #[must_use]
    pub fn reaches(&self, address: IpAddr, port: u16) -> bool {
        is_public(address.to_canonical()) || self.lists(address, port)
    }

    fn lists(&self, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| is_port(network.port, port) && contains(network.address, network.bits, address))
    }
}

/// An address without the brackets that it has in a URL.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn split_port(entry: &str) -> Result<(&str, Option<u16>), &'static str> {
    // More than one colon outside of brackets: an address of IPv6.
    let Some((host, port)) = entry.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']')) else {
        return Ok((entry, None));
    };
    match port.parse() {
        Ok(port @ 1..) => Ok((host, Some(port))),
        _ => Err("the port is no number from 1 to 65535"),
    }
}

fn is_port(known: Option<u16>, port: u16) -> bool {
    known.map_or_else(|| PORTS_DEFAULT.contains(&port), |known| known == port)
}

fn contains(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    let (network, address, all) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => (u128::from(network.to_bits()), u128::from(address.to_bits()), 32),
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    // Shifting by all bits is none.
    (network ^ address).checked_shr(all - bits).unwrap_or(0) == 0
}

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

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => !SPECIAL_V4.iter().any(|&(network, bits)| contains(network.into(), bits, address)),
        IpAddr::V6(_) => {
            contains(PUBLIC_V6.0.into(), PUBLIC_V6.1, address)
                && !SPECIAL_V6.iter().any(|&(network, bits)| contains(network.into(), bits, address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(entries: &[&str]) -> Allowed {
        Allowed::new(&entries.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn names_are_those_that_are_listed_with_their_ports() {
        let list = allowed(&["api.example.org", "*.Example.net", "db.internal:5984"]);
        for (host, port) in [("API.example.org", 443), ("api.example.org.", 80), ("a.b.example.net", 443), ("db.internal", 5984)]
        {
            assert!(list.names(host, port), "{host}:{port}");
        }
        for (host, port) in [
            ("example.org", 443),
            ("x.api.example.org", 443),
            ("api.example.org", 8080),
            ("example.net", 443),
            (".example.net", 443),
            ("evilexample.net", 443),
            ("api.example.org.evil.com", 443),
            ("db.internal", 80),
            ("1.1.1.1", 443),
            ("", 80),
        ] {
            assert!(!list.names(host, port), "{host}:{port}");
        }
        assert!(!allowed(&[]).names("example.org", 443));
    }

    #[test]
    fn a_name_opens_no_private_network() {
        let list = allowed(&["example.org"]);
        for address in ["93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8"] {
            assert!(list.reaches(address.parse().unwrap(), 443), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "fe80::1",
            "fc00::1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "ff02::1",
            "2001:db8::1",
        ] {
            assert!(!list.reaches(address.parse().unwrap(), 443), "{address}");
        }
    }

    #[test]
    fn listed_networks_are_open() {
        let list = allowed(&["10.0.0.0/8", "127.0.0.1:8080", "fd00::/8", "[::1]:9"]);
        let open = |address: &str, port| list.reaches(address.parse().unwrap(), port) && list.names(address, port);
        assert!(
            open("10.255.0.1", 80)
                && open("127.0.0.1", 8080)
                && open("fd12::1", 443)
                && open("::1", 9)
                && open("::ffff:10.0.0.1", 80)
        );
        assert!(
            !open("10.0.0.1", 81)
                && !open("127.0.0.2", 8080)
                && !open("127.0.0.1", 80)
                && !open("fe00::1", 443)
                && !open("::1", 80)
        );
        assert!(list.names("[fd12::1]", 443) && allowed(&["0.0.0.0/0"]).names("8.8.8.8", 80));
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for entry in [
            "",
            "*",
            "*.",
            "a..b",
            "http://a",
            "a/b",
            "a:0",
            "a:x",
            "a:70000",
            "10.0.0.0/33",
            "10.0.0.0/x",
            "a b",
            "*.*.a",
            "user@a",
        ] {
            assert!(Allowed::new(&[entry.to_owned()]).is_err(), "{entry}");
        }
    }
}
