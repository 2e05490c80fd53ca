//! Room of the process: addresses and mappings. Sandboxes and code leave an eighth of both to everything else, since an allocation or a thread that
//! finds none ends the process, where a sandbox that finds none takes the place of an idle one.
//!
//! | | there are | a sandbox takes |
//! |---|---|---|
//! | mappings | `vm.max_map_count`, 65,530 unless set | about 8: a stack, a memory, what of it is protected; up to 128 for a memory that is written to all over |
//! | addresses | 128 TiB; 512 GiB with 39 bits; `ulimit -v` | 8 GiB, if its code is guarded |
//!
//! For handlers, too: nothing here allocates or locks, once [`Room::max`] was asked.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit};

use super::space;
use crate::limits::ROOM_LEFT_SHARE;

/// Of a process there is so much; what is taken of it.
#[derive(Debug)]
pub(crate) struct Room {
    taken: AtomicUsize,
    max: OnceLock<usize>,
    ask: fn() -> usize,
}

/// What `/proc/self/maps` has lines of.
pub(crate) static MAPPINGS: Room = Room::new(mappings);

/// Bytes of address space.
pub(crate) static ADDRESSES: Room = Room::new(addresses);

impl Room {
    const fn new(ask: fn() -> usize) -> Room {
        Room { taken: AtomicUsize::new(0), max: OnceLock::new(), ask }
    }

    /// What may be taken altogether.
    fn max(&self) -> usize {
        *self.max.get_or_init(|| {
            let all = (self.ask)();
            all - all / ROOM_LEFT_SHARE
        })
    }

    /// Whether there is so much, once `freed` is given back.
    fn has(&self, wanted: usize, freed: usize) -> bool {
        // Relaxed: a count that nothing else depends on; several may find the same room, which is why some is left.
        self.taken.load(Ordering::Relaxed).saturating_sub(freed).saturating_add(wanted) <= self.max()
    }

    /// Takes so much; false, and nothing taken, where there is not so much left.
    pub(crate) fn take(&self, wanted: usize) -> bool {
        self.take_up_to(self.max(), wanted)
    }

    /// The same where half is to be left: for what is only faster with it.
    pub(crate) fn take_of_half(&self, wanted: usize) -> bool {
        self.take_up_to(self.max() / 2, wanted)
    }

    fn take_up_to(&self, max: usize, wanted: usize) -> bool {
        let add = |taken: usize| taken.checked_add(wanted).filter(|&sum| sum <= max);
        wanted == 0 || self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Takes so much even where there is not so much left.
    pub(crate) fn add(&self, wanted: usize) {
        self.taken.fetch_add(wanted, Ordering::Relaxed);
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(&self, taken: usize) {
        self.taken.fetch_sub(taken, Ordering::Relaxed);
    }
}

/// Whether there are so many addresses and mappings, once those others are given back.
pub(crate) fn has(wanted: [usize; 2], freed: [usize; 2]) -> bool {
    ADDRESSES.has(wanted[0], freed[0]) && MAPPINGS.has(wanted[1], freed[1])
}

/// Whether there would not be so many even if nothing else had any.
pub(crate) fn never_has(wanted: [usize; 2]) -> bool {
    wanted[0] > ADDRESSES.max() || wanted[1] > MAPPINGS.max()
}

/// Addresses and mappings of several together.
pub(crate) fn sum(rooms: impl Iterator<Item = [usize; 2]>) -> [usize; 2] {
    rooms.fold([0, 0], |sum, room| [sum[0] + room[0], sum[1] + room[1]])
}

fn mappings() -> usize {
    let system = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|text| text.trim().parse().ok());
    // What Linux has by default.
    system.unwrap_or(65_530)
}

fn addresses() -> usize {
    // Where reservations are dear, those that are given up are kept, and do not count as taken.
    if space::dear() {
        return usize::MAX;
    }
    // The first stack lies at the top of the addresses.
    let top = (rustix::param::linux_execfn().as_ptr() as usize).checked_next_power_of_two();
    let limit = getrlimit(Resource::As).current.and_then(|bytes| usize::try_from(bytes).ok());
    top.unwrap_or(usize::MAX).min(limit.unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_is_left_and_what_is_given_back_can_be_taken_again() {
        let room = Room::new(|| 80);
        assert!(room.has(70, 0) && !room.has(71, 0) && !room.has(usize::MAX, 0));
        assert!(room.take(60) && !room.take(11) && room.take(10) && room.take(0) && !room.take(1));
        room.give_back(30);
        assert!(!room.take(usize::MAX) && room.take(30) && !room.take(1));
        room.add(5);
        assert!(!room.has(1, 5) && room.has(1, 6));
        room.give_back(41);
        assert!(!room.take_of_half(2) && room.take_of_half(1) && !room.take_of_half(1) && room.take(1));
    }

    #[test]
    fn there_is_room_for_a_server() {
        assert!(mappings() > 1_000, "{}", mappings());
        assert!(addresses() > 64 << 30, "{}", addresses());
    }
}
