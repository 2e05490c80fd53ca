//! Functions at the end of paths. A function takes all results of the path before it: of `$.items[*].price.sum()` the sum.
//!
//! AWS Step Functions accepts these in a definition, and not all of them work there; here all do.

use serde_json::Value;

use super::read::{Found, Reader, Stop, item};
use super::syntax::{Call, Function};
use crate::data::number;

impl<'a> Reader<'a, '_> {
    pub(super) fn call(&mut self, call: &Call, subject: &Found<'a>, current: Option<&'a Value>) -> Result<Value, Stop> {
        let mut arguments = Vec::new();
        for operand in &call.arguments {
            let argument = self.operand(operand, current)?.ok_or_else(|| unfit(call, "an argument leads nowhere"))?;
            arguments.push(argument);
        }
        match call.function {
            Function::Length => {
                let length = self.count(subject)?.ok_or_else(|| unfit(call, "it takes an array, an object or a string"))?;
                Ok(Value::from(length))
            }
            Function::Keys => {
                let members = subject.value().and_then(Value::as_object).ok_or_else(|| unfit(call, "it takes an object"))?;
                self.visit(members.len())?;
                Ok(members.keys().map(String::as_str).collect())
            }
            Function::Min | Function::Max | Function::Avg | Function::Sum | Function::StdDev => {
                self.aggregate(call, subject, &arguments)
            }
            Function::Concat => self.concat(subject, &arguments),
            Function::Append => {
                let items = subject.items().ok_or_else(|| unfit(call, "it takes an array"))?;
                let mut copies = items.into_iter().map(|item| self.copy(item)).collect::<Result<Vec<Value>, Stop>>()?;
                for argument in &arguments {
                    copies.push(match argument {
                        Found::Many(values) => values.iter().map(|value| self.copy(value)).collect::<Result<Value, Stop>>()?,
                        Found::One(value) => self.copy(value)?,
                        Found::Made(value) => self.copy(value)?,
                    });
                }
                Ok(Value::Array(copies))
            }
            Function::First | Function::Last | Function::Index => {
                let index = match call.function {
                    Function::First => Some(0),
                    Function::Last => Some(-1),
                    _ => arguments.first().and_then(Found::value).and_then(Value::as_i64),
                };
                let index = index.ok_or_else(|| unfit(call, "the index is an integer"))?;
                let found = match subject {
                    Found::Many(values) => many_item(values, index),
                    _ => subject.value().and_then(Value::as_array).and_then(|items| item(items, index)),
                };
                found.map_or_else(|| Err(unfit(call, "there is no such item")), |value| self.copy(value))
            }
        }
    }

    /// Of the numbers in the subject, if it is an array, and among the arguments.
    fn aggregate(&mut self, call: &Call, subject: &Found<'_>, arguments: &[Found<'_>]) -> Result<Value, Stop> {
        let mut numbers = Vec::new();
        let mut add = |found: &Found<'_>| {
            let items = found.items().unwrap_or_else(|| found.value().into_iter().collect());
            numbers.extend(items.iter().filter_map(|item| item.as_f64()));
            items.len()
        };
        let mut visits = if subject.items().is_some() { add(subject) } else { 0 };
        visits += arguments.iter().map(add).sum::<usize>();
        self.visit(visits)?;
        if numbers.is_empty() {
            return Err(unfit(call, "there are no numbers"));
        }
        let count = numbers.len() as f64;
        let sum: f64 = numbers.iter().sum();
        Ok(number::from_float(match call.function {
            Function::Min => numbers.iter().copied().fold(f64::INFINITY, f64::min),
            Function::Max => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Function::Sum => sum,
            Function::Avg => sum / count,
            _ => {
                let mean = sum / count;
                (numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count).sqrt()
            }
        }))
    }

    /// The strings in the subject, if it is an array, and the arguments, one after another.
    fn concat(&mut self, subject: &Found<'_>, arguments: &[Found<'_>]) -> Result<Value, Stop> {
        let mut text = String::new();
        for (place, found) in std::iter::once(subject).chain(arguments).enumerate() {
            let items = match found.items() {
                Some(items) => items,
                None if place == 0 => found.value().filter(|value| value.is_string()).into_iter().collect(),
                None => found.value().into_iter().collect(),
            };
            for item in items {
                self.visit(1)?;
                match item {
                    Value::String(part) => {
                        self.visit_text(part.len())?;
                        text.push_str(part);
                    }
                    Value::Number(number) => text.push_str(&number.to_string()),
                    Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
                    _ => {}
                }
            }
        }
        Ok(Value::String(text))
    }
}

fn many_item<'b>(values: &[&'b Value], index: i64) -> Option<&'b Value> {
    let distance = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 { values.get(values.len().checked_sub(distance)?).copied() } else { values.get(distance).copied() }
}

fn unfit(call: &Call, why: &str) -> Stop {
    Stop::Function(format!("{}() cannot be applied: {why}", call.function.name()))
}
