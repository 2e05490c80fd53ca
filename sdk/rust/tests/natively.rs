//! A function's view of the crate, where it is tested: natively.

mod scenario;

use scenario::Point;
use sledge::kv;
use sledge::{Json, Level, Reply, Request, call, fetch, testing};
use std::io::{self, Write};

fn mirrored(Json(point): Json<Point>) -> Json<Point> {
    Json(Point { x: point.y, y: point.x })
}

#[test]
fn json_comes_in_and_goes_out() {
    let request = Request::new("POST", "/").with_body(r#"{"x": 1, "y": 2}"#);
    let reply = testing::serve(&request, mirrored);
    assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"x":2,"y":1}"#));
    assert_eq!(reply.header("Content-Type"), Some("application/json"));
    let reply = testing::serve(&Request::new("POST", "/").with_body(r#"{"x": 1}"#), mirrored);
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("missing field `y` at line 1"), "{}", reply.text());
}

fn teapot(request: Request) -> Result<Reply, String> {
    let name = request.head.query().ok_or("who asks?")?;
    let kind = request.head.header("X-Kind").unwrap_or("none");
    Ok(Reply::new(418).with_header("x-kind", kind).with_body(format!("{} {} {name}", request.head.method, request.head.path())))
}

#[test]
fn the_head_is_read_and_written() {
    let request = Request::new("PUT", "/tea?me").with_header("x-kind", "green");
    let reply = testing::serve(&request, teapot);
    assert_eq!((reply.status, reply.text().as_str(), reply.header("x-kind")), (418, "PUT /tea me", Some("green")));
    let reply = testing::serve(&Request::new("PUT", "/tea"), teapot);
    assert_eq!((reply.status, reply.text().as_str()), (500, "who asks?"));
    for bad in [Reply::new(99), Reply::new(200).with_header("date", "x"), Reply::new(200).with_header("a b", "x")] {
        assert_eq!(testing::serve(&request, move |()| bad).status, 500);
    }
}

#[test]
fn text_has_to_be_text() {
    let reply = testing::serve(&Request::new("POST", "/").with_body(b"a\xff"), |text: &str| text.to_owned());
    assert_eq!(reply.status, 400);
}

#[test]
fn the_store_keeps_values_and_versions() {
    scenario::store();
    testing::forget();
    assert_eq!(kv::open("fruit").unwrap().keys("").unwrap().len(), 0);
}

#[test]
fn other_functions_are_called() {
    testing::provide("double", |input| Ok([input, input].concat()));
    testing::provide("late", |_| Err(call::Error::Timeout));
    // One function may use what another does.
    testing::provide("deep", |input| call::invoke("double", input));
    assert_eq!(call::invoke("deep", "ab"), Ok(b"abab".to_vec()));
    assert_eq!((call::invoke("late", ""), call::invoke("nobody", "")), (Err(call::Error::Timeout), Err(call::Error::NotFound)));
    let (first, second) = (call::start("double", "x").unwrap(), call::start("late", "").unwrap());
    assert_eq!((second.wait(), first.wait()), (Err(call::Error::Timeout), Ok(b"xx".to_vec())));
    assert_eq!(call::send("nobody", ""), Ok(()));
    assert_eq!(call::send("double", vec![0; (4 << 20) + 1]), Err(call::Error::TooLarge));
}

#[test]
fn other_servers_are_asked() {
    testing::upstream("a.example:8080", |request| {
        Reply::new(201).with_header("x-method", &request.method).with_body([&request.body[..], b"!"].concat())
    });
    let (mut first, second) =
        (fetch::post("http://a.example:8080/x", "one").unwrap(), fetch::get("https://a.example:8080").unwrap());
    assert_eq!((second.status(), second.headers()), (Ok(201), Ok(vec![("x-method".to_owned(), b"GET".to_vec())])));
    let mut two = [0; 2];
    assert_eq!((first.read(&mut two), two), (Ok(2), *b"on"));
    assert_eq!((first.bytes(1), first.bytes(10)), (Err(fetch::Error::TooLarge), Ok(Vec::new())));
    assert_eq!(fetch::get("http://b.example/").err(), Some(fetch::Error::NotAllowed));
    assert_eq!(fetch::get("ftp://a.example/").err(), Some(fetch::Error::Invalid));
    assert_eq!(
        fetch::Request::new("GET", "http://a.example:8080").with_header("te", "x").send().err(),
        Some(fetch::Error::Invalid)
    );
}

#[test]
fn a_reply_that_is_streamed_is_the_sum_of_its_pieces() {
    let serve = |length: Option<u64>, fails: bool| {
        testing::serve(&Request::new("POST", "/"), move |()| {
            let reply = Reply::new(201).with_header("x-a", "1").with_body("0\n").streaming(move |body| {
                writeln!(body, "1")?;
                if fails { Err(io::Error::other("no more")) } else { writeln!(body, "2") }
            });
            length.map_or_else(|| reply.clone(), |length| reply.clone().with_length(length))
        })
    };
    let reply = serve(None, false);
    assert_eq!((reply.status, reply.header("x-a"), reply.text().as_str()), (201, Some("1"), "0\n1\n2\n"));
    assert_eq!(serve(Some(6), false).status, 201);
    assert_eq!(serve(Some(7), false).text(), "7 bytes were to be written, not 6");
    assert_eq!((serve(None, true).status, serve(None, true).text().as_str()), (500, "no more"));
}

#[test]
fn what_is_said_is_kept() {
    sledge::log(Level::Warn, format_args!("{} left", 3));
    sledge::phase(1);
    sledge::phase(2);
    assert_eq!((testing::logged(), testing::phases()), (vec![(Level::Warn, "3 left".to_owned())], vec![1, 2]));
}
