//! sort: records of 100 bytes in, the same by their first 10 bytes out, as in the sort benchmark (sortbenchmark.org).
//!
//! Records with equal keys stay in their order. A body that is not whole records is a line on standard error, exit status 1 and no reply.

use std::io::{self, Read, Write};
use std::process::ExitCode;

const RECORD_BYTES: usize = 100;
const KEY_BYTES: usize = 10;

/// Longest body that is read, in bytes.
const BODY_BYTES_MAX: u64 = 256 << 20;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("sort: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut body = Vec::new();
    let input = io::stdin().lock().take(BODY_BYTES_MAX + 1).read_to_end(&mut body);
    let length = input.map_err(|error| format!("the body cannot be read: {error}"))?;
    if length as u64 > BODY_BYTES_MAX {
        return Err(format!("the body has more than {BODY_BYTES_MAX} bytes"));
    }
    let (records, rest) = body.as_chunks::<RECORD_BYTES>();
    if !rest.is_empty() {
        return Err(format!("the body has {length} bytes, which is no multiple of {RECORD_BYTES}, the length of a record"));
    }
    // Keys with numbers are moved, not records.
    let mut order: Vec<([u8; KEY_BYTES], u32)> = records
        .iter()
        .zip(0..)
        .map(|(record, number)| (*record.first_chunk().expect("a record is longer than its key"), number))
        .collect();
    order.sort_unstable();
    let sorted: Vec<u8> = order.iter().flat_map(|(_, number)| records[*number as usize]).collect();
    let mut reply = io::stdout().lock();
    reply.write_all(&sorted).and_then(|()| reply.flush()).map_err(|error| format!("the reply cannot be written: {error}"))
}
