//! `--socket-host` and `--socket-listen`: what sockets of functions named on the command line may do.

use clap::Args;

use crate::config::FunctionConfig;
use crate::upstream::SocketPolicy;

/// What sockets may do.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SocketArgs {
    /// Let a component's sockets connect and send to HOST: NAME, *.NAME, an address or a network, with a port or a range of ports
    #[arg(id = "socket_host", long = "socket-host", value_name = "HOST:PORT[-PORT]", value_parser = host)]
    hosts: Vec<String>,
    /// Let a component's sockets be reached at ADDRESS; port 0 stands for one that the system chooses
    #[arg(id = "socket_listen", long = "socket-listen", value_name = "ADDRESS:PORT[-PORT]", value_parser = place)]
    listen: Vec<String>,
}

impl SocketArgs {
    /// Says so in the settings of a function.
    pub(super) fn grant(&self, function: &mut FunctionConfig) {
        (function.socket_hosts, function.socket_listen) = (self.hosts.clone(), self.listen.clone());
    }

    /// How many entries the longer list has.
    pub(super) fn entries(&self) -> usize {
        self.hosts.len().max(self.listen.len())
    }
}

fn host(text: &str) -> Result<String, String> {
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
        assert_eq!(host("db.internal:5432"), Ok("db.internal:5432".to_owned()));
        assert_eq!(place("127.0.0.1:0"), Ok("127.0.0.1:0".to_owned()));
        assert!(host("db.internal").is_err() && host("127.0.0.1:0").is_err() && place("localhost:80").is_err());
    }
}
