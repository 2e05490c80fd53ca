//! The groups of an execution: which runs become a commit, what the store and its disk make of that, and what the driver makes of the answer.

use std::sync::Arc;

use sledge_workflow::machine::{Failure, StartTask};

use super::super::disk::{Doubtful, Write};
use super::super::functions::{self, killed, name};
use super::super::history::{Happened, Ran};
use super::super::world::Shared;
use super::{Execution, Journal, Run, Sent, call};
use crate::kv::{KvError, Outcome as Stored};
use crate::speculate::skips::Grounds;
use crate::speculate::{Of, outputs::Rest};
use crate::txn::PutOff;
use crate::txn::pipeline::{ColumnId, Findings, Group};
use crate::workflow::speculative::plan::{Answer, Path, RunId};

impl Execution<'_> {
    /// Has the first runs committed that have ended.
    pub(super) fn settle(&mut self, shared: &mut Shared) -> Result<(), String> {
        if self.sent.is_some() || self.outcome.is_some() {
            return Ok(());
        }
        let group = self.step(shared, |plan, outside| plan.group(outside));
        let without = group.iter().take_while(|run| !self.runs.contains_key(run)).count();
        if without > 0 {
            let ids = &group[..without];
            let journal = self.journal_with(shared, ids)?;
            let failed =
                ids.iter().filter_map(|run| self.plan.come_to(*run)).map(|(path, task, answer)| failed(path, task, answer));
            let failed = Happened::Made(self.index, true, failed.collect());
            shared.history.push(failed);
            self.committed(shared, ids, journal);
            return Ok(());
        }
        let ids: Vec<RunId> = group.into_iter().take_while(|run| self.runs.contains_key(run)).collect();
        let columns: Vec<ColumnId> = ids.iter().filter_map(|run| Some(self.runs.get(run)?.column)).collect();
        if columns.is_empty() {
            return Ok(());
        }
        let is_there = self.pipeline.ended(columns[0]).is_some();
        if is_there && columns.len() > 1 && shared.rng.u32(..4) == 0 {
            let group = self.pipeline.settle(&columns[1..]);
            return if group == Group::Nothing {
                self.not_committed(shared);
                Ok(())
            } else {
                // What does not stand first is not settled; a mistake is found by what comes of it.
                self.came(shared, group, None)
            };
        }
        let group = self.pipeline.settle(&columns);
        self.came(shared, group, None)
    }

    /// Where a durable execution stands with these runs; none of any other.
    fn journal_with(&self, shared: &mut Shared, ids: &[RunId]) -> Result<Option<Journal>, String> {
        if self.journal.is_none() {
            return Ok(None);
        }
        let mut next = self.next();
        for id in ids {
            let (path, task, answer) = self.plan.come_to(*id).ok_or("a run of a group has not ended")?;
            if !self.base_steps(shared, |definition, outside| next.tell(definition, path, (task, answer), outside)) {
                return Err(format!("{task:?} is not asked for"));
            }
        }
        Ok(Some(self.follows(next)))
    }

    /// The commit reaches the store, or the answer the driver.
    pub(super) fn send(&mut self, shared: &mut Shared) -> Result<(), String> {
        let Some(mut sent) = self.sent.take_if(|sent| !sent.is_doubtful) else { return Ok(()) };
        if let Some(outcome) = sent.outcome.take() {
            let group = self.pipeline.came(outcome);
            return self.came(shared, group, Some(sent));
        }
        shared.groups += 1;
        let fails = shared.fails_at == Some(shared.groups);
        if fails || (self.whims > 0 && shared.rng.u32(..30) == 0) {
            self.whims = self.whims.saturating_sub(1);
            shared.counts.failed += 1;
            sent.outcome = self.not_made();
            self.sent = Some(sent);
            return Ok(());
        }
        match shared.disk.write(&mut shared.rng) {
            Write::Synced => {}
            Write::Doubtful => {
                shared.disk.doubts(Doubtful::Group(self.index));
                sent.is_doubtful = true;
                self.sent = Some(sent);
                return Ok(());
            }
            Write::Refused => {
                if self.whims > 0 {
                    self.whims -= 1;
                    sent.outcome = self.not_made();
                }
                self.sent = Some(sent);
                return Ok(());
            }
        }
        let is_lost = self.journal.is_none() && self.whims > 0 && shared.rng.u32(..60) == 0;
        let outcome = self.make(shared, &sent, !is_lost);
        sent.outcome = Some(if is_lost { Err(KvError::Unknown("the answer is lost".to_owned())) } else { outcome });
        self.whims -= u32::from(is_lost);
        self.sent = Some(sent);
        Ok(())
    }

    /// What an execution hears of a commit that the store has not made. Of a durable one the same commit is made again until the store works.
    fn not_made(&self) -> Option<Result<Stored, KvError>> {
        self.journal.is_none().then(|| Err(KvError::Unavailable("the disk".to_owned())))
    }

    /// The store makes a commit, or it conflicts.
    fn make(&mut self, shared: &mut Shared, sent: &Sent, is_told: bool) -> Result<Stored, KvError> {
        let outcome = shared.store.commit(&sent.commit);
        if matches!(outcome, Ok(Stored::Committed { .. })) {
            self.made(shared, &sent.runs, is_told);
            // A crash from now on finds that.
            self.journal = sent.journal.clone().or_else(|| self.journal.take());
        }
        outcome
    }

    /// The store has read its file again, and knows whether the commit is there. `is_new`: after a crash, of which an express execution does not hear.
    pub(in super::super) fn is_known(&mut self, shared: &mut Shared, is_there: bool, is_new: bool) {
        let Some(mut sent) = self.sent.take_if(|sent| sent.is_doubtful) else { return };
        sent.is_doubtful = false;
        let is_told = self.journal.is_some() || !is_new;
        sent.outcome = if is_there { Some(self.make(shared, &sent, is_told)) } else { self.not_made() };
        self.sent = Some(sent);
    }

    /// The store has made what these runs are.
    fn made(&self, shared: &mut Shared, ids: &[RunId], is_told: bool) {
        let runs: Vec<&Run> = ids.iter().filter_map(|id| self.runs.get(id)).collect();
        runs.iter().for_each(|run| shared.log.may_say(run.number));
        let ran = runs.into_iter().filter_map(Run::ran).collect();
        shared.history.push(Happened::Made(self.index, is_told, ran));
    }

    /// What the driver makes of what was decided. `sent`: the commit that has decided it, if one did.
    fn came(&mut self, shared: &mut Shared, group: Group, sent: Option<Sent>) -> Result<(), String> {
        match group {
            Group::Commit { columns, commit } => {
                let runs = self.named(&columns);
                let journal = self.journal_with(shared, &runs)?;
                self.sent = Some(Sent { runs, commit, journal, is_doubtful: false, outcome: None });
            }
            Group::Committed { columns, calls, findings } => {
                let ids = self.named(&columns);
                if ids.len() != columns.len() {
                    return Err("a column is committed that the driver does not have".to_owned());
                }
                let journal = match sent {
                    Some(sent) => sent.journal,
                    None => {
                        // What was no commit was decided now.
                        self.made(shared, &ids, true);
                        None
                    }
                };
                let of = |id: &RunId| {
                    self.runs.get(id).filter(|run| !run.is_skipped && !run.program.failed).map(|run| run.program.number)
                };
                let wanted: Vec<PutOff> =
                    ids.iter().filter_map(of).filter(|number| functions::sends(*number)).map(call).collect();
                if calls != wanted {
                    return Err(format!("{calls:?} begin, and not {wanted:?}"));
                }
                self.learn(shared, &ids, findings);
                self.committed(shared, &ids, journal);
            }
            Group::Nothing | Group::Again | Group::Stale { .. } => self.not_committed(shared),
            Group::Failed { columns, error } => {
                if columns.len() > 1 && !matches!(error, KvError::Unknown(_)) {
                    return Err(format!("{columns:?} fail together: {error}"));
                }
                self.not_committed(shared);
                for id in self.named(&columns) {
                    let Some(run) = self.runs.remove(&id) else { continue };
                    shared.log.may_say(run.number);
                    if let Some(held) = run.program.outer.held() {
                        held.release();
                    }
                    let failure = Failure { error: Some("Store".into()), cause: None };
                    self.step(shared, |plan, outside| plan.ended(id, Err(failure), outside));
                }
            }
        }
        Ok(())
    }

    fn named(&self, columns: &[ColumnId]) -> Vec<RunId> {
        let of = |column: &ColumnId| self.runs.iter().find(|(_, run)| run.column == *column).map(|(id, _)| *id);
        columns.iter().filter_map(of).collect()
    }

    fn not_committed(&mut self, shared: &mut Shared) {
        shared.history.append(&mut self.later);
        self.step(shared, |plan, outside| plan.group_failed(outside));
    }

    /// Learns of runs that are committed, and has what they have logged seen.
    fn learn(&mut self, shared: &mut Shared, ids: &[RunId], findings: Vec<Findings>) {
        let mut findings = findings;
        for id in ids {
            let Some(run) = self.runs.remove(id) else { continue };
            let found = findings.iter().position(|findings| findings.column == run.column).map(|at| findings.swap_remove(at));
            let basis = found.and_then(|findings| findings.basis);
            if let Some(held) = run.program.outer.held() {
                held.release();
            }
            if functions::logs(run.program.number) && !run.is_skipped {
                shared.owed.push(run.number);
            }
            if run.is_skipped {
                shared.tables.skipped(run.version);
            }
            let (name, number) = (name(&run.task), run.program.number);
            let version = shared.functions.version(name);
            let is_repeatable = !run.is_killed && !functions::logs(number) && !functions::sends(number) && version == run.version;
            let grounds = basis.filter(|_| is_repeatable).map(|basis| Arc::new(Grounds { basis, callees: Box::default() }));
            let answer = run.answer.clone().unwrap_or_else(killed).map(Arc::new);
            let key = shared.tables.key(name, &run.task.input);
            shared.tables.answered(Of { name, version }, key, &answer, Rest { grounds, ..Rest::default() });
        }
    }

    /// So many first runs are committed.
    fn committed(&mut self, shared: &mut Shared, ids: &[RunId], journal: Option<Journal>) {
        shared.history.append(&mut self.later);
        let count = ids.len();
        match journal {
            Some(journal) => {
                self.adopt(shared, journal);
                let standing = self.standing();
                self.step(shared, |plan, outside| plan.committed_at(count, standing, outside));
            }
            None => _ = self.step(shared, |plan, outside| plan.committed(count, outside)),
        }
        shared.tables.went(self.definition.fingerprint(), self.plan.trail());
    }
}

/// A task that has failed, and has changed nothing.
fn failed(path: &Path, task: &StartTask, answer: &Answer) -> Ran {
    Ran {
        function: name(task).to_owned(),
        path: path.clone(),
        input: Arc::clone(&task.input),
        number: 0,
        seen: None,
        is_killed: true,
        answer: answer.clone(),
    }
}
