//! Sets of characters.

/// What `[...]`, `\d` and the like match.
#[derive(Debug, Clone, Default)]
pub(super) struct Class {
    pub(super) items: Vec<Item>,
    pub(super) is_negated: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Item {
    Range(char, char),
    /// Negated, if set.
    Digit(bool),
    Word(bool),
    Space(bool),
}

impl Class {
    pub(super) fn of(item: Item) -> Class {
        Class { items: vec![item], is_negated: false }
    }

    pub(super) fn contains(&self, char: char, ignores_case: bool) -> bool {
        let has = |char: char| self.items.iter().any(|item| item.contains(char));
        let found = has(char) || ignores_case && (has(fold(char)) || has(lower(char)));
        found != self.is_negated
    }
}

impl Item {
    fn contains(self, char: char) -> bool {
        match self {
            Item::Range(first, last) => (first..=last).contains(&char),
            Item::Digit(is_negated) => char.is_ascii_digit() != is_negated,
            Item::Word(is_negated) => is_word(char) != is_negated,
            Item::Space(is_negated) => is_space(char) != is_negated,
        }
    }
}

pub(super) fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// White space and line terminators of ECMAScript.
fn is_space(char: char) -> bool {
    matches!(char, '\t'..='\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}')
        || is_line_end(char)
}

pub(super) fn is_line_end(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// The character that stands for all that differ in case only (ECMA-262, Canonicalize).
pub(super) fn fold(char: char) -> char {
    let mut upper = char.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(single), None) if char.is_ascii() || !single.is_ascii() => single,
        _ => char,
    }
}

fn lower(char: char) -> char {
    let mut lower = char.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(single), None) => single,
        _ => char,
    }
}
