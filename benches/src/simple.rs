//! What `examples/echo`, `ping`, `fibonacci` and `sort` have to answer.

use anyhow::{Context, Result, ensure};

/// Of a record for `sort`, and of its key.
const RECORD_BYTES: usize = 100;
const KEY_BYTES: usize = 10;

/// Judges a reply by the only right one.
///
/// # Errors
///
/// If it is another.
pub fn judge(wanted: &[u8], reply: &[u8]) -> Result<Vec<String>> {
    let same = wanted.iter().zip(reply).take_while(|(a, b)| a == b).count();
    ensure!(
        wanted == reply,
        "it has {} bytes, wanted are {}; from byte {same} on it is {:?}",
        reply.len(),
        wanted.len(),
        reply[same..].iter().take(20).copied().collect::<Vec<u8>>().escape_ascii().to_string()
    );
    Ok(vec![format!("out: {} bytes, as they have to be", reply.len())])
}

/// The number that the body names, by addition.
///
/// # Errors
///
/// If it names none.
pub fn fibonacci(request: &[u8]) -> Result<Vec<u8>> {
    let index: u32 = std::str::from_utf8(request)?.trim().parse().context("the body is no number")?;
    let (mut this, mut next) = (0_u64, 1_u64);
    for _ in 0..index {
        (this, next) = (next, this + next);
    }
    Ok(format!("{this}\n").into_bytes())
}

/// The body's records by their keys, equal ones in their order.
///
/// # Errors
///
/// If they are not whole.
pub fn sorted(request: &[u8]) -> Result<Vec<u8>> {
    ensure!(request.len().is_multiple_of(RECORD_BYTES), "{} bytes are not whole records", request.len());
    let mut records: Vec<&[u8]> = request.chunks(RECORD_BYTES).collect();
    records.sort_by_key(|record| &record[..KEY_BYTES]);
    Ok(records.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_replies_are_told_from_wrong_ones() {
        assert_eq!(fibonacci(b"50").unwrap(), b"12586269025\n");
        assert_eq!(fibonacci(b"0\n").unwrap(), b"0\n");
        let records = [[b'b'; 100], [b'a'; 100]].concat();
        let sorted = sorted(&records).unwrap();
        assert_eq!((sorted[0], sorted[199]), (b'a', b'b'));
        judge(&sorted, &sorted).unwrap();
        let error = judge(&sorted, &records).unwrap_err().to_string();
        assert!(error.contains("from byte 0 on"), "{error}");
        assert!(judge(b"pong\n", b"").is_err());
    }
}
