//! Applies what a definition says (paths, templates, expressions) to the data of one state.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::context::{Item, context};
use super::failure::Fault;
use super::frame::Visible;
use super::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX, EXPRESSION_STEPS_MAX};
use super::run::{Random, Run};
use crate::data::limits::VALUE_DEPTH_MAX;
use crate::data::{Expression as PathExpression, Limits, Path, Scope, Template, json_bytes};
use crate::definition::payload::{Number, Payload, Query, Selection, Text};
use crate::definition::{CONTEXT, ERROR, Expression, INPUT, RESULT, Reads, State};

use super::execution::Execution;

/// The data that a state's fields are applied to.
pub(super) struct View<'a> {
    execution: &'a Execution,
    random: &'a mut Random<'a>,
    now_ms: i64,
    slot: u32,
    state: &'a State,
    /// `$` of JSONPath.
    input: &'a Value,
    /// `$states.input`, `$states.result` and `$states.errorOutput`.
    states_input: &'a Value,
    result: Option<&'a Value>,
    error: Option<&'a Value>,
    item: Option<Item<'a>>,
    /// Made when something reads it.
    context: Option<Value>,
    states: Option<(Reads, Value)>,
    /// Bytes that the expressions of one field may still give.
    left: usize,
}

impl Run<'_> {
    /// The data of a frame's state, with `input` as `$` and as `$states.input`.
    pub(super) fn view<'v>(&'v mut self, slot: u32, state: &'v State, input: &'v Value) -> View<'v> {
        View {
            execution: self.execution,
            random: &mut *self.random,
            now_ms: self.now_ms,
            slot,
            state,
            input,
            states_input: input,
            result: None,
            error: None,
            item: None,
            context: None,
            states: None,
            left: 0,
        }
    }
}

impl<'a> View<'a> {
    /// With another value as `$`.
    pub(super) const fn with_input(mut self, input: &'a Value) -> Self {
        self.input = input;
        self
    }

    pub(super) const fn with_result(mut self, result: Option<&'a Value>) -> Self {
        self.result = result;
        self
    }

    pub(super) const fn with_error(mut self, error: &'a Value) -> Self {
        self.error = Some(error);
        self
    }

    pub(super) const fn with_item(mut self, item: Item<'a>) -> Self {
        self.item = Some(item);
        self
    }

    fn made_context(&mut self) -> &Value {
        let (execution, slot, state, item) = (self.execution, self.slot, self.state, self.item);
        self.context.get_or_insert_with(|| {
            execution.frames.get(slot).map_or(Value::Null, |frame| context(execution, slot, frame, state, item))
        })
    }

    /// Calls something with the scope of JSONPath.
    pub(super) fn scoped<T>(&mut self, apply: impl FnOnce(&Scope<'_>, &mut Random<'_>) -> T) -> T {
        if self.state.uses_context {
            self.made_context();
        }
        let context = self.context.as_ref().unwrap_or(&Value::Null);
        let variables = Visible { frames: &self.execution.frames, slot: self.slot };
        let limits = Limits { output_bytes_max: self.execution.limits.data_bytes, ..Limits::default() };
        apply(&Scope { input: self.input, context, variables: &variables, limits }, &mut *self.random)
    }

    /// `Parameters`, `Arguments`, `ResultSelector`, `Output` and so on.
    pub(super) fn payload(&mut self, payload: &Payload) -> Result<Value, Fault> {
        match payload {
            Payload::Template(template) => self.template(template),
            Payload::Query(query) => {
                self.left = self.execution.limits.data_bytes;
                self.query(query)
            }
        }
    }

    fn template(&mut self, template: &Template) -> Result<Value, Fault> {
        Ok(self.scoped(|scope, random| template.apply(scope, random))?)
    }

    fn query(&mut self, query: &Query) -> Result<Value, Fault> {
        Ok(match query {
            Query::Literal(value) => (**value).clone(),
            Query::Expression(expression) => {
                let value = self.expression(expression)?;
                // Here and not in the end, so that many expressions cannot fill the memory.
                let bytes = json_bytes(&value, self.left, VALUE_DEPTH_MAX).map_err(|_| Fault::too_large(&self.state.name))?;
                self.left = self.left.saturating_sub(bytes);
                value
            }
            Query::Array(parts) => Value::Array(parts.iter().map(|part| self.query(part)).collect::<Result<_, _>>()?),
            Query::Object(parts) => {
                let mut members = Map::with_capacity(parts.len());
                for (name, part) in parts {
                    members.insert(name.to_string(), self.query(part)?);
                }
                Value::Object(members)
            }
        })
    }

