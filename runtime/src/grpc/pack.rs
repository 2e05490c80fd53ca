//! Messages that are compressed, with gzip.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;

use super::frame::TooLong;

/// Why a message cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// It is no gzip.
    #[error("gzip: {0}")]
    Broken(#[from] std::io::Error),
    /// It becomes too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// What was packed, of at most so many bytes: of a small message that becomes a large one no more than that is kept.
///
/// # Errors
/// When it is something else, or longer.
pub fn unpacked(message: &[u8], bytes_max: usize) -> Result<Vec<u8>, UnpackError> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(message).take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(TooLong { bytes: bytes.len(), bytes_max }.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn no_more_is_unpacked_than_may_be() {
        let bytes = vec![7; 1 << 20];
        let message = packed(&bytes);
        assert!(message.len() < 2_000);
        assert!(unpacked(&message, 1 << 20).unwrap() == bytes);
        assert!(matches!(unpacked(&message, (1 << 20) - 1), Err(UnpackError::TooLong(TooLong { bytes: 1_048_576, .. }))));
        for wrong in [&b"no gzip"[..], &message[..message.len() - 1], &[&message[..], b"x"].concat()] {
            assert!(matches!(unpacked(wrong, 1 << 21), Err(UnpackError::Broken(_))));
        }
        assert_eq!(unpacked(&packed(b""), 0).unwrap(), b"");
    }
}
