//! Results: from values to the component's memory.
//!
//! A result is an area, whose address the component has given, and blocks of its lists and strings, which it has to allocate: [`Lowering`] is all of it as bytes,
//! with the places of the addresses that are not known yet. It is written when all of them are, and only then. Most results are an area of a few bytes alone, and need
//! nothing of the heap.

use awsm_abi::component::RESUME_DONE;
use bytes::Bytes;
use sledge_sandbox::GuestMemory;
use smallvec::SmallVec;

use super::strings::{Encoded, Encoding};
use crate::component_trap::ComponentTrap;
use crate::host::{Call, Flat, Stop};

/// Bytes of one result. What the host keeps of it counts as the sandbox's.
pub(super) const RESULT_BYTES_MAX: usize = 64 << 20;

/// Bytes of an area that are kept in place: those of an `error-code` of `wasi:http` in a `result`.
const AREA_BYTES: usize = 40;

/// A value that a component may have in its memory.
pub(in crate::host) trait Lower {
    /// Its size in bytes.
    const SIZE: u32;
    /// Its alignment in bytes.
    const ALIGN: u32;

    /// Puts it to its place.
    ///
    /// # Errors
    /// A trap, when all of the result is too large.
    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop>;
}

/// An owned handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) struct Own(pub(in crate::host) u32);

/// A place in a result.
#[derive(Clone, Copy, Debug)]
pub(in crate::host) struct Place {
    /// Zero for the area; otherwise the block's number, of which the first is one.
    block: usize,
    at: usize,
}

impl Place {
    /// The area's first byte.
    const AREA: Place = Place { block: 0, at: 0 };

    /// So many bytes behind it.
    pub(in crate::host) const fn plus(self, bytes: u32) -> Place {
        Place { block: self.block, at: self.at + bytes as usize }
    }
}

/// Bytes that go to one address.
#[derive(Debug)]
struct Block {
    align: u32,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Put together here.
    Built(Built),
    /// A list of bytes, as it came.
    Given(Bytes),
}

/// Bytes that are put together.
type Built = SmallVec<[u8; AREA_BYTES]>;

/// Room for so many values, all zero.
fn room<T: Lower>(count: usize) -> Result<Built, Stop> {
    let bytes = count.saturating_mul(T::SIZE as usize);
    if bytes > RESULT_BYTES_MAX {
        return Err(ComponentTrap::ResultTooLarge.into());
    }
    Ok(if bytes <= AREA_BYTES { SmallVec::from_buf_and_len([0; AREA_BYTES], bytes) } else { SmallVec::from_vec(vec![0; bytes]) })
}

impl Content {
    fn bytes(&self) -> &[u8] {
        match self {
            Content::Built(bytes) => bytes,
            Content::Given(bytes) => bytes,
        }
    }
}

/// A result on its way to the component.
#[derive(Debug)]
pub(in crate::host) struct Lowering {
    area: Built,
    area_align: u32,
    area_address: u32,
    /// What is to be allocated, in the order in which it is asked for.
    blocks: Vec<Block>,
    /// Where addresses of blocks stand, by their numbers.
    pointers: Vec<(Place, usize)>,
    /// Of the blocks, as far as they are known.
    addresses: Vec<u32>,
    /// How the component encodes strings.
    encoding: Encoding,
    /// Whether a block was asked for.
    is_asked: bool,
    /// Bytes of the area and the blocks, and what they take beside.
    bytes: usize,
}

/// Bytes that a block takes beside its own.
const BLOCK_BYTES: usize = size_of::<Block>() + size_of::<(Place, usize)>();

impl Lowering {
    /// A value as bytes, of which the area is at that address.
    ///
    /// # Errors
    /// A trap, when it is too large.
    pub(super) fn new<T: Lower>(value: T, address: u32, encoding: Encoding) -> Result<Lowering, Stop> {
        let mut lowering = Lowering::at(room::<T>(1)?, T::ALIGN, address, encoding);
        value.lower(&mut lowering, Place::AREA)?;
        Ok(lowering)
    }

