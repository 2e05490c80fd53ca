//! Answers requests: orders, a line each, become a page. Components in three other languages do the work.

use std::io::Write as _;

use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};

use bindings::example::orders::ledgers::{self, Ledger};
use bindings::example::orders::types::Refusal;
use bindings::example::orders::{page, reader};

/// What the others offer. A stream of the request or the response is what they call a stream.
mod bindings {
    wit_bindgen::generate!({
        path: "../wit",
        world: "front",
        with: {
            "wasi:io/error@0.2.10": wasip2::io::error,
            "wasi:io/poll@0.2.10": wasip2::io::poll,
            "wasi:io/streams@0.2.10": wasip2::io::streams,
        },
    });
}

wasip2::http::proxy::export!(Front);

struct Front;

impl Guest for Front {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let target = request.path_with_query().unwrap_or_default();
        let language = target.split_once("?language=").map(|(_, language)| language);
        let body = request.consume().expect("its body is taken once");
        let ledger = Ledger::new("Größe, 大きさ & 🦀");
        // The stream is Python's from here on. It reads what the client sends, and tells Go each order.
        let numbers = match reader::read(body.stream().expect("its stream is taken once"), &ledger) {
            Ok(numbers) => numbers,
            Err(refusal) => return answer(out, 400, |mut stream| write!(stream, "{}", words(&refusal)).expect("a client")),
        };
        answer(out, 200, |stream| match page::write(&ledger, language, stream) {
            Ok(bytes) => eprintln!("a page of {bytes} bytes, from {} orders", numbers.len()),
            Err(reason) => eprintln!("no page: {reason}"),
        });
        let before = ledgers::count();
        let (title, sum) = Ledger::close(ledger);
        eprintln!("closed {title:?} with {} orders; {before} ledgers, then {}", sum.orders, ledgers::count());
    }
}

/// Sends a response whose body is what `write` writes to the stream that it gets.
fn answer(out: ResponseOutparam, status: u16, write: impl FnOnce(wasip2::io::streams::OutputStream)) {
    let headers = Fields::from_list(&[("content-type".to_owned(), b"text/plain; charset=utf-8".to_vec())]);
    let response = OutgoingResponse::new(headers.expect("a header"));
    response.set_status_code(status).expect("a status");
    let body = response.body().expect("its body is taken once");
    ResponseOutparam::set(out, Ok(response));
    write(body.write().expect("its stream is taken once"));
    OutgoingBody::finish(body, None).expect("a whole body");
}

fn words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Nothing => "no orders\n".to_owned(),
        Refusal::Mistakes(mistakes) => {
            mistakes.iter().map(|mistake| format!("line {}: {}\n", mistake.line, mistake.reason)).collect()
        }
        Refusal::Broken(reason) => format!("broken: {reason}\n"),
    }
}
