//! Pinning: an execution calls the versions of functions with which it began, also when others are served.
//!
//! ```text
//!   start, repin --pin--> served versions -> Keeper::keep -> Set -> Pins of the execution -> its next commit
//!   task --version--> the served one, if it has the digest | Keeper::load | missing: the task waits
//!   purge --sweep--> what no execution holds -> Keeper::sweep
//! ```
//!
//! What holds: the file of a version is on the disk before an execution that is pinned to it has begun, and before a task calls a function that only its input names. No other version is called in
//! place of one that is missing. A version that cannot be kept is not pinned, and the log says so: to refuse the execution would turn a full folder into an outage.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use blake3::Hash;
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::Failure;

use super::back_off::BackOff;
use super::core::Core;
use super::journal::{self, Place, Summary};
use super::pins::{Pins, Set};
use super::task::Of;
use super::{Executions, Refused};
use crate::blocking;
use crate::invoke::function::Function;
use crate::kv::KvError;
use crate::workflow::function::Asked;
use crate::workflow::keeper::{Keeper, NotKept};
use crate::workflow::{Runner, Workflow};

/// Sets that are removed in one commit.
const REMOVED_MAX: usize = 1_000;
/// How long a task waits before it looks again for a version that is missing: the first time, and at most.
const MISSING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A version to which an execution is pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The function.
    pub function: Arc<str>,
    /// BLAKE3 of the file from which the version was made.
    pub digest: Hash,
    /// Whether that version is the one that is served.
    pub is_served: bool,
}

/// What a task finds that calls a function.
pub(super) enum Found {
    /// The version to call.
    Version(Arc<Function>),
    /// There is no such function, or it is quarantined.
    Failed(Failure),
    /// The version to which the execution is pinned cannot be had now.
    Missing(Missing),
}

/// A version that cannot be had now.
pub(super) struct Missing {
    digest: Hash,
    why: String,
}

impl Executions {
    /// What an execution is pinned to, as far as the journal knows it still.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn pinned(&self, place: &Place, summary: &Summary) -> Result<Vec<Pinned>, Refused> {
        let (id, numbers) = (summary.id, summary.pins.clone());
        let sets = self.read(move |journal| {
            // The checkpoint has also what was pinned later.
            let numbers = journal.glance(id)?.map_or(numbers, |glance| glance.pins);
            numbers.into_iter().map(|number| journal.pins(number)).collect::<Result<Vec<_>, _>>()
        });
        let sets = sets.await?;
        let functions = self.tenants().get(&place.tenant).map(|reach| Arc::clone(&reach.functions));
        let served = |name: &str| functions.as_ref()?.find(name).ok()?.digest;
        let versions = sets.iter().flatten().flat_map(Set::versions);
        Ok(versions
            .map(|(function, digest)| Pinned {
                function: Arc::clone(function),
                digest: *digest,
                is_served: served(function) == Some(*digest),
            })
            .collect())
    }
}

/// A version that is served, and that can be pinned.
type Served = (Arc<str>, Hash, Arc<Function>);

/// The function of that name, if it is served and made of a file. What is not served is pinned when a task calls it.
fn served(workflow: &Workflow, name: &Arc<str>) -> Option<Served> {
    let function = workflow.reach.functions.find(name).ok()?;
    Some((Arc::clone(name), function.digest?, function))
}

