//! One request's life: routed, admitted, read, run, answered.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderValue;
use hyper::{Method, Request, Response};
use tokio::sync::oneshot;

use super::patience::before;
use super::router::{Route, Site};
use super::{Door, access, body, response};
use crate::host::RequestHead;
use crate::outcome::Failure;
use crate::scheduler::{Job, Reply, ReplyTo};

/// The longest path; routes are much shorter.
const PATH_BYTES_MAX: usize = 8 << 10;

/// Answers a request. Dropping the future, as hyper does when the client goes away, drops the request or has it killed.
pub async fn answer(door: &Door, site: Site, request: Request<Incoming>) -> Response<Full<Bytes>> {
    if !door.access.log && !door.access.ids {
        return handle(door, site, request).await.0;
    }
    let begin = Instant::now();
    let seen = access::Seen::of(&request);
    let (mut response, function) = handle(door, site, request).await;
    if door.access.ids {
        seen.mark(&mut response);
    }
    if door.access.log {
        seen.log(&response, function.as_ref().map(|route| route.function.name()), response.body().size_hint().lower(), begin);
    }
    response
}

/// The answer, and what it is from, if anything.
async fn handle(door: &Door, site: Site, request: Request<Incoming>) -> (Response<Full<Bytes>>, Option<Arc<Route>>) {
    let (head, incoming) = request.into_parts();
    let path = head.uri.path();
    if path.len() > PATH_BYTES_MAX {
        door.board.thread().unrouted.add(1);
        return (response::failure(&Failure::PathTooLong, None), None);
    }
    // From here on the request belongs to this version of the function, whatever is deployed meanwhile.
    let found = door.router.borrow().find(site, path, &head.method);
    let route = match found {
        Ok(route) => route,
        // What may be asked for is answered by the server, unless the function wants to.
        Err((Failure::MethodNotAllowed, Some(route))) if head.method == Method::OPTIONS => {
            return (response::options(&route.options), Some(route));
        }
        Err((Failure::NotFound, None)) if head.method == Method::OPTIONS && path == "*" => {
            return (response::options(&HeaderValue::from_static("OPTIONS")), None);
        }
        Err((failure, route)) => {
            match &route {
                Some(route) => door.board.note(&route.function, |row| row.ended(Some(&failure))),
                None => door.board.thread().unrouted.add(1),
            }
            return (response::failure(&failure, route.as_deref()), route);
        }
    };
    let unanswered = Unanswered(Some((door, &route)));
    let is_timed = head.headers.contains_key(response::TIMING_REQUEST);
    let asked = || Box::new(RequestHead { method: head.method, target: head.uri, headers: head.headers });
    let asked = route.function.reads_head.then(asked);
    let result = run(door, &route, asked, incoming).await;
    let failure = result.as_ref().map_or_else(Some, |reply| reply.result.as_ref().err());
    unanswered.answered(failure);
    let mut reply = match result {
        Ok(reply) => reply,
        Err(failure) => return (response::failure(&failure, Some(&route)), Some(route)),
    };
    let mut response = match std::mem::replace(&mut reply.result, Ok(Bytes::new())) {
        Ok(bytes) => response::success(bytes, &route.function.content_type, reply.head.take()),
        Err(failure) => response::failure(&failure, Some(&route)),
    };
    if is_timed {
        response::add_timing(&mut response, &reply);
    }
    (response, Some(route))
}

/// A request that was routed: counted when it is answered, and also when its client goes before that.
struct Unanswered<'a>(Option<(&'a Door, &'a Route)>);

impl Unanswered<'_> {
    fn answered(mut self, failure: Option<&Failure>) {
        if let Some((door, route)) = self.0.take() {
            door.board.note(&route.function, |row| row.ended(failure));
        }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some((door, route)) = self.0 {
            door.board.note(&route.function, |row| row.ended(Some(&Failure::Cancelled)));
        }
    }
}

/// Takes a request in and has it run. What cannot be taken is refused before its body is read.
async fn run(door: &Door, route: &Route, head: Option<Box<RequestHead>>, incoming: Incoming) -> Result<Reply, Failure> {
    if body::is_declared_too_large(&incoming, door.body_bytes_max) {
        return Err(Failure::BodyTooLarge);
    }
    let admission = door.crew.admit(&route.function)?;
    let body = body::read(incoming, door.body_bytes_max, door.timeouts.body, route.function.template.budget()).await?;
    let arrived = Instant::now();
    let function = route.function.clone();
    let (reply, answer) = oneshot::channel();
    let deadline = arrived + function.deadline;
    door.submit(Job { function, head, body, reply: ReplyTo::Client(reply), arrived, deadline, admission, caller: None });
    // The worker keeps the deadline of what it has started; this one is for what still waits in a queue.
    match before(|| deadline, answer).await {
        Some(Ok(reply)) => Ok(reply),
        // A worker that gives no answer has panicked.
        Some(Err(_)) => Err(Failure::Internal),
        None => Err(Failure::Deadline),
    }
}
