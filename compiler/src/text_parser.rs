//! The text format to the binary one. The parser's message repeats names and a line of the source, which may be a stranger's: what acts on a terminal is escaped in
//! both, and the lines of the message stay lines.

use std::borrow::Cow;
use std::path::Path;

use awsm_abi::text;

/// What stands before the caret, and alone on the line above the source's.
const MARGIN: &str = "      |";
/// How the line with the place begins.
const PLACE: &str = "     --> ";

/// A module or component, binary or text, in the binary format. `path` is what the message calls it.
///
/// # Errors
/// The parser's message, with line and column.
pub(crate) fn to_binary<'b>(path: Option<&Path>, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>, String> {
    wat::Parser::new().parse_bytes(path, bytes).map_err(|error| shown(&error.to_string()))
}

/// The message: words, and below them mostly the place, the margin, the line of the source, and the caret below its column. Only the words may have further ends of
/// lines in them, which are names'.
fn shown(message: &str) -> String {
    let mut from_end = message.rsplitn(5, '\n');
    let mut next = || from_end.next().unwrap_or_default();
    let [caret, source, margin, place, words] = std::array::from_fn(|_| next());
    let column = caret.strip_prefix(MARGIN).and_then(|rest| rest.strip_suffix('^')).map(str::len);
    match (column, source.split_once(" | ")) {
        (Some(column), Some((number, source))) if margin == MARGIN && place.starts_with(PLACE) => {
            // The space behind the margin is not the source's.
            let before: String = source.chars().take(column.saturating_sub(1)).collect();
            let column = column + text::line(&before).chars().count() - before.chars().count();
            let (words, place, number, source) = (text::line(words), text::line(place), text::line(number), text::line(source));
            format!("{words}\n{place}\n{MARGIN}\n{number} | {source}\n{MARGIN}{:column$}^", "")
        }
        _ => text::line(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        to_binary(Some(Path::new("f.wat")), text.as_bytes()).expect_err("it is wrong")
    }

    #[test]
    fn the_parsers_lines_stay_and_names_have_none() {
        let expected = "unknown func: failed to find name `$a\\nb\\u{1b}`\n     --> f.wat:2:9\n      |\n    2 |   (call $\"a\\n\\1b\")))\n      |         ^";
        let expected = expected.replace("a\\n\\1b", "a\\nb\\1b");
        assert_eq!(message("(module (func\n  (call $\"a\\nb\\1b\")))"), expected);
        assert_eq!(message("\u{1b}"), "unexpected character '\\u{1b}'\n     --> f.wat:1:1\n      |\n    1 | \\u{1b}\n      | ^");
        assert_eq!(to_binary(None, b"\xff").expect_err("no text"), "input bytes aren't valid utf-8");
    }

    #[test]
    fn the_caret_is_below_its_column() {
        let told = message("(module (; \u{1b}[2J ;) (fun))");
        let [.., source, caret] = told.lines().collect::<Vec<_>>()[..] else { panic!("{told}") };
        assert_eq!((source.find("fun"), source.contains("(; \\u{1b}[2J ;)")), (caret.find('^'), true), "{told}");
    }
}
