//! Files of a folder, which the server sends without running a function: GET and HEAD, ranges, conditional requests (RFC 9110, 13 and 14).
//!
//! A path names a file by its segments. Segments that are no plain names are refused before anything is opened, and the folder is opened once, as a capability: links that lead outside of it do not
//! open (cap-std, as for folders of functions). Threads for blocking work open and read files; of a large one no more than a piece is in memory.

use std::fs::File;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use bytes::Bytes;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use headers::{
    ContentRange, ETag, HeaderMapExt, IfMatch, IfModifiedSince, IfNoneMatch, IfRange, IfUnmodifiedSince, LastModified,
};
use http_body_util::Either;
use hyper::header::{ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RANGE};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode, Uri};
use percent_encoding::percent_decode_str;
use sledge_sandbox::Budget;

use super::handled::{Handled, Manner};
use super::policy::Policy;
use super::response::{self, Answer, Whole};
use super::streamed::Streamed;
use crate::blocking;
use crate::config::FolderConfig;
use crate::health::{Health, Subject};
use crate::outcome::Failure;

/// How much of a file is read at a time. A file of at most that size is read when it is opened.
const PIECE_BYTES: usize = 64 << 10;
/// The file that stands for its folder.
const INDEX: &str = "index.html";
/// The one name that begins with a dot and is meant for clients (RFC 8615).
const WELL_KNOWN: &str = ".well-known";
/// What a folder answers.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");
const METHODS_WITH_OPTIONS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// A folder whose files clients can read.
#[derive(Debug)]
pub struct Folder {
    config: FolderConfig,
    /// The folder, once it could be opened.
    dir: OnceLock<Arc<Dir>>,
    /// What its route had before, as long as it cannot.
    before: Option<Arc<Dir>>,
    /// Why it could not when the configuration was read.
    problem: Option<String>,
    /// Where that is said.
    health: Arc<Health>,
    cache_control: Option<HeaderValue>,
    pub(super) policy: Option<Arc<Policy>>,
}

impl PartialEq for Folder {
    fn eq(&self, other: &Folder) -> bool {
        self.config == other.config
    }
}

/// What is found at a path.
enum Found {
    /// A file: its content if it is small, and what is known of it.
    File { file: File, small: Option<Bytes>, length: u64, modified: Option<SystemTime> },
    /// A folder.
    Folder,
}

/// What a request for a file comes to.
enum Outcome {
    Whole,
    /// From the first byte to behind the last.
    Part(u64, u64),
    Unchanged,
    Unsatisfiable,
    Refused,
}

impl Folder {
    /// The folder that a configuration names. If it cannot be opened now, each request for one of its files tries that again. Memory for compressing is claimed of `budget`.
    #[must_use]
    pub fn new(config: &FolderConfig, budget: &Arc<Budget>, health: &Arc<Health>) -> Folder {
        let (dir, problem) = match open(config) {
            Ok(dir) => (OnceLock::from(dir), None),
            Err(error) => (
                OnceLock::new(),
                Some(format!("{}: {error}; put that right: its files are there as soon as the folder is", config.path.display())),
            ),
        };
        let cache_control = config.cache_control.as_ref().and_then(|text| HeaderValue::from_str(text).ok());
        let policy = Policy::new(None, config.compression.as_ref(), budget);
        Folder { config: config.clone(), dir, before: None, problem, health: Arc::clone(health), cache_control, policy }
    }

    /// Why clients get no files of it, or not those of the folder that the configuration names.
    #[must_use]
    pub fn problem(&self) -> Option<(Subject, &str)> {
        self.problem.as_deref().filter(|_| self.dir.get().is_none()).map(|problem| (self.subject(), problem))
    }

