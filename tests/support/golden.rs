//! Expectations in files. `BLESS=1 cargo test -p sledge-tests` writes what came; look at the difference before you commit it.

use std::path::Path;

/// Whether to write expectations rather than compare.
#[must_use]
pub fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some_and(|value| value == "1")
}

/// Compares with a file, or writes it.
///
/// # Errors
/// Says where the two differ.
pub fn check(file: &Path, got: &str) -> Result<(), String> {
    if is_blessing() {
        return std::fs::write(file, got).map_err(|error| format!("{}: {error}", file.display()));
    }
    let expected = std::fs::read_to_string(file)
        .map_err(|error| format!("{}: {error}; BLESS=1 writes it. It would be:\n{got}", file.display()))?;
    if expected == got {
        Ok(())
    } else {
        Err(format!("{} differs (BLESS=1 takes it over):\n{}", file.display(), difference(&expected, got)))
    }
}

/// Lines that are not in both, from the first to the last that differs.
#[must_use]
pub fn difference(expected: &str, got: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), got.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut text = format!("  from line {}:\n", start + 1);
    for line in &old[start..old.len() - rest] {
        text += &format!("  - {line}\n");
    }
    for line in &new[start..new.len() - rest] {
        text += &format!("  + {line}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_what_differs_is_shown() {
        assert_eq!(super::difference("a\nb\nc\n", "a\nx\ny\nc\n"), "  from line 2:\n  - b\n  + x\n  + y\n");
    }
}
