//! A reactor that does in a sandbox what the crate's tests do natively.

use sledge::fetch;

#[path = "../tests/scenario/mod.rs"]
mod scenario;

/// Or asks a server whose URL comes as the body.
#[sledge::function]
fn conformance(url: &str) -> Result<String, fetch::Error> {
    if url.is_empty() {
        scenario::store();
        return Ok("the same".to_owned());
    }
    let mut response = fetch::Request::new("POST", url).with_header("x-a", "b").with_body("abc").send()?;
    let kinds = response.headers()?.into_iter().filter(|(name, _)| name == "content-type").count();
    Ok(format!("{} {kinds} {}", response.status()?, String::from_utf8_lossy(&response.bytes(1 << 20)?)))
}
