//! What one evaluation has used so far, and how values are released.
//!
//! Every container holds a [`Charge`] of its size, which it gives back when it is dropped. Containers that own others do not drop them by recursion, which nested data would
//! turn into a stack overflow: they hand them to the meter, which drops them in a loop.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use crate::error::{Error, Result};
use crate::evaluate::frame::Frame;
use crate::limits::{BYTES_PER_STEP, Limits};
use crate::value::Value;

/// Small pieces of work, such as comparisons of names, that count as one step.
pub(crate) const WORK_PER_STEP: usize = 8;

/// Captured frames that are kept in the list before those that have gone are removed from it.
const CAPTURED_FIRST_SWEEP: usize = 64;

pub(crate) struct Meter<'a> {
    limits: Limits,
    steps: Cell<u64>,
    bytes: Cell<usize>,
    /// Frames that functions refer to. These may refer to themselves, so their bindings are cleared at the end.
    captured: RefCell<Vec<Weak<Frame<'a>>>>,
    sweep_at: Cell<usize>,
    garbage: RefCell<Vec<Garbage<'a>>>,
    is_burying: Cell<bool>,
}

pub(crate) enum Garbage<'a> {
    Value(Value<'a>),
    Frame(Rc<Frame<'a>>),
}

impl<'a> Meter<'a> {
    pub(crate) fn new(limits: Limits) -> Rc<Meter<'a>> {
        Rc::new(Meter {
            limits,
            steps: Cell::new(0),
            bytes: Cell::new(0),
            captured: RefCell::default(),
            sweep_at: Cell::new(CAPTURED_FIRST_SWEEP),
            garbage: RefCell::default(),
            is_burying: Cell::new(false),
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts steps.
    pub(crate) fn step(&self, steps: usize) -> Result<()> {
        let used = self.steps.get().saturating_add(steps as u64);
        self.steps.set(used);
        if used > self.limits.steps { Err(Error::new("D1012").with_value(self.limits.steps)) } else { Ok(()) }
    }

    /// Counts work that cannot fail; the next step does if it was too much.
    pub(crate) fn count(&self, work: usize) {
        self.steps.set(self.steps.get().saturating_add((work / WORK_PER_STEP) as u64));
    }

    /// Counts the steps of reading or writing so many bytes of text.
    pub(crate) fn step_bytes(&self, bytes: usize) -> Result<()> {
        self.step(bytes / BYTES_PER_STEP + 1)
    }

    fn grow(&self, bytes: usize) -> Result<()> {
        let used = self.bytes.get().saturating_add(bytes);
        if used > self.limits.bytes {
            return Err(Error::new("U1002").with_value(self.limits.bytes));
        }
        self.bytes.set(used);
        Ok(())
    }

    /// Counts bytes that are held until the end.
    pub(crate) fn keep(&self, bytes: usize) -> Result<()> {
        self.grow(bytes)
    }

    /// Remembers a frame that a function refers to.
    pub(crate) fn capture(&self, frame: &Rc<Frame<'a>>) {
        if frame.is_captured.replace(true) {
            return;
        }
        let mut captured = self.captured.borrow_mut();
        if captured.len() >= self.sweep_at.get() {
            captured.retain(|frame| frame.strong_count() > 0);
            self.sweep_at.set((captured.len() * 2).max(CAPTURED_FIRST_SWEEP));
        }
        captured.push(Rc::downgrade(frame));
    }

    /// Clears what captured frames hold, so that nothing refers to itself any more.
    pub(crate) fn release(&self) {
        let captured = std::mem::take(&mut *self.captured.borrow_mut());
        for frame in captured.iter().filter_map(Weak::upgrade) {
            self.bury(frame.take_bindings().into_iter().map(Garbage::Value));
        }
    }

    /// Drops values without recursion.
    pub(crate) fn bury(&self, garbage: impl Iterator<Item = Garbage<'a>>) {
        self.garbage.borrow_mut().extend(garbage);
        if self.is_burying.replace(true) {
            return;
        }
        loop {
            let next = self.garbage.borrow_mut().pop();
            match next {
                Some(Garbage::Value(value)) => drop(value),
                Some(Garbage::Frame(frame)) => drop(frame),
                None => break,
            }
        }
        self.is_burying.set(false);
    }
}

/// Bytes that a value holds.
pub(crate) struct Charge<'a> {
    pub(crate) meter: Rc<Meter<'a>>,
    bytes: usize,
}

impl<'a> Charge<'a> {
    pub(crate) fn new(meter: &Rc<Meter<'a>>, bytes: usize) -> Result<Charge<'a>> {
        meter.grow(bytes)?;
        Ok(Charge { meter: Rc::clone(meter), bytes })
    }

    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        self.meter.grow(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.meter.bytes.set(self.meter.bytes.get().saturating_sub(self.bytes));
    }
}
