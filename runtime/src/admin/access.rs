//! What a client of the admin API may do, and whose; and the tokens that say so.

use hyper::header::{AUTHORIZATION, HeaderMap};

use crate::config::Config;
use crate::deploy::Scope;
use crate::secret::{Secret, SecretError};

/// The shortest token.
const TOKEN_BYTES_MIN: usize = 16;

/// What a client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Ask whether the server lives.
    None,
    /// And for metrics.
    Metrics,
    /// And for all else that changes nothing.
    Read,
    /// Everything.
    All,
}

/// What a client may do, and with whose functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// What.
    pub rights: Rights,
    /// Whose.
    pub scope: Scope,
}

impl Access {
    /// With the functions of all tenants.
    #[must_use]
    pub const fn to_all(rights: Rights) -> Access {
        Access { rights, scope: Scope::All }
    }
}

/// What a client has to know.
#[derive(Debug)]
struct Token(blake3::Hash);

impl Token {
    /// Reads the one of that key of the configuration.
    fn read(key: &str, place: &Secret) -> Result<Token, SecretError> {
        let text = place.read(key)?;
        let token = text.trim();
        if token.len() < TOKEN_BYTES_MIN {
            let why = format!("holds {} bytes; a token has at least {TOKEN_BYTES_MIN}", token.len());
            return Err(SecretError { key: key.to_owned(), place: place.clone(), why });
        }
        Ok(Token(blake3::hash(token.as_bytes())))
    }
}

/// The tokens of a server, each with what its clients may do.
#[derive(Debug, Default)]
pub struct Tokens(Vec<(Token, Access)>);

impl Tokens {
    /// Reads those that a configuration names.
    ///
    /// # Errors
    /// Those that cannot be read, could be read by others, are too short, or are the same as another.
    pub fn read(config: &Config) -> Result<Tokens, Vec<SecretError>> {
        let single = |key: &str, place: &Option<Secret>, rights| {
            place.clone().map(|place| (key.to_owned(), place, Access::to_all(rights)))
        };
        let all = single("admin_token", &config.admin_token, Rights::All);
        let read = single("admin_read_token", &config.admin_read_token, Rights::Read);
        let of_tenants = config.admin_tokens.iter().enumerate().map(|(index, token)| {
            let rights = if token.read_only { Rights::Read } else { Rights::All };
            let access = Access { rights, scope: Scope::Tenant(token.tenant.as_str().into()) };
            (format!("admin_tokens[{index}].token"), token.token.clone(), access)
        });
        let (mut tokens, mut keys, mut errors): (Vec<(Token, Access)>, Vec<String>, _) = (Vec::new(), Vec::new(), Vec::new());
        for (key, place, access) in all.into_iter().chain(read).chain(of_tenants) {
            match Token::read(&key, &place) {
                Ok(token) => match tokens.iter().position(|(known, _)| known.0 == token.0) {
                    Some(other) => {
                        let why = format!("is the same token as that of `{}`; make another one", keys[other]);
                        errors.push(SecretError { key, place, why });
                    }
                    None => {
                        tokens.push((token, access));
                        keys.push(key);
                    }
                },
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(Tokens(tokens)) } else { Err(errors) }
    }

    /// What the client of a request may do: what its token says, and everything where there are no tokens. All are compared, each in constant time.
    #[must_use]
    pub fn access(&self, headers: &HeaderMap) -> Access {
        if self.0.is_empty() {
            return Access::to_all(Rights::All);
        }
        // `/readyz` names functions: where tenants do not see each other's, a client without a token sees none.
        let has_tenants = self.0.iter().any(|(_, access)| access.scope != Scope::All);
        let mut found = Access { rights: Rights::None, scope: if has_tenants { Scope::Nothing } else { Scope::All } };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let Some(given) = given.map(blake3::hash) else { return found };
        for (token, access) in &self.0 {
            if token.0 == given {
                found = access.clone();
            }
        }
        found
    }
}
