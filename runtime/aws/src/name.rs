//! Names of state machines and executions.

use crate::limits::NAME_MAX;

/// What AWS forbids in names, besides white space and control characters.
const FORBIDDEN: &str = "<>{}[]?*\"#%\\^|~`$&,;:/";

/// Whether a text is a name: 1 to 80 characters, without white space, brackets, wildcards, control characters and `"#%\^|~`` `` ``$&,;:/`.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let mut length = 0;
    for character in text.chars() {
        length += 1;
        let forbidden = character.is_whitespace()
            || character.is_control()
            || matches!(character, '\u{fffe}' | '\u{ffff}')
            || FORBIDDEN.contains(character);
        if forbidden || length > NAME_MAX {
            return false;
        }
    }
    length > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_aws_allows_them() {
        for name in ["a", "A-b_c.9", "é!'()+=@", &"x".repeat(80)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", " ", "a b", "a\u{a0}b", "a\u{85}", "\0a", "a\u{7f}", "a\u{9f}", "a\u{ffff}", &"x".repeat(81)] {
            assert!(!is_name(name), "{name:?}");
        }
        for character in FORBIDDEN.chars() {
            assert!(!is_name(&format!("a{character}b")), "{character}");
        }
    }
}