    /// It takes the place of others: clients get files of the one before, as long as its own folder cannot be opened.
    #[must_use]
    pub fn in_place_of<'a>(self, mut others: impl Iterator<Item = &'a Arc<Folder>>) -> Folder {
        let is_same = |other: &&Arc<Folder>| other.config.route == self.config.route && other.config.listen == self.config.listen;
        let before = others.find(is_same).and_then(|other| other.dir.get().or(other.before.as_ref()).cloned());
        Folder { before, ..self }
    }

    fn subject(&self) -> Subject {
        let FolderConfig { route, listen, .. } = &self.config;
        Subject::Folder(format!("{}{route}", listen.as_deref().unwrap_or_default()))
    }

    /// The folder whose files clients get now. Blocks.
    fn dir(&self) -> Option<Arc<Dir>> {
        if let Some(dir) = self.dir.get() {
            return Some(Arc::clone(dir));
        }
        let Ok(dir) = open(&self.config) else { return self.before.clone() };
        let dir = Arc::clone(self.dir.get_or_init(|| dir));
        self.health.clear(&self.subject());
        Some(dir)
    }

    /// The paths of its files: `/a/*`.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.config.route
    }

    /// The answer to a request for one of its files.
    pub(super) async fn answer(self: Arc<Folder>, head: Parts, manner: Manner) -> Handled {
        match self.response(&head).await {
            Ok(response) => Handled::answered(response, None, manner),
            Err(failure) => {
                let is_method = failure == Failure::MethodNotAllowed;
                let mut handled = Handled::failed(failure, None, manner);
                if is_method {
                    handled.response.headers_mut().insert(ALLOW, METHODS);
                }
                handled
            }
        }
    }

    async fn response(self: &Arc<Folder>, head: &Parts) -> Result<Response<Answer>, Failure> {
        match head.method {
            Method::GET | Method::HEAD => {}
            Method::OPTIONS => return Ok(response::options(&METHODS_WITH_OPTIONS)),
            _ => return Err(Failure::MethodNotAllowed),
        }
        let rest = head.uri.path().get(self.config.route.len() - 1..).ok_or(Failure::NotFound)?;
        let name = name(rest).ok_or(Failure::NotFound)?;
        let ty = mime_guess::from_path(&name).first_raw();
        let folder = Arc::clone(self);
        let found = blocking::run(move || folder.dir().map(|dir| find(&dir, &name))).await.ok_or(Failure::Quarantined)?;
        match found {
            Ok(Found::File { file, small, length, modified }) => {
                Ok(self.file(head, (file, small), (length, modified), ty.unwrap_or("application/octet-stream")))
            }
            Ok(Found::Folder) => slashed(&head.uri).ok_or(Failure::NotFound),
            Err(error) if is_absent(&error) => Err(Failure::NotFound),
            Err(error) => {
                tracing::warn!(path = head.uri.path(), %error, "a file cannot be read");
                Err(Failure::Internal)
            }
        }
    }

    /// A file, or what there is to say of it.
    fn file(
        &self,
        head: &Parts,
        (file, small): (File, Option<Bytes>),
        (length, modified): (u64, Option<SystemTime>),
        ty: &'static str,
    ) -> Response<Answer> {
        let etag = modified.and_then(|modified| tag(length, modified));
        let outcome = outcome(head, etag.as_ref(), modified, length);
        let empty = || Either::Left(Whole::default());
        let mut response = Response::new(match outcome {
            Outcome::Whole | Outcome::Part(..) if small.is_none() && head.method == Method::HEAD => empty(),
            Outcome::Whole => content(file, small, 0, length),
            Outcome::Part(begin, end) => content(file, small, begin, end),
            Outcome::Unchanged | Outcome::Unsatisfiable | Outcome::Refused => empty(),
        });
        *response.status_mut() = match outcome {
            Outcome::Whole => StatusCode::OK,
            Outcome::Part(..) => StatusCode::PARTIAL_CONTENT,
            Outcome::Unchanged => StatusCode::NOT_MODIFIED,
            Outcome::Unsatisfiable => StatusCode::RANGE_NOT_SATISFIABLE,
            Outcome::Refused => StatusCode::PRECONDITION_FAILED,
        };
        let headers = response.headers_mut();
        match outcome {
            Outcome::Part(begin, end) => {
                if let Ok(range) = ContentRange::bytes(begin..end, length) {
                    headers.typed_insert(range);
                }
            }
            Outcome::Unsatisfiable => headers.typed_insert(ContentRange::unsatisfied_bytes(length)),
            _ => {}
        }
        if matches!(outcome, Outcome::Whole | Outcome::Part(..)) {
            let ty = if ty.starts_with("text/") {
                format!("{ty}; charset=utf-8").try_into()
            } else {
                Ok(HeaderValue::from_static(ty))
            };
            headers.insert(CONTENT_TYPE, ty.unwrap_or(HeaderValue::from_static("application/octet-stream")));
            headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            if head.method == Method::HEAD {
                let bytes = if let Outcome::Part(begin, end) = outcome { end - begin } else { length };
                headers.typed_insert(headers::ContentLength(bytes));
            }
        }
        if let Some(etag) = etag {
            headers.typed_insert(etag);
        }
        if let Some(modified) = modified {
            headers.typed_insert(LastModified::from(modified));
        }
        if let Some(cache_control) = &self.cache_control {
            headers.insert(CACHE_CONTROL, cache_control.clone());
        }
        response
    }
}

