//! Functions as the configuration, the disk or a client has them, loaded; where that is not possible, why. Knows nothing of threads.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use prost_reflect::DescriptorPool;
use sledge_sandbox::Budget;

use super::catalogue::{Candidate, Catalogue, CatalogueError, Origin};
use super::grants::Grants;
use super::quarantine::Unusable;
use super::store::Store;
use crate::compile::Compiler;
use crate::config::{self, ApplicationConfig, Config, FunctionConfig, WorkflowConfig};
use crate::grpc::{Descriptors, Offer};
use crate::health::Health;
use crate::http::{Folder, Redirect, Site};
use crate::invoke::loaded::Loaded;
use crate::load::{self, OpenError};
use crate::workflow::durable::timetable::Scheduled;
use crate::workflow::{self, Defined};

/// What the applications of a configuration offer to clients that speak gRPC, and where.
pub(super) fn offers(config: &Config) -> Vec<(Site, Arc<Offer>)> {
    config.applications.iter().map(|application| (application.site(), Arc::new(offer(application)))).collect()
}

/// Paths of a configuration that have moved.
pub(super) fn redirects(config: &Config) -> Vec<(Site, Arc<Redirect>)> {
    config.redirects.iter().map(|redirect| (redirect.site(), Arc::new(Redirect::new(redirect)))).collect()
}

/// Workflows of a configuration, with what their files say or what is wrong with them.
pub(super) fn workflows(config: &Config) -> Vec<Defined> {
    let read = |config: &WorkflowConfig| {
        let definition = workflow::read(config);
        if let Err(problem) = &definition {
            tracing::error!(workflow = config.name, "quarantined, clients get 503: {problem}");
        }
        (config.clone(), definition)
    };
    config.workflows.iter().map(read).collect()
}

/// Schedules of a configuration.
pub(super) fn schedules(config: &Config) -> Vec<Arc<Scheduled>> {
    config.schedules.iter().filter_map(Scheduled::new).map(Arc::new).collect()
}

/// Folders of a configuration whose files the server sends.
pub(super) fn folders(config: &Config, budget: &Arc<Budget>, health: &Arc<Health>) -> Vec<(Site, Folder)> {
    config.folders.iter().map(|folder| (folder.site(), Folder::new(folder, budget, health))).collect()
}

fn offer(application: &ApplicationConfig) -> Offer {
    let ApplicationConfig { reflection: reflects, message_bytes_max, ref cors_origins, .. } = *application;
    let (services, cors_origins) = (application.services(), cors_origins.clone());
    let mut offer = Offer { services, reflects, cors_origins, message_bytes_max, ..Offer::default() };
    if let Err(error) = describe(application, &mut offer) {
        // It was good when the configuration was checked.
        let file = application.descriptors();
        tracing::error!(application = application.name, file = %file.display(), error, "clients are not told of its .proto files");
    }
    offer
}

