//! The only process that may start others: a server that serves may not (`confine`), so it asks this one to run the compiler.
//!
//! It is this program once more, started before anything else is done, under a command that no user types ([`BROKER_COMMAND`]). What it is asked
//! for is a folder with a module, how to compile it and the folder of the compiler's cache, never a program or arguments: an attacker that took the
//! server over would get no further than the compiler, under the limits that it has for everybody. It ends when the server does.
//!
//! ```text
//!   server --a line of JSON: Asked---> broker --child::run_until--> sledge limited -> awsm
//!          <-a line of JSON: Answer--
//! ```

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use awsm_abi::types::Bounds;
use serde::{Deserialize, Serialize};

use super::child::{self, INHERITED, Limits, Parts, Work};
use super::{Cancel, CompileError, Priority, Purpose, Target};
use crate::confine;

/// The command of this program that starts compilers for another.
pub const BROKER_COMMAND: &str = "compile-broker";

/// Compilers at the same time; further orders wait.
const COMPILERS_MAX: usize = 16;
/// The longest line.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// What the server says to the broker.
#[derive(Debug, Serialize, Deserialize)]
enum Asked {
    /// Something is to be compiled.
    Compile(Box<Order>),
    /// The order of that number is not wanted any more. It is answered nevertheless.
    Cancel(u64),
}

/// What is to be compiled.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    id: u64,
    /// Where the module lies, and the artifact will.
    folder: PathBuf,
    bounds: String,
    cpu: String,
    opt_level: u8,
    unknown_imports: bool,
    purpose: Purpose,
    priority: Priority,
    ms_max: u64,
    memory_bytes_max: u64,
    parts: Option<Parts>,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    id: u64,
    error: Option<Error>,
}

/// A [`CompileError`] on its way.
#[derive(Debug, Serialize, Deserialize)]
enum Error {
    Start { compiler: PathBuf, why: String },
    NoCompiler { beside: PathBuf },
    Folder { why: String },
    Failed { status: i32, message: String },
    Time { ms_max: u64 },
    Cancelled,
    Killed { signal: i32, memory_bytes_max: u64, message: String },
    Other { why: String },
}

/// The server's side.
#[derive(Debug)]
pub struct Broker {
    orders: Arc<Mutex<UnixStream>>,
    waiting: Arc<Mutex<Waiting>>,
    /// Whether a thread listens to the answers.
    listens: OnceLock<()>,
}

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    is_gone: bool,
    by_id: HashMap<u64, Sender<Option<Error>>>,
}

impl Broker {
    /// Starts it. To be done before this process has anything that the broker should not have.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start() -> io::Result<Broker> {
        let (here, there) = UnixStream::pair()?;
        // Also when its file has been replaced meanwhile.
        let child = Command::new("/proc/self/exe")
            .arg0("sledge")
            .arg(BROKER_COMMAND)
            .env_clear()
            .envs(INHERITED.iter().chain(&["TMPDIR"]).filter_map(|name| Some((name, std::env::var_os(name)?))))
            .stdin(OwnedFd::from(there))
            .stdout(Stdio::null())
            // What is typed at the server's terminal is for the server.
            .process_group(0)
            .spawn()?;
        // It ends by itself, when the server has: no process waits for it.
        drop(child);
        Ok(Broker { orders: Arc::new(Mutex::new(here)), waiting: Arc::default(), listens: OnceLock::new() })
    }

    /// Has `function.wasm` in that folder compiled, to `function.so`, unless that is cancelled.
    pub(super) fn run(&self, folder: &Path, work: &Work, cancel: &Cancel) -> Result<(), CompileError> {
        if cancel.is_cancelled() {
            return Err(CompileError::Cancelled);
        }
        self.listen().map_err(CompileError::Folder)?;
        let folder = std::path::absolute(folder).map_err(CompileError::Folder)?;
        let (sender, answer) = mpsc::channel();
        let id = {
            let mut waiting = lock(&self.waiting);
            if waiting.is_gone {
                return Err(CompileError::NoBroker);
            }
            waiting.last += 1;
            let id = waiting.last;
            waiting.by_id.insert(id, sender);
            id
        };
        let Work { target, purpose, priority, limits, parts } = work;
        let order = Order {
            id,
            folder,
            bounds: target.bounds.name().to_owned(),
            cpu: target.cpu.clone(),
            opt_level: target.opt_level,
            unknown_imports: target.unknown_imports,
            purpose: *purpose,
            priority: *priority,
            ms_max: limits.ms_max,
            memory_bytes_max: limits.memory_bytes_max,
            parts: parts.clone(),
        };
        let sent = write_line(&mut *lock(&self.orders), &Asked::Compile(Box::new(order)));
        // After the order, in one stream: the broker knows it then.
        let orders = Arc::clone(&self.orders);
        let end = move || drop(write_line(&mut *lock(&orders), &Asked::Cancel(id)));
        if !cancel.arm(end.clone()) {
            end();
        }
        // Where the order did not get there, no answer will come; else the sender is dropped when the broker has gone.
        let answer = sent.ok().and_then(|()| answer.recv().ok());
        cancel.disarm();
        match answer {
            Some(None) => Ok(()),
            Some(Some(error)) => Err(error.into()),
            None => Err(CompileError::NoBroker),
        }
    }

    /// Starts the thread that hands answers to the threads that wait for them: most servers compile nothing while they serve.
    fn listen(&self) -> io::Result<()> {
        let orders = lock(&self.orders);
        if self.listens.get().is_some() {
            return Ok(());
        }
        let answers = BufReader::new(orders.try_clone()?);
        let waiting = Arc::clone(&self.waiting);
        // The server may still need its privileges when the first function is compiled; this thread never needs any.
        confine::thread("compilations", move || hand_out(answers, &waiting))?;
        let _ = self.listens.set(());
        Ok(())
    }
}

