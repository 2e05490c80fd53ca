//! The .proto files of which clients are told: those that define the services that they can call, and what these files need.
//!
//! Made of a `FileDescriptorSet` (descriptor.proto). Files stay the bytes that they are there, so options of any kind survive; only services that clients
//! cannot call are taken out.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::{Buf as _, Bytes, BytesMut};
use prost::encoding::{DecodeContext, decode_key, skip_field};
use prost::{DecodeError, Message};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto};

/// Fields of `FileDescriptorProto` that are left out or looked at.
const SERVICE_TAG: u32 = 6;
const SOURCE_TAG: u32 = 9;

/// `google.protobuf.FileDescriptorSet`, its files as bytes.
#[derive(Clone, PartialEq, Message)]
struct FileSet {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    file: Vec<Bytes>,
}

/// Files, and where names stand in them.
#[derive(Debug, Default)]
pub struct Descriptors {
    files: Vec<File>,
    names: HashMap<String, usize>,
    symbols: HashMap<String, Symbol>,
    extensions: BTreeMap<(String, i32), usize>,
}

/// A file, as clients get it.
#[derive(Debug)]
struct File {
    bytes: Bytes,
    imports: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    file: usize,
    is_message: bool,
}

impl Descriptors {
    /// Those of a `FileDescriptorSet`, for clients that can call these services.
    ///
    /// # Errors
    /// When the bytes are something else.
    pub fn new(set: Bytes, services: &[String]) -> Result<Descriptors, DecodeError> {
        let set = FileSet::decode(set)?;
        let protos = set.file.iter().map(|file| FileDescriptorProto::decode(file.clone())).collect::<Result<Vec<_>, _>>()?;
        let visible = visible(&protos, services);
        let mut all = Descriptors::default();
        for (proto, bytes) in protos.iter().zip(&set.file).filter(|(proto, _)| visible.contains(proto.name())) {
            let is_offered: Vec<bool> =
                proto.service.iter().map(|service| services.contains(&full(proto.package(), service.name()))).collect();
            let bytes = without(bytes, &is_offered)?;
            let file = all.files.len();
            if all.names.insert(proto.name().to_owned(), file).is_some() {
                continue;
            }
            all.files.push(File { bytes, imports: Vec::new() });
            all.index(file, proto, &is_offered);
        }
        for proto in &protos {
            if let Some(&file) = all.names.get(proto.name()) {
                all.files[file].imports = proto.dependency.iter().filter_map(|name| all.names.get(name).copied()).collect();
            }
        }
        Ok(all)
    }

    /// The file of that name.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The file in which a service, a method, a type, a field or a value is defined, by its full name.
    #[must_use]
    pub fn file_of(&self, symbol: &str) -> Option<usize> {
        self.symbols.get(symbol).map(|symbol| symbol.file)
    }

    /// The file in which a message is extended by the field of that number.
    #[must_use]
    pub fn file_of_extension(&self, message: &str, number: i32) -> Option<usize> {
        self.extensions.get(&(message.to_owned(), number)).copied()
    }

    /// The numbers of the fields by which a message is extended; none where there is no such message.
    #[must_use]
    pub fn extensions_of(&self, message: &str) -> Option<Vec<i32>> {
        self.symbols.get(message).filter(|symbol| symbol.is_message)?;
        let own = (message.to_owned(), i32::MIN)..=(message.to_owned(), i32::MAX);
        Some(self.extensions.range(own).map(|((_, number), _)| *number).collect())
    }

    /// A file and all that it imports, itself first; those that are known to the client are left out, and are known then.
    pub fn with_imports(&self, file: usize, known: &mut Vec<bool>) -> Vec<Bytes> {
        known.resize(self.files.len(), false);
        known[file] = true;
        let (mut found, mut at) = (vec![file], 0);
        while let Some(&file) = found.get(at) {
            at += 1;
            for &import in &self.files[file].imports {
                if !std::mem::replace(&mut known[import], true) {
                    found.push(import);
                }
            }
        }
        found.into_iter().map(|file| self.files[file].bytes.clone()).collect()
    }

    fn index(&mut self, file: usize, proto: &FileDescriptorProto, is_offered: &[bool]) {
        let package = proto.package();
        for (service, _) in proto.service.iter().zip(is_offered).filter(|(_, is_offered)| **is_offered) {
            let name = full(package, service.name());
            service.method.iter().for_each(|method| self.add(file, full(&name, method.name())));
            self.add(file, name);
        }
        proto.message_type.iter().for_each(|message| self.add_message(file, package, message));
        proto.enum_type.iter().for_each(|of| self.add_enum(file, package, of));
        proto.extension.iter().for_each(|extension| self.add_extension(file, package, extension));
    }

