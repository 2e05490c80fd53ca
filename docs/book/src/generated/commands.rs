//! The command line, as the programs describe it themselves.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A program's commands, each with its `--help`.
pub(super) fn chapter(programs: &Path, program: &str) -> Result<String> {
    let mut text = String::new();
    describe(programs, &[program.to_owned()], &mut text)?;
    Ok(text)
}

/// One command, and those below it.
fn describe(programs: &Path, words: &[String], text: &mut String) -> Result<()> {
    let help = help(programs, words)?;
    *text += &format!("{} {}\n\n```text\n{}\n```\n\n", "#".repeat(words.len() + 1), words.join(" "), help.trim());
    for command in subcommands(&help) {
        describe(programs, &[words, &[command.to_owned()]].concat(), text)?;
    }
    Ok(())
}

fn help(programs: &Path, words: &[String]) -> Result<String> {
    let program = programs.join(&words[0]);
    let mut command = Command::new(&program);
    let output = command.args(&words[1..]).arg("--help").output().with_context(|| program.display().to_string())?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The commands that a `--help` lists.
#[must_use]
pub fn subcommands(help: &str) -> Vec<&str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Longer descriptions go on below, further in.
    let names = list.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_list() {
        let help = "Serves\n\nUsage: s <COMMAND>\n\nCommands:\n  run   Run it,\n          once\n  new   Create\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(subcommands(help), ["run", "new"]);
        assert!(subcommands("Usage: s\n\nOptions:\n  -h\n").is_empty());
    }
}
