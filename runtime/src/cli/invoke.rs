//! `sledge invoke`: one request to a running server.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream as StdStream, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;

use super::{FAILURE, fail, say, usage, written};
use crate::config::LISTEN_DEFAULT;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Call a function of a running server.
#[derive(Debug, Args)]
pub(super) struct InvokeArgs {
    /// The function's name, or a route that begins with /
    name: String,
    /// The request's body: text, @FILE, or @- for standard input [default: empty]
    #[arg(long, value_name = "@FILE|TEXT")]
    data: Option<String>,
    /// The request's method
    #[arg(short = 'X', long = "method", value_name = "METHOD", default_value_t = Method::POST)]
    method: Method,
    /// A header of the request; may be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Show status and headers of the reply before its body
    #[arg(short = 'i', long)]
    include: bool,
    /// The server
    #[arg(long, value_name = "URL", default_value_t = format!("http://{LISTEN_DEFAULT}"))]
    server: String,
}

enum InvokeError {
    Url { url: String, what: &'static str },
    Connect { url: String, source: io::Error },
    Http(hyper::Error),
    Io(io::Error),
    Output(io::Error),
}

impl fmt::Display for InvokeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvokeError::Url { url, what } => write!(f, "--server {url}: {what}; give a URL such as http://{LISTEN_DEFAULT}"),
            InvokeError::Connect { url, source } if source.kind() == io::ErrorKind::ConnectionRefused => write!(
                f,
                "no server listens at {url}: start one with `sledge serve FUNCTION.so`, or give its address with --server URL"
            ),
            InvokeError::Connect { url, source } => write!(f, "cannot connect to {url}: {source}"),
            InvokeError::Http(error) => write!(f, "the server sent an invalid HTTP response: {error}"),
            InvokeError::Io(error) | InvokeError::Output(error) => error.fmt(f),
        }
    }
}

pub(super) fn invoke(args: InvokeArgs) -> ExitCode {
    let body = match data(args.data.as_deref()) {
        Ok(body) => body,
        Err(message) => return fail(message),
    };
    let path = if args.name.starts_with('/') { args.name } else { format!("/{}", args.name) };
    let Ok(path) = path.parse::<Uri>() else {
        return usage(format_args!("{path}: not a valid function name or route"));
    };
    let mut request = Request::new(Full::new(body));
    (*request.method_mut(), *request.uri_mut()) = (args.method, path);
    let host = args.server.trim_start_matches("http://").trim_end_matches('/');
    request.headers_mut().insert(HOST, HeaderValue::from_str(host).unwrap_or(HeaderValue::from_static("localhost")));
    // Its own, where one is given.
    if args.headers.iter().any(|(name, _)| name == HOST) {
        request.headers_mut().remove(HOST);
    }
    for (name, value) in args.headers {
        request.headers_mut().append(name, value);
    }
    match ask(&args.server, request, args.include) {
        Ok(StatusCode::OK) => ExitCode::SUCCESS,
        Ok(status) if status.is_success() => ExitCode::SUCCESS,
        Ok(_) => FAILURE.into(),
        Err(error @ InvokeError::Url { .. }) => usage(error),
        Err(InvokeError::Output(error)) => written(Err(error)),
        Err(error) => fail(error),
    }
}

fn data(given: Option<&str>) -> Result<Bytes, String> {
    match given.map(|given| given.strip_prefix('@').ok_or(given)) {
        None => Ok(Bytes::new()),
        Some(Err(text)) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        Some(Ok("-")) => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map_err(|error| format!("cannot read standard input: {error}"))?;
            Ok(bytes.into())
        }
        Some(Ok(file)) => std::fs::read(file).map(Bytes::from).map_err(|error| format!("--data @{file}: {error}")),
    }
}

/// A header as it is written in a request.
fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("give NAME: VALUE")?;
    let name = name.trim().parse().map_err(|_| format!("{name:?} is not a valid header name"))?;
    let value = value.trim();
    Ok((name, value.parse().map_err(|_| format!("{value:?} is not a valid header value"))?))
}

/// Host and port of a server's URL.
fn authority(server: &str) -> Result<(String, u16), InvokeError> {
    let wrong = |what| InvokeError::Url { url: server.to_owned(), what };
    let url: Uri = server.parse().map_err(|_| wrong("is not a URL"))?;
    if url.scheme_str() != Some("http") {
        return Err(wrong("only http is supported"));
    }
    if url.path() != "/" || url.query().is_some() {
        return Err(wrong("has a path"));
    }
    let host = url.host().ok_or_else(|| wrong("has no host"))?;
    Ok((host.trim_matches(['[', ']']).to_owned(), url.port_u16().unwrap_or(80)))
}

fn connect(server: &str) -> Result<StdStream, InvokeError> {
    let (host, port) = authority(server)?;
    let connect = |source| InvokeError::Connect { url: server.to_owned(), source };
    let mut last = io::Error::other("the name has no address");
    for address in (host.as_str(), port).to_socket_addrs().map_err(connect)? {
        match StdStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(connect(last))
}

/// Sends the request; the reply's body goes to standard output if it is a success, else to standard error below its status.
fn ask(server: &str, request: Request<Full<Bytes>>, include: bool) -> Result<StatusCode, InvokeError> {
    let stream = connect(server)?;
    stream.set_nonblocking(true).map_err(InvokeError::Io)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(InvokeError::Io)?;
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::from_std(stream).map_err(InvokeError::Io)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(InvokeError::Http)?;
        tokio::spawn(connection);
        let (head, mut body) = sender.send_request(request).await.map_err(InvokeError::Http)?.into_parts();
        let status = head.status;
        if include {
            io::stdout().write_all(&text(&head)).map_err(InvokeError::Output)?;
        }
        if !status.is_success() {
            say(format_args!("sledge: {status}"));
        }
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(InvokeError::Http)?;
            let Some(data) = frame.data_ref() else { continue };
            let shown = if status.is_success() { io::stdout().write_all(data) } else { io::stderr().write_all(data) };
            shown.map_err(InvokeError::Output)?;
        }
        io::stdout().flush().map_err(InvokeError::Output)?;
        Ok(status)
    })
}

/// A reply's head as it came.
fn text(head: &Parts) -> Vec<u8> {
    let mut text = format!("{:?} {}\n", head.version, head.status).into_bytes();
    for (name, value) in &head.headers {
        text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\n"].concat());
    }
    text.push(b'\n');
    text
}
