//! Text of others, made safe to show: comments of .proto files in WIT, names and messages in errors.

use std::fmt::Write as _;

/// The text with control characters, and those that WIT forbids in its files, as `\u{..}`: a terminal shows what is there, on one line.
#[must_use]
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => shown.push(' '),
            character if is_forbidden(character) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            character => shown.push(character),
        }
    }
    shown
}

/// What wit-parser refuses anywhere in a file: control characters, those that turn the direction of text, deprecated ones.
fn is_forbidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(character, '\u{149}' | '\u{673}' | '\u{f77}' | '\u{f79}' | '\u{17a3}' | '\u{17a4}' | '\u{17b4}' | '\u{17b5}')
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_would_move_a_cursor_is_written_out() {
        assert_eq!(printable("a\u{1b}[2J\nb\tc\u{202e}d\u{7f}\u{9b}é"), "a\\u{1b}[2J\\u{a}b c\\u{202e}d\\u{7f}\\u{9b}é");
    }
}
