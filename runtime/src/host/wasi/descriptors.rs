//! File descriptors of one sandbox: standard streams, files, folders and calls, each with its rights.
//!
//! Most functions have no folders and never close or move a stream: they share one table, and a request of theirs costs nothing for it. A
//! new descriptor has the lowest number that is free, as POSIX wants it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use rustix::process::{Resource, getrlimit};

use super::contents::{Base, Contents};
use super::grants::{Access, Grant};
use super::scratch::{Overlay, Overlays};
use super::{Errno, rights};
use crate::host::rpc::Exchange;
use crate::host::{Call, Stop};

/// File descriptors that a sandbox may have, standard streams and granted folders included.
pub const DESCRIPTORS_MAX: usize = 256;
/// Of the descriptors that the system gives this process, the share that all sandboxes together may use: one in so many. The rest is
/// for connections.
const SYSTEM_SHARE: u64 = 2;

/// How many descriptors of the system sandboxes have.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// One of the standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Standard {
    Input,
    Output,
    Errors,
}

/// An open file descriptor.
#[derive(Debug)]
pub(in crate::host) struct Descriptor {
    pub(in crate::host) kind: Kind,
    /// What can be done with it.
    pub(in crate::host) base: u64,
    /// What can be done at most with what is opened through it.
    pub(in crate::host) inheriting: u64,
}

/// What a descriptor stands for.
#[derive(Debug)]
pub(in crate::host) enum Kind {
    Stream(Standard),
    File(File),
    Folder(Folder),
    /// A call by gRPC.
    Rpc(Box<Exchange>),
}

/// A file that is open.
#[derive(Debug)]
pub(in crate::host) struct File {
    pub(in crate::host) contents: Contents,
    /// Its `fdflags`.
    pub(in crate::host) flags: u16,
    /// Below a folder that may be changed.
    pub(super) write: bool,
    pub(in crate::host) open: Arc<Open>,
}

/// A folder that is open.
#[derive(Debug)]
pub(in crate::host) struct Folder {
    pub(in crate::host) base: Base,
    /// The grant through which it was reached, among those of the function.
    pub(super) grant: usize,
    /// Whether what is in it may be changed.
    pub(super) write: bool,
    /// Whether it is what was granted, and not below it.
    pub(super) granted: bool,
    /// None for what was granted: that is open once for all sandboxes.
    pub(in crate::host) open: Option<Arc<Open>>,
}

/// One of the system's descriptors, counted.
#[derive(Debug)]
pub(in crate::host) struct Open {
    /// Among those of an invocation of a component, which has no table of them.
    _share: Option<Arc<()>>,
}

