//! What the deployed functions of each tenant may have at most. A function asks in its settings; what is not granted is refused, by its name.
//!
//! Settings that were granted say in which granted folder each of their folders has to lie, and where their secrets are. The folder is opened through the granted one when the function is loaded, so no link leads
//! out of that, whatever is there by then.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use awsm_abi::text;

use crate::config::{DirConfig, DirWrite, FunctionConfig, GrantConfig};
use crate::upstream::{Allowed, SocketPolicy};

/// What a configuration grants, by tenant.
#[derive(Debug, Default)]
pub(super) struct Grants(HashMap<String, Granted>);

/// What one tenant is granted.
#[derive(Debug, Default)]
struct Granted {
    asked: GrantConfig,
    allowed: Allowed,
    sockets: Option<SocketPolicy>,
    folders: Vec<Folder>,
}

/// A folder, under the names that functions may use for it.
#[derive(Debug)]
struct Folder {
    /// As the configuration has it, and without links.
    names: Vec<PathBuf>,
    write: bool,
}

/// What a function asks for and its tenant is not granted: the keys, each with the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct NotGranted {
    tenant: String,
    list: Vec<(String, String)>,
}

impl std::error::Error for NotGranted {}

impl fmt::Display for NotGranted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, why) in &self.list {
            write!(f, "settings.{key}: {why}; ")?;
        }
        let tenant = text::name(&self.tenant);
        write!(
            f,
            "deploy the function without, or have the operator grant it: `[[grants]]` with `tenant = \"{tenant}\"` in the server's configuration, then SIGHUP"
        )
    }
}

/// What grants say of a function that is served with earlier ones.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// What it has is what it asks for.
    Same,
    /// It may have what it asks for, which is somewhere else now.
    Otherwise(Box<FunctionConfig>),
    /// It may not have it any more.
    Refused(NotGranted),
}

impl Grants {
    /// Those of a configuration that was checked.
    pub(super) fn new(grants: &[GrantConfig]) -> Grants {
        Grants(grants.iter().map(|grant| (grant.tenant.clone(), Granted::new(grant))).collect())
    }

    /// The settings of a deployed function, with where that is what it asks for.
    ///
    /// # Errors
    /// What its tenant is not granted.
    pub(super) fn apply(&self, mut config: FunctionConfig) -> Result<FunctionConfig, NotGranted> {
        let none = Granted::default();
        let granted = self.0.get(&config.tenant).unwrap_or(&none);
        let mut list = granted.hosts(&config);
        let mut dirs = std::mem::take(&mut config.dirs);
        for (index, dir) in dirs.iter_mut().enumerate() {
            match granted.folder(dir) {
                Ok(within) => dir.within = Some(within),
                Err(why) => list.push((format!("dirs[{index}].host"), why)),
            }
        }
        config.dirs = dirs;
        let secrets = &granted.asked.secrets;
        config.secret_places = BTreeMap::new();
        for (variable, name) in &config.secrets {
            if let Some(place) = secrets.get(name) {
                config.secret_places.insert(variable.clone(), place.clone());
            } else {
                list.push((format!("secrets.{}", text::name(variable)), not_granted(name, secrets.keys())));
            }
        }
        if list.is_empty() { Ok(config) } else { Err(NotGranted { tenant: config.tenant, list }) }
    }

    /// What these say of a function that is served.
    pub(super) fn look(&self, config: &FunctionConfig) -> Look {
        match self.apply(config.clone()) {
            Err(refused) => Look::Refused(refused),
            Ok(now) if now == *config => Look::Same,
            Ok(now) => Look::Otherwise(Box::new(now)),
        }
    }
}

impl Granted {
    fn new(grant: &GrantConfig) -> Granted {
        let folder = |host: &Path, write| {
            // The server's own folder is known, or none is granted.
            let host = std::path::absolute(host).unwrap_or_default();
            let without_links = fs::canonicalize(&host).ok().filter(|other| *other != host);
            Folder { names: std::iter::once(host).chain(without_links).collect(), write }
        };
        Granted {
            // Entries that are wrong grant nothing; a configuration with such is refused.
            allowed: Allowed::new(&grant.http_hosts).unwrap_or_default(),
            sockets: SocketPolicy::new(&grant.socket_hosts, &grant.socket_listen).unwrap_or_default(),
            folders: grant.dirs.iter().map(|dir| folder(&dir.host, dir.write)).collect(),
            asked: grant.clone(),
        }
    }

