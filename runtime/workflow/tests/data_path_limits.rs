//! Paths: their limits, and texts at random.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use sledge_workflow::data::limits::{OUTPUT_BYTES_MAX, PATH_BYTES_MAX, PATH_NESTING_MAX, PATH_STEPS_MAX};
use sledge_workflow::data::{DataError, ErrorName, Limits, Path, ReadError, ReferencePath, Scope};

#[test]
fn the_text_of_a_path_is_limited() {
    let nested = |levels: usize| format!("$[?({}@.a{})]", "(".repeat(levels), ")".repeat(levels));
    assert!(Path::parse(&nested(PATH_NESTING_MAX - 3)).is_ok());
    for hostile in [
        nested(PATH_NESTING_MAX),
        nested(4_000),
        format!("$[?({}@.a)]", "!".repeat(9_000)),
        format!("$[?(@.a == {})]", "[".repeat(9_000)),
        format!("$[?(@.a == {})]", "{'a':".repeat(1_900)),
        format!("${}", "[?(@".repeat(2_000)),
        format!("${}", ".a".repeat(PATH_STEPS_MAX + 1)),
        format!("${}", ".sum($".repeat(1_500)),
        format!("$.{}", "a".repeat(PATH_BYTES_MAX)),
        format!("$[?(@.a =~ /{}/)]", "(a{1000}){1000}"),
        format!("$[?(@.a =~ /{}/)]", "(".repeat(900)),
    ] {
        assert!(Path::parse(&hostile).is_err(), "{}", &hostile[..40]);
    }
}

#[test]
fn visits_are_limited() {
    let items: Vec<Value> = (0..2_000).map(|n| json!({"n": n, "t": "x".repeat(50)})).collect();
    let text = "a".repeat(100_000);
    let input =
        json!({"items": items, "big": text, "list": vec![1; 20_000], "other": vec![1; 20_000], "bag": "a".repeat(100_000)});
    let scope = Scope::new(&input, &Value::Null, &());
    for path in [
        "$..[?($..n)]",
        "$.items[?(@.n in $..n)][?(@.n in $..n)]",
        "$.items[?($.big =~ /(a|aa)+b/)]",
        "$.items[?($.list == $.other && @.n == -1)]",
        "$.items[?($.big.length() == 1)]",
        "$.items[?($.big == $.bag)]",
        "$.items[?($.big < $.bag)]",
        "$.items[?($.big contains 'b')]",
        "$.items[?($.list.append($) size 3)]",
        "$.items[?($.list subsetof $.other && @.n < 0)]",
        "$.items[?($.list[::-1] empty true)]",
        "$.items[?($.concat($.big) == 1)]",
        "$.items[?($.sum($.list) == 1)]",
        "$.list[?(@ == $..*)]",
        "$.items..['n','t']",
    ] {
        let started = std::time::Instant::now();
        let error = Path::parse(path).unwrap().read(&scope).map(drop);
        println!("{path}: {:?}", started.elapsed());
        // Debug builds are an order of magnitude slower than what the limits are made for.
        assert!(started.elapsed().as_secs() < 20, "{path} took {:?}", started.elapsed());
        if path.ends_with("'t']") {
            assert_eq!(error, Ok(()), "{path}");
        } else {
            let error = DataError::from(error.unwrap_err());
            assert!(error.error == ErrorName::Runtime && error.cause.contains("visits too many nodes"), "{path}: {error}");
        }
    }
    let few = Scope { limits: Limits { visits_max: 10, ..Limits::default() }, ..scope };
    assert!(matches!(Path::parse("$.items[*]").unwrap().read(&few), Err(ReadError::Limit(_))));
    assert!(matches!(Path::parse("$..n").unwrap().exists(&few), Err(ReadError::Limit(_))));
    assert!(Path::parse("$.items[1999].n").unwrap().read(&few).is_ok());
}

