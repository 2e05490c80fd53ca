//! A reactor: the body, which has to be UTF-8, comes back in capitals.

/// The whole function.
fn shout(body: &[u8]) -> Result<String, String> {
    match std::str::from_utf8(body) {
        Ok(text) => Ok(text.to_uppercase()),
        Err(error) => Err(format!("shout: the body is not UTF-8: {error}")),
    }
}

sledge_sdk::handler!(shout);
