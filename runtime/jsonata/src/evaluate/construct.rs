//! Arrays and objects that an expression makes, and grouping.

use std::rc::Rc;

use indexmap::IndexMap;

use super::Interpreter;
use super::frame::Frame;
use super::tuple::{Tuple, Tuples};
use crate::ast::{Group, Kind, Node};
use crate::error::{Error, Result};
use crate::meter::Charge;
use crate::text::Text;
use crate::value::{Array, Flags, ListBuilder, RecordBuilder, Value};

/// What belongs to one key.
struct Entry<'a> {
    /// The pair of expressions that gave the key.
    pair: usize,
    /// Items of the input that have it.
    count: usize,
    items: ListBuilder<'a>,
    tuples: Tuples<'a>,
    _charge: Charge<'a>,
}

/// Bytes of a key's entry beside its items.
const ENTRY_BYTES: usize = 4 * size_of::<Entry<'static>>();

impl<'a> Interpreter<'a> {
    /// `[...]`: the values, those of arrays one by one, but arrays of `[...]` within as they are.
    pub(super) fn array(&self, node: &Node, items: &'a [Node], input: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let flags = Flags { is_constructed: node.is_constructor, ..Flags::default() };
        if let [only] = items
            && !matches!(only.kind, Kind::Array(_))
        {
            let value = self.evaluate(only, input, frame)?;
            if matches!(&value, Value::Array(Array::Range { .. })) && !node.is_constructor {
                return Ok(value); // which stays as small as it is
            }
            let mut result = ListBuilder::new(&self.meter)?;
            self.append_to(&mut result, &value)?;
            return Ok(Value::Array(result.array(flags)));
        }
        let mut result = ListBuilder::new(&self.meter)?;
        for item in items {
            let value = self.evaluate(item, input, frame)?;
            if matches!(item.kind, Kind::Array(_)) {
                if !value.is_undefined() {
                    result.push(value)?;
                }
            } else {
                self.append_to(&mut result, &value)?;
            }
        }
        Ok(Value::Array(result.array(flags)))
    }

    pub(crate) fn append_to(&self, list: &mut ListBuilder<'a>, value: &Value<'a>) -> Result<()> {
        self.items(value).try_for_each(|item| list.push(item))
    }

    /// `{...}`: the items of the input by their keys, and a value for each key.
    pub(super) fn group(&self, group: &'a Group, input: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let mut entries: IndexMap<Text<'a>, Entry<'a>> = IndexMap::new();
        if let Value::Tuples(tuples) = input {
            for tuple in &tuples.items {
                let inner = self.tuple_frame(tuple, frame)?;
                self.sort_into(&mut entries, group, &tuple.context, Some(tuple), &inner)?;
            }
        } else {
            let mut is_empty = true;
            for item in self.items(input) {
                is_empty = false;
                self.sort_into(&mut entries, group, &item, None, frame)?;
            }
            if is_empty {
                self.sort_into(&mut entries, group, &Value::Undefined, None, frame)?;
            }
        }
        let mut result = RecordBuilder::new(&self.meter)?;
        for (key, entry) in entries {
            let Some((_, value)) = group.pairs.get(entry.pair) else {
                continue;
            };
            let value = if matches!(input, Value::Tuples(_)) {
                let merged = self.merged(&entry.tuples)?;
                let inner = self.tuple_frame(&merged, frame)?;
                self.evaluate(value, &merged.context, &inner)?
            } else {
                let mut items = entry.items;
                let context = match entry.count {
                    1 => items.take_single().unwrap_or_default(),
                    _ => items.plain(),
                };
                self.evaluate(value, &context, frame)?
            };
            if !value.is_undefined() {
                result.set(key, value)?;
            }
        }
        Ok(result.value())
    }

    /// Puts an item into the entries of its keys.
    fn sort_into(
        &self,
        entries: &mut IndexMap<Text<'a>, Entry<'a>>,
        group: &'a Group,
        item: &Value<'a>,
        tuple: Option<&Tuple<'a>>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<()> {
        for (pair, (key, _)) in group.pairs.iter().enumerate() {
            let key = match self.evaluate(key, item, frame)? {
                Value::Text(key) => key,
                Value::Undefined => continue,
                other => return Err(Error::new("T1003").at(group.position).with_value(self.quoted(&other))),
            };
            self.meter.step_bytes(key.as_str().len())?;
            if !entries.contains_key(key.as_str()) {
                let entry = Entry {
                    pair,
                    count: 0,
                    items: ListBuilder::new(&self.meter)?,
                    tuples: Tuples::new(&self.meter)?,
                    _charge: Charge::new(&self.meter, ENTRY_BYTES)?,
                };
                entries.insert(key.clone(), entry);
            }
            let Some(entry) = entries.get_mut(key.as_str()) else {
                continue;
            };
            if entry.pair != pair {
                return Err(Error::new("D1009").at(group.position).with_value(key.as_str()));
            }
            match tuple {
                Some(tuple) => entry.tuples.push(tuple.clone())?,
                None if entry.count == 0 => entry.items.push(item.clone())?,
                None => {
                    if let Some(first) = entry.items.take_single().filter(|_| entry.count == 1) {
                        self.append_to(&mut entry.items, &first)?;
                    }
                    self.append_to(&mut entry.items, item)?;
                }
            }
            entry.count += 1;
        }
        Ok(())
    }

    /// One tuple of several: each variable has the values of all.
    fn merged(&self, tuples: &Tuples<'a>) -> Result<Tuple<'a>> {
        let mut items = tuples.items.iter();
        let mut merged = items.next().cloned().unwrap_or(Tuple { context: Value::Undefined, bindings: Vec::new() });
        let Some(second) = items.next() else {
            return Ok(merged);
        };
        let rest = || std::iter::once(second).chain(items.clone());
        let join = |first: &Value<'a>, find: &dyn Fn(&Tuple<'a>) -> Option<Value<'a>>| {
            let mut joined = ListBuilder::new(&self.meter)?;
            self.append_to(&mut joined, first)?;
            for tuple in rest() {
                self.append_to(&mut joined, &find(tuple).unwrap_or_default())?;
            }
            Ok(joined.plain())
        };
        merged.context = join(&merged.context, &|tuple| Some(tuple.context.clone()))?;
        for (name, value) in &mut merged.bindings {
            let find = |tuple: &Tuple<'a>| tuple.bindings.iter().find(|(bound, _)| bound == name).map(|(_, value)| value.clone());
            *value = join(value, &find)?;
        }
        Ok(merged)
    }
}
