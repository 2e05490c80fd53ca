//! What an application offers to clients that speak gRPC.

use super::Descriptors;

/// The services of an application that clients can call, and what the server tells of them.
#[derive(Debug, Default)]
pub struct Offer {
    /// Their full names.
    pub services: Vec<String>,
    /// Whether clients are told of them by reflection.
    pub reflects: bool,
    /// Their .proto files, where they are known and clients are told of them.
    pub descriptors: Option<Descriptors>,
}

impl Offer {
    /// Whether that service is among them.
    #[must_use]
    pub fn has(&self, service: &str) -> bool {
        self.services.iter().any(|one| one == service)
    }
}
