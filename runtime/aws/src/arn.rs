//! Amazon Resource Names of state machines and executions.
//!
//! ```text
//! arn:aws:states:REGION:ACCOUNT:stateMachine:MACHINE
//! arn:aws:states:REGION:ACCOUNT:execution:MACHINE:NAME
//! arn:aws:states:REGION:ACCOUNT:express:MACHINE:NAME:ID
//! ```
//!
//! Any region and account of letters, digits, `-`, `_` and `.` is taken; which of them exist is the caller's matter. What is parsed is written back unchanged.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::limits::{ARN_MAX, SCOPE_MAX};
use crate::name::is_name;

/// What every ARN begins with.
const PREFIX: &str = "arn:";
/// What ARNs of this service begin with.
const SERVICE_PREFIX: &str = "arn:aws:states:";

/// Why a text is no ARN of the kind that was expected. The messages of the first two are AWS's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArnError {
    /// It does not begin with `arn:`.
    #[error("Invalid ARN prefix: {0}")]
    Prefix(String),
    /// It names a resource of another kind.
    #[error("Resource type not valid in this context: {0}")]
    Kind(String),
    /// It names a version or an alias of a state machine.
    #[error("Versions and aliases of state machines are not supported: use the ARN without ':{qualifier}'")]
    Qualified {
        /// What follows the name of the state machine.
        qualifier: String,
    },
    /// It has another shape.
    #[error("Invalid ARN: {text}: expected {expected}")]
    Shape {
        /// What was given.
        text: String,
        /// The shape that was expected.
        expected: &'static str,
    },
}

/// The ARN of a state machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MachineArn {
    region: String,
    account: String,
    name: String,
}

/// The ARN of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExecutionArn {
    machine: MachineArn,
    name: String,
    express: Option<String>,
}

impl MachineArn {
    /// The shape, for errors.
    const SHAPE: &str = "arn:aws:states:REGION:ACCOUNT:stateMachine:NAME";

    /// The ARN of a state machine.
    ///
    /// # Errors
    /// [`ArnError::Shape`], if a part has characters that an ARN cannot have there, or the whole is too long.
    pub fn new(region: &str, account: &str, name: &str) -> Result<MachineArn, ArnError> {
        let arn = MachineArn { region: region.to_owned(), account: account.to_owned(), name: name.to_owned() };
        if is_scope(region) && is_scope(account) && is_name(name) && fits(&arn) {
            Ok(arn)
        } else {
            Err(shape(&arn.to_string(), Self::SHAPE))
        }
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The account.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The state machine's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl ExecutionArn {
    /// The shape, for errors.
    const SHAPE: &str = "arn:aws:states:REGION:ACCOUNT:execution:MACHINE:NAME";

    /// The ARN of an execution of a standard state machine.
    ///
    /// # Errors
    /// [`ArnError::Shape`], if `name` is no name, or the whole is too long.
    pub fn new(machine: &MachineArn, name: &str) -> Result<ExecutionArn, ArnError> {
        Self::of(machine, name, None)
    }

    /// The ARN of an execution of an express state machine, with an `id` that tells executions of one name apart.
    ///
    /// # Errors
    /// [`ArnError::Shape`], if `name` or `id` is no name, or the whole is too long.
    pub fn express(machine: &MachineArn, name: &str, id: &str) -> Result<ExecutionArn, ArnError> {
        Self::of(machine, name, Some(id))
    }

    fn of(machine: &MachineArn, name: &str, id: Option<&str>) -> Result<ExecutionArn, ArnError> {
        let arn = ExecutionArn { machine: machine.clone(), name: name.to_owned(), express: id.map(str::to_owned) };
        if is_name(name) && id.is_none_or(is_name) && fits(&arn) { Ok(arn) } else { Err(shape(&arn.to_string(), Self::SHAPE)) }
    }

    /// The state machine.
    #[must_use]
    pub fn machine(&self) -> &MachineArn {
        &self.machine
    }

    /// The execution's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What tells executions of one name apart, for an execution of an express state machine.
    #[must_use]
    pub fn express_id(&self) -> Option<&str> {
        self.express.as_deref()
    }
}

/// An ARN's text cut at its colons.
struct Parts<'a> {
    region: &'a str,
    account: &'a str,
    kind: &'a str,
    /// What follows the kind.
    rest: Vec<&'a str>,
}

/// Cuts a text. It takes at most four parts behind the kind, of which the last has all that follows.
fn cut<'a>(text: &'a str, expected: &'static str) -> Result<Parts<'a>, ArnError> {
    if !text.starts_with(PREFIX) {
        return Err(ArnError::Prefix(quote(text)));
    }
    let mut parts = text.strip_prefix(SERVICE_PREFIX).ok_or_else(|| shape(text, expected))?.splitn(7, ':');
    let mut part = || parts.next().ok_or_else(|| shape(text, expected));
    let (region, account, kind) = (part()?, part()?, part()?);
    if text.chars().count() > ARN_MAX || !is_scope(region) || !is_scope(account) {
        return Err(shape(text, expected));
    }
    Ok(Parts { region, account, kind, rest: parts.collect() })
}

impl FromStr for MachineArn {
    type Err = ArnError;

    fn from_str(text: &str) -> Result<MachineArn, ArnError> {
        let parts = cut(text, Self::SHAPE)?;
        if parts.kind != "stateMachine" {
            return Err(ArnError::Kind(quote(parts.kind)));
        }
        match parts.rest.as_slice() {
            [name] if is_name(name) => MachineArn::new(parts.region, parts.account, name),
            [name, qualifier] if is_name(name) && is_name(qualifier) => Err(ArnError::Qualified { qualifier: quote(qualifier) }),
            _ => Err(shape(text, Self::SHAPE)),
        }
    }
}