impl Open {
    /// Takes one.
    ///
    /// # Errors
    /// `ENFILE` when sandboxes have as many as they may.
    pub(in crate::host) fn take(share: Option<Arc<()>>) -> Result<Open, Errno> {
        static MAX: LazyLock<usize> = LazyLock::new(|| {
            let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
            usize::try_from(current / SYSTEM_SHARE).unwrap_or(usize::MAX)
        });
        // Relaxed: a count, with which nothing else is published.
        if OPEN.fetch_add(1, Ordering::Relaxed) < *MAX {
            return Ok(Open { _share: share });
        }
        OPEN.fetch_sub(1, Ordering::Relaxed);
        Err(Errno::NFILE)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Descriptor {
    /// A standard stream.
    const fn stream(standard: Standard) -> Descriptor {
        let right = if matches!(standard, Standard::Input) { rights::FD_READ } else { rights::FD_WRITE };
        let base = right | rights::FD_FDSTAT_SET_FLAGS | rights::FD_FILESTAT_GET | rights::POLL_FD_READWRITE;
        Descriptor { kind: Kind::Stream(standard), base, inheriting: 0 }
    }

    /// A granted folder.
    pub(in crate::host) fn granted(index: usize, grant: &Grant, overlay: Option<&Arc<Overlay>>) -> Descriptor {
        let write = grant.access != Access::Read;
        let base = if write { rights::FOLDER } else { rights::FOLDER & !rights::CHANGING };
        let place = overlay.map_or_else(|| Base::Host(Arc::clone(&grant.dir)), |overlay| Base::Scratch(Arc::new(overlay.root())));
        let folder = Folder { base: place, grant: index, write, granted: true, open: None };
        // To write is passed on in any case, so that a guest that wants to write is told why not, and not given a descriptor without that right.
        Descriptor { kind: Kind::Folder(folder), base, inheriting: rights::FOLDER | rights::FILE }
    }

    /// A call.
    const fn rpc(exchange: Box<Exchange>) -> Descriptor {
        let reads = rights::FD_READ | rights::FD_WRITE | rights::POLL_FD_READWRITE | rights::SOCK_SHUTDOWN;
        let base = reads | rights::FD_FDSTAT_SET_FLAGS | rights::FD_FILESTAT_GET;
        Descriptor { kind: Kind::Rpc(exchange), base, inheriting: 0 }
    }

    /// It, if it has that right.
    pub(in crate::host) fn with(&self, right: u64) -> Result<&Descriptor, Errno> {
        if self.base & right == right { Ok(self) } else { Err(self.refusal(right)) }
    }

    /// The file, if it is one and has that right.
    pub(in crate::host) fn file(&self, right: u64) -> Result<&File, Errno> {
        match &self.with(right)?.kind {
            Kind::File(file) => Ok(file),
            // Streams have few of a file's rights, folders some that files have too.
            Kind::Stream(_) | Kind::Rpc(_) => Err(Errno::BADF),
            Kind::Folder(_) => Err(Errno::ISDIR),
        }
    }

    /// The folder, if it is one and has that right, and what it passes on.
    pub(in crate::host) fn folder(&self, right: u64) -> Result<(&Folder, u64), Errno> {
        match &self.with(right)?.kind {
            Kind::Folder(folder) => Ok((folder, self.inheriting)),
            Kind::Stream(_) | Kind::File(_) | Kind::Rpc(_) => Err(Errno::NOTDIR),
        }
    }

    /// Whether it belongs to a grant that allows changes.
    pub(in crate::host) const fn may_change(&self) -> bool {
        matches!(self.kind, Kind::File(File { write: true, .. }) | Kind::Folder(Folder { write: true, .. }))
    }

    /// Whether what is changed through it is private to the invocation.
    pub(in crate::host) const fn is_scratch(&self) -> bool {
        matches!(
            self.kind,
            Kind::File(File { contents: Contents::Scratch(_), .. }) | Kind::Folder(Folder { base: Base::Scratch(_), .. })
        )
    }

    /// The index of the grant to which a folder belongs.
    ///
    /// # Errors
    /// When it is no folder.
    pub(in crate::host) fn grant(&self) -> Result<usize, Errno> {
        Ok(self.folder(0)?.0.grant)
    }

    /// Why it does not allow what needs `right`.
    #[cold]
    fn refusal(&self, right: u64) -> Errno {
        let is = |set: u64| right & !set == 0;
        match &self.kind {
            Kind::Stream(_) | Kind::Rpc(_) if is(rights::FD_SEEK | rights::FD_TELL) => Errno::SPIPE,
            Kind::Stream(_) | Kind::Rpc(_) | Kind::File(_) if is(rights::FOLDER & !rights::FILE) => Errno::NOTDIR,
            Kind::Stream(_) | Kind::Rpc(_) if is(rights::FILE) => Errno::BADF,
            Kind::Folder(_) if is(rights::FILE & !rights::FOLDER) => Errno::ISDIR,
            Kind::File(_) if is(rights::FD_READ | rights::FD_WRITE) => Errno::BADF,
            Kind::File(File { write: false, .. }) | Kind::Folder(Folder { write: false, .. }) if is(rights::CHANGING) => {
                Errno::ROFS
            }
            _ => Errno::NOTCAPABLE,
        }
    }
}

/// What is open in a sandbox at its beginning, folders apart.
static STANDARD: [Option<Descriptor>; 3] = [
    Some(Descriptor::stream(Standard::Input)),
    Some(Descriptor::stream(Standard::Output)),
    Some(Descriptor::stream(Standard::Errors)),
];

/// The file descriptors of a sandbox, by number; none as long as they are [`STANDARD`]. In a box: most invocations have no others, and each moves this.
#[derive(Debug)]
pub(in crate::host) struct Descriptors(Option<Box<Table>>);

#[derive(Debug)]
struct Table {
    all: Vec<Option<Descriptor>>,
    /// Calls among them, and bytes that those keep.
    rpcs: usize,
    rpc_bytes: usize,
    /// Where there are folders that the invocation may change for itself.
    scratch: Option<Box<Overlays>>,
}

impl Table {
    #[cold]
    fn new(grants: &[Grant]) -> Box<Table> {
        let streams = [Standard::Input, Standard::Output, Standard::Errors].map(Descriptor::stream);
        let scratch = Overlays::new(grants);
        let overlay = |index| scratch.as_ref().and_then(|scratch| scratch.get(index));
        let folders = grants.iter().enumerate().map(|(index, grant)| Descriptor::granted(index, grant, overlay(index)));
        let all = streams.into_iter().chain(folders).map(Some).collect();
        Box::new(Table { all, rpcs: 0, rpc_bytes: 0, scratch })
    }
}

impl Descriptors {
    /// What a sandbox begins with.
    pub(in crate::host) fn new(grants: &[Grant]) -> Descriptors {
        Descriptors((!grants.is_empty()).then(|| Table::new(grants)))
    }

    fn all(&self) -> &[Option<Descriptor>] {
        self.0.as_ref().map_or(&STANDARD, |table| &table.all)
    }

    fn table(&mut self) -> &mut Table {
        self.0.get_or_insert_with(|| Table::new(&[]))
    }

    fn all_mut(&mut self) -> &mut Vec<Option<Descriptor>> {
        &mut self.table().all
    }

    /// Whether there are files, folders or calls besides what was granted.
    pub(in crate::host) fn has_opened(&self) -> bool {
        let opened = |descriptor: &Descriptor| match &descriptor.kind {
            Kind::Stream(_) => false,
            Kind::File(_) | Kind::Rpc(_) => true,
            Kind::Folder(folder) => !folder.granted,
        };
        self.all().iter().flatten().any(opened)
    }

    /// What this invocation has in place of a granted folder, if it may change that for itself.
    pub(in crate::host) fn overlay(&self, grant: usize) -> Option<&Arc<Overlay>> {
        self.0.as_ref()?.scratch.as_ref()?.get(grant)
    }

    /// Whether they are, or ever were, others than [`STANDARD`]: only then do they keep bytes.
    pub(in crate::host) const fn are_changed(&self) -> bool {
        self.0.is_some()
    }

    /// Bytes that it keeps of such folders.
    pub(in crate::host) fn scratch_bytes(&self) -> u64 {
        self.0.as_ref().and_then(|table| table.scratch.as_ref()).map_or(0, |scratch| scratch.bytes())
    }

    /// Whether what is changed through that descriptor is private to the invocation.
    pub(in crate::host) fn is_scratch(&self, fd: u32) -> bool {
        self.get(fd).is_ok_and(Descriptor::is_scratch)
    }

    pub(super) fn get(&self, fd: u32) -> Result<&Descriptor, Errno> {
        self.all().get(fd as usize).and_then(Option::as_ref).ok_or(Errno::BADF)
    }

    pub(super) fn get_mut(&mut self, fd: u32) -> Result<&mut Descriptor, Errno> {
        self.all_mut().get_mut(fd as usize).and_then(Option::as_mut).ok_or(Errno::BADF)
    }

    /// An open descriptor that has that right.
    pub(super) fn with(&self, fd: u32, right: u64) -> Result<&Descriptor, Errno> {
        self.get(fd)?.with(right)
    }

    /// A file that has that right.
    pub(super) fn file(&self, fd: u32, right: u64) -> Result<&File, Errno> {
        self.get(fd)?.file(right)
    }

    /// A folder that has that right, and what it passes on.
    pub(super) fn folder(&self, fd: u32, right: u64) -> Result<(&Folder, u64), Errno> {
        self.get(fd)?.folder(right)
    }

    /// The lowest free number.
    ///
    /// # Errors
    /// `EMFILE` when there are as many as there may be.
    pub(in crate::host) fn vacant(&self) -> Result<u32, Errno> {
        let all = self.all();
        let fd = all.iter().position(Option::is_none).unwrap_or(all.len());
        // Below the limit it fits.
        if fd < DESCRIPTORS_MAX { Ok(fd as u32) } else { Err(Errno::MFILE) }
    }

    /// Opens it under the lowest free number.
    pub(super) fn insert(&mut self, descriptor: Descriptor) -> Result<u32, Errno> {
        let fd = self.vacant()?;
        let all = self.all_mut();
        match all.get_mut(fd as usize) {
            Some(place) => *place = Some(descriptor),
            None => all.push(Some(descriptor)),
        }
        Ok(fd)
    }

    fn remove(&mut self, fd: u32) -> Result<Descriptor, Errno> {
        self.all_mut().get_mut(fd as usize).and_then(Option::take).ok_or(Errno::BADF)
    }

    /// Closes one.
    fn close(&mut self, fd: u32) -> Result<(), Errno> {
        if let Kind::Rpc(exchange) = &self.remove(fd)?.kind {
            let table = self.table();
            table.rpcs -= 1;
            table.rpc_bytes -= exchange.counted;
        }
        Ok(())
    }

    /// Opens a call.
    pub(in crate::host) fn open_rpc(&mut self, mut exchange: Box<Exchange>) -> Result<u32, Errno> {
        let bytes = exchange.bytes();
        exchange.counted = bytes;
        let fd = self.insert(Descriptor::rpc(exchange))?;
        let table = self.table();
        table.rpcs += 1;
        table.rpc_bytes += bytes;
        Ok(fd)
    }

    /// Does something with a call, and counts what it keeps afterwards.
    ///
    /// # Errors
    /// `EBADF` where it is none, and those of `work`.
    pub(in crate::host) fn with_rpc<T, E: From<Errno>>(
        &mut self,
        fd: u32,
        work: impl FnOnce(&mut Exchange) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(table) = &mut self.0 else { return Err(Errno::BADF.into()) };
        let Some(Some(Descriptor { kind: Kind::Rpc(exchange), .. })) = table.all.get_mut(fd as usize) else {
            return Err(Errno::BADF.into());
        };
        let result = work(exchange);
        let (before, now) = (exchange.counted, exchange.bytes());
        exchange.counted = now;
        table.rpc_bytes = table.rpc_bytes + now - before;
        result
    }

    /// Whether calls are open.
    pub(super) fn has_rpcs(&self) -> bool {
        self.0.as_ref().is_some_and(|table| table.rpcs > 0)
    }

    /// Bytes that calls keep.
    pub(in crate::host) fn rpc_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |table| table.rpc_bytes)
    }
}

