//! HTTP/1.1 by hand: requests with bodies in chunks and trailers, and what comes back.

use std::net::SocketAddr;

use sledge_tests::http::Raw;

/// A request.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) headers: Vec<(&'a str, String)>,
    /// In chunks, if there is one.
    pub(crate) body: Option<Vec<Vec<u8>>>,
    pub(crate) trailers: Vec<(&'a str, &'a str)>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: &'a str, target: &'a str) -> Request<'a> {
        let headers = vec![("host", "localhost".to_owned())];
        Request { method, target, headers, body: None, trailers: Vec::new() }
    }

    pub(crate) fn header(mut self, name: &'a str, value: impl Into<String>) -> Request<'a> {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn body(mut self, chunks: Vec<Vec<u8>>) -> Request<'a> {
        self.body = Some(chunks);
        self
    }

    pub(crate) fn trailer(mut self, name: &'a str, value: &'a str) -> Request<'a> {
        self.trailers.push((name, value));
        self
    }

    /// Sends it over a connection of its own; the whole response.
    pub(crate) fn send(&self, server: SocketAddr) -> Response {
        self.send_over(&mut Raw::connect(server))
    }

    /// Sends it over a connection that may be used again.
    pub(crate) fn send_over(&self, raw: &mut Raw) -> Response {
        let mut bytes = format!("{} {} HTTP/1.1\r\nte: trailers\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            bytes.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.body.is_some() {
            bytes.push_str("transfer-encoding: chunked\r\n");
        }
        let mut bytes = bytes.into_bytes();
        bytes.extend(b"\r\n");
        if let Some(chunks) = &self.body {
            for chunk in chunks {
                bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n");
            for (name, value) in &self.trailers {
                bytes.extend(format!("{name}: {value}\r\n").into_bytes());
            }
            bytes.extend(b"\r\n");
        }
        raw.send(bytes);
        Response::read(raw)
    }
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<String>,
}

impl Response {
    fn read(raw: &mut Raw) -> Response {
        let head = raw.head().expect("a response");
        let mut response =
            Response { status: head.status, headers: head.headers.clone(), body: Vec::new(), trailers: Vec::new() };
        if let Some(length) = head.header("content-length") {
            response.body = raw.bytes(length.parse().expect("a length"));
        } else if head.header("transfer-encoding").is_some() {
            loop {
                let length = usize::from_str_radix(&line(raw), 16).expect("a length");
                if length == 0 {
                    break;
                }
                response.body.extend(raw.bytes(length));
                assert_eq!(line(raw), "");
            }
            while response.takes_trailer(raw) {}
        }
        response
    }

    /// Reads a line behind the body; false at the end.
    fn takes_trailer(&mut self, raw: &mut Raw) -> bool {
        let line = line(raw);
        let more = !line.is_empty();
        self.trailers.extend(more.then_some(line));
        more
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// An error that tells all, unless it holds.
    pub(crate) fn expect(&self, holds: bool, what: &str) -> Result<(), String> {
        if holds {
            Ok(())
        } else {
            Err(format!("not {what}: {} {:?} {:?} {}", self.status, self.headers, self.trailers, self.text()))
        }
    }
}

fn line(raw: &mut Raw) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(raw.bytes(1));
    }
    String::from_utf8(line).expect("text").trim_end().to_owned()
}
