//! The file that says how components are wired, in TOML.
//!
//! ```toml
//! exports = "front"                               # all that this instance exports
//!
//! [instances.front]
//! component = "front.wasm"                        # beside this file
//!
//! [instances.front.with]
//! "demo:words/shout" = "loud"                     # the export of the same name
//! "demo:words/whisper" = { instance = "soft", export = "demo:words/shout" }
//!
//! [instances.loud]
//! component = "loud.wasm"
//!
//! [instances.soft]
//! component = "soft.wasm"
//! ```

use std::collections::BTreeMap;

use awsm_abi::text;
use serde::Deserialize;

/// Instances of components, and what is wired to what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wiring {
    /// What the composition exports.
    #[serde(default)]
    pub exports: Exports,
    /// Its instances, by their names.
    pub instances: BTreeMap<String, Instance>,
}

/// An instance of a component.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The component's file.
    pub component: String,
    /// What its imports are. Others remain imports of the composition.
    #[serde(default)]
    pub with: BTreeMap<String, Source>,
}

/// What an import is, or what is exported.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected the name of an instance, or { instance = \"NAME\", export = \"NAME\" }")]
pub enum Source {
    /// The export of the same name of that instance.
    Instance(String),
    /// Another of its exports.
    Export(Export),
}

/// An instance's export.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// The instance.
    pub instance: String,
    /// The export's name.
    pub export: String,
}

/// What a composition exports.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected the name of an instance, or a table of names and instances")]
pub enum Exports {
    /// All that this instance exports.
    All(String),
    /// What is named.
    Each(BTreeMap<String, Source>),
}

impl Default for Exports {
    fn default() -> Exports {
        Exports::Each(BTreeMap::new())
    }
}

impl Source {
    pub(super) fn instance(&self) -> &str {
        match self {
            Source::Instance(instance) | Source::Export(Export { instance, .. }) => instance,
        }
    }

    pub(super) fn export(&self) -> Option<&str> {
        match self {
            Source::Instance(_) => None,
            Source::Export(Export { export, .. }) => Some(export),
        }
    }
}

impl Wiring {
    /// Reads such a file's text.
    ///
    /// # Errors
    /// Where it is not as it has to be, in words.
    pub fn parse(file: &str) -> Result<Wiring, String> {
        // Its lines are the parser's; that of the file which it repeats has none.
        toml::from_str(file).map_err(|error| text::lines(error.to_string().trim_end()))
    }
}
