//! Values of an evaluation: JSON that is borrowed from the caller, and what the evaluation made.
//!
//! Values are cheap to clone. Nothing is copied of the input: an expression that picks a field of a large document touches that field only.
//! Invariants: a made container is never changed once a second value refers to it; each is charged to the [meter](crate::meter).

use std::rc::Rc;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use crate::error::Result;
use crate::evaluate::function::Function;
use crate::evaluate::tuple::Tuples;
use crate::meter::{Charge, Garbage, Meter};
use crate::text::Text;

#[derive(Clone, Default)]
pub(crate) enum Value<'a> {
    #[default]
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Text(Text<'a>),
    Array(Array<'a>),
    Object(Object<'a>),
    Function(Rc<Function<'a>>),
    /// What a path carries along that binds variables: no value of the language, only between steps.
    Tuples(Rc<Tuples<'a>>),
}

#[derive(Clone)]
pub(crate) enum Array<'a> {
    Borrowed(&'a [Json]),
    Made(Rc<List<'a>>),
    /// Consecutive integers.
    Range {
        first: f64,
        count: usize,
    },
}

pub(crate) struct List<'a> {
    pub(crate) items: Vec<Value<'a>>,
    pub(crate) flags: Flags,
    charge: Charge<'a>,
}

/// What JSONata knows of an array beside its elements (<https://docs.jsonata.org/processing>).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Results of a path: none is undefined, and one stands for itself.
    pub(crate) is_sequence: bool,
    /// But one remains an array.
    pub(crate) keeps_singleton: bool,
    /// Made by `[...]`: a path does not flatten it.
    pub(crate) is_constructed: bool,
    /// Holds an input that is an array, so that it counts as one.
    pub(crate) is_wrapper: bool,
}

impl Flags {
    pub(crate) const SEQUENCE: Flags =
        Flags { is_sequence: true, keeps_singleton: false, is_constructed: false, is_wrapper: false };
}

#[derive(Clone)]
pub(crate) enum Object<'a> {
    Borrowed(&'a Map<String, Json>),
    Made(Rc<Record<'a>>),
}

pub(crate) struct Record<'a> {
    pub(crate) fields: IndexMap<Text<'a>, Value<'a>>,
    charge: Charge<'a>,
}

/// Bytes of a field of a made object: hash, key and value.
const FIELD_BYTES: usize = size_of::<usize>() * 2 + size_of::<Text<'static>>() + size_of::<Value<'static>>();
const CONTAINER_BYTES: usize = 80;

impl<'a> Value<'a> {
    pub(crate) fn of(json: &'a Json) -> Value<'a> {
        match json {
            Json::Null => Value::Null,
            Json::Bool(bool) => Value::Bool(*bool),
            Json::Number(number) => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Value::Text(Text::Borrowed(text)),
            Json::Array(items) => Value::Array(Array::Borrowed(items)),
            Json::Object(fields) => Value::Object(Object::Borrowed(fields)),
        }
    }

    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined)
    }

    pub(crate) fn is_container(&self) -> bool {
        match self {
            Value::Array(Array::Made(_)) | Value::Object(Object::Made(_)) | Value::Function(_) | Value::Tuples(_) => true,
            Value::Array(_) | Value::Object(_) => false,
            Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => false,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }
}

impl<'a> Array<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Array::Borrowed(items) => items.len(),
            Array::Made(list) => list.items.len(),
            Array::Range { count, .. } => *count,
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Array::Borrowed(items) => items.get(index).map(Value::of),
            Array::Made(list) => list.items.get(index).cloned(),
            Array::Range { first, count } => (index < *count).then(|| Value::Number(first + index as f64)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// Whether it is the same one, and not only equal.
    pub(crate) fn is_same(&self, other: &Array<'a>) -> bool {
        match (self, other) {
            (Array::Borrowed(left), Array::Borrowed(right)) => std::ptr::eq(*left, *right),
            (Array::Made(left), Array::Made(right)) => Rc::ptr_eq(left, right),
            _ => false,
        }
    }

    pub(crate) fn flags(&self) -> Flags {
        match self {
            Array::Made(list) => list.flags,
            Array::Borrowed(_) | Array::Range { .. } => Flags::default(),
        }
    }

    /// The same elements with other flags.
    pub(crate) fn with_flags(self, flags: Flags, meter: &Rc<Meter<'a>>) -> Result<Array<'a>> {
        if self.flags() == flags {
            return Ok(self);
        }
        let Array::Made(mut list) = self else {
            return self.copied(flags, meter);
        };
        match Rc::get_mut(&mut list) {
            Some(list) => list.flags = flags,
            None => return Array::Made(list).copied(flags, meter),
        }
        Ok(Array::Made(list))
    }

    fn copied(&self, flags: Flags, meter: &Rc<Meter<'a>>) -> Result<Array<'a>> {
        let mut builder = ListBuilder::with_capacity(meter, self.len())?;
        for item in self.iter() {
            builder.push(item)?;
        }
        Ok(builder.array(flags))
    }
}

impl<'a> Object<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Object::Borrowed(fields) => fields.len(),
            Object::Made(record) => record.fields.len(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Object::Borrowed(fields) => fields.get(key).map(Value::of),
            Object::Made(record) => record.fields.get(key).cloned(),
        }
    }

    /// Whether it is the same one, and not only equal.
    pub(crate) fn is_same(&self, other: &Object<'a>) -> bool {
        match (self, other) {
            (Object::Borrowed(left), Object::Borrowed(right)) => std::ptr::eq(*left, *right),
            (Object::Made(left), Object::Made(right)) => Rc::ptr_eq(left, right),
            _ => false,
        }
    }

    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = (Text<'a>, Value<'a>)> + '_> {
        match self {
            Object::Borrowed(fields) => {
                let fields: &'a Map<String, Json> = fields;
                Box::new(fields.iter().map(|(key, json)| (Text::Borrowed(key), Value::of(json))))
            }
            Object::Made(record) => Box::new(record.fields.iter().map(|(key, value)| (key.clone(), value.clone()))),
        }
    }
}

/// Makes an array, and charges for it as it grows.
pub(crate) struct ListBuilder<'a> {
    items: Vec<Value<'a>>,
    charge: Charge<'a>,
}

impl<'a> ListBuilder<'a> {
    pub(crate) fn new(meter: &Rc<Meter<'a>>) -> Result<ListBuilder<'a>> {
        ListBuilder::with_capacity(meter, 0)
    }

    pub(crate) fn with_capacity(meter: &Rc<Meter<'a>>, capacity: usize) -> Result<ListBuilder<'a>> {
        let bytes = capacity.saturating_mul(size_of::<Value<'_>>()).saturating_add(CONTAINER_BYTES);
        let charge = Charge::new(meter, bytes)?;
        Ok(ListBuilder { items: Vec::with_capacity(capacity), charge })
    }

    /// Adds an element: one step.
    pub(crate) fn push(&mut self, item: Value<'a>) -> Result<()> {
        self.charge.meter.step(1)?;
        if self.items.len() == self.items.capacity() {
            let more = self.items.capacity().max(4);
            self.charge.grow(more.saturating_mul(size_of::<Value<'_>>()))?;
            self.items.reserve_exact(more);
        }
        self.items.push(item);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn items(&self) -> &[Value<'a>] {
        &self.items
    }

    /// The only element, if there is exactly one.
    pub(crate) fn take_single(&mut self) -> Option<Value<'a>> {
        if self.items.len() == 1 { self.items.pop() } else { None }
    }

    pub(crate) fn array(self, flags: Flags) -> Array<'a> {
        Array::Made(Rc::new(List { items: self.items, flags, charge: self.charge }))
    }

    pub(crate) fn plain(self) -> Value<'a> {
        Value::Array(self.array(Flags::default()))
    }

    pub(crate) fn sequence(self) -> Value<'a> {
        Value::Array(self.array(Flags::SEQUENCE))
    }

    pub(crate) fn into_items(self) -> (Vec<Value<'a>>, Charge<'a>) {
        (self.items, self.charge)
    }
}

/// Makes an object, and charges for it as it grows.
pub(crate) struct RecordBuilder<'a> {
    fields: IndexMap<Text<'a>, Value<'a>>,
    charge: Charge<'a>,
}

impl<'a> RecordBuilder<'a> {
    pub(crate) fn new(meter: &Rc<Meter<'a>>) -> Result<RecordBuilder<'a>> {
        Ok(RecordBuilder { fields: IndexMap::new(), charge: Charge::new(meter, CONTAINER_BYTES)? })
    }

    /// Sets a field: one step, and the bytes of its key.
    pub(crate) fn set(&mut self, key: Text<'a>, value: Value<'a>) -> Result<()> {
        self.charge.meter.step_bytes(key.as_str().len())?;
        if self.fields.len() == self.fields.capacity() {
            let more = self.fields.capacity().max(4);
            self.charge.grow(more.saturating_mul(FIELD_BYTES))?;
            self.fields.reserve_exact(more);
        }
        self.fields.insert(key, value);
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.fields.shift_remove(key);
    }

    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(crate) fn object(self) -> Object<'a> {
        Object::Made(Rc::new(Record { fields: self.fields, charge: self.charge }))
    }

    pub(crate) fn value(self) -> Value<'a> {
        Value::Object(self.object())
    }
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        if self.items.iter().any(Value::is_container) {
            let items = std::mem::take(&mut self.items);
            self.charge.meter.bury(items.into_iter().map(Garbage::Value));
        }
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if self.fields.values().any(Value::is_container) {
            let fields = std::mem::take(&mut self.fields);
            self.charge.meter.bury(fields.into_values().map(Garbage::Value));
        }
    }
}
