//! Whether a function's requests are transactions of the key-value store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Problems;
use super::{BodyMode, FunctionConfig, Instance};

/// How requests that run at the same time see each other's changes of the key-value store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Each change is made at once, and each read sees what is there.
    #[default]
    None,
    /// Each request is one transaction: all its changes are made together at its end, as if no other had run meanwhile. Where another has changed what it has read, it runs again in
    /// a fresh sandbox. Its reply leaves after that.
    Serializable,
}

/// What a transaction may do that cannot be taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutsideEffects {
    /// Nothing: requests to other servers, calls by gRPC, files and sockets are refused.
    #[default]
    Refuse,
    /// All that the function may. It happens at once, also where the transaction is not made or runs again.
    Split,
    /// Requests to other servers over HTTP: each is recorded in the commit and answered with status 202, and sent after the commit, at least once, with the header `Idempotency-Key`. All
    /// else is refused.
    Outbox,
}

/// For how long a request of an outbox is sent again, in seconds, where a function does not say.
pub const OUTBOX_AGE_S: u64 = 86_400;
/// The most that it may say.
const OUTBOX_AGE_S_MAX: u64 = 2_592_000;

/// Checks both settings of a function.
pub(super) fn check(at: &str, function: &FunctionConfig, problems: &mut Problems<'_>) {
    let FunctionConfig { isolation, effects, outbox_age_max_s, body, instance, .. } = function;
    if let Some(age_s) = outbox_age_max_s {
        problems.range(format!("{at}.outbox_age_max_s"), *age_s, 1, OUTBOX_AGE_S_MAX);
        if *effects != OutsideEffects::Outbox {
            problems.push(
                format!("{at}.outbox_age_max_s"),
                "there is no outbox: set `effects = \"outbox\"`, or leave `outbox_age_max_s` out",
            );
        }
    }
    if *isolation == Isolation::None {
        let why = match effects {
            OutsideEffects::Refuse => return,
            OutsideEffects::Split => "nothing is split without `isolation = \"serializable\"`: set that, or leave `effects` out",
            OutsideEffects::Outbox => {
                "there is no commit to record requests in without `isolation = \"serializable\"`: set that, or leave `effects` out"
            }
        };
        problems.push(format!("{at}.effects"), why);
        return;
    }
    if *body == BodyMode::Stream {
        problems.push(
            format!("{at}.isolation"),
            "a transaction may run again and needs the whole body for that: leave `body = \"stream\"` out, or `isolation`",
        );
    }
    if *instance != Instance::Call {
        problems
            .push(format!("{at}.isolation"), "a transaction runs again in a fresh sandbox: leave `instance` out, or `isolation`");
    }
}
