//! Configuration files: right ones in both formats, wrong ones with an error that names the key.

use crate::entry;
use serde_json::{Value, json};
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::path::PathBuf;
use std::time::Duration;

const TIME_MAX: Duration = Duration::from_secs(120);

fn write(name: &str, text: &str) -> PathBuf {
    let path = programs::folder().join(name);
    std::fs::write(&path, text).expect("write a file");
    path
}

fn check(name: &str, text: &str) -> Finished {
    process::run(sledge_command(&["config", "check"]).arg(write(name, text)), b"", TIME_MAX)
}

/// `config check` and `serve` both refuse it, with exit status 1 and all of `words`.
#[track_caller]
fn assert_refused(name: &str, config: &str, words: &[&str]) {
    let serve = process::run(sledge_command(&["serve", "--config"]).arg(write(name, config)), b"", TIME_MAX);
    for (how, done) in [("config check", check(name, config)), ("serve", serve)] {
        assert_eq!(done.code(), 1, "{how}: {}{}", done.text(), done.stderr);
        for word in words.iter().chain([&name]) {
            assert!(done.stderr.contains(word), "{how}: {word:?} is missing in: {}", done.stderr);
        }
    }
}

/// They would be ignored, and with them what the operator wanted.
#[test]
fn options_for_functions_without_functions_are_refused() {
    let config = write("options.json", &json!({ "functions": [entry("echo", "echo.wat")] }).to_string());
    let config = config.to_str().expect("UTF-8");
    for (option, value, key) in [
        ("--snapshot", Some("off"), "snapshot"),
        ("-O", Some("0"), "opt_level"),
        ("--dir", Some("/tmp"), "dirs"),
        ("--http-host", Some("example.org"), "http_hosts"),
        ("--socket-host", Some("example.org:80"), "socket_hosts"),
        ("--socket-listen", Some("127.0.0.1:0"), "socket_listen"),
        ("--allow-unknown-imports", None, "allow_unknown_imports"),
    ] {
        let arguments = ["serve", "--config", config, option].into_iter().chain(value).collect::<Vec<_>>();
        let done = process::run(&mut sledge_command(&arguments), b"", TIME_MAX);
        let why = "it is for functions that are named on the command line, and none is";
        let expected = format!("sledge: {option}: {why}; for a function of the configuration, set `{key}` there\n");
        assert_eq!((done.code(), done.stderr), (2, expected));
    }
}

#[test]
fn toml_and_json_say_the_same() {
    let path = programs::function("echo.wat");
    let toml = format!(
        "listen = \"127.0.0.1:0\"\nworkers = 1\nquantum_us = 300\nbody_bytes_max = 5000\n\n\
         [[functions]]\nname = \"copy\"\npath = {path:?}\nroute = \"/api/copy\"\nmethods = [\"PUT\", \"POST\"]\n"
    );
    let done = check("good.toml", &toml);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    let server = Server::start_with(sledge_command(&["serve", "--config"]).arg(write("good.toml", &toml)));
    let client = server.client();
    assert_eq!(client.post("/api/copy", "x").text(), "x");
    assert_eq!(client.post("/api/copy", [0; 5001]).status, 413);
    assert_eq!(client.get("/api/copy").header("allow"), Some("PUT, POST"));
    server.stop();
}

/// Options of the command line win over the file; files beside it are served as well.
#[test]
fn the_command_line_wins() {
    let config = json!({ "listen": "127.0.0.1:1", "functions": [entry("one", "echo.wat")] });
    let file = write("overridden.json", &config.to_string());
    let mut command = sledge_command(&["serve", "--listen", "127.0.0.1:0", "--config"]);
    let server = Server::start_with(command.arg(&file).arg(programs::function("traps.wat")));
    let client = server.client();
    assert_eq!(client.post("/one", "x").text(), "x");
    assert_eq!(client.post("/traps", "-").text(), "ok");
    server.stop();
}

