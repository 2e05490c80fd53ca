//! Paths that carry variables along: `@`, `#` and `%`.

use std::rc::Rc;

use super::Interpreter;
use super::frame::Frame;
use crate::ast::{Kind, Node, Stage};
use crate::error::Result;
use crate::meter::{Charge, Garbage, Meter};
use crate::value::Value;

/// A context and the variables that belong to it.
#[derive(Clone)]
pub(crate) struct Tuple<'a> {
    pub(crate) context: Value<'a>,
    pub(crate) bindings: Vec<(&'a str, Value<'a>)>,
}

pub(crate) struct Tuples<'a> {
    pub(crate) items: Vec<Tuple<'a>>,
    charge: Charge<'a>,
}

const TUPLE_BYTES: usize = 2 * size_of::<Tuple<'static>>();
const BINDING_BYTES: usize = 2 * size_of::<(&str, Value<'static>)>();

impl<'a> Tuple<'a> {
    pub(crate) fn bind(&mut self, name: &'a str, value: Value<'a>) {
        match self.bindings.iter_mut().find(|(bound, _)| *bound == name) {
            Some((_, bound)) => *bound = value,
            None => self.bindings.push((name, value)),
        }
    }
}

impl<'a> Tuples<'a> {
    pub(crate) fn new(meter: &Rc<Meter<'a>>) -> Result<Tuples<'a>> {
        Ok(Tuples { items: Vec::new(), charge: Charge::new(meter, TUPLE_BYTES)? })
    }

    pub(crate) fn push(&mut self, tuple: Tuple<'a>) -> Result<()> {
        self.charge.meter.step(1 + tuple.bindings.len())?;
        self.charge.grow(TUPLE_BYTES + tuple.bindings.len() * BINDING_BYTES)?;
        self.items.push(tuple);
        Ok(())
    }
}

impl Drop for Tuples<'_> {
    fn drop(&mut self) {
        let items = std::mem::take(&mut self.items);
        let values = items.into_iter().flat_map(|tuple| {
            let bindings = tuple.bindings.into_iter().map(|(_, value)| value);
            bindings.chain([tuple.context]).map(Garbage::Value)
        });
        self.charge.meter.bury(values);
    }
}

impl<'a> Interpreter<'a> {
    /// The variables of a tuple as a scope.
    pub(super) fn tuple_frame(&self, tuple: &Tuple<'a>, frame: &Rc<Frame<'a>>) -> Result<Rc<Frame<'a>>> {
        let inner = Frame::new(Some(frame), &self.meter)?;
        for (name, value) in &tuple.bindings {
            inner.bind(name, value.clone())?;
        }
        Ok(inner)
    }

    /// One step of a path that carries variables.
    pub(super) fn tuple_step(
        &self,
        step: &'a Node,
        input: &Value<'a>,
        tuples: Option<Rc<Tuples<'a>>>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Rc<Tuples<'a>>> {
        let result = if let Kind::Sort(terms) = &step.kind {
            match tuples {
                Some(tuples) => self.sort_tuples(terms, &tuples, step.position, frame)?,
                None => {
                    let sorted = self.sort_values(terms, input, step.position, frame)?;
                    let mut result = Tuples::new(&self.meter)?;
                    for (index, context) in self.items(&sorted).enumerate() {
                        let index = step.index.iter().map(|name| (&**name, Value::Number(index as f64)));
                        result.push(Tuple { context, bindings: index.collect() })?;
                    }
                    result
                }
            }
        } else {
            let tuples = match tuples {
                Some(tuples) => tuples,
                None => {
                    let mut first = Tuples::new(&self.meter)?;
                    for context in self.items(input) {
                        first.push(Tuple { context, bindings: Vec::new() })?;
                    }
                    Rc::new(first)
                }
            };
            self.tuple_map(step, &tuples, frame)?
        };
        match self.stages(&step.stages, Value::Tuples(Rc::new(result)), frame)? {
            Value::Tuples(tuples) => Ok(tuples),
            _ => Ok(Rc::new(Tuples::new(&self.meter)?)),
        }
    }

    fn tuple_map(&self, step: &'a Node, tuples: &Tuples<'a>, frame: &Rc<Frame<'a>>) -> Result<Tuples<'a>> {
        let mut result = Tuples::new(&self.meter)?;
        for tuple in &tuples.items {
            let inner = self.tuple_frame(tuple, frame)?;
            let found = self.evaluate(step, &tuple.context, &inner)?;
            if let Value::Tuples(found) = &found {
                for found in &found.items {
                    let mut next = tuple.clone();
                    self.meter.count(found.bindings.len() * next.bindings.len());
                    for (name, value) in &found.bindings {
                        next.bind(name, value.clone());
                    }
                    next.context = found.context.clone();
                    result.push(next)?;
                }
                continue;
            }
            for (index, value) in self.items(&found).enumerate() {
                let mut next = tuple.clone();
                match &step.focus {
                    Some(name) => next.bind(name, value),
                    None => next.context = value,
                }
                if let Some(name) = &step.index {
                    next.bind(name, Value::Number(index as f64));
                }
                if let Some(slot) = step.ancestor {
                    next.bind(self.label(slot), tuple.context.clone());
                }
                result.push(next)?;
            }
        }
        Ok(result)
    }

    /// Applies what follows a step: predicates, and `#` after them.
    pub(super) fn stages(&self, stages: &'a [Stage], input: Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let mut result = input;
        for stage in stages {
            match (stage, &result) {
                (Stage::Filter(predicate), _) => result = self.filter(predicate, &result, frame)?,
                (Stage::Index(name), Value::Tuples(tuples)) => {
                    let mut numbered = Tuples::new(&self.meter)?;
                    for (index, tuple) in tuples.items.iter().enumerate() {
                        let mut tuple = tuple.clone();
                        tuple.bind(name, Value::Number(index as f64));
                        numbered.push(tuple)?;
                    }
                    result = Value::Tuples(Rc::new(numbered));
                }
                (Stage::Index(_), _) => {}
            }
        }
        Ok(result)
    }
}
