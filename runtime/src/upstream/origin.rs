//! A server that a configuration names by its URL: gRPC goes there over HTTP/2.

use hyper::Uri;
use hyper::http::uri::{Authority, Parts, PathAndQuery, Scheme};

use super::Allowed;
use super::connect::host_and_port;

/// Where a server is: `http://HOST:PORT` or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: Scheme,
    authority: Authority,
}

/// A text is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give http://HOST:PORT or https://HOST:PORT, without a path")]
pub struct OriginError;

impl Origin {
    /// Reads one.
    ///
    /// # Errors
    /// When it says less than where a server is, or more.
    pub fn parse(url: &str) -> Result<Origin, OriginError> {
        let Parts { scheme, authority, path_and_query, .. } = url.parse::<Uri>().map_err(|_| OriginError)?.into_parts();
        let scheme = scheme.filter(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme)).ok_or(OriginError)?;
        // A name and a password would go into the head of every request.
        let authority = authority.filter(|authority| !authority.as_str().contains('@')).ok_or(OriginError)?;
        let is_bare = path_and_query.is_none_or(|path| path.as_str() == "/");
        // What stands behind the host is a port, or nothing.
        let port = authority.as_str().strip_prefix(authority.host()).ok_or(OriginError)?;
        let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
        let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        if is_bare && has_port && !url.contains('#') { Ok(Origin { scheme, authority }) } else { Err(OriginError) }
    }

    /// The URL of something there.
    #[must_use]
    pub fn uri(&self, target: PathAndQuery) -> Uri {
        let mut parts = Parts::default();
        (parts.scheme, parts.authority) = (Some(self.scheme.clone()), Some(self.authority.clone()));
        parts.path_and_query = Some(target);
        // All parts of a URL are there.
        Uri::from_parts(parts).unwrap_or_default()
    }

    /// It, wherever its name leads, and nothing else.
    pub(super) fn allowed(&self) -> Allowed {
        let uri = self.uri(PathAndQuery::from_static("/"));
        host_and_port(&uri).map_or_else(Allowed::default, |(host, port)| Allowed::wherever(host, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port() {
        for url in ["http://a:1", "https://a.example:65535", "https://a", "http://127.0.0.1:80/", "http://[::1]:8080"] {
            let origin = Origin::parse(url).unwrap();
            let uri = origin.uri(PathAndQuery::from_static("/p.S/M")).to_string();
            assert_eq!(uri, format!("{}/p.S/M", url.trim_end_matches('/')));
        }
        for url in [
            "",
            "a",
            "a:1",
            "//a:1",
            "ftp://a:1",
            "http://",
            "http://u@a:1",
            "http://a:0",
            "http://a:65536",
            "http://a:x",
            "http://a/x",
            "http://a/?x",
            "http://a:1/#x",
            "http:/a",
            "http://a b",
        ] {
            assert_eq!(Origin::parse(url), Err(OriginError), "{url}");
        }
    }

    #[test]
    fn an_origin_may_be_anywhere_and_opens_nothing_else() {
        let allowed = Origin::parse("http://internal:9").unwrap().allowed();
        let private = "10.0.0.1".parse().unwrap();
        assert!(allowed.names("internal", 9) && allowed.reaches(private, 9));
        assert!(!allowed.names("internal", 80) && !allowed.names("other", 9) && !allowed.reaches(private, 80));
        let allowed = Origin::parse("https://[::1]").unwrap().allowed();
        assert!(allowed.names("[::1]", 443) && !allowed.names("[::1]", 80));
    }
}
