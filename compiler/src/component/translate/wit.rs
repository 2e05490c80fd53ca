//! Types in WIT: how they are compared with what the server calls, and what people are told of them.

use awsm_abi::component as abi;
use wasmtime_environ::component::{InterfaceType, TypeFunc, TypeResourceTableIndex};

use super::Builder;

/// Bytes of a type's text. A type may be much longer; then it is none of those that are known.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// The same of a type that people are told.
const TOLD_BYTES_MAX: usize = 400;

/// `error-code` of `wasi:http/types`, which has no name where it is used.
const ERROR_CODE: &str = "variant { DNS-timeout, DNS-error(record { rcode: option<string>, info-code: option<u16> }), \
     destination-not-found, destination-unavailable, destination-IP-prohibited, destination-IP-unroutable, connection-refused, \
     connection-terminated, connection-timeout, connection-read-timeout, connection-write-timeout, connection-limit-reached, \
     TLS-protocol-error, TLS-certificate-error, \
     TLS-alert-received(record { alert-id: option<u8>, alert-message: option<string> }), HTTP-request-denied, \
     HTTP-request-length-required, HTTP-request-body-size(option<u64>), HTTP-request-method-invalid, HTTP-request-URI-invalid, \
     HTTP-request-URI-too-long, HTTP-request-header-section-size(option<u32>), \
     HTTP-request-header-size(option<record { field-name: option<string>, field-size: option<u32> }>), \
     HTTP-request-trailer-section-size(option<u32>), \
     HTTP-request-trailer-size(record { field-name: option<string>, field-size: option<u32> }), HTTP-response-incomplete, \
     HTTP-response-header-section-size(option<u32>), \
     HTTP-response-header-size(record { field-name: option<string>, field-size: option<u32> }), HTTP-response-body-size(option<u64>), \
     HTTP-response-trailer-section-size(option<u32>), \
     HTTP-response-trailer-size(record { field-name: option<string>, field-size: option<u32> }), \
     HTTP-response-transfer-coding(option<string>), HTTP-response-content-coding(option<string>), HTTP-response-timeout, \
     HTTP-upgrade-failed, HTTP-protocol-error, loop-detected, configuration-error, internal-error(option<string>) }";

/// Text of a type, as far as there is room for it.
struct Text<'b, 'a> {
    builder: &'b Builder<'a>,
    text: String,
    /// Whether there was more.
    is_cut: bool,
}

impl Builder<'_> {
    /// A function's type without the names of its parameters: `async func(own<wasi:http/types@0.3/request>) -> result`.
    pub(super) fn function_wit(&self, ty: &TypeFunc) -> String {
        let mut text = Text { builder: self, text: String::new(), is_cut: false };
        text.put(if ty.async_ { "async func(" } else { "func(" });
        text.all(self.types[ty.params].types.iter(), |text, ty| text.ty(ty));
        text.put(")");
        // There is one at most.
        for result in &self.types[ty.results].types {
            text.put(" -> ");
            text.ty(result);
        }
        if text.is_cut {
            text.text.push_str("...");
        }
        text.text
    }
}

/// As much of a type as people are told.
pub(super) fn told(text: &str) -> String {
    let cut = &text[..text.floor_char_boundary(TOLD_BYTES_MAX)];
    format!("{cut}{}", if cut.len() < text.len() { "..." } else { "" })
}

impl Text<'_, '_> {
    fn put(&mut self, text: &str) {
        self.is_cut |= self.text.len() + text.len() > TEXT_BYTES_MAX;
        if !self.is_cut {
            self.text.push_str(text);
        }
    }

    /// Things with commas between them.
    fn all<T>(&mut self, things: impl Iterator<Item = T>, mut each: impl FnMut(&mut Self, T)) {
        for (index, thing) in things.enumerate() {
            if self.is_cut {
                return;
            }
            if index > 0 {
                self.put(", ");
            }
            each(self, thing);
        }
    }

    fn wrapped(&mut self, name: &str, ty: &InterfaceType) {
        self.put(name);
        self.put("<");
        self.ty(ty);
        self.put(">");
    }

