//! What is wrong with applications. What is wrong with the settings of their functions is found where those of all functions are checked.

use std::collections::HashMap;

use hyper::Uri;

use super::{APPLICATIONS_MAX, ApplicationConfig, ApplicationFunction, Expose, LOCAL, ORIGINS_MAX, services_of};
use crate::config::check::{Problems, is_name};
use crate::config::cors::{is_origin, not_an_origin};
use crate::config::{BODY_BYTES_MAX, Config, nearest};

/// Bytes of the full name of a service.
const SERVICE_BYTES_MAX: usize = 190;

/// Checks all applications.
pub(in crate::config) fn check(config: &Config, problems: &mut Problems<'_>) {
    let count = config.applications.len();
    if count > APPLICATIONS_MAX {
        problems.push("applications", format!("{count} applications; a server has at most {APPLICATIONS_MAX}"));
    }
    let mut names = HashMap::new();
    for (index, application) in config.applications.iter().enumerate() {
        let at = format!("applications[{index}]");
        let name = &application.name;
        if !is_name(name) {
            let rule = "give letters, digits, `.`, `-`, `_`, not starting with `.`";
            problems.push(format!("{at}.name"), format!("`{}` is not a valid application name; {rule}", name.escape_default()));
        } else if let Some(other) = names.insert(name, index) {
            problems.push(format!("{at}.name"), format!("`{name}` is also used by applications[{other}]"));
        } else {
            one(&at, application, problems);
        }
    }
}

fn one(at: &str, application: &ApplicationConfig, problems: &mut Problems<'_>) {
    if application.functions.is_empty() {
        problems.push(format!("{at}.functions"), "is empty; an application has at least one function");
    }
    let bytes = application.message_bytes_max;
    if !(1..=BODY_BYTES_MAX).contains(&(bytes as u64)) {
        problems.push(format!("{at}.message_bytes_max"), format!("{bytes} is out of range; give 1 to {BODY_BYTES_MAX}"));
    }
    let count = application.cors_origins.len();
    if count > ORIGINS_MAX {
        problems.push(format!("{at}.cors_origins"), format!("{count} origins; an application has at most {ORIGINS_MAX}"));
    }
    for (index, origin) in application.cors_origins.iter().enumerate() {
        if !is_origin(origin) {
            problems.push(format!("{at}.cors_origins[{index}]"), not_an_origin(origin));
        }
    }
    // Before it is built nothing is known of its .proto files; then there is nothing to serve either.
    let known = match services_of(application) {
        Ok(known) => known.filter(|_| !application.protos.is_empty()),
        Err(error) => {
            let file = application.descriptors();
            let again = format!("{}: {error}; run `sledge build {}`", file.display(), application.name);
            problems.push(format!("{at}.protos"), again);
            None
        }
    };
    let mut offered: HashMap<&str, usize> = HashMap::new();
    for (index, function) in application.functions.iter().enumerate() {
        let at = format!("{at}.functions[{index}]");
        if let Some(other) = application.functions[..index].iter().position(|other| other.name == function.name) {
            problems
                .push(format!("{at}.name"), format!("`{}` is also used by functions[{other}]", function.name.escape_default()));
        }
        if function.services.is_empty() {
            problems
                .push(format!("{at}.services"), "is empty; name the services that the program offers, such as [\"shop.Cart\"]");
        }
        for (place, service) in function.services.iter().enumerate() {
            let key = format!("{at}.services[{place}]");
            if !is_service(service) {
                problems.push(key, not_a_service(service));
            } else if let Some(other) = offered.insert(service, index) {
                let by = if other == index { "twice".to_owned() } else { format!("by functions[{other}], too") };
                problems.push(key, format!("`{service}` is offered {by}; one function of an application offers a service"));
            } else if let Some(known) = &known {
                in_protos(key, service, application, known, problems);
            }
        }
        exposed(&at, function, problems);
    }
    for (index, function) in application.functions.iter().enumerate() {
        for (service, to) in &function.calls {
            let key = format!("{at}.functions[{index}].calls.{}", service.escape_default());
            if !is_service(service) {
                problems.push(key, not_a_service(service));
                continue;
            }
            if to == LOCAL {
                if !offered.contains_key(service.as_str()) {
                    problems.push(key, not_offered(application, service, offered.keys().copied()));
                    continue;
                }
            } else if let Err(why) = check_url(to) {
                problems.push(
                    key.clone(),
                    format!("`{}` {why}; give `local` or an address such as https://pay.example:443", to.escape_default()),
                );
            }
            if let Some(known) = &known {
                in_protos(key, service, application, known, problems);
            }
        }
    }
}

