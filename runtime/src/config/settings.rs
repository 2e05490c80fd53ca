//! The settings of a function that is served: as JSON, with others in their place, and what differs.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::FunctionConfig;

/// Keys of a [`FunctionConfig`] that are no settings: what it is called, and how its module is made.
pub(super) const NO_SETTINGS: [&str; 3] = ["name", "path", "build"];

/// A setting that a change gives another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingChange {
    /// Its key.
    pub key: String,
    /// What it was; null where there was none.
    pub old: Value,
    /// What it is now.
    pub new: Value,
}

/// All settings as they count, defaults included. A secret is shown as the place where it is.
#[must_use]
pub fn settings(config: &FunctionConfig) -> Map<String, Value> {
    // A configuration always serialises, to an object.
    let mut entries = match serde_json::to_value(config) {
        Ok(Value::Object(entries)) => entries,
        _ => Map::new(),
    };
    entries.retain(|key, _| !NO_SETTINGS.contains(&key.as_str()));
    if config.routes.is_none() {
        entries.insert("route".to_owned(), config.shown_routes().into());
    }
    entries
}

/// The settings of `present`, those that are `given` in their place; what is no object is returned as it is.
#[must_use]
pub fn merged(present: &FunctionConfig, given: Value) -> Value {
    let Value::Object(given) = given else { return given };
    let mut entries = settings(present);
    // Each is in place of the other.
    for (one, other) in [("route", "routes"), ("routes", "route")] {
        if given.contains_key(one) {
            entries.remove(other);
        }
    }
    entries.extend(given);
    Value::Object(entries)
}

/// What differs, in the order of the keys.
#[must_use]
pub fn differences(before: &FunctionConfig, after: &FunctionConfig) -> Vec<SettingChange> {
    let (before, after) = (settings(before), settings(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |entries: &Map<String, Value>, key: &str| entries.get(key).cloned().unwrap_or_default();
    let change = |key: &String| SettingChange { key: key.clone(), old: value(&before, key), new: value(&after, key) };
    keys.into_iter().map(change).filter(|change| change.old != change.new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use serde_json::json;
    use std::path::Path;

    fn function(settings: Value) -> FunctionConfig {
        config::function("settings", "f", Path::new("f.wasm"), settings).unwrap()
    }

    #[test]
    fn what_is_not_given_stays_and_null_is_the_default() {
        let before = function(json!({ "tenant": "a", "route": "/x", "queue_max": 3, "concurrency_max": 2, "env": { "A": "1" } }));
        assert_eq!(function(merged(&before, json!({}))), before);
        let after = function(merged(&before, json!({ "route": null, "queue_max": null, "env": { "B": "2" } })));
        let change = |key: &str, old, new| SettingChange { key: key.to_owned(), old, new };
        let expected = [
            change("env", json!({ "A": "1" }), json!({ "B": "2" })),
            change("queue_max", json!(3), Value::Null),
            change("route", json!("/x"), json!("/f")),
        ];
        assert_eq!(differences(&before, &after), expected);
        assert_eq!((after.tenant.as_str(), after.concurrency_max), ("a", Some(config::Concurrency::Max(2))));
        // One route, several, and one again.
        let several = function(merged(&before, json!({ "routes": ["/y", "/z"] })));
        assert_eq!((several.routes(), several.route.is_none()), (vec!["/y".to_owned(), "/z".to_owned()], true));
        assert_eq!(function(merged(&several, json!({ "route": "/x" }))).routes(), ["/x"]);
    }
}
