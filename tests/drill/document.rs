//! A Markdown document with commands and their outputs in blocks of `console`.
//!
//! In such a block a line that begins with `$ ` is a command, those that begin with `> ` continue it, and the others are what it prints.

/// A document, as a sequence of what is run and what is not.
#[derive(Debug)]
pub(crate) struct Document {
    /// In their order.
    pub parts: Vec<Part>,
}

/// A piece of a document.
#[derive(Debug)]
pub(crate) enum Part {
    /// A line that is not run.
    Text(String),
    /// A command and what it prints.
    Command {
        /// Where it stands, from 1.
        line: usize,
        /// Its lines, each ended.
        command: String,
        /// The lines that it prints, each ended.
        output: String,
    },
}

const BEGIN: &str = "```console";
const END: &str = "```";

impl Document {
    /// Takes a text apart.
    pub(crate) fn parse(text: &str) -> Document {
        let mut parts = Vec::new();
        let mut is_console = false;
        for (index, text) in text.lines().enumerate() {
            match (is_console, text, parts.last_mut()) {
                (false, BEGIN, _) | (true, END, _) => {
                    is_console = !is_console;
                    parts.push(Part::Text(text.to_owned()));
                }
                (false, ..) => parts.push(Part::Text(text.to_owned())),
                (true, text, last) => match (text.strip_prefix("$ "), more(text), last) {
                    (Some(first), ..) => {
                        parts.push(Part::Command { line: index + 1, command: format!("{first}\n"), output: String::new() });
                    }
                    (None, Some(more), Some(Part::Command { command, output, .. })) if output.is_empty() => {
                        *command += &format!("{more}\n");
                    }
                    (None, _, Some(Part::Command { output, .. })) => *output += &format!("{text}\n"),
                    (None, ..) => panic!("line {}: output without a command", index + 1),
                },
            }
        }
        assert!(!is_console, "a block of `console` does not end");
        Document { parts }
    }

    /// Puts it together again.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(line) => text += &format!("{line}\n"),
                Part::Command { command, output, .. } => {
                    for (index, line) in command.lines().enumerate() {
                        text += format!("{} {line}", if index == 0 { '$' } else { '>' }).trim_end();
                        text.push('\n');
                    }
                    text += output;
                }
            }
        }
        text
    }
}

/// What continues a command; a line of it may be empty.
fn more(text: &str) -> Option<&str> {
    if text == ">" { Some("") } else { text.strip_prefix("> ") }
}

#[test]
fn a_document_is_what_it_was_when_put_together_again() {
    let text = "# Title\n\n```console\n$ cat > f <<'EOF'\n> a\n>\n> EOF\n$ cat f\na\n```\n\n```toml\n$ no command\n```\n";
    let document = Document::parse(text);
    assert_eq!(document.text(), text);
    let commands = document.parts.iter().filter(|part| matches!(part, Part::Command { .. })).count();
    assert_eq!(commands, 2);
}
