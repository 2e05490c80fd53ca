//! `grpc.health.v1.Health`: whether the services of applications are served. The whole server, which has no name, is what `/readyz` says.

use std::rc::Rc;

use hyper::Method;

use super::{Call, Watching, unreadable};
use crate::grpc::health::{self, Serving};
use crate::grpc::{Code, Status};
use crate::http::{HttpService, Site};
use crate::outcome::Failure;
use crate::schedule::Phase;

/// `Check`.
pub(super) async fn check(call: &mut Call) -> Result<(), Status> {
    let name = health::service(call.requests.one().await?).map_err(unreadable)?;
    let unknown = || Status::new(Code::NotFound, format!("unknown service `{}`", name.escape_default()));
    let serving = serving(&call.service, call.site, &name).ok_or_else(unknown)?;
    call.send([health::one(serving)]).await;
    Ok(())
}

/// `List`.
pub(super) async fn list(call: &mut Call) -> Result<(), Status> {
    call.requests.one().await?;
    let mut names = vec![String::new()];
    for offer in call.service.router.borrow().offers(call.site) {
        names.extend(offer.services.iter().cloned());
    }
    let all = names.into_iter().filter_map(|name| serving(&call.service, call.site, &name).map(|serving| (name, serving)));
    let all = health::all(all);
    call.send([all]).await;
    Ok(())
}

/// `Watch`: what it is now, and then each change, until the client goes or the server stops.
pub(super) async fn watch(call: &mut Call) -> Result<(), Status> {
    let name = health::service(call.requests.one().await?).map_err(unreadable)?;
    let service = Rc::clone(&call.service);
    let _watching = Watching::begin(&service.watches)?;
    let (mut problems, mut stopped) = (service.ready.health.changes(), service.stopped.clone());
    let mut said = None;
    loop {
        // Before the look: what changes behind it is another change.
        let rerouted = service.rerouted.notified();
        problems.mark_unchanged();
        let stops = *stopped.borrow_and_update();
        let now = serving(&service, call.site, &name).unwrap_or(Serving::ServiceUnknown);
        if said.replace(now) != Some(now) {
            call.send([health::one(now)]).await;
        }
        if stops {
            return Err(Status::of(&Failure::Stopping, None));
        }
        tokio::select! {
            () = rerouted => {}
            Ok(()) = problems.changed() => {}
            Ok(()) = stopped.changed() => {}
        }
    }
}

/// Whether a service is served at an address; none where it is not known there.
fn serving(service: &HttpService, site: Site, name: &str) -> Option<Serving> {
    let runs = service.dispatcher.phase() == Phase::Serving;
    let is_served = if name.is_empty() {
        service.ready.is_ready()
    } else {
        let router = service.router.borrow();
        if !router.offers(site).iter().any(|offer| offer.has(name)) {
            return None;
        }
        // As a call of one of its methods would be.
        router.find(site, &format!("/{name}/"), &Method::POST).is_ok()
    };
    Some(if runs && is_served { Serving::Serving } else { Serving::NotServing })
}