/// The file that a path names, relative to the folder: plain names only. None is inside of the folder otherwise.
fn name(path: &str) -> Option<String> {
    let mut name = String::with_capacity(path.len());
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        if segment.is_empty() {
            // At the end it stands for a folder, elsewhere for nothing.
            if segments.peek().is_some() {
                return None;
            }
            name.push_str(INDEX);
            break;
        }
        // An encoded slash would be a part of a name, which no file has.
        let segment = percent_decode_str(segment).decode_utf8().ok()?;
        if segment.contains(['/', '\\', '\0']) || segment.starts_with('.') && segment != WELL_KNOWN {
            return None;
        }
        name.push_str(&segment);
        if segments.peek().is_some() {
            name.push('/');
        }
    }
    Some(name)
}

/// Opens a folder as a capability. Blocks.
fn open(config: &FolderConfig) -> io::Result<Arc<Dir>> {
    Dir::open_ambient_dir(&config.path, ambient_authority()).map(Arc::new)
}

/// Opens a file and reads it if it is small. Blocks.
fn find(dir: &Dir, name: &str) -> io::Result<Found> {
    let mut options = OpenOptions::new();
    // A pipe without a writer would be waited for.
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = dir.open_with(name, &options)?.into_std();
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Ok(Found::Folder);
    }
    if !metadata.is_file() {
        return Err(ErrorKind::NotFound.into());
    }
    let length = metadata.len();
    let small = if length <= PIECE_BYTES as u64 { Some(read(&file, 0, length)?) } else { None };
    // What has changed while it was read is as long as it was then.
    let length = small.as_ref().map_or(length, |small| small.len() as u64);
    Ok(Found::File { file, small, length, modified: metadata.modified().ok() })
}

/// So many bytes of a file, or fewer where it ends. Blocks.
fn read(file: &File, at: u64, bytes: u64) -> io::Result<Bytes> {
    let mut buffer = vec![0; usize::try_from(bytes).unwrap_or(PIECE_BYTES).min(PIECE_BYTES)];
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], at + count as u64) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(count);
    Ok(buffer.into())
}

/// Whether there is no such file for clients: those that may not be read are none of theirs either.
fn is_absent(error: &io::Error) -> bool {
    use ErrorKind::{InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied};
    let kinds = [InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied];
    // A link that leads to itself; a socket.
    let numbers = [libc::ELOOP, libc::ENXIO];
    kinds.contains(&error.kind()) || error.raw_os_error().is_some_and(|number| numbers.contains(&number))
}

/// Sends the client to the path of a folder, behind which names in its index stand.
fn slashed(uri: &Uri) -> Option<Response<Answer>> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut response = Response::new(Either::Left(Whole::default()));
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    // The path has no empty segment, so it names no host.
    response.headers_mut().insert(LOCATION, format!("{}/{query}", uri.path()).try_into().ok()?);
    Some(response)
}

/// A validator: a file that changes has another time or length.
fn tag(length: u64, modified: SystemTime) -> Option<ETag> {
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    format!("\"{:x}-{length:x}\"", since.as_nanos()).parse().ok()
}

/// What the conditions of a request come to, in the order of RFC 9110, 13.2.2.
fn outcome(head: &Parts, etag: Option<&ETag>, modified: Option<SystemTime>, length: u64) -> Outcome {
    let headers: &HeaderMap = &head.headers;
    let is_met = match (headers.typed_get::<IfMatch>(), headers.typed_get::<IfUnmodifiedSince>()) {
        (Some(tags), _) => etag.is_some_and(|etag| tags.precondition_passes(etag)),
        (None, Some(since)) => modified.is_none_or(|modified| since.precondition_passes(modified)),
        (None, None) => true,
    };
    if !is_met {
        return Outcome::Refused;
    }
    let is_changed = match (headers.typed_get::<IfNoneMatch>(), headers.typed_get::<IfModifiedSince>()) {
        (Some(tags), _) => etag.is_none_or(|etag| tags.precondition_passes(etag)),
        (None, Some(since)) => modified.is_none_or(|modified| since.is_modified(modified)),
        (None, None) => true,
    };
    if !is_changed {
        return Outcome::Unchanged;
    }
    let range = headers.get(RANGE).and_then(|range| range.to_str().ok());
    let Some(range) = range.filter(|_| head.method == Method::GET) else { return Outcome::Whole };
    let last_modified = modified.map(LastModified::from);
    if headers.typed_get::<IfRange>().is_some_and(|known| known.is_modified(etag, last_modified.as_ref())) {
        return Outcome::Whole;
    }
    part(range, length)
}

