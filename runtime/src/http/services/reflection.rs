//! `grpc.reflection.v1.ServerReflection`, and the same as `v1alpha`: what the services of applications are.

use std::sync::Arc;

use super::{Call, unreadable};
use crate::grpc::Status;
use crate::grpc::reflection::Session;
use crate::outcome::Failure;

/// `ServerReflectionInfo`: an answer to each question, until there are no more or the server stops.
pub(super) async fn answer(call: &mut Call) -> Result<(), Status> {
    let offers = call.service.router.borrow().offers(call.site).iter().filter(|offer| offer.reflects).map(Arc::clone).collect();
    let mut session = Session::new(offers);
    let mut stopped = call.service.stopped.clone();
    loop {
        let message = tokio::select! {
            biased;
            message = call.requests.next() => message?,
            _ = stopped.wait_for(|stops| *stops) => return Err(Status::of(&Failure::Stopping, None)),
        };
        let Some(message) = message else { return Ok(()) };
        let answer = session.answer(message).map_err(unreadable)?;
        call.send(answer).await;
    }
}
