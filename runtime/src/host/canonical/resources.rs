//! The host's resources of one invocation: what the representations in handle tables stand for.
//!
//! A representation is a place in a slab, from 1. The first places belong to what every invocation of a function has alike: its request and where the response goes, its
//! standard streams, and granted folders. Those are made when they are first asked for. The streams and folders last as long as the invocation. So a handle of one of them may be
//! part of a snapshot, and means in each invocation that one's.

use std::any::Any;
use std::fmt;

use awsm_abi::component::{REQUEST, RESOURCES, RESPONSE, Violation};

use super::Look;
use crate::component_trap::ComponentTrap;
use crate::host::Stop;

/// Resources that an invocation may have.
pub(super) const RESOURCES_MAX: usize = 1 << 16;
/// Places that there is room for from the first: most invocations need no more.
const PLACES: usize = 8;

/// The first representation of what lasts as long as the invocation. Those of the request are below, and go as others do.
pub(in crate::host) const FIRST_LASTING: u32 = RESPONSE + 1;

const _: () = assert!(REQUEST == 1 && RESPONSE == 2, "these places are the first");

/// What a handle of a component may stand for. Dropped with its handle or with the invocation.
pub(in crate::host) trait Resource: Any + Send + fmt::Debug {
    /// Bytes that it keeps in the host's memory beside itself.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Its handle was dropped by the component.
    fn dropped(&mut self) {}

    /// Whether a pollable of it is ready. Otherwise [`Look`] says what has to be arranged.
    ///
    /// # Errors
    /// When the invocation ends by that.
    fn is_ready(&mut self, _: &mut Look<'_>) -> Result<bool, Stop> {
        Ok(true)
    }
}

/// A resource that has a type in WIT.
pub(in crate::host) trait Typed: Resource {
    /// Its number among [`RESOURCES`]: [`number`].
    const NUMBER: u32;
}

/// The number of a resource of the host, from its interface with its track and its name.
///
/// # Panics
/// When there is none: only to be used where constants are evaluated.
pub(in crate::host) const fn number(interface: &str, name: &str) -> u32 {
    let mut index = 0;
    while index < RESOURCES.len() {
        if same(RESOURCES[index].0, interface) && same(RESOURCES[index].1, name) {
            return index as u32 + 1;
        }
        index += 1;
    }
    panic!("a resource of the host");
}

const fn same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut index = 0;
    while index < left.len() && index < right.len() && left[index] == right[index] {
        index += 1;
    }
    index == left.len() && index == right.len()
}

/// A resource in its place.
#[derive(Debug)]
struct Held {
    resource: Box<dyn Resource>,
    /// The representation of what it depends on; zero for nothing.
    parent: u32,
    /// How many depend on it.
    children: u32,
    /// Bytes that it keeps, as they were counted.
    counted: usize,
}

/// A place for a resource.
#[derive(Debug)]
enum Slot {
    /// It has one.
    Held(Held),
    /// It has none, and stands in a list of those: the representation of the next, or zero.
    Vacant(u32),
    /// It is reserved for what every invocation has.
    Reserved,
}

/// The resources of an invocation.
#[derive(Debug, Default)]
pub(in crate::host) struct Resources {
    places: Vec<Slot>,
    /// The representation whose place was vacated last, or zero.
    vacant: u32,
    /// How many were vacated.
    vacant_count: usize,
    /// How many places, from the first, are for what every invocation has.
    standing: u32,
    /// What the resources keep beside themselves, as it was counted.
    memory_bytes: usize,
}

/// What a representation that belongs to nothing is answered with.
fn unknown() -> Stop {
    ComponentTrap::Violation(Violation::UnknownHandle).into()
}

impl Slot {
    const fn held(&mut self) -> Option<&mut Held> {
        if let Slot::Held(held) = self { Some(held) } else { None }
    }
}

impl Resources {
    /// Reserves the first places for what every invocation has, before anything is inserted.
    pub(in crate::host) fn reserve(&mut self, standing: u32) {
        if self.places.len() < standing as usize {
            self.places.reserve(standing as usize + PLACES);
            self.places.resize_with(standing as usize, || Slot::Reserved);
            self.standing = standing;
        }
    }

    /// Whether that place is reserved, and nothing there yet.
    pub(in crate::host) fn is_missing(&self, representation: u32) -> bool {
        (1..=self.standing).contains(&representation) && matches!(self.places[representation as usize - 1], Slot::Reserved)
    }

    /// Puts what every invocation has to its place.
    pub(in crate::host) fn stand(&mut self, representation: u32, resource: Box<dyn Resource>) {
        if self.is_missing(representation) {
            self.places[representation as usize - 1] = Slot::Held(Held { resource, parent: 0, children: 0, counted: 0 });
        }
    }

    /// Whether that is a place of what lasts as long as the invocation.
    const fn lasts(&self, representation: u32) -> bool {
        FIRST_LASTING <= representation && representation <= self.standing
    }

