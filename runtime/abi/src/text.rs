//! Text that strangers chose, fit for a terminal and a line of a log: names in modules and components, and others' messages that repeat them.
//!
//! What would do something other than be seen is shown as Rust shows it (`\n`, `\u{1b}`, `\u{202e}`): control characters, ends of lines, what turns the direction of
//! text, what has no width. What can be printed stays, in any language. No text is longer than a bound; a longer one ends with `...`.
//!
//! It is used where a stranger's text becomes a part of a message, once. So messages may have lines, but those are ours.

use alloc::string::String;

/// Characters of a name that are shown.
pub const NAME_CHARACTERS_MAX: usize = 120;
/// Characters of a message that are shown.
pub const MESSAGE_CHARACTERS_MAX: usize = 8 << 10;

/// A name, to be put between quotes: these are escaped, too.
#[must_use]
pub fn name(name: &str) -> String {
    let (start, rest) = cut(name, NAME_CHARACTERS_MAX);
    ended(start.escape_debug().collect(), rest)
}

/// Another's message, on one line. Its quotes and backslashes stay, so that one that was made so already is not changed.
#[must_use]
pub fn line(message: &str) -> String {
    let (start, rest) = cut(message, MESSAGE_CHARACTERS_MAX);
    ended(shown(start, false), rest)
}

/// The same of a message whose lines are its maker's and no stranger's.
#[must_use]
pub fn lines(message: &str) -> String {
    let (start, rest) = cut(message, MESSAGE_CHARACTERS_MAX);
    ended(shown(start, true), rest)
}

/// So many characters, and the rest.
fn cut(text: &str, characters: usize) -> (&str, &str) {
    text.split_at(text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at))
}

/// With what says that there was more.
fn ended(mut start: String, rest: &str) -> String {
    if !rest.is_empty() {
        start.push_str("...");
    }
    start
}

fn shown(text: &str, has_lines: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(['"', '\'', '\\', '\n']) {
        let (run, end) = match part.chars().next_back() {
            Some(end @ ('"' | '\'' | '\\' | '\n')) => (&part[..part.len() - end.len_utf8()], Some(end)),
            _ => (part, None),
        };
        shown.extend(run.escape_debug());
        match end {
            Some('\n') if !has_lines => shown.push_str("\\n"),
            end => shown.extend(end),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn nothing_that_acts_is_left() {
        let hostile = "a\nb\r\t\0\u{1b}[31m\u{7f}\u{9b}2J\u{202e}\u{2066}\u{200b}\u{2028}\u{feff}";
        let shown = "a\\nb\\r\\t\\0\\u{1b}[31m\\u{7f}\\u{9b}2J\\u{202e}\\u{2066}\\u{200b}\\u{2028}\\u{feff}";
        assert_eq!((name(hostile).as_str(), line(hostile).as_str()), (shown, shown));
        assert_eq!(lines(hostile), shown.replacen("\\n", "\n", 1));
    }

    #[test]
    fn what_can_be_printed_stays() {
        for text in ["wasi:io/poll@0.2.3", "grün", "функция", "関数", "नमस्ते", "e\u{301}", "🦀"] {
            assert_eq!((name(text).as_str(), line(text).as_str()), (text, text));
        }
        // The first character would be put on what stands before it.
        assert_eq!(name("\u{301}e"), "\\u{301}e");
        assert_eq!(name("it's \"x\\y\""), "it\\'s \\\"x\\\\y\\\"");
    }

    #[test]
    fn a_message_is_shown_once() {
        let once = line("unknown import: \"a\nb\" `c\\d` it's");
        assert_eq!(once, "unknown import: \"a\\nb\" `c\\d` it's");
        assert_eq!((line(&once), lines(&once)), (once.clone(), once));
    }

    #[test]
    fn what_is_long_is_cut() {
        let long = "é".repeat(NAME_CHARACTERS_MAX);
        assert_eq!(name(&long), long);
        assert_eq!(name(&format!("{long}x")), format!("{long}..."));
        let long = "é".repeat(MESSAGE_CHARACTERS_MAX);
        assert_eq!((line(&long), lines(&format!("{long}xy"))), (long.clone(), format!("{long}...")));
    }
}
