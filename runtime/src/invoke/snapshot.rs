//! Initialising a reactor once, when it is loaded: what its start function, `_initialize` and `init` leave is what every request begins with.
//!
//! They run in a sandbox of their own, on a thread of their own, before any request. What they would read of the outside is the same for all
//! requests from then on, so that is refused unless the operator accepts it; what they would do to a request's streams is refused always.

use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

// By another name: `thiserror` takes everything that is called Backtrace for the standard library's.
use sledge_sandbox::Backtrace as GuestBacktrace;
use sledge_sandbox::{InstantiateError, Template, TrapCode, WorkerThread};

use super::alone;
use super::driver::Driver;
use super::program::{Program, Stage};
use crate::host::{
    self, Args, Body, Code, Context, Drawn, Effect, HostFunction, LogLines, Objection, Process, ReplyBytes, Streams, Waiter,
    Watch, Writer, wasi, wasi2, wasi3,
};
use crate::outcome::Failure;

/// How long all of it may take.
pub const INIT_TIME_MAX: Duration = Duration::from_secs(10);

/// How often that is looked at.
const QUANTUM: Duration = Duration::from_millis(5);

/// Its file descriptor.
const STANDARD_ERROR: u32 = 2;

/// What is wrong about reading a file.
const READS_FILES: &str = "reads files: all requests would see them as they were at loading";
/// What is wrong about changing one in a folder with `write = "scratch"`.
const CHANGES_COPIES: &str = "changes a private copy of files, which no request would find";

/// Why a function could not be initialised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The guest trapped.
    #[error("its initialisation failed: {stage} trapped: {code}\n{backtrace}")]
    Trap {
        /// What trapped.
        stage: Stage,
        /// Why.
        code: TrapCode,
        /// Where.
        backtrace: GuestBacktrace,
    },
    /// It reached a limit.
    #[error("its initialisation failed: {stage}: {failure}\n{backtrace}")]
    Failed {
        /// What ran.
        stage: Stage,
        /// What came of it.
        failure: Failure,
        /// Where.
        backtrace: GuestBacktrace,
    },
    /// The guest asked to end.
    #[error("its initialisation failed: {stage} ended the program with status {status}")]
    Exit {
        /// What ended.
        stage: Stage,
        /// Its status.
        status: u32,
    },
    /// It goes on and on.
    #[error("its initialisation was not done after {} s: {stage} is at\n{backtrace}", INIT_TIME_MAX.as_secs())]
    Time {
        /// What was running.
        stage: Stage,
        /// Where it was.
        backtrace: GuestBacktrace,
    },
    /// It did what would be wrong for all requests but the first.
    #[error(
        "its initialisation is done once for all requests, but {stage} called `{call}`, which {why}; set snapshot = \"off\" (on the command line of \
         `sledge serve`: --snapshot off) to initialise it for every request{}\n{backtrace}", if *.acceptable { ", or snapshot = \"shared-seed\" to accept that" } else { "" }
    )]
    Refused {
        /// What called.
        stage: Stage,
        /// The host function.
        call: &'static str,
        /// What is wrong about it.
        why: &'static str,
        /// Whether the operator may accept it.
        acceptable: bool,
        /// Where it was called.
        backtrace: GuestBacktrace,
    },
    /// A host call failed in a way that ends the guest.
    #[error("its initialisation failed: the host failed in {stage}, in `{call}`")]
    Host {
        /// What called.
        stage: Stage,
        /// The host function.
        call: &'static str,
    },
    /// What it leaves cannot be copied.
    #[error(
        "its initialisation is done once for all requests, but it left an exception in a global or a table, which cannot be shared; set \
         snapshot = \"off\" to initialise it for every request"
    )]
    Exception,
    /// It leaves files open, which would be open for no request.
    #[error(
        "its initialisation is done once for all requests, but it left a file or a folder open, which no request would find open; let it close \
         them, or set snapshot = \"off\" to initialise it for every request"
    )]
    Open,
    /// It leaves stacks, which no image holds.
    #[error(
        "its initialisation is done once for all requests, but it called another component as async, and left a stack on which that ran or still waits; set \
         snapshot = \"off\" to initialise it for every request"
    )]
    Stacks,
    /// It was repeated, and did something else.
    #[error(
        "its initialisation with snapshot = \"shared-seed\" was repeated with the same times and random numbers, and asked for others: what it has made might differ, too"
    )]
    Differs,
    /// There was no sandbox to be had.
    #[error("no sandbox for its initialisation: {0}")]
    Instantiate(#[from] InstantiateError),
    /// There was no thread to be had.
    #[error("no thread for its initialisation: {0}")]
    Thread(#[from] io::Error),
}

/// What a sandbox of `template` holds after the calls of `program`, as a template. `shared`: whether requests may share what is read of the outside; what is drawn of that goes to `drawn`, or comes from
/// there.
///
/// # Errors
/// When a call traps, ends the program, takes longer than [`INIT_TIME_MAX`], or calls the host for what a snapshot must not hold.
pub fn initialised(
    template: &Template,
    program: &Program,
    process: &Process,
    (shared, drawn): (bool, &Drawn),
) -> Result<Template, InitError> {
    let sandbox = Box::new(template.instantiate()?);
    let process = Arc::new(process.clone());
    let has_folders = !process.grants.is_empty();
    let log = LogLines::new(Arc::clone(&process), Arc::default(), Writer::default());
    let guard = Watch::guarded(Box::new(move |function, effect, args| {
        objection(function, effect, args, has_folders).filter(|objection| !(objection.acceptable && shared))
    }));
    let context = Context::new(process, Streams::of_request(Body::default(), ReplyBytes::default(), 0, log))
        .watched(guard)
        .drawing(drawn.clone());
    let mut driver = Driver::new(sandbox, context);
    thread::scope(|scope| {
        let run = || initialise(&mut driver, program);
        let thread = thread::Builder::new().name("init".to_owned()).spawn_scoped(scope, run)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("it panicked").into()))
    })
}

