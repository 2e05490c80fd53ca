//! What clients ask for, and the answers: one function for each operation. Those on state machines are in `machine`, `StartSyncExecution` is in `express`.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use sledge_aws::answer::{DataDetails, ExecutionDescription, ExecutionItem, Redrives};
use sledge_aws::operation::{
    DescribeExecution, GetExecutionHistory, ListExecutions, RedriveExecution, StartExecution, StopExecution, TaskToken,
};
use sledge_aws::{
    ApiError, ExecutionArn, ExecutionStatus, IncludedData, MachineArn, RedriveFilter, RedriveStatus, Request, Timestamp,
};
use sledge_workflow::machine::{Event, Status};

use super::redriven::Redriven;
use super::refusal::{self, Subject, why_not_redrivable};
use super::{Answer, REGION, internal, page};
use crate::kv::{KvError, Order};
use crate::workflow::durable::journal::{Events, Journal, Listing, Place, Position, Summary};
use crate::workflow::durable::{Refused, Started};
use crate::workflow::{Executions, Workflow, now_ms};

/// Bytes of events from which on a page ends. The events that are read at once may be more.
const PAGE_BYTES: usize = 2 << 20;
/// Events, and executions, that are read at once: each may have an input and an output.
const READ_AT_ONCE: usize = 32;
/// Executions that are read for one page, where only some of them are wanted.
const READ_MAX: usize = 1_000;

/// A request of a client of that tenant.
pub(super) struct Asked<'a> {
    pub(super) executions: &'a Executions,
    pub(super) redriven: &'a Redriven,
    pub(super) tenant: &'a Arc<str>,
}

