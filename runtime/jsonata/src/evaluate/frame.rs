//! Scopes: what variables are bound to.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::error::Result;
use crate::limits::BYTES_PER_STEP;
use crate::meter::{Charge, Garbage, Meter};
use crate::value::Value;

pub(crate) struct Frame<'a> {
    bindings: RefCell<Vec<(&'a str, Value<'a>)>>,
    parent: Option<Rc<Frame<'a>>>,
    /// Whether a function refers to it.
    pub(crate) is_captured: Cell<bool>,
    charge: RefCell<Charge<'a>>,
}

const FRAME_BYTES: usize = 128;
const BINDING_BYTES: usize = 2 * size_of::<(&str, Value<'static>)>();

impl<'a> Frame<'a> {
    pub(crate) fn new(parent: Option<&Rc<Frame<'a>>>, meter: &Rc<Meter<'a>>) -> Result<Rc<Frame<'a>>> {
        Ok(Rc::new(Frame {
            bindings: RefCell::default(),
            parent: parent.cloned(),
            is_captured: Cell::new(false),
            charge: RefCell::new(Charge::new(meter, FRAME_BYTES)?),
        }))
    }

    pub(crate) fn bind(&self, name: &'a str, value: Value<'a>) -> Result<()> {
        let mut bindings = self.bindings.borrow_mut();
        self.charge.borrow().meter.count(bindings.len() + name.len() / BYTES_PER_STEP);
        let bound = bindings.iter_mut().find(|(bound, _)| *bound == name);
        let old = match bound {
            Some((_, bound)) => Some(std::mem::replace(bound, value)),
            None => {
                self.charge.borrow_mut().grow(BINDING_BYTES)?;
                bindings.push((name, value));
                None
            }
        };
        drop(bindings);
        drop(old); // which may drop this frame's functions
        Ok(())
    }

    pub(crate) fn lookup(&self, name: &str) -> Option<Value<'a>> {
        let mut frame = Some(self);
        let mut work = name.len() / BYTES_PER_STEP;
        let mut found = None;
        while let Some(next) = frame.filter(|_| found.is_none()) {
            let bindings = next.bindings.borrow();
            work += 1 + bindings.len();
            found = bindings.iter().find(|(bound, _)| *bound == name).map(|(_, value)| value.clone());
            frame = next.parent.as_deref();
        }
        self.charge.borrow().meter.count(work);
        found
    }

    pub(crate) fn take_bindings(&self) -> Vec<Value<'a>> {
        std::mem::take(&mut *self.bindings.borrow_mut()).into_iter().map(|(_, value)| value).collect()
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        let meter = Rc::clone(&self.charge.get_mut().meter);
        let bindings = std::mem::take(self.bindings.get_mut());
        let parent = self.parent.take().filter(|parent| Rc::strong_count(parent) == 1);
        if parent.is_some() || bindings.iter().any(|(_, value)| value.is_container()) {
            let values = bindings.into_iter().map(|(_, value)| Garbage::Value(value));
            meter.bury(values.chain(parent.map(Garbage::Frame)));
        }
    }
}
