//! What features say of fields and enums, in files of an edition and in others (descriptor.proto, `FeatureSet`; protobuf.dev, "Feature settings for editions").
//!
//! A feature that a field or an enum does not set is its file's, or else the edition's: messages and oneofs, which could stand between them, can set
//! `json_format` alone (`targets` in descriptor.proto).

use std::collections::HashSet;

use protox::prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, FileDescriptor, Kind, ReflectMessage as _,
    Syntax, Value,
};

use super::super::error::ProtoError;
use super::super::sources::Sources;

/// A feature: its name, and its number in edition 2023 where nothing sets it.
#[derive(Clone, Copy)]
struct Feature {
    name: &'static str,
    default: i32,
}

const PRESENCE: Feature = Feature { name: "field_presence", default: 1 };
const IMPLICIT: i32 = 2;
const LEGACY_REQUIRED: i32 = 3;
const ENUM_TYPE: Feature = Feature { name: "enum_type", default: 1 };
const CLOSED: i32 = 2;
const REPEATED_ENCODING: Feature = Feature { name: "repeated_field_encoding", default: 1 };
const PACKED: i32 = 1;
const UTF8_VALIDATION: Feature = Feature { name: "utf8_validation", default: 2 };
/// `NONE`, as prost-reflect's copy of descriptor.proto has it, and as it was released.
const UTF8_NONE: [i32; 2] = [1, 3];
const MESSAGE_ENCODING: Feature = Feature { name: "message_encoding", default: 1 };
const DELIMITED: i32 = 2;
const JSON_FORMAT: Feature = Feature { name: "json_format", default: 1 };
const FEATURES: [Feature; 6] = [PRESENCE, ENUM_TYPE, REPEATED_ENCODING, UTF8_VALIDATION, MESSAGE_ENCODING, JSON_FORMAT];

/// Which files are of an edition. In the others, proto2 and proto3 say it.
#[derive(Debug, Default)]
pub(in crate::proto) struct Features {
    files: HashSet<String>,
}

impl Features {
    /// Those files are of an edition.
    pub(in crate::proto) const fn of(files: HashSet<String>) -> Features {
        Features { files }
    }

    /// Whether a file is of an edition.
    pub(in crate::proto) fn has_edition(&self, file: &str) -> bool {
        self.files.contains(file)
    }

    /// Whether a field that is not set differs from one that has its default.
    pub(in crate::proto) fn has_presence(&self, field: &FieldDescriptor) -> bool {
        if !self.has_edition(field.parent_file().name()) {
            return field.supports_presence() && !field.is_required();
        }
        let is_single = !field.is_list() && !field.is_map();
        let is_inside = matches!(field.kind(), Kind::Message(_)) || field.containing_oneof().is_some();
        let presence = of_field(field, PRESENCE);
        is_single && presence != LEGACY_REQUIRED && (is_inside || presence != IMPLICIT)
    }

    /// Whether each message has to have it.
    pub(in crate::proto) fn is_required(&self, field: &FieldDescriptor) -> bool {
        if !self.has_edition(field.parent_file().name()) {
            return field.is_required();
        }
        field.cardinality() == Cardinality::Optional && of_field(field, PRESENCE) == LEGACY_REQUIRED
    }

    /// Whether an enum has no other numbers than those that it names.
    pub(in crate::proto) fn is_closed(&self, one: &EnumDescriptor) -> bool {
        let file = one.parent_file();
        if !self.has_edition(file.name()) {
            return file.syntax() == Syntax::Proto2;
        }
        set(&one.options(), ENUM_TYPE).unwrap_or_else(|| of_file(&file, ENUM_TYPE)) == CLOSED
    }

    /// Whether a field is coded as a group.
    pub(in crate::proto) fn is_group(&self, field: &FieldDescriptor) -> bool {
        if !self.has_edition(field.parent_file().name()) {
            return field.is_group();
        }
        matches!(field.kind(), Kind::Message(_)) && !field.is_map() && of_field(field, MESSAGE_ENCODING) == DELIMITED
    }

    /// Says what features may not say, as protoc does.
    pub(in crate::proto) fn check(&self, pool: &DescriptorPool, sources: &Sources) -> Result<(), ProtoError> {
        for file in pool.files().filter(|file| self.has_edition(file.name())) {
            if set(&file.options(), PRESENCE) == Some(LEGACY_REQUIRED) {
                let words = "features.field_presence = LEGACY_REQUIRED is for single fields, not for a file";
                return Err(sources.unsupported(file.name(), &[FILE_OPTIONS], words));
            }
        }
        for message in pool.all_messages().filter(|message| self.has_edition(message.parent_file().name())) {
            check_places(
                &message.options(),
                &[JSON_FORMAT],
                "a message",
                (message.parent_file().name(), message.path()),
                sources,
            )?;
            for oneof in message.oneofs() {
                check_places(&oneof.options(), &[], "a oneof", (message.parent_file().name(), oneof.path()), sources)?;
            }
        }
        for one in pool.all_enums().filter(|one| self.has_edition(one.parent_file().name())) {
            let file = one.parent_file();
            check_places(&one.options(), &[ENUM_TYPE, JSON_FORMAT], "an enum", (file.name(), one.path()), sources)?;
            for value in one.values() {
                check_places(&value.options(), &[], "a value of an enum", (file.name(), value.path()), sources)?;
            }
            let mut values: Vec<_> = one.values().collect();
            values.sort_by(|one, other| one.path().cmp(other.path()));
            if let Some(first) = values.first().filter(|value| value.number() != 0 && !self.is_closed(&one)) {
                let words = format!("the first value of the open enum `{}` is not zero", one.full_name());
                return Err(sources.unsupported(one.parent_file().name(), first.path(), words));
            }
        }
        let messages =
            pool.all_messages().filter(|message| self.has_edition(message.parent_file().name()) && !message.is_map_entry());
        for field in messages.flat_map(|message| message.fields().collect::<Vec<_>>()) {
            if let Some(words) = self.problem(&field) {
                let words = format!("field `{}`: {words}", field.full_name());
                return Err(sources.unsupported(field.parent_file().name(), field.path(), words));
            }
        }
        Ok(())
    }