fn initialise(driver: &mut Driver, program: &Program) -> Result<Template, InitError> {
    let worker = WorkerThread::enter(QUANTUM)?;
    worker.arm();
    let result = alone::run(driver, program, Some(Instant::now() + INIT_TIME_MAX), Waiter::default());
    drop(worker);
    if let Err(failure) = result {
        return Err(error(driver, program, failure));
    }
    if let Some(stage) = driver.stage(program) {
        return Err(InitError::Exit { stage: stage.clone(), status: 0 });
    }
    if driver.sandbox().holds_exceptions() {
        return Err(InitError::Exception);
    }
    if driver.sandbox().fibers().count() > 1 {
        return Err(InitError::Stacks);
    }
    if driver.context().has_opened() {
        return Err(InitError::Open);
    }
    // All calls returned, in a sandbox made from a template.
    driver.sandbox().snapshot().ok_or_else(|| io::Error::other("there is nothing to keep").into())
}

/// In the words of an initialisation.
fn error(driver: &Driver, program: &Program, failure: Failure) -> InitError {
    let Some(stage) = driver.stage(program).cloned() else { return io::Error::other("no call of it failed").into() };
    let backtrace = driver.backtrace();
    if let Some((call, Objection { why, acceptable })) = driver.context().watch().and_then(|watch| watch.objection) {
        return InitError::Refused { stage, call, why, acceptable, backtrace };
    }
    match failure {
        Failure::Trap(code) => InitError::Trap { stage, code, backtrace },
        Failure::Exit(status) => InitError::Exit { stage, status },
        Failure::Deadline => InitError::Time { stage, backtrace },
        Failure::Internal => InitError::Host { stage, call: driver.host_function(program).unwrap_or("(nothing)") },
        failure => InitError::Failed { stage, failure, backtrace },
    }
}

