//! What deployed functions may have of the machine and its network: what the configuration grants to their tenants, and nothing else.

use crate::deploy::command;
use crate::{entry, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::Client;
use sledge_tests::programs::{self, run_awsm};
use sledge_tests::server::Server;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The function that says what it has, as a module.
fn module() -> &'static Path {
    static MODULE: LazyLock<PathBuf> = LazyLock::new(|| {
        let wasm = programs::folder().join("granted.wasm");
        let source = programs::tests_folder().join("e2e/functions/granted.c");
        let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
        let made = run_awsm(&["compile", &text(&source), "--emit", "wasm", "-o", &text(&wasm)]);
        assert_eq!(made.code(), 0, "{}", made.stderr);
        wasm
    });
    &MODULE
}

fn secret(path: &Path, text: &str) {
    fs::write(path, text).expect("write a secret");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("chmod");
}

/// What the server is asked for on its command line; its words.
fn deploy(server: &Server, args: &[&str]) -> (i32, String) {
    let done = command(server, &[&["deploy", module().to_str().expect("a path")], args].concat());
    (done.code(), if done.code() == 0 { done.text() } else { done.stderr })
}

fn told(client: &Client, lines: &str) -> Vec<String> {
    let reply = client.post("/granted", lines);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.text().lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A server with its configuration, of which grants can be exchanged.
struct Granting {
    server: Server,
    config: Value,
}

impl Granting {
    fn start(mut config: Value, grants: Value) -> Granting {
        config["grants"] = grants;
        Granting { server: Server::start(config.clone()), config }
    }

    fn reload(&mut self, grants: Value) {
        self.config["grants"] = grants;
        self.config["listen"] = "127.0.0.1:0".into();
        self.config["admin"] = self.server.admin().path().to_string_lossy().into();
        fs::write(self.server.folder().join("sledge.json"), self.config.to_string()).expect("write the configuration");
        self.server.signal(Signal::HUP);
    }

    /// The problem that operators are told of.
    fn problem(&self) -> Option<String> {
        let problem = |problem: &Value| {
            (problem["subject"] == "function granted").then(|| problem["reason"].as_str().expect("a text").to_owned())
        };
        self.server.admin().get("/status").json()["problems"].as_array().expect("a list").iter().find_map(problem)
    }
}

/// Files: `data/in/file`, and `secret` beside it, to which links lead.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("data/in")).expect("folders");
    fs::create_dir_all(at("outside")).expect("a folder");
    fs::write(at("data/in/file"), "inside").expect("write a file");
    fs::write(at("outside/file"), "outside").expect("write a file");
    symlink(at("outside"), at("data/absolute")).expect("a link");
    symlink("../outside", at("data/relative")).expect("a link");
    symlink("in", at("data/good")).expect("a link");
    folder
}

#[test]
fn a_deployed_function_has_what_it_asks_for_and_its_tenant_is_granted() {
    let folder = files();
    let at = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    secret(&folder.path().join("key"), "hunter2\n");
    let other = Server::start(json!({ "functions": [entry("echo", "echo.wat")] }));
    let (host, url) = (other.address.to_string(), format!("http://{}/echo", other.address));
    let grants = json!([{
        "tenant": "blue", "http_hosts": [host], "dirs": [{ "host": at("data") }], "secrets": { "api-key": { "file": at("key") } },
    }]);
    let state = folder.path().join("state");
    let config = json!({ "state_dir": state, "functions": [entry("echo", "echo.wat")] });
    let granting = Granting::start(config, grants);
    let server = &granting.server;
    let ask = format!("env KEY\nread /data/file\nwrite /data/new x\nget {url}\n");

    assert_eq!(deploy(server, &["--set", "tenant=blue"]).0, 0);
    assert_eq!(told(&server.client(), &ask), ["none", "Capabilities insufficient", "Capabilities insufficient", "not allowed"]);
    let dir = format!("dir={}::/data", at("data/in"));
    let host = format!("http-host={host}");
    let (code, said) = deploy(server, &["--grant", &dir, "--grant", "secret=KEY=api-key", "--grant", &host]);
    assert!(code == 0 && said.contains("secrets: none -> "), "{said}");
    let having = ["hunter2", "inside", "Read-only file system", "reached"];
    assert_eq!(told(&server.client(), &ask), having);
    // The next version asks for the same, unless it says otherwise.
    assert_eq!(deploy(server, &[]).0, 0);
    assert_eq!(told(&server.client(), &ask), having);
    assert_eq!(deploy(server, &["--set", "secrets=null", "--set", "http_hosts=null"]).0, 0);
    assert_eq!(told(&server.client(), &ask)[..2], ["none", "inside"]);
    assert_eq!(command(server, &["rollback", "granted"]).code(), 0);
    assert_eq!(told(&server.client(), &ask), having);
    // Nowhere does it say what the secret is.
    let shown = server.admin().get("/functions/granted").text() + &server.admin().get("/functions/granted/versions").text();
    assert!(shown.contains("api-key") && !shown.contains("hunter2"), "{shown}");

    // They are there after a restart.
    let Granting { server, config } = granting;
    let log = server.stop_for_log();
    assert!(!log.contains("hunter2"), "{log}");
    let server = Server::start(config);
    assert_eq!(told(&server.client(), &ask), having);
    server.stop();
    other.stop();
}

