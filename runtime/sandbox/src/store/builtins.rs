//! What generated code asks of the runtime besides imports ([`awsm_abi::calls::builtin`]), and the bulk operations behind it. They run on the
//! worker's stack.

use awsm_abi::TrapCode;
use awsm_abi::calls::builtin;
use awsm_abi::limits::PAGE_BYTES;

use crate::store::constexpr;
use crate::store::{ELEMENT_BYTES, Refusal, Store};
use crate::types;
use crate::value::{InstanceId, Slot, Value};

/// Number of slots that a builtin reads or writes; none when there is no such builtin.
pub(crate) fn slots(call: u32) -> Option<usize> {
    Some(match call {
        builtin::DATA_DROP | builtin::ELEM_DROP | builtin::MEMORY_WAIT | builtin::EXCEPTION_ROOM | builtin::SEGMENT => 1,
        builtin::MEMORY_GROW | builtin::TYPE_MATCHES => 2,
        builtin::TABLE_GROW => 3,
        builtin::TABLE_FILL => 4,
        builtin::MEMORY_INIT | builtin::MEMORY_COPY | builtin::TABLE_COPY | builtin::TABLE_INIT => 5,
        _ => return None,
    })
}

/// What a builtin comes to.
pub(crate) type Outcome = Result<Option<Slot>, TrapCode>;

impl Store {
    /// Does what the builtin says, for an instance of this sandbox. Indices that the module does not have are a bug of the compiler, contained.
    pub(crate) fn builtin(&mut self, instance: InstanceId, call: u32, slots: &[Slot]) -> Outcome {
        let index = |i: usize| slots[i].u64() as u32;
        let number = |i: usize| slots[i].u64();
        match call {
            builtin::MEMORY_GROW => self.memory_grow(instance, index(0), number(1)).map(Some),
            builtin::MEMORY_INIT => {
                self.memory_init(instance, index(0), index(1), number(2), number(3), number(4)).map(|()| None)
            }
            builtin::DATA_DROP => self.drop_data(instance, index(0)).map(|()| None),
            builtin::MEMORY_COPY => {
                self.memory_copy(instance, [index(0), index(1)], number(2), number(3), number(4)).map(|()| None)
            }
            builtin::TABLE_GROW => self.table_grow(instance, index(0), number(1), slots[2]).map(Some),
            builtin::TABLE_FILL => self.table_fill(instance, index(0), number(1), slots[2], number(3)).map(|()| None),
            builtin::TABLE_COPY => {
                self.table_copy(instance, [index(0), index(1)], number(2), number(3), number(4)).map(|()| None)
            }
            builtin::TABLE_INIT => self.table_init(instance, index(0), index(1), number(2), number(3), number(4)).map(|()| None),
            builtin::ELEM_DROP => self.drop_elements(instance, index(0)).map(|()| None),
            builtin::TYPE_MATCHES => self.type_matches(instance, index(0), index(1)).map(Some),
            _ => Err(TrapCode::Internal),
        }
    }

    /// Where the segment register has to lead while code of an instance runs; none where that is all the same, or there is no such instance.
    pub(crate) fn segment_base(&self, instance: u32) -> Option<usize> {
        let instance = self.instances.get(instance as usize).filter(|instance| instance.module().uses_segment)?;
        Some(self.memories[instance.memories[0] as usize].base() as usize)
    }

    /// The sandbox's memory that an instance knows by `index`.
    fn memory_index(&self, instance: InstanceId, index: u32) -> Result<usize, TrapCode> {
        let memory = self.instances[instance.index()].memories.get(index as usize);
        memory.map(|&memory| memory as usize).ok_or(TrapCode::Internal)
    }

    /// The sandbox's table that an instance knows by `index`.
    fn table_index(&self, instance: InstanceId, index: u32) -> Result<usize, TrapCode> {
        let table = self.instances[instance.index()].tables.get(index as usize);
        table.map(|&table| table as usize).ok_or(TrapCode::Internal)
    }

    fn memory_grow(&mut self, instance: InstanceId, memory: u32, pages: u64) -> Result<Slot, TrapCode> {
        let at = self.memory_index(instance, memory)?;
        let memory = &self.memories[at];
        let declared = memory.ty().pages_max.is_none_or(|max| (memory.length() / PAGE_BYTES).saturating_add(pages) <= max);
        if !declared || !self.make_room(pages.saturating_mul(PAGE_BYTES)) {
            return Ok(grown(None));
        }
        let memory = &mut self.memories[at];
        let fits = memory.fits(pages);
        let before = memory.grow(pages);
        if before.is_none() {
            self.refuse(if fits { Refusal::Exhausted } else { Refusal::Limit });
        }
        Ok(grown(before))
    }

    /// `memory.init`, also for active segments.
    pub(crate) fn memory_init(
        &mut self,
        instance: InstanceId,
        memory: u32,
        segment: u32,
        to: u64,
        from: u64,
        length: u64,
    ) -> Result<(), TrapCode> {
        let at = self.memory_index(instance, memory)?;
        let data = self.instances[instance.index()].data(segment).ok_or(TrapCode::Internal)?;
        let source = part(data, from, length).ok_or(TrapCode::MemoryOutOfBounds)?;
        let target = range(to, length).and_then(|range| self.memories[at].slice_mut(range));
        target.ok_or(TrapCode::MemoryOutOfBounds)?.copy_from_slice(source);
        Ok(())
    }