    /// Whether there is more than what lasts as long as the invocation.
    pub(in crate::host) fn has_more(&self) -> bool {
        let mut places = (1..).zip(&self.places);
        places.any(|(representation, place)| matches!(place, Slot::Held(_)) && !self.lasts(representation))
    }

    /// Whether there is room for any, which counts.
    pub(in crate::host) const fn has_places(&self) -> bool {
        self.places.capacity() != 0
    }

    /// Bytes that they keep.
    pub(in crate::host) const fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Slot>() + self.memory_bytes
    }

    /// Asks one anew what it keeps, since that has changed.
    ///
    /// # Errors
    /// A trap, when there is none.
    pub(in crate::host) fn count(&mut self, representation: u32) -> Result<(), Stop> {
        let held = self.held(representation)?;
        let bytes = held.resource.memory_bytes();
        let before = std::mem::replace(&mut held.counted, bytes);
        self.memory_bytes = self.memory_bytes - before + bytes;
        Ok(())
    }

    /// Keeps a resource; its representation. One that depends on `parent` has to be dropped before that.
    ///
    /// # Errors
    /// A trap, when there are too many, or no such parent.
    pub(in crate::host) fn insert(&mut self, resource: Box<dyn Resource>, parent: Option<u32>) -> Result<u32, Stop> {
        if self.places.len() - self.vacant_count >= RESOURCES_MAX {
            return Err(ComponentTrap::TooMany { max: RESOURCES_MAX, what: "resources of the host" }.into());
        }
        if let Some(parent) = parent.filter(|parent| !self.lasts(*parent)) {
            self.held(parent)?.children += 1;
        }
        let counted = resource.memory_bytes();
        self.memory_bytes += counted;
        let held = Slot::Held(Held { resource, parent: parent.unwrap_or(0), children: 0, counted });
        let representation = self.vacant;
        if let Some(place) = self.places.get_mut((representation as usize).wrapping_sub(1))
            && let Slot::Vacant(next) = *place
        {
            *place = held;
            self.vacant = next;
            self.vacant_count -= 1;
            return Ok(representation);
        }
        self.places.push(held);
        // Far fewer.
        Ok(self.places.len() as u32)
    }

    fn held(&mut self, representation: u32) -> Result<&mut Held, Stop> {
        let index = (representation as usize).wrapping_sub(1);
        self.places.get_mut(index).and_then(Slot::held).ok_or_else(unknown)
    }

    /// The resource of that representation.
    ///
    /// # Errors
    /// A trap, when there is none.
    pub(in crate::host) fn any(&mut self, representation: u32) -> Result<&mut dyn Resource, Stop> {
        Ok(&mut *self.held(representation)?.resource)
    }

    /// The resource of that type.
    ///
    /// # Errors
    /// A trap, when there is none.
    pub(in crate::host) fn get<T: Typed>(&mut self, representation: u32) -> Result<&mut T, Stop> {
        let resource: &mut dyn Any = self.any(representation)?;
        resource.downcast_mut().ok_or_else(unknown)
    }

    /// Takes a resource away from its place.
    ///
    /// # Errors
    /// A trap, when there is none, or others depend on it.
    pub(in crate::host) fn remove(&mut self, representation: u32) -> Result<Box<dyn Resource>, Stop> {
        if self.held(representation)?.children > 0 {
            return Err(ComponentTrap::HasChildren.into());
        }
        let Slot::Held(held) = self.vacate(representation) else { return Err(unknown()) };
        self.memory_bytes -= held.counted;
        if !self.lasts(held.parent)
            && let Ok(parent) = self.held(held.parent)
        {
            parent.children -= 1;
        }
        Ok(held.resource)
    }

    /// Vacates a place; what was there.
    fn vacate(&mut self, representation: u32) -> Slot {
        let lasts = self.lasts(representation);
        let after = if lasts { Slot::Reserved } else { Slot::Vacant(self.vacant) };
        if !lasts {
            self.vacant = representation;
            self.vacant_count += 1;
        }
        std::mem::replace(&mut self.places[representation as usize - 1], after)
    }

    /// A handle is dropped: takes away what it stands for. None where that lasts, or is a request's, if one is served, and was never made.
    ///
    /// # Errors
    /// As for [`remove`](Resources::remove).
    pub(in crate::host) fn drop_handle(
        &mut self,
        representation: u32,
        is_served: bool,
    ) -> Result<Option<Box<dyn Resource>>, Stop> {
        if self.lasts(representation) {
            return Ok(None);
        }
        if is_served && self.is_missing(representation) {
            self.vacate(representation);
            return Ok(None);
        }
        self.remove(representation).map(Some)
    }

    /// Takes a resource of that type away from its place.
    ///
    /// # Errors
    /// A trap, when there is none, or others depend on it.
    pub(in crate::host) fn take<T: Typed>(&mut self, representation: u32) -> Result<Box<T>, Stop> {
        self.get::<T>(representation)?;
        let resource: Box<dyn Any> = self.remove(representation)?;
        resource.downcast().map_err(|_| unknown())
    }
}