    /// The same of values that stand one behind the other.
    fn each<T: Lower>(values: Vec<T>, address: u32, encoding: Encoding) -> Result<Lowering, Stop> {
        let mut lowering = Lowering::at(room::<T>(values.len())?, T::ALIGN, address, encoding);
        lowering.put_each(Place::AREA, values)?;
        Ok(lowering)
    }

    /// A result of which only the area is known.
    fn at(area: Built, area_align: u32, area_address: u32, encoding: Encoding) -> Lowering {
        let bytes = area.len() + BLOCK_BYTES;
        let (blocks, pointers, addresses) = (Vec::new(), Vec::new(), Vec::new());
        Lowering { area, area_align, area_address, blocks, pointers, addresses, encoding, is_asked: false, bytes }
    }

    /// Bytes of the host's memory that it takes.
    pub(in crate::host) const fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Writes bytes to their place.
    fn put(&mut self, place: Place, bytes: &[u8]) {
        let built = match place.block.checked_sub(1) {
            None => &mut self.area,
            Some(index) => match self.blocks.get_mut(index) {
                Some(Block { content: Content::Built(built), .. }) => built,
                _ => return,
            },
        };
        if let Some(to) = built.get_mut(place.at..place.at + bytes.len()) {
            to.copy_from_slice(bytes);
        }
    }

    /// Puts values one behind the other, from that place on.
    fn put_each<T: Lower>(&mut self, place: Place, values: Vec<T>) -> Result<(), Stop> {
        for (index, value) in values.into_iter().enumerate() {
            value.lower(self, Place { block: place.block, at: place.at + index * T::SIZE as usize })?;
        }
        Ok(())
    }

    /// Writes a discriminant of at most 256 cases.
    pub(in crate::host) fn case(&mut self, place: Place, case: u8) {
        self.put(place, &[case]);
    }

    /// A list, whose address and length stand at that place; where its first value goes.
    fn list(&mut self, place: Place, content: Content, align: u32, length: usize) -> Result<Place, Stop> {
        self.bytes = self.bytes.saturating_add(content.bytes().len() + BLOCK_BYTES);
        if self.bytes > RESULT_BYTES_MAX {
            return Err(ComponentTrap::ResultTooLarge.into());
        }
        self.blocks.push(Block { align, content });
        let block = self.blocks.len();
        self.pointers.push((place, block));
        // Below the limit of a result.
        self.put(place.plus(4), &(length as u32).to_le_bytes());
        Ok(Place { block, at: 0 })
    }

    /// Whether all addresses are known.
    const fn is_placed(&self) -> bool {
        self.addresses.len() == self.blocks.len()
    }

    /// Size in the low half and alignment in the high half of the next block that needs an address; [`RESUME_DONE`] when there is none.
    pub(super) fn next(&self) -> u64 {
        match self.blocks.get(self.addresses.len()) {
            Some(block) => block.content.bytes().len() as u64 | u64::from(block.align) << 32,
            None => RESUME_DONE.cast_unsigned(),
        }
    }

    /// Goes on with the address of the block that [`next`](Lowering::next) named; the first time with none.
    pub(super) fn resume(&mut self, address: u32) {
        if self.is_asked && !self.is_placed() {
            self.addresses.push(address);
        }
        self.is_asked = true;
    }

