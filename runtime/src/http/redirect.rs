//! Paths that have moved: the server itself says where to, and no function runs.

use http_body_util::Either;
use hyper::header::{HeaderValue, LOCATION};
use hyper::{Response, StatusCode, Uri};

use super::handled::{Handled, Manner};
use super::response::{Answer, Whole};
use crate::config::RedirectConfig;
use crate::outcome::Failure;

/// Where clients are sent that ask for a path.
#[derive(Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The path, or what the path begins with: `/a/*`.
    pub pattern: Box<str>,
    status: StatusCode,
    /// Without what a path has of its own, and without the fragment.
    to: Box<str>,
    /// Behind the query: with its `#`, or empty.
    fragment: Box<str>,
    /// Where in a path that begins which is added to `to`.
    rest_at: Option<usize>,
    has_query: bool,
}

impl Redirect {
    /// What a configuration that was checked says.
    #[must_use]
    pub fn new(config: &RedirectConfig) -> Redirect {
        let RedirectConfig { route, to, status, .. } = config;
        let rest_at = to.ends_with("/*").then(|| route.len().saturating_sub(1));
        let to = if rest_at.is_some() { to.trim_end_matches('*') } else { to };
        let (to, fragment) = to.split_at(to.find('#').unwrap_or(to.len()));
        Redirect {
            pattern: route.as_str().into(),
            status: StatusCode::from_u16(*status).unwrap_or(StatusCode::TEMPORARY_REDIRECT),
            to: to.into(),
            fragment: fragment.into(),
            rest_at,
            has_query: to.contains('?'),
        }
    }

    /// The answer to a request for that.
    pub(super) fn answer(&self, uri: &Uri, manner: Manner) -> Handled {
        match self.response(uri) {
            Some(response) => Handled::answered(response, None, manner),
            // No header can say where to.
            None => Handled::failed(Failure::BadHead("target_malformed"), None, manner),
        }
    }

    fn response(&self, uri: &Uri) -> Option<Response<Answer>> {
        let mut response = Response::new(Either::Left(Whole::default()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(LOCATION, self.location(uri)?);
        Some(response)
    }

    fn location(&self, uri: &Uri) -> Option<HeaderValue> {
        let mut location = String::from(&*self.to);
        if let Some(at) = self.rest_at {
            let rest = uri.path().get(at..)?;
            // Behind `/`, one more would make a host of what follows. Browsers take `\` for `/`.
            let rest = if *self.to == *"/" { rest.trim_start_matches(['/', '\\']) } else { rest };
            push(&mut location, rest);
        }
        if let Some(query) = uri.query().filter(|_| !self.has_query) {
            location.push('?');
            push(&mut location, query);
        }
        location.push_str(&self.fragment);
        location.try_into().ok()
    }
}

/// Adds a part of a request's target. What no URI has as it is (RFC 3986, 2), a request may have: that is escaped.
fn push(location: &mut String, part: &str) {
    for byte in part.bytes() {
        if byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte) {
            location.push(byte.into());
        } else {
            location.push('%');
            location.extend([byte >> 4, byte & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(route: &str, to: &str, target: &str) -> String {
        let config = RedirectConfig { route: route.to_owned(), to: to.to_owned(), status: 308, listen: None };
        let response = Redirect::new(&config).response(&target.parse().expect("a target")).expect("an answer");
        assert_eq!(response.status(), StatusCode::PERMANENT_REDIRECT);
        response.headers()[LOCATION].to_str().expect("ASCII").to_owned()
    }

    #[test]
    fn the_rest_of_a_path_and_the_query_are_kept() {
        for (route, to, target, expected) in [
            ("/old", "/new", "/old", "/new"),
            ("/old", "/new", "/old?a=b", "/new?a=b"),
            ("/old", "/new?c#d", "/old?a=b", "/new?c#d"),
            ("/old", "/new#d", "/old?a=b", "/new?a=b#d"),
            ("/old/*", "/new", "/old/x/y", "/new"),
            ("/old/*", "/new/*", "/old/x/y?a=b", "/new/x/y?a=b"),
            ("/old/*", "/new/*", "/old/", "/new/"),
            ("/old/*", "https://a.example/*", "/old/x", "https://a.example/x"),
            ("/old/*", "https://a.example/*", "http://here/old/x", "https://a.example/x"),
            ("/*", "https://a.example/b/*", "/x%2f/../y", "https://a.example/b/x%2f/../y"),
        ] {
            assert_eq!(location(route, to, target), expected, "{route} {to} {target}");
        }
    }

    #[test]
    fn no_path_leads_to_a_host_that_the_operator_did_not_name() {
        for target in ["/old/evil.example", "/old//evil.example", "/old/\\evil.example", "/old//\\/evil.example"] {
            assert_eq!(location("/old/*", "/*", target), "/evil.example", "{target}");
        }
        assert_eq!(location("/old/*", "/new/*", "/old/\\x"), "/new/%5Cx");
        assert_eq!(location("/old/*", "/new/*", "/old/\u{e4}?\u{e4}"), "/new/%C3%A4?%C3%A4");
    }
}