    /// Hosts that a function asks for and may not have, and entries that are none.
    fn hosts(&self, config: &FunctionConfig) -> Vec<(String, String)> {
        let one = std::slice::from_ref;
        let http = config.http_hosts.iter().filter_map(|entry| Some(("http_hosts", self.refuse_http(entry)?)));
        let GrantConfig { socket_hosts, socket_listen, .. } = &self.asked;
        let hosts = config.socket_hosts.iter();
        let hosts =
            hosts.filter_map(|entry| Some(("socket_hosts", self.refuse_sockets(entry, (one(entry), &[]), socket_hosts)?)));
        let listen = config.socket_listen.iter();
        let listen =
            listen.filter_map(|entry| Some(("socket_listen", self.refuse_sockets(entry, (&[], one(entry)), socket_listen)?)));
        http.chain(hosts).chain(listen).map(|(key, why)| (key.to_owned(), why)).collect()
    }

    /// Why a function may not ask that server, if it may not.
    fn refuse_http(&self, entry: &str) -> Option<String> {
        match Allowed::new(&[entry.to_owned()]) {
            Ok(asked) if self.allowed.covers(&asked) => None,
            Ok(_) => Some(not_granted(entry, self.asked.http_hosts.iter())),
            Err(error) => Some(text::line(&error.to_string())),
        }
    }

    /// Why sockets may not go or be there, if they may not.
    fn refuse_sockets(&self, entry: &str, (hosts, listen): (&[String], &[String]), granted: &[String]) -> Option<String> {
        match (SocketPolicy::new(hosts, listen), &self.sockets) {
            (Ok(Some(asked)), Some(own)) if own.covers(&asked) => None,
            (Ok(_), _) => Some(not_granted(entry, granted.iter())),
            (Err(error), _) => Some(text::line(&error.to_string())),
        }
    }

    /// The granted folder in which that one lies.
    fn folder(&self, dir: &DirConfig) -> Result<PathBuf, String> {
        let shown = text::name(&dir.host.to_string_lossy());
        if !dir.host.is_absolute() {
            return Err(format!("`{shown}` is not an absolute path of the server's machine, such as /srv/data; give one"));
        }
        // What is above a link is not what the path says.
        if dir.host.components().any(|part| part == Component::ParentDir) {
            return Err(format!("`{shown}` has `..` in it; give the path without"));
        }
        let name_of = |folder: &Folder| folder.names.iter().find(|name| dir.host.starts_with(name)).cloned();
        let mut around = self.folders.iter().filter_map(|folder| Some((name_of(folder)?, folder.write))).peekable();
        if around.peek().is_none() {
            let names = self.folders.iter().filter_map(|folder| folder.names.first()).map(|name| name.display().to_string());
            let names: Vec<String> = names.collect();
            return Err(format!("`{shown}` is not in a folder that is granted; granted {}", listed(names.iter())));
        }
        let found = around.find(|(_, write)| *write || dir.write != DirWrite::Yes);
        found.map(|(name, _)| name).ok_or_else(|| {
            format!("`{shown}` is granted for reading only; ask for it with `ro`, or with `scratch` (private copies)")
        })
    }
}

fn not_granted<'a>(name: &str, granted: impl Iterator<Item = &'a String>) -> String {
    format!("`{}` is not granted; granted {}", text::name(name), listed(granted))
}

