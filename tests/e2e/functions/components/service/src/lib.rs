//! What WASI 0.3 offers to what serves HTTP, each by a path.

use std::cell::Cell;
use std::rc::Rc;

use wasip3::clocks::monotonic_clock::wait_for;
use wasip3::exports::http::handler::Guest;
use wasip3::http::client;
use wasip3::http::types::{ErrorCode, Fields, HeaderError, Method, Request, Response, Scheme, Trailers};
use wasip3::wit_bindgen::rt::async_support::{FutureReader, StreamReader, StreamResult, StreamWriter, yield_async};
use wasip3::{spawn_local, wit_future, wit_stream};

wasip3::http::service::export!(Function);

struct Function;

/// Bytes of a piece that is read or written.
const PIECE_BYTES: usize = 64 << 10;

/// The future of what comes behind a body.
type FutureTrailers = FutureReader<Result<Option<Trailers>, ErrorCode>>;

impl Guest for Function {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let target = request.get_path_with_query().unwrap_or_default();
        let query = target.split_once('?').map_or("", |(_, query)| query).to_owned();
        let (verb, rest) = query.split_once(':').unwrap_or((&query, ""));
        match verb {
            "hello" => Ok(text("Hello, world!\n")),
            "head" => Ok(text(&head(&request))),
            "echo" => Ok(echo(request)),
            "pass" => Ok(pass(request)),
            "trailers" => Ok(trailers(request).await),
            "waits" => Ok(waits().await),
            "later" => Ok(later()),
            "yields" => Ok(yields().await),
            "fill" => Ok(fill(number(rest)?)),
            "fields" => Ok(text(&fields())),
            "status" => status(rest),
            "short" => Ok(short().await),
            "get" => get(rest).await,
            "post" => post(rest, request).await,
            "proxy" => proxy(rest, request).await,
            "self" => own_message().await,
            "error" => Err(ErrorCode::InternalError(Some("as asked".to_owned()))),
            "panic" => panic!("as asked"),
            "break" => Ok(breaks()),
            "print" => {
                println!("to standard output");
                eprintln!("to standard error");
                Ok(text("printed"))
            }
            _ => Err(ErrorCode::HttpRequestUriInvalid),
        }
    }
}

fn number(text: &str) -> Result<usize, ErrorCode> {
    text.parse().map_err(|_| ErrorCode::HttpRequestUriInvalid)
}

/// A future of no trailers.
fn no_trailers() -> FutureTrailers {
    let (writer, reader) = wit_future::new(|| Ok(None));
    drop(writer);
    reader
}

/// A response whose body is written meanwhile.
fn written<F: Future<Output = ()> + 'static>(headers: Fields, write: impl FnOnce(StreamWriter<u8>) -> F) -> Response {
    let (writer, reader) = wit_stream::new();
    let (response, _sent) = Response::new(headers, Some(reader), no_trailers());
    spawn_local(write(writer));
    response
}

fn text(text: &str) -> Response {
    let headers = Fields::from_list(&[("content-type".to_owned(), b"text/plain".to_vec())]).expect("headers");
    let bytes = text.as_bytes().to_vec();
    written(headers, |mut writer| async move {
        assert!(writer.write_all(bytes).await.is_empty(), "the client reads all of it");
    })
}

/// What the request says, a line each.
fn head(request: &Request) -> String {
    let method = match request.get_method() {
        Method::Other(name) => name,
        method => format!("{method:?}"),
    };
    let scheme = match request.get_scheme() {
        Some(Scheme::Http) => "http",
        Some(Scheme::Https) => "https",
        _ => "other",
    };
    let mut lines = vec![
        method,
        format!("{scheme}://{}{}", request.get_authority().unwrap_or_default(), request.get_path_with_query().unwrap_or_default()),
    ];
    let mut headers: Vec<_> = request.get_headers().copy_all();
    headers.sort();
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value))));
    lines.join("\n")
}

/// A verdict on a body, which says that all is well.
fn accepted() -> FutureReader<Result<(), ErrorCode>> {
    let (writer, reader) = wit_future::new(|| Ok(()));
    drop(writer);
    reader
}

/// Copies what comes until its end.
async fn copy(mut from: StreamReader<u8>, mut to: StreamWriter<u8>) -> usize {
    let mut total = 0;
    loop {
        let (result, piece) = from.read(Vec::with_capacity(PIECE_BYTES)).await;
        total += piece.len();
        if !piece.is_empty() && !to.write_all(piece).await.is_empty() {
            return total;
        }
        if !matches!(result, StreamResult::Complete(_)) {
            return total;
        }
    }
}

/// Headers that name a field which may come behind the body.
fn with_trailer() -> Fields {
    Fields::from_list(&[("trailer".to_owned(), b"x-sum".to_vec())]).expect("headers")
}

