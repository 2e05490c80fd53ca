//! Evaluates paths.
//!
//! A path that leads to one value is a chain of look-ups. Any other gathers references to nodes, step by step; every node that is looked at costs one visit. Nothing is
//! copied before the end.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::syntax::{Query, Root, Slice, Step};
use crate::data::limits::{BYTES_A_VISIT, COPIED_BYTES_A_VISIT, VALUE_DEPTH_MAX};
use crate::data::measure::json_bytes;
use crate::data::number;
use crate::data::scope::Scope;

/// How deep values may be nested that are copied on the way: deeper than what is read from JSON.
const COPY_DEPTH_MAX: usize = 2 * VALUE_DEPTH_MAX;

/// The evaluation of one path.
pub(super) struct Reader<'a, 's> {
    scope: &'s Scope<'a>,
    visits_left: &'s mut usize,
}

/// What a path leads to.
pub(super) enum Found<'b> {
    /// One value of a document.
    One(&'b Value),
    /// Several of them, or none.
    Many(Vec<&'b Value>),
    /// What was made from them.
    Made(Value),
}

/// Why a path leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// After so many steps there is nothing.
    Missing { steps: usize },
    /// The value before step number `steps` is not what the step needs.
    Unfit { steps: usize, is_index: bool, found: &'static str },
    /// There is no such variable.
    Variable(Box<str>),
    /// A function cannot be applied.
    Function(String),
    /// Too many visits.
    Visits,
}

impl<'a, 's> Reader<'a, 's> {
    pub(super) fn new(scope: &'s Scope<'a>, visits_left: &'s mut usize) -> Reader<'a, 's> {
        Reader { scope, visits_left }
    }

    /// What that path leads to; `current` is what `@` means.
    pub(super) fn query(&mut self, query: &Query, current: Option<&'a Value>) -> Result<Found<'a>, Stop> {
        let root = self.root(&query.root, current)?;
        let (steps, call) = match query.steps.split_last() {
            Some((Step::Function(call), before)) => (before, Some(call)),
            _ => (&*query.steps, None),
        };
        let found = if query.is_single { follow(root, steps).map(Found::One)? } else { self.gather(root, steps)? };
        match call {
            Some(call) => self.call(call, &found, current).map(Found::Made),
            None => Ok(found),
        }
    }

    /// So many visits are made.
    pub(super) fn visit(&mut self, nodes: usize) -> Result<(), Stop> {
        *self.visits_left = self.visits_left.checked_sub(nodes).ok_or(Stop::Visits)?;
        Ok(())
    }

    fn root(&self, root: &Root, current: Option<&'a Value>) -> Result<&'a Value, Stop> {
        match root {
            Root::Input => Ok(self.scope.input),
            Root::Context => Ok(self.scope.context),
            Root::Variable(name) => self.scope.variables.get(name).ok_or_else(|| Stop::Variable(name.clone())),
            Root::Current => current.ok_or(Stop::Missing { steps: 0 }),
        }
    }

    /// What a path with several results leads to. What is missing on the way is no mistake there.
    fn gather(&mut self, root: &'a Value, steps: &[Step]) -> Result<Found<'a>, Stop> {
        let (steps, names) = match steps.split_last() {
            Some((Step::Children(names), before)) => (before, Some(names)),
            _ => (steps, None),
        };
        let mut nodes = vec![root];
        for step in steps {
            nodes = self.step(step, &nodes)?;
        }
        let Some(names) = names else { return Ok(Found::Many(nodes)) };
        // Several names at the end make an object each, of the members that there are.
        let mut picked = Vec::new();
        for node in nodes {
            self.visit(names.len())?;
            if let Some(members) = node.as_object() {
                picked.push(self.pick(members, names)?);
            }
        }
        let is_one = steps.iter().all(Step::is_single);
        match picked.pop() {
            Some(only) if is_one => Ok(Found::Made(only)),
            last => Ok(Found::Made(Value::Array(picked.into_iter().chain(last).collect()))),
        }
    }

    /// An object of those members that there are.
    fn pick(&mut self, members: &Map<String, Value>, names: &[Box<str>]) -> Result<Value, Stop> {
        let mut picked = Map::new();
        for name in names {
            if let Some(member) = members.get(&**name) {
                picked.insert(name.to_string(), self.copy(member)?);
            }
        }
        Ok(Value::Object(picked))
    }

    /// A copy of a value, which costs visits by its size.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, Stop> {
        let bytes_max = self.visits_left.saturating_mul(COPIED_BYTES_A_VISIT);
        let bytes = json_bytes(value, bytes_max, COPY_DEPTH_MAX).map_err(|_| Stop::Visits)?;
        self.visit(bytes.div_ceil(COPIED_BYTES_A_VISIT))?;
        Ok(value.clone())
    }

    /// What a text of that length costs that is compared or searched.
    pub(super) fn visit_text(&mut self, bytes: usize) -> Result<(), Stop> {
        self.visit(bytes / BYTES_A_VISIT)
    }

    /// Whether two values are the same, for visits by what is compared.
    pub(super) fn is_same(&mut self, left: &Value, right: &Value) -> Result<bool, Stop> {
        number::is_same_within(left, right, self.visits_left).ok_or(Stop::Visits)
    }

    fn step(&mut self, step: &Step, nodes: &[&'a Value]) -> Result<Vec<&'a Value>, Stop> {
        let mut found = Vec::new();
        for node in nodes {
            match step {
                Step::Deep(inner) => self.descend(inner, node, &mut found)?,
                Step::Filter(filter) if node.is_object() => {
                    if self.accepts(filter, node)? {
                        found.push(*node);
                    }
                }
                _ => self.apply(step, node, &mut found)?,
            }
        }
        Ok(found)
    }

    /// A step for one node, whose results are added.
    fn apply(&mut self, step: &Step, node: &'a Value, found: &mut Vec<&'a Value>) -> Result<(), Stop> {
        self.visit(1)?;
        match (step, node) {
            (Step::Child(name), Value::Object(members)) => found.extend(members.get(&**name)),
            (Step::Children(names), Value::Object(members)) => {
                self.visit(names.len())?;
                found.extend(names.iter().filter_map(|name| members.get(&**name)));
            }
            (Step::Index(index), Value::Array(items)) => found.extend(item(items, *index)),
            (Step::Indices(indices), Value::Array(items)) => {
                self.visit(indices.len())?;
                found.extend(indices.iter().filter_map(|index| item(items, *index)));
            }
            (Step::Slice(slice), Value::Array(items)) => {
                self.visit(items.len())?;
                found.extend(slice.indices(items.len()).filter_map(|index| items.get(index)));
            }
            (Step::Wildcard, Value::Array(items)) => {
                self.visit(items.len())?;
                found.extend(items);
            }
            (Step::Wildcard, Value::Object(members)) => {
                self.visit(members.len())?;
                found.extend(members.values());
            }
            (Step::Filter(filter), Value::Array(items)) => {
                for item in items {
                    if self.accepts(filter, item)? {
                        found.push(item);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A step for a node and for everything in it, each before what it holds. A filter looks at every object once, by itself.
    fn descend(&mut self, step: &Step, node: &'a Value, found: &mut Vec<&'a Value>) -> Result<(), Stop> {
        let mut ahead = vec![node];
        while let Some(node) = ahead.pop() {
            match (step, node) {
                (Step::Filter(filter), Value::Object(_)) => {
                    if self.accepts(filter, node)? {
                        found.push(node);
                    }
                }
                (Step::Filter(_), _) => self.visit(1)?,
                _ => self.apply(step, node, found)?,
            }
            match node {
                Value::Array(items) => ahead.extend(items.iter().rev()),
                Value::Object(members) => ahead.extend(members.values().rev()),
                _ => {}
            }
        }
        Ok(())
    }
}

impl<'b> Found<'b> {
    /// As one value: several are a list.
    pub(super) fn into_value(self) -> Cow<'b, Value> {
        match self {
            Found::One(value) => Cow::Borrowed(value),
            Found::Many(values) => Cow::Owned(Value::Array(values.into_iter().cloned().collect())),
            Found::Made(value) => Cow::Owned(value),
        }
    }

    /// The items, if it is a list.
    pub(super) fn items(&self) -> Option<Vec<&Value>> {
        match self {
            Found::Many(values) => Some(values.clone()),
            Found::One(Value::Array(items)) | Found::Made(Value::Array(items)) => Some(items.iter().collect()),
            _ => None,
        }
    }

    /// The value, if it is not a list of several results.
    pub(super) fn value(&self) -> Option<&Value> {
        match self {
            Found::One(value) => Some(value),
            Found::Made(value) => Some(value),
            Found::Many(_) => None,
        }
    }
}

impl Slice {
    /// Which items of an array of that length: a negative bound counts from the end, and a negative step goes backwards.
    fn indices(self, length: usize) -> impl Iterator<Item = usize> {
        let Slice { from, to, step } = self;
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let place = |bound: i64| if bound < 0 { bound.saturating_add(length) } else { bound };
        let (first, last) = if step > 0 {
            (from.map_or(0, place).clamp(0, length), to.map_or(length, place).clamp(0, length))
        } else {
            (from.map_or(length - 1, place).clamp(-1, length - 1), to.map_or(-1, place).clamp(-1, length - 1))
        };
        let mut next = first;
        std::iter::from_fn(move || {
            let is_over = if step > 0 { next >= last } else { next <= last };
            let index = usize::try_from(next).ok().filter(|_| !is_over)?;
            next = next.saturating_add(step);
            Some(index)
        })
    }
}

/// Where steps lead that lead to one value at most.
fn follow<'a>(root: &'a Value, steps: &[Step]) -> Result<&'a Value, Stop> {
    let mut node = root;
    for (done, step) in steps.iter().enumerate() {
        let next = match (step, node) {
            (Step::Child(name), Value::Object(members)) => members.get(&**name),
            (Step::Index(index), Value::Array(items)) => item(items, *index),
            _ => {
                let found = crate::data::error::kind(node);
                return Err(Stop::Unfit { steps: done, is_index: matches!(step, Step::Index(_)), found });
            }
        };
        node = next.ok_or(Stop::Missing { steps: done + 1 })?;
    }
    Ok(node)
}

/// An item by its index, from the end if that is negative.
pub(super) fn item(items: &[Value], index: i64) -> Option<&Value> {
    let distance = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 { items.get(items.len().checked_sub(distance)?) } else { items.get(distance) }
}
