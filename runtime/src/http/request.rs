//! One request's life: routed, admitted, read, run, answered.

use std::time::Instant;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::sync::oneshot;

use super::router::Route;
use super::{Door, body, response};
use crate::outcome::Failure;
use crate::scheduler::{Job, Reply};

/// Answers a request. Dropping the future, as hyper does when the client goes away, drops the request or has it killed.
pub async fn answer(door: &Door, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, incoming) = request.into_parts();
    // From here on the request belongs to this version of the function, whatever is deployed meanwhile.
    let found = door.router.borrow().find(head.uri.path(), &head.method);
    let route = match found {
        Ok(route) => route,
        Err((failure, route)) => return response::failure(&failure, route.as_deref()),
    };
    let mut reply = match run(door, &route, incoming).await {
        Ok(reply) => reply,
        Err(failure) => return response::failure(&failure, Some(&route)),
    };
    let mut response = match std::mem::replace(&mut reply.result, Ok(Bytes::new())) {
        Ok(bytes) => response::success(bytes, &route.function.content_type),
        Err(failure) => response::failure(&failure, Some(&route)),
    };
    if head.headers.contains_key(response::TIMING_REQUEST) {
        response::add_timing(&mut response, &reply);
    }
    response
}

/// Takes a request in and has it run. What cannot be taken is refused before its body is read.
async fn run(door: &Door, route: &Route, incoming: Incoming) -> Result<Reply, Failure> {
    if body::is_declared_too_large(&incoming, door.body_bytes_max) {
        return Err(Failure::BodyTooLarge);
    }
    let admission = door.crew.admit(&route.function)?;
    let body = body::read(incoming, door.body_bytes_max, route.function.template.budget()).await?;
    let arrived = Instant::now();
    let function = route.function.clone();
    let (reply, answer) = oneshot::channel();
    let deadline = arrived + function.deadline;
    door.submit(Job { function, body, reply, arrived, deadline, admission });
    // The worker keeps the deadline of what it has started; this one is for what still waits in a queue.
    match tokio::time::timeout_at(deadline.into(), answer).await {
        Ok(Ok(reply)) => Ok(reply),
        // A worker that gives no answer has panicked.
        Ok(Err(_)) => Err(Failure::Internal),
        Err(_) => Err(Failure::Deadline),
    }
}
