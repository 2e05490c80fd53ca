//! From path and method to a function. Paths are compared byte for byte, without the query.

use std::collections::HashMap;
use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;

use crate::function::Function;
use crate::outcome::Failure;

/// All routes of a server.
#[derive(Debug)]
pub struct Router<F = Function> {
    routes: HashMap<Box<str>, Arc<Route<F>>>,
}

/// A failure, and what it was for, where it came so far.
pub type Refused<F = Function> = (Failure, Option<Arc<Route<F>>>);

/// What answers at one path.
#[derive(Debug)]
pub struct Route<F = Function> {
    /// The function.
    pub function: Arc<F>,
    /// The methods that it answers, as a reply to others lists them.
    pub allow: HeaderValue,
    methods: Vec<Method>,
}

impl<F> Route<F> {
    /// What answers with `function` to those methods.
    #[must_use]
    pub fn new(methods: &[String], function: Arc<F>) -> Route<F> {
        let methods: Vec<Method> = methods.iter().filter_map(|method| Method::from_bytes(method.as_bytes()).ok()).collect();
        let allow = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        let allow = HeaderValue::from_str(&allow).unwrap_or(HeaderValue::from_static(""));
        Route { function, allow, methods }
    }
}

impl<F> Default for Router<F> {
    fn default() -> Router<F> {
        Router { routes: HashMap::new() }
    }
}

impl<F> Router<F> {
    /// Adds a route. A path that has one already gets the new one; configurations with such paths are refused earlier.
    pub fn add(&mut self, path: &str, route: Arc<Route<F>>) {
        self.routes.insert(path.into(), route);
    }

    /// What answers a request.
    ///
    /// # Errors
    /// [`Failure::NotFound`], or [`Failure::MethodNotAllowed`] with the route that has the path.
    pub fn find(&self, path: &str, method: &Method) -> Result<Arc<Route<F>>, Refused<F>> {
        let route = Arc::clone(self.routes.get(path).ok_or((Failure::NotFound, None))?);
        if route.methods.contains(method) { Ok(route) } else { Err((Failure::MethodNotAllowed, Some(route))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router() -> Router<&'static str> {
        let mut router = Router::default();
        router.add("/a", Arc::new(Route::new(&["POST".to_owned()], Arc::new("a"))));
        router.add("/a/b", Arc::new(Route::new(&["GET".to_owned(), "PUT".to_owned()], Arc::new("ab"))));
        router
    }

    #[test]
    fn paths_are_compared_whole() {
        let router = router();
        assert_eq!(*router.find("/a", &Method::POST).unwrap().function, "a");
        assert_eq!(*router.find("/a/b", &Method::PUT).unwrap().function, "ab");
        for path in ["/", "", "/A", "/a/", "//a", "/a/b/c", "/%61", "a"] {
            let (failure, route) = router.find(path, &Method::POST).unwrap_err();
            assert_eq!(failure, Failure::NotFound, "{path}");
            assert!(route.is_none());
        }
    }

    #[test]
    fn another_method_is_answered_with_those_that_are_allowed() {
        let router = router();
        for method in [Method::HEAD, Method::POST, Method::OPTIONS, Method::from_bytes(b"get").unwrap()] {
            let (failure, route) = router.find("/a/b", &method).unwrap_err();
            assert_eq!(failure, Failure::MethodNotAllowed, "{method}");
            assert_eq!(route.unwrap().allow, "GET, PUT");
        }
    }
}