    /// What is wrong with the features of a field.
    fn problem(&self, field: &FieldDescriptor) -> Option<&'static str> {
        let options = field.options();
        if set(&options, ENUM_TYPE).is_some() || set(&options, JSON_FORMAT).is_some() {
            return Some("features.enum_type and features.json_format are for enums and messages");
        }
        let sets = |feature: Feature| set(&options, feature);
        let is_repeated = field.is_list() || field.is_map();
        let is_message = matches!(field.kind(), Kind::Message(_)) && !field.is_map();
        let is_implicit =
            !is_repeated && !is_message && field.containing_oneof().is_none() && of_field(field, PRESENCE) == IMPLICIT;
        let has_default = field.field_descriptor_proto().default_value.is_some();
        if has_default && (is_repeated || is_message) {
            return Some("repeated fields and messages have no default");
        }
        if has_default && is_implicit {
            return Some("a field with features.field_presence = IMPLICIT has no default of its own");
        }
        if is_implicit && matches!(field.kind(), Kind::Enum(one) if self.is_closed(&one)) {
            return Some("a field with features.field_presence = IMPLICIT cannot be of a closed enum");
        }
        if let Some(presence) = sets(PRESENCE) {
            if is_repeated || field.containing_oneof().is_some() {
                return Some("features.field_presence is for fields that are neither repeated nor in a oneof");
            }
            if is_message && presence == IMPLICIT {
                return Some("a message has presence; features.field_presence = IMPLICIT is for other fields");
            }
        }
        let encoding = sets(REPEATED_ENCODING);
        if encoding.is_some() && !field.is_list() {
            return Some("features.repeated_field_encoding is for repeated fields");
        }
        if encoding == Some(PACKED) && matches!(field.kind(), Kind::Message(_) | Kind::String | Kind::Bytes) {
            return Some("features.repeated_field_encoding = PACKED is for numbers, bool and enums");
        }
        if options.has_field_by_name("packed") {
            return Some("`packed` does not exist in editions; set features.repeated_field_encoding");
        }
        let is_text = |kind: &Kind| *kind == Kind::String;
        let has_text = match field.kind() {
            Kind::Message(entry) if field.is_map() => entry.fields().any(|field| is_text(&field.kind())),
            kind => is_text(&kind),
        };
        if sets(UTF8_VALIDATION).is_some() && !has_text {
            return Some("features.utf8_validation is for strings");
        }
        (sets(MESSAGE_ENCODING).is_some() && !is_message).then_some("features.message_encoding is for messages")
    }
}

/// Whether options set only features that are for what they are options of: those of fields and files are the most, and are checked one by one.
fn check_places(
    options: &DynamicMessage,
    allowed: &[Feature],
    what: &str,
    (file, path): (&str, &[i32]),
    sources: &Sources,
) -> Result<(), ProtoError> {
    let is_allowed = |feature: &Feature| allowed.iter().any(|allowed| allowed.name == feature.name);
    match FEATURES.into_iter().find(|feature| !is_allowed(feature) && set(options, *feature).is_some()) {
        Some(feature) => Err(sources.unsupported(file, path, format!("features.{} cannot be set for {what}", feature.name))),
        None => Ok(()),
    }
}

/// `options` in a file's descriptor.
const FILE_OPTIONS: i32 = 8;

/// A feature of a field: its own, or that of its file. What stands between them cannot set any that fields have.
fn of_field(field: &FieldDescriptor, feature: Feature) -> i32 {
    set(&field.options(), feature).unwrap_or_else(|| of_file(&field.parent_file(), feature))
}

fn of_file(file: &FileDescriptor, feature: Feature) -> i32 {
    set(&file.options(), feature).unwrap_or(feature.default)
}

/// The number of a feature that options set themselves.
fn set(options: &DynamicMessage, feature: Feature) -> Option<i32> {
    let field = options.descriptor().get_field_by_name("features")?;
    if !options.has_field(&field) {
        return None;
    }
    match options.get_field(&field).as_ref() {
        Value::Message(features) if features.has_field_by_name(feature.name) => {
            features.get_field_by_name(feature.name)?.as_enum_number()
        }
        _ => None,
    }
}

/// Gives features in a descriptor the numbers with which they were released.
pub(in crate::proto) fn renumber(message: &mut DynamicMessage) {
    if message.descriptor().full_name() == "google.protobuf.FeatureSet" {
        let [known, released] = UTF8_NONE;
        let is_none = message.get_field_by_name(UTF8_VALIDATION.name).is_some_and(|value| value.as_enum_number() == Some(known));
        if is_none {
            message.set_field_by_name(UTF8_VALIDATION.name, Value::EnumNumber(released));
        }
        return;
    }
    for (_, value) in message.fields_mut() {
        match value {
            Value::Message(inner) => renumber(inner),
            Value::List(values) => values.iter_mut().filter_map(Value::as_message_mut).for_each(renumber),
            _ => {}
        }
    }
}
