//! A component that is a command: it reads the request's head through `sledge:http`, says what the reply's is, and copies the body.

use std::io::{self, Write as _};

wit_bindgen::generate!({
    path: "../../../../../sdk/wit/http.wit",
    world: "http",
});

use sledge::http::exchange;

fn main() {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let mut out = io::stdout().lock();
    let (method, target) = (exchange::method().unwrap_or_default(), exchange::target().unwrap_or_default());
    writeln!(out, "{method} {target} {:?}", exchange::header("x-none").map(text)).unwrap();
    let names: Vec<_> = exchange::headers().into_iter().map(|(name, _)| name).filter(|name| name == "host").collect();
    writeln!(out, "{}", names.join(" ")).unwrap();
    exchange::status(201).unwrap();
    exchange::set_header("x-kind", b"first").unwrap();
    exchange::set_header("x-kind", b"exchange").unwrap();
    exchange::set_header("x-more", b"1").unwrap();
    exchange::add_header("x-more", b"2").unwrap();
    let refused = [
        exchange::status(99),
        exchange::set_header("no name", b""),
        exchange::set_header("content-length", b"1"),
        exchange::set_header("x-long", &[b'x'; 20_000]),
    ];
    writeln!(out, "{refused:?}").unwrap();
    writeln!(out, "{:?} {:?}", exchange::trailer("x-sum").map(|value| value.map(text)), exchange::trailer("no name")).unwrap();
    writeln!(out, "{:?} {:?}", exchange::stream(None), exchange::stream(None)).unwrap();
    io::copy(&mut io::stdin().lock(), &mut out).unwrap();
    out.flush().unwrap();
}
