//! Which hosts a function may ask: by name, and, once a name was resolved, by address.
//!
//! A name says nothing about where it leads, and its owner can change that. So an address which is not one of the public Internet's has to be
//! listed itself, however it was come by: otherwise an allowed name would open this machine and its network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::pattern::{NamePattern, Network, Pattern, bare, port, split};
use super::special::is_public;

/// The ports of entries that name none: HTTP and HTTPS.
const PORTS_DEFAULT: [u16; 2] = [80, 443];

/// Hosts and networks, each with its port or for those that are usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    hosts: Vec<(NamePattern, Option<u16>)>,
    networks: Vec<(Network, Option<u16>)>,
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
        let everything = |address: IpAddr| (Network { address, bits: 0 }, Some(port));
        let networks = vec![everything(Ipv4Addr::UNSPECIFIED.into()), everything(Ipv6Addr::UNSPECIFIED.into())];
        Allowed { hosts: vec![(NamePattern::only(host), Some(port))], networks }
    }

    fn add(&mut self, entry: &str) -> Result<(), &'static str> {
        let (host, ports) = split(entry);
        let port = ports.map(port).transpose()?;
        match Pattern::parse(host)? {
            Pattern::Name(name) => self.hosts.push((name, port)),
            Pattern::Network(network) => self.networks.push((network, port)),
        }
        Ok(())
    }

    /// Whether it allows all that `other` does.
    #[must_use]
    pub fn covers(&self, other: &Allowed) -> bool {
        fn all<T>(ours: &[(T, Option<u16>)], others: &[(T, Option<u16>)], holds: fn(&T, &T) -> bool) -> bool {
            others.iter().all(|(other, port)| {
                let mut ports = port.map_or_else(|| PORTS_DEFAULT.to_vec(), |port| vec![port]).into_iter();
                ports.all(|port| ours.iter().any(|(own, known)| is_port(*known, port) && holds(own, other)))
            })
        }
        all(&self.hosts, &other.hosts, NamePattern::holds) && all(&self.networks, &other.networks, Network::holds)
    }

    /// Whether a URL may name that host: a name that is listed, or an address that is.
    #[must_use]
    pub fn names(&self, host: &str, port: u16) -> bool {
        if let Ok(address) = bare(host).parse() {
            return self.lists(address, port);
        }
        self.hosts.iter().any(|(name, known)| is_port(*known, port) && name.matches(host))
    }

    /// Whether a connection may go to that address, to which an allowed name was resolved.
    #[must_use]
    pub fn reaches(&self, address: IpAddr, port: u16) -> bool {
        is_public(address.to_canonical()) || self.lists(address, port)
    }

    fn lists(&self, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|(network, known)| is_port(*known, port) && network.contains(address))
    }
}

fn is_port(known: Option<u16>, port: u16) -> bool {
    known.map_or_else(|| PORTS_DEFAULT.contains(&port), |known| known == port)
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
    fn a_list_covers_those_that_allow_no_more() {
        let granted = allowed(&["api.example.org", "*.example.net:8443", "a.b:80", "a.b:443", "10.0.0.0/8", "[fd00::]/16:9"]);
        for asked in [
            &[][..],
            &["API.example.org"],
            &["api.example.org:443", "api.example.org:80"],
            &["x.example.net:8443", "*.example.net:8443", "*.x.example.net:8443"],
            &["a.b"],
            &["10.1.0.0/16", "10.0.0.1:80"],
            &["[fd00::1]:9"],
        ] {
            assert!(granted.covers(&allowed(asked)), "{asked:?}");
        }
        for asked in [
            "api.example.org:8080",
            "*.api.example.org",
            "example.org",
            "example.net:8443",
            "x.example.net",
            "evilexample.net:8443",
            "a.b:81",
            "10.0.0.1:81",
            "0.0.0.0/0",
            "9.0.0.0/8",
            "10.0.0.0/7",
            "[fd00::1]",
            "[fd01::1]:9",
            "127.0.0.1",
        ] {
            assert!(!granted.covers(&allowed(&["api.example.org", asked])), "{asked}");
            assert!(!allowed(&[]).covers(&allowed(&[asked])), "{asked}");
        }
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