/// The body goes back piece by piece, and its trailers behind it.
fn echo(request: Request) -> Response {
    let (body, trailers) = Request::consume_body(request, accepted());
    let (writer, reader) = wit_stream::new();
    let (response, _sent) = Response::new(with_trailer(), Some(reader), trailers);
    spawn_local(async move {
        copy(body, writer).await;
    });
    response
}

/// The body goes back without having been seen.
fn pass(request: Request) -> Response {
    let (body, trailers) = Request::consume_body(request, accepted());
    Response::new(with_trailer(), Some(body), trailers).0
}

/// Reads the body and its trailers, and says how much there was in trailers of its own.
async fn trailers(request: Request) -> Response {
    let (body, trailers) = Request::consume_body(request, accepted());
    let bytes = body.collect().await;
    let came = trailers.await.expect("trailers");
    let fields = came.map_or_else(Fields::new, |trailers| trailers.clone());
    fields.append("x-count", bytes.len().to_string().as_bytes()).expect("a field");
    let (mut writer, reader) = wit_stream::new();
    let (trailers_writer, trailers) = wit_future::new(|| Ok(None));
    let headers = Fields::from_list(&[("trailer".to_owned(), b"x-sum, x-count".to_vec())]).expect("headers");
    let (response, sent) = Response::new(headers, Some(reader), trailers);
    spawn_local(async move {
        assert!(writer.write_all(format!("{} bytes\n", bytes.len()).into_bytes()).await.is_empty());
        drop(writer);
        trailers_writer.write(Ok(Some(fields))).await.expect("the host reads trailers");
        sent.await.expect("the response was sent");
        eprintln!("sent with trailers");
    });
    response
}

/// Three waits at once.
async fn waits() -> Response {
    futures::join!(wait_for(200_000_000), wait_for(200_000_000), wait_for(200_000_000));
    text("waited\n")
}

/// Goes on for a second after the response is complete.
fn later() -> Response {
    spawn_local(async {
        wait_for(1_000_000_000).await;
        eprintln!("afterwards");
    });
    text("at once\n")
}

/// Yields until a wait is over.
async fn yields() -> Response {
    let is_over = Rc::new(Cell::new(false));
    let tells = Rc::clone(&is_over);
    spawn_local(async move {
        wait_for(100_000_000).await;
        tells.set(true);
    });
    while !is_over.get() {
        yield_async().await;
    }
    text("yielded\n")
}

/// So many bytes.
fn fill(count: usize) -> Response {
    written(Fields::new(), move |mut writer| async move {
        let mut at = 0;
        while at < count {
            let end = count.min(at + PIECE_BYTES);
            if !writer.write_all((at..end).map(|at| (at % 251) as u8).collect()).await.is_empty() {
                eprintln!("the client is gone");
                return;
            }
            at = end;
        }
    })
}

/// What fields do, a line each.
fn fields() -> String {
    let fields = Fields::new();
    fields.append("x-a", b"1").expect("a field");
    fields.append("X-A", b"2").expect("a field");
    fields.set("x-b", &[b"3".to_vec()]).expect("a field");
    let mut lines = vec![
        format!("{:?} {} {}", fields.get("x-a"), fields.has("x-b"), fields.copy_all().len()),
        format!("{:?} {}", fields.get_and_delete("x-a"), fields.has("x-a")),
    ];
    let too_large = vec![b'x'; 1 << 20];
    let is_too_large = matches!(fields.append("x-large", &too_large), Err(HeaderError::SizeExceeded));
    lines.push(format!("{:?} {:?} {is_too_large}", fields.append("host", b"a"), fields.append("a b", b"")));
    let (response, _sent) = Response::new(fields.clone(), None, no_trailers());
    lines.push(format!("{:?} {}", response.get_headers().delete("x-b"), response.get_headers().has("x-b")));
    fields.delete("x-b").expect("it may be deleted");
    lines.push(format!("{} {}", fields.has("x-b"), Fields::from_list(&[("a b".to_owned(), Vec::new())]).is_err()));
    lines.join("\n")
}

fn status(code: &str) -> Result<Response, ErrorCode> {
    let (response, _sent) = Response::new(Fields::new(), None, no_trailers());
    let code = code.parse().map_err(|_| ErrorCode::HttpRequestUriInvalid)?;
    response.set_status_code(code).map_err(|()| ErrorCode::HttpProtocolError)?;
    Ok(response)
}

