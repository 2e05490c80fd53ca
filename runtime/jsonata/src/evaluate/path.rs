//! Paths: steps, wildcards, predicates (<https://docs.jsonata.org/path-operators>).

use std::rc::Rc;

use super::Interpreter;
use super::frame::Frame;
use super::tuple::Tuples;
use crate::ast::{Kind, Node, Path};
use crate::error::{Error, Result};
use crate::limits::JSON_NESTING_MAX;
use crate::value::{Array, Flags, ListBuilder, Value};

/// Fails where data nests too deeply for recursion.
pub(crate) fn check_nesting(nesting: u32) -> Result<()> {
    if nesting > JSON_NESTING_MAX { Err(Error::new("U1003").with_value(JSON_NESTING_MAX)) } else { Ok(()) }
}

impl<'a> Interpreter<'a> {
    pub(super) fn path(&self, node: &'a Node, path: &'a Path, input: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let (mut current, mut at) = self.direct(path, input, frame)?;
        let mut tuples: Option<Rc<Tuples<'a>>> = None;
        let mut is_tuple = false;
        if at == 0 && !is_sequence_input(&current, path) {
            current = self.single(current)?;
        }
        while let Some(step) = path.steps.get(at) {
            is_tuple |= step.is_tuple;
            if at == 0 && step.is_constructor {
                current = self.evaluate(step, &current, frame)?;
            } else if is_tuple {
                tuples = Some(self.tuple_step(step, &current, tuples.take(), frame)?);
            } else {
                current = self.step(step, &current, frame, at + 1 == path.steps.len())?;
            }
            let is_empty = match &current {
                Value::Undefined => true,
                Value::Array(array) => array.len() == 0,
                _ => false,
            };
            if !is_tuple && is_empty {
                break;
            }
            at += 1;
        }
        if let Some(tuples) = &tuples {
            current = if node.is_tuple { Value::Tuples(Rc::clone(tuples)) } else { self.contexts(tuples)? };
        }
        if path.keeps_singleton {
            current = self.kept(current)?;
        }
        match (&node.group, tuples) {
            (Some(group), Some(tuples)) => self.group(group, &Value::Tuples(tuples), frame),
            (Some(group), None) => self.group(group, &current, frame),
            (None, _) => Ok(current),
        }
    }

    /// Takes steps that are names as long as there are objects: what most paths do, without sequences. Gives where it ends, and the steps taken.
    fn direct(&self, path: &'a Path, input: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<(Value<'a>, usize)> {
        let is_plain =
            |step: &Node| !step.is_tuple && step.stages.is_empty() && step.predicates.is_empty() && step.group.is_none();
        let mut current = input.clone();
        let mut at = 0;
        for step in path.steps.iter().take_while(|step| is_plain(step)) {
            let next = match (&step.kind, &current) {
                (Kind::Variable(name, None), _) if at == 0 && !name.is_empty() => frame.lookup(name).unwrap_or_default(),
                (Kind::Name(name), Value::Object(object)) => object.get(name).unwrap_or_default(),
                _ => break,
            };
            if let Kind::Name(name) = &step.kind {
                self.meter.step_bytes(name.len())?;
            }
            at += 1;
            current = next;
            if current.is_undefined() {
                return Ok((current, path.steps.len()));
            }
            if !matches!(current, Value::Object(_)) {
                break;
            }
        }
        if at > 0 && at < path.steps.len() {
            // Between steps there are sequences.
            let is_array = matches!(&current, Value::Array(_));
            if !is_array {
                current = self.single(current)?;
            }
        }
        Ok((current, at))
    }

