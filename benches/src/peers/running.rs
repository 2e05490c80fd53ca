//! Servers that have been started, and where they have which function.

use std::net::SocketAddr;

use super::function::{Built, Function};
use crate::child::Listener;
use crate::server::Server;

/// Where a function is served; otherwise why it is not.
pub(super) type Target = Result<(SocketAddr, String), String>;

/// A peer, or why it is not there.
pub(super) enum Started {
    Running(Running),
    Missing(String),
}

/// A server or several, for as long as this lives.
#[derive(Debug)]
pub(super) struct Running {
    servers: Servers,
    targets: Vec<(&'static str, Target)>,
    /// Which program it is, where that is not this workspace's.
    pub(super) version: Option<String>,
}

#[derive(Debug)]
enum Servers {
    Sledge(Server),
    Others(Vec<Listener>),
}

impl Running {
    /// One server for all functions; `path` says where each is, or why it is not there.
    pub(super) fn one(listener: Listener, built: &[Built], path: impl Fn(&Function) -> Result<String, String>) -> Running {
        let address = listener.address();
        let target = |function: &'static Function| (function.name, path(function).map(|path| (address, path)));
        let targets = built.iter().map(|built| target(built.function)).collect();
        Running { servers: Servers::Others(vec![listener]), targets, version: None }
    }

    /// `sledge` itself.
    pub(super) fn sledge(server: Server, built: &[Built]) -> Running {
        let target = |built: &Built| (built.function.name, Ok((server.address(), format!("/{}", built.function.name))));
        let targets = built.iter().map(target).collect();
        Running { servers: Servers::Sledge(server), targets, version: None }
    }

    /// A server for each function.
    pub(super) fn each(listeners: Vec<Listener>, targets: Vec<(&'static str, Target)>, version: String) -> Running {
        Running { servers: Servers::Others(listeners), targets, version: Some(version) }
    }

    /// Says which program it is.
    pub(super) fn version(self, version: Option<String>) -> Running {
        Running { version, ..self }
    }

    /// Where a function is served.
    pub(super) fn target(&self, function: &Function) -> Target {
        let target = self.targets.iter().find(|(name, _)| *name == function.name).map(|(_, target)| target.clone());
        target.unwrap_or_else(|| Err("it was not started for this".to_owned()))
    }

    /// What it said last, for an error message.
    pub(super) fn log_end(&self) -> String {
        match &self.servers {
            Servers::Sledge(server) => server.log_end(),
            Servers::Others(listeners) => listeners.iter().map(Listener::log_end).collect(),
        }
    }
}