#[test]
fn what_is_not_granted_is_refused_by_its_name() {
    let folder = files();
    let at = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let grants = json!([{
        "tenant": "blue", "http_hosts": ["api.example.org"], "dirs": [{ "host": at("data") }], "secrets": { "api-key": { "env": "SLEDGE_TEST_NO_SECRET" } },
    }]);
    let granting = Granting::start(json!({ "functions": [entry("echo", "echo.wat")] }), grants);
    let server = &granting.server;
    let advice = "`[[grants]]` with `tenant = \"blue\"` in the server's configuration, then SIGHUP";
    let dir = |name: &str| format!("dir={}", at(name));
    for (asked, words) in [
        (
            "http-host=evil.example.org",
            &["settings.http_hosts: `evil.example.org` is not granted; granted is api.example.org", advice][..],
        ),
        ("http-host=api.example.org:8080", &["settings.http_hosts: ", advice]),
        ("http-host=127.0.0.1", &["settings.http_hosts: ", advice]),
        ("socket-host=10.0.0.1:1", &["settings.socket_hosts: ", "nothing of the kind", advice]),
        ("socket-listen=127.0.0.1:0", &["settings.socket_listen: ", advice]),
        ("secret=KEY=other", &["settings.secrets.KEY: `other` is not granted; granted is api-key", advice]),
        ("secret=KEY=api-key", &["secrets.KEY: environment variable SLEDGE_TEST_NO_SECRET: is not set"]),
        (&dir("outside"), &["settings.dirs[0].host: ", "is not in a folder that is granted", advice]),
        (&dir("data/../outside"), &["settings.dirs[0].host: ", "`..`"]),
        (&format!("{}::/data::rw", dir("data/in")), &["settings.dirs[0].host: ", "reading only"]),
        ("dir=data", &["settings.dirs[0].host: ", "is not an absolute path"]),
        // These lie there by their names alone.
        (&dir("data/absolute"), &["not a folder within "]),
        (&dir("data/relative"), &["not a folder within "]),
        (&dir("data/in/file"), &["not a folder within "]),
    ] {
        let (code, said) = deploy(server, &["--set", "tenant=blue", "--grant", asked]);
        assert!(code == 1 && words.iter().all(|word| said.contains(word)), "{asked}: {said}");
        assert_eq!(server.admin().get("/functions/granted").status, 404, "{asked}");
    }
    // As other tenants, which are granted nothing.
    for settings in [json!({ "http_hosts": ["api.example.org"] }), json!({ "tenant": "red", "http_hosts": ["api.example.org"] })]
    {
        let reply = server.admin().deploy("granted", &settings, &fs::read(module()).expect("the module"));
        assert!(reply.status == 403 && reply.text().contains("nothing of the kind"), "{reply:?}");
    }
    // A link that stays inside is as good as what it leads to.
    assert_eq!(deploy(server, &["--set", "tenant=blue", "--grant", &format!("{}::/data", dir("data/good"))]).0, 0);
    assert_eq!(told(&server.client(), "read /data/file"), ["inside"]);
    // A function does not come to another tenant's by changing to it, nor keeps what it had.
    let (code, said) = deploy(server, &["--set", "tenant=red"]);
    assert!(code == 1 && said.contains("settings.dirs[0].host"), "{said}");
    let (code, said) = deploy(server, &["--set", "http_hosts=[\"a\"]", "--grant", "http-host=a"]);
    assert!(code == 2 && said.contains("`http_hosts`"), "{said}");
    granting.server.stop();
}

