//! Messages in JSON, by their descriptors (the canonical encoding of proto3).

use prost::Message as _;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor};

/// The method of that path, `/PACKAGE.SERVICE/METHOD`.
#[must_use]
pub fn method(pool: &DescriptorPool, path: &str) -> Option<MethodDescriptor> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    pool.get_service_by_name(service)?.methods().find(|one| one.name() == method)
}

/// The bytes of a message that comes in JSON; fields that it does not have are left out.
///
/// # Errors
/// What is wrong with it.
pub fn to_bytes(of: &MessageDescriptor, json: &[u8]) -> Result<Vec<u8>, String> {
    let mut text = serde_json::Deserializer::from_slice(json);
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(of.clone(), &mut text, &options).map_err(|error| error.to_string())?;
    text.end().map_err(|error| error.to_string())?;
    Ok(message.encode_to_vec())
}

/// A message as JSON.
///
/// # Errors
/// What is wrong with it.
pub fn to_json(of: &MessageDescriptor, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let message = DynamicMessage::decode(of.clone(), bytes).map_err(|error| error.to_string())?;
    serde_json::to_vec(&message).map_err(|error| error.to_string())
}
