//! What the sockets of one invocation may reach: what the configuration says, and the addresses to which its lookups of listed names led.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use super::ErrorCode;
use crate::host::wasi::descriptors::Open;
use crate::upstream::SocketPolicy;

/// Sockets of one invocation.
pub(in crate::host) const SOCKETS_MAX: usize = 128;
/// Lookups of one invocation whose streams it has not dropped.
pub(in crate::host) const LOOKUPS_MAX: usize = 16;
/// Addresses of names that are kept for one invocation; the oldest go first.
const LEARNED_MAX: usize = 256;

/// That a socket of the system is open: it counts among the invocation's and among all, and so does what the kernel keeps for it.
#[derive(Debug)]
pub(in crate::host) struct Share {
    _open: Open,
    all: Arc<AtomicUsize>,
    /// Its part of all bytes.
    bytes: AtomicUsize,
}

impl Share {
    /// Counts so many bytes beside its own.
    pub(in crate::host) fn keep(&self, bytes: usize) {
        // Relaxed, as below: counts, with which nothing else is published.
        self.all.fetch_add(bytes, Ordering::Relaxed);
    }

    /// No longer counts these.
    pub(in crate::host) fn release(&self, bytes: usize) {
        self.all.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts so many bytes for it from now on.
    pub(in crate::host) fn count(&self, bytes: usize) {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        self.all.fetch_add(bytes, Ordering::Relaxed);
        self.all.fetch_sub(before, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.count(0);
    }
}

/// Counts sockets of an invocation.
#[derive(Debug)]
pub(in crate::host) struct Door(Weak<AtomicUsize>);

impl Door {
    /// Counts one more.
    ///
    /// # Errors
    /// `new-socket-limit` where the invocation, or all of them together, have as many as they may.
    pub(in crate::host) fn open(&self) -> Result<Share, ErrorCode> {
        let all = self.0.upgrade().ok_or(ErrorCode::NewSocketLimit)?;
        // One is that of `Reach`, another this one.
        if Arc::strong_count(&all) > SOCKETS_MAX + 1 {
            return Err(ErrorCode::NewSocketLimit);
        }
        let open = Open::take(None).map_err(|_| ErrorCode::NewSocketLimit)?;
        Ok(Share { _open: open, all, bytes: AtomicUsize::new(0) })
    }
}

/// What the sockets of one invocation may reach.
#[derive(Debug)]
pub(in crate::host) struct Reach {
    policy: Arc<SocketPolicy>,
    /// Addresses, and the names that led to them.
    learned: Vec<(IpAddr, Arc<str>)>,
    /// A share for each socket, and the bytes that the kernel keeps for all of them.
    sockets: Arc<AtomicUsize>,
    /// A share for each lookup.
    lookups: Arc<()>,
}

impl Reach {
    pub(in crate::host) fn new(policy: Arc<SocketPolicy>) -> Reach {
        Reach { policy, learned: Vec::new(), sockets: Arc::default(), lookups: Arc::default() }
    }

    /// Whether a socket may connect or send to that address.
    pub(in crate::host) fn reaches(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let names = self.learned.iter().filter(|(known, _)| *known == ip).map(|(_, name)| &**name);
        self.policy.reaches(address, names)
    }

    /// Whether others may reach a socket at that address.
    pub(in crate::host) fn may_listen(&self, address: SocketAddr) -> bool {
        self.policy.may_listen(address)
    }

    /// Whether a name may be looked up.
    pub(in crate::host) fn may_look_up(&self, name: &str) -> bool {
        self.policy.may_look_up(name)
    }

    /// A name led to that address.
    pub(in crate::host) fn learn(&mut self, name: &Arc<str>, address: IpAddr) {
        let address = address.to_canonical();
        if self.learned.iter().any(|(known, other)| *known == address && other == name) {
            return;
        }
        if self.learned.len() >= LEARNED_MAX {
            self.learned.remove(0);
        }
        self.learned.push((address, Arc::clone(name)));
    }

    /// Counts one more socket of the system.
    ///
    /// # Errors
    /// `new-socket-limit` where the invocation, or all of them together, have as many as they may.
    pub(in crate::host) fn open(&self) -> Result<Share, ErrorCode> {
        self.door().open()
    }

    /// What counts sockets that come by themselves.
    pub(in crate::host) fn door(&self) -> Door {
        Door(Arc::downgrade(&self.sockets))
    }

    /// Bytes that the kernel keeps for the sockets: about.
    pub(in crate::host) fn memory_bytes(&self) -> usize {
        self.sockets.load(Ordering::Relaxed)
    }

    /// Counts one more lookup, for as long as the share is kept; none where there are as many as there may be.
    pub(in crate::host) fn look_up(&self) -> Option<Arc<()>> {
        let share = Arc::clone(&self.lookups);
        // One is its own, another this one.
        (Arc::strong_count(&share) <= LOOKUPS_MAX + 1).then_some(share)
    }
}