    fn memory_copy(
        &mut self,
        instance: InstanceId,
        [target, source]: [u32; 2],
        to: u64,
        from: u64,
        length: u64,
    ) -> Result<(), TrapCode> {
        const OUTSIDE: TrapCode = TrapCode::MemoryOutOfBounds;
        let (target, source) = (self.memory_index(instance, target)?, self.memory_index(instance, source)?);
        match self.memories.get_disjoint_mut([target, source]) {
            Ok([target, source]) => {
                let source = part(source.bytes(), from, length).ok_or(OUTSIDE)?;
                range(to, length).and_then(|range| target.slice_mut(range)).ok_or(OUTSIDE)?.copy_from_slice(source);
            }
            // Two imports may be given the same memory.
            Err(_) => {
                let memory = &mut self.memories[target];
                let from = range(from, length).filter(|range| range.end as u64 <= memory.length()).ok_or(OUTSIDE)?;
                let to = range(to, length).ok_or(OUTSIDE)?;
                // Makes the target writable; nothing is written to the rest.
                memory.slice_mut(to.clone()).ok_or(OUTSIDE)?;
                memory.copy_within(from, to.start);
            }
        }
        Ok(())
    }

    fn drop_data(&mut self, instance: InstanceId, segment: u32) -> Result<(), TrapCode> {
        let dropped = self.instances[instance.index()].dropped.data.get_mut(segment as usize);
        *dropped.ok_or(TrapCode::Internal)? = true;
        Ok(())
    }

    fn drop_elements(&mut self, instance: InstanceId, segment: u32) -> Result<(), TrapCode> {
        let dropped = self.instances[instance.index()].dropped.elements.get_mut(segment as usize);
        *dropped.ok_or(TrapCode::Internal)? = true;
        Ok(())
    }

    fn table_grow(&mut self, instance: InstanceId, table: u32, elements: u64, value: Slot) -> Result<Slot, TrapCode> {
        let at = self.table_index(instance, table)?;
        let room = self.tables[at].may_grow(elements) && self.make_table_room(elements.saturating_mul(ELEMENT_BYTES));
        Ok(grown(if room { self.tables[at].grow(elements, value) } else { None }))
    }

    fn table_fill(&mut self, instance: InstanceId, table: u32, start: u64, value: Slot, length: u64) -> Result<(), TrapCode> {
        let at = self.table_index(instance, table)?;
        self.tables[at].range_mut(start, length).ok_or(TrapCode::TableOutOfBounds)?.fill(value);
        Ok(())
    }

    fn table_copy(
        &mut self,
        instance: InstanceId,
        [target, source]: [u32; 2],
        to: u64,
        from: u64,
        length: u64,
    ) -> Result<(), TrapCode> {
        const OUTSIDE: TrapCode = TrapCode::TableOutOfBounds;
        let (target, source) = (self.table_index(instance, target)?, self.table_index(instance, source)?);
        match self.tables.get_disjoint_mut([target, source]) {
            Ok([target, source]) => {
                let source = source.range_mut(from, length).ok_or(OUTSIDE)?;
                target.range_mut(to, length).ok_or(OUTSIDE)?.copy_from_slice(source);
            }
            Err(_) => {
                let table = &mut self.tables[target];
                if table.range_mut(from, length).is_none() || table.range_mut(to, length).is_none() {
                    return Err(OUTSIDE);
                }
                table.elements_mut().copy_within(from as usize..(from + length) as usize, to as usize);
            }
        }
        Ok(())
    }

    /// Makes room for an exception of `bytes`. `stacks` calls what it is given with all words that lie on stacks of the store's calls.
    pub(crate) fn exception_room(&mut self, bytes: u64, stacks: impl FnOnce(&mut dyn FnMut(u64))) -> Outcome {
        let mut exceptions = self.exceptions.take().ok_or(TrapCode::Internal)?;
        let done = exceptions.make_room(bytes, |each| {
            stacks(each);
            self.exception_references().for_each(each);
        });
        self.exceptions = Some(exceptions);
        if done { Ok(None) } else { Err(TrapCode::ExceptionsExhausted) }
    }

    /// Whether functions of the type with id `ty` are of the instance's type `of`.
    fn type_matches(&self, instance: InstanceId, ty: u32, of: u32) -> Result<Slot, TrapCode> {
        let of = self.instances[instance.index()].module().type_ids.get(of as usize).ok_or(TrapCode::Internal)?;
        Ok(Value::I64(types::is_subtype(ty, *of).into()).to_slot())
    }

    /// `table.init`, also for active segments.
    pub(crate) fn table_init(
        &mut self,
        instance: InstanceId,
        table: u32,
        segment: u32,
        to: u64,
        from: u64,
        length: u64,
    ) -> Result<(), TrapCode> {
        const OUTSIDE: TrapCode = TrapCode::TableOutOfBounds;
        let (sandbox, at) = (self.id(), self.table_index(instance, table)?);
        let instance = &self.instances[instance.index()];
        let elements = instance.elements(segment).ok_or(TrapCode::Internal)?;
        if from.checked_add(length).is_none_or(|end| end > elements) {
            return Err(OUTSIDE);
        }
        let target = self.tables[at].range_mut(to, length).ok_or(OUTSIDE)?;
        for (i, element) in target.iter_mut().enumerate() {
            *element = constexpr::element(instance, sandbox, segment, from as usize + i);
        }
        Ok(())
    }
}

/// The previous size, or -1.
fn grown(before: Option<u64>) -> Slot {
    Value::I64(before.map_or(-1, |before| before as i64)).to_slot()
}

fn range(start: u64, length: u64) -> Option<std::ops::Range<usize>> {
    let end = start.checked_add(length)?;
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

fn part(bytes: &[u8], start: u64, length: u64) -> Option<&[u8]> {
    bytes.get(range(start, length)?)
}
