//! Services: an interface for each, a function for each method.
//!
//! ```text
//! unary             async func(request: Q, context: request-context) -> result<tuple<R, response-metadata>, status>
//! client stream     async func(requests: stream<Q>, context: ..)     -> result<tuple<R, response-metadata>, status>
//! server stream     async func(request: Q, context: ..)  -> result<tuple<metadata, stream<R>, future<result<metadata, status>>>, status>
//! both              async func(requests: stream<Q>, context: ..) -> the same
//! ```
//!
//! A stream of answers comes with the headers before it, and with a future that ends it: the trailers, or why it failed.

use protox::prost_reflect::prost_types::method_options::IdempotencyLevel;
use protox::prost_reflect::{MethodDescriptor, ServiceDescriptor};

use super::catalog::Catalog;
use super::messages::DEPRECATED;
use super::names::{Scope, written};
use super::sources::Sources;
use super::uses::{Uses, members};
use super::write::Text;

/// Writes the interface of a service.
pub(super) fn write(catalog: &Catalog, sources: &Sources, service: &ServiceDescriptor, text: &mut Text) {
    let methods: Vec<MethodDescriptor> = service.methods().collect();
    let mut scope = Scope::default();
    let names = members(methods.iter().map(MethodDescriptor::name), &mut scope);
    let mut uses = Uses::in_service(catalog, service.package_name(), scope);
    let mut functions = Text::default();
    for (method, (name, note)) in methods.iter().zip(names) {
        let mut docs = vec![format!("`/{}/{}`", service.full_name(), method.name())];
        docs.extend(method_words(sources, method));
        docs.extend(note);
        functions.gap();
        functions.docs(&docs);
        functions.line(&format!("{}: {};", written(&name), signature(method, &mut uses)));
    }
    let mut docs = vec![format!("Service `{}`.", service.full_name())];
    docs.extend(sources.comments(service.parent_file().name(), service.path()));
    let options = service.service_descriptor_proto().options.as_ref();
    docs.extend(options.is_some_and(|options| options.deprecated()).then(|| DEPRECATED.to_owned()));
    text.gap();
    text.docs(&docs);
    text.open(&format!("interface {}", written(catalog.service(service.full_name()))));
    uses.write(text);
    text.gap();
    text.insert(&functions.finish());
    text.close();
}

fn method_words(sources: &Sources, method: &MethodDescriptor) -> Vec<String> {
    let mut docs = sources.comments(method.parent_file().name(), method.path());
    let Some(options) = &method.method_descriptor_proto().options else { return docs };
    match options.idempotency_level() {
        IdempotencyLevel::IdempotencyUnknown => {}
        IdempotencyLevel::NoSideEffects => docs.push("It has no side effects.".to_owned()),
        IdempotencyLevel::Idempotent => docs.push("It is idempotent.".to_owned()),
    }
    docs.extend(options.deprecated().then(|| DEPRECATED.to_owned()));
    docs
}

fn signature(method: &MethodDescriptor, uses: &mut Uses<'_>) -> String {
    let (input, output) = (uses.name(method.input().full_name()), uses.name(method.output().full_name()));
    let request = if method.is_client_streaming() { format!("requests: stream<{input}>") } else { format!("request: {input}") };
    let (context, status) = (uses.grpc("request-context"), uses.grpc("status"));
    let answer = if method.is_server_streaming() {
        let metadata = uses.grpc("metadata");
        format!("{metadata}, stream<{output}>, future<result<{metadata}, {status}>>")
    } else {
        format!("{output}, {}", uses.grpc("response-metadata"))
    };
    format!("async func({request}, context: {context}) -> result<tuple<{answer}>, {status}>")
}
