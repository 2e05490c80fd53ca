//! Arguments: from what is flat, and from the component's memory, to values.

use std::borrow::Cow;

use awsm_abi::component::strings;
use bytes::Bytes;
use sledge_sandbox::GuestMemory;

use super::Typed;
use super::handles::Handles;
use super::strings::Encoding;
use crate::component_trap::ComponentTrap;
use crate::host::{Call, Stop};

/// Bytes of all that is copied of one call's arguments. Lists may name the same bytes over and over.
pub(super) const LIFTED_BYTES_MAX: usize = 64 << 20;

/// An access outside of the component's memory.
pub(super) fn outside(_: sledge_sandbox::OutOfBounds) -> Stop {
    ComponentTrap::OutOfBounds.into()
}

/// A component's memory, from which values are copied.
#[derive(Debug)]
pub(in crate::host) struct Lifting<'c, 'a> {
    memory: &'c GuestMemory<'a>,
    encoding: Encoding,
    bytes_left: usize,
}

/// A name, and the bytes that belong to it.
type Named<'m> = (Cow<'m, str>, &'m [u8]);

/// A value that a component may have in its memory.
pub(in crate::host) trait Lift: Sized {
    /// Its size in bytes.
    const SIZE: u32;
    /// Its alignment in bytes.
    const ALIGN: u32;

    /// Copies it from that address, which is aligned.
    ///
    /// # Errors
    /// A trap, when it is none, or does not lie in the memory.
    fn lift(from: &mut Lifting<'_, '_>, at: u64) -> Result<Self, Stop>;
}

impl<'c> Lifting<'c, '_> {
    /// The bytes of the list of `u8` whose address and length stand at `at`.
    fn bytes(&mut self, at: u64) -> Result<&'c [u8], Stop> {
        let (address, length) = self.list(at, 1, 1)?;
        self.memory.slice(address, length.into()).map_err(outside)
    }

    /// The string whose address and length stand at `at`.
    fn text(&mut self, at: u64) -> Result<Cow<'c, str>, Stop> {
        let (address, length) = (self.memory.read_u32(at).map_err(outside)?, self.memory.read_u32(at + 4).map_err(outside)?);
        let text = self.encoding.decode(self.memory, address, length, self.bytes_left as u64)?;
        let text = text.ok_or(ComponentTrap::OutOfBounds)?;
        self.count(text.len())?;
        Ok(text)
    }

    /// The bytes of a list whose address and length stand at `at`, each element with that size and alignment.
    fn list(&mut self, at: u64, size: u32, align: u32) -> Result<(u64, u32), Stop> {
        let (address, length) = (self.memory.read_u32(at).map_err(outside)?, self.memory.read_u32(at + 4).map_err(outside)?);
        check(self.memory, address, length, size, align)?;
        self.count(length as usize * size as usize)?;
        Ok((address.into(), length))
    }

    /// Counts bytes that are copied.
    fn count(&mut self, bytes: usize) -> Result<(), Stop> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(ComponentTrap::OutOfBounds)?;
        Ok(())
    }
}

/// Whether a list lies where it may.
fn check(memory: &GuestMemory<'_>, address: u32, length: u32, size: u32, align: u32) -> Result<(), Stop> {
    if !address.is_multiple_of(align) {
        return Err(ComponentTrap::Unaligned.into());
    }
    memory.slice(address.into(), u64::from(length) * u64::from(size)).map_err(outside)?;
    Ok(())
}

macro_rules! numbers {
    ($($ty:ty, $read:ident;)*) => {
        $(impl Lift for $ty {
            const SIZE: u32 = size_of::<$ty>() as u32;
            const ALIGN: u32 = size_of::<$ty>() as u32;

            fn lift(from: &mut Lifting<'_, '_>, at: u64) -> Result<$ty, Stop> {
                from.memory.$read(at).map_err(outside)
            }
        })*
    };
}

numbers! {
    u8, read_u8;
    u16, read_u16;
    u32, read_u32;
    u64, read_u64;
}

impl Lift for Bytes {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 4;

    fn lift(from: &mut Lifting<'_, '_>, at: u64) -> Result<Bytes, Stop> {
        from.bytes(at).map(Bytes::copy_from_slice)
    }
}

impl Lift for String {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 4;

    fn lift(from: &mut Lifting<'_, '_>, at: u64) -> Result<String, Stop> {
        from.text(at).map(Cow::into_owned)
    }
}

impl<T: Lift> Lift for Vec<T> {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 4;

