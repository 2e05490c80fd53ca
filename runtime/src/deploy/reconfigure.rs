//! What a configuration that was read anew makes of the functions that are served, one step after the other. Of two that want the same name or the same
//! route, one that can be served comes before one that cannot, and the configuration's before a deployed one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::catalogue::{Candidate, Catalogue, Origin};
use super::deployer::Change;
use super::grants::{Grants, Look};
use super::loading::{self, Stored};
use super::quarantine::Unusable;
use crate::config::FunctionConfig;
use crate::http::{Folder, Redirect, Site};
use crate::invoke::function::Function;
use crate::workflow::Defined;
use crate::workflow::durable::timetable::Scheduled;

/// A change that is being made.
pub(super) struct Reload<'a> {
    catalogue: &'a mut Catalogue,
    /// Whether what was deployed is kept on disk.
    is_lasting: bool,
    change: Change,
    retired: Vec<Arc<Function>>,
    /// Deployed functions whose names the configuration has now.
    displaced: HashSet<String>,
}

impl<'a> Reload<'a> {
    pub(super) fn new(catalogue: &'a mut Catalogue, is_lasting: bool) -> Reload<'a> {
        Reload { catalogue, is_lasting, change: Change::default(), retired: Vec::new(), displaced: HashSet::new() }
    }

    /// What has changed, and what is served no longer.
    pub(super) fn end(self) -> (Change, Vec<Arc<Function>>) {
        (self.change, self.retired)
    }

    /// Removes what the configuration has no longer; what was wrong with the others is forgotten.
    pub(super) fn remove_all_but(&mut self, functions: &[FunctionConfig]) {
        let names: HashSet<&str> = functions.iter().map(|function| function.name.as_str()).collect();
        let quarantined = self.catalogue.quarantined().iter().filter(|(_, origin, _)| *origin == Origin::Config);
        let quarantined: Vec<String> = quarantined.map(|(name, ..)| name.to_owned()).collect();
        let mut gone: Vec<String> = self.catalogue.names(Origin::Config).map(str::to_owned).collect();
        gone.extend(quarantined);
        gone.sort();
        gone.dedup();
        for name in gone {
            self.catalogue.release(&name, Origin::Config);
            if !names.contains(name.as_str()) {
                self.retired.extend(self.catalogue.remove(&name, Origin::Config).unwrap_or_default());
                self.change.removed.push(name);
            }
        }
    }

    /// Deployed functions in the way of one of the configuration are served no longer. They are there again when the configuration leaves them room.
    pub(super) fn make_way(&mut self, function: &FunctionConfig) {
        for other in self.catalogue.in_the_way_of(function) {
            let has_name = other.name == function.name;
            if self.is_lasting {
                let unusable = Unusable::new(&other, loading::in_the_shadow_of(&other, &function.name));
                self.retired.extend(self.catalogue.quarantine(unusable, Origin::Deployed, false));
            } else {
                tracing::warn!(
                    function = other.name,
                    "the configured function replaces the deployed one, which is lost without state_dir"
                );
                self.retired.extend(self.catalogue.remove(&other.name, Origin::Deployed).unwrap_or_default());
            }
            match (has_name, self.is_lasting) {
                (true, _) => {
                    self.displaced.insert(other.name);
                }
                (false, true) => self.change.quarantined.push(other.name),
                (false, false) => self.change.removed.push(other.name),
            }
        }
    }

    /// Paths at which the server itself answers. Deployed functions that have them are served no longer; they are there again when the configuration leaves them room.
    pub(super) fn answer_itself(
        &mut self,
        redirects: Vec<(Site, Arc<Redirect>)>,
        folders: Vec<(Site, Folder)>,
        workflows: Vec<Defined>,
    ) {
        self.change.redirects = self.catalogue.set_redirects(redirects);
        self.change.folders = self.catalogue.set_folders(folders);
        self.change.workflows = self.catalogue.set_workflows(workflows);
        for (function, error) in self.catalogue.in_the_way_of_the_server() {
            if self.is_lasting {
                let unusable = Unusable::new(&function, error);
                self.retired.extend(self.catalogue.quarantine(unusable, Origin::Deployed, false));
                self.change.quarantined.push(function.name);
            } else {
                tracing::warn!(function = function.name, "{error}; the deployed function is lost without state_dir");
                self.retired.extend(self.catalogue.remove(&function.name, Origin::Deployed).unwrap_or_default());
                self.change.removed.push(function.name);
            }
        }
    }

    /// These are the schedules.
    pub(super) fn keep(&mut self, schedules: Vec<Arc<Scheduled>>) {
        self.catalogue.set_schedules(schedules);
    }

    /// Serves one that is new, or its next version.
    pub(super) fn put(&mut self, candidate: Candidate) {
        let name = candidate.config.name.clone();
        let before = self.catalogue.put(candidate, Origin::Config);
        let is_new = before.is_empty() && !self.displaced.contains(&name);
        self.retired.extend(before);
        if is_new { self.change.added.push(name) } else { self.change.replaced.push(name) }
    }

    /// One that cannot be served: the version that is served stays, unless another function of the configuration has its route now.
    pub(super) fn keep_or_quarantine(&mut self, unusable: Unusable) {
        let name = unusable.config.name.clone();
        let served = self.catalogue.get(&name).map(|entry| (entry.origin, self.catalogue.has_configured_at(&entry.config)));
        let still = match served {
            Some((Origin::Config, false)) => "; the previous version stays in service",
            Some((Origin::Deployed, _)) => "; the deployed function stays in service",
            _ => "",
        };
        let reason = format!("{}{still}", unusable.reason);
        let kept = served == Some((Origin::Config, false));
        self.retired.extend(self.catalogue.quarantine(Unusable { reason, ..unusable }, Origin::Config, kept));
        self.change.quarantined.push(name);
    }

    /// Deployed functions have what these grants say, or are not served. `anew` has those of them that were loaded once more, since that is somewhere else now or has changed.
    pub(super) fn grant(&mut self, grants: &Grants, mut anew: HashMap<String, Stored>) {
        let canaries: Vec<FunctionConfig> = self.catalogue.canaries().cloned().collect();
        for canary in canaries.iter().filter(|canary| grants.look(canary) != Look::Same) {
            let why = "the grants of its tenant have changed; deploy it again".to_owned();
            tracing::warn!(function = canary.name, why, "the gradual deployment was given up");
            self.retired.extend(self.catalogue.give_up(&canary.name, Some(why)).unwrap_or_default());
        }
        let names: Vec<String> = self.catalogue.names(Origin::Deployed).map(str::to_owned).collect();
        for name in names {
            let Some(entry) = self.catalogue.get(&name) else { continue };
            let (config, version) = (entry.config.clone(), (entry.version(), entry.digest));
            let (now, is_same) = match grants.look(&config) {
                Look::Same => (config.clone(), true),
                Look::Otherwise(now) => (*now, false),
                Look::Refused(refused) => {
                    self.refuse(&config, &refused);
                    continue;
                }
            };
            // Another version may have been deployed meanwhile.
            let is_it = |candidate: &Candidate| {
                let found = FunctionConfig { path: now.path.clone(), ..candidate.config.clone() };
                found == now && version == (candidate.version.unwrap_or_default(), candidate.digest)
            };
            match anew.remove(&name) {
                Some(Ok(candidate)) if is_it(&candidate) => {
                    self.retired.extend(self.catalogue.put(candidate, Origin::Deployed));
                    self.change.replaced.push(name);
                }
                Some(Err(unusable)) if is_same => {
                    let reason = format!("{}; the previous version stays in service", unusable.reason);
                    let unusable = Unusable { config, reason, has_settings: true };
                    self.retired.extend(self.catalogue.quarantine(unusable, Origin::Deployed, true));
                    self.change.quarantined.push(name);
                }
                Some(Err(unusable)) => self.refuse(&config, &unusable.reason),
                _ if is_same => {}
                _ => self
                    .refuse(&config, &"its folders or secrets are granted somewhere else now; deploy it again, or send SIGHUP"),
            }
        }
    }

    /// A deployed function is served no longer.
    fn refuse(&mut self, config: &FunctionConfig, why: &dyn std::fmt::Display) {
        self.retired.extend(self.catalogue.quarantine(Unusable::new(config, why), Origin::Deployed, false));
        self.change.quarantined.push(config.name.clone());
    }

    /// A deployed one that was quarantined, known by that number then, as it was found now.
    pub(super) fn restore(&mut self, name: &str, version: u64, found: Option<Stored>) {
        let now = self.catalogue.quarantined().get(name, Origin::Deployed).map(|quarantined| quarantined.version);
        match found {
            // Another change was made meanwhile.
            _ if now != Some(version) => {}
            Some(found) => {
                loading::settle(self.catalogue, found);
                if self.catalogue.get(name).is_some_and(|entry| entry.origin == Origin::Deployed) {
                    self.change.added.push(name.to_owned());
                }
            }
            None => {
                self.catalogue.release(name, Origin::Deployed);
                self.change.removed.push(name.to_owned());
            }
        }
    }
}
