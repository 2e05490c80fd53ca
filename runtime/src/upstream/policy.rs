//! Which addresses the sockets of a function may reach and have.
//!
//! A listed name may be looked up, and what an invocation's lookup gave may be reached by that invocation: the address decides, not what the name leads to
//! when it is asked for again. As for requests over HTTP, a name opens no address that is not public; that has to be listed itself. A listed network
//! opens this machine's and its link's addresses only if it consists of such addresses.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use super::pattern::{NamePattern, Network, Pattern, port, split};
use super::special::{is_public, opens, opens_all_of};

/// Ports from the first to the last.
type Ports = RangeInclusive<u16>;

/// What the sockets of a function may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketPolicy {
    names: Vec<(NamePattern, RangeInclusive<u16>)>,
    networks: Vec<(Network, RangeInclusive<u16>)>,
    places: Vec<(Network, RangeInclusive<u16>)>,
}

/// Why an entry is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` is no entry: {why}; give {expected}")]
pub struct PolicyError {
    /// The configuration's key.
    pub key: &'static str,
    entry: String,
    why: &'static str,
    expected: &'static str,
}

impl SocketPolicy {
    /// Reads what may be reached, and where it may be listened; none where both are empty.
    ///
    /// # Errors
    /// At the first entry that is none.
    pub fn new(hosts: &[String], listen: &[String]) -> Result<Option<SocketPolicy>, PolicyError> {
        let mut policy = SocketPolicy { names: Vec::new(), networks: Vec::new(), places: Vec::new() };
        for entry in hosts {
            policy.add_host(entry).map_err(|why| {
                let expected = "NAME, *.NAME, an address or a network (10.0.0.0/8, [fd00::]/8), each with :PORT or :FIRST-LAST";
                PolicyError { key: "socket_hosts", entry: entry.clone(), why, expected }
            })?;
        }
        for entry in listen {
            policy.add_place(entry).map_err(|why| {
                let expected = "an address of this machine with :PORT, :FIRST-LAST, or :0 for a port that the system chooses";
                PolicyError { key: "socket_listen", entry: entry.clone(), why, expected }
            })?;
        }
        Ok((!hosts.is_empty() || !listen.is_empty()).then_some(policy))
    }

    fn add_host(&mut self, entry: &str) -> Result<(), &'static str> {
        let (host, text) = split(entry);
        let text = text.ok_or("it has no port")?;
        let ports = range(text, port)?;
        match Pattern::parse(host)? {
            Pattern::Name(name) => self.names.push((name, ports)),
            Pattern::Network(network) => self.networks.push((network, ports)),
        }
        Ok(())
    }

    fn add_place(&mut self, entry: &str) -> Result<(), &'static str> {
        let (address, text) = split(entry);
        let text = text.ok_or("it has no port")?;
        let ports = range(text, |text| text.parse().map_err(|_| "the port is no number from 0 to 65535"))?;
        match Pattern::parse(address)? {
            Pattern::Network(network) => self.places.push((network, ports)),
            Pattern::Name(_) => return Err("no address"),
        }
        Ok(())
    }

    /// Whether it allows all that `other` does.
    #[must_use]
    pub fn covers(&self, other: &SocketPolicy) -> bool {
        fn all<T>(ours: &[(T, Ports)], others: &[(T, Ports)], holds: fn(&T, &T) -> bool) -> bool {
            let within = |ports: &Ports, known: &Ports| known.start() <= ports.start() && ports.end() <= known.end();
            others.iter().all(|(other, ports)| ours.iter().any(|(own, known)| within(ports, known) && holds(own, other)))
        }
        all(&self.names, &other.names, NamePattern::holds)
            && all(&self.networks, &other.networks, opens_all_of)
            && all(&self.places, &other.places, opens_all_of)
    }

    /// Whether a name may be looked up.
    #[must_use]
    pub fn may_look_up(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| known.matches(name))
    }

    /// Whether a socket may reach an address, to which lookups of `names` led.
    pub fn reaches<'n>(&self, address: SocketAddr, mut names: impl Iterator<Item = &'n str>) -> bool {
        if lists(&self.networks, address) {
            return true;
        }
        let leads = |name| self.names.iter().any(|(known, ports)| ports.contains(&address.port()) && known.matches(name));
        is_public(address.ip().to_canonical()) && names.any(leads)
    }

    /// Whether a socket may have an address where others reach it; port 0 stands for one that the system chooses.
    #[must_use]
    pub fn may_listen(&self, address: SocketAddr) -> bool {
        lists(&self.places, address)
    }
}

fn lists(networks: &[(Network, RangeInclusive<u16>)], address: SocketAddr) -> bool {
    let ip: IpAddr = address.ip().to_canonical();
    networks.iter().any(|(network, ports)| ports.contains(&address.port()) && opens(network, ip))
}

