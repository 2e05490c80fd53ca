//! A manifest as cargo writes it for a registry: each table begins with `[` at the beginning of a line, and nothing else does.

/// Its tables, each with its head.
#[derive(Debug)]
pub struct Manifest(Vec<String>);

impl Manifest {
    pub fn new(text: &str) -> Manifest {
        let mut tables = vec![String::new()];
        for line in text.lines() {
            if line.starts_with('[') {
                tables.push(String::new());
            }
            if let Some(table) = tables.last_mut() {
                table.push_str(line);
                table.push('\n');
            }
        }
        Manifest(tables)
    }

    /// Leaves out the tables whose heads (without brackets) `out` says.
    pub fn without(mut self, out: impl Fn(&str) -> bool) -> Manifest {
        self.0.retain(|table| !out(head(table)));
        self
    }

    /// The table of that head.
    pub fn table(&mut self, name: &str) -> Option<&mut String> {
        self.0.iter_mut().find(|table| head(table) == name)
    }

    pub fn push(&mut self, table: &str) {
        self.0.push(table.to_owned());
    }

    pub fn text(&self) -> String {
        self.0.concat()
    }
}

/// Whether a table is of tests, examples and measurements.
pub fn is_for_development(head: &str) -> bool {
    ["test", "bench", "example", "bin"].contains(&head) || head.split('.').any(|part| part == "dev-dependencies")
}

fn head(table: &str) -> &str {
    let line = table.lines().next().unwrap_or_default();
    line.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# first\n\n[package]\nname = \"a\"\n\n[features]\nfull = [\n    \"b\",\n]\n\n[[test]]\nname = \"t\"\nrequired-features = [\n    \"x\",\n]\n\n[dependencies.b]\nversion = \"1\"\n\n[target.'cfg(unix)'.dev-dependencies.c]\nversion = \"1\"\n";

    #[test]
    fn a_manifest_is_its_tables() {
        assert_eq!(Manifest::new(TEXT).text(), TEXT);
    }

    #[test]
    fn tables_are_left_out_whole() {
        let text = Manifest::new(TEXT).without(is_for_development).text();
        assert_eq!(
            text,
            "# first\n\n[package]\nname = \"a\"\n\n[features]\nfull = [\n    \"b\",\n]\n\n[dependencies.b]\nversion = \"1\"\n\n"
        );
    }

    #[test]
    fn a_table_is_found_by_its_head() {
        let mut manifest = Manifest::new(TEXT);
        assert!(manifest.table("features").is_some_and(|table| table.contains("\"b\"")));
        assert!(manifest.table("dependencies.c").is_none());
    }
}
