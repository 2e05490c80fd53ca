//! The descriptor of a file of an edition, as one of proto2, which prost-reflect takes: of these it asks least.
//!
//! What is left out: features of languages (`features.(pb.go).api_level`) with the files that define them. They say how code is generated, and neither
//! protox's copy of descriptor.proto nor most folders of imports have what they need.

use protox::prost_reflect::prost_types::field_descriptor_proto::Type;
use protox::prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FieldOptions, FileDescriptorProto, UninterpretedOption,
};

use super::scan::{DEFAULT, NEGATIVE};

/// What files import for features of languages.
const LANGUAGES: [&str; 3] =
    ["google/protobuf/cpp_features.proto", "google/protobuf/go_features.proto", "google/protobuf/java_features.proto"];

/// Fields of descriptors (descriptor.proto): those of files, and those of messages.
const DEPENDENCY: i32 = 3;
const MESSAGES: i32 = 4;
const EXTENSIONS: i32 = 7;
const FIELDS: i32 = 2;
const INNER_MESSAGES: i32 = 3;
const INNER_EXTENSIONS: i32 = 6;

/// An import, and where it stands.
pub(super) type Import = (String, Option<(u32, u32)>);

/// A file for prost-reflect.
pub(super) struct Lowered {
    pub file: FileDescriptorProto,
    pub imports: Vec<Import>,
    /// The fields, by their paths, whose default is no value of their type.
    pub wrong_defaults: Vec<Vec<i32>>,
}

/// Makes it one.
pub(super) fn lowered(mut file: FileDescriptorProto) -> Lowered {
    let mut wrong_defaults = Vec::new();
    file.syntax = None;
    let imports = without_languages(&mut file);
    if let Some(options) = &mut file.options {
        keep(&mut options.uninterpreted_option);
    }
    let mut wrong = |path: Vec<i32>| wrong_defaults.push(path);
    for (index, one) in (0..).zip(&mut file.message_type) {
        message(one, &[MESSAGES, index], &mut wrong);
    }
    file.enum_type.iter_mut().for_each(one_of_numbers);
    fields(&mut file.extension, &[EXTENSIONS], &mut wrong);
    for service in &mut file.service {
        if let Some(options) = &mut service.options {
            keep(&mut options.uninterpreted_option);
        }
        for options in service.method.iter_mut().filter_map(|method| method.options.as_mut()) {
            keep(&mut options.uninterpreted_option);
        }
    }
    Lowered { file, imports, wrong_defaults }
}

/// Line and column, from 1, of what has that path.
pub(super) fn position(file: &FileDescriptorProto, path: &[i32]) -> Option<(u32, u32)> {
    let mut places = file.source_code_info.iter().flat_map(|info| &info.location);
    let place = places.find(|place| place.path == path)?;
    let number = |at: usize| u32::try_from(*place.span.get(at)?).ok().map(|number| number + 1);
    Some((number(0)?, number(1)?))
}

/// Takes the files of languages out of the imports; the others.
fn without_languages(file: &mut FileDescriptorProto) -> Vec<Import> {
    let place = |index: i32| position(file, &[DEPENDENCY, index]);
    let is_kept = |name: &str| !LANGUAGES.contains(&name);
    let kept = (0_i32..).zip(&file.dependency).filter(|(_, name)| is_kept(name));
    let (indices, imports): (Vec<i32>, Vec<Import>) = kept.map(|(index, name)| (index, (name.clone(), place(index)))).unzip();
    let renumbered = |old: &[i32]| {
        let new = |old: &i32| indices.iter().position(|index| index == old).and_then(|new| i32::try_from(new).ok());
        old.iter().filter_map(new).collect()
    };
    (file.public_dependency, file.weak_dependency) = (renumbered(&file.public_dependency), renumbered(&file.weak_dependency));
    file.dependency.retain(|name| is_kept(name));
    imports
}

fn message(one: &mut DescriptorProto, path: &[i32], wrong: &mut impl FnMut(Vec<i32>)) {
    if let Some(options) = &mut one.options {
        keep(&mut options.uninterpreted_option);
    }
    fields(&mut one.field, &[path, &[FIELDS]].concat(), wrong);
    fields(&mut one.extension, &[path, &[INNER_EXTENSIONS]].concat(), wrong);
    for (index, inner) in (0..).zip(&mut one.nested_type) {
        message(inner, &[path, &[INNER_MESSAGES, index]].concat(), &mut *wrong);
    }
    one.enum_type.iter_mut().for_each(one_of_numbers);
    for options in one.oneof_decl.iter_mut().filter_map(|oneof| oneof.options.as_mut()) {
        keep(&mut options.uninterpreted_option);
    }
    for options in one.extension_range.iter_mut().filter_map(|range| range.options.as_mut()) {
        keep(&mut options.uninterpreted_option);
    }
}

fn one_of_numbers(one: &mut EnumDescriptorProto) {
    if let Some(options) = &mut one.options {
        keep(&mut options.uninterpreted_option);
    }
    for options in one.value.iter_mut().filter_map(|value| value.options.as_mut()) {
        keep(&mut options.uninterpreted_option);
    }
}