/// Reads `PORT` or `FIRST-LAST`.
fn range(text: &str, port: impl Fn(&str) -> Result<u16, &'static str>) -> Result<RangeInclusive<u16>, &'static str> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ports = port(first)?..=port(last)?;
    if ports.is_empty() { Err("the first port comes after the last") } else { Ok(ports) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|&entry| entry.to_owned()).collect()
    }

    fn policy(hosts: &[&str], listen: &[&str]) -> SocketPolicy {
        SocketPolicy::new(&entries(hosts), &entries(listen)).unwrap().unwrap()
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn nothing_is_allowed_unless_it_is_listed() {
        assert_eq!(SocketPolicy::new(&[], &[]), Ok(None));
        let list = policy(&["10.0.0.5:5432", "10.1.0.0/16:6000-6010", "[fd00::1]:9"], &[]);
        let reaches = |text: &str| list.reaches(address(text), std::iter::empty());
        for open in ["10.0.0.5:5432", "10.1.255.1:6000", "10.1.0.1:6010", "[fd00::1]:9", "[::ffff:10.0.0.5]:5432"] {
            assert!(reaches(open), "{open}");
        }
        for closed in
            ["10.0.0.5:5433", "10.0.0.6:5432", "10.1.0.1:5999", "10.1.0.1:6011", "10.2.0.1:6000", "8.8.8.8:53", "[fd00::2]:9"]
        {
            assert!(!reaches(closed), "{closed}");
        }
        assert!(!list.may_listen(address("10.0.0.5:5432")) && !list.may_look_up("example.org"));
    }

    #[test]
    fn a_name_opens_public_addresses_that_it_led_to_on_its_ports() {
        let list = policy(&["db.example.org:5432", "*.example.net:1-100", "192.168.0.0/16:5432"], &[]);
        assert!(list.may_look_up("DB.example.org.") && list.may_look_up("a.b.example.net"));
        assert!(!list.may_look_up("example.net") && !list.may_look_up("example.org"));
        let reaches = |text: &str, name: &'static str| list.reaches(address(text), std::iter::once(name));
        assert!(reaches("93.184.216.34:5432", "db.example.org") && reaches("93.184.216.34:100", "x.example.net"));
        assert!(!reaches("93.184.216.34:5433", "db.example.org"), "another port");
        assert!(!list.reaches(address("93.184.216.34:5432"), std::iter::empty()), "no lookup led there");
        // The owner of the name does not decide about private networks; the operator does.
        for private in
            ["127.0.0.1:5432", "10.0.0.1:5432", "169.254.169.254:5432", "[::1]:5432", "[fe80::1]:5432", "[::ffff:127.0.0.1]:5432"]
        {
            assert!(!reaches(private, "db.example.org"), "{private}");
        }
        assert!(reaches("192.168.7.7:5432", "db.example.org"));
    }

    #[test]
    fn a_policy_covers_those_that_allow_no_more() {
        let granted = policy(&["db.example.org:5432", "*.example.net:1-100", "0.0.0.0/0:5000-6000"], &["127.0.0.0/8:0"]);
        for (hosts, listen) in [
            (&["db.example.org:5432", "a.example.net:7-100", "10.0.0.0/8:5000", "8.8.8.8:6000"][..], &["127.0.0.1:0"][..]),
            (&[], &["127.0.0.0/9:0-0"]),
        ] {
            assert!(granted.covers(&policy(hosts, listen)), "{hosts:?} {listen:?}");
        }
        let hosts = ["db.example.org:5433", "a.example.net:7-101", "10.0.0.1:4999-5001", "[fd00::1]:5000", "example.net:1"];
        // A network of all addresses does not open this machine, so it covers nothing that does.
        for host in hosts.into_iter().chain(["127.0.0.1:5000", "127.0.0.0/9:5000", "169.254.169.254:5000", "0.0.0.0:5000"]) {
            assert!(!granted.covers(&policy(&[host], &[])), "{host}");
        }
        for place in ["127.0.0.1:80", "0.0.0.0:0", "10.0.0.1:0"] {
            assert!(!granted.covers(&policy(&[], &[place])), "{place}");
        }
    }

    #[test]
    fn this_machine_and_its_link_have_to_be_meant() {
        let wide = policy(&["0.0.0.0/0:1-65535", "[::]/0:1-65535"], &["0.0.0.0/0:0-65535", "[::]/0:0-65535"]);
        let reaches = |list: &SocketPolicy, text: &str| list.reaches(address(text), std::iter::empty());
        assert!(reaches(&wide, "8.8.8.8:53") && reaches(&wide, "10.0.0.1:1") && reaches(&wide, "[2606:4700::1]:443"));
        for near in [
            "127.0.0.1:80",
            "127.9.9.9:80",
            "169.254.169.254:80",
            "0.0.0.0:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "[::1]:80",
            "[fe80::1]:80",
            "[ff02::1]:80",
            "[::ffff:127.0.0.1]:80",
        ] {
            assert!(!reaches(&wide, near) && !wide.may_listen(address(near)), "{near}");
        }
        let near = policy(
            &["127.0.0.0/8:80", "169.254.169.254:80", "[::1]:80", "[fe80::]/10:80"],
            &["127.0.0.1:0", "0.0.0.0:9000-9001"],
        );
        for open in ["127.9.9.9:80", "169.254.169.254:80", "[::1]:80"] {
            assert!(reaches(&near, open), "{open}");
        }
        assert!(near.may_listen(address("127.0.0.1:0")) && near.may_listen(address("0.0.0.0:9001")));
        assert!(!near.may_listen(address("127.0.0.1:9000")) && !near.may_listen(address("0.0.0.0:0")));
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for entry in [
            "",
            "a",
            "10.0.0.0/8",
            "10.0.0.1",
            "fd00::1",
            "a:0",
            "a:",
            "a:x",
            "a:2-1",
            "a:1-",
            "a:-1",
            "a:70000",
            "10.0.0.0/33:1",
            "*:1",
            "a b:1",
            "a/b:1",
        ] {
            let error = SocketPolicy::new(&[entry.to_owned()], &[]).unwrap_err();
            assert_eq!(error.key, "socket_hosts", "{entry}");
        }
        for entry in ["", "example.org:1", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"] {
            let error = SocketPolicy::new(&[], &[entry.to_owned()]).unwrap_err();
            assert_eq!(error.key, "socket_listen", "{entry}");
        }
    }
}