#[test]
fn lists_of_results_are_limited_in_bytes() {
    // Every level repeats what is below it.
    let mut input = json!({"leaf": "x".repeat(OUTPUT_BYTES_MAX / 4)});
    for _ in 0..10 {
        input = json!({"a": input});
    }
    let scope = Scope::new(&input, &Value::Null, &());
    let error = Path::parse("$..*").unwrap().read(&scope).unwrap_err();
    assert_eq!(DataError::from(error).error, ErrorName::DataLimitExceeded);
    let small = Scope { limits: Limits { output_bytes_max: 10, ..Limits::default() }, ..scope };
    let list = json!([1, 22, "é", 1.5]);
    let read = |path: &str, bytes_max: usize| {
        let limits = Limits { output_bytes_max: bytes_max, ..small.limits };
        Path::parse(path).unwrap().read(&Scope { input: &list, limits, ..small }).map(Cow::into_owned)
    };
    let bytes = list.to_string().len();
    assert_eq!(read("$[*]", bytes), Ok(list.clone()));
    assert!(read("$[*]", bytes - 1).is_err());
}

/// Any mutation of a path parses or does not, and reads or does not; nothing panics.
#[test]
fn mutated_paths_do_not_panic() {
    let seed = 0x5eed_0001;
    println!("seed {seed:#x}");
    let mut random = fastrand::Rng::with_seed(seed);
    let input = json!({
        "store": {"book": [
            {"category": "fiction", "author": "Nigel Rees", "price": 8.95, "tags": ["a", "b"]},
            {"category": "fiction", "author": "Herman Melville", "title": "Whale", "price": 22.99, "isbn": "0-553", "tags": []}
        ]},
        "limit": 10,
        "text": "hello",
        "numbers": [3, 1, 2],
        "my key": {"it's": 1}
    });
    let context = json!({"Execution": {"Input": {"n": 7}}});
    let mut variables = Map::new();
    variables.insert("x".into(), json!({"a": [10, 20]}));
    let scope = Scope { limits: Limits { visits_max: 20_000, ..Limits::default() }, ..Scope::new(&input, &context, &variables) };
    let corpus = [
        "$.store.book[?(@.price < $.limit && @.category == 'fiction' || !(@.isbn))]['title','price']",
        "$..book[-1:].author",
        "$x.a[0,1,-1]",
        "$$.Execution['Input'].n",
        "$.store..[?(@.author =~ /.*r[a-z]{2,}s/i)].tags.length()",
        "$.numbers[::-2].sum($.limit, [1,2])",
        "$.store.book[?(@.tags subsetof [\"a\",'b',{'c':null}])].price.avg()",
        "$['my key']['it\\'s']",
        "$.concat($.text, '\\u00e9', 1)",
    ];
    let alphabet: Vec<char> = "$@.[]()'\"*?:,!&|=<>~/\\-0123abeé \n{}".chars().collect();
    let mut parsed = 0;
    for _ in 0..20_000 {
        let mut text: Vec<char> = corpus[random.usize(..corpus.len())].chars().collect();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..=text.len());
            match random.u8(..4) {
                0 if at < text.len() => drop(text.remove(at)),
                1 => text.insert(at, alphabet[random.usize(..alphabet.len())]),
                2 if at < text.len() => text[at] = alphabet[random.usize(..alphabet.len())],
                _ => {
                    let end = random.usize(at..=text.len().min(at + 12));
                    let copy: Vec<char> = text[at..end].to_vec();
                    let to = random.usize(..=text.len());
                    text.splice(to..to, copy);
                }
            }
        }
        let text: String = text.into_iter().collect();
        match Path::parse(&text) {
            Ok(path) => {
                parsed += 1;
                let exists = path.exists(&scope);
                let read = path.read(&scope);
                // The two agree, where no limit is reached.
                if let (Ok(exists), Ok(_)) = (&exists, &read) {
                    assert!(*exists || !path.is_definite(), "{text}");
                }
                if let (Ok(true), Err(error @ ReadError::Missing { .. })) = (&exists, &read) {
                    panic!("{text}: {error}");
                }
                let again = Path::parse(path.as_str()).expect("its own text");
                assert_eq!(again.read(&scope), read, "{text}");
            }
            Err(error) => assert!(error.position <= text.len(), "{text}: {error}"),
        }
        if let Ok(path) = ReferencePath::parse(&text) {
            let _ = path.write(input.clone(), json!(1));
        }
    }
    assert!(parsed > 2_000, "only {parsed} of the mutations are paths: the test says little");
}
