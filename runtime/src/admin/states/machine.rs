//! Operations on state machines: the workflows of the client's tenant.

use std::sync::Arc;

use sledge_aws::answer::{ExecutionMachine, MachineDescription, MachineItem};
use sledge_aws::operation::{DescribeStateMachine, DescribeStateMachineForExecution, ListStateMachines};
use sledge_aws::{ApiError, IncludedData, MachineType, Timestamp};

use super::asked::Asked;
use super::{Answer, internal, page};
use crate::workflow::Workflow;
use crate::workflow::durable::journal::{Journal, Summary};

impl Asked<'_> {
    fn role(&self, workflow: &str) -> String {
        format!("arn:aws:iam::{}:role/{workflow}", self.tenant)
    }

    pub(super) fn describe_machine(&self, asked: &DescribeStateMachine) -> Result<Answer, ApiError> {
        let workflow = self.workflow(&asked.machine)?;
        let definition = workflow.definition().ok_or_else(|| ApiError::machine_does_not_exist(&asked.machine))?;
        let name = workflow.config.name.clone();
        let description = MachineDescription {
            state_machine_arn: self.machine_arn(&workflow)?,
            role_arn: self.role(&name),
            name,
            status: MachineDescription::ACTIVE,
            definition: definition.source().to_owned(),
            machine_type: kind(&workflow),
            creation_date: Timestamp(workflow.deployed_ms()),
            description: None,
            revision_id: Some(revision(definition.fingerprint())),
        };
        let description = match asked.included_data {
            IncludedData::AllData => description,
            IncludedData::MetadataOnly => description.without_data(),
        };
        Ok(Answer::DescribeStateMachine(Box::new(description)))
    }

    pub(super) fn list_machines(&self, asked: &ListStateMachines) -> Result<Answer, ApiError> {
        let behind = asked.page.token.as_deref().map(page::machine).transpose()?;
        let workflows = self.executions.workflows(self.tenant).into_iter();
        let mut left = workflows.filter(|workflow| {
            workflow.problem().is_none() && behind.is_none_or(|behind| workflow.config.name.as_str() > behind)
        });
        let item = |workflow: Arc<Workflow>| {
            Ok(MachineItem {
                state_machine_arn: self.machine_arn(&workflow)?,
                name: workflow.config.name.clone(),
                machine_type: kind(&workflow),
                creation_date: Timestamp(workflow.deployed_ms()),
            })
        };
        let max = asked.page.max_results as usize;
        let state_machines: Vec<_> = left.by_ref().take(max).map(item).collect::<Result<_, ApiError>>()?;
        let next = left.next().and(state_machines.last()).map(|last| page::behind_machine(&last.name));
        Ok(Answer::ListStateMachines { state_machines, next_token: next })
    }

    pub(super) async fn machine_of_execution(&self, asked: DescribeStateMachineForExecution) -> Result<Answer, ApiError> {
        let DescribeStateMachineForExecution { execution, included_data } = asked;
        let read = |journal: &Journal, summary: Summary| Ok((journal.definition(summary.definition)?, summary));
        let (definition, summary) = self.read(&execution, read).await?;
        let definition = definition.ok_or_else(|| internal("the definition of the execution is not in the journal"))?;
        let name = execution.machine().name();
        let served = self.executions.workflow(self.tenant, name);
        let served =
            served.filter(|workflow| workflow.definition().is_some_and(|served| served.fingerprint() == summary.definition));
        let described = ExecutionMachine {
            state_machine_arn: self.arn_of(name)?,
            name: name.to_owned(),
            definition: definition.source().to_owned(),
            role_arn: self.role(name),
            // One that is served no longer was there when the execution began.
            update_date: Timestamp(served.map_or(summary.started_ms, |workflow| workflow.deployed_ms())),
            revision_id: Some(revision(summary.definition)),
        };
        let described = match included_data {
            IncludedData::AllData => described,
            IncludedData::MetadataOnly => described.without_data(),
        };
        Ok(Answer::DescribeStateMachineForExecution(Box::new(described)))
    }
}

const fn kind(workflow: &Workflow) -> MachineType {
    if workflow.is_durable() { MachineType::Standard } else { MachineType::Express }
}

fn revision(fingerprint: u64) -> String {
    format!("{fingerprint:016x}")
}
