//! Servers that programs ask: each endpoint says what it answers. One request for each connection.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde::Deserialize;

/// A server.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ServerSpec {
    pub(crate) name: String,
    /// `closed` for one that does not listen.
    kind: Option<String>,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug, Deserialize)]
struct Endpoint {
    method: String,
    path: String,
    /// `echo-body` or `echo-headers`, else what `response` says.
    mode: Option<String>,
    #[serde(default)]
    response: Answer,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
    /// In place of the body.
    chunks: Option<Vec<String>>,
    trailers: BTreeMap<String, String>,
}

/// A request, read to its end.
#[derive(Debug, Default)]
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    trailers: Vec<(String, String)>,
}

/// Starts a server; its address.
pub(crate) fn start(spec: &ServerSpec) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("an address");
    let address = listener.local_addr().expect("an address");
    if spec.kind.as_deref() == Some("closed") {
        return address;
    }
    let endpoints: Arc<[Endpoint]> = spec.endpoints.clone().into();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let endpoints = Arc::clone(&endpoints);
            // A program may go away at any time.
            thread::spawn(move || serve(stream, &endpoints));
        }
    });
    address
}

fn serve(mut stream: TcpStream, endpoints: &[Endpoint]) -> Option<()> {
    let request = read_request(&mut BufReader::new(stream.try_clone().ok()?))?;
    let found = endpoints.iter().find(|endpoint| endpoint.method == request.method && endpoint.path == request.path);
    let is_head = request.method == "HEAD";
    let answer = match found {
        None => whole(404, &[], b"", is_head),
        Some(endpoint) => match endpoint.mode.as_deref() {
            Some("echo-body") => whole(200, &[], &request.body, is_head),
            Some("echo-headers") => whole(200, &echoed(&request), b"", is_head),
            _ => answered(&endpoint.response, is_head),
        },
    };
    stream.write_all(&answer).ok()
}

/// The line and the headers of a request, as headers.
fn echoed(request: &Request) -> Vec<(String, String)> {
    let line = [("x-request-method".to_owned(), request.method.clone()), ("x-request-path".to_owned(), request.path.clone())];
    let headers = request.headers.iter().map(|(name, value)| (format!("x-echo-{name}"), value.clone()));
    let trailers = request.trailers.iter().map(|(name, value)| (format!("x-trailer-{name}"), value.clone()));
    line.into_iter().chain(headers).chain(trailers).collect()
}

fn head(status: u16, headers: &[(String, String)]) -> String {
    let mut head = format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n");
    for (name, value) in headers {
        // A string takes everything.
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head
}

fn whole(status: u16, headers: &[(String, String)], body: &[u8], is_head: bool) -> Vec<u8> {
    let mut bytes = format!("{}content-length: {}\r\n\r\n", head(status, headers), body.len()).into_bytes();
    if !is_head {
        bytes.extend(body);
    }
    bytes
}

fn answered(answer: &Answer, is_head: bool) -> Vec<u8> {
    let mut headers: Vec<_> = answer.headers.clone().into_iter().collect();
    let Some(chunks) = &answer.chunks else { return whole(answer.status, &headers, answer.body.as_bytes(), is_head) };
    headers.push(("transfer-encoding".to_owned(), "chunked".to_owned()));
    if !answer.trailers.is_empty() {
        headers.push(("trailer".to_owned(), answer.trailers.keys().cloned().collect::<Vec<_>>().join(", ")));
    }
    let mut text = format!("{}\r\n", head(answer.status, &headers));
    for chunk in chunks {
        let _ = write!(text, "{:x}\r\n{chunk}\r\n", chunk.len());
    }
    text.push_str("0\r\n");
    for (name, value) in &answer.trailers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

fn line(stream: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
    Some(line.trim_end().to_owned())
}

/// Lines `name: value` up to an empty one.
fn fields(stream: &mut impl BufRead) -> Option<Vec<(String, String)>> {
    let mut fields = Vec::new();
    loop {
        let line = line(stream)?;
        let Some((name, value)) = line.split_once(':') else { return Some(fields) };
        fields.push((name.trim().to_lowercase(), value.trim().to_owned()));
    }
}

fn read_request(stream: &mut impl BufRead) -> Option<Request> {
    let first = line(stream)?;
    let mut words = first.split(' ');
    let mut request = Request { method: words.next()?.to_owned(), path: words.next()?.to_owned(), ..Request::default() };
    request.headers = fields(stream)?;
    let header = |name: &str| request.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str());
    if header("transfer-encoding").is_some() {
        loop {
            let length = usize::from_str_radix(line(stream)?.split(';').next()?, 16).ok()?;
            if length == 0 {
                break;
            }
            let mut chunk = vec![0; length];
            stream.read_exact(&mut chunk).ok()?;
            request.body.extend(chunk);
            line(stream)?;
        }
        request.trailers = fields(stream)?;
    } else if let Some(length) = header("content-length").and_then(|length| length.parse().ok()) {
        request.body = vec![0; length];
        stream.read_exact(&mut request.body).ok()?;
    }
    Some(request)
}