/// A body that is shorter than its headers say.
async fn short() -> Response {
    let headers = Fields::from_list(&[("content-length".to_owned(), b"9".to_vec())]).expect("headers");
    let (mut writer, reader) = wit_stream::new();
    let (response, sent) = Response::new(headers, Some(reader), no_trailers());
    spawn_local(async move {
        assert!(writer.write_all(b"short".to_vec()).await.is_empty());
        drop(writer);
        eprintln!("sending: {:?}", sent.await);
    });
    response
}

/// A body that ends in the middle.
fn breaks() -> Response {
    written(Fields::new(), |mut writer| async move {
        assert!(writer.write_all(vec![b'x'; PIECE_BYTES]).await.is_empty());
        wait_for(50_000_000).await;
        panic!("as asked");
    })
}

/// A request to that URL, without a body.
fn request(url: &str, method: &Method, contents: Option<(StreamReader<u8>, FutureTrailers)>) -> Result<Request, ErrorCode> {
    let (scheme, rest) = url.split_once("://").ok_or(ErrorCode::HttpRequestUriInvalid)?;
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let headers = Fields::from_list(&[("x-from".to_owned(), b"component".to_vec())]).expect("headers");
    let (contents, trailers) = match contents {
        Some((contents, trailers)) => (Some(contents), trailers),
        None => (None, no_trailers()),
    };
    let (request, _sent) = Request::new(headers, contents, trailers, None);
    aim(&request, scheme, authority, path)?;
    request.set_method(method).map_err(|()| ErrorCode::HttpRequestMethodInvalid)?;
    Ok(request)
}

/// Says where a request goes.
fn aim(request: &Request, scheme: &str, authority: &str, path: &str) -> Result<(), ErrorCode> {
    let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
    let invalid = |()| ErrorCode::HttpRequestUriInvalid;
    request.set_scheme(Some(&scheme)).map_err(invalid)?;
    request.set_authority(Some(authority)).map_err(invalid)?;
    request.set_path_with_query(Some(path)).map_err(invalid)
}

/// What another server answers, or why it does not.
async fn get(url: &str) -> Result<Response, ErrorCode> {
    let response = match client::send(request(url, &Method::Get, None)?).await {
        Ok(response) => response,
        Err(code) => return Ok(text(&format!("{code:?}"))),
    };
    let (status, headers) = (response.get_status_code(), response.get_headers().copy_all());
    let (body, trailers) = Response::consume_body(response, accepted());
    let body = body.collect().await;
    let trailers = trailers.await.map(|trailers| trailers.map(|trailers| trailers.copy_all()));
    let mut lines = vec![status.to_string()];
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value))));
    lines.push(String::from_utf8_lossy(&body).into_owned());
    lines.push(format!("{trailers:?}"));
    Ok(text(&lines.join("\n")))
}

/// The body goes to another server while it comes, and that server's response back in the same way.
async fn post(url: &str, from: Request) -> Result<Response, ErrorCode> {
    let (body, trailers) = Request::consume_body(from, accepted());
    let (writer, reader) = wit_stream::new();
    spawn_local(async move {
        copy(body, writer).await;
    });
    let response = client::send(request(url, &Method::Post, Some((reader, trailers)))?).await?;
    let headers = response.get_headers().clone();
    let (body, trailers) = Response::consume_body(response, accepted());
    let (writer, reader) = wit_stream::new();
    let (answer, _sent) = Response::new(headers, Some(reader), trailers);
    spawn_local(async move {
        copy(body, writer).await;
    });
    Ok(answer)
}

/// The request itself goes on, and the response comes back as it is.
async fn proxy(url: &str, request: Request) -> Result<Response, ErrorCode> {
    let (scheme, rest) = url.split_once("://").ok_or(ErrorCode::HttpRequestUriInvalid)?;
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    aim(&request, scheme, authority, path)?;
    client::send(request).await
}

/// Reads a message that it writes itself.
async fn own_message() -> Result<Response, ErrorCode> {
    let (mut writer, reader) = wit_stream::new();
    let (trailers_writer, trailers) = wit_future::new(|| Ok(None));
    let (message, sent) = Response::new(Fields::new(), Some(reader), trailers);
    let (body, trailers) = Response::consume_body(message, accepted());
    let write = async move {
        let left = writer.write_all(vec![b'a'; 3 * PIECE_BYTES]).await;
        drop(writer);
        let fields = Fields::from_list(&[("x-own".to_owned(), b"yes".to_vec())]).expect("fields");
        trailers_writer.write(Ok(Some(fields))).await.expect("trailers are read");
        left.len()
    };
    let read = async move {
        let bytes = body.collect().await;
        (bytes.len(), trailers.await.expect("trailers").map(|trailers| trailers.copy_all().len()))
    };
    let (left, (count, trailers)) = futures::join!(write, read);
    Ok(text(&format!("{left} {count} {trailers:?} {:?}", sent.await)))
}
