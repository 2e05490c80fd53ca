//! Several functions at once: `[{"function": "ping", "input": ""}, ...]` calls them all, and replies with what each replied, in that order.

use serde::{Deserialize, Serialize};
use sledge::{Json, call};

/// A call of another function.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Its name.
    pub function: String,
    /// What it gets as its body.
    #[serde(default)]
    pub input: String,
}

/// What became of it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// What it replied.
    Reply(String),
    /// Why it did not.
    Error(String),
}

/// The whole function: all are begun before the first is waited for, so that it takes as long as the longest, not as all together.
#[sledge::function]
pub fn fan_out(Json(asks): Json<Vec<Ask>>) -> Json<Vec<Answer>> {
    sledge::phase(1);
    let begun: Vec<_> = asks.iter().map(|ask| call::start(&ask.function, &ask.input)).collect();
    sledge::phase(2);
    let wait = |begun: Result<call::Pending, call::Error>| match begun.and_then(call::Pending::wait) {
        Ok(reply) => Answer::Reply(String::from_utf8_lossy(&reply).into_owned()),
        Err(error) => Answer::Error(error.to_string()),
    };
    Json(begun.into_iter().map(wait).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sledge::{Request, testing};

    #[test]
    fn all_are_called_and_each_answers_for_itself() {
        testing::provide("double", |input| Ok([input, input].concat()));
        testing::provide("late", |_| Err(call::Error::Timeout));
        let body = r#"[{"function": "late"}, {"function": "double", "input": "ab"}, {"function": "missing"}]"#;
        let reply = testing::serve(&Request::new("POST", "/fan-out").with_body(body), fan_out);
        let expected =
            r#"[{"error":"the function's deadline passed"},{"reply":"abab"},{"error":"this tenant has no such function"}]"#;
        assert_eq!((reply.status, reply.text().as_str()), (200, expected));
        assert_eq!(testing::phases(), [1, 2]);
    }
}
