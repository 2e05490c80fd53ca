//! Names and values as rows: of each its name's length (u32, little-endian), its name, its value's length, its value.

/// What the head of a reply says by gRPC that says nothing of its own.
pub const GRPC_HEAD: &[u8] = b"\x0c\0\0\0content-type\x10\0\0\0application/grpc";

/// What its trailers say if it went well.
pub const GRPC_OK: &[u8] = b"\x0b\0\0\0grpc-status\x01\0\0\x000";

/// Adds a row.
pub fn push(rows: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, value] {
        rows.extend_from_slice(&(part.len() as u32).to_le_bytes());
        rows.extend_from_slice(part);
    }
}

/// What rows say. It ends where they are cut off.
pub struct Rows<'a>(pub &'a [u8]);

impl<'a> Rows<'a> {
    fn part(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > rest.len() {
            return None;
        }
        let (part, rest) = rest.split_at(length);
        self.0 = rest;
        Some(part)
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.part()?, self.part()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_comes_back() {
        let mut rows = Vec::new();
        push(&mut rows, b"content-type", b"application/grpc");
        push(&mut rows, b"empty", b"");
        let all: Vec<_> = Rows(&rows).collect();
        assert_eq!(all, [(&b"content-type"[..], &b"application/grpc"[..]), (b"empty", b"")]);
    }

    #[test]
    fn usual_rows_say_what_they_are_said_to_say() {
        for (rows, name, value) in [(GRPC_HEAD, "content-type", "application/grpc"), (GRPC_OK, "grpc-status", "0")] {
            let mut pushed = Vec::new();
            push(&mut pushed, name.as_bytes(), value.as_bytes());
            assert_eq!(rows, pushed);
        }
    }

    #[test]
    fn rows_that_are_cut_off_end() {
        let mut rows = Vec::new();
        push(&mut rows, b"name", b"value");
        for length in 0..rows.len() {
            assert_eq!(Rows(&rows[..length]).count(), 0, "{length}");
        }
        assert_eq!(Rows(&[255; 12]).count(), 0);
    }
}