/// `fd_close(fd)`
pub(super) fn fd_close(call: &mut Call<'_>) -> Result<(), Stop> {
    call.context.ports.descriptors_mut()?.close(call.args.u32(0))?;
    Ok(())
}

/// `fd_renumber(from, to)`: what `to` was is closed; both have to be open.
pub(super) fn fd_renumber(call: &mut Call<'_>) -> Result<(), Stop> {
    let (from, to) = (call.args.u32(0), call.args.u32(1));
    let descriptors = call.context.ports.descriptors_mut()?;
    descriptors.get(from)?;
    descriptors.get(to)?;
    if from != to {
        let descriptor = descriptors.remove(from)?;
        descriptors.close(to)?;
        if let Some(place) = descriptors.all_mut().get_mut(to as usize) {
            *place = Some(descriptor);
        }
    }
    Ok(())
}

/// `fd_fdstat_set_rights(fd, base, inheriting)`: rights can only be given up.
pub(super) fn fd_fdstat_set_rights(call: &mut Call<'_>) -> Result<(), Stop> {
    let (base, inheriting) = (call.args.u64(1), call.args.u64(2));
    let descriptor = call.context.ports.descriptors_mut()?.get_mut(call.args.u32(0))?;
    if base & !descriptor.base != 0 || inheriting & !descriptor.inheriting != 0 {
        return Err(Errno::NOTCAPABLE.into());
    }
    (descriptor.base, descriptor.inheriting) = (base, inheriting);
    Ok(())
}
