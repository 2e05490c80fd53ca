//! The shop of `examples/grpc/shop`: as an application, and as the servers that its sources are otherwise. A client finds the same.
//!
//! The email service is left out of both, to spare a compilation: orders are placed without it, too.

use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::process;
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Everything from nothing, on a machine that does other things too.
const BUILD_TIME_MAX: Duration = Duration::from_secs(1_200);
/// The client's patience ends before the carriers' answer comes.
const CARRIERS: (&str, &str) = ("CARRIER_DELAY_MS", "200");

/// The services, by the variable that says where a caller finds each, and the folders of their sources.
const SERVICES: [(&str, &str); 7] = [
    ("CATALOGUE", "rust/catalogue"),
    ("CART", "go/cart"),
    ("CURRENCY", "rust/currency"),
    ("SHIPPING", "rust/shipping"),
    ("PAYMENT", "go/payment"),
    ("RECOMMENDATION", "go/recommendation"),
    ("CHECKOUT", "rust/checkout"),
];

fn sources() -> PathBuf {
    programs::tests_folder().join("../examples/grpc/shop").canonicalize().expect("the shop")
}

/// All files of the sources, without what cargo makes beside them.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            if entry.file_name() != "target" && entry.file_name() != ".sledge" {
                all.extend(files(&path));
            }
        } else {
            all.insert(path.clone(), fs::read(path).expect("a file"));
        }
    }
    all
}

fn free() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port")
}

fn succeeds(command: &mut Command) -> String {
    let done = process::run(command, b"", BUILD_TIME_MAX);
    assert!(done.status.success(), "{command:?}: {}\n{}", done.text(), done.stderr);
    done.text()
}

/// The programs as they are built for a machine, and the client.
fn natives(to: &Path) {
    let shop = sources();
    let target = programs::awsm().with_file_name("tests-shop");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--locked", "--workspace", "--config", "profile.dev.debug=false", "--target-dir"]).arg(&target);
    succeeds(cargo.current_dir(shop.join("rust")));
    for name in ["catalogue", "checkout", "client", "currency", "shipping"] {
        fs::copy(target.join("debug").join(name), to.join(name)).expect("a program");
    }
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(to).args(["./cart", "./payment", "./recommendation"]);
    succeeds(go.current_dir(shop.join("go")));
}

/// Servers of their own. They end with this.
struct Servers {
    children: BTreeMap<&'static str, Child>,
    addresses: BTreeMap<&'static str, SocketAddr>,
}

