//! Names: identifiers of Protobuf to those of WIT.
//!
//! ```text
//! AddItemRequest -> add-item-request      HTTPServer2 -> http-server2      line_1 -> line-1      _x -> x      type -> %type
//! shop.v1 -> proto:shop@1.0.0             acme.shop.cart.v1p2beta1 -> acme:shop-cart@1.2.0-beta1
//! ```
//!
//! Several identifiers can want one name (`fooBar` and `foo_bar`). [`assign`] gives it to the first and a number to the others; what is ours
//! (`unrecognized`) comes last. Packages that want one name are refused: a number would depend on what else is there.

use std::collections::BTreeSet;
use std::fmt;

/// Namespace of packages whose name has one part, and of files without a package.
const NAMESPACE: &str = "proto";

/// Name of the package of files that name none.
const UNNAMED: &str = "unnamed";

/// The words that WIT keeps for itself; `_` is none that we write.
const KEYWORDS: [&str; 43] = [
    "as",
    "async",
    "bool",
    "borrow",
    "char",
    "constructor",
    "enum",
    "error-context",
    "export",
    "f32",
    "f64",
    "flags",
    "from",
    "func",
    "future",
    "import",
    "include",
    "interface",
    "list",
    "map",
    "option",
    "own",
    "package",
    "record",
    "resource",
    "result",
    "s16",
    "s32",
    "s64",
    "s8",
    "static",
    "stream",
    "string",
    "tuple",
    "type",
    "u16",
    "u32",
    "u64",
    "u8",
    "use",
    "variant",
    "with",
    "world",
];

/// An identifier of Protobuf in kebab-case. Words end at `_`, `.`, before a capital that follows none, and before the last of several capitals
/// when a small letter follows it. It begins with a letter.
#[must_use]
pub(super) fn kebab(identifier: &str) -> String {
    let characters: Vec<char> = identifier.chars().collect();
    let mut name = String::with_capacity(identifier.len() + 4);
    for (at, &character) in characters.iter().enumerate() {
        if !character.is_ascii_alphanumeric() {
            if !name.is_empty() && !name.ends_with('-') {
                name.push('-');
            }
            continue;
        }
        let before = at.checked_sub(1).map(|before| characters[before]);
        let begins = character.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || before.is_ascii_uppercase() && characters.get(at + 1).is_some_and(char::is_ascii_lowercase)
            });
        if begins && !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if name.is_empty() && character.is_ascii_digit() {
            name.push('x');
        }
        name.push(character.to_ascii_lowercase());
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "x".to_owned() } else { name.to_owned() }
}

/// A name as it stands in WIT's text.
#[must_use]
pub(super) fn written(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("%{name}") } else { name.to_owned() }
}

/// Names of one scope. No two of them differ in `-` alone: the component model wants names to be unique without it.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Without `-`.
    taken: BTreeSet<String>,
}

impl Scope {
    /// The name if it is free, else the first with a number that is.
    pub(super) fn claim(&mut self, wish: &str) -> String {
        if self.take(wish) {
            return wish.to_owned();
        }
        // There are more numbers than names.
        (2_u64..).map(|number| format!("{wish}-{number}")).find(|name| self.take(name)).unwrap_or_default()
    }

    pub(super) fn is_free(&self, name: &str) -> bool {
        !self.taken.contains(&name.replace('-', ""))
    }

    /// A name for each wish, in their order: no name that another wishes first is given to whom it does not belong.
    pub(super) fn assign(&mut self, wishes: &[String]) -> Vec<String> {
        let first: Vec<bool> = wishes.iter().map(|wish| self.take(wish)).collect();
        wishes.iter().zip(first).map(|(wish, is_first)| if is_first { wish.clone() } else { self.claim(wish) }).collect()
    }

    fn take(&mut self, name: &str) -> bool {
        self.taken.insert(name.replace('-', ""))
    }
}

/// A package of WIT.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Package {
    pub namespace: String,
    pub name: String,
    pub version: Option<String>,
}

impl Package {
    /// The package of a package of Protobuf: its last part is the version, if it looks like one; the first is the namespace, if there are two.
    pub(super) fn of(proto: &str) -> Package {
        let mut parts: Vec<&str> = proto.split('.').collect();
        let version = if parts.len() > 1 { parts.last().copied().and_then(version) } else { None };
        if version.is_some() {
            parts.pop();
        }
        let (namespace, name) = match parts.as_slice() {
            [] | [""] => (NAMESPACE.to_owned(), UNNAMED.to_owned()),
            [name] => (NAMESPACE.to_owned(), kebab(name)),
            // A later part may begin with a digit once it is joined.
            [namespace, name @ ..] => (kebab(namespace), kebab(&name.join("_"))),
        };
        Package { namespace, name, version }
    }

