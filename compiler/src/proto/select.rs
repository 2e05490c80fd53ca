//! Which types and services are written: those that were asked for, and what they have inside. What has no image in WIT is refused here.

use std::collections::BTreeMap;

use protox::prost_reflect::{DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, ServiceDescriptor};

use super::catalog::target;
use super::cycles::circles;
use super::error::ProtoError;
use super::sources::Sources;

/// The file of options.
const DESCRIPTOR: &str = "google/protobuf/descriptor.proto";

/// Fields of a record, cases of a variant: what components may have (wasmparser).
const MEMBERS_MAX: usize = 10_000;

/// Bytes of an identifier; WIT's names may have 100,000 with all that stands around them.
const NAME_MAX_BYTES: usize = 1_000;

/// What is written, by full names.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub messages: BTreeMap<String, MessageDescriptor>,
    pub enums: BTreeMap<String, EnumDescriptor>,
    pub services: BTreeMap<String, ServiceDescriptor>,
}

impl Selection {
    /// All that these files define, and what it has inside.
    pub(super) fn of_files(pool: &DescriptorPool, files: &[String], sources: &Sources) -> Result<Selection, ProtoError> {
        let is_asked = |name: &str| files.iter().any(|file| file == name);
        let services = pool.services().filter(|service| is_asked(service.parent_file().name()));
        let messages = pool.all_messages().filter(|message| is_asked(message.parent_file().name()) && !message.is_map_entry());
        let enums = pool.all_enums().filter(|one| is_asked(one.parent_file().name()));
        for extension in pool.all_extensions().filter(|extension| is_asked(extension.parent_file().name())) {
            let extended = extension.containing_message();
            // Options of files, messages and so on: they change nothing in any message of a service.
            if extended.parent_file().name() == DESCRIPTOR {
                continue;
            }
            let (file, path) = (extension.parent_file(), extension.path().to_vec());
            let words =
                format!("extension `{}` of `{}`: extensions have no image in WIT", extension.full_name(), extended.full_name());
            return Err(sources.unsupported(file.name(), &path, words));
        }
        Selection::closed(services.collect(), messages.collect(), enums.collect(), sources)
    }

    /// These services, and what their methods take and give.
    pub(super) fn of_services(services: Vec<ServiceDescriptor>, sources: &Sources) -> Result<Selection, ProtoError> {
        Selection::closed(services, Vec::new(), Vec::new(), sources)
    }

    fn closed(
        services: Vec<ServiceDescriptor>,
        messages: Vec<MessageDescriptor>,
        enums: Vec<EnumDescriptor>,
        sources: &Sources,
    ) -> Result<Selection, ProtoError> {
        let mut selection = Selection::default();
        let mut waiting = messages;
        for service in services {
            name_fits(service.name(), sources, service.parent_file().name(), service.path())?;
            for method in service.methods() {
                name_fits(method.name(), sources, method.parent_file().name(), method.path())?;
                waiting.extend([method.input(), method.output()]);
            }
            selection.services.insert(service.full_name().to_owned(), service);
        }
        for one in enums {
            selection.add_enum(one, sources)?;
        }
        while let Some(message) = waiting.pop() {
            if selection.messages.contains_key(message.full_name()) {
                continue;
            }
            check_message(&message, sources)?;
            for field in message.fields() {
                let value = if field.is_map() { map_value(&field) } else { Some(field.kind()) };
                match value {
                    Some(Kind::Enum(one)) => selection.add_enum(one, sources)?,
                    Some(Kind::Message(_)) => waiting.extend(target(&field)),
                    _ => {}
                }
            }
            selection.messages.insert(message.full_name().to_owned(), message);
        }
        selection.check_required(sources)?;
        Ok(selection)
    }

