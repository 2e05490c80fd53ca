//! `|pattern|update, deletion|`: a copy of a value in which the objects that match are changed (<https://docs.jsonata.org/other-operators#-------transform>).
//!
//! The copy consists of made objects, each of which exists once, so that its address names it. Changes are collected by address, and applied where a value is looked at again.

use std::collections::HashMap;
use std::rc::Rc;

use super::Interpreter;
use super::frame::Frame;
use super::path::check_nesting;
use crate::ast::Transform;
use crate::error::{Error, Result};
use crate::text::Text;
use crate::value::{ListBuilder, Object, Record, RecordBuilder, Value};

/// Objects of the copy that have changed, by their addresses, and what they are now. The originals are kept, so that no other object gets their address.
type Changes<'a> = HashMap<*const Record<'a>, (Object<'a>, Object<'a>)>;

impl<'a> Interpreter<'a> {
    pub(super) fn transform(
        &self,
        transform: &'a Transform,
        value: Value<'a>,
        position: u32,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        match value {
            Value::Undefined => return Ok(Value::Undefined),
            Value::Object(_) | Value::Array(_) => {}
            _ => return Err(Error::new("T0410").with_index(1)),
        }
        let copy = match frame.lookup("clone") {
            None => self.copied(&value, 0)?,
            Some(function @ Value::Function(_)) => {
                let cloned = self.apply(&function, vec![value], &Value::Null, frame)?;
                self.copied(&cloned, 0)?
            }
            Some(_) => return Err(Error::new("T2013").at(position)),
        };
        let mut changes = Changes::new();
        let matches = self.evaluate(&transform.pattern, &copy, frame)?;
        for found in self.items(&matches) {
            self.change(transform, &found, &mut changes, frame)?;
        }
        self.changed(&copy, &changes, 0)
    }

    /// A copy in which every object is a made one.
    pub(crate) fn copied(&self, value: &Value<'a>, nesting: u32) -> Result<Value<'a>> {
        check_nesting(nesting)?;
        self.meter.step(1)?;
        Ok(match value {
            Value::Array(array) => {
                let mut copy = ListBuilder::with_capacity(&self.meter, array.len())?;
                for item in array.iter() {
                    copy.push(self.copied(&item, nesting + 1)?)?;
                }
                copy.plain()
            }
            Value::Object(object) => {
                let mut copy = RecordBuilder::new(&self.meter)?;
                for (key, value) in object.iter() {
                    copy.set(key, self.copied(&value, nesting + 1)?)?;
                }
                copy.value()
            }
            Value::Function(_) => Value::Text(Text::Borrowed("")),
            value => value.clone(),
        })
    }

    fn change(
        &self,
        transform: &'a Transform,
        found: &Value<'a>,
        changes: &mut Changes<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<()> {
        let now = self.changed(found, changes, 0)?;
        let update = self.evaluate(&transform.update, &now, frame)?;
        if !matches!(update, Value::Undefined | Value::Object(_)) {
            let error = Error::new("T2011").at(transform.update.position);
            return Err(error.with_value(self.quoted(&update)));
        }
        let Value::Object(original @ Object::Made(address)) = found else {
            return Ok(()); // only objects have fields to change
        };
        // What is in it keeps its addresses, so that it can change later.
        let current = changes.get(&Rc::as_ptr(address)).map_or(original, |(_, now)| now).clone();
        let mut record = RecordBuilder::new(&self.meter)?;
        for (key, value) in current.iter() {
            record.set(key, value)?;
        }
        if let Value::Object(update) = &update {
            for (key, value) in update.iter() {
                record.set(key, value)?;
            }
        }
        if let Some(deletion) = &transform.deletion {
            let updated = record.object();
            let deletions = self.evaluate(deletion, &Value::Object(updated.clone()), frame)?;
            record = RecordBuilder::new(&self.meter)?;
            for (key, value) in updated.iter() {
                record.set(key, value)?;
            }
            for key in self.items(&deletions) {
                match &key {
                    Value::Text(key) => {
                        self.meter.step(record.len())?;
                        record.remove(key.as_str());
                    }
                    _ => return Err(Error::new("T2012").at(deletion.position).with_value(self.quoted(&deletions))),
                }
            }
        }
        changes.insert(Rc::as_ptr(address), (original.clone(), record.object()));
        Ok(())
    }

    /// A value with what has changed in it.
    fn changed(&self, value: &Value<'a>, changes: &Changes<'a>, nesting: u32) -> Result<Value<'a>> {
        check_nesting(nesting)?;
        self.meter.step(1)?;
        if changes.is_empty() {
            return Ok(value.clone());
        }
        Ok(match value {
            Value::Array(array) => {
                let mut result = ListBuilder::with_capacity(&self.meter, array.len())?;
                for item in array.iter() {
                    result.push(self.changed(&item, changes, nesting + 1)?)?;
                }
                result.plain()
            }
            Value::Object(object) => {
                let change = match object {
                    Object::Made(record) => changes.get(&Rc::as_ptr(record)).map(|(_, now)| now),
                    Object::Borrowed(_) => None,
                };
                let mut result = RecordBuilder::new(&self.meter)?;
                for (key, value) in change.unwrap_or(object).iter() {
                    result.set(key, self.changed(&value, changes, nesting + 1)?)?;
                }
                result.value()
            }
            value => value.clone(),
        })
    }
}
