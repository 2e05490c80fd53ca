//! Choice and Wait.

use std::sync::Arc;

use serde_json::Value;

use super::evaluate::{number_of, unexpected};
use super::event::Action;
use super::failure::{Fault, name};
use super::frame::Phase;
use super::guide::Way;
use super::ids::TimerId;
use super::limits::WAIT_SECONDS_MAX;
use super::run::Run;
use crate::data::{Expression as PathExpression, Timestamp};
use crate::definition::payload::{Condition, Number, Text};
use crate::definition::state::{Rule, Until};
use crate::definition::{QueryLanguage, State, StateIndex, whole};

impl Run<'_> {
    /// Takes the first rule that holds, or the default.
    pub(super) fn choose(&mut self, slot: u32, state: &State, rules: &[Rule], default: Option<StateIndex>) -> Result<(), Fault> {
        let input = self.input(slot);
        let effective = self.effective_input(slot, state)?;
        let index = self.execution.frames.get(slot).map(|frame| frame.state);
        if let (Some(guide), Some(index)) = (&mut self.guide, index) {
            let way = guide.choose(index, &effective);
            let guessed = match way {
                Way::ByRules | Way::Nowhere => None,
                Way::Rule(rule) => rules.get(rule).map(|taken| (Some(rule), taken.next)),
                Way::Default => default.map(|next| (None, next)),
            };
            if let Some((rule, next)) = guessed {
                let exit = self.exit_unchanged(slot, state)?;
                self.taken(slot, state, exit, (rule, next));
                return Ok(());
            }
            if way != Way::ByRules {
                return Ok(());
            }
        }
        for (at, rule) in rules.iter().enumerate() {
            let mut view = self.view(slot, state, &input).with_input(&effective);
            let holds = match &rule.condition {
                Condition::Constant(constant) => *constant,
                Condition::Comparison(comparison) => view.scoped(|scope, _| comparison.matches(scope))?,
                Condition::Query(expression) => match view.expression(expression)? {
                    Value::Bool(holds) => holds,
                    other => return Err(unexpected(expression, "boolean", &other)),
                },
            };
            if holds {
                let exit = match state.language {
                    QueryLanguage::Jsonata => {
                        self.exit_as(slot, state, &input, None, rule.assign.as_ref(), rule.output.as_ref())?
                    }
                    QueryLanguage::JsonPath => self.exit_assigning(slot, state, rule.assign.as_ref())?,
                };
                self.taken(slot, state, exit, (Some(at), rule.next));
                return Ok(());
            }
        }
        match default {
            Some(default) => {
                let exit = self.exit_unchanged(slot, state)?;
                self.taken(slot, state, exit, (None, default));
                Ok(())
            }
            None => Err(Fault::found(
                name::NO_CHOICE,
                "Failed to transition out of the state. The state does not point to a next state.",
            )),
        }
    }

    /// Sets a timer, or goes on at once if its time has come.
    pub(super) fn wait(&mut self, slot: u32, state: &State, until: &Until) -> Result<(), Fault> {
        let at_ms = match until {
            Until::Seconds(number) => {
                let seconds = self.wait_seconds(slot, state, number)?;
                self.now_ms.saturating_add(seconds.saturating_mul(1_000))
            }
            Until::Timestamp(timestamp) => timestamp.unix_ms(),
            Until::TimestampFrom(text) => self.wait_timestamp(slot, state, text)?.unix_ms(),
        };
        if at_ms.saturating_sub(self.now_ms) > WAIT_SECONDS_MAX.saturating_mul(1_000) {
            return Err(Fault::runtime("Wait state delay is too long."));
        }
        if at_ms <= self.now_ms {
            self.waited(slot, state);
            return Ok(());
        }
        let timer = TimerId(self.execution.number(slot));
        if let Some(frame) = self.execution.frames.get_mut(slot) {
            frame.phase = Phase::Waiting { timer };
        }
        self.actions.push(Action::SetTimer { timer, at_ms });
        Ok(())
    }

    /// The time of a Wait has come.
    pub(super) fn waited(&mut self, slot: u32, state: &State) {
        match self.exit_unchanged(slot, state) {
            Ok(exit) => self.leave(slot, state, exit, state.next),
            Err(fault) => self.fail(slot, fault),
        }
    }

    fn wait_seconds(&mut self, slot: u32, state: &State, number: &Number) -> Result<i64, Fault> {
        let effective = self.effective_input(slot, state)?;
        let value = match number {
            Number::Path(path) => self.view(slot, state, &effective).path(path).map(number_of).map_err(|fault| {
                if fault.failure.name() == name::RUNTIME {
                    Fault::runtime(format!("The SecondsPath parameter does not reference an input value: {}", path.as_str()))
                } else {
                    fault
                }
            })?,
            _ => self.view(slot, state, &effective).number(number)?,
        };
        let seconds = whole(&value).and_then(|seconds| i64::try_from(seconds).ok());
        match (seconds, number) {
            (Some(seconds), _) if seconds <= WAIT_SECONDS_MAX => Ok(seconds),
            (Some(_), _) => Err(Fault::runtime("Wait state delay is too long.")),
            (None, Number::Path(path)) if value.as_i64().is_some() => Err(Fault::runtime(format!(
                "The SecondsPath parameter references a negative value: {} == {value}",
                path.as_str()
            ))),
            (None, Number::Path(path)) => Err(Fault::runtime(format!(
                "The SecondsPath parameter cannot be parsed as a long value: {} == {value}",
                path.as_str()
            ))),
            (None, Number::Query(expression)) => Err(unexpected(expression, "non-negative integer", &value)),
            (None, Number::Literal(_)) => Err(Fault::runtime(format!("The Seconds field is not a whole number: {value}"))),
        }
    }

    fn wait_timestamp(&mut self, slot: u32, state: &State, text: &Text) -> Result<Timestamp, Fault> {
        let effective = self.effective_input(slot, state)?;
        let (value, path) = match text {
            Text::Path(PathExpression::Path(path)) => (self.view(slot, state, &effective).path(path)?, Some(path)),
            _ => (Value::from(&*self.view(slot, state, &effective).text("Timestamp", text)?), None),
        };
        let found = value.as_str().and_then(|text| Timestamp::parse(text).ok());
        found.ok_or_else(|| {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match path {
                Some(path) => Fault::runtime(format!(
                    "The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time format string: {} == {shown}",
                    path.as_str()
                )),
                None => {
                    let location = Arc::from("Timestamp");
                    Fault::query(&location, format!("The Timestamp field cannot be parsed as an ISO-8601 extended offset date-time format string: {shown}"))
                }
            }
        })
    }
}