    /// Writes all of it, when all addresses are where they may be.
    ///
    /// # Errors
    /// A trap, when one is not; then nothing was written.
    pub(super) fn write(&self, memory: &mut GuestMemory<'_>) -> Result<(), Stop> {
        let outside = |_| Stop::Trap(ComponentTrap::OutOfBounds);
        for (block, address) in self.blocks.iter().zip(&self.addresses) {
            if !address.is_multiple_of(block.align) {
                return Err(ComponentTrap::Unaligned.into());
            }
            memory.slice((*address).into(), block.content.bytes().len() as u64).map_err(outside)?;
        }
        if !self.area_address.is_multiple_of(self.area_align) {
            return Err(ComponentTrap::Unaligned.into());
        }
        // All of it or nothing; the blocks were looked at.
        memory.write(self.area_address.into(), &self.area).map_err(outside)?;
        for (block, address) in self.blocks.iter().zip(&self.addresses) {
            memory.write((*address).into(), block.content.bytes()).map_err(outside)?;
        }
        for (place, block) in &self.pointers {
            let at = u64::from(self.address(place.block)?) + place.at as u64;
            memory.write_u32(at, self.address(*block)?).map_err(outside)?;
        }
        Ok(())
    }

    /// Where the area is, or the block of that number.
    fn address(&self, block: usize) -> Result<u32, Stop> {
        let address = block.checked_sub(1).map_or(Some(&self.area_address), |index| self.addresses.get(index));
        address.copied().ok_or(Stop::Trap(ComponentTrap::OutOfBounds))
    }
}

impl Call<'_> {
    /// Gives a result to the component, at the address that is argument `index`: at once, or when the component has given it the memory that it needs.
    ///
    /// # Errors
    /// A trap, when the result is too large, or cannot be where it is wanted.
    pub(in crate::host) fn lower<T: Lower>(&mut self, index: usize, value: T) -> Result<Flat, Stop> {
        let lowering = Lowering::new(value, self.args.u32(index), self.encoding()?)?;
        self.hand_over(lowering)
    }

    /// The same of values that stand there one behind the other.
    ///
    /// # Errors
    /// As for [`lower`](Call::lower).
    pub(in crate::host) fn lower_each<T: Lower>(&mut self, index: usize, values: Vec<T>) -> Result<Flat, Stop> {
        let lowering = Lowering::each(values, self.args.u32(index), self.encoding()?)?;
        self.hand_over(lowering)
    }

    /// Writes a result, or keeps it until its memory is there.
    fn hand_over(&mut self, lowering: Lowering) -> Result<Flat, Stop> {
        if !lowering.is_placed() {
            self.context.lowering = Some(Box::new(lowering));
            return Ok(Flat::from(true));
        }
        lowering.write(self.memory.as_mut().ok_or(Stop::Trap(ComponentTrap::OutOfBounds))?)?;
        Ok(Flat::NONE)
    }
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(impl Lower for $ty {
            const SIZE: u32 = size_of::<$ty>() as u32;
            const ALIGN: u32 = size_of::<$ty>() as u32;

            fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
                to.put(place, &self.to_le_bytes());
                Ok(())
            }
        })*
    };
}

numbers! { u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 }

impl Lower for () {
    const SIZE: u32 = 0;
    const ALIGN: u32 = 1;

    fn lower(self, _: &mut Lowering, _: Place) -> Result<(), Stop> {
        Ok(())
    }
}

impl Lower for bool {
    const SIZE: u32 = 1;
    const ALIGN: u32 = 1;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        u8::from(self).lower(to, place)
    }
}

impl Lower for char {
    const SIZE: u32 = 4;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        u32::from(self).lower(to, place)
    }
}

impl Lower for Own {
    const SIZE: u32 = 4;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        self.0.lower(to, place)
    }
}

/// A list of `u8`.
impl Lower for Bytes {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        let length = self.len();
        to.list(place, Content::Given(self), 1, length).map(|_| ())
    }
}

impl Lower for String {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        let Encoded { bytes, align, length } = to.encoding.encode(self);
        to.list(place, Content::Given(bytes), align, length as usize).map(|_| ())
    }
}

impl Lower for &str {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        self.to_owned().lower(to, place)
    }
}

impl<T: Lower> Lower for Vec<T> {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        let first = to.list(place, Content::Built(room::<T>(self.len())?), T::ALIGN, self.len())?;
        to.put_each(first, self)
    }
}

