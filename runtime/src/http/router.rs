//! From address, path and method to a function. Paths are compared byte for byte, without the query.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::Method;
use hyper::header::HeaderValue;
use rustc_hash::FxHashMap;

use super::canary::Split;
use super::folder::Folder;
use super::policy::Policy;
use super::redirect::Redirect;
use crate::grpc::Offer;
use crate::invoke::function::Function;
use crate::invoke::loaded::Labels;
use crate::outcome::Failure;
use crate::schedule::FunctionId;
use crate::workflow::Workflow;

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
    // What is looked for is the client's, but what is there is the operator's: nothing is gained by paths whose hashes are the same.
    routes: FxHashMap<Box<str>, Owner<F>>,
    /// By the path up to and with the last slash.
    prefixes: FxHashMap<Box<str>, Owner<F>>,
    /// What applications offer there.
    offers: Vec<Arc<Offer>>,
}

/// What a path belongs to.
#[derive(Debug)]
enum Owner<F> {
    Function(Place<F>),
    Redirect(Arc<Redirect>),
    Folder(Arc<Folder>),
    Workflow(Arc<Workflow>),
}

/// Whose a path is.
#[derive(Debug)]
pub enum Place<F = Function> {
    /// That of a function that answers.
    Served(Arc<Route<F>>),
    /// That of one that is quarantined: nothing else answers there.
    Quarantined(Arc<Held>),
}

/// A path that is held for a function that is quarantined.
#[derive(Debug)]
pub struct Held {
    /// The path, as of a [`Route`].
    pub pattern: Box<str>,
    /// The function's number.
    pub number: FunctionId,
    /// What its numbers are called by.
    pub labels: Arc<Labels>,
}

/// Why a request is not for a function.
#[derive(Debug)]
pub enum Refused<F = Function> {
    /// Its path has moved.
    Moved(Arc<Redirect>),
    /// Its path is that of a file.
    File(Arc<Folder>),
    /// Its path is that of a workflow.
    Workflow(Arc<Workflow>),
    /// It failed, and whose path it was for, where it came so far.
    Failed(Failure, Option<Place<F>>),
}

impl<F> Clone for Place<F> {
    fn clone(&self) -> Place<F> {
        match self {
            Place::Served(route) => Place::Served(Arc::clone(route)),
            Place::Quarantined(held) => Place::Quarantined(Arc::clone(held)),
        }
    }
}

impl<F> Place<F> {
    /// The path, or what the path begins with.
    #[must_use]
    pub fn pattern(&self) -> &str {
        match self {
            Place::Served(route) => &route.pattern,
            Place::Quarantined(held) => &held.pattern,
        }
    }
}

impl Place {
    /// The function's number.
    #[must_use]
    pub fn number(&self) -> FunctionId {
        match self {
            Place::Served(route) => route.function.number,
            Place::Quarantined(held) => held.number,
        }
    }

    /// What the function's numbers are called by.
    #[must_use]
    pub fn labels(&self) -> &Arc<Labels> {
        match self {
            Place::Served(route) => &route.function.labels,
            Place::Quarantined(held) => &held.labels,
        }
    }
}

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
    /// What is wanted of the replies, if it is something.
    pub policy: Option<Arc<Policy>>,
    /// What carries requests out whose clients do not wait, where they may ask for that.
    pub asynchronous: Option<Arc<Workflow>>,
    methods: Vec<Method>,
    /// Where the function is being deployed gradually, and this request is one of those that are counted.
    pub(super) split: Option<Split<F>>,
}

impl<F> Route<F> {
    /// What answers with `function` to those methods at that path.
    #[must_use]
    pub fn new(pattern: &str, methods: &[String], function: Arc<F>) -> Route<F> {
        let mut methods: Vec<Method> = methods.iter().filter_map(|method| Method::from_bytes(method.as_bytes()).ok()).collect();
        // A function that answers GET answers HEAD (RFC 9110, 9.1).
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
        Route { pattern: pattern.into(), function, allow, options, policy: None, asynchronous: None, methods, split: None }
    }

