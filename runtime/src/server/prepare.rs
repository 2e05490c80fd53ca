//! Everything that a server needs before it serves: read, checked and loaded.
//!
//! `sledge serve` and `sledge dev` go on with it, `sledge config check` ends there: there is one list of what can be wrong. What is found good
//! starts, unless an address is taken.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use super::plan::Plan;
use crate::admin::Address;
use crate::admin::access::Tokens;
use crate::admin::states::Keys;
use crate::config::{self, Config, ConfigError, Problem};
use crate::deploy::{DeployError, Deployer};
use crate::kernel;
use crate::telemetry::Settings;
use crate::tls;
use crate::upstream;

/// What a server starts with.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) address: SocketAddr,
    pub(crate) plan: Plan,
    pub(crate) tls: Option<tls::Pair>,
    pub(crate) tokens: Tokens,
    pub(crate) aws_keys: Option<Keys>,
    pub(crate) telemetry: Option<Settings>,
    pub(crate) deployer: Deployer,
}

impl Prepared {
    /// What is served.
    #[must_use]
    pub const fn deployer(&self) -> &Deployer {
        &self.deployer
    }
}

/// Checks a configuration, reads what it names and, where its keys are right, loads its functions with `load`. `file` is where it came from, for
/// the messages.
///
/// # Errors
/// Every problem that was found. Of functions that cannot be loaded the first one.
pub fn prepare(
    config: &Config,
    file: Option<&Path>,
    load: impl FnOnce() -> Result<Deployer, DeployError>,
) -> Result<Prepared, ConfigError> {
    let mut problems = Problems { file, list: Vec::new() };
    let are_keys_right = match config::check(config, file) {
        Ok(()) => true,
        Err(ConfigError::Problems(list)) => {
            problems.list = list;
            false
        }
        Err(other) => return Err(other),
    };
    let pair = config.tls_certificate_file.as_deref().zip(config.tls_key.as_ref());
    let tls = problems.each(pair.map(|(certificate, key)| tls::Pair::read(certificate, key)).transpose());
    let tokens = problems.each(Tokens::read(config));
    let aws_keys = problems.each(config.aws_api.as_ref().map(Keys::read).transpose());
    let telemetry = problems
        .each(config.telemetry.as_ref().map(|telemetry| Settings::read(telemetry, config.http_ca_file.as_deref())).transpose());
    // Read once more with the functions; a file that cannot be read is told with all that is wrong.
    problems.one(upstream::roots(config.http_ca_file.as_deref()));
    if let Some(Err(why)) = config.admin.as_deref().and_then(Address::parse).map(|address| address.check()) {
        problems.push("admin", why);
    }
    if !are_keys_right {
        return Err(ConfigError::Problems(problems.list));
    }
    let address = problems.one(config.listen.parse());
    let plan = problems.one(Plan::new(config));
    if let Some(plan) = &plan {
        problems.one(kernel::check(Path::new("/proc"), &plan.need(config)));
    }
    let deployer = load().map_err(|error| problems.of_deployer(config, &error)).ok();
    match (address, plan, tls, tokens.zip(aws_keys), telemetry, deployer) {
        (Some(address), Some(plan), Some(tls), Some((tokens, aws_keys)), Some(telemetry), Some(deployer))
            if problems.list.is_empty() =>
        {
            Ok(Prepared { address, plan, tls, tokens, aws_keys, telemetry, deployer })
        }
        _ => Err(ConfigError::Problems(problems.list)),
    }
}

struct Problems<'a> {
    file: Option<&'a Path>,
    list: Vec<Problem>,
}

impl Problems<'_> {
    fn push(&mut self, key: impl Into<String>, message: impl Into<String>) {
        let problem = Problem { file: self.file.map(Path::to_owned), key: key.into(), message: message.into() };
        // Two parts may need the same.
        if self.list.iter().all(|known| known.to_string() != problem.to_string()) {
            self.list.push(problem);
        }
    }

    /// What there is, if nothing is wrong with it. The errors here name their keys themselves.
    fn one<T>(&mut self, result: Result<T, impl fmt::Display>) -> Option<T> {
        result.map_err(|error| self.push("", error.to_string())).ok()
    }

    fn each<T>(&mut self, result: Result<T, Vec<impl fmt::Display>>) -> Option<T> {
        result.map_err(|errors| errors.iter().for_each(|error| self.push("", error.to_string()))).ok()
    }

    fn of_deployer(&mut self, config: &Config, error: &DeployError) {
        let index = |name: &str| config.functions.iter().position(|function| function.name == name);
        let key = match error {
            DeployError::Function { name, .. } => index(name).map(|index| config.key(index)),
            _ => None,
        };
        self.push(key.unwrap_or_default(), error.to_string());
    }
}
