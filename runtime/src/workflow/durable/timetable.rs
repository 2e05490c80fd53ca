//! Schedules: executions that are started at times.
//!
//! What each schedule has started last is in the journal, so that a time is neither forgotten nor taken twice when the server starts again: an execution has the name of its schedule and its
//! time, and a name is one execution. Only then is the time taken down.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sledge_workflow::calendar::{Schedule, due_from};
use sledge_workflow::data::Timestamp;

use super::Refused;
use super::core::Core;
use super::journal;
use crate::config::ScheduleConfig;
use crate::kv::Commit;
use crate::workflow::{Runner, Workflow, express};

/// The longest sleep: the calendar's clock may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// How long to wait before a time is tried again that could not be kept.
const RETRY: Duration = Duration::from_secs(1);

/// A schedule that is served.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// What the configuration says.
    pub config: ScheduleConfig,
    /// When it is due.
    pub schedule: Schedule,
}

/// What is kept of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    expression: String,
    zone: Option<String>,
    /// When it was first served: rates count from there.
    anchor_ms: i64,
    /// The last time that was taken care of.
    last_ms: i64,
}

impl Scheduled {
    /// Reads a schedule; none where its expression is wrong, which the configuration's check has said.
    #[must_use]
    pub fn new(config: &ScheduleConfig) -> Option<Scheduled> {
        let schedule = Schedule::parse(&config.expression, config.zone.as_deref()).ok()?;
        Some(Scheduled { config: config.clone(), schedule })
    }

    /// What is kept of it from now on where nothing is, or that of another expression.
    fn begin(&self, kept: Option<Kept>, now_ms: i64) -> Kept {
        let ScheduleConfig { expression, zone, .. } = &self.config;
        kept.filter(|kept| kept.expression == *expression && kept.zone == *zone).unwrap_or_else(|| Kept {
            expression: expression.clone(),
            zone: zone.clone(),
            anchor_ms: now_ms,
            last_ms: now_ms,
        })
    }

    /// The name of the execution of that time.
    fn name(&self, at_ms: i64) -> String {
        let at = time(at_ms);
        let digits: String = at.chars().take_while(|c| *c != '.').filter(|c| !matches!(c, '-' | ':')).collect();
        format!("{}-{}", self.config.name, digits.trim_end_matches('Z'))
    }

    fn input(&self, at_ms: i64) -> Value {
        let default = || json!({ "schedule": self.config.name, "time": time(at_ms) });
        self.config.input.clone().unwrap_or_else(default)
    }
}

fn time(at_ms: i64) -> String {
    Timestamp::from_unix_ms(at_ms).map(|time| time.to_string()).unwrap_or_default()
}

/// Keeps all schedules, also others that are served later.
pub(super) async fn keep<R: Runner + 'static>(core: Rc<Core<R>>) {
    let mut served = core.executions.0.schedules.subscribe();
    loop {
        let schedules = served.borrow_and_update().clone();
        tokio::select! {
            () = keep_all(&core, &schedules) => {}
            changed = served.changed() => if changed.is_err() { return },
        }
    }
}

async fn keep_all<R: Runner + 'static>(core: &Rc<Core<R>>, schedules: &[Arc<Scheduled>]) {
    // Times that passed while no server ran, or while the schedule was not served.
    let mut all = Vec::with_capacity(schedules.len());
    for scheduled in schedules {
        let now_ms = express::now_ms();
        let mut kept = scheduled.begin(read(core, scheduled).await, now_ms);
        let missed = due_from(&scheduled.schedule, kept.anchor_ms, kept.last_ms, now_ms, scheduled.config.policy());
        for at_ms in missed {
            if is_written_first(core, scheduled) {
                kept.last_ms = kept.last_ms.max(at_ms);
                write(core, scheduled, &kept).await;
            }
            start(core, scheduled, at_ms).await;
        }
        kept.last_ms = kept.last_ms.max(now_ms);
        write(core, scheduled, &kept).await;
        all.push((scheduled, kept));
    }
    loop {
        let next = |(scheduled, kept): &(&Arc<Scheduled>, Kept)| scheduled.schedule.next_from(kept.anchor_ms, kept.last_ms);
        let first = all.iter_mut().filter_map(|one| Some((next(one)?, one))).min_by_key(|(at_ms, _)| *at_ms);
        match first {
            Some((at_ms, (scheduled, kept))) if at_ms <= express::now_ms() => {
                kept.last_ms = at_ms;
                if is_written_first(core, scheduled) {
                    write(core, scheduled, kept).await;
                    start(core, scheduled, at_ms).await;
                } else {
                    start(core, scheduled, at_ms).await;
                    write(core, scheduled, kept).await;
                }
            }
            first => tokio::time::sleep(first.map_or(SLEEP_MAX, |(at_ms, _)| express::time_until(at_ms).min(SLEEP_MAX))).await,
        }
    }
}

