//! Paths that have moved, and where clients are sent that ask for them.

use std::net::SocketAddr;

use hyper::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Problems, route};

/// Redirects of one server.
pub const REDIRECTS_MAX: usize = 10_000;
/// Bytes of an address to which clients are sent.
const TO_BYTES_MAX: usize = 2_000;
/// The statuses that send a client elsewhere and keep what it asked for (RFC 9110, 15.4). 300, 303 and 304 say other things.
const STATUSES: [u16; 4] = [301, 302, 307, 308];

/// A path that has moved. The server sends clients on without running a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedirectConfig {
    /// The path, or a prefix: `/old/*` matches all paths below `/old/` that no other route matches.
    #[schemars(length(min = 1, max = 200))]
    pub route: String,
    /// Where the client is sent: a path of this server, or an address with `http://` or `https://`. If it ends with `/*`, the `*` becomes what the client's path has in
    /// place of the `*` of `route`. The query of the request is kept, unless this has one.
    #[schemars(length(min = 1, max = 2000))]
    pub to: String,
    /// The status: 301 or 308 if the path has moved for good, which browsers remember; 302 or 307 if it has not. With 307 and 308 the client repeats method and body.
    #[serde(default = "status_default")]
    #[schemars(extend("enum" = [301, 302, 307, 308]))]
    pub status: u16,
    /// The address, `IP:PORT`, if the path is one at an address that functions have to themselves (`listen`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
}

/// No browser remembers a mistake, and no request with a body becomes one without.
const fn status_default() -> u16 {
    307
}

impl RedirectConfig {
    /// The address at which the path is, if that is not the server's own.
    #[must_use]
    pub fn site(&self) -> Option<SocketAddr> {
        self.listen.as_deref().and_then(|listen| listen.parse().ok())
    }
}

/// Checks one by itself; `at` is its key, and `listens` says whether functions have an address.
pub(super) fn check(at: &str, redirect: &RedirectConfig, listens: impl Fn(&str) -> bool, problems: &mut Problems<'_>) {
    let RedirectConfig { route, to, status, listen } = redirect;
    self::route(format!("{at}.route"), route, problems);
    let shown = to.escape_default();
    let rest = to.strip_suffix("/*");
    if !is_target(rest.unwrap_or(to), rest.is_some()) {
        let rule = "give a path such as /new, or an address such as https://example.org/new, in ASCII; a `*` is allowed only at the end, as in /new/*";
        problems.push(format!("{at}.to"), format!("`{shown}` is nowhere to go; {rule}"));
    } else if rest.is_some() && !route.ends_with("/*") {
        problems.push(format!("{at}.to"), format!("`{shown}`: a `*` needs one at the end of `route`, as in /old/*"));
    } else if to == route {
        problems.push(format!("{at}.to"), format!("`{shown}` is `route` itself: clients would be sent there again and again"));
    }
    if !STATUSES.contains(status) {
        problems.push(format!("{at}.status"), format!("{status} is not a redirect; give 301, 302, 307 or 308"));
    }
    if let Some(listen) = listen.as_deref().filter(|listen| !listens(listen)) {
        problems.push(format!("{at}.listen"), format!("`{}` is not the address of a function", listen.escape_default()));
    }
}

/// Whether clients can be sent there; `is_prefix`: to what is below it.
fn is_target(to: &str, is_prefix: bool) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '*' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
    // What follows would become a part of the query.
    let is_path = !is_prefix || !to.contains(['?', '#']);
    if to.len() > TO_BYTES_MAX || !to.chars().all(is_plain) || !is_path {
        return false;
    }
    if to.starts_with('/') || to.is_empty() {
        // Two slashes begin with a host.
        return (is_prefix || !to.is_empty()) && !to.starts_with("//");
    }
    let uri: Result<Uri, _> = to.split('#').next().unwrap_or_default().parse();
    uri.is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.authority().is_some_and(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_sent_to_paths_and_to_addresses() {
        for good in ["/", "/a", "/a/?b=c#d", "https://a.example", "http://a:1/b?c#d", "http://[::1]:1/"] {
            assert!(is_target(good, false), "{good}");
        }
        for good in ["", "/a", "https://a.example", "https://a.example/b"] {
            assert!(is_target(good, true), "{good}/*");
        }
        let bad = [
            "",
            "a",
            "//a",
            "//",
            "ftp://a",
            "https://",
            "https://u@a/",
            "/a b",
            "/\u{e4}",
            "/a*",
            "/\\a",
            "javascript:a",
            "https:a",
        ];
        for bad in bad {
            assert!(!is_target(bad, false), "{bad}");
        }
        for bad in ["/a?b", "/a#b", "//a", "https://a?b"] {
            assert!(!is_target(bad, true), "{bad}/*");
        }
    }
}
