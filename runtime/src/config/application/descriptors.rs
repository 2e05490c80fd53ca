//! Which services the .proto files of an application have, as its build wrote it down: a `FileDescriptorSet`, of which only names are read here.

use std::fs;
use std::io::{self, Read as _};

use prost::Message;

use super::ApplicationConfig;

/// The largest file of descriptors.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// `google.protobuf.FileDescriptorSet` of descriptor.proto.
#[derive(Clone, PartialEq, Message)]
struct FileSet {
    #[prost(message, repeated, tag = "1")]
    file: Vec<File>,
}

#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(string, optional, tag = "2")]
    package: Option<String>,
    #[prost(message, repeated, tag = "6")]
    service: Vec<Service>,
}

#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
}

/// The file, as it is; none where the application was not built, or has no .proto files.
///
/// # Errors
/// When it cannot be read.
pub fn descriptors_of(application: &ApplicationConfig) -> io::Result<Option<Vec<u8>>> {
    let file = match fs::File::open(application.descriptors()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(Some(bytes))
}

/// The full names of all services, in order; none where the application was not built, or has no .proto files.
///
/// # Errors
/// When the file cannot be read, or is something else.
pub fn services_of(application: &ApplicationConfig) -> io::Result<Option<Vec<String>>> {
    let Some(bytes) = descriptors_of(application)? else { return Ok(None) };
    let set = FileSet::decode(&*bytes).map_err(io::Error::other)?;
    let full = |package: &str, name: &str| if package.is_empty() { name.to_owned() } else { format!("{package}.{name}") };
    let of_file = |file: &File| {
        let package = file.package.clone().unwrap_or_default();
        file.service.iter().map(move |service| full(&package, service.name())).collect::<Vec<_>>()
    };
    let mut services: Vec<String> = set.file.iter().flat_map(of_file).collect();
    services.sort_unstable();
    services.dedup();
    Ok(Some(services))
}
