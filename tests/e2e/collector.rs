//! A collector of spans: OTLP over HTTP/1.1, as much of it as an exporter sees.

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span as OtlpSpan;
use prost::Message as _;
use sledge_tests::http::TIME_MAX;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

/// A span, easier to look at.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty where there is none.
    pub(crate) parent: String,
    pub(crate) state: String,
    pub(crate) name: String,
    pub(crate) kind: i32,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    /// Values as text.
    pub(crate) attributes: BTreeMap<String, String>,
    /// What went wrong, if its status is that of an error.
    pub(crate) error: Option<String>,
    /// The attributes of the sender.
    pub(crate) resource: BTreeMap<String, String>,
}

impl Span {
    /// An attribute; empty where there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

/// What a collector does with a request.
pub(crate) enum Conduct {
    /// Takes all of it.
    Take,
    /// Takes it, but for so many spans.
    Reject(i64),
    /// Sends these bytes, and takes nothing.
    Answer(&'static str),
    /// Neither takes it nor answers.
    Ignore,
}

#[derive(Debug, Default)]
struct Taken {
    spans: Vec<Span>,
    /// The heads of all requests, in small letters.
    heads: Vec<String>,
}

/// A running collector.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    taken: Arc<(Mutex<Taken>, Condvar)>,
}

impl Collector {
    /// One that takes everything.
    pub(crate) fn start() -> Collector {
        Collector::with(|_| Conduct::Take)
    }

    /// One that does what `conduct` says with each request, by its number from 0.
    pub(crate) fn with(conduct: impl Fn(usize) -> Conduct + Send + Sync + 'static) -> Collector {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
        let address = listener.local_addr().expect("an address");
        let taken = Arc::new((Mutex::default(), Condvar::new()));
        let (shared, conduct) = (Arc::clone(&taken), Arc::new(conduct));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, conduct) = (Arc::clone(&shared), Arc::clone(&conduct));
                thread::spawn(move || serve(&stream, &shared, &*conduct));
            }
        });
        Collector { address, taken }
    }

    /// The spans that it has, once they are as `enough` wants.
    #[track_caller]
    pub(crate) fn wait_for(&self, enough: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let end = Instant::now() + TIME_MAX;
        let mut taken = self.taken.0.lock().expect("no panic");
        while !enough(&taken.spans) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not those: {:#?}", taken.spans);
            taken = self.taken.1.wait_timeout(taken, left).expect("no panic").0;
        }
        taken.spans.clone()
    }

    /// The first span of that name of a trace, and all of the trace, once it is there.
    #[track_caller]
    pub(crate) fn span(&self, trace: &str, name: &str) -> (Span, Vec<Span>) {
        let is_it = |span: &&Span| span.trace == trace && span.name == name;
        let spans = self.wait_for(|spans| spans.iter().any(|span| is_it(&span)));
        let span = spans.iter().find(is_it).expect("it is there").clone();
        (span, spans.into_iter().filter(|span| span.trace == trace).collect())
    }

    /// What it has so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.wait_for(|_| true)
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.taken.0.lock().expect("no panic").heads.clone()
    }
}

fn serve(stream: &TcpStream, (taken, more): &(Mutex<Taken>, Condvar), conduct: &impl Fn(usize) -> Conduct) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read_request(&mut reader) {
        let number = {
            let mut taken = taken.lock().expect("no panic");
            taken.heads.push(head);
            taken.heads.len() - 1
        };
        let rejected = match conduct(number) {
            Conduct::Take => 0,
            Conduct::Reject(count) => count,
            Conduct::Answer(bytes) => {
                let _ = (&*stream).write_all(bytes.as_bytes());
                continue;
            }
            Conduct::Ignore => continue,
        };
        let request = ExportTraceServiceRequest::decode(&body[..]).expect("spans");
        let partial = ExportTracePartialSuccess { rejected_spans: rejected, error_message: "too many".to_owned() };
        let answer = ExportTraceServiceResponse { partial_success: (rejected > 0).then_some(partial) }.encode_to_vec();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n", answer.len());
        taken.lock().expect("no panic").spans.extend(decode(request));
        more.notify_all();
        let _ = (&*stream).write_all(&[head.as_bytes(), &answer].concat());
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        line.make_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        head.push_str(&line);
        if line == "\r\n" {
            let mut body = vec![0; length];
            return reader.read_exact(&mut body).ok().map(|()| (head, body));
        }
    }
}

fn decode(request: ExportTraceServiceRequest) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_resource in request.resource_spans {
        let resource = attributes(&of_resource.resource.expect("a resource").attributes);
        for of_scope in of_resource.scope_spans {
            assert_eq!(of_scope.scope.expect("a scope").name, "sledge");
            spans.extend(of_scope.spans.into_iter().map(|span| readable(span, &resource)));
        }
    }
    spans
}

fn readable(span: OtlpSpan, resource: &BTreeMap<String, String>) -> Span {
    assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8), "{span:?}");
    let status = span.status.unwrap_or_default();
    // STATUS_CODE_UNSET and STATUS_CODE_ERROR.
    assert!([0, 2].contains(&status.code), "{status:?}");
    Span {
        trace: hexadecimal(&span.trace_id),
        id: hexadecimal(&span.span_id),
        parent: hexadecimal(&span.parent_span_id),
        state: span.trace_state,
        name: span.name,
        kind: span.kind,
        begin_ns: span.start_time_unix_nano,
        end_ns: span.end_time_unix_nano,
        attributes: attributes(&span.attributes),
        error: (status.code == 2).then_some(status.message),
        resource: resource.clone(),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(all: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    };
    all.iter().map(|attribute| (attribute.key.clone(), text(attribute))).collect()
}
