//! Programs that are known not to end as with wasmtime.

/// `known-failures.txt`: lines `NAME  reason`; `?NAME` for what depends on the machine.
pub(crate) struct Known {
    lines: Vec<(&'static str, &'static str)>,
    /// The lines that stood for a program, by their places, once for each.
    used: Vec<usize>,
}

impl Known {
    pub(crate) fn read() -> Known {
        let lines = include_str!("known-failures.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines = lines.map(|line| {
            let (name, reason) = line.split_once("  ").unwrap_or_else(|| panic!("known-failures.txt: no reason: {line}"));
            (name, reason.trim())
        });
        Known { lines: lines.collect(), used: Vec::new() }
    }

    /// Why a program fails, if it is known to; a name that ends in `*` stands for all that begin so.
    pub(crate) fn reason(&mut self, name: &str) -> Option<&'static str> {
        let stands_for = |pattern: &str| {
            let pattern = pattern.trim_start_matches('?');
            pattern.strip_suffix('*').map_or(pattern == name, |begin| name.starts_with(begin))
        };
        let line = self.lines.iter().position(|(pattern, _)| stands_for(pattern))?;
        self.used.push(line);
        Some(self.lines[line].1)
    }

    /// Whether it depends on the machine what becomes of a program.
    pub(crate) fn may_do_either(&self, name: &str) -> bool {
        self.lines.iter().any(|(pattern, _)| pattern.strip_prefix('?') == Some(name))
    }

    /// How many of the programs that were asked for are known to fail.
    pub(crate) fn used(&self) -> usize {
        self.used.len()
    }

    /// Lines that stood for none of them.
    pub(crate) fn unused(&self) -> Vec<&'static str> {
        let lines = self.lines.iter().enumerate();
        lines.filter(|(line, _)| !self.used.contains(line)).map(|(_, (pattern, _))| *pattern).collect()
    }
}