impl Servers {
    /// Starts all, and waits until they listen. No process listens at `nowhere`.
    fn start(programs: &Path, nowhere: SocketAddr) -> Servers {
        let addresses: BTreeMap<_, _> = SERVICES.iter().map(|(name, _)| (*name, free())).collect();
        let mut servers = Servers { children: BTreeMap::new(), addresses };
        for (name, _) in SERVICES {
            let mut command = Command::new(programs.join(name.to_lowercase()));
            command.envs(servers.addresses.iter().map(|(name, address)| (name, address.to_string())));
            command.env("EMAIL", nowhere.to_string()).env("LISTEN", servers.addresses[name].to_string());
            command.env(CARRIERS.0, CARRIERS.1).env("LOG", "warn").env_remove("REDIS_URL").stdin(Stdio::null());
            servers.children.insert(name, command.spawn().expect("a server"));
        }
        let end = Instant::now() + TIME_MAX;
        for (name, address) in &servers.addresses {
            while TcpStream::connect(address).is_err() {
                assert!(Instant::now() < end, "{name} does not listen");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        servers
    }

    fn stop(&mut self, name: &str) {
        process::kill(self.children.get_mut(name).expect("a server"));
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.children.values_mut().for_each(process::kill);
    }
}

/// The application as `sledge.toml` beside it has it, but for what makes it quick to build.
fn application(listen: SocketAddr, nowhere: SocketAddr, shipping: &str) -> Value {
    let shop = sources();
    let service = |name: &str| format!("shop.{}{}", &name[..1], name[1..].to_lowercase());
    let functions = SERVICES.iter().map(|(name, source)| {
        let mut function = json!({
            "name": name.to_lowercase(), "source": shop.join(source), "services": [service(name)], "opt_level": 0, "deadline_ms": 20_000,
            "env": { "LOG": "warn" },
        });
        match *name {
            "CATALOGUE" | "CART" => function["expose"] = true.into(),
            "SHIPPING" => function["env"][CARRIERS.0] = CARRIERS.1.into(),
            "RECOMMENDATION" => function["calls"] = json!({ "shop.Catalogue": "local" }),
            "CHECKOUT" => {
                let callees = SERVICES.iter().filter(|(callee, _)| callee != name).map(|(callee, _)| (service(callee), "local".to_owned()));
                function["calls"] = callees.collect::<BTreeMap<_, _>>().into_iter().collect();
                function["calls"]["shop.Email"] = format!("http://{nowhere}").into();
                function["calls"]["shop.Shipping"] = shipping.into();
            }
            _ => {}
        }
        function
    });
    let functions: Vec<_> = functions.collect();
    json!({
        "listen": listen.to_string(), "admin": "none", "workers": 1, "kv": "shop.kv",
        "applications": [{ "name": "shop", "protos": [shop.join("proto")], "functions": functions }],
    })
}

/// What the client says of a shop.
fn client(programs: &Path, address: impl Fn(&str) -> SocketAddr, arguments: &[&str]) -> String {
    let mut client = Command::new(programs.join("client"));
    client.args(arguments).envs(["CATALOGUE", "CART", "CHECKOUT"].map(|name| (name, address(name).to_string())));
    succeeds(&mut client)
}

#[test]
fn the_shop_answers_as_its_servers_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = files(&sources());
    let (listen, nowhere) = (free(), free());
    let write = |shipping: &str| {
        fs::write(folder.path().join("sledge.json"), application(listen, nowhere, shipping).to_string()).expect("write");
    };
    write("local");
    succeeds(sledge_command(&["build", "--config", "sledge.json"]).current_dir(folder.path()));
    assert!(files(&sources()) == before, "the sources have changed");
    // Programs of one workspace are built in one copy of it.
    assert_eq!(fs::read_dir(folder.path().join(".sledge/lib/rust")).expect("a folder").count(), 1);
    natives(folder.path());
    let mut servers = Servers::start(folder.path(), nowhere);
    let mut serve = sledge_command(&["serve", "--config", "sledge.json"]);
    let server = Server::start_with(serve.current_dir(folder.path()));

    let native = |arguments: &[&str]| client(folder.path(), |name| servers.addresses[name], arguments);
    let ours = |arguments: &[&str]| client(folder.path(), |_| listen, arguments);
    let expected = native(&[]);
    for part in
        ["total EUR 79.990000000; to Bonn; confirmed: false; also: teapot", "declined: FailedPrecondition", "impatient: no order"]
    {
        assert!(expected.contains(part), "{part} is missing in\n{expected}");
    }
    assert_eq!(ours(&[]), expected, "{}", server.log());

    // One of the services is a server elsewhere, and then it is away.
    let far = servers.addresses["SHIPPING"];
    let reload = |to: &str| {
        write(to);
        server.signal(rustix::process::Signal::HUP);
    };
    reload(&format!("http://{far}"));
    // Shipping, too: no function calls it here any more, so clients may.
    server.wait_for_log("replaced shop.shipping, shop.checkout");
    let placed = native(&["order"]);
    assert!(placed.starts_with("order: 1 Desk lamp EUR 42.000000000;"), "{placed}");
    assert_eq!(ours(&["order"]), placed, "{}", server.log());
    servers.stop("SHIPPING");
    let native = client(folder.path(), |name| servers.addresses[name], &["order"]);
    assert_eq!(native, "order: Unavailable\ncart: 1 lamp\n");
    assert_eq!(ours(&["order"]), native, "{}", server.log());
    server.stop();
}