    fn lift(from: &mut Lifting<'_, '_>, at: u64) -> Result<Vec<T>, Stop> {
        let (address, length) = from.list(at, T::SIZE, T::ALIGN)?;
        from.count(length as usize * size_of::<T>())?;
        (0..u64::from(length)).map(|index| T::lift(from, address + index * u64::from(T::SIZE))).collect()
    }
}

impl<A: Lift, B: Lift> Lift for (A, B) {
    const SIZE: u32 = (A::SIZE.next_multiple_of(B::ALIGN) + B::SIZE).next_multiple_of(Self::ALIGN);
    const ALIGN: u32 = if A::ALIGN > B::ALIGN { A::ALIGN } else { B::ALIGN };

    fn lift(from: &mut Lifting<'_, '_>, at: u64) -> Result<(A, B), Stop> {
        Ok((A::lift(from, at)?, B::lift(from, at + u64::from(A::SIZE.next_multiple_of(B::ALIGN)))?))
    }
}

impl<T: Lift> Lift for Option<T> {
    const SIZE: u32 = (T::ALIGN + T::SIZE).next_multiple_of(T::ALIGN);
    const ALIGN: u32 = T::ALIGN;

    fn lift(from: &mut Lifting<'_, '_>, at: u64) -> Result<Option<T>, Stop> {
        match u8::lift(from, at)? {
            0 => Ok(None),
            1 => T::lift(from, at + u64::from(T::ALIGN)).map(Some),
            _ => Err(ComponentTrap::Case.into()),
        }
    }
}

