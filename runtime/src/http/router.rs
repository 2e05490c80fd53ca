//! From address, path and method to a function. Paths are compared byte for byte, without the query.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;

use crate::function::Function;
use crate::outcome::Failure;

/// Slashes of a path at which a route may end: a path of nothing else costs no more than this many looks.
pub const PREFIX_SLASHES_MAX: usize = 64;

/// The address that functions have to themselves; none is the server's own.
pub type Site = Option<SocketAddr>;

/// All routes of a server.
#[derive(Debug)]
pub struct Router<F = Function> {
    shared: Paths<F>,
    own: HashMap<SocketAddr, Paths<F>>,
}

/// The routes at one address.
#[derive(Debug)]
struct Paths<F> {
    routes: HashMap<Box<str>, Arc<Route<F>>>,
    /// By the path up to and with the last slash.
    prefixes: HashMap<Box<str>, Arc<Route<F>>>,
}

/// A failure, and what it was for, where it came so far.
pub type Refused<F = Function> = (Failure, Option<Arc<Route<F>>>);

/// What answers at one path.
#[derive(Debug)]
pub struct Route<F = Function> {
    /// The path, or what the path begins with: `/a/*`.
    pub pattern: Box<str>,
    /// The function.
    pub function: Arc<F>,
    /// The methods that it answers, as a reply to others lists them.
    pub allow: HeaderValue,
    /// The same with OPTIONS, which the server answers in its place.
    pub options: HeaderValue,
    methods: Vec<Method>,
}

impl<F> Route<F> {
    /// What answers with `function` to those methods at that path.
    #[must_use]
    pub fn new(pattern: &str, methods: &[String], function: Arc<F>) -> Route<F> {
        let mut methods: Vec<Method> = methods.iter().filter_map(|method| Method::from_bytes(method.as_bytes()).ok()).collect();
        // Whoever answers GET answers HEAD (RFC 9110, 9.1).
        if let Some(get) = methods.iter().position(|method| method == Method::GET)
            && !methods.contains(&Method::HEAD)
        {
            methods.insert(get + 1, Method::HEAD);
        }
        let list = |methods: &[Method]| {
            let names = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
            HeaderValue::from_str(&names).unwrap_or(HeaderValue::from_static(""))
        };
        let allow = list(&methods);
        let options = list(&[&methods[..], &[Method::OPTIONS]].concat());
        Route { pattern: pattern.into(), function, allow, options, methods }
    }
}

impl<F> Default for Router<F> {
    fn default() -> Router<F> {
        Router { shared: Paths::default(), own: HashMap::new() }
    }
}

impl<F> Default for Paths<F> {
    fn default() -> Paths<F> {
        Paths { routes: HashMap::new(), prefixes: HashMap::new() }
    }
}

impl<F> Router<F> {
    /// Adds a route. A path that has one already gets the new one; configurations with such paths are refused earlier.
    pub fn add(&mut self, site: Site, path: &str, route: Arc<Route<F>>) {
        match site {
            None => self.shared.add(path, route),
            Some(address) => self.own.entry(address).or_default().add(path, route),
        }
    }

    /// What answers a request that came to that address.
    ///
    /// # Errors
    /// [`Failure::NotFound`], or [`Failure::MethodNotAllowed`] with the route that has the path.
    pub fn find(&self, site: Site, path: &str, method: &Method) -> Result<Arc<Route<F>>, Refused<F>> {
        let paths = match site {
            None => Some(&self.shared),
            Some(address) => self.own.get(&address),
        };
        let route = Arc::clone(paths.and_then(|paths| paths.at(path)).ok_or((Failure::NotFound, None))?);
        if route.methods.contains(method) { Ok(route) } else { Err((Failure::MethodNotAllowed, Some(route))) }
    }
}

impl<F> Paths<F> {
    fn add(&mut self, path: &str, route: Arc<Route<F>>) {
        match path.strip_suffix('*').filter(|prefix| prefix.ends_with('/')) {
            Some(prefix) => self.prefixes.insert(prefix.into(), route),
            None => self.routes.insert(path.into(), route),
        };
    }