    /// Names of cases or flags.
    fn names<'n>(&mut self, what: &str, names: impl Iterator<Item = &'n String>) {
        self.put(what);
        self.put(" { ");
        self.all(names, |text, name| text.put(name));
        self.put(" }");
    }

    fn ty(&mut self, ty: &InterfaceType) {
        let types = self.builder.types;
        match *ty {
            InterfaceType::Bool => self.put("bool"),
            InterfaceType::S8 => self.put("s8"),
            InterfaceType::U8 => self.put("u8"),
            InterfaceType::S16 => self.put("s16"),
            InterfaceType::U16 => self.put("u16"),
            InterfaceType::S32 => self.put("s32"),
            InterfaceType::U32 => self.put("u32"),
            InterfaceType::S64 => self.put("s64"),
            InterfaceType::U64 => self.put("u64"),
            InterfaceType::Float32 => self.put("f32"),
            InterfaceType::Float64 => self.put("f64"),
            InterfaceType::Char => self.put("char"),
            InterfaceType::String => self.put("string"),
            InterfaceType::ErrorContext(_) => self.put("error-context"),
            InterfaceType::Record(index) => {
                self.put("record { ");
                self.all(types[index].fields.iter(), |text, field| {
                    text.put(&field.name);
                    text.put(": ");
                    text.ty(&field.ty);
                });
                self.put(" }");
            }
            InterfaceType::Variant(index) => {
                let start = self.text.len();
                self.put("variant { ");
                self.all(types[index].cases.iter(), |text, (name, ty)| {
                    text.put(name);
                    if let Some(ty) = ty {
                        text.put("(");
                        text.ty(ty);
                        text.put(")");
                    }
                });
                self.put(" }");
                if !self.is_cut && self.text[start..].eq_ignore_ascii_case(ERROR_CODE) {
                    self.text.truncate(start);
                    self.put("error-code");
                }
            }
            InterfaceType::List(index) => self.wrapped("list", &types[index].element),
            InterfaceType::FixedLengthList(index) => {
                self.put("list<");
                self.ty(&types[index].element);
                self.put(&format!(", {}>", types[index].size));
            }
            InterfaceType::Map(index) => {
                self.put("map<");
                self.ty(&types[index].key);
                self.put(", ");
                self.ty(&types[index].value);
                self.put(">");
            }
            InterfaceType::Tuple(index) => {
                self.put("tuple<");
                self.all(types[index].types.iter(), |text, ty| text.ty(ty));
                self.put(">");
            }
            InterfaceType::Flags(index) => self.names("flags", types[index].names.iter()),
            InterfaceType::Enum(index) => self.names("enum", types[index].names.iter()),
            InterfaceType::Option(index) => self.wrapped("option", &types[index].ty),
            InterfaceType::Result(index) => match (&types[index].ok, &types[index].err) {
                (None, None) => self.put("result"),
                (Some(ok), None) => self.wrapped("result", ok),
                (ok, Some(err)) => {
                    self.put("result<");
                    match ok {
                        Some(ok) => self.ty(ok),
                        None => self.put("_"),
                    }
                    self.put(", ");
                    self.ty(err);
                    self.put(">");
                }
            },
            InterfaceType::Own(index) => self.handle("own", index),
            InterfaceType::Borrow(index) => self.handle("borrow", index),
            InterfaceType::Future(index) => self.end("future", types[types[index].ty].payload.as_ref()),
            InterfaceType::Stream(index) => self.end("stream", types[types[index].ty].payload.as_ref()),
        }
    }

    fn end(&mut self, what: &str, payload: Option<&InterfaceType>) {
        match payload {
            None => self.put(what),
            Some(ty) => self.wrapped(what, ty),
        }
    }

    /// A handle: of which resource of the host it is, if it is one of the host's.
    fn handle(&mut self, what: &str, index: TypeResourceTableIndex) {
        let number = self.builder.row(index).resource;
        let known = number.checked_sub(1).and_then(|place| abi::RESOURCES.get(place as usize));
        let resource = match known {
            Some((interface, name)) => format!("{interface}/{name}"),
            None => "a resource that the host does not have".to_owned(),
        };
        self.put(&format!("{what}<{resource}>"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_type_is_told_in_part() {
        assert_eq!(told("func()"), "func()");
        assert_eq!(told(&"é".repeat(TOLD_BYTES_MAX)).len(), TOLD_BYTES_MAX + 3);
    }
}
