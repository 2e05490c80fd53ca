//! Arguments and environment.

use sledge_sandbox::GuestMemory;

use crate::host::{Call, Stop, Strings};

/// `args_get(argv: **u8, argv_buf: *u8)`
pub(super) fn args_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (pointers, buffer) = (call.args.address(0), call.args.address(1));
    let (memory, context) = call.split()?;
    put(memory, context.ports.args(), pointers, buffer)
}

/// `args_sizes_get(count: *size, bytes: *size)`
pub(super) fn args_sizes_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (count, bytes) = (call.args.address(0), call.args.address(1));
    let (memory, context) = call.split()?;
    put_sizes(memory, context.ports.args(), count, bytes)
}

/// `environ_get(environ: **u8, environ_buf: *u8)`
pub(super) fn environ_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (pointers, buffer) = (call.args.address(0), call.args.address(1));
    let (memory, context) = call.split()?;
    put(memory, context.ports.env(), pointers, buffer)
}

/// `environ_sizes_get(count: *size, bytes: *size)`
pub(super) fn environ_sizes_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let (count, bytes) = (call.args.address(0), call.args.address(1));
    let (memory, context) = call.split()?;
    put_sizes(memory, context.ports.env(), count, bytes)
}

fn put(memory: &mut GuestMemory<'_>, strings: &Strings, pointers: u64, buffer: u64) -> Result<(), Stop> {
    memory.write(buffer, &strings.bytes)?;
    for (index, start) in (0u64..).zip(&strings.starts) {
        // The buffer lies within a memory of 32-bit addresses, since writing it succeeded.
        memory.write_u32(pointers + 4 * index, buffer as u32 + start)?;
    }
    Ok(())
}

fn put_sizes(memory: &mut GuestMemory<'_>, strings: &Strings, count: u64, bytes: u64) -> Result<(), Stop> {
    memory.write_u32(count, strings.starts.len() as u32)?;
    memory.write_u32(bytes, strings.bytes.len() as u32)?;
    Ok(())
}