    /// The same during a gradual deployment.
    #[must_use]
    pub fn with_split(self, split: Split<F>) -> Route<F> {
        Route { split: Some(split), ..self }
    }
}

impl<F> Default for Router<F> {
    fn default() -> Router<F> {
        Router { shared: Paths::default(), own: HashMap::new() }
    }
}

impl<F> Default for Paths<F> {
    fn default() -> Paths<F> {
        Paths { routes: FxHashMap::default(), prefixes: FxHashMap::default(), offers: Vec::new() }
    }
}

impl<F> Router<F> {
    /// Gives a path to a function. A path that another function has becomes the new one's; configurations with such paths are refused earlier.
    pub fn add(&mut self, site: Site, path: &str, place: Place<F>) {
        self.paths_mut(site).add(path, Owner::Function(place));
    }

    /// Has clients sent on that ask for a path, whatever it was before.
    pub fn redirect(&mut self, site: Site, redirect: Arc<Redirect>) {
        self.paths_mut(site).add(&Arc::clone(&redirect).pattern, Owner::Redirect(redirect));
    }

    /// Has files of a folder sent to clients that ask for them, whatever their paths were before.
    pub fn folder(&mut self, site: Site, folder: Arc<Folder>) {
        self.paths_mut(site).add(Arc::clone(&folder).pattern(), Owner::Folder(folder));
    }

    /// Has a workflow executed for clients that ask for its path, whatever that was before.
    pub fn workflow(&mut self, site: Site, path: &str, workflow: Arc<Workflow>) {
        self.paths_mut(site).add(path, Owner::Workflow(workflow));
    }

    /// Says what an application offers there to clients that speak gRPC.
    pub fn offer(&mut self, site: Site, offer: Arc<Offer>) {
        self.paths_mut(site).offers.push(offer);
    }

    /// What applications offer at an address.
    #[must_use]
    pub fn offers(&self, site: Site) -> &[Arc<Offer>] {
        self.paths(site).map_or(&[], |paths| &paths.offers)
    }

    fn paths_mut(&mut self, site: Site) -> &mut Paths<F> {
        match site {
            None => &mut self.shared,
            Some(address) => self.own.entry(address).or_default(),
        }
    }

    fn paths(&self, site: Site) -> Option<&Paths<F>> {
        match site {
            None => Some(&self.shared),
            Some(address) => self.own.get(&address),
        }
    }

    /// What answers a request that came to that address.
    ///
    /// # Errors
    /// [`Refused::Moved`], [`Refused::File`] or [`Refused::Workflow`]; or [`Failure::NotFound`], or [`Failure::MethodNotAllowed`] or [`Failure::Quarantined`] with whose the path is.
    pub fn find(&self, site: Site, path: &str, method: &Method) -> Result<Arc<Route<F>>, Refused<F>> {
        match self.paths(site).and_then(|paths| paths.at(path)) {
            Some(Owner::Function(Place::Served(route))) if route.methods.contains(method) => Ok(Arc::clone(route)),
            Some(Owner::Function(place @ Place::Served(_))) => {
                Err(Refused::Failed(Failure::MethodNotAllowed, Some(place.clone())))
            }
            Some(Owner::Function(place @ Place::Quarantined(_))) => {
                Err(Refused::Failed(Failure::Quarantined, Some(place.clone())))
            }
            Some(Owner::Redirect(redirect)) => Err(Refused::Moved(Arc::clone(redirect))),
            Some(Owner::Folder(folder)) => Err(Refused::File(Arc::clone(folder))),
            Some(Owner::Workflow(workflow)) => Err(Refused::Workflow(Arc::clone(workflow))),
            None => Err(Refused::Failed(Failure::NotFound, None)),
        }
    }
}

impl<F> Paths<F> {
    fn add(&mut self, path: &str, owner: Owner<F>) {
        match path.strip_suffix('*').filter(|prefix| prefix.ends_with('/')) {
            Some(prefix) => self.prefixes.insert(prefix.into(), owner),
            None => self.routes.insert(path.into(), owner),
        };
    }

