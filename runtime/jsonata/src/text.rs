//! Strings of an evaluation: borrowed from the expression or the input, or made and charged.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use crate::error::Result;
use crate::meter::{Charge, Meter};

#[derive(Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Made(Rc<Made<'a>>),
}

pub(crate) struct Made<'a> {
    text: String,
    _charge: Charge<'a>,
}

/// Bytes of a made string beside its text.
const MADE_BYTES: usize = 64;

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Made(made) => &made.text,
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text<'_> {}

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for Text<'_> {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

/// The order of UTF-16 code units, in which JSONata compares strings.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    // Bytes have the order of code points, which is another one only beyond the basic plane.
    let is_beyond = |text: &str| text.bytes().any(|byte| byte >= 0xf0);
    if is_beyond(left) || is_beyond(right) { left.encode_utf16().cmp(right.encode_utf16()) } else { left.cmp(right) }
}

/// Makes a string, and charges for it as it grows.
pub(crate) struct TextBuilder<'a> {
    text: String,
    charge: Charge<'a>,
}

impl<'a> TextBuilder<'a> {
    pub(crate) fn new(meter: &Rc<Meter<'a>>) -> Result<TextBuilder<'a>> {
        Ok(TextBuilder { text: String::new(), charge: Charge::new(meter, MADE_BYTES)? })
    }

    pub(crate) fn push(&mut self, text: &str) -> Result<()> {
        self.charge.meter.step_bytes(text.len())?;
        let free = self.text.capacity() - self.text.len();
        if text.len() > free {
            let more = text.len().max(self.text.capacity()).max(16);
            self.charge.grow(more)?;
            self.text.reserve_exact(more);
        }
        self.text.push_str(text);
        Ok(())
    }

    pub(crate) fn text(self) -> Text<'a> {
        Text::Made(Rc::new(Made { text: self.text, _charge: self.charge }))
    }
}

/// A made string of one that is there already.
pub(crate) fn made<'a>(meter: &Rc<Meter<'a>>, text: String) -> Result<Text<'a>> {
    meter.step_bytes(text.len())?;
    let charge = Charge::new(meter, text.capacity().saturating_add(MADE_BYTES))?;
    Ok(Text::Made(Rc::new(Made { text, _charge: charge })))
}
