//! A component that serves HTTP through `wasi:http`, for the end-to-end tests: what it does stands in the query.

use std::fmt::Write as _;
use std::io::Write as _;

use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, HeaderError, IncomingBody, IncomingRequest, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    OutgoingResponse, RequestOptions, ResponseOutparam, Scheme, http_error_code,
};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

wasip2::http::proxy::export!(Function);

struct Function;

impl Guest for Function {
    fn handle(request: IncomingRequest, response: ResponseOutparam) {
        let target = request.path_with_query().unwrap_or_default();
        let query = target.split_once('?').map_or("", |(_, query)| query).to_owned();
        let (verb, rest) = query.split_once(':').unwrap_or((query.as_str(), ""));
        match verb {
            "hello" => whole(response, 200, &[("x-kind", "greeting")], "hello\n"),
            "head" => whole(response, 200, &[], &describe(&request)),
            "status" => whole(response, rest.parse().unwrap(), &[], "said"),
            "echo" => echo(request, response),
            "splice" => splice(request, response),
            "trailers" => trailers(request, response),
            "fill" => fill(response, rest.parse().unwrap()),
            "short" => length(response, 10, "short"),
            "long" => length(response, 3, "long"),
            "exact" => length(response, 5, "exact"),
            "dropped" => dropped(response),
            "none" => {}
            "panic" => panic!("as asked"),
            "error" => ResponseOutparam::set(response, Err(ErrorCode::InternalError(Some("as asked".to_owned())))),
            "gateway" => ResponseOutparam::set(response, Err(ErrorCode::ConnectionRefused)),
            "fields" => whole(response, 200, &[], &fields(&request)),
            "print" => print(response),
            "get" => get(response, rest),
            "proxy" => proxy(request, response, rest),
            _ => whole(response, 404, &[], "unknown"),
        }
    }
}

/// Answers with all of it before the response is set.
fn whole(outparam: ResponseOutparam, status: u16, headers: &[(&str, &str)], text: &str) {
    let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
    let response = OutgoingResponse::new(Fields::from_list(&headers).unwrap());
    if response.set_status_code(status).is_err() {
        return whole(outparam, 500, &[], "refused");
    }
    let body = response.body().unwrap();
    assert!(response.body().is_err(), "there is one body");
    let mut out = body.write().unwrap();
    assert!(body.write().is_err(), "there is one stream");
    out.write_all(text.as_bytes()).unwrap();
    drop(out);
    OutgoingBody::finish(body, None).unwrap();
    ResponseOutparam::set(outparam, Ok(response));
}

/// Sets a response, of which the body is still to be written.
fn begin(outparam: ResponseOutparam, headers: &[(&str, &str)]) -> OutgoingBody {
    let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
    let response = OutgoingResponse::new(Fields::from_list(&headers).unwrap());
    let body = response.body().unwrap();
    ResponseOutparam::set(outparam, Ok(response));
    body
}

fn describe(request: &IncomingRequest) -> String {
    let method = match request.method() {
        Method::Get => "GET".to_owned(),
        Method::Post => "POST".to_owned(),
        Method::Other(method) => format!("other {method}"),
        other => format!("{other:?}"),
    };
    let scheme = match request.scheme() {
        Some(Scheme::Http) => "http",
        Some(Scheme::Https) => "https",
        _ => "none",
    };
    let mut text = format!(
        "{method} {} {scheme} {}\n",
        request.path_with_query().unwrap_or_default(),
        request.authority().unwrap_or_default()
    );
    for (name, value) in request.headers().entries() {
        writeln!(text, "{name}: {}", String::from_utf8_lossy(&value)).unwrap();
    }
    text
}

/// Reads all of a stream, each piece with what is done with it.
fn each(from: &InputStream, mut with: impl FnMut(&[u8])) {
    loop {
        match from.blocking_read(64 << 10) {
            Ok(piece) => with(&piece),
            Err(StreamError::Closed) => return,
            Err(StreamError::LastOperationFailed(error)) => panic!("{:?}", http_error_code(&error)),
        }
    }
}