    fn add_enum(&mut self, one: EnumDescriptor, sources: &Sources) -> Result<(), ProtoError> {
        if self.enums.contains_key(one.full_name()) {
            return Ok(());
        }
        let file = one.parent_file();
        name_fits(one.name(), sources, file.name(), one.path())?;
        for value in one.values() {
            name_fits(value.name(), sources, file.name(), value.path())?;
        }
        // One more is `unrecognized`.
        count_fits(one.values().len() + 1, &format!("enum `{}`", one.full_name()), "values", sources, file.name(), one.path())?;
        self.enums.insert(one.full_name().to_owned(), one);
        Ok(())
    }

    /// A message that requires itself has no value at all.
    fn check_required(&self, sources: &Sources) -> Result<(), ProtoError> {
        let messages: Vec<&MessageDescriptor> = self.messages.values().collect();
        let index: BTreeMap<&str, usize> = self.messages.keys().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let requires = |field: &FieldDescriptor| {
            let is_required = sources.features.is_required(field) && !field.is_list();
            target(field).filter(|_| is_required).and_then(|message| index.get(message.full_name()).copied())
        };
        let edges: Vec<Vec<usize>> =
            messages.iter().map(|message| message.fields().filter_map(|field| requires(&field)).collect()).collect();
        let Some(circle) = circles(&edges).into_iter().next() else { return Ok(()) };
        let is_in_it = |field: &FieldDescriptor| requires(field).is_some_and(|at| circle.contains(&at));
        let Some(field) = messages[circle[0]].fields().find(is_in_it) else { return Ok(()) };
        let words =
            format!("required field `{}`: its message requires itself, so that it has no value without end", field.full_name());
        Err(sources.unsupported(field.parent_file().name(), field.path(), words))
    }
}

/// What a map's entries have as their values.
fn map_value(field: &FieldDescriptor) -> Option<Kind> {
    match field.kind() {
        Kind::Message(entry) => Some(entry.map_entry_value_field().kind()),
        _ => None,
    }
}

fn check_message(message: &MessageDescriptor, sources: &Sources) -> Result<(), ProtoError> {
    /// The field `extension_range` of `DescriptorProto`.
    const EXTENSION_RANGE: i32 = 5;
    let (file, name) = (message.parent_file(), message.full_name());
    let file = file.name();
    name_fits(message.name(), sources, file, message.path())?;
    let options = message.descriptor_proto().options.as_ref();
    if options.is_some_and(|options| options.message_set_wire_format()) {
        let words = format!("message `{name}`: `message_set_wire_format` has no image in WIT");
        return Err(sources.unsupported(file, message.path(), words));
    }
    if message.extension_ranges().next().is_some() {
        let path = [message.path(), &[EXTENSION_RANGE, 0]].concat();
        let words = format!("message `{name}`: a message with extensions has no image in WIT");
        return Err(sources.unsupported(file, &path, words));
    }
    count_fits(message.fields().len(), &format!("message `{name}`"), "fields", sources, file, message.path())?;
    for oneof in message.oneofs() {
        name_fits(oneof.name(), sources, file, oneof.path())?;
    }
    for field in message.fields() {
        name_fits(field.name(), sources, file, field.path())?;
        if sources.features.is_group(&field) {
            let words =
                format!("group `{}`: groups have no image in WIT; make it a message and a field of that type", field.full_name());
            return Err(sources.unsupported(file, field.path(), words));
        }
    }
    Ok(())
}

fn name_fits(name: &str, sources: &Sources, file: &str, path: &[i32]) -> Result<(), ProtoError> {
    if name.len() <= NAME_MAX_BYTES {
        return Ok(());
    }
    let start: String = name.chars().take(40).collect();
    let words = format!("the name `{start}..` has {} bytes; at most {NAME_MAX_BYTES} are allowed", name.len());
    Err(sources.unsupported(file, path, words))
}

fn count_fits(count: usize, whose: &str, what: &str, sources: &Sources, file: &str, path: &[i32]) -> Result<(), ProtoError> {
    if count <= MEMBERS_MAX {
        return Ok(());
    }
    Err(sources.unsupported(file, path, format!("{whose} has {count} {what}; a type of WIT has at most {MEMBERS_MAX}")))
}
