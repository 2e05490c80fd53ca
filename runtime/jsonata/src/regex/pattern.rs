//! Patterns into trees (ECMA-262, Patterns, with its additions for web browsers).

use super::class::{Class, Item};
use crate::error::{Error, Result};
use crate::limits::NESTING_MAX;

pub(super) enum Tree {
    Char(char),
    Any,
    Class(Class),
    Start,
    End,
    /// Negated, if set.
    WordBoundary(bool),
    Concatenation(Vec<Tree>),
    Alternatives(Vec<Tree>),
    Group(usize, Box<Tree>),
    BackReference(usize),
    Repeat(Box<Repeat>),
    Look(Box<Look>),
}

pub(super) struct Repeat {
    pub(super) tree: Tree,
    pub(super) min: u32,
    /// `u32::MAX` for no limit.
    pub(super) max: u32,
    pub(super) is_greedy: bool,
    /// The groups in it, which each repetition forgets.
    pub(super) groups: (usize, usize),
}

pub(super) struct Look {
    pub(super) tree: Tree,
    pub(super) is_ahead: bool,
    pub(super) is_negated: bool,
}

pub(super) struct Pattern {
    pub(super) tree: Tree,
    /// Without the whole match.
    pub(super) groups: usize,
}

pub(super) fn parse(source: &str) -> Result<Pattern> {
    let source: Vec<char> = source.chars().collect();
    let (total, names) = groups(&source);
    let mut parser = Parser { source, at: 0, depth: 0, groups: 0, total, names };
    let tree = parser.alternatives()?;
    match parser.peek() {
        None => Ok(Pattern { tree, groups: parser.groups }),
        Some(char) => Err(malformed(format!("unmatched {char}"))),
    }
}

/// How many groups there are, and the names of those that have one: a back-reference may come before its group.
fn groups(source: &[char]) -> (usize, Vec<(String, usize)>) {
    let (mut count, mut names) = (0, Vec::new());
    let (mut at, mut is_class) = (0, false);
    while let Some(&char) = source.get(at) {
        match char {
            '\\' => at += 1,
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class && source.get(at + 1) != Some(&'?') => count += 1,
            '(' if !is_class && source.get(at + 2) == Some(&'<') && !matches!(source.get(at + 3), Some('=' | '!')) => {
                count += 1;
                let name: String = source.iter().skip(at + 3).take_while(|&&char| char != '>').collect();
                names.push((name, count));
            }
            _ => {}
        }
        at += 1;
    }
    (count, names)
}

fn malformed(why: impl std::fmt::Display) -> Error {
    Error::new("S0303").with_value(why)
}