fn echo(request: IncomingRequest, outparam: ResponseOutparam) {
    let incoming = request.consume().unwrap();
    assert!(request.consume().is_err(), "there is one body");
    let from = incoming.stream().unwrap();
    let body = begin(outparam, &[]);
    let to = body.write().unwrap();
    each(&from, |piece| {
        for part in piece.chunks(4096) {
            to.blocking_write_and_flush(part).unwrap();
        }
    });
    drop(to);
    OutgoingBody::finish(body, None).unwrap();
}

fn splice(request: IncomingRequest, outparam: ResponseOutparam) {
    let incoming = request.consume().unwrap();
    let from = incoming.stream().unwrap();
    let body = begin(outparam, &[]);
    let to = body.write().unwrap();
    while to.blocking_splice(&from, 1 << 20).is_ok() {}
    drop(to);
    OutgoingBody::finish(body, None).unwrap();
}

/// Answers with the request's trailers as its own, and how many bytes came before them.
fn trailers(request: IncomingRequest, outparam: ResponseOutparam) {
    let incoming = request.consume().unwrap();
    let from = incoming.stream().unwrap();
    let body = begin(outparam, &[("trailer", "x-sum, x-count")]);
    let mut count = 0;
    each(&from, |piece| count += piece.len());
    drop(from);
    let future = IncomingBody::finish(incoming);
    future.subscribe().block();
    let trailers = future.get().unwrap().unwrap().unwrap();
    assert!(future.get().unwrap().is_err(), "they are given once");
    let answer = trailers.map_or_else(Fields::new, |trailers| trailers.clone());
    answer.set("x-count", &[count.to_string().into_bytes()]).unwrap();
    let mut to = body.write().unwrap();
    writeln!(to, "{count} bytes").unwrap();
    drop(to);
    OutgoingBody::finish(body, Some(answer)).unwrap();
}

/// Writes so many bytes, never more than there is room for.
fn fill(outparam: ResponseOutparam, count: usize) {
    let body = begin(outparam, &[]);
    let to = body.write().unwrap();
    let bytes: Vec<u8> = (0..count).map(|at| (at % 251) as u8).collect();
    let mut left = &bytes[..];
    let ready = to.subscribe();
    while !left.is_empty() {
        let room = to.check_write().unwrap() as usize;
        if room == 0 {
            ready.block();
            continue;
        }
        let part = left.len().min(room);
        to.write(&left[..part]).unwrap();
        left = &left[part..];
    }
    to.blocking_flush().unwrap();
    drop((ready, to));
    OutgoingBody::finish(body, None).unwrap();
}

/// Writes another length than it has said, or that one.
fn length(outparam: ResponseOutparam, length: usize, text: &str) {
    let body = begin(outparam, &[("content-length", &length.to_string())]);
    let to = body.write().unwrap();
    let written = to.blocking_write_and_flush(text.as_bytes());
    if let Err(StreamError::LastOperationFailed(error)) = &written {
        eprintln!("writing: {:?}", http_error_code(error));
    }
    drop((written, to));
    if let Err(code) = OutgoingBody::finish(body, None) {
        eprintln!("finishing: {code:?}");
    }
}

/// Leaves a body unfinished.
fn dropped(outparam: ResponseOutparam) {
    let body = begin(outparam, &[]);
    let to = body.write().unwrap();
    to.blocking_write_and_flush(b"half").unwrap();
    drop(to);
    drop(body);
}

/// What is said to standard output is not the response.
fn print(outparam: ResponseOutparam) {
    println!("to standard output");
    eprintln!("to standard error");
    whole(outparam, 200, &[], "printed");
}

