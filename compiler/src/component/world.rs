//! A component's imports and exports in WIT.

use std::panic::{AssertUnwindSafe, catch_unwind};

use awsm_abi::limits::WORLD_BYTES_MAX;
use wit_component::{Output, WitPrinter};
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{PackageId, Resolve};

/// The package of interfaces that every reader of a world knows.
const KNOWN_NAMESPACE: &str = "wasi";

/// The world of a component that is valid; none where it has no form in WIT, or a longer one than an artifact says.
///
/// Beside the world come the interfaces that it names, other than those of WASI, if there is room for them.
pub(crate) fn text(component: &[u8]) -> Option<String> {
    // Nothing depends on the text. What reads it is not ours, and a panic there must not refuse what can be compiled.
    let text = catch_unwind(AssertUnwindSafe(|| {
        let DecodedWasm::Component(resolve, world) = decode(component).ok()? else { return None };
        let package = resolve.worlds[world].package?;
        let others: Vec<PackageId> = resolve
            .packages
            .iter()
            .filter(|(id, other)| *id != package && other.name.namespace != KNOWN_NAMESPACE)
            .map(|(id, _)| id)
            .collect();
        print(&resolve, package, &others).or_else(|| print(&resolve, package, &[]))
    }));
    text.ok()?
}

fn print(resolve: &Resolve, package: PackageId, others: &[PackageId]) -> Option<String> {
    let mut printer = WitPrinter::new(Bounded::default());
    printer.emit_docs(false);
    printer.print(resolve, package, others).ok()?;
    let Bounded { text, is_too_long, .. } = printer.output;
    (!is_too_long).then_some(text)
}

/// Text, indented by two spaces, of which no more is kept than an artifact says: a component can say the same long names over and over.
#[derive(Default)]
struct Bounded {
    text: String,
    /// Whether there was more.
    is_too_long: bool,
    indent: usize,
    /// Whether a line begins that is not indented yet.
    is_at_start: bool,
}

impl Output for Bounded {
    fn push_str(&mut self, text: &str) {
        self.is_too_long |= self.text.len() + text.len() > WORLD_BYTES_MAX;
        if !self.is_too_long {
            self.text.push_str(text);
        }
    }

    fn indent_if_needed(&mut self) -> bool {
        let is_needed = std::mem::take(&mut self.is_at_start);
        if is_needed {
            (0..self.indent).for_each(|_| self.push_str("  "));
        }
        is_needed
    }

    fn indent_and_print(&mut self, text: &str) {
        self.indent_if_needed();
        self.push_str(text);
    }

    fn indent_start(&mut self) {
        self.push_str(" {");
        self.indent += 1;
        self.newline();
    }

    fn indent_end(&mut self) {
        self.indent = self.indent.saturating_sub(1);
        self.indent_and_print("}");
        self.newline();
    }

    fn newline(&mut self) {
        self.push_str("\n");
        self.is_at_start = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_an_artifact_says() {
        let mut output = Bounded::default();
        output.indent_start();
        output.str(&"a".repeat(WORLD_BYTES_MAX - 5));
        assert_eq!((output.text.len(), output.is_too_long), (WORLD_BYTES_MAX, false));
        output.indent_end();
        output.str("b");
        assert_eq!((output.text.len(), output.is_too_long), (WORLD_BYTES_MAX, true));
    }

    #[test]
    fn lines_are_indented() {
        let component = wat::parse_str(r#"(component (import "a" (func (param "b" u32))))"#).expect("a component");
        let world = text(&component).expect("a world");
        assert!(world.contains("world root {\n  import a: func(b: u32);\n}\n"), "{world}");
    }
}
