//! Lines that are other here than in wasmtime, and why.

use sledge_tests::programs;

/// `differences.txt`: lines `CASE || wasmtime's line || ours || reason`.
pub(crate) struct Differences {
    lines: Vec<Line>,
}

struct Line {
    text: String,
    used: bool,
}

impl Line {
    fn parts(&self) -> impl Iterator<Item = &str> {
        self.text.split(" || ")
    }
}

impl Differences {
    pub(crate) fn read() -> Differences {
        let file = programs::tests_folder().join("conformance/differences.txt");
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines: Vec<Line> = lines.map(|line| Line { text: line.to_owned(), used: false }).collect();
        let odd = lines.iter().find(|line| line.parts().count() != 4);
        assert!(
            odd.is_none(),
            "differences.txt: not `CASE || wasmtime's line || ours || reason`: {}",
            odd.map_or("", |line| &line.text)
        );
        Differences { lines }
    }

    /// Whether a difference is known.
    pub(crate) fn lists(&mut self, case: &str, there: &str, here: &str) -> bool {
        let is = |line: &&mut Line| line.parts().take(3).eq([case, there, here]);
        self.lines.iter_mut().find(is).map(|line| line.used = true).is_some()
    }

    /// Those of these cases that are no more.
    pub(crate) fn unused(&self, cases: &[String]) -> Vec<String> {
        let of_these = |line: &&Line| line.parts().next().is_some_and(|case| cases.iter().any(|known| known == case));
        let unused = self.lines.iter().filter(|line| !line.used).filter(of_these);
        unused.map(|line| format!("differences.txt: it is the same by now: {}", line.text)).collect()
    }
}
