//! From a file to a [`Config`].
//!
//! Both formats become one tree of values, which is decoded; an error says at which key. Where something is wrong, the tree's keys are compared with the JSON
//! Schema, which is generated from the types, so that an unknown key can be answered with the nearest known one.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use awsm_abi::text;
use serde_json::Value;

use super::settings::NO_SETTINGS;
use super::{Config, ConfigError, EdgeConfig, FunctionConfig, Problem, Source, application};
use crate::kv::{KV_MEMORY, is_redis};
use crate::secret::Variable;

/// The largest configuration file.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The key whose tables take keys that decoding does not check.
const APPLICATIONS: &str = "applications";
/// What the JSON Schema is called, wherever it lies: editors and validators know by it that two files have the same.
const SCHEMA_ID: &str = "urn:sledge:schema:configuration";
/// How alike an unknown key must be to a known one to be taken for a slip of the pen (Jaro-Winkler, 0 to 1).
const LIKENESS_MIN: f64 = 0.75;

/// The JSON Schema of a configuration.
#[must_use]
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Config);
    schema.insert("$id".to_owned(), SCHEMA_ID.into());
    schema.to_value()
}

/// Reads a configuration file: JSON when its name ends in `.json`, TOML otherwise. Paths of functions are taken relative to its folder.
///
/// # Errors
/// When it cannot be read or parsed, or a key or the type of a value is wrong.
pub fn read(path: &Path) -> Result<Config, ConfigError> {
    let text = text_of(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    let mut config = parse(path, &text)?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    add_applications(&mut config, path)?;
    for function in &mut config.functions {
        // An application says where its files are.
        if function.application.is_none() {
            function.path = folder.join(&function.path);
        }
        function.dirs.iter_mut().for_each(|dir| within(folder, &mut dir.host));
        function.env.values_mut().for_each(|variable| variable.within(folder));
    }
    for grant in &mut config.grants {
        grant.dirs.iter_mut().for_each(|dir| within(folder, &mut dir.host));
        grant.secrets.values_mut().for_each(|secret| secret.within(folder));
    }
    config.workflows.iter_mut().for_each(|workflow| workflow.path = folder.join(&workflow.path));
    config.folders.iter_mut().for_each(|served| served.path = folder.join(&served.path));
    let Config { state_dir, cache_dir, tls_certificate_file, http_ca_file, .. } = &mut config;
    for path in [state_dir, cache_dir, tls_certificate_file, http_ca_file].into_iter().flatten() {
        *path = folder.join(&*path);
    }
    for secret in [&mut config.admin_token, &mut config.admin_read_token, &mut config.tls_key].into_iter().flatten() {
        secret.within(folder);
    }
    config.admin_tokens.iter_mut().for_each(|token| token.token.within(folder));
    if let Some(aws_api) = &mut config.aws_api {
        aws_api.keys.iter_mut().for_each(|key| key.secret.within(folder));
    }
    if let Some(telemetry) = &mut config.telemetry {
        telemetry.headers.values_mut().for_each(|header| header.within(folder));
    }
    if let Some(kv) = config.kv.as_mut().filter(|kv| *kv != Path::new(KV_MEMORY) && !is_redis(kv)) {
        *kv = folder.join(&*kv);
    }
    Ok(config)
}

/// Takes a path relative to the configuration's folder. An empty one stays so, and is refused: it would be that folder.
fn within(folder: &Path, path: &mut PathBuf) {
    if !path.as_os_str().is_empty() {
        *path = folder.join(&*path);
    }
}

/// A function's settings as an admin sends them: an object of its keys, of which null is the default. It has the name `name`; `path` says where it
/// comes from, for messages.
///
/// # Errors
/// When a key is unknown or a value has the wrong type; `at` is the key under which that is reported.
pub fn function(at: &str, name: &str, path: &Path, mut settings: Value) -> Result<FunctionConfig, ConfigError> {
    let problem = |key: String, message: String| ConfigError::Problems(vec![Problem { file: None, key, message }]);
    let Value::Object(entries) = &mut settings else {
        return Err(problem(at.to_owned(), "is not a JSON object".to_owned()));
    };
    for key in NO_SETTINGS {
        if entries.contains_key(key) {
            return Err(problem(at.to_owned(), format!("`{key}` is not a setting of a deployed function")));
        }
    }
    entries.insert("name".to_owned(), name.into());
    entries.insert("path".to_owned(), path.to_string_lossy().into());
    let schema = schemars::schema_for!(FunctionConfig).to_value();
    let mut problems = Vec::new();
    unknown_keys(&schema, &schema, &settings, &mut String::new(), &mut problems);
    if let Some((_, message)) = problems.into_iter().next() {
        return Err(problem(at.to_owned(), message));
    }
    if let Value::Object(entries) = &mut settings {
        entries.retain(|_, value| !value.is_null());
    }
    let decoded: Result<FunctionConfig, _> = serde_path_to_error::deserialize(&settings);
    let mut config =
        decoded.map_err(|error| problem(format!("{at}.{}", key_of(&error)), text::line(&error.inner().to_string())))?;
    config.source = Source::Deployment;
    if let Some((service, _)) = config.edges.iter().find(|(_, edge)| matches!(edge, EdgeConfig::Url(_))) {
        let key = format!("{at}.edges.{}", text::name(service));
        return Err(problem(key, "is a server: servers can only be set in the configuration file".to_owned()));
    }
    if let Some((name, _)) = config.env.iter().find(|(_, variable)| matches!(variable, Variable::Secret(_))) {
        let key = format!("{at}.env.{}", text::name(name));
        let why = "is not a text: where a secret is can only be set in the configuration file; ask for one by its name (--grant secret=VARIABLE=NAME)";
        return Err(problem(key, why.to_owned()));
    }
    Ok(config)
}

/// Adds the functions of applications to the others.
fn add_applications(config: &mut Config, file: &Path) -> Result<(), ConfigError> {
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    let mut problems = Vec::new();
    for (index, application) in config.applications.iter_mut().enumerate() {
        application.within(folder);
        match application::expand(&format!("applications[{index}]"), application) {
            Ok(functions) => config.functions.extend(functions),
            Err(wrong) => problems.extend(wrong.into_iter().map(|(key, error)| Problem {
                file: Some(file.to_owned()),
                key,
                message: text::line(&error.to_string()),
            })),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Problems(problems)) }
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other(format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let syntax = |format, message: String| ConfigError::Syntax { path: path.to_owned(), format, message };
    let tree: Value = if is_json {
        serde_json::from_str(text).map_err(|error| syntax("JSON", error.to_string()))?
    } else {
        let table: toml::Table = toml::from_str(text).map_err(|error| syntax("TOML", error.to_string()))?;
        serde_json::to_value(table).map_err(|error| syntax("TOML", error.to_string()))?
    };

    // Decoding finds each unknown key, but for settings of an application's function; the schema is for what is said about it. Where nothing is wrong, it is
    // not even generated, which was a part of every start.
    let decoded = match serde_path_to_error::deserialize(&tree) {
        Ok(config) if tree.get(APPLICATIONS).is_none() => return Ok(config),
        decoded => decoded,
    };
    let schema = schema();
    let mut problems = Vec::new();
    unknown_keys(&schema, &schema, &tree, &mut String::new(), &mut problems);
    if problems.is_empty() {
        match decoded {
            Ok(config) => return Ok(config),
            Err(error) => problems.push((key_of(&error), text::line(&error.inner().to_string()))),
        }
    }
    let problem = |(key, message)| Problem { file: Some(path.to_owned()), key, message };
    Err(ConfigError::Problems(problems.into_iter().map(problem).collect()))
}

fn key_of(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let key = error.path().to_string();
    if key == "." { String::new() } else { text::line(&key) }
}

/// Walks a tree beside its schema and notes every key that the schema does not have.
fn unknown_keys(root: &Value, schema: &Value, tree: &Value, at: &mut String, problems: &mut Vec<(String, String)>) {
    let schema = resolve(root, schema);
    let length = at.len();
    match tree {
        Value::Object(entries) => {
            // A map with free keys, such as `env`, has no `properties`.
            let Some(known) = schema.get("properties").and_then(Value::as_object) else { return };
            for (key, value) in entries {
                match known.get(key) {
                    Some(schema) => {
                        if !at.is_empty() {
                            at.push('.');
                        }
                        at.push_str(key);
                        unknown_keys(root, schema, value, at, problems);
                        at.truncate(length);
                    }
                    None => {
                        let why = application::is_transactional(at, key);
                        let message = why.unwrap_or_else(|| unknown(key, at, known.keys().map(String::as_str)));
                        problems.push((String::new(), message));
                    }
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                at.push_str(&format!("[{index}]"));
                unknown_keys(root, schema, item, at, problems);
                at.truncate(length);
            }
        }
        _ => {}
    }
}

/// Follows a `$ref` to a definition, also of what may be left out.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let given = schema.get("anyOf").and_then(Value::as_array).filter(|any| any.iter().any(|one| one["type"] == "null"));
    let schema = given.and_then(|any| any.iter().find(|one| one.get("$ref").is_some())).unwrap_or(schema);
    let pointer = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

fn unknown<'a>(key: &str, at: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let place = if at.is_empty() { String::new() } else { format!(" at {at}") };
    let shown = text::name(key);
    match nearest(key, known.clone()) {
        Some(nearest) => format!("unknown key `{shown}`{place}; did you mean `{nearest}`?"),
        None => {
            let mut known: Vec<_> = known.collect();
            known.sort_unstable();
            format!("unknown key `{shown}`{place}; known keys: {}", known.join(", "))
        }
    }
}

/// What was probably meant.
pub(super) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = known.map(|candidate| (strsim::jaro_winkler(given, candidate), candidate));
    let alike = alike.filter(|(likeness, _)| *likeness >= LIKENESS_MIN).max_by(|a, b| a.0.total_cmp(&b.0));
    alike.map(|(_, nearest)| nearest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Listeners;

    fn error(name: &str, text: &str) -> String {
        parse(Path::new(name), text).unwrap_err().to_string()
    }

    #[test]
    fn toml_and_json_have_the_same_keys() {
        let toml = "listen = '0.0.0.0:1'\nlisteners = 'dedicated'\nquantum_us = 50\n\
                    [[functions]]\nname = 'f'\npath = 'f.so'\nenv = { A = 'b' }\n";
        let json = r#"{"listen": "0.0.0.0:1", "listeners": "dedicated", "quantum_us": 50,
                       "functions": [{"name": "f", "path": "f.so", "env": {"A": "b"}}]}"#;
        let config = parse(Path::new("a.toml"), toml).unwrap();
        assert_eq!(config, parse(Path::new("a.json"), json).unwrap());
        assert_eq!(config.listeners, Listeners::Dedicated);
        assert_eq!(config.functions[0].routes(), ["/f"]);
        assert_eq!(config.functions[0].methods, ["GET", "POST"]);
    }

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(parse(Path::new("a.toml"), "").unwrap(), Config::default());
    }

    #[test]
    fn an_unknown_key_is_answered_with_its_place_and_the_nearest_known_one() {
        let text = "functions = [{ name = 'a', path = 'a.so' }, { name = 'b', path = 'b.so', deadlin_ms = 3 }]";
        assert_eq!(error("s.toml", text), "s.toml: unknown key `deadlin_ms` at functions[1]; did you mean `deadline_ms`?");
        assert_eq!(error("s.json", r#"{"lisen": ""}"#), "s.json: unknown key `lisen`; did you mean `listen`?");
        let far = error("s.toml", "xyzzy = 1");
        assert!(
            far.starts_with(
                "s.toml: unknown key `xyzzy`; known keys: access_log, admin, admin_read_token, admin_token, admin_tokens, "
            ),
            "{far}"
        );
    }

    #[test]
    fn every_unknown_key_is_reported() {
        let all = error("s.toml", "lisen = 1\nworker = 2\n");
        assert_eq!(all.lines().count(), 2, "{all}");
    }

    #[test]
    fn a_value_of_the_wrong_type_is_named_by_its_key() {
        let text = "[[functions]]\nname = 'a'\npath = 'a.so'\ndeadline_ms = 'soon'\n";
        let message = error("s.toml", text);
        assert!(
            message.starts_with("s.toml: functions[0].deadline_ms: invalid type: string \"soon\", expected u64"),
            "{message}"
        );
        let message = error("s.toml", "listeners = 'both'");
        assert!(
            message.starts_with("s.toml: listeners: unknown variant `both`, expected `per-core` or `dedicated`"),
            "{message}"
        );
        let message = error("s.toml", "[[functions]]\nname = 'a'\n");
        assert_eq!(message, "s.toml: functions[0]: missing field `path`");
    }

    #[test]
    fn what_does_not_parse_is_named_with_its_line() {
        assert!(error("s.toml", "listen = \n").starts_with("s.toml: not valid TOML: TOML parse error at line 1"));
        assert!(error("s.json", "{\n,").contains("line 2"));
    }

    /// What is decoded without an error is not compared with the schema.
    #[test]
    fn decoding_refuses_unknown_keys_of_every_table_outside_of_applications() {
        let function = "functions = [{ name = 'f', path = 'f.so'";
        let samples = [
            ("Config", "KEY = 1".to_owned()),
            ("AdminTokenConfig", "admin_tokens = [{ tenant = 'a', token = { env = 'A' }, KEY = 1 }]".to_owned()),
            ("AwsApiConfig", "aws_api = { listen = '127.0.0.1:1', KEY = 1 }".to_owned()),
            ("AwsKeyConfig", "aws_api = { keys = [{ id = 'a', secret = { env = 'A' }, KEY = 1 }] }".to_owned()),
            ("AsynchronousConfig", format!("{function}, asynchronous = {{ KEY = 1 }} }}]")),
            ("CompressionConfig", format!("{function}, compression = {{ KEY = 1 }} }}]")),
            ("CorsConfig", format!("{function}, cors = {{ origins = ['*'], KEY = 1 }} }}]")),
            ("DirConfig", format!("{function}, dirs = [{{ guest = '/a', host = 'a', KEY = 1 }}] }}]")),
            ("EdgeConfig", format!("{function}, edges = {{ \"a.B\" = {{ function = 'g', KEY = 1 }} }} }}]")),
            ("GrantConfig", "grants = [{ tenant = 'a', KEY = 1 }]".to_owned()),
            ("GrantedDirConfig", "grants = [{ tenant = 'a', dirs = [{ host = 'a', KEY = 1 }] }]".to_owned()),
            ("FolderConfig", "folders = [{ route = '/a/*', path = 'a', KEY = 1 }]".to_owned()),
            ("FunctionConfig", format!("{function}, KEY = 1 }}]")),
            ("RedirectConfig", "redirects = [{ route = '/a', to = '/b', KEY = 1 }]".to_owned()),
            ("PhaseConfig", format!("{function}, phases = [{{ id = 1, name = 'a', cpu_us = 1, cpu_percent = 1, KEY = 1 }}] }}]")),
            ("ScheduleConfig", "schedules = [{ name = 's', expression = 'rate(1 day)', KEY = 1 }]".to_owned()),
            ("Secret", format!("{function}, env = {{ A = {{ file = 'a', KEY = 1 }} }} }}]")),
            ("WorkflowConfig", "workflows = [{ name = 'w', path = 'w.json', KEY = 1 }]".to_owned()),
            ("WorkflowLimits", "workflows = [{ name = 'w', path = 'w.json', limits = { running_max = 1, KEY = 1 } }]".to_owned()),
            ("TelemetryConfig", "telemetry = { endpoint = 'http://a', KEY = 1 }".to_owned()),
        ];
        for (table, text) in &samples {
            let decode = |text: &str| toml::from_str::<Config>(text).map_err(|error| error.to_string());
            assert_eq!(decode(&text.replace(", KEY = 1", "").replace("KEY = 1", "")).err(), None, "{table}");
            assert!(decode(text).is_err(), "{table}: {text}");
        }
        let schema = schema();
        let has_keys = |schema: &Value| schema.get("properties").is_some() || schema["oneOf"][0].get("properties").is_some();
        let tables = schema["$defs"].as_object().unwrap().iter().filter(|(_, schema)| has_keys(schema)).map(|(name, _)| &**name);
        let known = samples.iter().map(|(table, _)| *table).filter(|table| *table != "Config");
        let tables: std::collections::BTreeSet<_> = tables.filter(|name| !name.starts_with("Application")).collect();
        assert_eq!(tables, known.collect());
    }

    #[test]
    fn the_schema_forbids_unknown_keys_and_describes_every_one() {
        let schema = schema();
        assert_eq!(schema["additionalProperties"], Value::Bool(false));
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["$id"], SCHEMA_ID);
        for (key, value) in schema["properties"].as_object().unwrap() {
            assert!(value["description"].is_string(), "{key} has no description");
        }
    }
}