#[test]
fn an_unknown_key_is_answered_with_the_nearest() {
    let mut config = json!({ "functions": [entry("echo", "echo.wat")] });
    config["quantum_ms"] = 5.into();
    assert_refused("unknown.json", &config.to_string(), &["quantum_ms", "quantum_us"]);
    let mut config = json!({ "functions": [entry("echo", "echo.wat")] });
    config["functions"][0]["deadlin_ms"] = 5.into();
    assert_refused("unknown-inner.json", &config.to_string(), &["functions[0]", "deadlin_ms", "deadline_ms"]);
    assert_refused("unknown.toml", "wrokers = 3\n", &["wrokers", "workers"]);
}

#[test]
fn wrong_values_are_named() {
    let good = || json!({ "functions": [entry("a", "echo.wat"), entry("b", "echo.wat")] });
    let with = |change: &dyn Fn(&mut Value)| {
        let mut config = good();
        change(&mut config);
        config.to_string()
    };
    let route = with(&|config| {
        config["functions"][0]["route"] = "/same".into();
        config["functions"][1]["route"] = "/same".into();
    });
    assert_refused("route.json", &route, &["functions[1].route", "/same", "functions[0]"]);
    assert_refused("name.json", &with(&|config| config["functions"][1]["name"] = "a".into()), &["functions[1].name"]);
    assert_refused("type.json", &with(&|config| config["workers"] = "two".into()), &["workers"]);
    assert_refused("range.json", &with(&|config| config["quantum_us"] = 1.into()), &["quantum_us", "20"]);
    assert_refused("versions.json", &with(&|config| config["versions_max"] = 0.into()), &["versions_max", "1"]);
    let quota = with(&|config| (config["kv"], config["executions_tenant_bytes_max"]) = ("memory".into(), 1.into()));
    assert_refused("quota.json", &quota, &["executions_tenant_bytes_max", "65536"]);
    let alone = with(&|config| config["executions_tenant_bytes_max"] = 1_000_000.into());
    assert_refused("alone-quota.json", &alone, &["executions_tenant_bytes_max", "`kv`"]);
    let grants = |grants: Value| with(&|config| config["grants"] = grants.clone());
    assert_refused(
        "grant.json",
        &grants(json!([{ "tenant": "a", "http_hosts": ["http://a"] }])),
        &["grants[0].http_hosts", "no host"],
    );
    assert_refused("grants.json", &grants(json!([{ "tenant": "a" }, { "tenant": "a" }])), &["grants[1].tenant", "grants[0]"]);
    assert_refused(
        "granted.json",
        &grants(json!([{ "tenant": "a", "dir": [] }])),
        &["unknown key `dir`", "did you mean `dirs`?"],
    );
    assert_refused(
        "granted-dir.json",
        &grants(json!([{ "tenant": "a", "dirs": [{ "host": "", "write": false }] }])),
        &["grants[0].dirs[0]"],
    );
    let no_folder = with(&|config| config["functions"][1]["dirs"] = json!([{ "host": "", "guest": "/data" }]));
    assert_refused("no-folder.json", &no_folder, &["functions[1].dirs[0].host", "is empty"]);
    let own = with(&|config| config["functions"][1]["secrets"] = json!({ "A": "key" }));
    assert_refused("own-secrets.json", &own, &["functions[1].secrets", "`env`"]);
    for kv in [json!("memory"), Value::Null] {
        let config = with(&|config| {
            config["kv"] = kv.clone();
            config["kv_exclusive"] = true.into();
            config["kv_merge_us"] = 1_000.into();
        });
        assert_refused(
            "exclusive.json",
            &config,
            &["kv_exclusive: is for a store in Redis", "kv_merge_us: is for a store in Redis"],
        );
    }
    for (value, shown) in [(json!("often"), "\"often\""), (json!(0), "0"), (json!(-3), "-3"), (json!(1.5), "1.5")] {
        let config = with(&|config| config["functions"][1]["concurrency_max"] = value.clone());
        assert_refused("concurrency.json", &config, &["functions[1].concurrency_max", shown, "1"]);
    }
    let often = with(&|config| config["functions"][1]["concurrency_max"] = "often".into());
    assert_refused("auto.json", &often, &["expected a whole number from 1, or \"auto\""]);
    let alone = json!({ "instance": "application", "concurrency_max": "auto" });
    let alone = json!({ "functions": [crate::entry_with("a", "counts.wat", &alone)] }).to_string();
    assert_refused("alone.json", &alone, &["functions[0].concurrency_max: must be 1 or left out"]);
    assert_refused("method.json", &with(&|config| config["functions"][0]["methods"] = json!(["FETCH"])), &["methods", "FETCH"]);
    assert_refused("listen.json", &with(&|config| config["listen"] = "nowhere".into()), &["listen", "nowhere"]);
    let missing = with(&|config| config["functions"][0]["path"] = "/nonexistent/f.so".into());
    // It keeps no other function from being served.
    let done = check("path.json", &missing);
    assert!(done.code() == 1 && done.stderr.contains("functions[0].path: /nonexistent/f.so"), "{}", done.stderr);
    assert_refused("syntax.json", "{ \"functions\": [", &["line"]);
    assert_refused("syntax.toml", "functions = [", &["line"]);
    assert_refused("empty-function.toml", "[[functions]]\n", &["functions[0]"]);
}

