//! Which web pages of other origins may use a function (Cross-Origin Resource Sharing, in the Fetch standard).

use hyper::Method;
use hyper::header::HeaderName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FunctionConfig;
use super::check::Problems;

/// Origins of one function, and likewise methods and headers of each kind.
const ENTRIES_MAX: usize = 64;
/// The longest `max_age_s`: a day. No browser believes it for longer.
const MAX_AGE_S_MAX: u32 = 86_400;
/// What stands for all.
pub const ALL: &str = "*";

/// Which web pages of other origins may use a function. The server answers their preflights, without running the function, and sets the headers of CORS in all replies, in place of the
/// function's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorsConfig {
    /// Origins of pages that may use it, such as `https://shop.example`, or `*` for all.
    #[schemars(length(min = 1, max = 64))]
    pub origins: Vec<String>,
    /// Methods that pages may use. Default: all that the function answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub methods: Option<Vec<String>>,
    /// Headers that pages may send beside those that any page may, or `*` for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub headers: Vec<String>,
    /// Headers of replies that pages see beside those that any page does, or `*` for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub exposed_headers: Vec<String>,
    /// Whether requests of pages may have cookies and other credentials. Not with `*` as an origin or in `exposed_headers`.
    #[serde(default)]
    pub credentials: bool,
    /// For how long a browser need not ask again, in seconds.
    #[serde(default = "max_age_s_default")]
    #[schemars(range(max = 86_400))]
    pub max_age_s: u32,
}

const fn max_age_s_default() -> u32 {
    7_200
}

/// Checks what a function says; `at` is the key.
pub(super) fn check(at: &str, function: &FunctionConfig, cors: &CorsConfig, problems: &mut Problems<'_>) {
    let CorsConfig { origins, methods, headers, exposed_headers, credentials, max_age_s } = cors;
    let count = |key: &str| format!("{at}.{key}");
    if origins.is_empty() {
        problems.push(count("origins"), "is empty; give origins such as https://shop.example, or `*`");
    }
    let listed = methods.as_deref().unwrap_or_default();
    for (key, list) in
        [("origins", origins.as_slice()), ("methods", listed), ("headers", headers), ("exposed_headers", exposed_headers)]
    {
        if list.len() > ENTRIES_MAX {
            problems.push(count(key), format!("{} entries; give at most {ENTRIES_MAX}", list.len()));
        }
    }
    for (index, origin) in origins.iter().enumerate() {
        let key = format!("{at}.origins[{index}]");
        if !is_origin(origin) {
            problems.push(key, not_an_origin(origin));
        } else if origin == ALL && *credentials {
            problems.push(key, "`*` does not work with `credentials`: browsers want the origin by name; list the origins");
        } else if origin == ALL && origins.len() > 1 {
            problems.push(key, "`*` stands for all origins; leave the others out");
        }
    }
    for (index, method) in listed.iter().enumerate() {
        let is_answered = |method: &String| {
            function.methods.contains(method)
                || method == Method::HEAD.as_str() && function.methods.iter().any(|one| one == Method::GET.as_str())
        };
        if !is_answered(method) {
            let answered = function.methods.join(", ");
            let what = format!("the function does not answer `{}`; its `methods`: {answered}", method.escape_default());
            problems.push(format!("{at}.methods[{index}]"), what);
        }
    }
    for (key, list) in [("headers", headers), ("exposed_headers", exposed_headers)] {
        for (index, name) in list.iter().enumerate() {
            let key = format!("{at}.{key}[{index}]");
            if name == ALL && list.len() > 1 {
                problems.push(key, "`*` stands for all headers; leave the others out");
            } else if name != ALL && HeaderName::from_bytes(name.as_bytes()).is_err() {
                problems.push(key, format!("`{}` is not the name of a header", name.escape_default()));
            }
        }
    }
    if *credentials && exposed_headers.iter().any(|name| name == ALL) {
        problems
            .push(count("exposed_headers"), "`*` does not work with `credentials`: browsers want the headers by name; list them");
    }
    if *max_age_s > MAX_AGE_S_MAX {
        problems.push(count("max_age_s"), format!("{max_age_s} is out of range; give 0 to {MAX_AGE_S_MAX}"));
    }
}

/// What is said of an origin that is none.
pub(super) fn not_an_origin(text: &str) -> String {
    format!("`{}` is not an origin; give one such as https://shop.example, without a path, or `*`", text.escape_default())
}

/// Whether that is an origin as browsers send it (RFC 6454, 6.2), or stands for all.
pub(super) fn is_origin(text: &str) -> bool {
    let rest = ["https://", "http://"].into_iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_host = |rest: &str| {
        !rest.is_empty() && !rest.contains(|c: char| !c.is_ascii_graphic() || c.is_ascii_uppercase() || "/?#@*".contains(c))
    };
    text == ALL || rest.is_some_and(is_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_as_browsers_send_them() {
        for good in ["*", "https://shop.example", "http://localhost:3000", "http://[::1]:1"] {
            assert!(is_origin(good), "{good}");
        }
        for bad in [
            "",
            "null",
            "shop.example",
            "https://",
            "https://a/",
            "https://a/b",
            "https://*.a",
            "https://A",
            "ftp://a",
            "https://u@a",
        ] {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
