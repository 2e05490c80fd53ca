//! Counters with names: `{"name": "apples", "by": 2}` adds 2 to one and replies `{"name": "apples", "count": 2}`.

use serde::{Deserialize, Serialize};
use sledge::{Json, kv};

/// What to count.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The counter.
    pub name: String,
    /// What is added to it; 0 to learn its count.
    #[serde(default = "one")]
    pub by: i64,
}

/// The count, with that already in it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The counter.
    pub name: String,
    /// How far it is.
    pub count: i64,
}

const fn one() -> i64 {
    1
}

/// The whole function. The store adds, so that no count is lost however many count at once.
#[sledge::function]
pub fn count(Json(ask): Json<Ask>) -> Result<Json<Count>, kv::Error> {
    let count = kv::open("counters")?.increment(&ask.name, ask.by)?;
    Ok(Json(Count { name: ask.name, count }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sledge::{Request, testing};

    fn asked(body: &str) -> (u16, String) {
        let reply = testing::serve(&Request::new("POST", "/kv-counter").with_body(body), count);
        (reply.status, reply.text())
    }

    #[test]
    fn counters_count_apart() {
        assert_eq!(asked(r#"{"name": "apples"}"#), (200, r#"{"name":"apples","count":1}"#.to_owned()));
        assert_eq!(asked(r#"{"name": "apples", "by": 41}"#).1, r#"{"name":"apples","count":42}"#);
        assert_eq!(asked(r#"{"name": "pears", "by": -1}"#).1, r#"{"name":"pears","count":-1}"#);
        assert_eq!(asked(r#"{"name": "apples", "by": 0}"#).1, r#"{"name":"apples","count":42}"#);
    }

    #[test]
    fn what_is_no_question_is_refused() {
        assert_eq!(asked("apples").0, 400);
        assert_eq!(asked(r#"{"name": "apples", "times": 2}"#).0, 400);
        kv::open("counters").unwrap().set("words", "many").unwrap();
        assert_eq!(asked(r#"{"name": "words"}"#).0, 500);
    }
}