fn fields(fields: &mut [FieldDescriptorProto], path: &[i32], wrong: &mut impl FnMut(Vec<i32>)) {
    for (index, field) in (0..).zip(fields) {
        let Some(options) = &mut field.options else { continue };
        let options = &mut options.uninterpreted_option;
        keep(options);
        let is = |option: &UninterpretedOption, name: &str| matches!(&option.name[..], [part] if part.name_part == name && !part.is_extension);
        let Some(at) = options.iter().position(|option| is(option, DEFAULT) || is(option, NEGATIVE)) else { continue };
        let option = options.remove(at);
        let ty = field.r#type.and_then(|ty| Type::try_from(ty).ok());
        field.default_value = default_value(&option, ty, is(&option, NEGATIVE));
        field.options.take_if(|options| *options == FieldOptions::default());
        if field.default_value.is_none() {
            wrong([path, &[index]].concat());
        }
    }
}

/// A default as descriptors have it (`default_value` in descriptor.proto); none where it is none of that type.
fn default_value(option: &UninterpretedOption, ty: Option<Type>, is_negative: bool) -> Option<String> {
    let integer = || {
        let positive = option.positive_int_value.map(i128::from);
        positive.or_else(|| option.negative_int_value.map(i128::from))
    };
    let within = |min: i128, max: i128| integer().filter(|value| (min..=max).contains(value)).map(|value| value.to_string());
    let identifier = option.identifier_value.clone();
    match ty {
        // An enum, or a message, which has none.
        None | Some(Type::Enum | Type::Message | Type::Group) => identifier.filter(|_| !is_negative),
        Some(Type::Bool) => identifier.filter(|word| !is_negative && matches!(&**word, "true" | "false")),
        Some(Type::Double | Type::Float) => match identifier.as_deref() {
            Some("inf") if is_negative => Some("-inf".to_owned()),
            Some("inf") => Some("inf".to_owned()),
            Some("nan") => Some("nan".to_owned()),
            Some(_) => None,
            None => option.double_value.map(|value| value.to_string()).or_else(|| integer().map(|value| value.to_string())),
        },
        Some(Type::Int32 | Type::Sint32 | Type::Sfixed32) => within(i32::MIN.into(), i32::MAX.into()),
        Some(Type::Int64 | Type::Sint64 | Type::Sfixed64) => within(i64::MIN.into(), i64::MAX.into()),
        Some(Type::Uint32 | Type::Fixed32) => within(0, u32::MAX.into()),
        Some(Type::Uint64 | Type::Fixed64) => within(0, u64::MAX.into()),
        Some(Type::String) => option.string_value.clone().and_then(|bytes| String::from_utf8(bytes).ok()),
        Some(Type::Bytes) => option.string_value.as_deref().map(escaped),
    }
}

/// Bytes as descriptors have them: what is not printable ASCII in C's escapes.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b'"' | b'\'' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text
}

/// Leaves features of languages out.
fn keep(options: &mut Vec<UninterpretedOption>) {
    options.retain(|option| {
        let is_of_language =
            matches!(&option.name[..], [first, second, ..] if first.name_part == "features" && !first.is_extension && second.is_extension);
        !is_of_language
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(identifier: Option<&str>, number: Option<u64>, text: Option<&[u8]>) -> UninterpretedOption {
        UninterpretedOption {
            identifier_value: identifier.map(str::to_owned),
            positive_int_value: number,
            string_value: text.map(<[u8]>::to_vec),
            ..UninterpretedOption::default()
        }
    }

    #[test]
    fn defaults_are_as_descriptors_have_them() {
        let value = |option: &UninterpretedOption, ty, is_negative| default_value(option, ty, is_negative);
        let (inf, seven) = (option(Some("inf"), None, None), option(None, Some(7), None));
        assert_eq!(value(&inf, Some(Type::Float), true).as_deref(), Some("-inf"));
        assert_eq!(value(&inf, Some(Type::Double), false).as_deref(), Some("inf"));
        assert_eq!(value(&inf, Some(Type::Int32), false), None);
        assert_eq!(value(&seven, Some(Type::Sint64), false).as_deref(), Some("7"));
        assert_eq!(value(&seven, Some(Type::Double), false).as_deref(), Some("7"));
        assert_eq!(value(&seven, Some(Type::Bool), false), None);
        assert_eq!(value(&option(None, Some(1 << 31), None), Some(Type::Int32), false), None);
        assert_eq!(value(&option(Some("true"), None, None), Some(Type::Bool), false).as_deref(), Some("true"));
        assert_eq!(value(&option(Some("RED"), None, None), None, false).as_deref(), Some("RED"));
        let bytes = option(None, None, Some(b"a\0\"\n\xff"));
        assert_eq!(value(&bytes, Some(Type::Bytes), false).as_deref(), Some("a\\000\\\"\\n\\377"));
        assert_eq!(value(&bytes, Some(Type::String), false), None, "it is not UTF-8");
    }
}
