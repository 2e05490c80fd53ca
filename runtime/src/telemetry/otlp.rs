//! Spans in the words of OTLP (<https://opentelemetry.io/docs/specs/otlp/>): protocol buffers, as every collector takes them.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as OtlpSpan, Status};
use prost::Message as _;

use super::span::{Kind, Span, Value};

/// What a request to the collector is, and its answer.
pub const CONTENT_TYPE: &str = "application/x-protobuf";
/// The flags of a span that is kept.
const FLAG_SAMPLED: u32 = 1;

/// The service that the spans are from.
#[must_use]
pub fn resource(service_name: &str, more: &BTreeMap<String, String>) -> Resource {
    let own = [
        ("service.name", service_name),
        ("telemetry.sdk.name", "sledge"),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
    ];
    let more = more.iter().map(|(name, text)| attribute(name, &Value::from(text.clone())));
    let own = own.into_iter().map(|(name, text)| attribute(name, &Value::from(text.to_owned())));
    Resource { attributes: own.chain(more).collect(), ..Resource::default() }
}

/// The body of a request with those spans.
#[must_use]
pub fn encode(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    let (name, version) = ("sledge".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let scope = InstrumentationScope { name, version, ..InstrumentationScope::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans: spans.iter().map(span).collect(), ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { resource: Some(resource.clone()), scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

/// Of the spans of a request that was answered so, how many were not taken, and why not.
#[must_use]
pub fn rejected(answer: &[u8]) -> (u64, String) {
    // What cannot be read says nothing.
    let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
    answer.partial_success.map_or((0, String::new()), |part| (part.rejected_spans.max(0).cast_unsigned(), part.error_message))
}

fn span(span: &Span) -> OtlpSpan {
    let kind = match span.kind {
        Kind::Internal => SpanKind::Internal,
        Kind::Server => SpanKind::Server,
        Kind::Client => SpanKind::Client,
    };
    let status = span.error.as_ref().map(|message| Status { message: message.clone(), code: StatusCode::Error.into() });
    OtlpSpan {
        trace_id: span.trace.0.to_vec(),
        span_id: span.id.0.to_vec(),
        trace_state: span.state.as_ref().and_then(|state| state.to_str().ok()).unwrap_or_default().to_owned(),
        parent_span_id: span.parent.map(|parent| parent.0.to_vec()).unwrap_or_default(),
        flags: FLAG_SAMPLED,
        name: span.name.clone().into_owned(),
        kind: kind.into(),
        start_time_unix_nano: span.begin_unix_ns,
        end_time_unix_nano: span.end_unix_ns,
        attributes: span.attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
        status,
        ..OtlpSpan::default()
    }
}

fn attribute(name: &str, value: &Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => any_value::Value::StringValue(text.clone().into_owned()),
        Value::Number(number) => any_value::Value::IntValue(*number),
    };
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