impl Asked<'_> {
    /// Does what is asked.
    pub(super) async fn answer(&self, request: Request) -> Result<Answer, ApiError> {
        match request {
            Request::StartExecution(asked) => self.start_execution(asked).await,
            Request::StartSyncExecution(asked) => self.start_sync_execution(asked).await,
            Request::DescribeExecution(asked) => self.describe_execution(asked).await,
            Request::GetExecutionHistory(asked) => self.history(asked).await,
            Request::StopExecution(asked) => self.stop_execution(asked).await,
            Request::ListExecutions(asked) => self.list_executions(asked).await,
            Request::RedriveExecution(asked) => self.redrive_execution(asked).await,
            Request::SendTaskSuccess(asked) => {
                self.tell(&asked.token, |token| Event::CallbackSucceeded { token, output: asked.output }).await
            }
            Request::SendTaskFailure(asked) => {
                let (error, cause) = (asked.error.map(Arc::from), asked.cause.map(Arc::from));
                self.tell(&asked.token, |token| Event::CallbackFailed { token, error, cause }).await
            }
            Request::SendTaskHeartbeat(asked) => self.tell(&asked.token, |token| Event::CallbackHeartbeat { token }).await,
            Request::DescribeStateMachine(asked) => self.describe_machine(&asked),
            Request::ListStateMachines(asked) => self.list_machines(&asked),
            Request::DescribeStateMachineForExecution(asked) => self.machine_of_execution(asked).await,
        }
    }

    /// The workflow that a client names. One that is quarantined is not there.
    pub(super) fn workflow(&self, machine: &MachineArn) -> Result<Arc<Workflow>, ApiError> {
        let own = (machine.account() == &**self.tenant).then(|| self.executions.workflow(self.tenant, machine.name()));
        let found = own.flatten().filter(|workflow| workflow.problem().is_none());
        found.ok_or_else(|| ApiError::machine_does_not_exist(machine))
    }

    /// A workflow's ARN.
    pub(super) fn machine_arn(&self, workflow: &Workflow) -> Result<MachineArn, ApiError> {
        self.arn_of(&workflow.config.name)
    }

    pub(super) fn arn_of(&self, workflow: &str) -> Result<MachineArn, ApiError> {
        MachineArn::new(REGION, self.tenant, workflow).map_err(internal)
    }

    fn execution_arn(&self, place: &Place) -> Result<(ExecutionArn, MachineArn), ApiError> {
        let machine = self.arn_of(&place.workflow)?;
        Ok((ExecutionArn::new(&machine, &place.name).map_err(internal)?, machine))
    }

    /// Where the execution is found that a client names.
    fn place(&self, execution: &ExecutionArn) -> Result<Place, ApiError> {
        if execution.machine().account() != &**self.tenant {
            return Err(ApiError::execution_does_not_exist(execution));
        }
        let (workflow, name) = (execution.machine().name().into(), execution.name().into());
        Ok(Place { tenant: Arc::clone(self.tenant), workflow, name })
    }

    /// Reads something of an execution in the journal.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        execution: &ExecutionArn,
        read: impl FnOnce(&Journal, Summary) -> Result<T, KvError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let place = self.place(execution)?;
        let found = self.executions.read(move |journal| {
            let summary = journal.summary(&place)?;
            summary.map(|summary| read(journal, summary)).transpose()
        });
        let found = found.await.and_then(|found| found.ok_or(Refused::NoExecution));
        found.map_err(|refused| refusal::of(&refused, Subject::Execution(execution)))
    }

    async fn start_execution(&self, asked: StartExecution) -> Result<Answer, ApiError> {
        let StartExecution { machine, name, input, trace_header: _ } = asked;
        let workflow = self.workflow(&machine)?;
        if !workflow.is_durable() {
            // It would end without a trace.
            return Err(ApiError::machine_type_not_supported());
        }
        match self.executions.start(&workflow, name.clone(), input).await {
            Ok(Started { place, summary }) => {
                let (execution_arn, _) = self.execution_arn(&place)?;
                Ok(Answer::StartExecution { execution_arn, start_date: Timestamp(summary.started_ms) })
            }
            Err(refused) => {
                let own = self.machine_arn(&workflow)?;
                Err(refusal::of(&refused, Subject::Machine(&own, name.as_deref())))
            }
        }
    }

    async fn describe_execution(&self, asked: DescribeExecution) -> Result<Answer, ApiError> {
        let place = self.place(&asked.execution)?;
        let summary = self.read(&asked.execution, |_, summary| Ok(summary)).await?;
        let (execution_arn, state_machine_arn) = self.execution_arn(&place)?;
        let included = Some(DataDetails { included: true });
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let why_not = why_not_redrivable(&summary);
        let description = ExecutionDescription {
            execution_arn,
            state_machine_arn,
            name: place.name.to_string(),
            status: status(summary.status),
            start_date: Timestamp(summary.started_ms),
            stop_date: summary.stopped_ms.map(Timestamp),
            input: Some(summary.input.to_string()),
            input_details: included,
            output: summary.output.as_deref().map(Value::to_string),
            output_details: summary.output.as_ref().and(included),
            trace_header: None,
            error: text(&summary.error),
            cause: text(&summary.cause),
            redrives: Redrives {
                redrive_count: summary.redrives,
                redrive_date: summary.redriven_ms.map(Timestamp),
                redrive_status: if why_not.is_some() { RedriveStatus::NotRedrivable } else { RedriveStatus::Redrivable },
                redrive_status_reason: why_not,
            },
        };
        let description = match asked.included_data {
            IncludedData::AllData => description,
            IncludedData::MetadataOnly => description.without_data(),
        };
        Ok(Answer::DescribeExecution(Box::new(description)))
    }

    async fn history(&self, asked: GetExecutionHistory) -> Result<Answer, ApiError> {
        let GetExecutionHistory { execution, page, reverse_order, include_execution_data } = asked;
        let order = if reverse_order { Order::Falling } else { Order::Rising };
        let max = page.max_results as usize;
        // A token that is wrong is told apart from a journal that cannot be read.
        let found = self.read(&execution, move |journal, summary| {
            let behind = match page.token.map(|token| page::event(&token, summary.id, order)).transpose() {
                Ok(behind) => behind,
                Err(error) => return Ok(Err(error)),
            };
            let (events, next) = events(journal, summary.id, order, behind, max)?;
            Ok(Ok((events, next.map(|behind| page::behind_event(summary.id, order, behind)))))
        });
        let (mut events, next_token) = found.await??;
        if !include_execution_data {
            events.iter_mut().try_for_each(without_data)?;
        }
        Ok(Answer::GetExecutionHistory { events, next_token })
    }

    async fn stop_execution(&self, asked: StopExecution) -> Result<Answer, ApiError> {
        let StopExecution { execution, error, cause } = asked;
        let place = self.place(&execution)?;
        let stopped = self.executions.stop(place, error.map(Arc::from), cause.map(Arc::from)).await;
        let summary = stopped.map_err(|refused| refusal::of(&refused, Subject::Execution(&execution)))?;
        Ok(Answer::StopExecution { stop_date: Timestamp(summary.stopped_ms.unwrap_or_else(now_ms)) })
    }

    async fn redrive_execution(&self, asked: RedriveExecution) -> Result<Answer, ApiError> {
        let RedriveExecution { execution, client_token } = asked;
        let place = self.place(&execution)?;
        let before = self.read(&execution, |_, summary| Ok(summary)).await?;
        if let Some(token) = &client_token
            && let Some(at_ms) = self.redriven.find(before.id, token, now_ms())
        {
            return Ok(Answer::RedriveExecution { redrive_date: Timestamp(at_ms) });
        }
        if let Some(why) = why_not_redrivable(&before) {
            return Err(ApiError::execution_not_redrivable(&why));
        }
        let redriven = self.executions.redrive(place).await;
        let summary = redriven.map_err(|refused| refusal::of(&refused, Subject::Execution(&execution)))?;
        let at_ms = summary.redriven_ms.unwrap_or_else(now_ms);
        if let Some(token) = client_token {
            self.redriven.remember(summary.id, token, at_ms);
        }
        Ok(Answer::RedriveExecution { redrive_date: Timestamp(at_ms) })
    }

    async fn list_executions(&self, asked: ListExecutions) -> Result<Answer, ApiError> {
        let ListExecutions { machine, status: wanted, redrive, page } = asked;
        let workflow = self.workflow(&machine)?;
        if !workflow.is_durable() {
            return Err(ApiError::machine_type_not_supported());
        }
        let after = page.token.as_deref().map(page::position).transpose()?;
        let none = Answer::ListExecutions { executions: Vec::new(), next_token: None };
        let status = match wanted {
            None => None,
            // Redrives begin at once.
            Some(ExecutionStatus::PendingRedrive) => return Ok(none),
            Some(ExecutionStatus::Running) => Some(Status::Running),
            Some(ExecutionStatus::Succeeded) => Some(Status::Succeeded),
            Some(ExecutionStatus::Failed) => Some(Status::Failed),
            Some(ExecutionStatus::TimedOut) => Some(Status::TimedOut),
            Some(ExecutionStatus::Aborted) => Some(Status::Aborted),
        };
        let (tenant, workflow) = (Arc::clone(self.tenant), workflow.config.name.as_str().into());
        let listing = Listing { tenant, workflow, status, after, max: page.max_results as usize };
        let read = self.executions.read(move |journal| listed(journal, listing, redrive)).await;
        let (found, next) = read.map_err(|refused| refusal::of(&refused, Subject::Machine(&machine, None)))?;
        let executions = found.into_iter().map(|(place, line)| self.item(&place, &line)).collect::<Result<_, _>>()?;
        Ok(Answer::ListExecutions { executions, next_token: next.map(page::behind_execution) })
    }

    fn item(&self, place: &Place, line: &Line) -> Result<ExecutionItem, ApiError> {
        let (execution_arn, state_machine_arn) = self.execution_arn(place)?;
        Ok(ExecutionItem {
            execution_arn,
            state_machine_arn,
            name: place.name.to_string(),
            status: status(line.status),
            start_date: Timestamp(line.started_ms),
            stop_date: line.stopped_ms.map(Timestamp),
            redrive_count: Some(line.redrives),
            redrive_date: line.redriven_ms.map(Timestamp),
        })
    }

    /// Tells a task something.
    async fn tell(&self, token: &TaskToken, event: impl FnOnce(Arc<str>) -> Event) -> Result<Answer, ApiError> {
        if !is_task_token(token.as_str()) {
            return Err(ApiError::invalid_token());
        }
        let token: Arc<str> = token.as_str().into();
        let told = self.executions.call_back_of(Arc::clone(self.tenant), Arc::clone(&token), event(token)).await;
        told.map_err(|refused| refusal::of(&refused, Subject::Task))?;
        Ok(Answer::SendTask {})
    }
}

