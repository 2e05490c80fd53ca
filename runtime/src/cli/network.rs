//! `--http-host`, `--socket-host` and `--socket-listen`: which parts of the network functions named on the command line reach.

use clap::Args;

use crate::config::{FunctionConfig, HOSTS_MAX};
use crate::upstream::{Allowed, SocketPolicy};

/// What functions reach.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct NetworkArgs {
    /// Let the function call HOST over HTTP: NAME, *.NAME, an address or a network; without a port, on ports 80 and 443
    #[arg(long = "http-host", value_name = "HOST[:PORT]", value_parser = http_host)]
    http_hosts: Vec<String>,
    /// Let a component's sockets connect and send to HOST: NAME, *.NAME, an address or a network, with a port or a range of ports
    #[arg(long = "socket-host", value_name = "HOST:PORT[-PORT]", value_parser = socket_host)]
    socket_hosts: Vec<String>,
    /// Let a component's sockets be reached at ADDRESS; port 0 stands for one that the system chooses
    #[arg(long = "socket-listen", value_name = "ADDRESS:PORT[-PORT]", value_parser = place)]
    socket_listen: Vec<String>,
}

impl NetworkArgs {
    /// Says so in the settings of a function.
    pub(super) fn grant(&self, function: &mut FunctionConfig) {
        function.http_hosts.clone_from(&self.http_hosts);
        function.socket_hosts.clone_from(&self.socket_hosts);
        function.socket_listen.clone_from(&self.socket_listen);
    }

    /// The options given, with the keys of the settings that they are.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let lists = [
            ("--http-host", "http_hosts", &self.http_hosts),
            ("--socket-host", "socket_hosts", &self.socket_hosts),
            ("--socket-listen", "socket_listen", &self.socket_listen),
        ];
        lists.into_iter().filter_map(|(option, key, list)| (!list.is_empty()).then_some((option, key)))
    }

    /// What is wrong with their number, if anything is.
    pub(super) fn excess(&self) -> Option<String> {
        let lists =
            [("--http-host", &self.http_hosts), ("--socket-host", &self.socket_hosts), ("--socket-listen", &self.socket_listen)];
        let (option, list) = lists.into_iter().find(|(_, list)| list.len() > HOSTS_MAX)?;
        Some(format!("{option}: {} entries; a function has at most {HOSTS_MAX}", list.len()))
    }
}

fn http_host(text: &str) -> Result<String, String> {
    checked(text, |entry| Allowed::new(entry).map(drop))
}

fn socket_host(text: &str) -> Result<String, String> {
    checked(text, |entry| SocketPolicy::new(entry, &[]).map(drop))
}

fn place(text: &str) -> Result<String, String> {
    checked(text, |entry| SocketPolicy::new(&[], entry).map(drop))
}

fn checked<E: ToString>(text: &str, check: impl FnOnce(&[String]) -> Result<(), E>) -> Result<String, String> {
    let text = text.to_owned();
    match check(std::slice::from_ref(&text)) {
        Ok(()) => Ok(text),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_checked_where_they_are_given() {
        for right in ["example.org", "example.org:8080", "*.example.org", "127.0.0.1:80", "10.0.0.0/8"] {
            assert_eq!(http_host(right), Ok(right.to_owned()));
        }
        assert!(http_host("http://example.org").is_err() && http_host("a b").is_err() && http_host("").is_err());
        assert_eq!(socket_host("db.internal:5432"), Ok("db.internal:5432".to_owned()));
        assert_eq!(place("127.0.0.1:0"), Ok("127.0.0.1:0".to_owned()));
        assert!(socket_host("db.internal").is_err() && socket_host("127.0.0.1:0").is_err() && place("localhost:80").is_err());
    }

    #[test]
    fn as_many_entries_as_in_a_configuration_are_taken() {
        let of = |count| NetworkArgs { http_hosts: vec!["a".to_owned(); count], ..NetworkArgs::default() };
        assert_eq!(of(HOSTS_MAX).excess(), None);
        assert_eq!(of(HOSTS_MAX + 1).excess().as_deref(), Some("--http-host: 65 entries; a function has at most 64"));
    }
}
