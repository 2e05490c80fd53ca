//! Where the calls of an application's function go: for each service a function of the same tenant, or another server.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::upstream::{Origin, Roots, Upstream};

/// Where the calls of one function go, by the full names of services.
#[derive(Clone, Debug, Default)]
pub struct Edges(HashMap<Box<str>, Edge>);

/// Where calls of a service go.
#[derive(Clone, Debug)]
pub(super) enum Edge {
    /// To the function of that name.
    Function(Arc<str>),
    /// To that server.
    Server(Arc<Server>),
}

/// A server that speaks gRPC.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) origin: Origin,
    pub(super) upstream: Arc<Upstream>,
}

/// What an operator says of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The function of that name.
    Function(String),
    /// That server.
    Server(Origin),
}

impl Edges {
    /// Those; each server is asked over connections of its own.
    #[must_use]
    pub fn new(edges: impl IntoIterator<Item = (String, Destination)>) -> Edges {
        let mut servers: BTreeMap<String, Arc<Server>> = BTreeMap::new();
        let edge = |destination| match destination {
            Destination::Function(name) => Edge::Function(name.into()),
            Destination::Server(origin) => {
                let made = servers.entry(format!("{origin:?}")).or_insert_with(|| {
                    let upstream = Arc::new(Upstream::of(&origin, Arc::default()));
                    Arc::new(Server { origin, upstream })
                });
                Edge::Server(Arc::clone(made))
            }
        };
        let mut edge = edge;
        Edges(edges.into_iter().map(|(service, destination)| (service.into(), edge(destination))).collect())
    }

    /// The same where other roots are believed about servers.
    #[must_use]
    pub fn with_roots(&self, roots: &Arc<Roots>) -> Edges {
        let mut known: Vec<(Arc<Server>, Arc<Server>)> = Vec::new();
        let mut believing = |server: &Arc<Server>| {
            if let Some((_, made)) = known.iter().find(|(of, _)| Arc::ptr_eq(of, server)) {
                return Arc::clone(made);
            }
            let upstream = Arc::new(server.upstream.with_roots(roots));
            let made = Arc::new(Server { origin: server.origin.clone(), upstream });
            known.push((Arc::clone(server), Arc::clone(&made)));
            made
        };
        let edge = |edge: &Edge| match edge {
            Edge::Function(name) => Edge::Function(Arc::clone(name)),
            Edge::Server(server) => Edge::Server(believing(server)),
        };
        let mut edge = edge;
        Edges(self.0.iter().map(|(service, to)| (service.clone(), edge(to))).collect())
    }

    /// Where a call of that service goes.
    pub(super) fn find(&self, service: &str) -> Option<&Edge> {
        self.0.get(service)
    }
}
