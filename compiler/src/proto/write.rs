//! WIT's text, in lines.

/// A text in the making.
#[derive(Debug, Default)]
pub(super) struct Text {
    out: String,
    depth: usize,
}

impl Text {
    pub(super) fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.out.extend(std::iter::repeat_n("  ", self.depth));
            self.out.push_str(line);
        }
        self.out.push('\n');
    }

    /// An empty line between items; none at the start of a block.
    pub(super) fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("{\n") && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    pub(super) fn docs(&mut self, lines: &[String]) {
        for line in lines {
            self.line(format!("/// {line}").trim_end());
        }
    }

    /// `head {`, and all until `close` is inside.
    pub(super) fn open(&mut self, head: &str) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
    }

    pub(super) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.line("}");
    }

    /// `head { name, .. }`, with what stands before each.
    pub(super) fn block(&mut self, head: &str, items: &[(Vec<String>, String)]) {
        self.open(head);
        for (docs, item) in items {
            self.docs(docs);
            self.line(&format!("{item},"));
        }
        self.close();
    }

    /// Another text, moved to this depth.
    pub(super) fn insert(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}
