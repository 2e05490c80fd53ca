//! `StartSyncExecution`: an execution of an express workflow, from its input to its output.

use std::sync::Arc;

use serde_json::Value;
use sledge_aws::answer::{DataDetails, SyncExecution};
use sledge_aws::operation::{StartExecution, StartSyncExecution};
use sledge_aws::{ApiError, ExecutionArn, ExecutionStatus, IncludedData, MachineArn, Timestamp};
use sledge_workflow::machine::Outcome;

use super::Answer;
use super::asked::Asked;
use super::refusal::{self, Subject};
use crate::workflow::{Named, now_ms};

impl Asked<'_> {
    pub(super) async fn start_sync_execution(&self, asked: StartSyncExecution) -> Result<Answer, ApiError> {
        let StartSyncExecution { start: StartExecution { machine, name, input, trace_header }, included_data } = asked;
        let workflow = self.workflow(&machine)?;
        if workflow.is_durable() {
            return Err(ApiError::machine_type_not_supported());
        }
        let name = name.unwrap_or_else(|| format!("{:032x}", fastrand::u128(..)));
        let named = Named { name: name.as_str().into(), id: format!("{:016x}", fastrand::u64(..)).into() };
        let own = self.machine_arn(&workflow)?;
        let execution_arn = ExecutionArn::express(&own, &name, &named.id)?;
        let (start_date, text) = (Timestamp(now_ms()), input.to_string());
        let ended = self.executions.execute(&workflow, named, input).await;
        let outcome = ended.map_err(|refused| refusal::of(&refused, Subject::Machine(&machine, Some(&name))))?;
        let execution = SyncExecution { trace_header, ..ended_as(execution_arn, own, start_date, text, &outcome) };
        let execution = match included_data {
            IncludedData::AllData => execution,
            IncludedData::MetadataOnly => execution.without_data(),
        };
        Ok(Answer::StartSyncExecution(Box::new(execution)))
    }
}

/// An execution that has ended now.
fn ended_as(arn: ExecutionArn, machine: MachineArn, start_date: Timestamp, input: String, outcome: &Outcome) -> SyncExecution {
    let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
    let (status, output, error, cause) = match outcome {
        Outcome::Succeeded(output) => (ExecutionStatus::Succeeded, Some(Value::to_string(output)), None, None),
        // There is no other word for what was stopped.
        Outcome::Failed(failure) | Outcome::Aborted(failure) => {
            (ExecutionStatus::Failed, None, text(&failure.error), text(&failure.cause))
        }
        Outcome::TimedOut => (ExecutionStatus::TimedOut, None, Some("States.Timeout".to_owned()), None),
    };
    let included = Some(DataDetails { included: true });
    SyncExecution {
        name: arn.name().to_owned(),
        execution_arn: arn,
        state_machine_arn: machine,
        start_date,
        stop_date: Timestamp(now_ms()),
        status,
        error,
        cause,
        input: Some(input),
        input_details: included,
        output_details: output.as_ref().and(included),
        output,
        trace_header: None,
    }
}
