//! Greets the name in the body: `{"name": "Ada"}` is answered with `{"greeting": "Hello, Ada!"}`.

use serde::{Deserialize, Serialize};
use sledge::{Json, Level};

#[derive(Debug, Deserialize)]
pub struct Ask {
    pub name: String,
}

#[derive(Debug, Serialize)]
pub struct Answer {
    pub greeting: String,
}

#[sledge::function]
pub fn greet(Json(ask): Json<Ask>) -> Json<Answer> {
    sledge::log(Level::Info, format_args!("greeting {}", ask.name));
    Json(Answer { greeting: format!("Hello, {}!", ask.name) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sledge::{Request, testing};

    #[test]
    fn who_is_named_is_greeted() {
        let reply = testing::serve(&Request::new("POST", "/").with_body(r#"{"name": "Ada"}"#), greet);
        assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"greeting":"Hello, Ada!"}"#));
    }

    #[test]
    fn whoever_names_nobody_is_told() {
        assert_eq!(testing::serve(&Request::new("POST", "/").with_body("{}"), greet).status, 400);
    }
}
