//! Access keys, as the configuration has them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::config::AwsApiConfig;
use crate::secret::SecretError;

/// The shortest secret.
const SECRET_BYTES_MIN: usize = 16;

/// The access keys of a server.
#[derive(Debug)]
pub struct Keys(HashMap<Box<str>, Key>);

#[derive(Debug)]
struct Key {
    secret: sledge_aws::Secret,
    caller: Caller,
}

/// What a key stands for.
#[derive(Debug)]
pub(super) struct Caller {
    /// Whose workflows it sees.
    pub(super) tenant: Arc<str>,
    /// Whether it may change nothing.
    pub(super) is_read_only: bool,
}

impl Keys {
    /// Reads those of a configuration.
    ///
    /// # Errors
    /// All that is wrong: secrets that cannot be read, could be read by others, or are too short.
    pub fn read(config: &AwsApiConfig) -> Result<Keys, Vec<SecretError>> {
        let (mut keys, mut wrong) = (HashMap::new(), Vec::new());
        for (index, key) in config.keys.iter().enumerate() {
            let at = format!("aws_api.keys[{index}].secret");
            let secret = key.secret.read(&at).and_then(|text| {
                let secret = text.trim();
                if secret.len() < SECRET_BYTES_MIN {
                    let why = format!("holds {} bytes; a secret has at least {SECRET_BYTES_MIN}", secret.len());
                    return Err(SecretError { key: at.clone(), place: key.secret.clone(), why });
                }
                Ok(sledge_aws::Secret::new(secret))
            });
            match secret {
                Ok(secret) => {
                    let caller = Caller { tenant: key.tenant.as_str().into(), is_read_only: key.read_only };
                    keys.insert(key.id.as_str().into(), Key { secret, caller });
                }
                Err(error) => wrong.push(error),
            }
        }
        if wrong.is_empty() { Ok(Keys(keys)) } else { Err(wrong) }
    }

    /// The secret of the key with that ID.
    pub(super) fn secret(&self, id: &str) -> Option<sledge_aws::Secret> {
        self.0.get(id).map(|key| key.secret.clone())
    }

    /// What the key with that ID stands for.
    pub(super) fn caller(&self, id: &str) -> Option<&Caller> {
        self.0.get(id).map(|key| &key.caller)
    }
}