#[test]
fn a_function_that_asks_for_more_than_is_granted_now_is_not_served() {
    let folder = files();
    let at = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    secret(&folder.path().join("key"), "first");
    secret(&folder.path().join("other-key"), "second");
    let full = |key: &str| json!([{ "tenant": "default", "dirs": [{ "host": at("data"), "write": true }], "secrets": { "key": { "file": at(key) } } }]);
    let narrow = json!([{ "tenant": "default", "dirs": [{ "host": at("data") }], "secrets": { "key": { "file": at("key") } } }]);
    let config = json!({ "state_dir": folder.path().join("state"), "functions": [entry("echo", "echo.wat")] });
    let mut granting = Granting::start(config, full("key"));
    let (code, said) =
        deploy(&granting.server, &["--grant", &format!("dir={}::/data::rw", at("data")), "--grant", "secret=KEY=key"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(deploy(&granting.server, &["--name", "plain"]).0, 0);
    let client = granting.server.client();
    let ask = "env KEY\nwrite /data/new x\nread /data/in/file";
    assert_eq!(told(&client, ask), ["first", "written", "inside"]);

    // By SIGHUP: the others go on.
    granting.reload(narrow.clone());
    eventually("the function is not served", || client.post("/granted", ask).status == 503);
    assert!(
        granting.problem().is_some_and(|why| why.contains("settings.dirs[0].host") && why.contains("reading only")),
        "{:?}",
        granting.problem()
    );
    assert_eq!([client.post("/plain", "").status, client.post("/echo", "").status], [200, 200]);
    let (code, said) = deploy(&granting.server, &["--name", "granted"]);
    assert!(code == 1 && said.contains("reading only"), "{said}");
    assert_eq!(client.post("/granted", ask).status, 503);

    // By a restart.
    let Granting { server, mut config } = granting;
    server.stop();
    config.as_object_mut().expect("an object").remove("admin");
    let mut granting = Granting::start(config, narrow);
    let client = granting.server.client();
    assert_eq!([client.post("/granted", ask).status, client.post("/plain", "").status], [503, 200]);
    assert!(granting.problem().is_some_and(|why| why.contains("reading only")));

    // It is back when it may have all again, with the secret where that is by then.
    granting.reload(full("other-key"));
    eventually("the function is served", || client.post("/granted", ask).status == 200);
    assert_eq!(
        (told(&client, ask), granting.problem()),
        (vec!["second".to_owned(), "written".to_owned(), "inside".to_owned()], None)
    );
    granting.reload(full("key"));
    eventually("the function has the other secret", || told(&client, "env KEY") == ["first"]);
    secret(&folder.path().join("key"), "third");
    granting.server.signal(Signal::HUP);
    eventually("the function has the new secret", || told(&client, "env KEY") == ["third"]);
    // One that cannot be read now leaves what there is in service.
    fs::set_permissions(at("key"), fs::Permissions::from_mode(0o644)).expect("chmod");
    granting.server.signal(Signal::HUP);
    eventually("the problem is told", || granting.problem().is_some_and(|why| why.contains("chmod 600")));
    assert_eq!(told(&client, "env KEY"), ["third"]);
    granting.reload(json!([]));
    eventually("the function is not served", || client.post("/granted", ask).status == 503);
    granting.server.stop();
}

/// A link that is put in the place of a folder later leads nowhere else, whether the function is loaded before or after.
#[test]
fn a_folder_that_is_exchanged_for_a_link_opens_nothing() {
    let folder = files();
    let at = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let config = json!({ "state_dir": folder.path().join("state"), "functions": [entry("echo", "echo.wat")] });
    let granting = Granting::start(config, json!([{ "tenant": "default", "dirs": [{ "host": at("data") }] }]));
    assert_eq!(deploy(&granting.server, &["--grant", &format!("dir={}::/data", at("data/in"))]).0, 0);
    fs::rename(at("data/in"), at("data/moved")).expect("rename");
    symlink(at("outside"), at("data/in")).expect("a link");
    assert_eq!(told(&granting.server.client(), "read /data/file\nread /data/../file"), ["inside", "Capabilities insufficient"]);
    let Granting { server, mut config } = granting;
    server.stop();
    config.as_object_mut().expect("an object").remove("admin");
    let grants = config["grants"].clone();
    let granting = Granting::start(config, grants);
    assert_eq!(granting.server.client().post("/granted", "read /data/file").status, 503);
    assert!(granting.problem().is_some_and(|why| why.contains("not a folder within ")), "{:?}", granting.problem());
    granting.server.stop();
}
