//! Applications: what is said of wrong ones, and gRPC servers that become functions without a change of their sources.

use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::process::{self, Finished};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::{Server, free_address};
use sledge_tests::sources::{copy, files, has_go, has_protoc};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Go compiles its library, and awsm what comes of it, on a machine that does other things too.
const BUILD_TIME_MAX: Duration = Duration::from_secs(900);

/// A folder with files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("write a file");
    }
    folder
}

/// Runs `sledge` in a folder.
fn sledge(folder: &Path, arguments: &[&str]) -> Finished {
    process::run(sledge_command(arguments).current_dir(folder), b"", BUILD_TIME_MAX)
}

/// What `config check` says of a configuration, line by line.
fn problems(config: &str) -> Vec<String> {
    let folder = folder(&[("s.toml", config)]);
    let done = sledge(folder.path(), &["config", "check", "s.toml"]);
    assert_eq!(done.code(), 1, "{}", done.text());
    done.stderr.trim_start_matches("sledge: ").lines().map(|line| line.replace("s.toml: ", "")).collect()
}

#[test]
fn what_is_wrong_with_an_application_is_named() {
    let config = r#"
        [[applications]]
        name = "shop"
        [[applications.functions]]
        name = "checkout"
        source = "checkout"
        services = ["shop.Checkout", "shop/Checkout"]
        expose = ["shop.Cart"]
        [applications.functions.calls]
        "shop.Crat" = "local"
        "shop.Ship" = "remote"
        "shop.Pay" = "https://pay.example:443/path"
        "a b" = "local"
        [[applications.functions]]
        name = "cart"
        source = "cart"
        services = ["shop.Cart", "shop.Checkout"]
        memory_bytes_max = 0
        [[applications.functions]]
        name = "cart"
        source = "cart"
        [[applications]]
        name = "shop"
        functions = []
        [[applications]]
        name = "a/b"
        functions = []
        [[applications]]
        name = "empty"
        functions = []
    "#;
    let found = problems(config);
    let expected = [
        "applications[0].functions[1].memory_bytes_max: 0 is out of range; give 65536 to 18446744073709551615",
        "applications[0].functions[0].services[1]: `shop/Checkout` is not the full name of a service; give PACKAGE.SERVICE, such as shop.Cart",
        "applications[0].functions[0].expose[0]: `shop.Cart` is not offered by this function; its services: shop.Checkout, shop/Checkout",
        "applications[0].functions[1].services[1]: `shop.Checkout` is offered by functions[0], too; one function of an application offers a service",
        "applications[0].functions[2].name: `cart` is also used by functions[1]",
        "applications[0].functions[2].services: is empty; name the services that the program offers, such as [\"shop.Cart\"]",
        "applications[0].functions[0].calls.a b: `a b` is not the full name of a service; give PACKAGE.SERVICE, such as shop.Cart",
        "applications[0].functions[0].calls.shop.Crat: no function of `shop` offers `shop.Crat`; did you mean `shop.Cart`?",
        "applications[0].functions[0].calls.shop.Pay: `https://pay.example:443/path` has a path; a call has its own; give `local` or an address such as https://pay.example:443",
        "applications[0].functions[0].calls.shop.Ship: `remote` is neither `local` nor an address with http:// or https://; give `local` or an address such as https://pay.example:443",
        "applications[1].name: `shop` is also used by applications[0]",
        "applications[2].name: `a/b` is not a valid application name; give letters, digits, `.`, `-`, `_`, not starting with `.`",
        "applications[3].functions: is empty; an application has at least one function",
    ];
    for line in expected {
        assert!(found.iter().any(|found| found == line), "{line}\nis missing in\n{}", found.join("\n"));
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn keys_of_applications_are_checked_as_all_others() {
    let application = |function: &str| {
        format!(
            "[[applications]]\nname = 'a'\n[[applications.functions]]\nname = 'f'\nsource = 's'\nservices = ['p.S']\n{function}\n"
        )
    };
    for (function, expected) in [
        ("sources = 1", "unknown key `sources` at applications[0].functions[0]; did you mean `source`?"),
        ("routes = ['/x']", "unknown key `routes` at applications[0].functions[0]; "),
        (
            "speculation = 'calls'",
            "`speculation` at applications[0].functions[0]: a function of an application streams its requests",
        ),
        ("deadlin_ms = 3", "unknown key `deadlin_ms` at applications[0].functions[0]; did you mean `deadline_ms`?"),
        ("deadline_ms = 'soon'", "applications[0].functions[0].deadline_ms: invalid type: string \"soon\", expected u64"),
        ("expose = 3", "applications[0].functions[0].expose: expected true, false or a list of services"),
        ("language = 'java'", "applications[0].functions[0].language: unknown variant `java`, expected `go` or `rust`"),
        ("deadline_ms = 0", "applications[0].functions[0].deadline_ms: 0 is out of range; give "),
    ] {
        let found = problems(&application(function));
        assert!(found.len() == 1 && found[0].starts_with(expected), "{function}: {found:?}");
    }
    // Two applications for clients at one address.
    let two = application("") + &application("").replace("'a'", "'b'");
    let found = problems(&two);
    assert_eq!(found, ["applications[1].functions[0].route: `/p.S/*` is also used by applications[0].functions[0]"]);
}

const PROTO: &str = "syntax = \"proto3\";\npackage p;\nmessage M {}\nservice Cart { rpc Get(M) returns (M); }\n";

#[test]
fn what_is_not_built_says_how_it_is() {
    let config = "[[applications]]\nname = 'shop'\n[[applications.functions]]\nname = 'f'\nsource = 's'\nservices = ['p.S']\n";
    let folder = folder(&[("sledge.toml", config)]);
    for arguments in [&["config", "check", "sledge.toml"][..], &["serve", "--config", "sledge.toml"]] {
        let done = sledge(folder.path(), arguments);
        let what = "applications[0].functions[0]: .sledge/shop/f.so is not built: run `sledge build shop`";
        assert!(done.code() == 1 && done.stderr.contains(what), "{}", done.stderr);
    }
}

#[test]
fn what_cannot_be_built_is_named() {
    let function = |more: &str| {
        format!(
            "[[applications]]\nname = 'shop'\n{more}\n[[applications.functions]]\nname = 'f'\nsource = 's'\nservices = ['p.Crat']\n"
        )
    };
    let fails = |config: &str, files: &[(&str, &str)], arguments: &[&str]| {
        let folder = folder(&[&[("sledge.toml", config)], files].concat());
        let done = sledge(folder.path(), &[&["build"], arguments].concat());
        assert_ne!(done.code(), 0, "{}", done.text());
        let shown = folder.path().canonicalize().expect("a folder").display().to_string();
        (done.code(), done.stderr.replace(&shown, "HERE"))
    };
    let no = fails("", &[], &[]);
    let what = "sledge: sledge.toml: has no applications ([[applications]]); `sledge dev` runs `build` of functions\n";
    assert_eq!(no, (2, what.to_owned()));
    let unknown = fails(&function(""), &[], &["shpo"]);
    assert_eq!(unknown, (2, "sledge: sledge.toml: has no application `shpo`; its applications: shop\n".to_owned()));
    let missing = fails(&function(""), &[], &[]);
    assert_eq!(missing, (1, "sledge: shop.f: source: s: No such file or directory (os error 2); give the program's folder, from the configuration's folder on\n".to_owned()));
    // All are looked for before the first is built.
    let two = function("") + "[[applications.functions]]\nname = 'g'\nsource = 't'\nservices = ['p.Other']\n";
    let (_, text) = fails(&two, &[("s/go.mod", "")], &[]);
    assert!(text.starts_with("sledge: shop.g: source: t: No such file or directory"), "{text}");
    let workspace = [("s/Cargo.toml", "[workspace]\nmembers = ['a']\nresolver = '2'\n"), ("s/a/src/main.rs", "fn main() {}\n")];
    let package = "[package]\nname = 'a'\nversion = '0.1.0'\nedition = '2021'\n";
    let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"0.1.0\"\n";
    let files = [&workspace[..], &[("s/a/Cargo.toml", package), ("s/Cargo.lock", lock)]].concat();
    let (_, text) = fails(&function(""), &files, &[]);
    let what = "the build failed: cargo: HERE/s/Cargo.toml is no package; `source` is the folder of one: HERE/s/a\n";
    assert_eq!(text, format!("sledge: shop.f: {what}"));
    let (_, text) = fails(&function(""), &[("s/main.c", "")], &[]);
    assert_eq!(
        text,
        "sledge: shop.f: source: neither go.mod nor Cargo.toml in s or above; a program is a Go module or a cargo package\n"
    );

    let protos = function("protos = ['proto']");
    let advice = "name the folders that have the .proto files, from the configuration's folder on";
    let (_, text) = fails(&protos, &[], &[]);
    assert_eq!(text, format!("sledge: shop: protos: proto: No such file or directory (os error 2); {advice}\n"));
    let (_, text) = fails(&protos, &[("proto/a.txt", "")], &[]);
    assert_eq!(text, format!("sledge: shop: protos: proto: no .proto files in this folder; {advice}\n"));
    let (_, text) = fails(&protos, &[("proto/a.proto", "syntax = \"proto3\";\nmessage {")], &[]);
    assert!(text.contains("a.proto:2") && text.contains("sledge: shop: the .proto files cannot be read: "), "{text}");
    let (_, text) = fails(&protos, &[("proto/p/a.proto", PROTO)], &[]);
    let what = "`p.Crat` is no service of the application's .proto files; did you mean `p.Cart`?";
    // The .proto files were read just now: `sledge build` would find nothing else in them.
    assert_eq!(text, format!("sledge: sledge.toml: applications[0].functions[0].services[0]: {what}\n"));

    if has_go() {
        let manifest = |require: &str| format!("module m\n\ngo 1.24\n\n{require}\n");
        for (require, expected) in [
            ("", "google.golang.org/grpc is not among its dependencies; a function of an application is a gRPC server"),
            ("require google.golang.org/grpc v1.3.0", "google.golang.org/grpc v1.3.0 is not supported; supported: v1."),
        ] {
            let (_, text) = fails(&function(""), &[("s/go.mod", &manifest(require)), ("s/main.go", "package main\n")], &[]);
            assert!(text.starts_with(&format!("sledge: shop.f: HERE/s/go.mod: {expected}")), "{text}");
        }
    }
}

/// The producer and the consumer, as a configuration has them.
fn prodcon(name: &str, listen: &str, consumer: &str) -> Value {
    let producer = if name == "mixed" { "prodcon/producer-rs" } else { "prodcon/producer" };
    let mut functions = vec![json!({
        "name": "producer", "source": producer, "services": ["prodcon.Producer"], "calls": { "prodcon.Consumer": consumer },
        "deadline_ms": 20_000, "opt_level": 0,
    })];
    if consumer == "local" {
        let services = json!(["prodcon.Consumer"]);
        functions.push(
            json!({ "name": "consumer", "source": "prodcon/consumer", "services": services, "expose": true, "opt_level": 0 }),
        );
    }
    json!({ "name": name, "listen": listen, "protos": ["protos"], "functions": functions })
}

/// The sources of both in a folder, and their .proto file in another one.
fn example(folder: &Path) -> PathBuf {
    let (from, to) = (programs::tests_folder().join("../examples/grpc/prodcon"), folder.join("prodcon"));
    copy(&from, &to);
    fs::create_dir_all(folder.join("protos")).expect("a folder");
    fs::copy(from.join("prodcon.proto"), folder.join("protos/prodcon.proto")).expect("a .proto file");
    to
}

/// A request for two messages of three bytes each: what the producer gets from the consumer for them.
fn produce(address: std::net::SocketAddr) -> (u16, Vec<u8>) {
    let client = sledge_tests::http::Client::new(address, TIME_MAX);
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    let reply = client.try_post("/prodcon.Producer/Produce", &[0, 0, 0, 0, 4, 8, 2, 16, 3], &headers).expect("a reply");
    (reply.status, reply.body)
}

/// Count, bytes and sum of the two.
const PRODUCED: [u8; 11] = [0, 0, 0, 0, 6, 8, 2, 16, 6, 24, 6];

#[test]
fn servers_become_functions_without_a_change() {
    if !has_go() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let sources = example(folder.path());
    let before = files(&sources);
    let [near, far] = [free_address(), free_address()];
    let write = |applications: Value| {
        let config = json!({ "listen": "127.0.0.1:0", "admin": "none", "workers": 1, "applications": applications });
        fs::write(folder.path().join("sledge.json"), config.to_string()).expect("write the configuration");
    };
    let local = prodcon("near", &near.to_string(), "local");
    // Of the same source, with another edge: over the network to the first one.
    let remote = |to: &str| prodcon("far", &far.to_string(), to);
    write(json!([local, remote(&format!("http://{near}"))]));
    let done = sledge(folder.path(), &["build", "--config", "sledge.json"]);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    let made =
        ["near.producer", "near.consumer", "far.producer"].map(|name| format!("{name}: .sledge/{}.so\n", name.replace('.', "/")));
    assert_eq!(done.text(), made.concat());
    assert!(files(&sources) == before, "the sources have changed");
    assert_eq!(fs::read_to_string(folder.path().join(".sledge/.gitignore")).expect("a file"), "*\n");

    let mut serve = sledge_command(&["serve", "--config", "sledge.json"]);
    let server = Server::start_with(serve.current_dir(folder.path()));
    for at in [near, far] {
        assert_eq!(produce(at), (200, PRODUCED.to_vec()), "{at}: {}", server.log());
    }
    // The consumer is no service of the application `far`, and nothing of either is at the server's own address.
    let client = sledge_tests::http::Client::new(far, TIME_MAX);
    assert_eq!(client.post("/prodcon.Consumer/Consume", "").status, 404);
    assert_eq!(server.client().post("/prodcon.Producer/Produce", "").status, 404);
    // Edges are changed without a build.
    let nowhere = free_address();
    write(json!([local, remote(&format!("http://{nowhere}"))]));
    server.signal(rustix::process::Signal::HUP);
    server.wait_for_log("replaced far.producer");
    assert_ne!(produce(far).1, PRODUCED);
    assert_eq!(produce(near).1, PRODUCED);
    server.stop();
}

/// A producer in Rust calls a consumer in Go.
#[test]
fn an_application_is_of_several_languages() {
    if !has_go() || !has_protoc() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let sources = example(folder.path());
    let before = files(&sources);
    let address = free_address();
    let applications = json!([prodcon("mixed", &address.to_string(), "local")]);
    let config = json!({ "listen": "127.0.0.1:0", "admin": "none", "workers": 1, "applications": applications });
    fs::write(folder.path().join("sledge.json"), config.to_string()).expect("write the configuration");
    let done = sledge(folder.path(), &["build", "mixed", "--config", "sledge.json"]);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert!(files(&sources) == before, "the sources have changed");
    let mut serve = sledge_command(&["serve", "--config", "sledge.json"]);
    let server = Server::start_with(serve.current_dir(folder.path()));
    assert_eq!(produce(address), (200, PRODUCED.to_vec()), "{}", server.log());
    server.stop();
}

#[test]
fn a_program_that_does_not_build_says_why() {
    if !has_go() {
        return;
    }
    let config = "[[applications]]\nname = 'shop'\n[[applications.functions]]\nname = 'f'\nsource = 'consumer'\nservices = ['prodcon.Consumer']\n";
    let folder = folder(&[("sledge.toml", config)]);
    let source = folder.path().join("consumer");
    copy(&programs::tests_folder().join("../examples/grpc/prodcon/consumer"), &source);
    fs::write(
        source.join("more.go"),
        "package main\n\nimport \"google.golang.org/grpc\"\n\nvar _ = grpc.NewSomething\n\nfunc f() {\n\tfor range 3 {\n\t}\n}\n",
    )
    .expect("write");
    // Our library needs a later Go, which must not change what the program's language is.
    let manifest = fs::read_to_string(source.join("go.mod")).expect("go.mod").replace("go 1.24", "go 1.21");
    fs::write(source.join("go.mod"), manifest).expect("write");
    let done = sledge(folder.path(), &["build"]);
    assert_eq!(done.code(), 1, "{}", done.text());
    assert!(done.stderr.contains("./more.go:5:14: undefined: grpc.NewSomething"), "{}", done.stderr);
    assert!(done.stderr.contains("requires go1.22 or later (-lang was set to go1.21"), "{}", done.stderr);
    assert!(done.stderr.contains("sledge: shop.f: the build failed: go: exit status: 1\n"), "{}", done.stderr);
}