    /// Whose a path is: one that has it as its own comes first, then the longest that it begins with.
    fn at(&self, path: &str) -> Option<&Owner<F>> {
        if let Some(owner) = self.routes.get(path) {
            return Some(owner);
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
    use crate::config::{FunctionConfig, RedirectConfig};
    use crate::invoke::by_hand;
    use crate::invoke::function::Home;

    fn served(route: Route<&'static str>) -> Place<&'static str> {
        Place::Served(Arc::new(route))
    }

    /// Why a request is not answered by a function.
    fn failed<F>(router: &Router<F>, site: Site, path: &str, method: &Method) -> (Failure, Option<Place<F>>) {
        match router.find(site, path, method) {
            Err(Refused::Failed(failure, place)) => (failure, place),
            _ => panic!("{method} {path} is answered"),
        }
    }

    fn router() -> Router<&'static str> {
        let mut router = Router::default();
        router.add(None, "/a", served(Route::new("/a", &["POST".to_owned()], Arc::new("a"))));
        router.add(None, "/a/b", served(Route::new("/a/b", &["GET".to_owned(), "PUT".to_owned()], Arc::new("ab"))));
        router
    }

    #[test]
    fn paths_are_compared_whole() {
        let router = router();
        assert_eq!(*router.find(None, "/a", &Method::POST).unwrap().function, "a");
        assert_eq!(*router.find(None, "/a/b", &Method::PUT).unwrap().function, "ab");
        for path in ["/", "", "/A", "/a/", "//a", "/a/b/c", "/%61", "a"] {
            let (failure, route) = failed(&router, None, path, &Method::POST);
            assert_eq!(failure, Failure::NotFound, "{path}");
            assert!(route.is_none());
        }
    }

    #[test]
    fn what_applications_offer_stands_at_their_address() {
        let mut router = router();
        let own = SocketAddr::from(([127, 0, 0, 1], 9));
        for (site, service) in [(None, "a.A"), (None, "b.B"), (Some(own), "c.C")] {
            router.offer(site, Arc::new(Offer { services: vec![service.to_owned()], ..Offer::default() }));
        }
        let services = |site| router.offers(site).iter().flat_map(|offer| offer.services.clone()).collect::<Vec<_>>();
        assert_eq!((services(None), services(Some(own))), (vec!["a.A".to_owned(), "b.B".to_owned()], vec!["c.C".to_owned()]));
        assert!(router.offers(Some(SocketAddr::from(([127, 0, 0, 1], 8)))).is_empty());
    }

    #[test]
    fn exact_routes_come_before_prefixes_and_long_prefixes_before_short_ones() {
        let mut router = router();
        for path in ["/a/*", "/a/b/*", "/c/d/*"] {
            router.add(None, path, served(Route::new(path, &["POST".to_owned(), "GET".to_owned()], Arc::new(path))));
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
        router.add(None, "/*", served(Route::new("/*", &["POST".to_owned()], Arc::new("all"))));
        let long = "/".repeat(8_000);
        for path in ["/", "/c", &long] {
            assert_eq!(*router.find(None, path, &Method::POST).unwrap().function, "all", "{path}");
        }
    }

    #[test]
    fn a_path_that_is_held_is_answered_by_none_that_is_shorter() {
        let mut router = router();
        router.add(None, "/*", served(Route::new("/*", &["GET".to_owned()], Arc::new("all"))));
        for pattern in ["/q", "/q/*"] {
            let held = Held { pattern: pattern.into(), number: FunctionId::default(), labels: Arc::default() };
            router.add(None, pattern, Place::Quarantined(Arc::new(held)));
        }
        for (path, method) in [("/q", Method::GET), ("/q", Method::OPTIONS), ("/q/", Method::GET), ("/q/x/y", Method::PUT)] {
            let (failure, place) = failed(&router, None, path, &method);
            assert!(failure == Failure::Quarantined && place.is_some(), "{method} {path}");
        }
        assert_eq!(*router.find(None, "/qq", &Method::GET).unwrap().function, "all");
    }

    #[test]
    fn a_path_that_has_moved_belongs_to_no_function() {
        let redirect = |route: &str| RedirectConfig { route: route.to_owned(), to: "/to".to_owned(), status: 308, listen: None };
        let mut router = router();
        router.add(None, "/*", served(Route::new("/*", &["GET".to_owned()], Arc::new("all"))));
        for path in ["/a", "/old", "/old/*"] {
            router.redirect(None, Arc::new(Redirect::new(&redirect(path))));
        }
        for (path, expected) in [("/a", "/a"), ("/old", "/old"), ("/old/x", "/old/*"), ("/old/", "/old/*")] {
            let Err(Refused::Moved(redirect)) = router.find(None, path, &Method::DELETE) else { panic!("{path} has not moved") };
            assert_eq!(&*redirect.pattern, expected, "{path}");
        }
        assert_eq!(*router.find(None, "/older", &Method::GET).unwrap().function, "all");
        assert!(failed(&router, Some(SocketAddr::from(([127, 0, 0, 1], 9))), "/old", &Method::GET).1.is_none());
    }

    #[test]
    fn another_method_is_answered_with_those_that_are_allowed() {
        let router = router();
        for method in [Method::DELETE, Method::POST, Method::OPTIONS, Method::from_bytes(b"get").unwrap()] {
            let (failure, route) = failed(&router, None, "/a/b", &method);
            assert_eq!(failure, Failure::MethodNotAllowed, "{method}");
            let Some(Place::Served(route)) = route else { panic!("{method}: {route:?}") };
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
        assert_eq!(failed(&router, None, "/a", &Method::HEAD).0, Failure::MethodNotAllowed);
        let both = Route::new("/c", &["HEAD".to_owned(), "GET".to_owned()], Arc::new("c"));
        assert_eq!(both.allow, "HEAD, GET");
    }

    #[test]
    fn an_address_of_its_own_has_routes_of_its_own() {
        let mut router = router();
        let own = Some("127.0.0.1:9".parse().unwrap());
        router.add(own, "/*", served(Route::new("/*", &["GET".to_owned()], Arc::new("own"))));
        assert_eq!(*router.find(own, "/a/b", &Method::GET).unwrap().function, "own");
        assert_eq!(*router.find(None, "/a/b", &Method::GET).unwrap().function, "ab");
        assert!(router.find(None, "/elsewhere", &Method::GET).is_err());
        assert!(router.find(Some("127.0.0.1:10".parse().unwrap()), "/a/b", &Method::GET).is_err());
    }
    #[test]
    fn a_place_says_whose_it_is_whether_it_is_served_or_held() {
        let config = FunctionConfig { tenant: "t".to_owned(), ..FunctionConfig::new("f", "f.wasm") };
        let function = Arc::new(Function::new(by_hand::loaded(&config), Home { number: FunctionId(7), ..Home::alone() }));
        let labels = Labels { function: "g".to_owned(), tenant: "t".to_owned(), phases: None };
        let held = Held { pattern: "/g/*".into(), number: FunctionId(8), labels: Arc::new(labels) };
        let mut router = Router::default();
        router.add(None, "/f/*", Place::Served(Arc::new(Route::new("/f/*", &["GET".to_owned()], function))));
        router.add(None, "/g/*", Place::Quarantined(Arc::new(held)));
        for (path, pattern, number, name) in [("/f/x", "/f/*", 7, "f"), ("/g/x", "/g/*", 8, "g")] {
            let (_, place) = failed(&router, None, path, &Method::PUT);
            let place = place.unwrap();
            assert_eq!((place.pattern(), place.number(), &*place.labels().function), (pattern, FunctionId(number), name));
            assert_eq!(place.labels().tenant, "t");
        }
    }
}
