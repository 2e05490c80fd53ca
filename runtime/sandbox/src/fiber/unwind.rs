//! One step up a guest's stack, by the unwind information of its artifact (DWARF's call frame information).
//!
//! The information and the stack may be wrong; then there is no step, and nothing worse: reads go through `read`, which knows the stack's bounds.

use gimli::{BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection};

use crate::load::Loaded;
use crate::sys::Registers;

/// The registers of the caller of the code at `pc`, as they will be when that returns. Registers whose value is lost keep the callee's.
pub(crate) fn caller(
    artifact: &Loaded,
    registers: &Registers,
    pc: usize,
    read: impl Fn(usize) -> Option<usize>,
) -> Option<Registers> {
    let (bytes, address) = artifact.eh_frame()?;
    let eh_frame = EhFrame::new(bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(address as u64);
    let mut context = UnwindContext::new();
    let row = match artifact.eh_frame_hdr() {
        Some((bytes, address)) => {
            let bases = bases.set_eh_frame_hdr(address as u64);
            let header = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, size_of::<usize>() as u8).ok()?;
            let find = header.table()?;
            find.unwind_info_for_address(&eh_frame, &bases, &mut context, pc as u64, EhFrame::cie_from_offset).ok()?
        }
        None => eh_frame.unwind_info_for_address(&bases, &mut context, pc as u64, EhFrame::cie_from_offset).ok()?,
    };
    let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
    let cfa = registers.get(register.0)?.checked_add_signed(isize::try_from(offset).ok()?)?;
    let mut caller = *registers;
    for (register, rule) in row.registers() {
        let value = match *rule {
            RegisterRule::Offset(offset) => read(cfa.checked_add_signed(isize::try_from(offset).ok()?)?)?,
            RegisterRule::ValOffset(offset) => cfa.checked_add_signed(isize::try_from(offset).ok()?)?,
            RegisterRule::Register(Register(other)) => registers.get(other)?,
            RegisterRule::SameValue | RegisterRule::Undefined => continue,
            _ => return None,
        };
        caller.set(register.0, value);
    }
    caller.set(Registers::SP, cfa);
    let return_address = caller.get(Registers::RETURN)?;
    caller.set(Registers::PC, return_address);
    // Each step goes up the stack, so that there is an end.
    (cfa > registers.sp() || (cfa == registers.sp() && return_address != registers.pc())).then_some(caller)
}
