//! Inputs as keys of tables, and what values take up.
//!
//! A key is a keyed hash of 256 bits: no client can make two inputs that share one, and nothing of an input is kept. It covers the value as it is written: two objects with the same members in another
//! order are two inputs, since a function is given them in their order.

use blake3::Hasher;
use serde_json::Value;

use crate::memo::key::Digest;

/// Bytes of an object's member beside its name and its value, about.
const MEMBER_BYTES: usize = 48;

/// Makes keys.
#[derive(Clone)]
pub(super) struct Keys {
    secret: [u8; 32],
}

impl Keys {
    /// With a secret that no client knows.
    pub(super) const fn new(secret: [u8; 32]) -> Keys {
        Keys { secret }
    }

    /// The key of an input of a function of that name.
    pub(super) fn input(&self, function: &str, value: &Value) -> Digest {
        let mut hasher = Hasher::new_keyed(&self.secret);
        hasher.update(b"v");
        put_text(&mut hasher, function);
        put(&mut hasher, value);
        *hasher.finalize().as_bytes()
    }

    /// The key of an argument with which a function of that name is called.
    pub(super) fn argument(&self, function: &str, argument: &[u8]) -> Digest {
        let mut hasher = Hasher::new_keyed(&self.secret);
        hasher.update(b"a");
        put_text(&mut hasher, function);
        hasher.update(argument);
        *hasher.finalize().as_bytes()
    }

    /// The key of a body.
    pub(super) fn body(&self, body: &[u8]) -> Digest {
        let mut hasher = Hasher::new_keyed(&self.secret);
        hasher.update(b"b");
        hasher.update(body);
        *hasher.finalize().as_bytes()
    }
}

/// Writes a value. Everything has its kind and its length before it, so no two values make the same bytes.
fn put(hasher: &mut Hasher, value: &Value) {
    match value {
        Value::Null => _ = hasher.update(b"n"),
        Value::Bool(true) => _ = hasher.update(b"t"),
        Value::Bool(false) => _ = hasher.update(b"f"),
        Value::Number(number) => {
            hasher.update(b"#");
            put_text(hasher, &number.to_string());
        }
        Value::String(text) => {
            hasher.update(b"s");
            put_text(hasher, text);
        }
        Value::Array(items) => {
            hasher.update(b"[");
            put_count(hasher, items.len());
            items.iter().for_each(|item| put(hasher, item));
        }
        Value::Object(members) => {
            hasher.update(b"{");
            put_count(hasher, members.len());
            for (name, member) in members {
                put_text(hasher, name);
                put(hasher, member);
            }
        }
    }
}

fn put_text(hasher: &mut Hasher, text: &str) {
    put_count(hasher, text.len());
    hasher.update(text.as_bytes());
}

fn put_count(hasher: &mut Hasher, count: usize) {
    hasher.update(&(count as u64).to_le_bytes());
}

/// Whether two values are written the same: members of objects in the same order, too.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_member = |((name, one), (other_name, other))| name == other_name && is_same(one, other);
            one.len() == other.len() && one.iter().zip(other).all(is_member)
        }
        _ => one == other,
    }
}

/// What a value takes up, about.
pub(super) fn bytes_of(value: &Value) -> usize {
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(members) => members.iter().map(|(name, member)| MEMBER_BYTES + name.len() + bytes_of(member)).sum(),
    };
    size_of::<Value>() + inner
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_told_apart_as_they_are_written() {
        let keys = Keys::new([7; 32]);
        let values = [
            json!(null),
            json!(false),
            json!(true),
            json!(0),
            json!(0.5),
            json!("0"),
            json!(""),
            json!([]),
            json!({}),
            json!([[], []]),
            json!([[[]]]),
            json!(["ab", ""]),
            json!(["a", "b"]),
            json!({ "a": "b" }),
            json!({ "a": ["b"] }),
            json!({ "": "ab" }),
            json!(["a", { "b": null }]),
            json!([{ "a": null }, "b"]),
        ];
        let made: BTreeSet<Digest> = values.iter().map(|value| keys.input("f", value)).collect();
        assert_eq!(made.len(), values.len());
        for (index, value) in values.iter().enumerate() {
            let same = values.iter().filter(|other| is_same(value, other)).count();
            assert_eq!(same, 1, "{index}");
        }
        let [one, other]: [Value; 2] =
            [r#"{"a":1,"b":{"c":2,"d":3}}"#, r#"{"a":1,"b":{"d":3,"c":2}}"#].map(|text| serde_json::from_str(text).unwrap());
        assert!(one == other && !is_same(&one, &other) && is_same(&one, &one.clone()));
        assert_ne!(keys.input("f", &one), keys.input("f", &other), "a function sees them in their order");
        assert_ne!(keys.input("f", &one), keys.input("g", &one));
        assert_ne!(keys.input("f", &one), Keys::new([8; 32]).input("f", &one), "the secret counts");
        assert_ne!(keys.body(b"n"), keys.input("", &Value::Null));
        assert_ne!(keys.argument("fg", b"h"), keys.argument("f", b"gh"));
        assert_ne!(keys.argument("f", b"g"), Keys::new([8; 32]).argument("f", b"g"));
    }
}
