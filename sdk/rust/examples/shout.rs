//! A reactor: the body, which has to be text, comes back in capitals.

#[sledge::function]
fn shout(text: &str) -> String {
    text.to_uppercase()
}
