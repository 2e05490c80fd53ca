//! Evaluates filters, as Jayway JsonPath does:
//!
//! - What is missing is equal to nothing, so that `!=` and `nin` hold for it.
//! - A number and a string that holds it are equal; only two numbers, or two strings, have an order.
//! - A path alone asks whether it leads to anything, `null` included.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::read::{Found, Reader, Stop};
use super::syntax::{Comparison, Filter, Operand, Operator};
use crate::data::limits::NUMBER_BYTES_MAX;
use crate::data::number;

impl<'a> Reader<'a, '_> {
    /// Whether a filter holds for an item. Recurses as deep as the filter is nested.
    pub(super) fn accepts(&mut self, filter: &Filter, item: &'a Value) -> Result<bool, Stop> {
        self.visit(1)?;
        match filter {
            Filter::Or(parts) => {
                for part in parts {
                    if self.accepts(part, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Filter::And(parts) => {
                for part in parts {
                    if !self.accepts(part, item)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Filter::Not(part) => Ok(!self.accepts(part, item)?),
            Filter::Exists(query) => match self.query(query, Some(item)) {
                Ok(Found::Many(values)) => Ok(!values.is_empty()),
                Ok(_) => Ok(true),
                Err(Stop::Visits) => Err(Stop::Visits),
                Err(_) => Ok(false),
            },
            Filter::Compare(comparison) => self.compares(comparison, item),
            Filter::Match(parts) => {
                let (operand, pattern) = &**parts;
                let Some(found) = self.operand(operand, Some(item))? else { return Ok(false) };
                let text: Cow<'_, str> = match found.value() {
                    Some(Value::String(text)) => Cow::Borrowed(text),
                    Some(Value::Number(number)) => Cow::Owned(number.to_string()),
                    _ => return Ok(false),
                };
                self.visit(pattern.price(&text))?;
                Ok(pattern.matches(&text))
            }
        }
    }

    /// What an operand stands for. None if its path leads nowhere.
    pub(super) fn operand<'b>(&mut self, operand: &'b Operand, current: Option<&'a Value>) -> Result<Option<Found<'b>>, Stop>
    where
        'a: 'b,
    {
        match operand {
            Operand::Literal(value) => Ok(Some(Found::One(value))),
            Operand::Query(query) => match self.query(query, current) {
                Ok(found) => Ok(Some(found)),
                Err(Stop::Visits) => Err(Stop::Visits),
                Err(_) => Ok(None),
            },
        }
    }

    fn compares(&mut self, comparison: &Comparison, item: &'a Value) -> Result<bool, Stop> {
        let Comparison { left, operator, right } = comparison;
        let left = self.operand(left, Some(item))?;
        let right = self.operand(right, Some(item))?;
        let negated = matches!(operator, Operator::NotEqual | Operator::NotIn);
        let (Some(left), Some(right)) = (left, right) else { return Ok(negated) };
        let holds = match operator {
            Operator::Equal | Operator::NotEqual => self.is_equal(&left, &right)?,
            Operator::Less => self.order(&left, &right)? == Some(Ordering::Less),
            Operator::LessOrEqual => matches!(self.order(&left, &right)?, Some(Ordering::Less | Ordering::Equal)),
            Operator::Greater => self.order(&left, &right)? == Some(Ordering::Greater),
            Operator::GreaterOrEqual => matches!(self.order(&left, &right)?, Some(Ordering::Greater | Ordering::Equal)),
            Operator::Size => match (self.count(&left)?, right.value()) {
                (Some(count), Some(size)) => self.loosely(&Value::from(count), size)?,
                _ => false,
            },
            Operator::Empty => match (self.count(&left)?, right.value()) {
                (Some(count), Some(empty)) => empty.as_bool() == Some(count == 0),
                _ => false,
            },
            Operator::In
            | Operator::NotIn
            | Operator::Contains
            | Operator::All
            | Operator::SubsetOf
            | Operator::AnyOf
            | Operator::NoneOf => self.sets(*operator, &left, &right)?,
        };
        Ok(holds != negated)
    }

    /// Operators on lists; `contains` also looks for a string in a string.
    fn sets(&mut self, operator: Operator, left: &Found<'_>, right: &Found<'_>) -> Result<bool, Stop> {
        if let (Operator::Contains, Some(Value::String(text))) = (operator, left.value()) {
            self.visit_text(text.len())?;
            return Ok(right.value().and_then(Value::as_str).is_some_and(|part| text.contains(part)));
        }
        let (lefts, rights) = match operator {
            Operator::In | Operator::NotIn => (left.value().map(|value| vec![value]), right.items()),
            Operator::Contains => (left.items(), right.value().map(|value| vec![value])),
            _ => (left.items(), right.items()),
        };
        let (Some(lefts), Some(rights)) = (lefts, rights) else { return Ok(false) };
        self.visit(lefts.len().saturating_add(rights.len()))?;
        match operator {
            Operator::All | Operator::Contains => self.are_among(&rights, &lefts),
            Operator::AnyOf => self.is_any_among(&lefts, &rights),
            Operator::NoneOf => Ok(!self.is_any_among(&lefts, &rights)?),
            _ => self.are_among(&lefts, &rights),
        }
    }

    fn are_among(&mut self, values: &[&Value], list: &[&Value]) -> Result<bool, Stop> {
        for value in values {
            if !self.is_any_among(&[value], list)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_any_among(&mut self, values: &[&Value], list: &[&Value]) -> Result<bool, Stop> {
        for value in values {
            for item in list {
                if self.loosely(value, item)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn is_equal(&mut self, left: &Found<'_>, right: &Found<'_>) -> Result<bool, Stop> {
        if let (Some(left), Some(right)) = (left.value(), right.value()) {
            return self.loosely(left, right);
        }
        let (Some(left), Some(right)) = (left.items(), right.items()) else { return Ok(false) };
        self.visit(left.len().max(right.len()))?;
        if left.len() != right.len() {
            return Ok(false);
        }
        for (left, right) in left.iter().zip(right) {
            if !self.is_same(left, right)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether two values are the same, or a number and a string that holds it.
    fn loosely(&mut self, left: &Value, right: &Value) -> Result<bool, Stop> {
        match (left, right) {
            (Value::Number(number), Value::String(text)) | (Value::String(text), Value::Number(number)) => {
                self.visit(1)?;
                let parsed = if text.len() > NUMBER_BYTES_MAX { None } else { text.parse::<Number>().ok() };
                Ok(parsed.is_some_and(|parsed| number::compare(&parsed, number) == Ordering::Equal))
            }
            _ => self.is_same(left, right),
        }
    }

    fn order(&mut self, left: &Found<'_>, right: &Found<'_>) -> Result<Option<Ordering>, Stop> {
        Ok(match (left.value(), right.value()) {
            (Some(Value::Number(left)), Some(Value::Number(right))) => Some(number::compare(left, right)),
            (Some(Value::String(left)), Some(Value::String(right))) => {
                self.visit_text(left.len().min(right.len()))?;
                Some(left.cmp(right))
            }
            _ => None,
        })
    }

    /// How many items, members or characters it has.
    pub(super) fn count(&mut self, found: &Found<'_>) -> Result<Option<usize>, Stop> {
        Ok(match (found, found.value()) {
            (Found::Many(values), _) => Some(values.len()),
            (_, Some(Value::Array(items))) => Some(items.len()),
            (_, Some(Value::Object(members))) => Some(members.len()),
            (_, Some(Value::String(text))) => {
                self.visit_text(text.len())?;
                Some(text.chars().count())
            }
            _ => None,
        })
    }
}