/// Adds what the .proto files say, if there are any.
fn describe(application: &ApplicationConfig, offer: &mut Offer) -> Result<(), String> {
    let bytes = config::descriptors_of(application).map_err(|error| error.to_string())?;
    let Some(bytes) = bytes.filter(|_| !application.protos.is_empty()).map(Bytes::from) else { return Ok(()) };
    offer.pool = Some(DescriptorPool::decode(bytes.clone()).map_err(|error| error.to_string())?);
    if offer.reflects {
        offer.descriptors = Some(Descriptors::new(bytes, &offer.services).map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// A deployed function as it was found on disk.
pub(super) type Stored = Result<Candidate, Box<Unusable>>;

/// A function of which the module was read already.
pub(super) fn candidate(config: &FunctionConfig, bytes: &[u8], compiler: &Compiler) -> Result<Candidate, OpenError> {
    candidate_by(load::function_of, config, bytes, compiler)
}

/// The same of a function whose code is not exchanged later.
pub(super) fn candidate_in_one_tier(config: &FunctionConfig, bytes: &[u8], compiler: &Compiler) -> Result<Candidate, OpenError> {
    candidate_by(load::function_in_one_tier, config, bytes, compiler)
}

fn candidate_by(
    load: impl FnOnce(&[u8], &FunctionConfig, &Compiler) -> Result<(Loaded, Option<bool>), OpenError>,
    config: &FunctionConfig,
    bytes: &[u8],
    compiler: &Compiler,
) -> Result<Candidate, OpenError> {
    let began = Instant::now();
    let (loaded, cached) = load(bytes, config, compiler)?;
    let tier = loaded.tier().name();
    tracing::info!(function = config.name, route = config.shown_routes(), cached, tier, took = ?began.elapsed(), "loaded");
    Ok(Candidate { config: config.clone(), digest: blake3::hash(bytes), version: None, loaded, module: None })
}

/// A function of the configuration, which stands there under the key `at`.
pub(super) fn configured(at: &str, config: &FunctionConfig, compiler: &Compiler) -> Result<Candidate, Box<Unusable>> {
    config::check_granted(at, config).map_err(|error| unusable(config, &error))?;
    // Why a file cannot be read is said as for any other key.
    let better = |error: OpenError| match config::check_usable(at, config) {
        Ok(()) => unusable(config, &error),
        Err(better) => unusable(config, &better),
    };
    read(config, compiler).map_err(better)
}

/// A deployed function, which is not loaded where it is in the shadow of one of the configuration; none where there is none.
pub(super) fn stored(store: &Store, name: &str, is_shadowed: bool, grants: &Grants, compiler: &Compiler) -> Option<Stored> {
    Some(store.function(name)?.and_then(|config| {
        let config = grants.apply(config.clone()).map_err(|refused| unusable(&config, &refused))?;
        if is_shadowed {
            Err(unusable(&config, &shadowed(name)))
        } else {
            // Versions that cannot be read are reported where they are asked for.
            let version = store.versions(name).ok().and_then(|history| Some(history.present()?.version));
            let candidate = read(&config, compiler).map_err(|error| unusable(&config, &error))?;
            Ok(Candidate { version, ..candidate })
        }
    }))
}

/// A deployed function becomes a part of what is served, or is quarantined.
pub(super) fn settle(catalogue: &mut Catalogue, found: Stored) {
    let found = found.and_then(|candidate| match catalogue.check(&candidate.config, Origin::Deployed) {
        Ok(()) => Ok(candidate),
        Err(error) => Err(unusable(&candidate.config, &in_the_way(&candidate.config, &error))),
    });
    // Nothing was served under its name.
    let _ = match found {
        Ok(candidate) => catalogue.put(candidate, Origin::Deployed),
        Err(unusable) => catalogue.quarantine(*unusable, Origin::Deployed, false),
    };
}

/// Why a deployed function is not served beside that one of the configuration, and what to do.
pub(super) fn in_the_shadow_of(config: &FunctionConfig, configured: &str) -> String {
    let name = &config.name;
    if name == configured {
        return shadowed(name);
    }
    let route = config.shown_routes();
    format!(
        "its route {route} belongs to `{configured}`; remove the function (`sledge remove {name}`), or deploy it with another route (--set route=)"
    )
}

fn in_the_way(config: &FunctionConfig, error: &CatalogueError) -> String {
    match error {
        CatalogueError::Configured(other) | CatalogueError::Route { other, .. } => in_the_shadow_of(config, other),
        error => error.to_string(),
    }
}

fn shadowed(name: &str) -> String {
    format!(
        "the configuration has a function of the same name, which takes precedence; `sledge remove {name}` removes the deployed one"
    )
}

fn read(config: &FunctionConfig, compiler: &Compiler) -> Result<Candidate, OpenError> {
    candidate(config, &load::read(&config.path)?, compiler)
}

fn unusable(config: &FunctionConfig, reason: &impl fmt::Display) -> Box<Unusable> {
    Box::new(Unusable::new(config, reason))
}
