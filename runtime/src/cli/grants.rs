//! `--grant`: what a function that is deployed asks for of the server's machine and its network.

use serde_json::{Map, Value, json};

use super::dirs;

/// Something that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asked {
    /// One more entry of a setting that is a list.
    Entry(&'static str, Value),
    /// A variable, and the name of the secret that it has.
    Secret(String, String),
}

/// The setting with secrets.
const SECRETS: &str = "secrets";

/// Reads `http-host=HOST`, `socket-host=HOST`, `socket-listen=ADDRESS`, `dir=HOST[::GUEST[::rw|scratch]]` or `secret=VARIABLE[=NAME]`.
///
/// # Errors
/// What was expected instead.
pub(super) fn parse(text: &str) -> Result<Asked, String> {
    let expected = || {
        "give http-host=HOST, socket-host=HOST:PORT, socket-listen=ADDRESS:PORT, dir=HOST[::GUEST[::rw|scratch]] or secret=VARIABLE[=NAME]".to_owned()
    };
    let (kind, what) = text.split_once('=').filter(|(_, what)| !what.is_empty()).ok_or_else(expected)?;
    let entry = |key| Asked::Entry(key, what.into());
    match kind {
        "http-host" => Ok(entry("http_hosts")),
        "socket-host" => Ok(entry("socket_hosts")),
        "socket-listen" => Ok(entry("socket_listen")),
        "dir" => dirs::parse(what).map(|dir| Asked::Entry("dirs", json!(dir))),
        "secret" => {
            let (variable, name) = what.split_once('=').unwrap_or((what, what));
            Ok(Asked::Secret(variable.to_owned(), name.to_owned()))
        }
        _ => Err(expected()),
    }
}

/// Adds what is asked for to the settings that are to change. All of one kind takes the place of what the version before has of that kind.
///
/// # Errors
/// The setting that is given, too.
pub(super) fn add(asked: Vec<Asked>, settings: &mut Map<String, Value>) -> Result<(), &'static str> {
    let key = |asked: &Asked| match asked {
        Asked::Entry(key, _) => *key,
        Asked::Secret(..) => SECRETS,
    };
    if let Some(key) = asked.iter().map(key).find(|key| settings.contains_key(*key)) {
        return Err(key);
    }
    for asked in asked {
        match asked {
            Asked::Entry(key, value) => {
                if let Value::Array(entries) = settings.entry(key).or_insert_with(|| json!([])) {
                    entries.push(value);
                }
            }
            Asked::Secret(variable, name) => {
                if let Value::Object(secrets) = settings.entry(SECRETS).or_insert_with(|| json!({})) {
                    secrets.insert(variable, name.into());
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_becomes_settings() {
        let asked = [
            "http-host=a.example",
            "http-host=*.b:8443",
            "socket-host=10.0.0.1:5432",
            "dir=/srv/a::/data::rw",
            "secret=KEY",
            "secret=DB=db",
        ];
        let asked = asked.map(|text| parse(text).unwrap()).to_vec();
        let mut settings = Map::new();
        add(asked.clone(), &mut settings).unwrap();
        let expected = json!({
            "http_hosts": ["a.example", "*.b:8443"],
            "socket_hosts": ["10.0.0.1:5432"],
            "dirs": [{ "host": "/srv/a", "guest": "/data", "write": true }],
            "secrets": { "KEY": "KEY", "DB": "db" },
        });
        assert_eq!(Value::Object(settings.clone()), expected);
        assert_eq!(add(asked, &mut settings), Err("http_hosts"));
        for wrong in ["", "http-host", "http-host=", "host=a", "dir=::", "dir=/a::b::x", "secret="] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