/// What a list tells of an execution.
struct Line {
    status: Status,
    started_ms: i64,
    stopped_ms: Option<i64>,
    redrives: u32,
    redriven_ms: Option<i64>,
}

/// A page of executions, and where the next one begins.
type Lines = (Vec<(Place, Line)>, Option<Position>);

/// A page of executions, read piece by piece, so that few inputs and outputs are in memory. It may have fewer than asked for, where only some are wanted.
fn listed(journal: &Journal, mut listing: Listing, redrive: Option<RedriveFilter>) -> Result<Lines, KvError> {
    let (max, mut read, mut found) = (listing.max, 0, Vec::new());
    loop {
        listing.max = READ_AT_ONCE.min(max - found.len());
        let (piece, next) = journal.list(&listing)?;
        read += listing.max;
        for (place, summary) in piece {
            let Summary { status, started_ms, stopped_ms, redrives, redriven_ms, .. } = summary;
            let is_wanted = redrive.is_none_or(|wanted| (wanted == RedriveFilter::Redriven) == (redrives > 0));
            if is_wanted {
                found.push((place, Line { status, started_ms, stopped_ms, redrives, redriven_ms }));
            }
        }
        if next.is_none() || found.len() >= max || read >= READ_MAX {
            return Ok((found, next));
        }
        listing.after = next;
    }
}

