//! Secrets: a configuration says where they are, never what they are, so that it can be shown, kept and sent like any other file.

mod variable;

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use variable::{Variable, environment};

/// The largest secret.
const BYTES_MAX: u64 = 1 << 20;
/// What only the owner may do with a secret's file, but for its group, which may read it.
const MODE_FORBIDDEN: u32 = 0o027;

/// Where a secret is: `{ file = "PATH" }`, relative to the configuration's folder, or `{ env = "NAME" }`, an environment variable of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Secret {
    /// A file that others may neither read nor write.
    File(PathBuf),
    /// An environment variable.
    Env(String),
}

/// Why a secret cannot be had. Says nothing of what it is.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {place}: {why}")]
pub struct SecretError {
    /// The configuration's key.
    pub key: String,
    /// Where it should be.
    pub place: Secret,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::File(path) => path.display().fmt(f),
            Secret::Env(name) => write!(f, "environment variable {name}"),
        }
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        let tree = Value::deserialize(deserializer)?;
        let entry = tree.as_object().filter(|entries| entries.len() == 1).and_then(|entries| entries.iter().next());
        match entry.map(|(place, value)| (place.as_str(), value.as_str())) {
            Some(("file", Some(path))) => Ok(Secret::File(path.into())),
            Some(("env", Some(name))) if !name.is_empty() && !name.contains(['=', '\0']) => Ok(Secret::Env(name.to_owned())),
            // What stands there may be the secret itself: it does not get into a message.
            _ => Err(D::Error::custom(
                "a secret does not stand in the configuration; give { file = \"PATH\" } or { env = \"NAME\" }, where it is",
            )),
        }
    }
}

impl Secret {
    /// Takes a relative path as one in that folder.
    pub fn within(&mut self, folder: &Path) {
        if let Secret::File(path) = self {
            *path = folder.join(&*path);
        }
    }

    /// Reads it; `key` is the key under which it stands.
    ///
    /// # Errors
    /// When there is none, it is no text, or others could read or write its file.
    pub fn read(&self, key: &str) -> Result<String, SecretError> {
        let wrong = |why: String| SecretError { key: key.to_owned(), place: self.clone(), why };
        match self {
            Secret::File(path) => read_file(path).map_err(wrong),
            Secret::Env(name) => match std::env::var(name) {
                Ok(secret) => Ok(secret),
                Err(std::env::VarError::NotPresent) => Err(wrong("is not set".to_owned())),
                Err(std::env::VarError::NotUnicode(_)) => Err(wrong("is not UTF-8".to_owned())),
            },
        }
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    // Of the file that was opened: another may have its name by now.
    let mode = file.metadata().map_err(|error| error.to_string())?.permissions().mode() & 0o777;
    if mode & MODE_FORBIDDEN != 0 {
        return Err(format!("others may read or write it (mode {mode:o}); chmod 600"));
    }
    let mut secret = String::new();
    file.take(BYTES_MAX + 1).read_to_string(&mut secret).map_err(|error| error.to_string())?;
    if secret.len() as u64 > BYTES_MAX {
        return Err(format!("has more than {BYTES_MAX} bytes"));
    }
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(path: &Path, secret: &str, mode: u32) -> std::io::Result<()> {
        fs::write(path, secret)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }

    fn parse(json: &str) -> Result<Secret, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn what_could_be_the_secret_itself_is_refused_and_not_repeated() {
        assert_eq!(parse(r#"{"file": "a"}"#), Ok(Secret::File("a".into())));
        assert_eq!(parse(r#"{"env": "A"}"#), Ok(Secret::Env("A".to_owned())));
        for wrong in [r#""hunter2""#, "4711", r#"{"hunter2": 1}"#, r#"{"file": "hunter2", "env": "A"}"#, r#"{"env": "hunter2="}"#]
        {
            let message = parse(wrong).unwrap_err();
            assert!(message.contains("{ file = ") && !message.contains("hunter2") && !message.contains("4711"), "{message}");
        }
        let kept = serde_json::to_value(Secret::File("a".into())).unwrap();
        assert_eq!(serde_json::from_value::<Secret>(kept).unwrap(), Secret::File("a".into()));
    }

    #[test]
    fn files_that_others_may_read_or_write_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let mut secret = Secret::File("secret".into());
        secret.within(folder.path());
        for (mode, is_good) in [(0o600, true), (0o400, true), (0o640, true), (0o660, false), (0o604, false), (0o602, false)] {
            write(&path, "hunter2", mode).unwrap();
            let read = secret.read("admin_token");
            assert_eq!(read.is_ok(), is_good, "{mode:o}: {read:?}");
            if let Err(error) = read {
                let expected = format!("admin_token: {}: others may read or write it (mode {mode:o}); chmod 600", path.display());
                assert_eq!(error.to_string(), expected);
            }
        }
        write(&path, &"x".repeat(BYTES_MAX as usize + 1), 0o600).unwrap();
        assert!(secret.read("admin_token").unwrap_err().why.contains("more than"));
    }

    #[test]
    fn a_variable_that_is_not_there_is_named() {
        let error = Secret::Env("SLEDGE_TEST_NO_SUCH_VARIABLE".to_owned()).read("tls_key").unwrap_err();
        assert_eq!(error.to_string(), "tls_key: environment variable SLEDGE_TEST_NO_SUCH_VARIABLE: is not set");
        assert!(!Secret::Env("PATH".to_owned()).read("tls_key").unwrap().is_empty());
    }
}