    /// Who answers at a path: a route of its own comes first, then the longest that it begins with.
    fn at(&self, path: &str) -> Option<&Arc<Route<F>>> {
        if let Some(route) = self.routes.get(path) {
            return Some(route);
        }
        if self.prefixes.is_empty() {
            return None;
        }
        let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at + 1).take(PREFIX_SLASHES_MAX).collect();
        ends.iter().rev().find_map(|&end| self.prefixes.get(&path[..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router() -> Router<&'static str> {
        let mut router = Router::default();
        router.add(None, "/a", Arc::new(Route::new("/a", &["POST".to_owned()], Arc::new("a"))));
        router.add(None, "/a/b", Arc::new(Route::new("/a/b", &["GET".to_owned(), "PUT".to_owned()], Arc::new("ab"))));
        router
    }

    #[test]
    fn paths_are_compared_whole() {
        let router = router();
        assert_eq!(*router.find(None, "/a", &Method::POST).unwrap().function, "a");
        assert_eq!(*router.find(None, "/a/b", &Method::PUT).unwrap().function, "ab");
        for path in ["/", "", "/A", "/a/", "//a", "/a/b/c", "/%61", "a"] {
            let (failure, route) = router.find(None, path, &Method::POST).unwrap_err();
            assert_eq!(failure, Failure::NotFound, "{path}");
            assert!(route.is_none());
        }
    }

    #[test]
    fn exact_routes_come_before_prefixes_and_long_prefixes_before_short_ones() {
        let mut router = router();
        for path in ["/a/*", "/a/b/*", "/c/d/*"] {
            router.add(None, path, Arc::new(Route::new(path, &["POST".to_owned(), "GET".to_owned()], Arc::new(path))));
        }
        for (path, expected) in [
            ("/a", "a"),
            ("/a/b", "ab"),
            ("/a/", "/a/*"),
            ("/a/x", "/a/*"),
            ("/a/b/", "/a/b/*"),
            ("/a/b/c/d", "/a/b/*"),
            ("/a/bc", "/a/*"),
        ] {
            let method = if path == "/a/b" { Method::GET } else { Method::POST };
            assert_eq!(*router.find(None, path, &method).unwrap().function, expected, "{path}");
        }
        for path in ["/c", "/c/", "/c/d", "/cd/e", "/"] {
            assert!(router.find(None, path, &Method::POST).is_err(), "{path}");
        }
        router.add(None, "/*", Arc::new(Route::new("/*", &["POST".to_owned()], Arc::new("all"))));
        let long = "/".repeat(8_000);
        for path in ["/", "/c", &long] {
            assert_eq!(*router.find(None, path, &Method::POST).unwrap().function, "all", "{path}");
        }
    }

    #[test]
    fn another_method_is_answered_with_those_that_are_allowed() {
        let router = router();
        for method in [Method::DELETE, Method::POST, Method::OPTIONS, Method::from_bytes(b"get").unwrap()] {
            let (failure, route) = router.find(None, "/a/b", &method).unwrap_err();
            assert_eq!(failure, Failure::MethodNotAllowed, "{method}");
            let route = route.unwrap();
            assert_eq!(
                (&route.allow, &route.options),
                (&"GET, HEAD, PUT".parse().unwrap(), &"GET, HEAD, PUT, OPTIONS".parse().unwrap())
            );
        }
    }

    #[test]
    fn whoever_answers_get_answers_head() {
        let router = router();
        assert_eq!(*router.find(None, "/a/b", &Method::HEAD).unwrap().function, "ab");
        assert_eq!(router.find(None, "/a", &Method::HEAD).unwrap_err().0, Failure::MethodNotAllowed);
        let both = Route::new("/c", &["HEAD".to_owned(), "GET".to_owned()], Arc::new("c"));
        assert_eq!(both.allow, "HEAD, GET");
    }

    #[test]
    fn an_address_of_its_own_has_routes_of_its_own() {
        let mut router = router();
        let own = Some("127.0.0.1:9".parse().unwrap());
        router.add(own, "/*", Arc::new(Route::new("/*", &["GET".to_owned()], Arc::new("own"))));
        assert_eq!(*router.find(own, "/a/b", &Method::GET).unwrap().function, "own");
        assert_eq!(*router.find(None, "/a/b", &Method::GET).unwrap().function, "ab");
        assert!(router.find(None, "/elsewhere", &Method::GET).is_err());
        assert!(router.find(Some("127.0.0.1:10".parse().unwrap()), "/a/b", &Method::GET).is_err());
    }
}