impl<R: Runner + 'static> Core<R> {
    fn keeper(&self) -> Option<&Arc<dyn Keeper>> {
        self.executions.0.keeper.get()
    }

    /// What an execution of that definition is pinned to that begins now.
    pub(super) async fn pin(&self, workflow: &Workflow, definition: &Definition) -> Result<Rc<Pins>, Refused> {
        let names = self.pins.names(definition);
        self.pin_to(workflow, &names).await
    }

    /// The versions of these functions that are served now, kept.
    async fn pin_to(&self, workflow: &Workflow, names: &[Arc<str>]) -> Result<Rc<Pins>, Refused> {
        let none = || Pins::new(&self.pins, Vec::new());
        let Some(keeper) = self.keeper() else { return Ok(none()) };
        let is_tried = |(_, digest, _): &Served| self.pins.keeps(digest) || !self.pins.refused.has(digest);
        let all_served = || names.iter().filter_map(|name| served(workflow, name)).filter(is_tried).collect::<Vec<_>>();
        let mut versions = all_served();
        // Held until the execution holds them, so that they are not removed in between. Where all are kept already, nothing comes in between.
        let _gate;
        if !versions.iter().all(|(_, digest, _)| self.pins.keeps(digest)) {
            _gate = self.pins.gate.lock().await;
            versions = Vec::new();
            for version in all_served() {
                // Those of which this execution has no hold yet are needed, too.
                let needed: Vec<Hash> = versions.iter().map(|(_, digest, _): &Served| *digest).collect();
                if self.keep(keeper, workflow, &version, &needed).await {
                    versions.push(version);
                }
            }
        }
        if versions.is_empty() {
            return Ok(none());
        }
        let set = Set::new(versions.into_iter().map(|(name, digest, _)| (name, digest)).collect());
        Ok(Pins::new(&self.pins, vec![self.numbered(set)?]))
    }

    /// Has a version kept, within the gate, beside those that are `needed` already. Whether it is.
    async fn keep(&self, keeper: &Arc<dyn Keeper>, workflow: &Workflow, version: &Served, needed: &[Hash]) -> bool {
        let (name, digest, function) = version;
        if self.pins.keeps(digest) {
            return true;
        }
        let kept = || {
            let (keeper, function) = (Arc::clone(keeper), Arc::clone(function));
            blocking::run(move || keeper.keep(&function))
        };
        let mut result = kept().await;
        if matches!(result, Err(NotKept::Full(_))) {
            self.sweep_within(keeper, needed, true).await;
            result = kept().await;
        }
        match result {
            Ok(()) => self.pins.kept(*digest),
            Err(error) => {
                self.pins.refused.note(digest);
                let (workflow, function) = (&*workflow.config.name, &**name);
                tracing::warn!(workflow, function, %digest, "executions that begin now are not pinned to the function: {error}");
            }
        }
        self.pins.keeps(digest)
    }

    /// A set with its number. Another set that has this number, which chance hardly brings about, leaves it the next one.
    fn numbered(&self, set: Set) -> Result<(u64, Arc<Set>), KvError> {
        let mut number = set.number();
        let set = Arc::new(set);
        loop {
            let known = match self.pins.find(number) {
                Some(known) => Some(known),
                None => self.journal().pins(number)?.map(Arc::new),
            };
            match known {
                Some(known) if *known == *set => {
                    self.pins.know(number, &known);
                    return Ok((number, known));
                }
                Some(_) => number = number.wrapping_add(1),
                None => {
                    self.pins.know(number, &set);
                    return Ok((number, set));
                }
            }
        }
    }

    /// Sets that the journal has, held.
    pub(super) fn pins_of(&self, numbers: &[u64]) -> Result<Rc<Pins>, Refused> {
        let missing = || Refused::Unavailable("what the execution is pinned to is not in the journal".to_owned());
        let mut sets = Vec::with_capacity(numbers.len());
        for number in numbers {
            let set = match self.pins.find(*number) {
                Some(set) => set,
                None => Arc::new(self.journal().pins(*number)?.ok_or_else(missing)?),
            };
            self.pins.know(*number, &set);
            sets.push((*number, set));
        }
        Ok(Pins::new(&self.pins, sets))
    }

    /// Whether an execution with these pins calls that version, which is served, and nothing is to be pinned or loaded for that.
    pub(super) fn calls_served(&self, pins: &Pins, function: &Function) -> bool {
        let Some((_, digest)) = self.keeper().zip(function.digest) else { return true };
        // What cannot be pinned is called as it is served.
        pins.find(function.name()).map_or_else(|| !pins.has_room() || self.pins.refused.has(&digest), |pinned| pinned == digest)
    }

    /// The version that a task calls. One that is not pinned yet is pinned now.
    pub(super) async fn version(&self, workflow: &Workflow, pins: &Pins, asked: &Asked<'_>) -> Found {
        loop {
            let served = match asked.find(workflow) {
                Ok(served) => served,
                // Removed, or quarantined without a version that is served: an operator's doing, as for executions that are not pinned.
                Err(failure) => return Found::Failed(failure),
            };
            let Some((keeper, digest)) = self.keeper().zip(served.digest) else { return Found::Version(served) };
            match pins.find(asked.name) {
                Some(pinned) if pinned == digest => return Found::Version(served),
                Some(pinned) => {
                    let (keeper, tenant, name) = (Arc::clone(keeper), workflow.config.tenant.clone(), asked.name.to_owned());
                    // Each takes a thread for as long as it loads. The semaphore is never closed.
                    let _place = self.pins.loads.acquire().await;
                    let loaded = blocking::run(move || keeper.load(&tenant, &name, &pinned)).await;
                    // It may have been pinned to another meanwhile.
                    if pins.find(asked.name) == Some(pinned) {
                        return loaded.map_or_else(|why| Found::Missing(Missing { digest: pinned, why }), Found::Version);
                    }
                }
                None => {
                    let name: Arc<str> = asked.name.into();
                    let pinned =
                        if pins.has_room() { self.pin_to(workflow, std::slice::from_ref(&name)).await.ok() } else { None };
                    match pinned {
                        Some(pinned) if !pinned.is_empty() => {
                            // Another task may have been first.
                            if pins.find(asked.name).is_none() && pins.has_room() {
                                pins.add_all(&pinned);
                            }
                        }
                        _ => return Found::Version(served),
                    }
                }
            }
        }
    }

    /// The pauses between looks for a version that is missing.
    pub(super) const fn missing_back_off() -> BackOff {
        BackOff::new(MISSING.0, MISSING.1)
    }

    /// Waits until a version that is missing may be there, or the execution is pinned to another; none where the server stops.
    pub(super) async fn wait_for_version(
        &self,
        execution: &Of,
        name: &str,
        missing: Missing,
        back_off: &mut BackOff,
    ) -> Option<()> {
        // Made before anything else happens: no change is missed.
        let moved = execution.pins.moved.notified();
        let Missing { digest, why } = missing;
        if self.pins.told.note(&digest) {
            let elsewhere = if self.term.is_leased() {
                ". Servers of a store in Redis keep files each for itself: copy it from `pinned` in the `state_dir` of one that has called the version"
            } else {
                ""
            };
            let Place { tenant, workflow, name: execution } = &execution.place;
            tracing::error!(
                execution = &**execution,
                function = name,
                %digest,
                "tasks wait for the version to which their executions are pinned: {why}{elsewhere}; put that right, or move the executions to the version that is \
                 served: sledge workflow repin {workflow} {execution} --tenant {tenant}"
            );
        }
        self.unless_stopping(async {
            tokio::select! {
                () = back_off.pause() => {}
                () = moved => {}
            }
        })
        .await
    }

    /// What an execution is pinned to that is redriven: to what it was, if all of that is there still; otherwise to what is served now.
    pub(super) async fn pin_again(&self, place: &Place, summary: &Summary) -> Result<Option<Rc<Pins>>, Refused> {
        let Some(keeper) = self.keeper() else { return Ok(None) };
        let Some(glance) = self.journal().glance(summary.id)? else { return Ok(None) };
        let workflow = self.executions.workflow(&place.tenant, &place.workflow).ok_or(Refused::NoWorkflow)?;
        if let Ok(before) = self.pins_of(&glance.pins) {
            // Nothing is removed while it is looked for, and afterwards it is held.
            let _gate = self.pins.gate.lock().await;
            if self.are_there(keeper, &workflow, before.versions()).await {
                return Ok(Some(before));
            }
        }
        tracing::info!(
            execution = &*place.name,
            "what the execution was pinned to is not kept any more: it is redriven with what is served now"
        );
        let definition = self.definition(&workflow, summary.definition)?;
        self.pin(&workflow, &definition).await.map(Some)
    }

    /// Whether all these versions are kept, within the gate. Those that are served are kept again.
    async fn are_there(&self, keeper: &Arc<dyn Keeper>, workflow: &Workflow, versions: Vec<(Arc<str>, Hash)>) -> bool {
        for (name, digest) in versions {
            let is_there = match served(workflow, &name).filter(|(_, served, _)| *served == digest) {
                Some(version) => self.keep(keeper, workflow, &version, &[]).await,
                None => {
                    let keeper = Arc::clone(keeper);
                    blocking::run(move || keeper.has(&digest)).await
                }
            };
            if !is_there {
                return false;
            }
        }
        true
    }

    /// Removes what no execution holds.
    pub(super) async fn sweep(&self) {
        let Some(keeper) = self.keeper() else { return };
        let needed = {
            let _gate = self.pins.gate.lock().await;
            self.sweep_within(keeper, &[], false).await
        };
        if let Some(needed) = needed {
            let keeper = Arc::clone(keeper);
            blocking::run(move || keeper.unload(&needed)).await;
        }
    }

    /// Removes what no execution holds and is none of these, within the gate. What is needed; nothing is removed where that is not known.
    async fn sweep_within(&self, keeper: &Arc<dyn Keeper>, more: &[Hash], all: bool) -> Option<HashSet<Hash>> {
        let mut needed = match self.needed() {
            Ok(needed) => needed,
            Err(refused) => {
                tracing::warn!("versions of functions that no execution needs are not removed now: {refused}");
                return None;
            }
        };
        needed.extend(more);
        self.pins.forget(&needed);
        let keeper = Arc::clone(keeper);
        let swept = blocking::run(move || {
            keeper.sweep(&needed, all);
            needed
        });
        Some(swept.await)
    }

    /// The digests of all versions that executions hold.
    fn needed(&self) -> Result<HashSet<Hash>, Refused> {
        Ok(self.pins_of(&self.pins.held())?.versions().into_iter().map(|(_, digest)| digest).collect())
    }

    /// Removes sets from the journal to which no checkpoint refers. To be called before anything begins.
    pub(super) async fn forget_sets(&self, referred: &HashSet<u64>) -> Result<(), KvError> {
        let mut surplus = self.journal().sets()?;
        surplus.retain(|number| !referred.contains(number));
        for numbers in surplus.chunks(REMOVED_MAX) {
            let records = numbers.iter().map(|number| journal::no_pins(*number)).collect();
            self.write(records).await?;
        }
        Ok(())
    }
}