    /// What an expression gives. Nothing is an error.
    pub(super) fn expression(&mut self, expression: &Expression) -> Result<Value, Fault> {
        let Expression { source, location, .. } = expression;
        match self.evaluate(expression) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => {
                let cause = format!(
                    "The JSONata expression '{source}' specified for the field '{location}' returned nothing (undefined)."
                );
                Err(Fault::query(location, cause))
            }
            // The result holds a function.
            Err(error) if error.code() == "U1004" => {
                let cause = format!(
                    "The JSONata expression '{source}' specified for the field '{location}' returned an unsupported result type."
                );
                Err(Fault::query(location, cause))
            }
            Err(error) => {
                let cause = format!(
                    "The JSONata expression '{source}' specified for the field '{location}' threw an error during evaluation. {}: {}",
                    error.code(),
                    message(&error)
                );
                Err(Fault::query(location, cause))
            }
        }
    }

    fn evaluate(&mut self, expression: &Expression) -> Result<Option<Value>, sledge_jsonata::Error> {
        let environment = sledge_jsonata::Environment {
            now_ms: self.now_ms,
            seed: (self.random)(),
            limits: sledge_jsonata::Limits {
                steps: EXPRESSION_STEPS_MAX,
                depth: EXPRESSION_DEPTH_MAX,
                bytes: EXPRESSION_BYTES_MAX,
                ..Default::default()
            },
        };
        let reads = expression.reads;
        match expression.is_direct {
            true if reads.context => {
                self.made_context();
            }
            true => {}
            false => self.make_states(reads),
        }
        let variables = Visible { frames: &self.execution.frames, slot: self.slot };
        let mut bindings = Vec::with_capacity(4 + expression.variables.len());
        if expression.is_direct {
            bindings.push((INPUT, self.states_input));
            bindings.extend(self.result.map(|result| (RESULT, result)));
            bindings.extend(self.error.map(|error| (ERROR, error)));
            bindings.extend(self.context.as_ref().map(|context| (CONTEXT, context)));
        } else if let Some((_, states)) = &self.states {
            bindings.push(("states", states));
        }
        for name in &expression.variables {
            if let Some(value) = crate::data::Variables::get(&variables, name) {
                bindings.push((&**name, value));
            }
        }
        expression.compiled.evaluate(None, &bindings, &environment)
    }

    /// `$states` with the members that are read, if it is not there already.
    fn make_states(&mut self, reads: Reads) {
        let made = self.states.as_ref().map_or(Reads::default(), |(made, _)| *made);
        if self.states.is_some() && made.union(reads) == made {
            return;
        }
        let reads = made.union(reads);
        let mut states = Map::new();
        if reads.input {
            states.insert("input".to_owned(), self.states_input.clone());
        }
        if reads.context {
            let context = self.made_context().clone();
            states.insert("context".to_owned(), context);
        }
        if let Some(result) = self.result.filter(|_| reads.result) {
            states.insert("result".to_owned(), result.clone());
        }
        if let Some(error) = self.error.filter(|_| reads.error) {
            states.insert("errorOutput".to_owned(), error.clone());
        }
        self.states = Some((reads, Value::Object(states)));
    }

    /// What a path leads to.
    pub(super) fn path(&mut self, path: &Path) -> Result<Value, Fault> {
        self.scoped(|scope, _| path.read(scope).map(std::borrow::Cow::into_owned))
            .map_err(|error| Fault::from(crate::data::DataError::from(error)))
    }

    /// `InputPath`, `OutputPath`: none if the value stays as it is.
    pub(super) fn selection(&mut self, selection: &Selection) -> Result<Option<Value>, Fault> {
        match selection {
            Selection::Whole => Ok(None),
            Selection::Nothing => Ok(Some(Value::Object(Map::new()))),
            Selection::Path(path) => self.path(path).map(Some),
        }
    }

    /// A number as JSON, with what a message calls its source.
    pub(super) fn number(&mut self, number: &Number) -> Result<Value, Fault> {
        match number {
            Number::Literal(number) => Ok(Value::from(*number)),
            Number::Path(path) => Ok(number_of(self.path(path)?)),
            Number::Query(expression) => self.expression(expression),
        }
    }

    /// `Error`, `Cause` and their forms with `Path`.
    pub(super) fn text(&mut self, field: &str, text: &Text) -> Result<Arc<str>, Fault> {
        match text {
            Text::Literal(text) => Ok(Arc::clone(text)),
            Text::Path(expression) => {
                let field = format!("{field}Path");
                let value = self.scoped(|scope, random| {
                    PathExpression::evaluate(expression, &field, scope, random).map(std::borrow::Cow::into_owned)
                })?;
                match value {
                    Value::String(text) => Ok(text.into()),
                    other => Err(Fault::runtime(format!(
                        "The {field} '{}' must give a string, but gave: {other}",
                        expression.as_str()
                    ))),
                }
            }
            Text::Query(expression) => match self.expression(expression)? {
                Value::String(text) => Ok(text.into()),
                other => Err(unexpected(expression, "string", &other)),
            },
        }
    }
}

/// What Step Functions says of an error, where that is known to differ from what the expression's evaluation says.
fn message(error: &sledge_jsonata::Error) -> Cow<'_, str> {
    match error.code() {
        "T1006" => Cow::Borrowed("Attempted to invoke a non-function"),
        _ => Cow::from(error.message()),
    }
}

/// A text of digits as a number: Step Functions takes both where a path leads to a number.
pub(super) fn number_of(value: Value) -> Value {
    match &value {
        Value::String(text) => text.parse::<i64>().map_or(value, Value::from),
        _ => value,
    }
}

/// An expression gave another type than its field wants.
pub(super) fn unexpected(expression: &Expression, expected: &str, found: &Value) -> Fault {
    let kind = match found {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let Expression { source, location, .. } = expression;
    let cause = format!(
        "The JSONata expression '{source}' specified for the field '{location}' returned an unexpected result type. Expected '{expected}', but was '{kind}' for value: {found}"
    );
    Fault::query(location, cause)
}