/// A page of events, and the last one of them if there are more behind it.
fn events(
    journal: &Journal,
    id: u64,
    order: Order,
    mut behind: Option<u64>,
    max: usize,
) -> Result<(Vec<Box<RawValue>>, Option<u64>), KvError> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    loop {
        let Events { events, next } = journal.history(id, order, behind, READ_AT_ONCE.min(max - found.len()))?;
        bytes += events.iter().map(|event| event.get().len()).sum::<usize>();
        found.extend(events);
        if next.is_none() || found.len() >= max || bytes >= PAGE_BYTES {
            return Ok((found, next));
        }
        behind = next;
    }
}

/// Takes the data out of an event.
fn without_data(event: &mut Box<RawValue>) -> Result<(), ApiError> {
    let mut value: Value = serde_json::from_str(event.get()).map_err(internal)?;
    sledge_aws::answer::without_data(&mut value);
    *event = to_raw_value(&value).map_err(internal)?;
    Ok(())
}

/// Whether that can be the token of a task: the number of an execution, that of a task in it, and 128 random bits.
pub(super) fn is_task_token(token: &str) -> bool {
    let is_number = |text: &str, digits: usize| {
        (1..=digits).contains(&text.len()) && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    let parts = token.split_once('-').and_then(|(id, rest)| Some((id, rest.split_once('.')?)));
    parts.is_some_and(|(id, (task, random))| {
        is_number(id, 16) && is_number(task, 16) && random.len() == 32 && is_number(random, 32)
    })
}

const fn status(status: Status) -> ExecutionStatus {
    match status {
        Status::New | Status::Running => ExecutionStatus::Running,
        Status::Succeeded => ExecutionStatus::Succeeded,
        Status::Failed => ExecutionStatus::Failed,
        Status::TimedOut => ExecutionStatus::TimedOut,
        Status::Aborted => ExecutionStatus::Aborted,
    }
}
