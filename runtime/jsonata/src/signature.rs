//! Signatures of functions, such as `<s-nn?:s>`: what a function takes (<https://docs.jsonata.org/embedding-extending#function-signature-syntax>).
//!
//! Each argument has one type letter. Parameters match a row of letters as a regular expression would, in time proportional to both.

use std::rc::Rc;

use crate::error::{Error, Result};
use crate::meter::Meter;
use crate::value::{ListBuilder, Value};

/// Parameters of one signature.
const PARAMETERS_MAX: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct Signature {
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone)]
struct Parameter {
    /// The letters that it takes, one bit each.
    types: u16,
    quantity: Quantity,
    /// Whether the context stands in where it is missing.
    takes_context: bool,
    is_array: bool,
    /// The letter of an array's elements.
    element: Option<u8>,
    /// Whether it can have type parameters.
    is_generic: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    One,
    Optional,
    Many,
}

/// The letters: array, boolean, function, null, missing, number, object, string.
const LETTERS: &[u8] = b"abflmnos";

fn bit(letter: u8) -> u16 {
    LETTERS.iter().position(|&known| known == letter).map_or(0, |index| 1 << index)
}

fn bits(letters: &[u8]) -> u16 {
    letters.iter().fold(0, |bits, &letter| bits | bit(letter))
}

/// The letter of a value's type.
fn letter(value: &Value<'_>) -> u8 {
    match value {
        Value::Undefined => b'm',
        Value::Null => b'l',
        Value::Bool(_) => b'b',
        Value::Number(_) => b'n',
        Value::Text(_) => b's',
        Value::Array(_) | Value::Tuples(_) => b'a',
        Value::Object(_) => b'o',
        Value::Function(_) => b'f',
    }
}

fn plural(letter: u8) -> &'static str {
    match letter {
        b'a' => "arrays",
        b'b' => "booleans",
        b'f' => "functions",
        b'n' => "numbers",
        b'o' => "objects",
        b's' => "strings",
        _ => "values of one type",
    }
}

impl Signature {
    /// Parses a signature, with its brackets.
    ///
    /// # Errors
    /// `S0401` for a type parameter of what has none, `S0402` for one within a choice, `U1001` for too many parameters.
    pub(crate) fn parse(text: &str) -> Result<Signature> {
        let text = text.as_bytes();
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut at = 1;
        while let Some(&symbol) = text.get(at) {
            let last = parameters.last_mut();
            match symbol {
                b':' => break,
                b's' | b'n' | b'b' | b'l' | b'o' => parameters.push(Parameter::new(bit(symbol) | bit(b'm'), false)),
                b'a' => parameters.push(Parameter { is_array: true, ..Parameter::new(bits(LETTERS), true) }),
                b'f' => parameters.push(Parameter::new(bit(b'f'), true)),
                b'j' => parameters.push(Parameter::new(bits(b"asnblom"), false)),
                b'x' => parameters.push(Parameter::new(bits(LETTERS), false)),
                b'-' => {
                    if let Some(last) = last {
                        last.takes_context = true;
                        last.quantity = Quantity::Optional;
                    }
                }
                b'?' => {
                    if let Some(last) = last {
                        last.quantity = Quantity::Optional;
                    }
                }
                b'+' => {
                    if let Some(last) = last {
                        last.quantity = Quantity::Many;
                    }
                }
                b'(' => {
                    let end = closing(text, at, b'(', b')');
                    let choice = text.get(at + 1..end).unwrap_or_default();
                    if choice.contains(&b'<') {
                        return Err(Error::new("S0402"));
                    }
                    parameters.push(Parameter::new(bits(choice) | bit(b'm'), false));
                    at = end;
                }
                b'<' => {
                    let end = closing(text, at, b'<', b'>');
                    match last {
                        Some(last) if last.is_generic => last.element = text.get(at + 1).copied(),
                        _ => return Err(Error::new("S0401")),
                    }
                    at = end;
                }
                _ => {}
            }
            if parameters.len() > PARAMETERS_MAX {
                return Err(Error::new("U1001").with_value(format!("{PARAMETERS_MAX} parameters")));
            }
            at += 1;
        }
        Ok(Signature { parameters })
    }

