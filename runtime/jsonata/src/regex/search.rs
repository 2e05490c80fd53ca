//! Runs instructions on a text, with a stack of what to try otherwise.

use std::rc::Rc;

use super::Match;
use super::class::{fold, is_line_end, is_word};
use super::program::{Instruction, Program};
use crate::error::Result;
use crate::meter::{Charge, Meter};

/// Instructions that count as one step.
const INSTRUCTIONS_PER_STEP: u32 = 8;
/// What a register holds that holds nothing.
const UNSET: usize = usize::MAX;

/// What to do where the current way fails.
enum Choice {
    /// Go on there.
    Branch { instruction: usize, at: usize },
    /// First, set a register back.
    Restore { register: usize, value: usize },
}

struct Search<'t, 'a> {
    program: &'t Program,
    text: &'t str,
    registers: Vec<usize>,
    choices: Vec<Choice>,
    charge: Charge<'a>,
    instructions: u32,
}

pub(super) fn find<'a>(program: &Program, text: &str, from: usize, meter: &Rc<Meter<'a>>) -> Result<Option<Match>> {
    let bytes = program.registers * size_of::<usize>();
    meter.step_bytes(bytes)?;
    let mut search = Search {
        program,
        text,
        registers: vec![UNSET; program.registers],
        choices: Vec::new(),
        charge: Charge::new(meter, bytes)?,
        instructions: 0,
    };
    let mut start = from;
    loop {
        if let Some(first) = program.first {
            let Some(ahead) = text.get(start..).and_then(|rest| rest.find(first)) else {
                meter.step_bytes(text.len().saturating_sub(start))?;
                return Ok(None);
            };
            meter.step_bytes(ahead)?;
            start += ahead;
        }
        if let Some(end) = search.run(0, start)? {
            let group = |number: usize| search.group(number);
            return Ok(Some(Match { start, end, groups: (1..=program.groups).map(group).collect() }));
        }
        let Some(char) = text.get(start..).and_then(|rest| rest.chars().next()) else {
            return Ok(None);
        };
        if program.is_anchored {
            return Ok(None);
        }
        start += char.len_utf8();
    }
}

impl Search<'_, '_> {
    fn group(&self, number: usize) -> Option<(usize, usize)> {
        match (self.registers.get(2 * number), self.registers.get(2 * number + 1)) {
            (Some(&start), Some(&end)) if start != UNSET && end != UNSET => Some((start, end)),
            _ => None,
        }
    }

    fn register(&self, register: usize) -> usize {
        self.registers.get(register).copied().unwrap_or(UNSET)
    }

    fn choose(&mut self, choice: Choice) -> Result<()> {
        if self.choices.len() == self.choices.capacity() {
            let more = self.choices.capacity().max(16);
            self.charge.grow(more * size_of::<Choice>())?;
            self.choices.reserve_exact(more);
        }
        self.choices.push(choice);
        Ok(())
    }

    fn set(&mut self, register: usize, value: usize) -> Result<()> {
        let old = self.register(register);
        if old != value {
            self.choose(Choice::Restore { register, value: old })?;
            if let Some(slot) = self.registers.get_mut(register) {
                *slot = value;
            }
        }
        Ok(())
    }

    /// Goes back to the last branch after the first `base` choices.
    fn back(&mut self, base: usize) -> Option<(usize, usize)> {
        while self.choices.len() > base {
            match self.choices.pop()? {
                Choice::Branch { instruction, at } => return Some((instruction, at)),
                Choice::Restore { register, value } => {
                    if let Some(slot) = self.registers.get_mut(register) {
                        *slot = value;
                    }
                }
            }
        }
        None
    }

    fn next(&self, at: usize, is_back: bool) -> Option<char> {
        if is_back { self.text.get(..at)?.chars().next_back() } else { self.text.get(at..)?.chars().next() }
    }

    /// Runs from an instruction at a position until a way is accepted: its end. If there is none, everything is set back.
    fn run(&mut self, instruction: usize, at: usize) -> Result<Option<usize>> {
        let program = self.program;
        let base = self.choices.len();
        let (mut counter, mut at) = (instruction, at);
        loop {
            self.instructions += 1;
            if self.instructions >= INSTRUCTIONS_PER_STEP {
                self.charge.meter.step((self.instructions / INSTRUCTIONS_PER_STEP) as usize)?;
                self.instructions = 0;
            }
            let goes_on = match program.instructions.get(counter) {
                None | Some(Instruction::Accept) => return Ok(Some(at)),
                Some(instruction) => self.instruction(instruction, counter, at)?,
            };
            match goes_on.or_else(|| self.back(base)) {
                Some(next) => (counter, at) = next,
                None => return Ok(None),
            }
        }
    }

