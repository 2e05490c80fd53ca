//! Gradual deployments: the next version of a function beside the one that is served, and how it goes on. Knows no files.

use std::sync::{Arc, Weak};

use hyper::header::HeaderName;
use serde::Serialize;
use sledge_sandbox::Budget;

use crate::config::FunctionConfig;
use crate::http::canary::{Counts, Share, Split, Tally};
use crate::http::{Policy, Route};
use crate::invoke::function::Function;
use crate::workflow::{Reach, Workflow};

/// The next version of a function, which answers a part of its requests.
#[derive(Debug)]
pub struct Canary {
    /// Its settings.
    pub config: FunctionConfig,
    /// Hash of its module.
    pub digest: blake3::Hash,
    /// The module, for when it is served whole and kept.
    pub module: Arc<[u8]>,
    /// The author, as the client named it.
    pub author: Option<String>,
    /// The number that it gets, if nothing else is deployed before.
    pub(super) version: u64,
    pub(super) function: Arc<Function>,
    pub(super) share: Share,
    pub(super) counts: Arc<Counts>,
}

/// A gradual deployment, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Number of the next version.
    pub version: u64,
    /// BLAKE3 of its module.
    pub digest: String,
    /// How many of a hundred requests go to it.
    pub percent: u8,
    /// The header whose value says which requests these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<String>,
    /// What it has answered.
    #[serde(flatten)]
    pub answered: Tally,
    /// What the version that is served has answered meanwhile.
    pub present: Tally,
}

impl Canary {
    /// How it goes on.
    pub(super) fn progress(&self) -> Progress {
        let [present, answered] = self.counts.tallies();
        Progress {
            version: self.version,
            digest: self.digest.to_hex().to_string(),
            percent: self.share.percent,
            sticky: self.share.sticky.as_ref().map(HeaderName::to_string),
            answered,
            present,
        }
    }

    /// Whether it is the one that these count for.
    pub(super) fn is_counted_by(&self, counts: &Weak<Counts>) -> bool {
        std::ptr::eq(Weak::as_ptr(counts), Arc::as_ptr(&self.counts))
    }

    /// The setting that keeps this from being the next version of that one beside it: both answer the same requests.
    pub(super) fn differs_in(before: &FunctionConfig, next: &FunctionConfig) -> Option<&'static str> {
        let settings = [
            ("route", before.routes() == next.routes()),
            ("listen", before.site() == next.site()),
            ("methods", before.methods == next.methods),
            ("tenant", before.tenant == next.tenant),
        ];
        settings.into_iter().find(|(_, is_same)| !is_same).map(|(name, _)| name)
    }
}

/// The routes of a function, of which a part of the requests goes to a canary if there is one. Memory that replies need is claimed of `budget`; `reach` is what workflows of its tenant reach.
pub(super) fn routes(
    config: &FunctionConfig,
    function: &Arc<Function>,
    canary: Option<&Canary>,
    budget: &Arc<Budget>,
    reach: &Reach,
) -> Vec<Arc<Route>> {
    let plain = |path: &str, config: &FunctionConfig, function: &Arc<Function>| {
        let mut route = Route::new(path, &config.methods, Arc::clone(function));
        route.policy = Policy::of(config, &route.allow, budget);
        route.asynchronous = Workflow::of_requests(config, reach).map(Arc::new);
        route
    };
    let route = |path: &String| {
        let route = plain(path, config, function);
        let Some(Canary { config, function, share, counts, .. }) = canary else { return Arc::new(route) };
        let next = plain(path, config, function).with_split(Split::canary(Arc::clone(counts)));
        Arc::new(route.with_split(Split::present(Arc::clone(counts), share.clone(), Arc::new(next))))
    };
    config.routes().iter().map(route).collect()
}

/// Why a canary was given up, in words: what it has answered, beside the version that is served.
pub(super) fn verdict(Progress { version, answered, present, .. }: &Progress) -> String {
    let rate = |tally: &Tally| {
        let percent = 100.0 * tally.failures as f64 / tally.requests.max(1) as f64;
        format!("{percent:.1} % of {} requests", tally.requests)
    };
    format!("version {version} was given up: {} failed, and {} of the version that is served", rate(answered), rate(present))
}
