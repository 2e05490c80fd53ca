//! What a store does, the same natively and in a sandbox; it has to be empty. Panics where it does something else.

use serde::{Deserialize, Serialize};
use sledge::kv::{self, Outcome};

#[derive(Deserialize, Serialize)]
pub struct Point {
    pub x: i32,
    pub y: i32,
}

pub fn store() {
    let bucket = kv::open("fruit").unwrap();
    assert_eq!((bucket.get("apple"), bucket.exists("apple")), (Ok(None), Ok(false)));
    let first = bucket.set("apple", "red").unwrap();
    let entry = bucket.get("apple").unwrap().unwrap();
    assert_eq!((entry.version, entry.value.as_slice()), (first, &b"red"[..]));
    assert_eq!(bucket.compare_and_swap("apple", first + 1, "green"), Ok(Outcome::Conflict(first)));
    let Outcome::Committed(second) = bucket.compare_and_swap("apple", first, "green").unwrap() else { panic!("it is made") };
    assert!(second > first);
    assert_eq!(bucket.increment("pears", -3), Ok(-3));
    assert_eq!((bucket.increment("pears", 5), bucket.increment("apple", 1)), (Ok(2), Err(kv::Error::NotSuch)));
    assert_eq!((bucket.add("pears", 7), bucket.add("apple", 1)), (Ok(()), Err(kv::Error::NotSuch)));
    assert_eq!((bucket.increment("pears", 1), bucket.increment("pears", i64::MAX)), (Ok(10), Err(kv::Error::Overflow)));
    bucket.set_many(&[("plum", "blue"), ("peach", "pink")]).unwrap();
    assert_eq!(bucket.keys("p").unwrap(), [&b"peach"[..], b"pears", b"plum"]);
    let found = bucket.get_many(&["plum", "fig"]).unwrap();
    assert_eq!((found[0].as_ref().map(|entry| entry.value.as_slice()), &found[1]), (Some(&b"blue"[..]), &None));
    let made = bucket.commit(&[(b"apple", second), (b"fig", 0)], &[(b"apple", None), (b"fig", Some(b"ripe"))]).unwrap();
    assert!(matches!(made, Outcome::Committed(_)));
    assert_eq!(
        bucket.commit(&[(b"fig", 0)], &[(b"plum", None)]),
        Ok(Outcome::Conflict(bucket.get("fig").unwrap().unwrap().version))
    );
    bucket.delete_many(&["plum", "peach"]).unwrap();
    bucket.delete("pears").unwrap();
    assert_eq!(bucket.keys("").unwrap(), [b"fig"]);
    assert_eq!(kv::open("nuts").unwrap().get("fig"), Ok(None), "another bucket");
    assert_eq!(bucket.set("k".repeat(1_025), ""), Err(kv::Error::TooLarge));
    assert_eq!(bucket.set("k", vec![0; (1 << 20) + 1]), Err(kv::Error::TooLarge));
    assert_eq!((kv::open(""), kv::open("a\0")), (Err(kv::Error::Name), Err(kv::Error::Name)));
    bucket.set_json("point", &Point { x: 1, y: 2 }).unwrap();
    assert_eq!(bucket.get_json::<Point>("point").unwrap().unwrap().y, 2);
    assert_eq!(bucket.get_json::<Point>("fig").err(), Some(kv::Error::NotSuch));
    let long = vec![b'x'; 100_000];
    bucket.set_many(&[("long", &long), ("longer", &long)]).unwrap();
    assert_eq!(bucket.get("long").unwrap().unwrap().value, long, "more than a first buffer holds");
    let found = bucket.get_many(&["longer", "nothing", "long"]).unwrap();
    assert!(
        found[0].as_ref().is_some_and(|entry| entry.value == long)
            && found[1].is_none()
            && found[0].as_ref() == found[2].as_ref()
    );
    let many = kv::open("many").unwrap();
    let names: Vec<String> = (0..900).map(|number| format!("{number:0>100}")).collect();
    let pairs: Vec<_> = names.iter().map(|name| (name, "")).collect();
    many.set_many(&pairs).unwrap();
    assert!(many.keys("0").unwrap().iter().eq(names.iter().map(String::as_bytes)), "and more keys");
}