#[test]
fn redirects_that_lead_nowhere_are_named() {
    let redirect = |more: Value| {
        let mut redirect = json!({ "route": "/old/*", "to": "/new/*" });
        more.as_object().expect("an object").iter().for_each(|(key, value)| redirect[key] = value.clone());
        json!({ "functions": [entry("a", "echo.wat")], "redirects": [redirect] }).to_string()
    };
    let good = check("redirect.json", &redirect(json!({})));
    assert_eq!(good.code(), 0, "{}", good.stderr);
    for (more, words) in [
        (json!({ "to": "new" }), ["redirects[0].to: `new` is nowhere to go", "https://example.org/new"]),
        (json!({ "to": "//other.example" }), ["redirects[0].to: `//other.example`", "/new"]),
        (json!({ "to": "/n*w" }), ["redirects[0].to: `/n*w`", "only at the end"]),
        (json!({ "to": "/old/*" }), ["redirects[0].to: `/old/*` is `route` itself", "again"]),
        (json!({ "route": "/old" }), ["redirects[0].to: `/new/*`", "at the end of `route`"]),
        (json!({ "status": 303 }), ["redirects[0].status: 303", "301, 302, 307 or 308"]),
        (json!({ "route": "old" }), ["redirects[0].route: `old` is not a route", "/name"]),
        (json!({ "route": "/a", "to": "/b" }), ["redirects[0].route: `/a` is also used by", "functions[0]"]),
        (json!({ "listen": "127.0.0.1:1" }), ["redirects[0].listen: `127.0.0.1:1`", "not the address of a function"]),
        (json!({ "rout": "/a" }), ["unknown key `rout` at redirects[0]", "did you mean `route`?"]),
    ] {
        assert_refused("redirect.json", &redirect(more), &words);
    }
}

