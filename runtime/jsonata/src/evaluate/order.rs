//! `^(...)`, and sorting in general: a stable merge sort whose comparisons can fail.

use std::cmp::Ordering;
use std::rc::Rc;

use super::Interpreter;
use super::frame::Frame;
use super::tuple::{Tuple, Tuples};
use crate::ast::SortTerm;
use crate::error::{Error, Result};
use crate::meter::{Charge, Meter};
use crate::text;
use crate::value::{ListBuilder, Value};

/// Sorts; `is_after` says whether the first goes after the second.
pub(crate) fn merge_sort<'a, T: Clone>(
    mut items: Vec<T>,
    meter: &Rc<Meter<'a>>,
    is_after: &mut dyn FnMut(&T, &T) -> Result<bool>,
) -> Result<Vec<T>> {
    let _charge = Charge::new(meter, items.len().saturating_mul(2 * size_of::<T>()))?;
    let mut width = 1;
    while width < items.len() {
        let mut merged = Vec::with_capacity(items.len());
        for pair in items.chunks(2 * width) {
            meter.step(pair.len())?;
            let (left, right) = pair.split_at(width.min(pair.len()));
            let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
            while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
                let next = if is_after(first, second)? { right.next() } else { left.next() };
                merged.extend(next.cloned());
            }
            merged.extend(left.cloned());
            merged.extend(right.cloned());
        }
        items = merged;
        width *= 2;
    }
    Ok(items)
}

impl<'a> Interpreter<'a> {
    pub(super) fn sort_values(
        &self,
        terms: &'a [SortTerm],
        input: &Value<'a>,
        position: u32,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let mut items = ListBuilder::new(&self.meter)?;
        self.append_to(&mut items, input)?;
        if items.len() <= 1 {
            return Ok(items.sequence());
        }
        let (items, _charge) = items.into_items();
        let mut keyed = Vec::with_capacity(items.len());
        let _keys = Charge::new(&self.meter, items.len().saturating_mul(KEY_BYTES * (terms.len() + 2)))?;
        for item in items {
            keyed.push((self.sort_keys(terms, &item, frame)?, item));
        }
        let sorted = merge_sort(keyed, &self.meter, &mut |left, right| self.is_after(terms, &left.0, &right.0, position))?;
        let mut result = ListBuilder::with_capacity(&self.meter, sorted.len())?;
        for (_, item) in sorted {
            result.push(item)?;
        }
        Ok(result.plain())
    }

    pub(super) fn sort_tuples(
        &self,
        terms: &'a [SortTerm],
        tuples: &Tuples<'a>,
        position: u32,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Tuples<'a>> {
        let mut keyed: Vec<(Rc<[Value<'a>]>, &Tuple<'a>)> = Vec::with_capacity(tuples.items.len());
        let _keys = Charge::new(&self.meter, tuples.items.len().saturating_mul(KEY_BYTES * (terms.len() + 2)))?;
        for tuple in &tuples.items {
            let inner = self.tuple_frame(tuple, frame)?;
            keyed.push((self.sort_keys(terms, &tuple.context, &inner)?, tuple));
        }
        let sorted = merge_sort(keyed, &self.meter, &mut |left, right| self.is_after(terms, &left.0, &right.0, position))?;
        let mut result = Tuples::new(&self.meter)?;
        for (_, tuple) in sorted {
            result.push(tuple.clone())?;
        }
        Ok(result)
    }

    fn sort_keys(&self, terms: &'a [SortTerm], context: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Rc<[Value<'a>]>> {
        terms.iter().map(|term| self.evaluate(&term.expression, context, frame)).collect()
    }

    fn is_after(&self, terms: &[SortTerm], left: &[Value<'a>], right: &[Value<'a>], position: u32) -> Result<bool> {
        for ((term, left), right) in terms.iter().zip(left).zip(right) {
            self.meter.step(1)?;
            let order = match (left, right) {
                // What has no value comes last, whichever the order.
                (Value::Undefined, Value::Undefined) => continue,
                (Value::Undefined, _) => return Ok(true),
                (_, Value::Undefined) => return Ok(false),
                (Value::Number(left), Value::Number(right)) => left.partial_cmp(right).unwrap_or(Ordering::Equal),
                (Value::Text(left), Value::Text(right)) => {
                    self.meter.step_bytes(left.as_str().len().min(right.as_str().len()))?;
                    text::compare(left.as_str(), right.as_str())
                }
                (Value::Number(_) | Value::Text(_), Value::Number(_) | Value::Text(_)) => {
                    return Err(Error::new("T2007").at(position));
                }
                _ => return Err(Error::new("T2008").at(position)),
            };
            if order.is_ne() {
                return Ok(order.is_gt() != term.is_descending);
            }
        }
        Ok(false)
    }
}

const KEY_BYTES: usize = 2 * size_of::<Value<'static>>();