/// What a function's initialisation must not do. Without folders, what is done with files always fails in the same way.
fn objection(function: &HostFunction, effect: Effect, args: &Args, has_folders: bool) -> Option<Objection> {
    let shared = |why| Some(Objection { why, acceptable: true });
    let never = |why| Some(Objection { why, acceptable: false });
    if let Code::Canonical(_) = function.code {
        return component_objection(function, effect, args, has_folders);
    }
    match effect {
        // They always give the same answer, or go to the log.
        Effect::Safe => None,
        Effect::Log if function.name == "log" => None,
        Effect::Entropy => match function.name {
            "random_get" => shared("reads random numbers: all requests would have the same"),
            "clock_time_get" => shared("reads the clock: all requests would see the time of loading"),
            _ => shared("waits for the clock, or for a stream that each request has anew"),
        },
        Effect::Stream if function.module == wasi::MODULE => stream_objection(function.name, args),
        Effect::Stream | Effect::Head | Effect::Log | Effect::Reply => never("belongs to a request"),
        Effect::External if function.module != wasi::MODULE => never("asks another server"),
        Effect::External if !has_folders => None,
        Effect::External | Effect::Scratch if wasi::only_reads_files(function.name, args) => shared(READS_FILES),
        Effect::Scratch => never(CHANGES_COPIES),
        Effect::External => never("changes what lies outside of the function"),
        Effect::KvRead | Effect::KvWrite => never("uses the key-value store, which changes"),
        Effect::Call => never("calls another function"),
    }
}

/// The same of what components import.
fn component_objection(function: &HostFunction, effect: Effect, args: &Args, has_folders: bool) -> Option<Objection> {
    let shared = |why| Some(Objection { why, acceptable: true });
    let never = |why| Some(Objection { why, acceptable: false });
    match effect {
        Effect::Safe => None,
        Effect::Log if function.name == "log" => None,
        Effect::Entropy if function.module.starts_with("wasi:random/") => {
            shared("reads random numbers: all requests would have the same")
        }
        Effect::Entropy if function.module.starts_with("wasi:clocks/") => {
            shared("reads the clock: all requests would see the time of loading")
        }
        Effect::Entropy => shared("waits for the clock, or for a stream that each request has anew"),
        Effect::Stream if wasi2::reads_stream(function.name) => shared("reads a stream that each request has anew"),
        Effect::Stream if wasi3::makes_ends(function.module, function.name) => never("begins a stream that belongs to a request"),
        // Standard error is the log, a reply has no room here, and a file was opened for writing before.
        Effect::Stream if ![wasi2::HTTP, wasi3::HTTP, host::EXCHANGE].contains(&function.module) => None,
        Effect::External if !function.module.starts_with("wasi:filesystem/") => never("asks another server"),
        Effect::External if !has_folders => None,
        Effect::External | Effect::Scratch if wasi2::only_reads_files(function.name, args) => shared(READS_FILES),
        Effect::Scratch => never(CHANGES_COPIES),
        Effect::External => never("changes what lies outside of the function"),
        Effect::KvRead | Effect::KvWrite => never("uses the key-value store, which changes"),
        Effect::Call => never("calls another function"),
        Effect::Stream | Effect::Head | Effect::Log | Effect::Reply => never("belongs to a request"),
    }
}

