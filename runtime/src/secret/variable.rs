//! The environment of a function: texts, and secrets that are somewhere else.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Secret, SecretError};

/// What a variable, or a header, is set to: a text, or a secret, `{ file = "PATH" }` (without the end of its last line) or `{ env = "NAME" }`, a variable of the
/// server's own environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Variable {
    /// A text.
    Text(String),
    /// Where it is.
    Secret(Secret),
}

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Variable, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Variable::Text(text)),
            place @ Value::Object(_) => Secret::deserialize(place).map(Variable::Secret).map_err(D::Error::custom),
            // It may be a secret.
            _ => Err(D::Error::custom("no text; give a text, or { file = \"PATH\" } or { env = \"NAME\" }, where a secret is")),
        }
    }
}

/// The environment, each variable as `NAME=VALUE`; `at` is the key under which the variables stand.
///
/// # Errors
/// When a secret cannot be read, or cannot be the value of a variable.
pub fn environment(at: &str, variables: &BTreeMap<String, Variable>) -> Result<Vec<String>, SecretError> {
    variables.iter().map(|(name, variable)| Ok(format!("{name}={}", variable.value(&format!("{at}.{name}"))?))).collect()
}

impl Variable {
    /// Takes a secret's relative path as one in that folder.
    pub fn within(&mut self, folder: &Path) {
        if let Variable::Secret(secret) = self {
            secret.within(folder);
        }
    }

    /// What it is set to; `key` is the key under which it stands.
    ///
    /// # Errors
    /// When it is a secret that cannot be read, or contains a zero byte.
    pub fn value(&self, key: &str) -> Result<String, SecretError> {
        let place = match self {
            Variable::Text(text) => return Ok(text.clone()),
            Variable::Secret(place) => place,
        };
        let mut secret = place.read(key)?;
        if secret.contains('\0') {
            return Err(SecretError { key: key.to_owned(), place: place.clone(), why: "contains a zero byte".to_owned() });
        }
        // Editors end every line.
        if matches!(place, Secret::File(_)) && secret.ends_with('\n') {
            secret.pop();
            if secret.ends_with('\r') {
                secret.pop();
            }
        }
        Ok(secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn parse(json: &str) -> Result<Variable, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    fn secret(path: &Path, bytes: &[u8]) -> Result<String, String> {
        fs::write(path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        let variables = BTreeMap::from([("TOKEN".to_owned(), Variable::Secret(Secret::File(path.to_owned())))]);
        environment("env", &variables).map(|environment| environment.concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_variable_is_a_text_or_says_where_a_secret_is() {
        for json in [r#""a""#, r#"{"file":"a"}"#, r#"{"env":"A"}"#] {
            assert_eq!(serde_json::to_string(&parse(json).unwrap()).unwrap(), json);
        }
        for wrong in ["4711", r#"["hunter2"]"#, r#"{"hunter2": "4711"}"#, "null"] {
            let message = parse(wrong).unwrap_err();
            assert!(message.contains("{ file = ") && !message.contains("hunter2") && !message.contains("4711"), "{message}");
        }
    }

    #[test]
    fn the_end_of_the_last_line_is_no_part_of_a_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for (bytes, expected) in [("x", "x"), ("x\n", "x"), ("x\r\n", "x"), ("x\n\n", "x\n"), (" x \ny", " x \ny"), ("", "")] {
            assert_eq!(secret(&path, bytes.as_bytes()).unwrap(), format!("TOKEN={expected}"));
        }
        let place = path.display();
        assert_eq!(secret(&path, b"x\0y").unwrap_err(), format!("env.TOKEN: {place}: contains a zero byte"));
        assert!(secret(&path, b"\xff").unwrap_err().starts_with(&format!("env.TOKEN: {place}: ")));
    }
}