fn hand_out(mut answers: impl BufRead, waiting: &Mutex<Waiting>) {
    while let Ok(Some(Answer { id, error })) = read_line(&mut answers) {
        if let Some(sender) = lock(waiting).by_id.remove(&id) {
            // No thread gives up waiting.
            let _ = sender.send(error);
        }
    }
    let mut waiting = lock(waiting);
    waiting.is_gone = true;
    waiting.by_id.clear();
}

/// The broker's side: takes orders from standard input, and answers there, until the other end is closed.
///
/// # Errors
/// When standard input is not what [`Broker::start`] made it.
pub fn serve() -> io::Result<()> {
    confine::drop_privileges();
    // A server that is killed takes its compilers with it: each ends with the thread that started it.
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let answers = Arc::new(Mutex::new(socket.try_clone()?));
    let mut orders = BufReader::new(socket);
    let running: Arc<Mutex<HashMap<u64, PipeWriter>>> = Arc::default();
    while let Some(asked) = read_line::<Asked>(&mut orders)? {
        let order = match asked {
            Asked::Compile(order) => order,
            Asked::Cancel(id) => {
                // What is waited for at the other end sees that this one is closed.
                drop(lock(&running).remove(&id));
                continue;
            }
        };
        let id = order.id;
        let answer = {
            let answers = Arc::clone(&answers);
            // Where the server has gone, so does this process.
            move |error| write_line(&mut *lock(&answers), &Answer { id, error })
        };
        let refuse = |why: String| answer(Some(Error::Other { why }));
        let (cancelled, end) = match io::pipe() {
            Ok(ends) => ends,
            Err(error) => {
                refuse(error.to_string())?;
                continue;
            }
        };
        let has_room = {
            let mut running = lock(&running);
            // Those that were cancelled are about to end.
            let has_room = running.len() < COMPILERS_MAX;
            if has_room {
                running.insert(id, end);
            }
            has_room
        };
        if !has_room {
            refuse(format!("{COMPILERS_MAX} compilers run already"))?;
            continue;
        }
        let (now, work) = (Arc::clone(&running), answer.clone());
        let spawned = thread::Builder::new().name("compiler".to_owned()).spawn(move || {
            let error = carry_out(*order, &cancelled).err();
            drop(lock(&now).remove(&id));
            let _ = work(error);
        });
        if let Err(error) = spawned {
            drop(lock(&running).remove(&id));
            refuse(error.to_string())?;
        }
    }
    Ok(())
}

fn carry_out(order: Order, cancelled: &PipeReader) -> Result<(), Error> {
    let known = [Bounds::Guard, Bounds::Segment, Bounds::Software, Bounds::None];
    let bounds = known.into_iter().find(|bounds| bounds.name() == order.bounds);
    let bounds = bounds.ok_or_else(|| Error::Other { why: format!("no bounds mode: {:?}", order.bounds) })?;
    // An option of the compiler's would be taken for one.
    let is_relative = order.parts.as_ref().is_some_and(|parts| !parts.folder.is_absolute());
    if order.cpu.starts_with('-') || !order.folder.is_absolute() || is_relative {
        return Err(Error::Other { why: format!("no order: {order:?}") });
    }
    let limits = Limits { ms_max: order.ms_max, memory_bytes_max: order.memory_bytes_max };
    let program = super::program()?;
    let target = Target { bounds, cpu: order.cpu, opt_level: order.opt_level, unknown_imports: order.unknown_imports };
    let work = Work { target, purpose: order.purpose, priority: order.priority, limits, parts: order.parts };
    Ok(child::run_until(&program, &order.folder, &work, cancelled)?)
}

impl From<CompileError> for Error {
    fn from(error: CompileError) -> Error {
        match error {
            CompileError::NoCompiler { beside } => Error::NoCompiler { beside },
            CompileError::Start { compiler, source } => Error::Start { compiler, why: source.to_string() },
            CompileError::Folder(source) => Error::Folder { why: source.to_string() },
            CompileError::Failed { status, message } => Error::Failed { status: status.into_raw(), message },
            CompileError::Time { ms_max } => Error::Time { ms_max },
            CompileError::Cancelled => Error::Cancelled,
            CompileError::Killed { signal, memory_bytes_max, message } => Error::Killed { signal, memory_bytes_max, message },
            other @ (CompileError::TooLarge { .. } | CompileError::NoBroker | CompileError::Refused(_)) => {
                Error::Other { why: other.to_string() }
            }
        }
    }
}

impl From<Error> for CompileError {
    fn from(error: Error) -> CompileError {
        match error {
            Error::NoCompiler { beside } => CompileError::NoCompiler { beside },
            Error::Start { compiler, why } => CompileError::Start { compiler, source: io::Error::other(why) },
            Error::Folder { why } => CompileError::Folder(io::Error::other(why)),
            Error::Failed { status, message } => CompileError::Failed { status: ExitStatus::from_raw(status), message },
            Error::Time { ms_max } => CompileError::Time { ms_max },
            Error::Cancelled => CompileError::Cancelled,
            Error::Killed { signal, memory_bytes_max, message } => CompileError::Killed { signal, memory_bytes_max, message },
            Error::Other { why } => CompileError::Refused(why),
        }
    }
}

fn write_line(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// The next line; none at the end.
fn read_line<T: for<'a> Deserialize<'a>>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    io::Read::take(&mut *from, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&line)?)) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is done under these locks cannot panic half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