    /// Carries out one instruction: where to go on, or nothing if this way fails.
    fn instruction(&mut self, instruction: &Instruction, counter: usize, at: usize) -> Result<Option<(usize, usize)>> {
        let next = counter + 1;
        Ok(match instruction {
            Instruction::Char { char, is_back } => {
                let ignores_case = self.program.ignores_case;
                self.consume(at, *is_back, |other| other == *char || ignores_case && fold(other) == *char).map(|at| (next, at))
            }
            Instruction::Any { is_back } => self.consume(at, *is_back, |char| !is_line_end(char)).map(|at| (next, at)),
            Instruction::Class { class, is_back } => {
                self.instructions = self.instructions.saturating_add(class.items.len() as u32 / INSTRUCTIONS_PER_STEP);
                let ignores_case = self.program.ignores_case;
                self.consume(at, *is_back, |char| class.contains(char, ignores_case)).map(|at| (next, at))
            }
            Instruction::Start => (at == 0 || self.is_beside_line_end(at, true)).then_some((next, at)),
            Instruction::End => (at == self.text.len() || self.is_beside_line_end(at, false)).then_some((next, at)),
            Instruction::WordBoundary { is_negated } => {
                let is_boundary = self.next(at, true).is_some_and(is_word) != self.next(at, false).is_some_and(is_word);
                (is_boundary != *is_negated).then_some((next, at))
            }
            Instruction::Save { register } => {
                self.set(*register, at)?;
                Some((next, at))
            }
            Instruction::Clear { first, last } => {
                for register in 2 * first..2 * last {
                    self.set(register, UNSET)?;
                }
                self.charge.meter.step((last - first) / INSTRUCTIONS_PER_STEP as usize)?;
                Some((next, at))
            }
            Instruction::BackReference { group, is_back } => self.back_reference(*group, at, *is_back)?.map(|at| (next, at)),
            Instruction::Jump { to } => Some((*to, at)),
            Instruction::Fork { other } => {
                self.choose(Choice::Branch { instruction: *other, at })?;
                Some((next, at))
            }
            Instruction::ForkLazy { other } => {
                self.choose(Choice::Branch { instruction: next, at })?;
                Some((*other, at))
            }
            Instruction::Zero { counter } => {
                self.set(*counter, 0)?;
                Some((next, at))
            }
            Instruction::Repeat { counter, min, max, is_greedy, end } => {
                let count = self.register(*counter);
                let (first, other) = if *is_greedy { (next, *end) } else { (*end, next) };
                if count < *min as usize {
                    Some((next, at))
                } else if *max != u32::MAX && count >= *max as usize {
                    Some((*end, at))
                } else {
                    self.choose(Choice::Branch { instruction: other, at })?;
                    Some((first, at))
                }
            }
            Instruction::Again { counter, position, min, to } => {
                let count = self.register(*counter);
                if self.register(*position) == at && count >= *min as usize {
                    None
                } else {
                    self.set(*counter, count.saturating_add(1))?;
                    Some((*to, at))
                }
            }
            Instruction::Look { is_negated, end } => self.look(*is_negated, *end, next, at)?,
            Instruction::Accept => None, // `run` handles it
        })
    }

    /// Whether a line ends before or after a position, if lines count.
    fn is_beside_line_end(&self, at: usize, is_back: bool) -> bool {
        self.program.is_multiline && self.next(at, is_back).is_some_and(is_line_end)
    }

    fn consume(&self, at: usize, is_back: bool, fits: impl Fn(char) -> bool) -> Option<usize> {
        let char = self.next(at, is_back).filter(|&char| fits(char))?;
        Some(if is_back { at - char.len_utf8() } else { at + char.len_utf8() })
    }

    fn back_reference(&mut self, group: usize, at: usize, is_back: bool) -> Result<Option<usize>> {
        let Some((start, end)) = self.group(group) else {
            return Ok(Some(at)); // what did not take part matches nothing
        };
        self.charge.meter.step_bytes(end.saturating_sub(start))?;
        let (text, ignores_case) = (self.text, self.program.ignores_case);
        let expected = text.get(start..end).unwrap_or_default();
        let mut at = at;
        let mut fits = |char: char| {
            let next = self.consume(at, is_back, |other| other == char || ignores_case && fold(other) == fold(char));
            at = next.unwrap_or(at);
            next.is_some()
        };
        let is_there = if is_back { expected.chars().rev().all(&mut fits) } else { expected.chars().all(&mut fits) };
        Ok(is_there.then_some(at))
    }

    /// Tries what follows at a position, and forgets how it was matched. Recursion is bounded by the nesting of the pattern.
    fn look(&mut self, is_negated: bool, end: usize, start: usize, at: usize) -> Result<Option<(usize, usize)>> {
        let base = self.choices.len();
        let is_there = self.run(start, at)?.is_some();
        if is_there && !is_negated {
            // Groups that were set stay, until this way fails.
            let tried = self.choices.split_off(base);
            self.charge.meter.step(tried.len() / INSTRUCTIONS_PER_STEP as usize)?;
            self.choices.extend(tried.into_iter().filter(|choice| matches!(choice, Choice::Restore { .. })));
            return Ok(Some((end, at)));
        }
        while self.back(base).is_some() {}
        Ok((!is_there && is_negated).then_some((end, at)))
    }
}
