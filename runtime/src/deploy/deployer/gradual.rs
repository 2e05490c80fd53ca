//! Gradual deployments, as changes of what is served.

use std::sync::{Arc, Weak, mpsc};
use std::thread;

use serde_json::Value;

use super::{Change, DeployError, Deployer, Told, deployed, first_tier};
use crate::config;
use crate::deploy::canary;
use crate::deploy::catalogue::Candidate;
use crate::deploy::history::Deployed;
use crate::deploy::scope::{Client, Scope};
use crate::http::canary::{Counts, Share};

impl Deployer {
    /// Deploys as [`deploy`](Deployer::deploy) does, for a part of the requests. The others go to the version that is served, until the new one is [promoted](Deployer::promote), or given up: by a
    /// [rollback](Deployer::roll_back), or because it [is worse](crate::http::canary::is_worse). Not even then is anything kept of it for the next server.
    ///
    /// # Errors
    /// As for [`deploy`](Deployer::deploy), and where no version is served, or the new one would answer other requests.
    pub fn deploy_gradually(
        self: &Arc<Self>,
        name: &str,
        given: &Value,
        reset: bool,
        module: &[u8],
        (share, client): (Share, Client),
    ) -> Result<Change, DeployError> {
        let Client { author, scope } = client;
        let config = self.settled(name, given, reset, &scope)?;
        self.catalogue().check_gradual(&config)?;
        let (worse, told_worse) = mpsc::channel();
        let counts = Arc::new(Counts::new(worse));
        let watch = {
            let (deployer, name, watched) = (Arc::downgrade(self), name.to_owned(), Arc::downgrade(&counts));
            move || {
                // An error says that the deployment is over, and all that counted has gone.
                if told_worse.recv().is_ok()
                    && let Some(deployer) = deployer.upgrade()
                {
                    deployer.give_up_worse(&name, &watched);
                }
            }
        };
        thread::Builder::new().name("canary".to_owned()).spawn(watch).map_err(DeployError::Thread)?;
        let prepared = |candidate, told: &mut Told<'_>| self.try_out(candidate, module, author, (share, counts), told);
        self.prepare(name, given, reset, module, &scope, prepared)
    }

    /// Lets a part of the requests go to what was prepared. Within a change.
    fn try_out(
        &self,
        mut candidate: Candidate,
        module: &[u8],
        author: Option<String>,
        part: (Share, Arc<Counts>),
        told: &mut Told<'_>,
    ) -> Result<Change, DeployError> {
        let (config, tier) = (candidate.config.clone(), first_tier(&candidate));
        self.catalogue().check_deployed(&config)?;
        if let Some(store) = &self.store {
            // Where they cannot be read, that is said when it is kept.
            candidate.version = store.versions(&config.name).ok().and_then(|history| Some(history.present()?.version + 1));
        }
        let (retired, present, canary) = {
            let mut catalogue = self.catalogue();
            let present = deployed(&catalogue, &config.name)?;
            let retired = catalogue.try_out(candidate, module.into(), author, part)?;
            (retired, present, catalogue.canary(&config.name)?.progress())
        };
        self.publish(retired, told);
        let settings = present.map(|present| config::differences(&present, &config)).unwrap_or_default();
        tracing::info!(function = config.name, version = canary.version, percent = canary.percent, "deployed gradually");
        Ok(Change { settings, tier, canary: Some(canary), ..Change::default() })
    }

    /// Lets so many of a hundred requests go to the version that is being deployed gradually; without a number all, and then it is the one that is served.
    ///
    /// # Errors
    /// When none is. Or when the version cannot be kept for the next server: then nothing has changed.
    pub fn promote(&self, name: &str, percent: Option<u8>, scope: &Scope) -> Result<Change, DeployError> {
        let mut told = self.change();
        self.check_running()?;
        self.catalogue().check_name_in(scope, name)?;
        if let Some(percent) = percent {
            let canary = {
                let mut catalogue = self.catalogue();
                catalogue.set_percent(name, percent)?;
                catalogue.canary(name)?.progress()
            };
            self.publish(Vec::new(), &mut told);
            tracing::info!(function = name, version = canary.version, percent, "deployed gradually");
            return Ok(Change { canary: Some(canary), ..Change::default() });
        }
        let (config, module, digest, author) = {
            let catalogue = self.catalogue();
            let canary = catalogue.canary(name)?;
            (canary.config.clone(), Arc::clone(&canary.module), canary.digest, canary.author.clone())
        };
        let version = self.keep(&config, &module, &digest, Deployed { author, ..Deployed::default() })?;
        let (retired, settings) = {
            let mut catalogue = self.catalogue();
            let settings = deployed(&catalogue, name)?.map(|present| config::differences(&present, &config));
            (catalogue.promote(name, version)?, settings.unwrap_or_default())
        };
        let change = Change { replaced: vec![name.to_owned()], version, settings, ..Change::default() };
        self.publish(retired, &mut told);
        tracing::info!(%change, version, "deployed");
        Ok(change)
    }

    /// Gives a version up that fails more often than the one that is served, if it is still the one that was watched.
    fn give_up_worse(&self, name: &str, watched: &Weak<Counts>) {
        let mut told = self.change();
        if self.check_running().is_err() {
            return;
        }
        let mut catalogue = self.catalogue();
        let Ok(canary) = catalogue.canary(name) else { return };
        if !canary.is_counted_by(watched) {
            return;
        }
        let why = canary::verdict(&canary.progress());
        tracing::warn!(function = name, why, "the gradual deployment was given up");
        let retired = catalogue.give_up(name, Some(why)).unwrap_or_default();
        drop(catalogue);
        self.publish(retired, &mut told);
    }

    /// Gives up the version that is being deployed gradually, if one is.
    pub(super) fn give_up(&self, name: &str, scope: &Scope) -> Result<Option<Change>, DeployError> {
        let mut told = self.change();
        self.check_running()?;
        let mut catalogue = self.catalogue();
        catalogue.check_name_in(scope, name)?;
        let Ok(canary) = catalogue.canary(name) else { return Ok(None) };
        let given_up = canary.progress();
        let retired = catalogue.give_up(name, None)?;
        drop(catalogue);
        self.publish(retired, &mut told);
        tracing::info!(function = name, version = given_up.version, "the gradual deployment was given up");
        Ok(Some(Change { given_up: Some(given_up), ..Change::default() }))
    }
}