/// Layout of a variant with at most 256 cases: the size of what its cases hold, and the alignment of that.
pub(in crate::host) mod variant {
    /// The larger of two numbers.
    pub(in crate::host) const fn max(left: u32, right: u32) -> u32 {
        if left > right { left } else { right }
    }

    /// Where what a case holds begins.
    pub(in crate::host) const fn payload(align: u32) -> u32 {
        1_u32.next_multiple_of(align)
    }

    /// The variant's size.
    pub(in crate::host) const fn size(size: u32, align: u32) -> u32 {
        (payload(align) + size).next_multiple_of(align)
    }
}

impl<T: Lower> Lower for Option<T> {
    const SIZE: u32 = variant::size(T::SIZE, T::ALIGN);
    const ALIGN: u32 = T::ALIGN;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        let Some(value) = self else { return Ok(()) };
        to.case(place, 1);
        value.lower(to, place.plus(variant::payload(T::ALIGN)))
    }
}

impl<T: Lower, E: Lower> Lower for Result<T, E> {
    const SIZE: u32 = variant::size(variant::max(T::SIZE, E::SIZE), Self::ALIGN);
    const ALIGN: u32 = variant::max(T::ALIGN, E::ALIGN);

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        let payload = place.plus(variant::payload(Self::ALIGN));
        match self {
            Ok(value) => value.lower(to, payload),
            Err(error) => {
                to.case(place, 1);
                error.lower(to, payload)
            }
        }
    }
}

macro_rules! tuples {
    ($($first:ident $($name:ident)*;)*) => {
        $(
            /// A tuple, or a record with these fields.
            impl<$first: Lower, $($name: Lower),*> Lower for ($first, $($name,)*) {
                const SIZE: u32 = {
                    let size = $first::SIZE;
                    $(let size = size.next_multiple_of($name::ALIGN) + $name::SIZE;)*
                    size.next_multiple_of(Self::ALIGN)
                };
                const ALIGN: u32 = {
                    let align = $first::ALIGN;
                    $(let align = variant::max(align, $name::ALIGN);)*
                    align
                };

                #[allow(non_snake_case)]
                fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
                    let ($first, $($name,)*) = self;
                    $first.lower(to, place)?;
                    let _end = <$first as Lower>::SIZE;
                    $(
                        let at = _end.next_multiple_of(<$name as Lower>::ALIGN);
                        $name.lower(to, place.plus(at))?;
                        let _end = at + <$name as Lower>::SIZE;
                    )*
                    Ok(())
                }
            }
        )*
    };
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

/// Lowers enums of at most 256 cases whose discriminants are the cases' numbers.
macro_rules! enums {
    ($($ty:ty)*) => {
        $(impl $crate::host::canonical::Lower for $ty {
            const SIZE: u32 = 1;
            const ALIGN: u32 = 1;

            fn lower(
                self,
                to: &mut $crate::host::canonical::Lowering,
                place: $crate::host::canonical::Place,
            ) -> Result<(), $crate::host::Stop> {
                to.case(place, self as u8);
                Ok(())
            }
        })*
    };
}

pub(in crate::host) use enums;

/// The same of variants that end with a case `other(option<string>)`, which the host does not say: no other case of theirs holds anything.
macro_rules! errors {
    ($($ty:ty)*) => {
        $(impl $crate::host::canonical::Lower for $ty {
            const SIZE: u32 = $crate::host::canonical::variant::size(<Option<String> as $crate::host::canonical::Lower>::SIZE, Self::ALIGN);
            const ALIGN: u32 = <Option<String> as $crate::host::canonical::Lower>::ALIGN;

            fn lower(
                self,
                to: &mut $crate::host::canonical::Lowering,
                place: $crate::host::canonical::Place,
            ) -> Result<(), $crate::host::Stop> {
                to.case(place, self as u8);
                Ok(())
            }
        })*
    };
}

pub(in crate::host) use errors;
