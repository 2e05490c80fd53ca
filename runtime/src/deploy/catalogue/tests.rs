//! What a change is, and what it leaves as it was.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::json;
use sledge_workflow::definition::Definition;

use super::*;
use crate::config::RedirectConfig;
use crate::http::{Refused, Site};
use crate::invoke::by_hand;
use crate::kv::{Embedded, KvLimits};
use crate::outcome::Failure;
use crate::schedule::Used;
use crate::speculate::Of;
use crate::speculate::outputs::Rest;

fn catalogue() -> Catalogue {
    catalogue_at([])
}

fn catalogue_at(addresses: impl IntoIterator<Item = SocketAddr>) -> Catalogue {
    Catalogue::new(2, Budget::new(u64::MAX), None, Arc::default(), addresses.into_iter().collect())
}

fn config(name: &str, settings: Value) -> FunctionConfig {
    config::function("settings", name, Path::new("f.wasm"), settings).unwrap()
}

/// A function of that name with nothing set.
fn plain(name: &str) -> FunctionConfig {
    config(name, json!({}))
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn candidate(config: FunctionConfig) -> Candidate {
    Candidate {
        digest: blake3::hash(config.name.as_bytes()),
        version: None,
        module: None,
        loaded: by_hand::loaded(&config),
        config,
    }
}

impl Catalogue {
    fn serve(&mut self, config: FunctionConfig, origin: Origin) -> Option<Arc<Function>> {
        let mut before = self.put(candidate(config), origin);
        assert!(before.len() < 2, "none of these is deployed gradually");
        before.pop()
    }

    fn function(&self, name: &str) -> Arc<Function> {
        Arc::clone(&self.get(name).unwrap_or_else(|| panic!("{name} is served")).function)
    }

    /// The name of what answers there, or why nothing does.
    fn answers(&self, site: Site, path: &str) -> Result<String, Failure> {
        match self.router().find(site, path, &Method::POST) {
            Ok(route) => Ok(route.function.name().to_owned()),
            Err(Refused::Failed(failure, _)) => Err(failure),
            Err(Refused::Moved(redirect)) => Ok(format!("redirect {}", redirect.pattern)),
            Err(Refused::File(folder)) => Ok(format!("folder {}", folder.pattern())),
            Err(Refused::Workflow(workflow)) => Ok(format!("workflow {}", workflow.config.name)),
        }
    }

    /// The name and problem of each, and whether it is served.
    fn states(&self) -> Vec<(String, Option<String>, State)> {
        self.list().into_iter().map(|info| (info.name, info.problem, info.state)).collect()
    }
}

fn names(functions: &[Arc<Function>]) -> Vec<&str> {
    functions.iter().map(|function| function.name()).collect()
}

#[test]
fn numbers_have_no_gaps_and_stay() {
    let mut numbers = Numbers::default();
    assert_eq!(["a", "b", "a", "c", "b"].map(|name| numbers.number(name)), [0, 1, 0, 2, 1].map(Some));
}

#[test]
fn a_function_without_a_number_of_its_own_shares_one_with_others_of_its_tenant_only() {
    let mut catalogue = catalogue();
    let mut numbers = |tenant: &str, name: &str| catalogue.numbers(tenant, name);
    let own: BTreeSet<FunctionId> = (0..NUMBERS_MAX).map(|number| numbers("first", &number.to_string()).1).collect();
    assert_eq!((own.len(), own.last()), (NUMBERS_MAX as usize, Some(&FunctionId(NUMBERS_MAX - 1))));
    let others = ["one", "two"].map(|name| numbers("second", name));
    let shared = ["one", "two"].map(|name| numbers("first", name).1);
    assert_eq!((shared[0], others[0]), (shared[1], others[1]));
    assert!(!own.contains(&shared[0]) && !own.contains(&others[0].1) && shared[0] != others[0].1, "{shared:?} {others:?}");
    assert_eq!((others[0].0, numbers("first", "1")), (TenantId(1), (TenantId(0), FunctionId(1))));
}

#[test]
fn a_function_that_was_removed_has_its_number_again_and_another_version() {
    let mut catalogue = catalogue();
    for name in ["a", "b"] {
        catalogue.serve(plain(name), Origin::Config);
    }
    let before = catalogue.function("b");
    catalogue.remove("b", Origin::Config).unwrap();
    catalogue.serve(config("c", json!({ "tenant": "other" })), Origin::Config);
    catalogue.serve(plain("b"), Origin::Config);
    let (again, other) = (catalogue.function("b"), catalogue.function("c"));
    assert_eq!((again.tenant, again.number), (before.tenant, before.number));
    assert!(before.version < other.version && other.version < again.version);
    assert!(other.tenant != again.tenant && other.number != again.number);
    let infos = catalogue.list();
    let versions: Vec<_> = infos.iter().map(|info| (info.name.as_str(), info.version)).collect();
    assert_eq!(versions, ["a", "b", "c"].map(|name| (name, Some(catalogue.function(name).version))));
}

#[test]
fn both_versions_of_a_function_together_keep_its_limits() {
    let limits = json!({ "concurrency_max": 1, "queue_max": 1 });
    let mut catalogue = catalogue();
    assert!(catalogue.serve(config("f", limits.clone()), Origin::Config).is_none());
    let first = catalogue.function("f");
    let before = catalogue.serve(config("f", limits), Origin::Config).unwrap();
    assert!(Arc::ptr_eq(&first, &before));
    let second = catalogue.function("f");
    assert!(first.gate.take(Instant::now) && second.gate.take(Instant::now) && !second.gate.take(Instant::now));
    // Other limits begin anew.
    for limits in [json!({ "concurrency_max": 1, "queue_max": 2 }), json!({ "concurrency_max": 2, "queue_max": 2 }), json!({})] {
        let before = catalogue.function("f");
        catalogue.serve(config("f", limits.clone()), Origin::Config);
        assert!(!Arc::ptr_eq(&catalogue.function("f").gate, &before.gate), "{limits}");
    }
}

#[test]
fn a_version_with_other_limits_goes_on_with_what_was_learned() {
    let auto = |queue_max: usize| config("f", json!({ "concurrency_max": "auto", "queue_max": queue_max }));
    let mut catalogue = catalogue();
    catalogue.serve(auto(1), Origin::Config);
    let first = catalogue.function("f");
    let limits = |catalogue: &Catalogue| catalogue.concurrency_limits();
    let limit = |number: u64| vec![(["f".to_owned(), "default".to_owned()], number)];
    assert_eq!(limits(&catalogue), limit(5), "two workers times 2.5");
    let used = Used { busy: Duration::from_millis(1), idle: Duration::from_millis(9) };
    first.gate.learn(used, Instant::now());
    assert_eq!(limits(&catalogue), limit(50));
    catalogue.serve(auto(1), Origin::Config);
    assert!(Arc::ptr_eq(&first.gate, &catalogue.function("f").gate));
    catalogue.serve(auto(2), Origin::Config);
    assert!(!Arc::ptr_eq(&first.gate, &catalogue.function("f").gate));
    assert_eq!(limits(&catalogue), limit(50));
    catalogue.serve(config("f", json!({ "concurrency_max": 5 })), Origin::Config);
    assert_eq!(limits(&catalogue), limit(5));
    catalogue.serve(config("f", json!({})), Origin::Config);
    assert_eq!(limits(&catalogue), []);
}

#[test]
fn a_version_keeps_the_log_and_the_labels_of_the_one_before_while_they_are_the_same() {
    let phases = |name: &str| json!([{ "id": 1, "name": name, "cpu_us": 10 }]);
    let keeps = |settings: Value| {
        let mut catalogue = catalogue();
        catalogue.serve(config("f", json!({ "log_lines_per_s_max": 7, "phases": phases("one") })), Origin::Config);
        let before = catalogue.function("f");
        catalogue.serve(config("f", settings), Origin::Config);
        let after = catalogue.function("f");
        (Arc::ptr_eq(&before.log, &after.log), Arc::ptr_eq(&before.labels, &after.labels))
    };
    assert_eq!(keeps(json!({ "log_lines_per_s_max": 7, "phases": phases("one"), "deadline_ms": 9 })), (true, true));
    assert_eq!(keeps(json!({ "log_lines_per_s_max": 8, "phases": phases("one") })), (false, true));
    assert_eq!(keeps(json!({ "log_lines_per_s_max": 7, "phases": phases("two") })), (true, false));
    // Another tenant's is not read by this one's clients.
    assert_eq!(keeps(json!({ "log_lines_per_s_max": 7, "phases": phases("one"), "tenant": "other" })), (false, false));
}

#[test]
fn what_is_defined_in_one_place_is_changed_in_no_other() {
    let mut catalogue = catalogue();
    assert!(catalogue.is_empty());
    catalogue.serve(plain("c"), Origin::Config);
    catalogue.serve(plain("d"), Origin::Deployed);
    catalogue.serve(plain("e"), Origin::Deployed);
    assert!(!catalogue.is_empty() && catalogue.len() == 3);
    assert_eq!(catalogue.names(Origin::Config).collect::<Vec<_>>(), ["c"]);
    assert_eq!(catalogue.names(Origin::Deployed).collect::<Vec<_>>(), ["d", "e"]);
    let check = |name: &str, origin| catalogue.check(&plain(name), origin);
    assert!(check("c", Origin::Config).is_ok() && check("d", Origin::Deployed).is_ok() && check("new", Origin::Config).is_ok());
    assert!(matches!(check("c", Origin::Deployed), Err(CatalogueError::Configured(name)) if name == "c"));
    assert!(matches!(check("d", Origin::Config), Err(CatalogueError::Deployed(name)) if name == "d"));
    assert!(matches!(catalogue.remove("c", Origin::Deployed), Err(CatalogueError::Configured(_))));
    assert!(matches!(catalogue.remove("d", Origin::Config), Err(CatalogueError::Deployed(_))));
    assert!(matches!(catalogue.remove("x", Origin::Config), Err(CatalogueError::Unknown(name)) if name == "x"));
    assert_eq!(catalogue.functions().map(|function| function.name()).collect::<Vec<_>>(), ["c", "d", "e"]);
    let removed = catalogue.remove("d", Origin::Deployed).unwrap().remove(0);
    assert!(removed.name() == "d" && removed.retired.load(Ordering::Relaxed) && catalogue.get("d").is_none());
    assert!(!catalogue.function("c").retired.load(Ordering::Relaxed));
}

#[test]
fn a_route_belongs_to_one_function_at_each_address() {
    let own = address(9);
    let mut catalogue = catalogue_at([own]);
    catalogue.serve(config("f", json!({ "route": "/there" })), Origin::Config);
    let at = |name: &str, listen: Option<SocketAddr>| {
        config(name, json!({ "route": "/there", "listen": listen.map(|address| address.to_string()) }))
    };
    let check = |config| catalogue.check(&config, Origin::Config);
    assert!(matches!(check(at("g", None)), Err(CatalogueError::Route { route, other }) if route == "/there" && other == "f"));
    assert!(check(at("f", None)).is_ok(), "its own");
    assert!(check(at("g", Some(own))).is_ok(), "another address");
    assert!(matches!(check(at("g", Some(address(10)))), Err(CatalogueError::Address(there)) if there == address(10)));
    assert!(catalogue.check_address(&at("f", Some(address(10)))).is_err() && catalogue.check_address(&at("f", None)).is_ok());
    assert_eq!(catalogue.addresses(), &BTreeSet::from([own]));
}

#[test]
fn a_route_that_a_function_leaves_is_free() {
    let mut catalogue = catalogue();
    let at = |name: &str, route: &str| config(name, json!({ "route": route }));
    catalogue.serve(at("f", "/old"), Origin::Config);
    catalogue.serve(at("f", "/new"), Origin::Config);
    assert!(catalogue.check(&at("g", "/old"), Origin::Config).is_ok());
    assert!(catalogue.check(&at("g", "/new"), Origin::Config).is_err());
    assert_eq!((catalogue.answers(None, "/new"), catalogue.answers(None, "/old")), (Ok("f".to_owned()), Err(Failure::NotFound)));
    // While a configuration is put in the place of another, two may be at one.
    catalogue.serve(at("g", "/new"), Origin::Config);
    catalogue.remove("f", Origin::Config).unwrap();
    assert!(
        matches!(catalogue.check(&at("h", "/new"), Origin::Config), Err(CatalogueError::Route { other, .. }) if other == "g")
    );
    catalogue.remove("g", Origin::Config).unwrap();
    assert!(catalogue.check(&at("h", "/new"), Origin::Config).is_ok());
}

#[test]
fn a_function_has_all_its_routes_or_none() {
    let mut catalogue = catalogue();
    let at = |name: &str, routes: &[&str]| config(name, json!({ "routes": routes }));
    catalogue.serve(at("two", &["/a", "/b/*"]), Origin::Config);
    catalogue.serve(at("none", &[]), Origin::Config);
    for (path, expected) in
        [("/a", Ok("two")), ("/b/c", Ok("two")), ("/none", Err(Failure::NotFound)), ("/two", Err(Failure::NotFound))]
    {
        assert_eq!(catalogue.answers(None, path), expected.map(str::to_owned), "{path}");
    }
    let taken = |routes: &[&str]| match catalogue.check(&at("x", routes), Origin::Config) {
        Err(CatalogueError::Route { route, other }) => Some((route, other)),
        _ => None,
    };
    assert_eq!(taken(&["/x", "/b/*"]), Some(("/b/*".to_owned(), "two".to_owned())));
    assert_eq!(taken(&["/x", "/b", "/none"]), None);
    let routes: Vec<_> = catalogue.list().into_iter().map(|info| info.route).collect();
    assert_eq!(routes, ["none", "/a, /b/*"]);
    // One is left, the other stays; and where it is quarantined, all are held.
    catalogue.serve(at("two", &["/a"]), Origin::Config);
    assert_eq!(catalogue.answers(None, "/b/c"), Err(Failure::NotFound));
    catalogue.serve(at("d", &["/d"]), Origin::Deployed);
    catalogue.serve(at("e", &["/e"]), Origin::Deployed);
    let in_the_way = catalogue.in_the_way_of(&at("new", &["/e", "/d"]));
    assert_eq!(in_the_way.into_iter().map(|config| config.name).collect::<Vec<_>>(), ["d", "e"]);
    drop(catalogue.quarantine(Unusable::new(&at("two", &["/a", "/b/*"]), "broken"), Origin::Config, false));
    assert_eq!(["/a", "/b/c"].map(|path| catalogue.answers(None, path)), [Err(Failure::Quarantined), Err(Failure::Quarantined)]);
    let held = catalogue.check_deployed(&at("x", &["/x", "/b/*"]));
    assert!(matches!(held, Err(CatalogueError::Held { route, other }) if (&*route, &*other) == ("/b/*", "two")));
}

#[test]
fn a_server_has_as_many_functions_as_it_may_and_no_more() {
    let mut catalogue = catalogue();
    catalogue.serve(plain("0"), Origin::Config);
    // The others are the same function: only their names count here.
    let function = Arc::clone(&catalogue.get("0").unwrap().function);
    for number in 1..FUNCTIONS_MAX - 1 {
        let (config, function) = (FunctionConfig::new(number.to_string(), "f.wasm"), Arc::clone(&function));
        let (name, digest) = (config.name.clone(), blake3::hash(b""));
        let entry = Entry {
            config,
            digest,
            origin: Origin::Config,
            version: 0,
            function,
            module: None,
            routes: Vec::new(),
            canary: None,
            given_up: None,
        };
        catalogue.entries.insert(name, entry);
    }
    assert!(catalogue.check(&plain("last"), Origin::Deployed).is_ok());
    catalogue.serve(plain("last"), Origin::Deployed);
    assert!(matches!(catalogue.check(&plain("more"), Origin::Deployed), Err(CatalogueError::Full)));
    assert!(catalogue.check(&plain("last"), Origin::Deployed).is_ok(), "another version of one");
}

#[test]
fn functions_call_those_of_their_tenant_as_they_are_served_now() {
    let mut catalogue = catalogue();
    let of = |name: &str, tenant: &str| config(name, json!({ "tenant": tenant }));
    catalogue.serve(of("caller", "a"), Origin::Config);
    catalogue.serve(of("stranger", "b"), Origin::Config);
    catalogue.serve(of("f", "a"), Origin::Config);
    let (caller, stranger) = (catalogue.function("caller"), catalogue.function("stranger"));
    let finds = |from: &Function, name: &str| from.neighbours.find(name).map(|function| function.version);
    assert_eq!(finds(&caller, "f"), Ok(catalogue.function("f").version));
    assert_eq!((finds(&stranger, "f"), finds(&caller, "stranger")), (Err(Failure::NotFound), Err(Failure::NotFound)));
    catalogue.serve(of("f", "a"), Origin::Config);
    assert_eq!(finds(&caller, "f"), Ok(catalogue.function("f").version));
    catalogue.serve(of("f", "b"), Origin::Config);
    assert_eq!((finds(&caller, "f"), finds(&stranger, "f").is_ok()), (Err(Failure::NotFound), true));
    catalogue.remove("f", Origin::Config).unwrap();
    assert_eq!(finds(&stranger, "f"), Err(Failure::NotFound));
    // One that is quarantined is there, and does not answer.
    catalogue.quarantine(Unusable::new(&of("f", "a"), "broken"), Origin::Config, false);
    assert_eq!((finds(&caller, "f"), finds(&stranger, "f")), (Err(Failure::Quarantined), Err(Failure::NotFound)));
    catalogue.release("f", Origin::Config).unwrap();
    assert_eq!(finds(&caller, "f"), Err(Failure::NotFound));
    assert!(catalogue.release("f", Origin::Config).is_none());
}

#[test]
fn a_name_that_is_quarantined_twice_is_so_until_both_are_released() {
    let mut catalogue = catalogue();
    catalogue.serve(plain("caller"), Origin::Config);
    let caller = catalogue.function("caller");
    for origin in [Origin::Config, Origin::Deployed] {
        catalogue.quarantine(Unusable::new(&plain("f"), "broken"), origin, false);
    }
    catalogue.release("f", Origin::Config).unwrap();
    assert_eq!(caller.neighbours.find("f").map(|_| ()), Err(Failure::Quarantined));
    catalogue.release("f", Origin::Deployed).unwrap();
    assert_eq!(caller.neighbours.find("f").map(|_| ()), Err(Failure::NotFound));
}

#[test]
fn a_name_is_released_in_its_tenant_whatever_is_quarantined_in_another() {
    let mut catalogue = catalogue();
    let of = |name: &str, tenant: &str| config(name, json!({ "tenant": tenant }));
    catalogue.serve(of("caller", "a"), Origin::Config);
    let caller = catalogue.function("caller");
    catalogue.quarantine(Unusable::new(&of("f", "a"), "broken"), Origin::Config, false);
    catalogue.quarantine(Unusable::new(&of("f", "b"), "broken"), Origin::Deployed, false);
    assert_eq!(caller.neighbours.find("f").map(|_| ()), Err(Failure::Quarantined));
    catalogue.release("f", Origin::Config).unwrap();
    assert_eq!(caller.neighbours.find("f").map(|_| ()), Err(Failure::NotFound));
}

#[test]
fn callers_of_a_function_whose_next_version_is_quarantined_learn_that_when_it_goes() {
    for (tenant, expected) in [("a", Failure::Quarantined), ("b", Failure::NotFound)] {
        let mut catalogue = catalogue();
        let of = |name: &str, tenant: &str| config(name, json!({ "tenant": tenant }));
        catalogue.serve(of("caller", "a"), Origin::Deployed);
        catalogue.serve(of("f", "a"), Origin::Deployed);
        let caller = catalogue.function("caller");
        assert!(catalogue.quarantine(Unusable::new(&of("f", tenant), "broken"), Origin::Deployed, true).is_empty());
        assert!(caller.neighbours.find("f").is_ok(), "the version before is kept");
        catalogue.remove("f", Origin::Deployed).unwrap();
        assert_eq!(caller.neighbours.find("f").map(|_| ()), Err(expected), "of tenant {tenant}");
    }
}

#[test]
fn what_is_quarantined_is_not_served_unless_the_version_before_is_kept() {
    let mut catalogue = catalogue();
    for name in ["f", "g", "h"] {
        catalogue.serve(plain(name), Origin::Config);
    }
    let before = catalogue.quarantine(Unusable::new(&plain("f"), "it is\n  broken"), Origin::Config, false).remove(0);
    assert_eq!((before.name(), catalogue.len()), ("f", 2));
    assert!(catalogue.quarantine(Unusable::new(&plain("g"), "too old"), Origin::Config, true).is_empty());
    assert_eq!(catalogue.answers(None, "/f"), Err(Failure::Quarantined));
    assert_eq!([catalogue.answers(None, "/g"), catalogue.answers(None, "/h")], ["g", "h"].map(|name| Ok(name.to_owned())));
    let broken = (String::from("f"), Some(String::from("it is; broken")), State::Quarantined);
    let old = (String::from("g"), Some(String::from("too old")), State::Served);
    assert_eq!(catalogue.states(), [broken, old, (String::from("h"), None, State::Served)]);
    // Each has a version by which it is told from others of its name.
    let version = |catalogue: &Catalogue, name: &str| catalogue.quarantined().get(name, Origin::Config).unwrap().version;
    let first = version(&catalogue, "f");
    assert!(first > catalogue.function("h").version && version(&catalogue, "g") > first);
    catalogue.quarantine(Unusable::new(&plain("f"), "still"), Origin::Config, false);
    assert!(version(&catalogue, "f") > first);
    // What is served again is quarantined no longer.
    catalogue.serve(plain("f"), Origin::Config);
    assert!(catalogue.quarantined().get("f", Origin::Config).is_none());
    assert_eq!(catalogue.answers(None, "/f"), Ok("f".to_owned()));
}

#[test]
fn what_is_wrong_is_said_once_for_each_name() {
    let mut catalogue = catalogue();
    assert!(catalogue.problems().is_empty());
    catalogue.quarantine(Unusable::new(&plain("f"), "one"), Origin::Config, false);
    catalogue.quarantine(Unusable::new(&plain("f"), "two"), Origin::Deployed, false);
    catalogue.quarantine(Unusable::new(&plain("g"), "three"), Origin::Deployed, false);
    let expected = [("f", "one; two"), ("g", "three")];
    let expected = expected.map(|(name, text)| (Subject::Function(name.to_owned()), text.to_owned()));
    assert_eq!(catalogue.problems(), BTreeMap::from(expected));
}

#[test]
fn what_is_deployed_takes_neither_name_nor_route_of_what_is_quarantined() {
    let mut catalogue = catalogue_at([address(9)]);
    let at = |name: &str, route: &str| config(name, json!({ "route": route }));
    catalogue.quarantine(Unusable::new(&at("broken", "/there"), "no"), Origin::Config, false);
    catalogue.quarantine(Unusable::new(&at("own", "/own"), "no"), Origin::Deployed, false);
    let check = |config| catalogue.check_deployed(&config);
    assert!(matches!(check(at("broken", "/else")), Err(CatalogueError::Configured(name)) if name == "broken"));
    let held = check(at("f", "/there"));
    assert!(matches!(held, Err(CatalogueError::Held { route, other }) if (&*route, &*other) == ("/there", "broken")));
    assert!(check(at("own", "/own")).is_ok(), "it is mended");
    assert!(check(at("f", "/free")).is_ok());
    assert!(check(config("f", json!({ "route": "/there", "listen": address(9).to_string() }))).is_ok(), "another address");
    // What is not its own is said first.
    catalogue.serve(plain("c"), Origin::Config);
    assert!(matches!(catalogue.check_deployed(&plain("c")), Err(CatalogueError::Configured(_))));
    // Where the version before is kept, the route is that one's.
    catalogue.serve(at("kept", "/kept"), Origin::Deployed);
    catalogue.quarantine(Unusable::new(&at("kept", "/next"), "no"), Origin::Deployed, true);
    assert!(catalogue.check_deployed(&at("f", "/next")).is_ok());
    assert!(matches!(catalogue.check_deployed(&at("f", "/kept")), Err(CatalogueError::Route { .. })));
}

#[test]
fn what_has_an_address_that_cannot_be_had_is_quarantined() {
    let mut catalogue = catalogue_at([address(9), address(10)]);
    for (name, listen) in [("a", Some(9)), ("b", Some(10)), ("c", None), ("d", Some(9))] {
        catalogue.serve(config(name, json!({ "listen": listen.map(|port| address(port).to_string()) })), Origin::Config);
    }
    let gone = catalogue.refuse_address(address(9), "taken");
    assert_eq!(names(&gone), ["a", "d"]);
    assert_eq!(catalogue.addresses(), &BTreeSet::from([address(10)]));
    let quarantined: Vec<_> = catalogue.quarantined().iter().map(|(name, origin, _)| (name, origin)).collect();
    assert_eq!(quarantined, [("a", Origin::Config), ("d", Origin::Config)]);
    assert_eq!(catalogue.answers(Some(address(10)), "/b"), Ok("b".to_owned()));
}

#[test]
fn deployed_functions_are_in_the_way_of_those_of_the_configuration() {
    let mut catalogue = catalogue();
    let at = |name: &str, route: &str| config(name, json!({ "route": route }));
    catalogue.serve(at("d", "/d"), Origin::Deployed);
    catalogue.serve(at("e", "/e"), Origin::Deployed);
    catalogue.serve(at("c", "/c"), Origin::Config);
    let in_the_way = |name: &str, route: &str| {
        catalogue.in_the_way_of(&at(name, route)).into_iter().map(|config| config.name).collect::<Vec<_>>()
    };
    assert_eq!(in_the_way("d", "/e"), ["d", "e"]);
    assert_eq!(in_the_way("d", "/d"), ["d"], "once");
    assert_eq!(in_the_way("f", "/e"), ["e"]);
    assert!(in_the_way("c", "/f").is_empty() && in_the_way("f", "/c").is_empty());
    let has_configured = |name: &str, route: &str| catalogue.has_configured_at(&at(name, route));
    assert!(has_configured("f", "/c") && has_configured("d", "/c"));
    assert!(!has_configured("c", "/c") && !has_configured("f", "/d") && !has_configured("f", "/f"));
}

#[test]
fn operators_see_functions_by_name_with_all_there_is_to_know() {
    let mut catalogue = catalogue_at([address(9)]);
    let settings = json!({ "listen": address(9).to_string(), "methods": ["GET"], "tenant": "t", "deadline_ms": 77 });
    catalogue.serve(config("z", settings), Origin::Deployed);
    catalogue.quarantine(Unusable::new(&config("b", json!({ "deadline_ms": 78 })), "broken"), Origin::Config, false);
    catalogue.serve(plain("a"), Origin::Config);
    assert_eq!(catalogue.list().iter().map(|info| &*info.name).collect::<Vec<_>>(), ["a", "b", "z"]);
    assert!(catalogue.list().iter().all(|info| info.settings.is_empty()));
    let info = catalogue.info("z").unwrap();
    assert_eq!((&*info.route, info.listen, &*info.tenant), ("/z", Some(address(9).to_string()), "t"));
    assert_eq!((info.methods, info.origin, info.state), (vec!["GET".to_owned()], Origin::Deployed, State::Served));
    assert_eq!((info.digest, info.problem), (Some(blake3::hash(b"z").to_hex().to_string()), None));
    assert!(info.code_bytes.is_some_and(|bytes| bytes > 0) && info.phases.is_empty());
    assert_eq!(info.settings["deadline_ms"], 77);
    // Of one that is quarantined as far as they are known.
    let info = catalogue.info("b").unwrap();
    assert_eq!(
        (info.state, info.origin, info.version, &info.settings["deadline_ms"]),
        (State::Quarantined, Origin::Config, None, &json!(78))
    );
    catalogue.quarantine(Unusable { has_settings: false, ..Unusable::new(&plain("b"), "broken") }, Origin::Config, false);
    assert!(catalogue.info("b").unwrap().settings.is_empty());
    assert!(catalogue.info("c").is_none());
    // One that is quarantined beside one of its name that is defined elsewhere.
    catalogue.quarantine(Unusable::new(&plain("z"), "mine"), Origin::Config, false);
    let of_z =
        catalogue.list().into_iter().filter(|info| info.name == "z").map(|info| (info.origin, info.problem)).collect::<Vec<_>>();
    assert_eq!(of_z, [(Origin::Deployed, None), (Origin::Config, Some("mine".to_owned()))]);
}

#[test]
fn phases_are_known_by_function_tenant_and_name() {
    let mut catalogue = catalogue();
    let phases = json!([{ "id": 0, "name": "parse", "cpu_us": 1_500_000 }, { "id": 3, "name": "wait", "cpu_us": 2_000, "cpu_percent": 25 }]);
    catalogue.serve(plain("a"), Origin::Config);
    catalogue.serve(config("f", json!({ "tenant": "t", "phases": phases })), Origin::Config);
    let names = |phase: &str| ["f", "t", phase].map(str::to_owned);
    assert_eq!(catalogue.phases(), [(names("parse"), Some(1.5), 1.0), (names("wait"), Some(0.002), 0.25)]);
    let info = catalogue.info("f").unwrap();
    assert_eq!(info.phases.iter().map(|phase| &*phase.name).collect::<Vec<_>>(), ["parse", "wait"]);
}

#[test]
fn versions_count_as_retired_until_they_are_gone() {
    let mut catalogue = catalogue();
    catalogue.serve(plain("f"), Origin::Config);
    catalogue.serve(plain("g"), Origin::Config);
    assert_eq!(catalogue.retired(), 0);
    let mut running: Vec<_> = (0..20).filter_map(|_| catalogue.serve(plain("f"), Origin::Config)).collect();
    running.extend(catalogue.remove("g", Origin::Config).unwrap());
    let of = |catalogue: &Catalogue, name: &str| catalogue.info(name).map(|info| info.retired);
    assert_eq!((catalogue.retired(), of(&catalogue, "f"), of(&catalogue, "g")), (21, Some(20), None));
    running.truncate(3);
    assert_eq!((catalogue.retired(), of(&catalogue, "f")), (3, Some(3)));
    // However often a function is replaced, little is kept of what is gone; and it is not looked for each time.
    let mut most = 0;
    for _ in 0..200 {
        drop(catalogue.serve(plain("f"), Origin::Config));
        most = most.max(catalogue.retired.len());
        assert!(catalogue.retired.len() <= 2 * 21, "{}", catalogue.retired.len());
    }
    assert!(most >= RETIRED_MIN, "{most}");
    assert_eq!(catalogue.retired(), 3, "what still runs is not forgotten");
    running.extend((0..40).filter_map(|_| catalogue.serve(plain("f"), Origin::Config)));
    assert!(catalogue.retired_max >= 43 + 15, "not before it is about twice as much: {}", catalogue.retired_max);
    assert_eq!(catalogue.retired(), 43);
}

#[test]
fn secrets_that_have_changed_are_seen() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    let write = |secret: &str| {
        fs::write(&file, secret).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("one");
    let mut config = config("f", json!({ "env": { "PLAIN": "text" } }));
    config.env.insert("SECRET".to_owned(), crate::secret::Variable::Secret(crate::secret::Secret::File(file.clone())));
    let mut catalogue = catalogue();
    catalogue.serve(config.clone(), Origin::Config);
    let is_same = || catalogue.get("f").unwrap().has_the_secrets_of(&config);
    assert!(is_same());
    write("two");
    assert!(!is_same());
    write("one");
    assert!(is_same());
    fs::remove_file(&file).unwrap();
    assert!(!is_same(), "it cannot be read");
}

#[test]
fn functions_share_what_the_server_has() {
    let store = Store::Embedded(Embedded::in_memory(KvLimits::default()).unwrap());
    let budget = Budget::new(1 << 30);
    let mut catalogue = Catalogue::new(2, Arc::clone(&budget), Some(store), Arc::default(), BTreeSet::new());
    assert!(catalogue.kv().is_some() && Arc::ptr_eq(catalogue.budget(), &budget));
    catalogue.serve(plain("f"), Origin::Config);
    let function = catalogue.function("f");
    assert!(function.process.kv.is_some());
    let sandbox = function.template.instantiate().unwrap();
    assert!(budget.bytes_used() > 0, "its sandboxes are counted");
    drop(sandbox);
    assert_eq!((budget.bytes_used(), function.deadline), (0, Duration::from_millis(plain("f").deadline_ms)));
    assert!(self::catalogue().kv().is_none());
}

#[test]
fn routes_come_with_what_applications_offer() {
    let mut catalogue = catalogue();
    let offer = |service: &str| Arc::new(Offer { services: vec![service.to_owned()], ..Offer::default() });
    let offered = |catalogue: &Catalogue, site: Site| {
        let router = catalogue.router();
        router.offers(site).iter().flat_map(|offer| offer.services.clone()).collect::<Vec<_>>()
    };
    catalogue.set_offers(vec![(None, offer("a.A")), (None, offer("b.B")), (Some(address(1)), offer("c.C"))]);
    assert_eq!(
        (offered(&catalogue, None), offered(&catalogue, Some(address(1)))),
        (vec!["a.A".to_owned(), "b.B".to_owned()], vec!["c.C".to_owned()])
    );
    catalogue.set_offers(vec![(None, offer("d.D"))]);
    assert_eq!((offered(&catalogue, None), offered(&catalogue, Some(address(1)))), (vec!["d.D".to_owned()], vec![]));
}

/// Calls of other functions, and what operators ask of the function, are about the version that is served.
#[test]
fn a_canary_gets_requests_only() {
    let mut catalogue = catalogue();
    catalogue.serve(plain("caller"), Origin::Deployed);
    catalogue.serve(plain("f"), Origin::Deployed);
    let (present, neighbours) = (catalogue.function("f"), Arc::clone(&catalogue.function("caller").neighbours));
    let try_out = |catalogue: &mut Catalogue, config| {
        let share = Share { percent: 100, sticky: None };
        let part = (share, Arc::new(Counts::new(mpsc::channel().0)));
        catalogue.try_out(candidate(config), Arc::new([]), None, part)
    };
    assert_eq!(try_out(&mut catalogue, plain("f")).unwrap().len(), 0);
    let first = Arc::clone(&catalogue.canary("f").unwrap().function);
    assert!(Arc::ptr_eq(&neighbours.find("f").unwrap(), &present) && Arc::ptr_eq(&catalogue.function("f"), &present));
    assert!(Arc::ptr_eq(&first.gate, &present.gate) && Arc::ptr_eq(&first.log, &present.log));
    // The next one takes its place.
    let gone = try_out(&mut catalogue, plain("f")).unwrap();
    assert!(gone.len() == 1 && Arc::ptr_eq(&gone[0], &first) && first.retired.load(Ordering::Relaxed));
    let second = Arc::clone(&catalogue.canary("f").unwrap().function);
    let gone = catalogue.promote("f", Some(7)).unwrap();
    assert!(gone.len() == 1 && Arc::ptr_eq(&gone[0], &present) && present.retired.load(Ordering::Relaxed));
    assert!(Arc::ptr_eq(&catalogue.function("f"), &second) && Arc::ptr_eq(&neighbours.find("f").unwrap(), &second));
    assert!(catalogue.info("f").unwrap().version == Some(7) && !second.retired.load(Ordering::Relaxed));
    assert!(matches!(catalogue.promote("f", None), Err(CatalogueError::NoCanary(_))));
    // Whatever ends the function ends both.
    try_out(&mut catalogue, plain("f")).unwrap();
    assert_eq!(catalogue.put(candidate(plain("f")), Origin::Deployed).len(), 2);
    try_out(&mut catalogue, plain("f")).unwrap();
    assert_eq!(catalogue.give_up("f", Some("it was bad".to_owned())).unwrap().len(), 1);
    assert_eq!(catalogue.info("f").unwrap().given_up.as_deref(), Some("it was bad"));
    try_out(&mut catalogue, plain("f")).unwrap();
    assert_eq!(catalogue.info("f").unwrap().given_up, None);
    assert_eq!(catalogue.quarantine(Unusable::new(&plain("f"), "no"), Origin::Deployed, false).len(), 2);
    assert!(matches!(try_out(&mut catalogue, plain("f")), Err(CatalogueError::Alone(_))));
}

/// One that is served by its first tier, as the version of that number.
fn first(config: FunctionConfig, version: Option<u64>) -> Candidate {
    let candidate = candidate(config);
    Candidate { version, module: Some(Arc::new([1, 2])), loaded: candidate.loaded.in_tier(Tier::First), ..candidate }
}

fn optimised(config: &FunctionConfig) -> Loaded {
    by_hand::loaded(config).in_tier(Tier::Optimised)
}

#[test]
fn optimised_code_is_the_same_version_and_shares_its_limits_but_nothing_that_was_learned() {
    let limits = json!({ "concurrency_max": 3, "queue_max": 1, "deadline_ms": 1_000, "cpu_ms_max": 100 });
    let mut catalogue = catalogue();
    catalogue.serve(plain("caller"), Origin::Deployed);
    let neighbours = Arc::clone(&catalogue.function("caller").neighbours);
    catalogue.put(first(config("f", limits.clone()), Some(4)), Origin::Deployed);
    catalogue.serve(plain("other"), Origin::Config);
    let before = catalogue.function("f");
    before.gate.observe(Duration::from_secs(1));
    assert_eq!(catalogue.firsts().iter().map(|first| first.function.name()).collect::<Vec<_>>(), ["f"]);
    assert_eq!((catalogue.module_bytes(), catalogue.info("f").unwrap().tier), (2, Some("first")));
    assert_eq!((before.deadline, before.cpu_max), (Duration::from_secs(4), Duration::from_millis(400)), "lenient");

    let retired = catalogue.optimise(&before, optimised(&config("f", limits))).unwrap();
    let now = catalogue.function("f");
    assert!(Arc::ptr_eq(&retired, &before) && before.retired.load(Ordering::Relaxed) && !now.retired.load(Ordering::Relaxed));
    assert!(Arc::ptr_eq(&neighbours.find("f").unwrap(), &now));
    assert_eq!((now.deadline, now.cpu_max), (Duration::from_secs(1), Duration::from_millis(100)));
    // What operators know it by, and what limits it.
    assert_eq!((now.shown_version, catalogue.info("f").unwrap().version, now.digest), (4, Some(4), before.digest));
    assert!(Arc::ptr_eq(&now.gate, &before.gate) && Arc::ptr_eq(&now.log, &before.log));
    assert!(Arc::ptr_eq(&now.labels, &before.labels));
    // What is learned.
    assert!(now.version > before.version && now.number != before.number && now.gate.expected().is_zero());
    assert_eq!(
        (catalogue.firsts().len(), catalogue.module_bytes(), catalogue.info("f").unwrap().tier),
        (0, 0, Some("optimised"))
    );
    // The next version's first tier has the number of first tiers again, and its optimised code that of optimised code.
    catalogue.put(first(plain("f"), Some(5)), Origin::Deployed);
    let next = catalogue.function("f");
    assert_eq!((next.number, now.number != before.number), (before.number, true));
    assert!(matches!(catalogue.optimise(&before, optimised(&plain("f"))), Err(NotOptimised::Gone)), "it was replaced");
    catalogue.optimise(&next, optimised(&plain("f"))).unwrap();
    assert_eq!(catalogue.function("f").number, now.number);
}

#[test]
fn a_canary_is_optimised_where_it_is_and_stays_the_canary() {
    let mut catalogue = catalogue();
    catalogue.serve(plain("f"), Origin::Deployed);
    let present = catalogue.function("f");
    let part = (Share { percent: 30, sticky: None }, Arc::new(Counts::new(mpsc::channel().0)));
    catalogue.try_out(first(plain("f"), Some(9)), Arc::new([1]), None, part).unwrap();
    let before = Arc::clone(&catalogue.canary("f").unwrap().function);
    let progress = catalogue.canary("f").unwrap().progress();
    assert_eq!(catalogue.firsts().len(), 1);
    catalogue.optimise(&before, optimised(&plain("f"))).unwrap();
    let now = Arc::clone(&catalogue.canary("f").unwrap().function);
    assert_eq!((catalogue.canary("f").unwrap().progress(), now.tier), (progress, Tier::Optimised));
    assert!(Arc::ptr_eq(&catalogue.function("f"), &present) && before.retired.load(Ordering::Relaxed));
    // One that is promoted before that keeps its module until then.
    let part = (Share { percent: 30, sticky: None }, Arc::new(Counts::new(mpsc::channel().0)));
    catalogue.try_out(first(plain("f"), Some(10)), Arc::new([1, 2, 3]), None, part).unwrap();
    catalogue.promote("f", Some(10)).unwrap();
    assert_eq!((catalogue.module_bytes(), catalogue.firsts().len()), (3, 1));
    let served = catalogue.function("f");
    catalogue.optimise(&served, optimised(&plain("f"))).unwrap();
    assert_eq!((catalogue.module_bytes(), catalogue.info("f").unwrap().version), (0, Some(10)));
}

#[test]
fn a_first_tier_stays_where_a_secret_has_changed() {
    let mut catalogue = catalogue();
    catalogue.put(first(config("f", json!({ "env": { "KEY": "old" } })), None), Origin::Config);
    let before = catalogue.function("f");
    let new = optimised(&config("f", json!({ "env": { "KEY": "new" } })));
    assert_eq!(catalogue.optimise(&before, new).map(drop), Err(NotOptimised::Secrets));
    assert!(Arc::ptr_eq(&catalogue.function("f"), &before) && !before.retired.load(Ordering::Relaxed));
}

#[test]
fn paths_that_have_moved_belong_to_the_configuration() {
    let mut catalogue = catalogue_at([address(1)]);
    let redirects = |routes: &[(&str, Option<u8>)]| {
        let redirect = |(route, at): &(&str, Option<u8>)| {
            let listen = at.map(|at| address(at.into()).to_string());
            RedirectConfig { route: (*route).to_owned(), to: "/to".to_owned(), status: 307, listen }
        };
        let redirects = routes.iter().map(redirect);
        redirects.map(|redirect| (redirect.site(), Arc::new(Redirect::new(&redirect)))).collect::<Vec<_>>()
    };
    catalogue.serve(plain("f"), Origin::Deployed);
    catalogue.serve(plain("g"), Origin::Config);
    assert!(catalogue.set_redirects(redirects(&[("/f", Some(1)), ("/h", None)])));
    assert!(!catalogue.set_redirects(redirects(&[("/f", Some(1)), ("/h", None)])), "it is the same");
    // Those at another address are not in its way.
    assert!(catalogue.in_the_way_of_the_server().is_empty());
    let answers = |site, path| catalogue.answers(site, path).unwrap_or_default();
    assert_eq!([answers(None, "/f"), answers(Some(address(1)), "/f"), answers(None, "/h")], ["f", "redirect /f", "redirect /h"]);
    let at = |name: &str, routes: &[&str]| config(name, json!({ "routes": routes }));
    let taken = catalogue.check_deployed(&at("h", &["/x", "/h"]));
    assert!(matches!(taken, Err(CatalogueError::Redirect(route)) if route == "/h"));
    assert!(catalogue.check_deployed(&at("h", &["/x", "/h/*"])).is_ok());
    assert!(catalogue.set_redirects(redirects(&[("/f", None), ("/g", None)])));
    let in_the_way = catalogue.in_the_way_of_the_server();
    assert_eq!(in_the_way.iter().map(|(config, _)| config.name.as_str()).collect::<Vec<_>>(), ["f"]);
}

#[test]
fn what_executions_go_by_goes_with_the_versions_and_definitions_of_which_it_is() {
    let mut catalogue = catalogue();
    let workflow = |kind: &str| -> Defined {
        let config = serde_json::from_value(json!({ "name": "w", "path": "w.json" })).unwrap();
        let text = format!(r#"{{ "StartAt": "A", "States": {{ "A": {{ "Type": "{kind}" }} }} }}"#);
        (config, Ok(Definition::parse(&text).unwrap()))
    };
    catalogue.set_workflows(vec![workflow("Succeed")]);
    let fingerprint = catalogue.workflows()[0].definition().unwrap().fingerprint();
    let known = Arc::clone(&catalogue.speculation["default"]);
    let versions: Vec<u64> = ["f", "g"]
        .into_iter()
        .map(|name| {
            catalogue.serve(plain(name), Origin::Config);
            catalogue.function(name).version
        })
        .collect();
    let key = known.key("f", &json!(1));
    for version in &versions {
        known.answered(Of { name: "f", version: *version }, key, &Ok(Arc::new(json!(2))), Rest::default());
    }
    let state = catalogue.workflows()[0].definition().unwrap().find("A").unwrap();
    (0..3).for_each(|_| known.took(fingerprint, state, Duration::from_secs(1)));
    let is_known = || known.remaining(fingerprint, state, Duration::ZERO).is_some();
    let answers = || versions.iter().map(|version| known.answer(*version, &key).is_some()).collect::<Vec<_>>();
    assert!(!catalogue.set_workflows(vec![workflow("Succeed")]) && is_known() && answers() == [true, true]);
    catalogue.serve(plain("f"), Origin::Config);
    assert_eq!((answers(), is_known()), (vec![false, true], true));
    catalogue.set_workflows(vec![workflow("Fail")]);
    assert_eq!((answers(), is_known()), (vec![false, true], false));
}