struct Parser {
    source: Vec<char>,
    at: usize,
    depth: u32,
    /// Groups so far.
    groups: usize,
    total: usize,
    names: Vec<(String, usize)>,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.source.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let char = self.peek();
        self.at += usize::from(char.is_some());
        char
    }

    fn accept(&mut self, text: &str) -> bool {
        let fits = text.chars().enumerate().all(|(ahead, char)| self.source.get(self.at + ahead) == Some(&char));
        if fits {
            self.at += text.chars().count();
        }
        fits
    }

    fn alternatives(&mut self) -> Result<Tree> {
        if self.depth >= NESTING_MAX {
            return Err(Error::new("U1001").with_value(format!("{NESTING_MAX} levels")));
        }
        self.depth += 1;
        let mut all = vec![self.concatenation()?];
        while self.accept("|") {
            all.push(self.concatenation()?);
        }
        self.depth -= 1;
        Ok(match all.pop() {
            Some(only) if all.is_empty() => only,
            last => Tree::Alternatives(all.into_iter().chain(last).collect()),
        })
    }

    fn concatenation(&mut self) -> Result<Tree> {
        let mut parts = Vec::new();
        while self.peek().is_some_and(|char| char != '|' && char != ')') {
            let before = self.groups;
            let atom = self.atom()?;
            parts.push(self.quantified(atom, before)?);
        }
        Ok(Tree::Concatenation(parts))
    }

    fn quantified(&mut self, tree: Tree, groups_before: usize) -> Result<Tree> {
        let bounds = match self.peek() {
            Some('*') => self.take().map(|_| (0, u32::MAX)),
            Some('+') => self.take().map(|_| (1, u32::MAX)),
            Some('?') => self.take().map(|_| (0, 1)),
            Some('{') => {
                let start = self.at;
                let bounds = self.braces();
                if bounds.is_none() {
                    self.at = start;
                }
                bounds
            }
            _ => None,
        };
        let Some((min, max)) = bounds else {
            return Ok(tree);
        };
        if min > max {
            return Err(malformed("a repetition from more to fewer"));
        }
        let is_greedy = !self.accept("?");
        if matches!(self.peek(), Some('*' | '+' | '?')) {
            return Err(malformed("nothing to repeat"));
        }
        Ok(Tree::Repeat(Box::new(Repeat { tree, min, max, is_greedy, groups: (groups_before + 1, self.groups + 1) })))
    }

    /// `{2}`, `{2,}` or `{2,5}`; otherwise the brace is a character.
    fn braces(&mut self) -> Option<(u32, u32)> {
        self.take();
        let min = self.decimal()?;
        let max = if self.accept(",") { if self.peek() == Some('}') { u32::MAX } else { self.decimal()? } } else { min };
        self.accept("}").then_some((min, max))
    }

    fn decimal(&mut self) -> Option<u32> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|char| char.to_digit(10)) {
            number = Some(number.unwrap_or(0_u32).saturating_mul(10).saturating_add(digit));
            self.at += 1;
        }
        number
    }

    fn atom(&mut self) -> Result<Tree> {
        Ok(match self.take() {
            Some('.') => Tree::Any,
            Some('^') => Tree::Start,
            Some('$') => Tree::End,
            Some('(') => self.group()?,
            Some('[') => Tree::Class(self.class()?),
            Some('\\') => self.escape()?,
            Some('*' | '+' | '?') => return Err(malformed("nothing to repeat")),
            Some('{') => {
                let start = self.at;
                self.at -= 1;
                if self.braces().is_some() {
                    return Err(malformed("nothing to repeat"));
                }
                self.at = start;
                Tree::Char('{')
            }
            Some(char) => Tree::Char(char),
            None => return Err(malformed("it ends too early")),
        })
    }

    fn group(&mut self) -> Result<Tree> {
        let look = |is_ahead, is_negated| Some((is_ahead, is_negated));
        let (mut number, mut looks) = (None, None);
        if self.accept("?:") {
        } else if self.accept("?=") {
            looks = look(true, false);
        } else if self.accept("?!") {
            looks = look(true, true);
        } else if self.accept("?<=") {
            looks = look(false, false);
        } else if self.accept("?<!") {
            looks = look(false, true);
        } else {
            if self.accept("?<") {
                while self.take().is_some_and(|char| char != '>') {}
            } else if self.accept("?") {
                return Err(malformed("unknown kind of group"));
            }
            self.groups += 1;
            number = Some(self.groups);
        }
        let tree = self.alternatives()?;
        if !self.accept(")") {
            return Err(malformed("a group has no closing )"));
        }
        Ok(match (number, looks) {
            (Some(number), _) => Tree::Group(number, Box::new(tree)),
            (None, Some((is_ahead, is_negated))) => Tree::Look(Box::new(Look { tree, is_ahead, is_negated })),
            (None, None) => tree,
        })
    }

    fn escape(&mut self) -> Result<Tree> {
        let Some(char) = self.take() else {
            return Err(malformed("\\ at its end"));
        };
        Ok(match char {
            'b' => Tree::WordBoundary(false),
            'B' => Tree::WordBoundary(true),
            'k' if !self.names.is_empty() => {
                let name: String = self.source.iter().skip(self.at + 1).take_while(|&&char| char != '>').collect();
                self.at += name.chars().count() + 2;
                match self.names.iter().find(|(known, _)| *known == name) {
                    Some((_, number)) => Tree::BackReference(*number),
                    None => return Err(malformed(format!("there is no group {name}"))),
                }
            }
            '1'..='9' => {
                let start = self.at;
                self.at -= 1;
                match self.decimal() {
                    Some(number) if number as usize <= self.total => Tree::BackReference(number as usize),
                    _ => {
                        self.at = start;
                        Tree::Char(self.octal(char))
                    }
                }
            }
            _ => match shorthand(char) {
                Some(item) => Tree::Class(Class::of(item)),
                None => Tree::Char(self.character(char)),
            },
        })
    }

    /// The character that an escape sequence stands for.
    fn character(&mut self, char: char) -> char {
        match char {
            't' => '\t',
            'n' => '\n',
            'v' => '\u{b}',
            'f' => '\u{c}',
            'r' => '\r',
            '0' => self.octal(char),
            'c' => match self.peek() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    char::from(letter as u8 % 32)
                }
                _ => {
                    self.at -= 1;
                    '\\'
                }
            },
            'x' => self.hexadecimal(2).and_then(char::from_u32).unwrap_or(char),
            'u' => self.unicode().unwrap_or(char),
            _ => char,
        }
    }

    /// The character of up to three octal digits, the first of which has been taken; or else that digit.
    fn octal(&mut self, first: char) -> char {
        let Some(mut number) = first.to_digit(8) else {
            return first;
        };
        let more = if number < 4 { 2 } else { 1 };
        for _ in 0..more {
            let Some(digit) = self.peek().and_then(|char| char.to_digit(8)) else {
                break;
            };
            self.at += 1;
            number = number * 8 + digit;
        }
        char::from_u32(number).unwrap_or(first)
    }

    fn hexadecimal(&mut self, count: usize) -> Option<u32> {
        let digits = self.source.get(self.at..self.at + count)?;
        let number = digits.iter().try_fold(0, |number, digit| Some(number * 16 + digit.to_digit(16)?))?;
        self.at += count;
        Some(number)
    }

    fn unicode(&mut self) -> Option<char> {
        let high = self.hexadecimal(4)?;
        if (0xd800..0xdc00).contains(&high) && self.accept("\\u") {
            let low = self.hexadecimal(4)?;
            return char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low.checked_sub(0xdc00)? & 0x3ff));
        }
        Some(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn class(&mut self) -> Result<Class> {
        let mut class = Class { items: Vec::new(), is_negated: self.accept("^") };
        loop {
            let first = match self.take() {
                None => return Err(malformed("a class has no closing ]")),
                Some(']') => return Ok(class),
                Some(char) => self.member(char),
            };
            let Item::Range(low, _) = first else {
                class.items.push(first);
                continue;
            };
            let is_range = self.peek() == Some('-') && self.source.get(self.at + 1).is_some_and(|&char| char != ']');
            if !is_range {
                class.items.push(first);
                continue;
            }
            self.at += 1;
            let last = match self.take() {
                Some(char) => self.member(char),
                None => return Err(malformed("a class has no closing ]")),
            };
            match last {
                Item::Range(high, _) if low <= high => class.items.push(Item::Range(low, high)),
                Item::Range(..) => return Err(malformed("a range of a class is out of order")),
                _ => class.items.extend([first, Item::Range('-', '-'), last]),
            }
        }
    }

    fn member(&mut self, char: char) -> Item {
        if char != '\\' {
            return Item::Range(char, char);
        }
        let Some(escaped) = self.take() else {
            return Item::Range(char, char);
        };
        shorthand(escaped).unwrap_or_else(|| {
            let char = if escaped == 'b' { '\u{8}' } else { self.character(escaped) };
            Item::Range(char, char)
        })
    }
}

fn shorthand(char: char) -> Option<Item> {
    Some(match char {
        'd' => Item::Digit(false),
        'D' => Item::Digit(true),
        'w' => Item::Word(false),
        'W' => Item::Word(true),
        's' => Item::Space(false),
        'S' => Item::Space(true),
        _ => return None,
    })
}