    /// The arguments as the function takes them: checked, with the context for the first ones that are missing, and single values as arrays.
    pub(crate) fn check<'a>(
        &self,
        arguments: Vec<Value<'a>>,
        context: &Value<'a>,
        meter: &Rc<Meter<'a>>,
    ) -> Result<Vec<Value<'a>>> {
        meter.step(arguments.len())?;
        let letters: Vec<u8> = arguments.iter().map(letter).collect();
        let Some(counts) = self.matches(&letters) else {
            return Err(Error::new("T0410").with_index(self.matched(&letters) + 1));
        };
        let mut checked = Vec::with_capacity(self.parameters.len().max(arguments.len()));
        let mut arguments = arguments.into_iter().enumerate();
        for (parameter, count) in self.parameters.iter().zip(counts) {
            if count == 0 {
                if parameter.takes_context {
                    if parameter.types & bit(letter(context)) == 0 {
                        return Err(Error::new("T0411").with_index(checked.len() + 1));
                    }
                    checked.push(context.clone());
                } else {
                    // As in jsonata-js, even if the next argument belongs to the next parameter.
                    checked.push(arguments.next().map(|(_, argument)| argument).unwrap_or_default());
                }
                continue;
            }
            for (index, argument) in arguments.by_ref().take(count) {
                let argument = if parameter.is_array { parameter.array(argument, index, meter)? } else { argument };
                checked.push(argument);
            }
        }
        Ok(checked)
    }

    /// How many letters each parameter takes, where all match: as many as possible for the first ones.
    fn matches(&self, letters: &[u8]) -> Option<Vec<usize>> {
        // By parameter and first letter: whether the rest matches.
        let width = letters.len() + 1;
        let mut fits = vec![false; (self.parameters.len() + 1) * width];
        let get =
            |fits: &[bool], parameter: usize, at: usize| at < width && fits.get(parameter * width + at).copied().unwrap_or(false);
        let takes = |parameter: &Parameter, at: usize| letters.get(at).is_some_and(|&letter| parameter.types & bit(letter) != 0);
        if let Some(end) = fits.last_mut() {
            *end = true;
        }
        for (index, parameter) in self.parameters.iter().enumerate().rev() {
            for at in (0..width).rev() {
                let one = takes(parameter, at);
                let fit = match parameter.quantity {
                    Quantity::One => one && get(&fits, index + 1, at + 1),
                    Quantity::Optional => one && get(&fits, index + 1, at + 1) || get(&fits, index + 1, at),
                    Quantity::Many => one && (get(&fits, index + 1, at + 1) || get(&fits, index, at + 1)),
                };
                if let Some(slot) = fits.get_mut(index * width + at) {
                    *slot = fit;
                }
            }
        }
        if !get(&fits, 0, 0) {
            return None;
        }
        let mut at = 0;
        let mut counts = Vec::with_capacity(self.parameters.len());
        for (index, parameter) in self.parameters.iter().enumerate() {
            let start = at;
            let one = takes(parameter, at);
            match parameter.quantity {
                Quantity::One => at += 1,
                Quantity::Optional => at += usize::from(one && get(&fits, index + 1, at + 1)),
                Quantity::Many => {
                    at += 1;
                    while get(&fits, index, at) {
                        at += 1;
                    }
                }
            }
            counts.push(at - start);
        }
        Some(counts)
    }

    /// How many arguments match from the left.
    fn matched(&self, letters: &[u8]) -> usize {
        // Where the parameters so far can end.
        let mut ends = vec![false; letters.len() + 1];
        if let Some(start) = ends.first_mut() {
            *start = true;
        }
        let mut good = 0;
        for parameter in &self.parameters {
            let mut next = if parameter.quantity == Quantity::Optional { ends.clone() } else { vec![false; ends.len()] };
            for (at, &letter) in letters.iter().enumerate() {
                let is_start = |ends: &[bool]| ends.get(at).copied().unwrap_or(false);
                let continues = parameter.quantity == Quantity::Many && is_start(&next);
                let is_taken = parameter.types & bit(letter) != 0 && (is_start(&ends) || continues);
                if let Some(end) = next.get_mut(at + 1).filter(|_| is_taken) {
                    *end = true;
                }
            }
            match next.iter().rposition(|&is_end| is_end) {
                Some(end) => good = end,
                None => return good,
            }
            ends = next;
        }
        good
    }
}

impl Parameter {
    fn new(types: u16, is_generic: bool) -> Parameter {
        Parameter { types, quantity: Quantity::One, takes_context: false, is_array: false, element: None, is_generic }
    }

    /// An argument as an array.
    fn array<'a>(&self, argument: Value<'a>, index: usize, meter: &Rc<Meter<'a>>) -> Result<Value<'a>> {
        let mismatch = |element: u8| Err(Error::new("T0412").with_index(index + 1).with_value(plural(element)));
        match &argument {
            Value::Undefined => Ok(argument),
            Value::Array(array) => {
                if let Some(element) = self.element {
                    meter.step(array.len())?;
                    if array.iter().any(|item| letter(&item) != element) {
                        return mismatch(element);
                    }
                }
                Ok(argument)
            }
            _ => {
                if let Some(element) = self.element.filter(|&element| element != letter(&argument)) {
                    return mismatch(element);
                }
                let mut single = ListBuilder::with_capacity(meter, 1)?;
                single.push(argument)?;
                Ok(single.plain())
            }
        }
    }
}

/// The place of the bracket that closes the one at `start`, or the end.
fn closing(text: &[u8], start: usize, open: u8, close: u8) -> usize {
    let mut depth = 0;
    for (at, &symbol) in text.iter().enumerate().skip(start) {
        if symbol == open {
            depth += 1;
        } else if symbol == close {
            depth -= 1;
            if depth == 0 {
                return at;
            }
        }
    }
    text.len()
}