    /// An interface of it, as `use`, `import` and `export` name it.
    pub(super) fn interface(&self, interface: &str) -> String {
        let version = self.version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
        format!("{}:{}/{}{version}", written(&self.namespace), written(&self.name), written(interface))
    }

    /// A name of a file for it.
    pub(super) fn file(&self) -> String {
        let version = self.version.as_ref().map(|version| format!("-{version}")).unwrap_or_default();
        format!("{}-{}{version}.wit", self.namespace, self.name)
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", written(&self.namespace), written(&self.name))?;
        self.version.as_ref().map_or(Ok(()), |version| write!(f, "@{version}"))
    }
}

/// The version that a part of a package's name says: `v1`, `v1p2`, `v1alpha`, `v1beta3`, `v1p2beta3`.
fn version(part: &str) -> Option<String> {
    let (major, rest) = number(part.strip_prefix('v')?)?;
    let (minor, rest) = match rest.strip_prefix('p') {
        Some(rest) => number(rest).filter(|(minor, _)| *minor > 0)?,
        None => (0, rest),
    };
    if rest.is_empty() {
        return Some(format!("{major}.{minor}.0"));
    }
    let stage = rest.strip_prefix("alpha").or_else(|| rest.strip_prefix("beta"))?;
    let is_stage = stage.is_empty() || number(stage).is_some_and(|(_, rest)| rest.is_empty());
    is_stage.then(|| format!("{major}.{minor}.0-{rest}"))
}

/// The number at the start of a text, without zeros before it, and what follows.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let is_one = digits == "0" || !digits.starts_with('0');
    if is_one { Some((digits.parse().ok()?, rest)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_become_kebab_case() {
        for (identifier, name) in [
            ("AddItemRequest", "add-item-request"),
            ("HTTPServer", "http-server"),
            ("HTTPServer2Go", "http-server2-go"),
            ("COLOR_RED", "color-red"),
            ("fooBar", "foo-bar"),
            ("foo__bar_", "foo-bar"),
            ("line_1", "line-1"),
            ("v1Beta", "v1-beta"),
            ("_", "x"),
            ("__9", "x9"),
            ("A", "a"),
            ("ABc", "a-bc"),
            ("Outer.InnerOne", "outer-inner-one"),
        ] {
            assert_eq!(kebab(identifier), name, "{identifier}");
        }
    }

    #[test]
    fn names_are_ones_of_wit() {
        for identifier in ["_1_2", "a1B2", "URLs", "X", "a_B_1c", "T1T", "IDs2"] {
            let name = kebab(identifier);
            wit_parser::validate_id(&name).unwrap_or_else(|error| panic!("{identifier}: {name}: {error}"));
        }
    }

    /// With the words that wit-parser has: each is a name only with `%`.
    #[test]
    fn keywords_are_escaped() {
        for word in KEYWORDS {
            let bare = format!("package a:b; interface i {{ record r {{ {word}: u8 }} }}");
            assert!(wit_parser::Resolve::default().push_str("a.wit", &bare).is_err(), "{word} is no keyword");
        }
        for word in KEYWORDS {
            let text = format!("package a:b; interface i {{ record r {{ {}: u8 }} }}", written(word));
            wit_parser::Resolve::default().push_str("a.wit", &text).unwrap_or_else(|error| panic!("{word}: {error}"));
        }
    }

    #[test]
    fn the_first_keeps_the_name() {
        let wishes = ["foo-bar", "foo-bar", "foo-bar-2", "x", "foobar", "foobar2"].map(str::to_owned);
        let mut scope = Scope::default();
        assert_eq!(scope.assign(&wishes), ["foo-bar", "foo-bar-3", "foo-bar-2", "x", "foobar-4", "foobar2-2"]);
        assert_eq!(scope.claim("x"), "x-2");
    }

    #[test]
    fn packages_have_versions() {
        for (proto, wit) in [
            ("", "proto:unnamed"),
            ("shop", "proto:shop"),
            ("shop.v1", "proto:shop@1.0.0"),
            ("v1", "proto:v1"),
            ("google.protobuf", "google:protobuf"),
            ("google.type", "google:%type"),
            ("acme.shop.cart.v1p2beta1", "acme:shop-cart@1.2.0-beta1"),
            ("a.v1alpha", "proto:a@1.0.0-alpha"),
            ("a.v01", "a:v01"),
            ("a.v1p0", "a:v1p0"),
            ("a.v1beta01", "a:v1beta01"),
            ("a.v1x", "a:v1x"),
            ("a.v99999999999", "a:v99999999999"),
            ("a._1._2", "a:x1-2"),
        ] {
            assert_eq!(Package::of(proto).to_string(), wit, "{proto}");
        }
    }
}