/// The part of a file that is asked for (RFC 9110, 14.1.2). What is malformed is ignored, and so are several ranges, as a server may.
fn part(range: &str, length: u64) -> Outcome {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    let ends = range.strip_prefix("bytes=").and_then(|ends| ends.split_once('-'));
    let (begin, end) = match ends.map(|(first, last)| (first, number(first), last, number(last))) {
        Some(("", _, _, Some(count))) => (length.saturating_sub(count), length),
        Some((_, Some(first), "", _)) => (first, length),
        Some((_, Some(first), _, Some(last))) if first <= last => (first, last.saturating_add(1).min(length)),
        _ => return Outcome::Whole,
    };
    if begin < end { Outcome::Part(begin, end) } else { Outcome::Unsatisfiable }
}

/// The bytes from `begin` to before `end`.
fn content(file: File, small: Option<Bytes>, begin: u64, end: u64) -> Answer {
    match small {
        // Both are within it.
        Some(bytes) => Either::Left(bytes.slice(begin as usize..end as usize).into()),
        None => Either::Right(Box::new(Streamed::file(FileBody {
            file: Arc::new(file),
            at: begin,
            left: end - begin,
            reading: None,
        }))),
    }
}

type Reading = Pin<Box<dyn Future<Output = io::Result<Bytes>>>>;

/// A file that is sent piece by piece.
pub(super) struct FileBody {
    file: Arc<File>,
    at: u64,
    left: u64,
    /// The piece that is being read.
    reading: Option<Reading>,
}

impl std::fmt::Debug for FileBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileBody").field("left", &self.left).finish_non_exhaustive()
    }
}

impl FileBody {
    /// Bytes that are still to come.
    pub(super) const fn left(&self) -> u64 {
        self.left
    }

    /// The next piece.
    pub(super) fn poll_next(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let FileBody { file, at, left, reading } = self;
        let piece = reading.get_or_insert_with(|| {
            let (file, at, bytes) = (Arc::clone(file), *at, *left);
            Box::pin(blocking::run(move || read(&file, at, bytes)))
        });
        let piece = ready!(piece.as_mut().poll(task));
        *reading = None;
        match piece {
            Ok(bytes) if !bytes.is_empty() => {
                *at += bytes.len() as u64;
                *left -= bytes.len() as u64;
                Poll::Ready(Some(Ok(bytes)))
            }
            // It has become shorter, or cannot be read any more.
            Ok(_) | Err(_) => Poll::Ready(Some(Err(Failure::ReplyIncomplete))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_file_by_plain_names() {
        for (path, expected) in [
            ("", "index.html"),
            ("a", "a"),
            ("a/", "a/index.html"),
            ("a/b.css", "a/b.css"),
            ("a%20b", "a b"),
            ("%61", "a"),
            ("%C3%A4", "\u{e4}"),
            ("a..b", "a..b"),
            (".well-known/x", ".well-known/x"),
        ] {
            assert_eq!(name(path).as_deref(), Some(expected), "{path}");
        }
        for path in [
            "..",
            "../a",
            "a/..",
            "a/../b",
            ".",
            "./a",
            "%2e%2e/a",
            "%2E./a",
            ".%2e",
            "a%2fb",
            "a%2Fb",
            "a\\b",
            "a%5cb",
            "..%2f",
            "..%5c",
            "//a",
            "a//b",
            "/",
            "/etc/passwd",
            "a%00",
            ".git/config",
            ".env",
            "a/.hidden",
            "%ff",
            "%2e%2e%2f",
        ] {
            assert_eq!(name(path), None, "{path}");
        }
        // Decoded once.
        assert_eq!(name("%252e%252e").as_deref(), Some("%2e%2e"));
    }
}
