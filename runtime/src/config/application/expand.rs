//! From an application to functions.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::check::{check_url, is_service};
use super::{ApplicationConfig, ApplicationFunction, LOCAL};
use crate::config::{BodyMode, EdgeConfig, FunctionConfig};

/// The export of a program that runs its `main` up to where it would serve.
const INIT: &str = "init-component";

/// A setting of a function of an application that is no setting, or has the wrong type.
pub(in crate::config) type Wrong = (String, serde_json::Error);

/// The functions of an application, those that are called before those that call them. `at` is the application's key.
///
/// # Errors
/// Settings whose values have the wrong type, by their keys. What is wrong beyond that is [checked](super::check) later, and left out here.
pub(in crate::config) fn expand(at: &str, application: &ApplicationConfig) -> Result<Vec<FunctionConfig>, Vec<Wrong>> {
    let (mut functions, mut wrong) = (Vec::new(), Vec::new());
    let is_first =
        |index: &usize| application.functions[..*index].iter().all(|other| other.name != application.functions[*index].name);
    for index in callees_first(application).into_iter().filter(is_first) {
        match function(application, &application.functions[index]) {
            Ok(function) => functions.push(function),
            Err(error) => {
                let path = error.path().to_string();
                let inner = if path == "." { String::new() } else { format!(".{path}") };
                wrong.push((format!("{at}.functions[{index}]{inner}"), error.into_inner()));
            }
        }
    }
    if wrong.is_empty() { Ok(functions) } else { Err(wrong) }
}

fn function(
    application: &ApplicationConfig,
    function: &ApplicationFunction,
) -> Result<FunctionConfig, serde_path_to_error::Error<serde_json::Error>> {
    let mut settings = function.settings.0.clone();
    // A program reads the clock and random numbers before its `main` does: those are the same for all requests.
    settings.entry("snapshot").or_insert_with(|| json!("shared-seed"));
    // What a callee leaves in its memory is dropped with the request, not with each call.
    settings.entry("instance").or_insert_with(|| json!("request"));
    settings.insert("name".to_owned(), application.full_name(function).into());
    settings.insert("path".to_owned(), "".into());
    let mut config: FunctionConfig = serde_path_to_error::deserialize(Value::Object(settings))?;
    config.path = application.artifact(function);
    config.application = Some(application.name.clone());
    config.tenant = application.tenant.clone().unwrap_or_else(|| application.name.clone());
    let exposed = application.exposed(function);
    // What no client reaches there needs no address.
    config.listen = application.listen.clone().filter(|_| !exposed.is_empty());
    config.routes = Some(exposed.into_iter().map(|service| format!("/{service}/*")).collect());
    config.methods = vec!["POST".to_owned()];
    config.content_type = "application/grpc".to_owned();
    config.body = BodyMode::Stream;
    config.init = Some(INIT.to_owned());
    let edge = |(service, to): (&String, &String)| {
        let edge = if to == LOCAL {
            EdgeConfig::Function(application.full_name(application.offering(service)?))
        } else {
            EdgeConfig::Url(to.clone())
        };
        Some((service.clone(), edge))
    };
    let is_right = |(service, to): &(&String, &String)| is_service(service) && (*to == LOCAL || check_url(to).is_ok());
    config.edges = function.calls.iter().filter(is_right).filter_map(edge).collect();
    Ok(config)
}

/// Functions by their places, each behind those that it calls; of a cycle in the order in which it is met, otherwise as they stand there.
fn callees_first(application: &ApplicationConfig) -> Vec<usize> {
    let mut offers: HashMap<&str, usize> = HashMap::new();
    for (index, function) in application.functions.iter().enumerate() {
        for service in &function.services {
            offers.entry(service).or_insert(index);
        }
    }
    let callees: Vec<Vec<usize>> = (application.functions.iter())
        .map(|function| {
            let local = function.calls.iter().filter(|(_, to)| *to == LOCAL);
            local.filter_map(|(service, _)| offers.get(service.as_str()).copied()).collect()
        })
        .collect();
    let (mut order, mut is_met) = (Vec::new(), vec![false; callees.len()]);
    for start in 0..callees.len() {
        // Not by recursion: an application may have thousands of functions in a row.
        let mut path = Vec::new();
        if !std::mem::replace(&mut is_met[start], true) {
            path.push((start, 0));
        }
        while let Some((at, next)) = path.last_mut() {
            let Some(&callee) = callees[*at].get(*next) else {
                order.push(*at);
                path.pop();
                continue;
            };
            *next += 1;
            if !std::mem::replace(&mut is_met[callee], true) {
                path.push((callee, 0));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(toml: &str) -> ApplicationConfig {
        toml::from_str(&format!("name = 'shop'\n{toml}")).unwrap()
    }

    fn functions(toml: &str) -> Vec<FunctionConfig> {
        expand("applications[0]", &application(toml)).unwrap()
    }

    /// Three functions that call each other as given.
    fn names(calls: [&str; 3]) -> Vec<String> {
        let function = |name: &str, calls: &str| {
            let calls: Vec<String> = calls.split_whitespace().map(|to| format!("'p.{to}' = 'local'")).collect();
            format!("[[functions]]\nname = '{name}'\nsource = ''\nservices = ['p.{name}']\ncalls = {{ {} }}\n", calls.join(", "))
        };
        let toml: Vec<String> = ["a", "b", "c"].iter().zip(calls).map(|(name, calls)| function(name, calls)).collect();
        functions(&toml.concat()).into_iter().map(|function| function.name).collect()
    }

    #[test]
    fn callees_come_first_and_cycles_end() {
        assert_eq!(names(["", "", ""]), ["shop.a", "shop.b", "shop.c"]);
        assert_eq!(names(["b", "c", ""]), ["shop.c", "shop.b", "shop.a"]);
        assert_eq!(names(["c", "a", ""]), ["shop.c", "shop.a", "shop.b"]);
        assert_eq!(names(["b", "a", "c"]), ["shop.b", "shop.a", "shop.c"]);
    }

    #[test]
    fn what_nobody_inside_calls_is_for_clients() {
        let toml = "listen = '127.0.0.1:9'\n[[functions]]\nname = 'a'\nsource = 's'\nservices = ['p.A', 'p.A2']\nmemory_bytes_max = 65536\n\
                    [functions.calls]\n'p.B' = 'local'\n'p.Far' = 'https://far:443'\n\
                    [[functions]]\nname = 'b'\nsource = 's'\nservices = ['p.B']\nsnapshot = 'off'\n[functions.calls]\n'p.A2' = 'local'\n";
        let all = functions(toml);
        let [b, a] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (&*a.routes(), a.listen.as_deref(), a.memory_bytes_max),
            (&["/p.A/*".to_owned()][..], Some("127.0.0.1:9"), 65536)
        );
        assert_eq!((&*a.tenant, a.init.as_deref(), a.body), ("shop", Some("init-component"), BodyMode::Stream));
        assert_eq!(a.edges["p.B"], EdgeConfig::Function("shop.b".to_owned()));
        assert_eq!(a.edges["p.Far"], EdgeConfig::Url("https://far:443".to_owned()));
        assert_eq!((b.routes().len(), b.listen.as_deref(), b.snapshot), (0, None, crate::config::Snapshot::Off));
    }

    #[test]
    fn a_setting_of_the_wrong_type_is_named() {
        let toml = "[[functions]]\nname = 'a'\nsource = 's'\ndeadline_ms = 'soon'\n";
        let wrong = expand("applications[3]", &application(toml)).unwrap_err();
        assert_eq!(wrong[0].0, "applications[3].functions[0].deadline_ms");
    }
}