    fn add(&mut self, file: usize, name: String) {
        self.symbols.entry(name).or_insert(Symbol { file, is_message: false });
    }

    fn add_message(&mut self, file: usize, scope: &str, message: &DescriptorProto) {
        let name = full(scope, message.name());
        message.field.iter().for_each(|field| self.add(file, full(&name, field.name())));
        message.oneof_decl.iter().for_each(|oneof| self.add(file, full(&name, oneof.name())));
        message.nested_type.iter().for_each(|nested| self.add_message(file, &name, nested));
        message.enum_type.iter().for_each(|of| self.add_enum(file, &name, of));
        message.extension.iter().for_each(|extension| self.add_extension(file, &name, extension));
        self.symbols.insert(name, Symbol { file, is_message: true });
    }

    /// The values of an enum stand beside it.
    fn add_enum(&mut self, file: usize, scope: &str, of: &EnumDescriptorProto) {
        of.value.iter().for_each(|value| self.add(file, full(scope, value.name())));
        self.add(file, full(scope, of.name()));
    }

    fn add_extension(&mut self, file: usize, scope: &str, extension: &FieldDescriptorProto) {
        self.add(file, full(scope, extension.name()));
        self.extensions.entry((extended(extension).to_owned(), extension.number())).or_insert(file);
    }
}

/// The names of the files in which the services are defined, of what they import, and of those that extend messages in them.
fn visible<'a>(protos: &'a [FileDescriptorProto], services: &[String]) -> HashSet<&'a str> {
    let by_name: HashMap<&str, &FileDescriptorProto> = protos.iter().map(|proto| (proto.name(), proto)).collect();
    let is_offered = |proto: &&FileDescriptorProto| {
        proto.service.iter().any(|service| services.contains(&full(proto.package(), service.name())))
    };
    let (mut visible, mut messages) = (HashSet::new(), HashSet::new());
    let mut next: Vec<&FileDescriptorProto> = protos.iter().filter(is_offered).collect();
    while !next.is_empty() {
        while let Some(proto) = next.pop() {
            if visible.insert(proto.name()) {
                messages_of(proto.package(), &proto.message_type, &mut messages);
                next.extend(proto.dependency.iter().filter_map(|name| by_name.get(name.as_str())));
            }
        }
        let extends = |proto: &&FileDescriptorProto| {
            !visible.contains(proto.name()) && extensions(proto).any(|extension| messages.contains(extended(extension)))
        };
        next.extend(protos.iter().filter(extends));
    }
    visible
}

fn messages_of(scope: &str, messages: &[DescriptorProto], names: &mut HashSet<String>) {
    for message in messages {
        let name = full(scope, message.name());
        messages_of(&name, &message.nested_type, names);
        names.insert(name);
    }
}

/// All extensions that a file has, those in its messages included.
fn extensions(proto: &FileDescriptorProto) -> impl Iterator<Item = &FieldDescriptorProto> {
    let mut messages: Vec<&DescriptorProto> = proto.message_type.iter().collect();
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        messages.extend(&message.nested_type);
        at += 1;
    }
    proto.extension.iter().chain(messages.into_iter().flat_map(|message| &message.extension))
}

/// What an extension extends. Descriptors that are complete have names with a dot in front.
fn extended(extension: &FieldDescriptorProto) -> &str {
    extension.extendee().trim_start_matches('.')
}

fn full(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

/// A `FileDescriptorProto` without the services that are not offered, and without what is known of its source: that counts the services.
fn without(file: &Bytes, is_offered: &[bool]) -> Result<Bytes, DecodeError> {
    if is_offered.iter().all(|is_offered| *is_offered) {
        return Ok(file.clone());
    }
    let (mut rest, mut kept) = (file.clone(), BytesMut::with_capacity(file.len()));
    let mut is_offered = is_offered.iter();
    while rest.has_remaining() {
        let field = rest.clone();
        let (tag, wire) = decode_key(&mut rest)?;
        skip_field(wire, tag, &mut rest, DecodeContext::default())?;
        let is_kept = match tag {
            SERVICE_TAG => is_offered.next() == Some(&true),
            SOURCE_TAG => false,
            _ => true,
        };
        if is_kept {
            kept.extend_from_slice(&field[..field.len() - rest.len()]);
        }
    }
    Ok(kept.freeze())
}

#[cfg(test)]
mod tests;
