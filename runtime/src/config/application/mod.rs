//! Applications: functions that call each other over gRPC, made of programs that are servers of their own elsewhere.
//!
//! An application is no thing of the server: [`expand`] makes functions of it, whose edges say where their calls go. `sledge build` makes their files.

mod check;
mod descriptors;
mod expand;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::FunctionConfig;

pub(super) use check::check;
pub use descriptors::{descriptors_of, services_of};
pub(super) use expand::expand;

/// Applications of one server.
const APPLICATIONS_MAX: usize = 1_000;
/// Origins of web pages that may call an application.
const ORIGINS_MAX: usize = 64;
/// The folder of what `sledge build` makes, beside the configuration.
pub const BUILT_FOLDER: &str = ".sledge";
/// What stands for another function of the application in `calls`.
const LOCAL: &str = "local";

/// Settings that an application decides for its functions, or does not have.
const DECIDED: [&str; 24] = [
    "name",
    "path",
    "build",
    "route",
    "routes",
    "listen",
    "methods",
    "content_type",
    "cors",
    "compression",
    "asynchronous",
    "isolation",
    "effects",
    "outbox_age_max_s",
    "speculative",
    "speculation",
    "memo",
    "pure",
    "memo_bytes_max",
    "body",
    "init",
    "tenant",
    "edges",
    "secrets",
];

/// Settings that only functions have whose requests are transactions.
const TRANSACTIONAL: [&str; 4] = ["isolation", "effects", "speculative", "speculation"];

/// What to say of a setting that a function has, and none of an application at that key: its requests are no transactions.
pub(super) fn is_transactional(at: &str, key: &str) -> Option<String> {
    let is_function = at.strip_prefix("applications[").is_some_and(|at| at.contains(".functions["));
    (is_function && TRANSACTIONAL.contains(&key)).then(|| {
        format!(
            "`{key}` at {at}: a function of an application streams its requests and replies, so these are no transactions, cannot be taken back, and do not start ahead; leave `{key}` out, or make \
             the program one of `[[functions]]` with `edges`"
        )
    })
}

/// Functions that call each other over gRPC, built from the sources of gRPC servers by `sledge build`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplicationConfig {
    /// The application's name: letters, digits, `.`, `-` and `_`. Its functions are called APPLICATION.FUNCTION.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// Folders in which the .proto files are, as imports name them. Services that are in none of them are refused. Default: names of services are not
    /// checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protos: Vec<PathBuf>,
    /// The tenant of its functions. Default: the application's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub tenant: Option<String>,
    /// An address of its own, `IP:PORT`, for the services that clients can call. A change takes effect when the server starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Whether clients can ask for the .proto files of the services that they can call: gRPC server reflection.
    #[serde(default = "reflection_default")]
    pub reflection: bool,
    /// The largest message that a client can send by Connect, unpacked, in bytes. Messages of gRPC and gRPC-Web are limited by the programs.
    #[serde(default = "message_bytes_max_default")]
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub message_bytes_max: usize,
    /// Origins of web pages that may call its services by gRPC-Web and Connect, such as `https://shop.example`, or `*` for all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub cors_origins: Vec<String>,
    /// Its functions.
    pub functions: Vec<ApplicationFunction>,
    /// The folder of what is built of it.
    #[serde(skip)]
    pub folder: PathBuf,
    /// Whether its .proto files were read just now.
    #[serde(skip)]
    pub is_described: bool,
}

/// As gRPC's libraries have it.
const fn message_bytes_max_default() -> usize {
    4 << 20
}

/// The library for Go leaves it to the server, so programs that offer it go on to. Clients see only what they can call.
const fn reflection_default() -> bool {
    true
}

/// A function of an application: a program, the services that it offers, and where its calls go. Other keys are settings as of any function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct ApplicationFunction {
    /// The function's name within the application.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// The folder of the program. Relative to the configuration file's folder.
    pub source: PathBuf,
    /// The program's language. Default: what `go.mod` or `Cargo.toml` say, in that folder or the nearest one above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// The services that it offers, by their full names, such as `shop.Checkout`.
    #[serde(default)]
    pub services: Vec<String>,
    /// Where its calls of other services go, by service: `local`, to the function of this application that offers it, or the address of a gRPC server,
    /// `https://HOST:PORT` or `http://HOST:PORT`. The address that the program dials is not used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, String>,
    /// Whether clients can call its services, or which of them. Default: those that no other function of the application calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose: Option<Expose>,
    /// Its other settings.
    #[serde(flatten)]
    pub settings: Settings,
}

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// Go, with google.golang.org/grpc.
    Go,
    /// Rust, with tonic.
    Rust,
}

/// Which services clients can call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected true, false or a list of services")]
pub enum Expose {
    /// All or none.
    All(bool),
    /// These.
    Services(Vec<String>),
}

/// Settings as a [`FunctionConfig`] has them, but for those that the application decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(Map<String, Value>);

impl JsonSchema for Settings {
    fn schema_name() -> Cow<'static, str> {
        "Settings".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = FunctionConfig::json_schema(generator);
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.retain(|key, _| !DECIDED.contains(&key.as_str()));
        }
        for key in ["required", "additionalProperties", "description"] {
            schema.remove(key);
        }
        schema
    }
}

impl ApplicationConfig {
    /// The full name of a function of it.
    #[must_use]
    pub fn full_name(&self, function: &ApplicationFunction) -> String {
        format!("{}.{}", self.name, function.name)
    }

    /// The file that is served, of a function that was built.
    #[must_use]
    pub fn artifact(&self, function: &ApplicationFunction) -> PathBuf {
        self.folder.join(format!("{}.so", function.name))
    }

    /// What the .proto files say, once it was built: descriptors.
    #[must_use]
    pub fn descriptors(&self) -> PathBuf {
        self.folder.join("protos.binpb")
    }

    /// Takes paths relative to the folder of the configuration.
    pub(super) fn within(&mut self, folder: &Path) {
        self.folder = folder.join(BUILT_FOLDER).join(&self.name);
        self.protos.iter_mut().for_each(|protos| *protos = folder.join(&*protos));
        self.functions.iter_mut().for_each(|function| function.source = folder.join(&function.source));
    }

    /// The function that offers a service.
    fn offering(&self, service: &str) -> Option<&ApplicationFunction> {
        self.functions.iter().find(|function| function.services.iter().any(|offered| offered == service))
    }

    /// The address that its services have to themselves.
    #[must_use]
    pub fn site(&self) -> Option<SocketAddr> {
        self.listen.as_ref().and_then(|listen| listen.parse().ok())
    }

    /// The services that clients can call.
    #[must_use]
    pub fn services(&self) -> Vec<String> {
        self.functions.iter().flat_map(|function| self.exposed(function)).map(str::to_owned).collect()
    }

    /// The services of a function that clients can call.
    fn exposed<'a>(&'a self, function: &'a ApplicationFunction) -> Vec<&'a str> {
        let is_called = |service: &str| {
            let others = self.functions.iter().filter(|other| other.name != function.name);
            others.flat_map(|other| other.calls.get(service)).any(|to| to == LOCAL)
        };
        let services = function.services.iter().map(String::as_str);
        match &function.expose {
            Some(Expose::All(true)) => services.collect(),
            Some(Expose::All(false)) => Vec::new(),
            Some(Expose::Services(exposed)) => services.filter(|service| exposed.iter().any(|one| one == service)).collect(),
            None => services.filter(|service| !is_called(service)).collect(),
        }
    }
}
