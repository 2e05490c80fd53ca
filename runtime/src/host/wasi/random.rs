//! Random numbers.

use crate::host::{Call, Stop};

/// Bytes made at a time; for more, others get their turn in between.
pub(super) const STEP_BYTES: u64 = 32 << 10;

/// `random_get(buffer: *u8, bytes: size)`
pub(super) fn random_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (buffer, bytes) = (call.args.address(0), u64::from(call.args.u32(1)));
    let (memory, context) = call.split()?;
    let entropy = context.ports.entropy()?;
    memory.slice(buffer, bytes)?;
    let done = context.progress.take().unwrap_or(0);
    let end = bytes.min(done + STEP_BYTES);
    // The kernel writes to our buffer, never to the guest's memory.
    let mut random = [0u8; 256];
    let mut at = done;
    while at < end {
        let count = random.len().min((end - at) as usize);
        entropy.fill(&mut random[..count])?;
        memory.write(buffer + at, &random[..count])?;
        at += count as u64;
    }
    if end < bytes {
        context.progress = Some(end);
        return Err(Stop::Again);
    }
    Ok(())
}