fn exposed(at: &str, function: &ApplicationFunction, problems: &mut Problems<'_>) {
    let Some(Expose::Services(exposed)) = &function.expose else { return };
    for (place, service) in exposed.iter().enumerate() {
        if !function.services.contains(service) {
            let offers = if function.services.is_empty() { "none".to_owned() } else { function.services.join(", ") };
            let why = format!("`{}` is not offered by this function; its services: {offers}", service.escape_default());
            problems.push(format!("{at}.expose[{place}]"), why);
        }
    }
}

fn in_protos(key: String, service: &str, application: &ApplicationConfig, known: &[String], problems: &mut Problems<'_>) {
    if known.iter().all(|one| one != service) {
        let what = match nearest(service, known.iter().map(String::as_str)) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None if known.is_empty() => "they have no service".to_owned(),
            None => format!("their services: {}", known.join(", ")),
        };
        let again = if application.is_described {
            String::new()
        } else {
            format!(" (if they have it now, run `sledge build {}`)", application.name)
        };
        problems.push(key, format!("`{service}` is no service of the application's .proto files; {what}{again}"));
    }
}

fn not_offered<'a>(application: &ApplicationConfig, service: &str, offered: impl Iterator<Item = &'a str> + Clone) -> String {
    let what = match nearest(service, offered) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => {
            "name it in `services` of the function that does, or give the address of a server, such as https://pay.example:443"
                .to_owned()
        }
    };
    format!("no function of `{}` offers `{service}`; {what}", application.name)
}

/// The full name of a service, as paths of requests have it.
pub(super) fn is_service(name: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.len() <= SERVICE_BYTES_MAX && name.split('.').all(is_word)
}

fn not_a_service(name: &str) -> String {
    format!("`{}` is not the full name of a service; give PACKAGE.SERVICE, such as shop.Cart", name.escape_default())
}

/// An address of a server, without a path.
pub(super) fn check_url(text: &str) -> Result<(), &'static str> {
    let url: Uri = text.parse().map_err(|_| "is neither `local` nor an address")?;
    match (url.scheme_str(), url.authority()) {
        (Some("http" | "https"), Some(authority)) if !authority.host().is_empty() => {
            if authority.as_str().contains('@') {
                return Err("has a user in it");
            }
            if !matches!(url.path(), "" | "/") || url.query().is_some() {
                return Err("has a path; a call has its own");
            }
            Ok(())
        }
        _ => Err("is neither `local` nor an address with http:// or https://"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_and_addresses() {
        for good in ["Greeter", "shop.Cart", "a.b_1.C", "_x.Y"] {
            assert!(is_service(good), "{good}");
        }
        for bad in ["", ".", "a.", "shop..Cart", "shop/Cart", "/shop.Cart", "1a", "shop.Cart*", &"a".repeat(191)] {
            assert!(!is_service(bad), "{bad}");
        }
        for good in ["https://pay.example:443", "http://10.0.0.1:50051", "https://pay.example/", "http://[::1]:1"] {
            assert_eq!(check_url(good), Ok(()), "{good}");
        }
        for bad in ["remote", "", "pay.example:443", "https://", "ftp://a", "https://a/b", "https://a?b", "https://u@a", "local "]
        {
            assert!(check_url(bad).is_err(), "{bad}");
        }
    }
}
