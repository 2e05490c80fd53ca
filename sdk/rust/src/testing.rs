//! Tests of functions, natively: what a client would get, and what a function did besides. Everything belongs to this thread, and each test
//! of `cargo test` has one of its own.
//!
//! ```
//! use sledge::{Json, Request, testing};
//!
//! fn double(Json(number): Json<i32>) -> Json<i32> {
//!     Json(2 * number)
//! }
//!
//! let reply = testing::serve(&Request::new("POST", "/double").with_body("21"), double);
//! assert_eq!((reply.status, reply.text().as_str()), (200, "42"));
//! ```

use std::rc::Rc;

use crate::call;
use crate::fetch;
use crate::note::Level;
use crate::reply::{Failed, IntoReply, Outgoing, Reply};
use crate::request::{FromRequest, Request};
use crate::sys;

/// What a function answers to a request: as a client would get it, with status 500 and the reason where the function fails.
pub fn serve<'a, A: FromRequest<'a>, R: IntoReply>(request: &'a Request, function: impl FnOnce(A) -> R) -> Reply {
    sys::with(|world| {
        world.head = Some(request.head.clone());
        world.trailers.clone_from(&request.trailers);
    });
    let mut reply = Collected { reply: Reply::new(200), length: None };
    let result = match A::from_request(&request.body, || request.head.clone()) {
        Ok(argument) => function(argument).reply(&mut reply),
        Err(refused) => refused.reply(&mut reply),
    };
    match result {
        Ok(()) if reply.length.is_some_and(|length| length != reply.reply.body.len() as u64) => {
            let (said, written) = (reply.length.unwrap_or_default(), reply.reply.body.len());
            Reply::new(500).with_body(format!("{said} bytes were to be written, not {written}"))
        }
        Ok(()) => reply.reply,
        Err(Failed(why)) => Reply::new(500).with_body(why),
    }
}

/// There is a function of that name from now on, to be called by others.
pub fn provide(name: &str, function: impl Fn(&[u8]) -> Result<Vec<u8>, call::Error> + 'static) {
    sys::with(|world| world.functions.insert(name.to_owned(), Rc::new(function)));
}

/// There is a server of that name from now on (with `:PORT`, if URLs have one), to be asked.
pub fn upstream(host: &str, serve: impl Fn(&fetch::Request) -> Reply + 'static) {
    sys::with(|world| world.servers.insert(host.to_owned(), Rc::new(serve)));
}

/// What was logged.
#[must_use]
pub fn logged() -> Vec<(Level, String)> {
    sys::with(|world| world.logged.clone())
}

/// The phases that were begun, in order.
#[must_use]
pub fn phases() -> Vec<u32> {
    sys::with(|world| world.phases.clone())
}

/// Forgets everything: the store's entries, functions, messages.
pub fn forget() {
    sys::with(|world| *world = sys::World::default());
}

/// A reply that no client fetches.
struct Collected {
    reply: Reply,
    /// What was said about its body.
    length: Option<u64>,
}

impl Outgoing for Collected {
    fn status(&mut self, code: u16) -> Result<(), Failed> {
        sys::status(code).map_err(|_| Failed(format!("{code} is no status of a reply")))?;
        self.reply.status = code;
        Ok(())
    }

    fn header(&mut self, name: &str, value: &[u8]) -> Result<(), Failed> {
        sys::header(name, value).map_err(|error| Failed(format!("{name} is no header of a reply: error {error}")))?;
        self.reply.headers.push((name.to_ascii_lowercase(), value.to_vec()));
        Ok(())
    }

    fn trailer(&mut self, name: &str, value: &[u8], more: bool) -> Result<(), Failed> {
        sys::trailer(name, value, more).map_err(|error| Failed(format!("{name} is no trailer of a reply: error {error}")))?;
        let name = name.to_ascii_lowercase();
        if !more {
            self.reply.trailers.retain(|(known, _)| *known != name);
        }
        self.reply.trailers.push((name, value.to_vec()));
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        self.reply.body.extend_from_slice(bytes);
        Ok(())
    }

    fn stream(&mut self, length: Option<u64>) -> Result<(), Failed> {
        self.length = length;
        Ok(())
    }
}