async fn read<R: Runner + 'static>(core: &Core<R>, scheduled: &Scheduled) -> Option<Kept> {
    loop {
        match core.journal().schedule(&scheduled.config.tenant, &scheduled.config.name) {
            Ok(kept) => return kept,
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

async fn write<R: Runner + 'static>(core: &Core<R>, scheduled: &Scheduled, kept: &Kept) {
    let records = vec![journal::schedule(&scheduled.config.tenant, &scheduled.config.name, kept)];
    let commit = Commit { records, ..Commit::default() };
    while core.term.commit(core.executions.0.space.clone(), commit.clone()).await.is_err() {
        tokio::time::sleep(RETRY).await;
    }
}

/// What a schedule starts.
fn target<R: Runner + 'static>(core: &Core<R>, scheduled: &Scheduled) -> Option<Arc<Workflow>> {
    let ScheduleConfig { tenant, workflow, function, .. } = &scheduled.config;
    match (workflow, function) {
        (Some(workflow), _) => core.executions.workflow(tenant, workflow),
        (None, Some(function)) => core.executions.of_function(tenant, function),
        (None, None) => None,
    }
}

/// Whether a time is taken down before something is started. The name of a durable execution is taken once, also by a server that has just lost the lease. An express one has none: where other
/// servers might start it, too, the commit decides which one does, and a crash right behind it means that none does.
fn is_written_first<R: Runner + 'static>(core: &Core<R>, scheduled: &Scheduled) -> bool {
    core.term.is_leased() && target(core, scheduled).is_some_and(|target| !target.is_durable())
}

/// Starts what is due at that time. It has begun for good, or cannot begin, when this returns.
async fn start<R: Runner + 'static>(core: &Rc<Core<R>>, scheduled: &Scheduled, at_ms: i64) {
    let name = &scheduled.config.name;
    let target = target(core, scheduled);
    loop {
        let begun = match &target {
            None => Err(Refused::NoWorkflow),
            Some(target) if !target.is_durable() => {
                execute(core, target, scheduled.input(at_ms));
                return;
            }
            Some(target) => core.start(target, Some(&scheduled.name(at_ms)), scheduled.input(at_ms), None).await.map(drop),
        };
        match begun {
            Ok(()) | Err(Refused::Exists { .. }) => return,
            Err(Refused::Unavailable(_)) => tokio::time::sleep(RETRY).await,
            Err(Refused::Stopping) => return std::future::pending().await,
            Err(refused) => {
                tracing::warn!(schedule = name, at = time(at_ms), "nothing was started: {refused}");
                return;
            }
        }
    }
}

/// An express execution: the log alone says how it ended.
fn execute<R: Runner + 'static>(core: &Rc<Core<R>>, workflow: &Arc<Workflow>, input: Value) {
    let (own, workflow) = (Rc::clone(core), Arc::clone(workflow));
    core.launch(async move {
        let ended = express::execute(&workflow, &own.runner, input).await;
        if !matches!(ended, express::Ended::Succeeded(_)) {
            tracing::warn!(workflow = workflow.config.name, ?ended, "an execution that a schedule has started has failed");
        }
    });
}