    pub(crate) fn single(&self, value: Value<'a>) -> Result<Value<'a>> {
        let mut sequence = ListBuilder::with_capacity(&self.meter, 1)?;
        sequence.push(value)?;
        Ok(sequence.sequence())
    }

    /// The result of a path that keeps single results in an array.
    fn kept(&self, value: Value<'a>) -> Result<Value<'a>> {
        let flags = Flags { keeps_singleton: true, ..Flags::SEQUENCE };
        match value {
            Value::Array(array) if array.flags().is_sequence => {
                let flags = Flags { keeps_singleton: true, ..array.flags() };
                Ok(Value::Array(array.with_flags(flags, &self.meter)?))
            }
            Value::Array(array) if !array.flags().is_constructed => Ok(Value::Array(array)),
            Value::Undefined | Value::Tuples(_) => Ok(value),
            value => {
                let mut sequence = ListBuilder::with_capacity(&self.meter, 1)?;
                sequence.push(value)?;
                Ok(Value::Array(sequence.array(flags)))
            }
        }
    }

    fn contexts(&self, tuples: &Tuples<'a>) -> Result<Value<'a>> {
        let mut contexts = ListBuilder::with_capacity(&self.meter, tuples.items.len())?;
        for tuple in &tuples.items {
            contexts.push(tuple.context.clone())?;
        }
        Ok(contexts.sequence())
    }

    /// One step: evaluated for each element of the input, its results in one flat sequence.
    fn step(&self, step: &'a Node, input: &Value<'a>, frame: &Rc<Frame<'a>>, is_last: bool) -> Result<Value<'a>> {
        if let Kind::Sort(terms) = &step.kind {
            let sorted = self.sort_values(terms, input, step.position, frame)?;
            return self.stages(&step.stages, sorted, frame);
        }
        let mut results = ListBuilder::new(&self.meter)?;
        for item in self.items(input) {
            let result = self.evaluate(step, &item, frame)?;
            let result = self.stages(&step.stages, result, frame)?;
            if !result.is_undefined() {
                results.push(result)?;
            }
        }
        if is_last
            && let [Value::Array(array)] = results.items()
            && !array.flags().is_sequence
        {
            return Ok(results.take_single().unwrap_or_default());
        }
        let mut flat = ListBuilder::with_capacity(&self.meter, results.len())?;
        for result in results.items() {
            match result {
                Value::Array(array) if !array.flags().is_constructed => {
                    for item in array.iter() {
                        flat.push(item)?;
                    }
                }
                result => flat.push(result.clone())?,
            }
        }
        Ok(flat.sequence())
    }

    /// The field of an object, or those of all objects of an array.
    pub(crate) fn lookup(&self, input: &Value<'a>, name: &str, nesting: u32) -> Result<Value<'a>> {
        match input {
            Value::Object(object) => {
                self.meter.step_bytes(name.len())?;
                Ok(object.get(name).unwrap_or_default())
            }
            Value::Array(array) => {
                check_nesting(nesting)?;
                let mut found = ListBuilder::new(&self.meter)?;
                self.meter.step(array.len())?;
                for item in array.iter() {
                    match self.lookup(&item, name, nesting + 1)? {
                        Value::Undefined => {}
                        Value::Array(inner) => {
                            for item in inner.iter() {
                                found.push(item)?;
                            }
                        }
                        value => found.push(value)?,
                    }
                }
                Ok(found.sequence())
            }
            _ => Ok(Value::Undefined),
        }
    }

    /// `*`: all fields of an object, or elements of an array.
    pub(super) fn wildcard(&self, input: &Value<'a>) -> Result<Value<'a>> {
        let input = match input {
            Value::Array(array) if array.flags().is_wrapper => array.get(0).unwrap_or_default(),
            input => input.clone(),
        };
        let mut found = ListBuilder::new(&self.meter)?;
        let mut is_sequence = true;
        let mut add = |value: Value<'a>| match &value {
            Value::Array(_) => {
                is_sequence = false;
                self.flatten(&value, &mut found, 0)
            }
            _ => found.push(value),
        };
        match &input {
            Value::Array(array) => array.iter().try_for_each(&mut add)?,
            Value::Object(object) => object.iter().try_for_each(|(_, value)| add(value))?,
            _ => {}
        }
        Ok(if is_sequence { found.sequence() } else { found.plain() })
    }

    fn flatten(&self, value: &Value<'a>, found: &mut ListBuilder<'a>, nesting: u32) -> Result<()> {
        check_nesting(nesting)?;
        match value {
            Value::Array(array) => {
                self.meter.step(1)?;
                array.iter().try_for_each(|item| self.flatten(&item, found, nesting + 1))
            }
            value => found.push(value.clone()),
        }
    }

    /// `**`: the input and all that is in it, but arrays.
    pub(super) fn descendants(&self, input: &Value<'a>) -> Result<Value<'a>> {
        if input.is_undefined() {
            return Ok(Value::Undefined);
        }
        let mut found = ListBuilder::new(&self.meter)?;
        self.descend(input, &mut found, 0)?;
        if let Some(single) = found.take_single() {
            return Ok(single);
        }
        Ok(found.sequence())
    }

    fn descend(&self, value: &Value<'a>, found: &mut ListBuilder<'a>, nesting: u32) -> Result<()> {
        check_nesting(nesting)?;
        match value {
            Value::Array(array) => {
                self.meter.step(1)?;
                array.iter().try_for_each(|item| self.descend(&item, found, nesting + 1))
            }
            Value::Object(object) => {
                found.push(value.clone())?;
                object.iter().try_for_each(|(_, value)| self.descend(&value, found, nesting + 1))
            }
            value => found.push(value.clone()),
        }
    }

    /// Applies a predicate: elements by their index, or those for which it is true.
    pub(super) fn filter(&self, predicate: &'a Node, input: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        if let Value::Tuples(tuples) = input {
            return self.filter_tuples(predicate, tuples, frame);
        }
        let array = match input {
            Value::Array(array) => array.clone(),
            Value::Undefined => return Ok(ListBuilder::new(&self.meter)?.sequence()),
            value => match self.single(value.clone())? {
                Value::Array(array) => array,
                other => return Ok(other), // a sequence is an array
            },
        };
        if let Kind::Number(index) = predicate.kind {
            return self.element(&array, index);
        }
        let mut found = ListBuilder::new(&self.meter)?;
        for (index, item) in array.iter().enumerate() {
            let result = self.evaluate(predicate, &item, frame)?;
            for _ in 0..self.selected(&result, index, array.len())? {
                found.push(item.clone())?;
            }
        }
        Ok(found.sequence())
    }

    fn element(&self, array: &Array<'a>, index: f64) -> Result<Value<'a>> {
        let item = position(index, array.len()).and_then(|index| array.get(index));
        match item {
            Some(Value::Array(item)) => Ok(Value::Array(item)),
            Some(Value::Undefined) | None => Ok(ListBuilder::new(&self.meter)?.sequence()),
            Some(item) => self.single(item),
        }
    }

    fn filter_tuples(&self, predicate: &'a Node, tuples: &Tuples<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let mut found = Tuples::new(&self.meter)?;
        let count = tuples.items.len();
        if let Kind::Number(index) = predicate.kind {
            if let Some(tuple) = position(index, count).and_then(|index| tuples.items.get(index)) {
                found.push(tuple.clone())?;
            }
            return Ok(Value::Tuples(Rc::new(found)));
        }
        for (index, tuple) in tuples.items.iter().enumerate() {
            let inner = self.tuple_frame(tuple, frame)?;
            let result = self.evaluate(predicate, &tuple.context, &inner)?;
            for _ in 0..self.selected(&result, index, count)? {
                found.push(tuple.clone())?;
            }
        }
        Ok(Value::Tuples(Rc::new(found)))
    }

    /// How often a predicate selects the element at an index.
    fn selected(&self, result: &Value<'a>, index: usize, count: usize) -> Result<usize> {
        let is_it = |number: f64| position(number, count) == Some(index);
        match result {
            Value::Number(number) => Ok(usize::from(is_it(finite(*number)?))),
            Value::Array(array) => {
                self.meter.step(array.len())?;
                let mut selected = 0;
                for item in array.iter() {
                    match item {
                        Value::Number(number) => selected += usize::from(is_it(finite(number)?)),
                        _ => return Ok(usize::from(self.is_true(result)?)),
                    }
                }
                Ok(selected)
            }
            result => Ok(usize::from(self.is_true(result)?)),
        }
    }
}

/// A number that is one of JSON.
pub(crate) fn finite(number: f64) -> Result<f64> {
    if number.is_finite() { Ok(number) } else { Err(Error::new("D1001").with_value(crate::number::to_text(number))) }
}

/// The element that an index means: rounded down, from the end if it is negative.
fn position(index: f64, count: usize) -> Option<usize> {
    let index = index.floor();
    let index = if index < 0.0 { index + count as f64 } else { index };
    (index >= 0.0 && index < count as f64).then_some(index as usize)
}

/// Whether the input of a path is taken as the sequence that its first step maps: an array is, unless the path begins with a variable.
fn is_sequence_input(input: &Value<'_>, path: &Path) -> bool {
    let begins_with_variable = path.steps.first().is_some_and(|step| matches!(step.kind, Kind::Variable(..)));
    matches!(input, Value::Array(_)) && !begins_with_variable
}