#[test]
fn cors_that_no_browser_would_follow_is_refused() {
    let with = |cors: Value| json!({ "functions": [crate::entry_with("a", "echo.wat", &json!({ "cors": cors }))] }).to_string();
    let good = json!({ "origins": ["https://a.example"], "methods": ["POST", "HEAD"], "headers": ["*"], "credentials": true });
    let good = check("cors.json", &with(good));
    assert_eq!(good.code(), 0, "{}", good.stderr);
    for (cors, words) in [
        (json!({}), ["functions[0].cors", "missing field `origins`"]),
        (json!({ "origins": [] }), ["functions[0].cors.origins: is empty", "https://shop.example"]),
        (json!({ "origins": ["shop.example"] }), ["functions[0].cors.origins[0]: `shop.example` is not an origin", "https://"]),
        (
            json!({ "origins": ["*"], "credentials": true }),
            ["functions[0].cors.origins[0]: `*` does not work", "list the origins"],
        ),
        (json!({ "origins": ["*", "https://a"] }), ["functions[0].cors.origins[0]", "leave the others out"]),
        (json!({ "origins": ["*"], "methods": ["PUT"] }), ["functions[0].cors.methods[0]", "`PUT`; its `methods`: GET, POST"]),
        (json!({ "origins": ["*"], "headers": ["a b"] }), ["functions[0].cors.headers[0]", "`a b` is not the name of a header"]),
        (json!({ "origins": ["*"], "max_age_s": 86401 }), ["functions[0].cors.max_age_s: 86401", "0 to 86400"]),
        (
            json!({ "origins": ["https://a"], "exposed_headers": ["*"], "credentials": true }),
            ["functions[0].cors.exposed_headers", "list them"],
        ),
        (json!({ "origin": ["*"] }), ["unknown key `origin` at functions[0].cors", "did you mean `origins`?"]),
    ] {
        assert_refused("cors.json", &with(cors), &words);
    }
}

#[test]
fn compression_with_nothing_is_refused() {
    let with = |compression: Value| {
        json!({ "functions": [crate::entry_with("a", "echo.wat", &json!({ "compression": compression }))] }).to_string()
    };
    let good = check("compression.json", &with(json!({})));
    assert_eq!(good.code(), 0, "{}", good.stderr);
    for (compression, words) in [
        (json!({ "encodings": [] }), ["functions[0].compression.encodings: is empty", "leave `compression` out"]),
        (json!({ "encodings": ["gzip", "gzip"] }), ["functions[0].compression.encodings[1]", "twice"]),
        (
            json!({ "encodings": ["lz4"] }),
            ["functions[0].compression.encodings[0]: unknown variant `lz4`", "`zstd`, `br`, `gzip`"],
        ),
        (json!({ "bytes_min": 1_u64 << 31 }), ["functions[0].compression.bytes_min: 2147483648", "0 to 1073741824"]),
        (json!({ "min_bytes": 1 }), ["unknown key `min_bytes` at functions[0].compression", "bytes_min"]),
    ] {
        assert_refused("compression.json", &with(compression), &words);
    }
}

#[test]
fn speculation_of_what_does_not_speculate_is_refused() {
    let states = json!({ "Ask": { "Type": "Pass", "Next": "Done" }, "Done": { "Type": "Succeed" } });
    let definition = write("speculates.asl.json", &json!({ "StartAt": "Ask", "States": states }).to_string());
    let with = |more: Value| {
        let mut workflow = json!({ "name": "w", "path": definition });
        more.as_object().expect("an object").iter().for_each(|(key, value)| workflow[key] = value.clone());
        let function = crate::entry_with("a", "echo.wat", &json!({ "isolation": "serializable", "speculative": false }));
        json!({ "kv": "memory", "functions": [function], "workflows": [workflow] }).to_string()
    };
    for level in ["off", "paths", "outputs", "stalls", "skips"] {
        for kind in ["express", "standard"] {
            let more =
                json!({ "type": kind, "speculation": level, "speculation_depth_max": 16, "speculation_excluded": ["Done"] });
            let good = check("speculation.json", &with(more));
            assert_eq!(good.code(), 0, "{kind}, {level}: {}", good.stderr);
        }
    }
    let calls = |more: Value| {
        let function = crate::entry_with("a", "echo.wat", &more);
        json!({ "kv": "memory", "functions": [function] }).to_string()
    };
    for level in ["off", "calls", "skips"] {
        let good = check("speculation.json", &calls(json!({ "isolation": "serializable", "speculation": level })));
        assert_eq!(good.code(), 0, "{level}: {}", good.stderr);
    }
    for (more, words) in [
        (json!({ "speculation": "skips" }), ["functions[0].speculation: ", "set `isolation = \"serializable\"`"]),
        (json!({ "speculation": "calls" }), ["functions[0].speculation: ", "set `isolation = \"serializable\"`"]),
        (json!({ "speculation": "paths" }), ["functions[0].speculation: unknown variant `paths`", "`off`"]),
    ] {
        assert_refused("speculation.json", &calls(more), &words);
    }
    for (more, words) in [
        (json!({ "speculation": "all" }), ["workflows[0].speculation: unknown variant `all`", "`off`, `paths`"]),
        (json!({ "speculation_depth_max": 0 }), ["workflows[0].speculation_depth_max: 0 is out of range", "1 to 16"]),
        (json!({ "speculation_excluded": ["Ask", "Ask"] }), ["workflows[0].speculation_excluded[1]: `Ask`", "twice"]),
        (json!({ "speculation_depth": 2 }), ["unknown key `speculation_depth` at workflows[0]", "speculation_depth_max"]),
    ] {
        assert_refused("speculation.json", &with(more), &words);
    }
    // A server that has the workflow begins all the same, as with any mistake in a definition.
    let done = check("speculation.json", &with(json!({ "speculation_excluded": ["Done", "Asks"] })));
    let line = "speculation_excluded[1]: there is no state `Asks`; the states are: Ask, Done";
    assert!(done.code() == 1 && done.stderr.contains(line), "{}", done.stderr);
}