/// What a host function of a component gets.
impl<'a> Call<'a> {
    /// The component's memory.
    fn component_memory(&self) -> Result<&GuestMemory<'a>, Stop> {
        self.memory.as_ref().ok_or(Stop::Trap(ComponentTrap::OutOfBounds))
    }

    /// The bytes of the list of `u8` whose address and length are arguments `index` and `index + 1`.
    ///
    /// # Errors
    /// A trap, when they do not lie in the component's memory.
    pub(in crate::host) fn bytes(&self, index: usize) -> Result<&[u8], Stop> {
        self.component_memory()?.slice(self.args.address(index), self.args.u32(index + 1).into()).map_err(outside)
    }

    /// How the component encodes strings.
    pub(super) fn encoding(&self) -> Result<Encoding, Stop> {
        Encoding::of(self.args.u32(0))
    }

    /// The string whose address and length are arguments `index` and `index + 1`; none where it is longer than that in UTF-8.
    ///
    /// # Errors
    /// A trap, when it does not lie in the component's memory or is not encoded as the component's strings are.
    pub(in crate::host) fn text_within(&self, index: usize, bytes_max: u64) -> Result<Option<Cow<'_, str>>, Stop> {
        let (address, length) = (self.args.u32(index), self.args.u32(index + 1));
        self.encoding()?.decode(self.component_memory()?, address, length, bytes_max)
    }

    /// The beginning of that string, as far as so many of its code units say it. The rest is not read, and what is no text is replaced.
    ///
    /// # Errors
    /// A trap, when it does not lie in the component's memory.
    pub(in crate::host) fn text_begin(&self, index: usize, units_max: usize) -> Result<Cow<'_, str>, Stop> {
        let (address, length) = (self.args.u32(index), self.args.u32(index + 1));
        self.encoding()?.begin(self.component_memory()?, address, length, units_max)
    }

    /// A copy of the list whose address and length are arguments `index` and `index + 1`.
    ///
    /// # Errors
    /// A trap, when something of it does not lie in the component's memory, is no value of its type, or all of it is too large.
    pub(in crate::host) fn list<T: Lift>(&self, index: usize) -> Result<Vec<T>, Stop> {
        let memory = self.component_memory()?;
        let (address, length) = (self.args.u32(index), self.args.u32(index + 1));
        check(memory, address, length, T::SIZE, T::ALIGN)?;
        let mut from = Lifting { memory, encoding: self.encoding()?, bytes_left: LIFTED_BYTES_MAX };
        from.count(length as usize * size_of::<T>())?;
        (0..u64::from(length)).map(|element| T::lift(&mut from, u64::from(address) + element * u64::from(T::SIZE))).collect()
    }

    /// How many elements the `list<tuple<string, list<u8>>>` has whose address and length are arguments `index` and `index + 1`, and each of them, of which nothing is copied.
    ///
    /// # Errors
    /// As for [`list`](Call::list), for the list or the element.
    pub(in crate::host) fn named_bytes(
        &self,
        index: usize,
    ) -> Result<(usize, impl Iterator<Item = Result<Named<'_>, Stop>>), Stop> {
        const BYTES: u32 = <(String, Bytes)>::SIZE;
        let memory = self.component_memory()?;
        let (address, length) = (self.args.u32(index), self.args.u32(index + 1));
        check(memory, address, length, BYTES, <(String, Bytes)>::ALIGN)?;
        let mut from = Lifting { memory, encoding: self.encoding()?, bytes_left: LIFTED_BYTES_MAX };
        // Also where nothing is copied: the worker looks at each of them.
        from.count(length as usize * size_of::<(String, Bytes)>())?;
        let at = move |element: u32| u64::from(address) + u64::from(element) * u64::from(BYTES);
        let each = move |element| Ok((from.text(at(element))?, from.bytes(at(element) + u64::from(String::SIZE))?));
        Ok((length as usize, (0..length).map(each)))
    }

    /// A flag argument, of a `bool` or as the discriminant of an option.
    ///
    /// # Errors
    /// A trap for an option's discriminant that is none; any `bool` but zero is true, so use [`Args::u32`](crate::host::Args::u32) for those.
    pub(in crate::host) fn is_some(&self, index: usize) -> Result<bool, Stop> {
        self.case(index, 2).map(|case| case == 1)
    }

    /// The case of an enum or variant with so many cases.
    ///
    /// # Errors
    /// A trap, when it has no such case.
    pub(in crate::host) fn case(&self, index: usize, cases: u32) -> Result<u32, Stop> {
        let case = self.args.u32(index);
        if case < cases { Ok(case) } else { Err(ComponentTrap::Case.into()) }
    }

    /// The calling component's handles.
    fn handles(&mut self) -> Result<Handles<'_, 'a>, Stop> {
        let table = u64::from(self.args.u32(0) & !strings::MASK);
        let state = self.state.as_mut().ok_or(Stop::Trap(ComponentTrap::OutOfBounds))?;
        Ok(Handles::new(state, table))
    }

    /// The representation of a handle of that type, which is an argument.
    ///
    /// # Errors
    /// A trap, when there is no such handle.
    pub(in crate::host) fn representation<T: Typed>(&mut self, index: usize) -> Result<u32, Stop> {
        let handle = self.args.u32(index);
        self.representation_of::<T>(handle)
    }

    /// The representation of a handle of that type.
    ///
    /// # Errors
    /// A trap, when there is no such handle.
    pub(in crate::host) fn representation_of<T: Typed>(&mut self, handle: u32) -> Result<u32, Stop> {
        self.handles()?.representation(handle, T::NUMBER)
    }

    /// What the handle that is an argument stands for, be it owned or borrowed.
    ///
    /// # Errors
    /// A trap, when there is no such handle.
    pub(in crate::host) fn borrowed<T: Typed>(&mut self, index: usize) -> Result<&mut T, Stop> {
        let representation = self.representation::<T>(index)?;
        self.context.ports.resource(representation)
    }

    /// Takes what the owned handle that is an argument stands for; the handle is no more.
    ///
    /// # Errors
    /// A trap, when there is no such handle, it is borrowed or lent, or others depend on it.
    pub(in crate::host) fn owned<T: Typed>(&mut self, index: usize) -> Result<Box<T>, Stop> {
        let handle = self.args.u32(index);
        self.owned_of(handle)
    }

    /// The same of a handle that is no argument.
    ///
    /// # Errors
    /// As for `owned`.
    pub(in crate::host) fn owned_of<T: Typed>(&mut self, handle: u32) -> Result<Box<T>, Stop> {
        let representation = self.handles()?.remove(handle, T::NUMBER)?;
        self.context.ports.take_resource(representation)
    }

    /// Gives a resource to the component; its handle.
    ///
    /// # Errors
    /// A trap, when there are too many.
    pub(in crate::host) fn give<T: Typed>(&mut self, resource: T) -> Result<super::Own, Stop> {
        self.give_child(resource, None)
    }

    /// The same of one that has to be dropped before what it depends on.
    ///
    /// # Errors
    /// A trap, when there are too many.
    pub(in crate::host) fn give_child<T: Typed>(&mut self, resource: T, parent: Option<u32>) -> Result<super::Own, Stop> {
        let representation = self.context.ports.insert_resource(Box::new(resource), parent)?;
        self.give_standing::<T>(representation)
    }

    /// A handle of a resource that has its place already.
    ///
    /// # Errors
    /// A trap, when there are too many.
    pub(in crate::host) fn give_standing<T: Typed>(&mut self, representation: u32) -> Result<super::Own, Stop> {
        self.handles()?.insert(T::NUMBER, representation).map(super::Own)
    }
}