/// What fields answer, one a line.
fn fields(request: &IncomingRequest) -> String {
    let mut text = String::new();
    let fields = Fields::new();
    fields.append("X-A", b"1").unwrap();
    fields.append("x-a", b"2").unwrap();
    fields.set("x-b", &[b"3".to_vec()]).unwrap();
    let shown = |values: Vec<Vec<u8>>| values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect::<Vec<_>>();
    writeln!(text, "{:?} {:?} {:?}", shown(fields.get("x-a")), fields.has("X-B"), fields.entries().len()).unwrap();
    fields.delete("x-a").unwrap();
    let copy = fields.clone();
    copy.set("x-b", &[]).unwrap();
    writeln!(text, "{} {} {}", fields.has("x-a"), fields.has("x-b"), copy.has("x-b")).unwrap();
    let error = |result: Result<(), HeaderError>| result.unwrap_err();
    let refused = [
        error(fields.append("host", b"a")),
        error(fields.set("Connection", &[])),
        error(fields.append("x y", b"a")),
        error(fields.append("x-c", b"a\nb")),
        error(request.headers().append("x-c", b"d")),
        Fields::from_list(&[("transfer-encoding".to_owned(), b"chunked".to_vec())]).unwrap_err(),
    ];
    writeln!(text, "{refused:?}").unwrap();
    text
}

fn request(method: Method, url: &str, headers: Fields) -> OutgoingRequest {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let request = OutgoingRequest::new(headers);
    request.set_method(&method).unwrap();
    request.set_scheme(Some(&if scheme == "http" { Scheme::Http } else { Scheme::Https })).unwrap();
    request.set_authority(Some(authority)).unwrap();
    request.set_path_with_query(Some(&format!("/{path}"))).unwrap();
    request
}

/// The response of a request that was handled.
fn response(future: wasip2::http::types::FutureIncomingResponse) -> Result<IncomingResponse, ErrorCode> {
    loop {
        if let Some(response) = future.get() {
            return response.unwrap();
        }
        future.subscribe().block();
    }
}

/// Asks another server, and answers with what it said.
fn get(outparam: ResponseOutparam, url: &str) {
    let options = RequestOptions::new();
    options.set_first_byte_timeout(Some(1_000_000_000)).unwrap();
    options.set_between_bytes_timeout(Some(1_000_000_000)).unwrap();
    let headers = Fields::from_list(&[("x-from".to_owned(), b"component".to_vec())]).unwrap();
    let came = outgoing_handler::handle(request(Method::Get, url, headers), Some(options)).and_then(response);
    let text = match came {
        Ok(response) => {
            let mut text = format!("{}\n", response.status());
            for (name, value) in response.headers().entries() {
                writeln!(text, "{name}: {}", String::from_utf8_lossy(&value)).unwrap();
            }
            let body = response.consume().unwrap();
            let from = body.stream().unwrap();
            loop {
                match from.blocking_read(1 << 20) {
                    Ok(piece) => text.push_str(&String::from_utf8_lossy(&piece)),
                    Err(StreamError::Closed) => break,
                    Err(StreamError::LastOperationFailed(error)) => {
                        write!(text, "\nbody: {:?}", http_error_code(&error)).unwrap();
                        break;
                    }
                }
            }
            text
        }
        Err(code) => format!("{code:?}"),
    };
    whole(outparam, 200, &[], &text);
}

/// Hands a request on, and its response back, both while they come.
fn proxy(incoming: IncomingRequest, outparam: ResponseOutparam, url: &str) {
    let outgoing = request(incoming.method(), url, incoming.headers().clone());
    let body = outgoing.body().unwrap();
    let future = outgoing_handler::handle(outgoing, None).unwrap();
    let upload = incoming.consume().unwrap();
    {
        let (from, to) = (upload.stream().unwrap(), body.write().unwrap());
        copy(&from, &to);
    }
    OutgoingBody::finish(body, None).unwrap();
    let incoming = response(future).unwrap();
    let headers = incoming.headers().clone();
    let _ = headers.delete("content-length");
    let outgoing = OutgoingResponse::new(headers);
    outgoing.set_status_code(incoming.status()).unwrap();
    let body = outgoing.body().unwrap();
    ResponseOutparam::set(outparam, Ok(outgoing));
    let download = incoming.consume().unwrap();
    {
        let (from, to) = (download.stream().unwrap(), body.write().unwrap());
        copy(&from, &to);
    }
    OutgoingBody::finish(body, None).unwrap();
}

fn copy(from: &InputStream, to: &OutputStream) {
    each(from, |piece| {
        for part in piece.chunks(4096) {
            to.blocking_write_and_flush(part).unwrap();
        }
    });
}