/// What is granted, in words.
fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<_> = names.map(|name| text::name(name)).collect();
    if names.is_empty() { "is nothing of the kind".to_owned() } else { format!("is {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::{Value, json};

    use super::*;
    use crate::config;
    use crate::secret::Secret;

    fn grants(list: Value) -> Grants {
        Grants::new(&serde_json::from_value::<Vec<GrantConfig>>(list).unwrap())
    }

    fn function(settings: Value) -> FunctionConfig {
        config::function("settings", "f", Path::new("f.wasm"), settings).unwrap()
    }

    #[test]
    fn a_tenant_without_grants_has_nothing_and_a_function_that_asks_for_nothing_needs_none() {
        let none = Grants::default();
        let plain = function(json!({ "env": { "A": "1" } }));
        assert_eq!(none.apply(plain.clone()), Ok(plain.clone()));
        assert_eq!(none.look(&plain), Look::Same);
        for asked in [
            json!({ "http_hosts": ["example.org"] }),
            json!({ "socket_hosts": ["example.org:1"] }),
            json!({ "socket_listen": ["127.0.0.1:0"] }),
            json!({ "dirs": [{ "host": "/", "guest": "/data" }] }),
            json!({ "secrets": { "KEY": "key" } }),
        ] {
            let refused = none.apply(function(asked.clone())).unwrap_err();
            assert_eq!(refused.list.len(), 1, "{asked}");
            let said = refused.to_string();
            assert!(said.contains("is nothing of the kind") && said.contains("`tenant = \"default\"`"), "{said}");
        }
    }

    #[test]
    fn each_thing_that_is_not_granted_is_named() {
        let grants = grants(json!([
            { "tenant": "blue", "http_hosts": ["api.example.org"], "socket_hosts": ["10.0.0.0/8:5432"], "secrets": { "db": { "env": "DB" } } },
            { "tenant": "red", "http_hosts": ["*.example.com"] },
        ]));
        let good = json!({ "tenant": "blue", "http_hosts": ["api.example.org"], "socket_hosts": ["10.1.1.1:5432"], "secrets": { "KEY": "db" } });
        let granted = grants.apply(function(good.clone())).unwrap();
        assert_eq!(granted.secret_places, BTreeMap::from([("KEY".to_owned(), Secret::Env("DB".to_owned()))]));
        assert_eq!(grants.look(&granted), Look::Same);
        let mut asked = function(good);
        asked.tenant = "red".to_owned();
        let keys = |refused: NotGranted| refused.list.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(keys(grants.apply(asked).unwrap_err()), ["http_hosts", "socket_hosts", "secrets.KEY"]);
        let asked = function(
            json!({ "tenant": "blue", "http_hosts": ["api.example.org", "evil.org", "http://x"], "secrets": { "A": "other" } }),
        );
        let said = grants.apply(asked).unwrap_err().to_string();
        for words in [
            "settings.http_hosts: `evil.org` is not granted; granted is api.example.org",
            "`http://x` is no host",
            "settings.secrets.A: `other` is not granted; granted is db",
            "`tenant = \"blue\"`",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    #[test]
    fn grants_that_change_are_seen() {
        let before = grants(json!([{ "tenant": "default", "secrets": { "db": { "env": "DB" } } }]));
        let served = before.apply(function(json!({ "secrets": { "KEY": "db" } }))).unwrap();
        assert_eq!(before.look(&served), Look::Same);
        let moved = grants(json!([{ "tenant": "default", "secrets": { "db": { "env": "OTHER" } } }]));
        let Look::Otherwise(now) = moved.look(&served) else { panic!("the secret is somewhere else") };
        assert_eq!(now.secret_places["KEY"], Secret::Env("OTHER".to_owned()));
        assert!(matches!(Grants::default().look(&served), Look::Refused(_)));
    }

    #[test]
    fn folders_lie_within_those_that_are_granted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("data/in")).unwrap();
        fs::create_dir_all(path("shared")).unwrap();
        symlink(path("data"), path("link")).unwrap();
        let grants = grants(
            json!([{ "tenant": "default", "dirs": [{ "host": path("link"), "write": true }, { "host": path("shared") }] }]),
        );
        let ask = |host: PathBuf, write: Value| {
            let asked = function(json!({ "dirs": [{ "host": host, "guest": "/data", "write": write }] }));
            grants.apply(asked).map(|config| config.dirs[0].within.clone().unwrap())
        };
        assert_eq!(ask(path("link/in"), json!(true)), Ok(path("link")));
        assert_eq!(ask(path("link"), json!(false)), Ok(path("link")));
        // Also under the name to which the link leads.
        let data = fs::canonicalize(path("data")).unwrap();
        assert_eq!(ask(data.join("in"), json!("scratch")), Ok(data));
        assert_eq!(ask(path("shared"), json!("scratch")), Ok(path("shared")));
        for (host, write, words) in [
            (path("shared"), json!(true), "is granted for reading only"),
            (path("shared/../data"), json!(false), "has `..` in it"),
            (path("data2"), json!(false), "is not in a folder that is granted"),
            (path("sharedx"), json!(false), "is not in a folder that is granted"),
            (folder.path().to_owned(), json!(false), "is not in a folder that is granted"),
            ("data".into(), json!(false), "is not an absolute path"),
        ] {
            let said = ask(host.clone(), write).unwrap_err().to_string();
            assert!(said.contains("settings.dirs[0].host") && said.contains(words), "{}: {said}", host.display());
        }
    }
}