/// The same of WASI's functions on streams.
fn stream_objection(name: &str, args: &Args) -> Option<Objection> {
    match name {
        "fd_read" => Some(Objection { why: "reads a stream that each request has anew", acceptable: true }),
        // Standard error is the log; standard output would be a reply without a client.
        "fd_write" if args.u32(0) == STANDARD_ERROR => None,
        // What is not granted was opened meanwhile.
        "fd_close" if args.u32(0) > STANDARD_ERROR => None,
        "fd_write" | "fd_close" | "fd_renumber" | "fd_fdstat_set_rights" => {
            Some(Objection { why: "changes a stream that each request has anew", acceptable: false })
        }
        // What they tell or refuse is the same for every request; an exit is an error of its own.
        "fd_fdstat_get"
        | "fd_fdstat_set_flags"
        | "fd_prestat_get"
        | "fd_prestat_dir_name"
        | "fd_seek"
        | "fd_tell"
        | "proc_exit"
        | "proc_raise"
        | "sock_accept"
        | "sock_recv"
        | "sock_send"
        | "sock_shutdown" => None,
        _ => Some(Objection { why: "belongs to a request", acceptable: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FunctionConfig;
    use crate::host::wasi;
    use crate::invoke::by_hand;
    use sledge_sandbox::Slot;

    /// How an initialisation says that it failed so.
    #[test]
    fn each_failure_is_said_in_the_words_of_an_initialisation() {
        let loaded = by_hand::loaded(&FunctionConfig::new("f", "f.wasm"));
        let process = Arc::new(loaded.process.clone());
        let log = LogLines::new(Arc::clone(&process), Arc::default(), Writer::default());
        let context = Context::new(process, Streams::of_request(Body::default(), ReplyBytes::default(), 0, log));
        let driver = Driver::new(Box::new(loaded.template.instantiate().unwrap()), context);
        let error = |failure| error(&driver, &loaded.program, failure);
        assert!(matches!(error(Failure::Trap(TrapCode::Unreachable)), InitError::Trap { code: TrapCode::Unreachable, .. }));
        assert!(matches!(error(Failure::Exit(3)), InitError::Exit { status: 3, .. }));
        assert!(matches!(error(Failure::Deadline), InitError::Time { .. }));
        assert!(matches!(error(Failure::Internal), InitError::Host { call: "(nothing)", .. }));
        assert!(matches!(error(Failure::MemoryLimit), InitError::Failed { failure: Failure::MemoryLimit, .. }));
        let text = error(Failure::Deadline).to_string();
        assert!(text.starts_with("its initialisation was not done after 10 s: `_start` is at"), "{text}");
    }

    fn objects_to(name: &str, args: &[u64], has_folders: bool) -> Option<bool> {
        let function = wasi::FUNCTIONS.iter().find(|function| function.name == name).unwrap();
        let slots: Vec<Slot> = args.iter().map(|arg| Slot::from_bits(u128::from(*arg))).collect();
        objection(function, function.effect, &Args::new(&slots), has_folders).map(|objection| objection.acceptable)
    }

    fn objects(name: &str, fd: u64) -> Option<bool> {
        objects_to(name, &[fd], false)
    }

    #[test]
    fn what_differs_between_requests_is_no_part_of_what_they_share() {
        for shared in ["random_get", "clock_time_get", "poll_oneoff", "fd_read"] {
            assert_eq!(objects(shared, 0), Some(true), "{shared}");
        }
        assert_eq!(objects("fd_write", 1), Some(false));
        assert_eq!(
            [0, 2, 3].map(|number| objects("fd_close", number)),
            [Some(false), Some(false), None],
            "what it has opened itself"
        );
        assert_eq!(objects("fd_renumber", 0), Some(false));
        for harmless in
            ["args_get", "environ_get", "environ_sizes_get", "clock_res_get", "fd_prestat_get", "fd_fdstat_get", "path_open"]
        {
            assert_eq!(objects(harmless, 3), None, "{harmless}");
        }
        assert_eq!(objects("fd_write", 2), None);
    }

    #[test]
    fn files_may_be_read_where_that_is_accepted_and_never_changed() {
        for reads in ["path_filestat_get", "path_readlink", "fd_readdir", "fd_filestat_get", "fd_pread", "path_open", "fd_advise"]
        {
            assert_eq!(objects_to(reads, &[3], true), Some(true), "{reads}");
        }
        for changes in ["path_unlink_file", "path_rename", "path_create_directory", "fd_pwrite", "fd_allocate", "path_symlink"] {
            assert_eq!(objects_to(changes, &[3], true), Some(false), "{changes}");
        }
        // path_open: creating, truncating.
        for oflags in [1, 8, 5] {
            assert_eq!(objects_to("path_open", &[3, 0, 0, 0, oflags], true), Some(false), "{oflags}");
        }
        assert_eq!(objects_to("path_open", &[3, 0, 0, 0, 2], true), Some(true), "a folder");
    }

    #[test]
    fn components_share_no_more_than_modules() {
        let objects = |module: &str, name: &str, args: &[u64]| {
            let is_it = |function: &&HostFunction| function.module == module && function.name == name;
            let function = crate::host::offered_to_components().find(is_it).unwrap();
            let slots: Vec<Slot> = args.iter().map(|arg| Slot::from_bits(u128::from(*arg))).collect();
            objection(function, function.effect, &Args::new(&slots), true).map(|objection| objection.acceptable)
        };
        for (module, name) in [
            ("wasi:random/random@0.2", "get-random-u64"),
            ("wasi:clocks/wall-clock@0.2", "now"),
            ("wasi:io/poll@0.2", "poll"),
            ("wasi:io/streams@0.2", "[method]input-stream.blocking-read"),
            ("wasi:io/streams@0.2", "[method]output-stream.splice"),
            ("wasi:filesystem/types@0.2", "[method]descriptor.stat-at"),
            ("wasi:filesystem/types@0.2", "[method]descriptor.open-at"),
            ("wasi:filesystem/types@0.3", "[method]descriptor.open-at"),
        ] {
            assert_eq!(objects(module, name, &[]), Some(true), "{module} {name}");
        }
        for (module, name) in [
            ("wasi:filesystem/types@0.2", "[method]descriptor.unlink-file-at"),
            ("wasi:filesystem/types@0.2", "[method]descriptor.write"),
            ("wasi:filesystem/types@0.3", "[method]descriptor.rename-at"),
            ("wasi:filesystem/types@0.3", "[method]descriptor.read-via-stream"),
            ("wasi:filesystem/types@0.3", "[method]descriptor.read-directory"),
            ("wasi:sockets/tcp-create-socket@0.2", "create-tcp-socket"),
            ("wasi:sockets/types@0.3", "[static]tcp-socket.create"),
            ("wasi:sockets/types@0.3", "[method]tcp-socket.receive"),
            ("sledge:canonical", "requests"),
            ("wasi:http/types@0.2", "[method]outgoing-body.write"),
            ("sledge:http/exchange@0.1", "status"),
        ] {
            assert_eq!(objects(module, name, &[]), Some(false), "{module} {name}");
        }
        for (module, name) in [
            ("wasi:cli/environment@0.2", "get-environment"),
            ("wasi:cli/stdout@0.2", "get-stdout"),
            ("wasi:filesystem/preopens@0.2", "get-directories"),
            ("wasi:filesystem/preopens@0.3", "get-directories"),
            ("wasi:filesystem/types@0.2", "[method]descriptor.read-via-stream"),
            ("wasi:io/streams@0.2", "[method]output-stream.write"),
            ("wasi:io/streams@0.2", "[method]input-stream.subscribe"),
            ("sledge:canonical", "resume"),
            ("sledge:canonical", "drop"),
        ] {
            assert_eq!(objects(module, name, &[]), None, "{module} {name}");
        }
        // Creating, truncating, and opening for writing.
        for (open_flags, flags) in [(1, 1), (8, 1), (0, 2)] {
            let args = [0, 0, 0, 0, 0, open_flags, flags];
            assert_eq!(objects("wasi:filesystem/types@0.2", "[method]descriptor.open-at", &args), Some(false), "{open_flags}");
        }
    }

    /// Beside WASI there are the request, other servers, functions and the store, and the log, which is the operator's.
    #[test]
    fn of_what_is_no_wasi_the_log_alone_may_be_used() {
        for function in host::offered().filter(|function| function.module != wasi::MODULE) {
            let harmless = match function.effect {
                Effect::Safe => true,
                Effect::Log => function.name == "log",
                _ => false,
            };
            for has_folders in [false, true] {
                let acceptable =
                    objection(function, function.effect, &Args::new(&[]), has_folders).map(|objection| objection.acceptable);
                assert_eq!(acceptable, (!harmless).then_some(false), "{} {}", function.module, function.name);
            }
        }
        for file_function in ["path_filestat_get", "path_unlink_file"] {
            assert_eq!(objects_to(file_function, &[3], false), None, "{file_function}: without folders it always fails");
        }
    }

    #[test]
    fn components_without_folders_may_try_to_use_files() {
        let objects = |module: &str, name: &str| {
            let is_it = |function: &&HostFunction| function.module == module && function.name == name;
            let function = host::offered_to_components().find(is_it).unwrap();
            objection(function, function.effect, &Args::new(&[]), false).map(|objection| objection.acceptable)
        };
        for name in ["[method]descriptor.stat-at", "[method]descriptor.unlink-file-at"] {
            assert_eq!(objects("wasi:filesystem/types@0.2", name), None, "{name}");
        }
        for (module, name) in [
            ("wasi:sockets/tcp-create-socket@0.2", "create-tcp-socket"),
            ("wasi:sockets/types@0.3", "[static]tcp-socket.create"),
            ("sledge:note/notes@0.1", "phase"),
            ("sledge:canonical", "requests"),
        ] {
            assert_eq!(objects(module, name), Some(false), "{module} {name}");
        }
        assert_eq!(objects("sledge:note/notes@0.1", "log"), None);
        for (module, name) in
            [("wasi:random/random@0.2", "get-random-u64"), ("wasi:clocks/wall-clock@0.2", "now"), ("wasi:io/poll@0.2", "poll")]
        {
            assert_eq!(objects(module, name), Some(true), "{module} {name}");
        }
    }

    #[test]
    fn an_objection_says_what_differs() {
        for (module, name, words) in [
            (wasi::MODULE, "random_get", "reads random numbers"),
            (wasi::MODULE, "clock_time_get", "reads the clock"),
            (wasi::MODULE, "poll_oneoff", "waits for the clock"),
            (wasi::MODULE, "fd_read", "reads a stream"),
            (wasi::MODULE, "fd_renumber", "changes a stream"),
            (wasi::MODULE, "path_unlink_file", "changes what lies outside"),
            ("wasi:random/random@0.2", "get-random-u64", "reads random numbers"),
            ("wasi:clocks/wall-clock@0.2", "now", "reads the clock"),
            ("wasi:io/poll@0.2", "poll", "waits for the clock"),
            ("wasi:sockets/tcp-create-socket@0.2", "create-tcp-socket", "asks another server"),
            ("wasi:filesystem/types@0.2", "[method]descriptor.unlink-file-at", "changes what lies outside"),
            ("wasi:filesystem/types@0.3", "[method]descriptor.read-via-stream", "begins a stream"),
            ("sledge:canonical", "requests", "belongs to a request"),
            ("sledge:http/exchange@0.1", "stream", "belongs to a request"),
        ] {
            let is_it = |function: &&HostFunction| function.module == module && function.name == name;
            let function = host::offered().chain(host::offered_to_components()).find(is_it).unwrap();
            let Objection { why, .. } = objection(function, function.effect, &Args::new(&[]), true).unwrap();
            assert!(why.starts_with(words), "{module} {name}: {why}");
        }
    }

    #[test]
    fn no_local_function_is_forgotten() {
        let known = [
            "random_get",
            "clock_time_get",
            "poll_oneoff",
            "fd_read",
            "fd_write",
            "fd_close",
            "fd_renumber",
            "fd_fdstat_set_rights",
        ];
        let is_local = |function: &&HostFunction| matches!(function.effect, Effect::Stream | Effect::Entropy);
        for function in wasi::FUNCTIONS.iter().filter(is_local) {
            let harmless = objects(function.name, 0).is_none();
            assert!(known.contains(&function.name) || harmless, "{}", function.name);
        }
    }
}