impl FromStr for ExecutionArn {
    type Err = ArnError;

    fn from_str(text: &str) -> Result<ExecutionArn, ArnError> {
        let parts = cut(text, Self::SHAPE)?;
        if !matches!(parts.kind, "execution" | "express") {
            return Err(ArnError::Kind(quote(parts.kind)));
        }
        let (machine, name, id) = match (parts.kind, parts.rest.as_slice()) {
            ("execution", [machine, name]) => (machine, name, None),
            ("express", [machine, name, id]) => (machine, name, Some(*id)),
            _ => return Err(shape(text, Self::SHAPE)),
        };
        let machine = MachineArn::new(parts.region, parts.account, machine).map_err(|_| shape(text, Self::SHAPE))?;
        ExecutionArn::of(&machine, name, id).map_err(|_| shape(text, Self::SHAPE))
    }
}

impl Display for MachineArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SERVICE_PREFIX}{}:{}:stateMachine:{}", self.region, self.account, self.name)
    }
}

impl Display for ExecutionArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MachineArn { region, account, name: machine } = &self.machine;
        let kind = if self.express.is_some() { "express" } else { "execution" };
        write!(f, "{SERVICE_PREFIX}{region}:{account}:{kind}:{machine}:{}", self.name)?;
        match &self.express {
            Some(id) => write!(f, ":{id}"),
            None => Ok(()),
        }
    }
}

impl Serialize for MachineArn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for ExecutionArn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether a text is a region or an account.
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= SCOPE_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn fits(arn: &impl Display) -> bool {
    arn.to_string().chars().count() <= ARN_MAX
}

fn shape(text: &str, expected: &'static str) -> ArnError {
    ArnError::Shape { text: quote(text), expected }
}

/// What an error quotes of a client's text.
fn quote(text: &str) -> String {
    text.chars().take(ARN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_survive_parsing_and_writing() {
        let machine = MachineArn::new("local", "acme", "order").unwrap();
        assert_eq!(machine.to_string(), "arn:aws:states:local:acme:stateMachine:order");
        assert_eq!(machine.to_string().parse(), Ok(machine.clone()));
        let execution = ExecutionArn::new(&machine, "one").unwrap();
        assert_eq!(execution.to_string(), "arn:aws:states:local:acme:execution:order:one");
        assert_eq!(execution.to_string().parse(), Ok(execution));
        let express = ExecutionArn::express(&machine, "one", "7-a").unwrap();
        assert_eq!(express.to_string(), "arn:aws:states:local:acme:express:order:one:7-a");
        assert_eq!(express.to_string().parse(), Ok(express));
    }

    #[test]
    fn versions_and_aliases_are_refused_by_name() {
        for qualifier in ["2", "prod"] {
            let text = format!("arn:aws:states:local:acme:stateMachine:order:{qualifier}");
            let error = text.parse::<MachineArn>().unwrap_err();
            assert_eq!(error, ArnError::Qualified { qualifier: qualifier.to_owned() });
            assert!(error.to_string().contains("Versions and aliases"));
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        let machine = |text: &str| text.parse::<MachineArn>().unwrap_err().to_string();
        assert_eq!(machine("nonsense"), "Invalid ARN prefix: nonsense");
        assert_eq!(machine("arn:aws:states:local:acme:execution:a:b"), "Resource type not valid in this context: execution");
        for text in [
            "arn:",
            "arn:aws:states:",
            "arn:aws:states:local:acme",
            "arn:aws:lambda:local:acme:stateMachine:a",
            "arn:aws-cn:states:local:acme:stateMachine:a",
            "arn:aws:states::acme:stateMachine:a",
            "arn:aws:states:lo cal:acme:stateMachine:a",
            "arn:aws:states:local:ac/me:stateMachine:a",
            "arn:aws:states:local:acme:stateMachine",
            "arn:aws:states:local:acme:stateMachine:",
            "arn:aws:states:local:acme:stateMachine:a/label",
            "arn:aws:states:local:acme:stateMachine:a:b:c",
            "arn:aws:states:local:acme:stateMachine:a:b:c:d:e:f",
            &format!("arn:aws:states:local:{}:stateMachine:a", "x".repeat(65)),
        ] {
            assert!(matches!(text.parse::<MachineArn>(), Err(ArnError::Shape { .. })), "{text}");
        }
        for text in [
            "arn:aws:states:local:acme:execution:a",
            "arn:aws:states:local:acme:execution:a:b:c",
            "arn:aws:states:local:acme:express:a:b",
        ] {
            assert!(matches!(text.parse::<ExecutionArn>(), Err(ArnError::Shape { .. })), "{text}");
        }
        assert_eq!(
            "arn:aws:states:local:acme:stateMachine:a".parse::<ExecutionArn>(),
            Err(ArnError::Kind("stateMachine".to_owned()))
        );
    }

    #[test]
    fn arns_are_never_longer_than_aws_allows() {
        let machine = MachineArn::new(&"r".repeat(64), &"a".repeat(64), &"m".repeat(80)).unwrap();
        assert!(ExecutionArn::new(&machine, &"e".repeat(80)).is_err());
        assert!(MachineArn::new("local", "acme", "a b").is_err());
    }
}