#[test]
fn folders_that_cannot_be_served_are_named() {
    let served = tempfile::tempdir().expect("a folder");
    let folder = |more: Value| {
        let mut folder = json!({ "route": "/files/*", "path": served.path() });
        more.as_object().expect("an object").iter().for_each(|(key, value)| folder[key] = value.clone());
        json!({ "functions": [entry("a", "echo.wat")], "folders": [folder] }).to_string()
    };
    let good = check("folder.json", &folder(json!({})));
    assert_eq!(good.code(), 0, "{}", good.stderr);
    for (more, words) in [
        (json!({ "route": "/files" }), ["folders[0].route: `/files` is no prefix", "/assets/*"]),
        (json!({ "cache_control": "a\nb" }), ["folders[0].cache_control: `a\\nb`", "not the value of a header"]),
        (json!({ "compression": { "encodings": [] } }), ["folders[0].compression.encodings: is empty", "zstd"]),
        (json!({ "listen": "127.0.0.1:1" }), ["folders[0].listen: `127.0.0.1:1`", "not the address of a function"]),
        (json!({ "folder": "/a" }), ["unknown key `folder` at folders[0]", "known keys: "]),
    ] {
        assert_refused("folder.json", &folder(more), &words);
    }
    // A server that has them begins all the same.
    for (path, words) in [("/nonexistent", "No such file"), ("/dev/null", "Not a directory")] {
        let checked = check("folder.json", &folder(json!({ "path": path })));
        let line = format!("folder.json: folder /files/*: {path}: {words}");
        assert!(checked.code() == 1 && checked.stderr.contains(&line), "{}", checked.stderr);
    }
}

#[test]
fn a_missing_file_is_named() {
    let done = process::run(&mut sledge_command(&["serve", "--config", "/nonexistent/sledge.toml"]), b"", TIME_MAX);
    assert_eq!(done.code(), 1);
    assert!(done.stderr.contains("/nonexistent/sledge.toml"), "{}", done.stderr);
}

#[test]
fn the_schema_describes_every_key() {
    let done = process::run(&mut sledge_command(&["config", "schema"]), b"", TIME_MAX);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    let schema: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    for key in [
        "listen",
        "workers",
        "quantum_us",
        "listeners",
        "body_bytes_max",
        "reply_bytes_max",
        "drain_timeout_ms",
        "functions",
        "redirects",
    ] {
        assert!(schema["properties"][key]["description"].is_string(), "{key}");
    }
}
