//! What an application offers to clients that speak gRPC.

use prost_reflect::DescriptorPool;

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
    /// Their .proto files, by which messages are read that come in JSON.
    pub pool: Option<DescriptorPool>,
    /// The largest message that is made one of gRPC.
    pub message_bytes_max: usize,
    /// The origins of web pages that may call them; `*` for all.
    pub cors_origins: Vec<String>,
}

impl Offer {
    /// Whether that service is among them.
    #[must_use]
    pub fn has(&self, service: &str) -> bool {
        self.services.iter().any(|one| one == service)
    }
}
