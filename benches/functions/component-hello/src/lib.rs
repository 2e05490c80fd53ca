//! A component that answers HTTP requests with one byte through `wasi:http`.

use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};

wasip2::http::proxy::export!(Function);

struct Function;

impl Guest for Function {
    fn handle(_: IncomingRequest, response: ResponseOutparam) {
        let headers = [("content-length".to_owned(), b"1".to_vec())];
        let outgoing = OutgoingResponse::new(Fields::from_list(&headers).expect("a header"));
        let body = outgoing.body().expect("the body");
        ResponseOutparam::set(response, Ok(outgoing));
        let stream = body.write().expect("the stream");
        stream.blocking_write_and_flush(b"p").expect("room for a byte");
        drop(stream);
        OutgoingBody::finish(body, None).expect("all of it");
    }
}
