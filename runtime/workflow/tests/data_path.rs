//! Paths: what they lead to, what they write, what they refuse.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use sledge_workflow::data::limits::VALUE_DEPTH_MAX;
use sledge_workflow::data::{DataError, ErrorName, Path, ReadError, ReferencePath, Scope};

fn store() -> Value {
    json!({
        "store": {
            "book": [
                {"category": "reference", "author": "Nigel Rees", "title": "Sayings", "price": 8.95, "tags": ["a", "b"]},
                {"category": "fiction", "author": "Evelyn Waugh", "title": "Sword", "price": 12.99, "tags": ["b"]},
                {"category": "fiction", "author": "Herman Melville", "title": "Whale", "price": 8.99, "isbn": "0-553", "tags": []},
                {"category": "fiction", "author": "J. R. R. Tolkien", "title": "Rings", "price": 22.99, "isbn": "0-395", "tags": ["a", "b", "c"]}
            ],
            "bicycle": {"color": "red", "price": 19.95}
        },
        "limit": 10,
        "text": "hello",
        "nothing": null,
        "numbers": [3, 1, 2],
        "matrix": [[1, 2], [3, 4]],
        "my key": {"it's": 1, "a.b": 2, "quote\\\"d": 3},
        "id-1": {"x:y": true},
        "größe": 5
    })
}

fn context() -> Value {
    json!({"Execution": {"Id": "e-1", "Input": {"n": 7}}, "Map": {"Item": {"Index": 2}}})
}

fn variables() -> Map<String, Value> {
    let Value::Object(variables) = json!({"x": {"a": [10, 20]}, "threshold": 9, "größe_1": "v"}) else { unreachable!() };
    variables
}

fn read(path: &str) -> Result<Value, ReadError> {
    let (input, context, variables) = (store(), context(), variables());
    let path = Path::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    path.read(&Scope::new(&input, &context, &variables)).map(Cow::into_owned)
}

fn expect(table: &[(&str, Value)]) {
    for (path, expected) in table {
        assert_eq!(read(path).as_ref(), Ok(expected), "{path}");
    }
}

#[test]
fn definite_paths_lead_to_one_value() {
    expect(&[
        ("$.limit", json!(10)),
        ("$['limit']", json!(10)),
        ("$[\"limit\"]", json!(10)),
        ("$.['limit']", json!(10)),
        ("$[ 'limit' ]", json!(10)),
        ("$.nothing", json!(null)),
        ("$.store.bicycle.color", json!("red")),
        ("$.store['bicycle'].price", json!(19.95)),
        ("$.store.book[0].title", json!("Sayings")),
        ("$.store.book[-1].title", json!("Rings")),
        ("$.store.book[-4].title", json!("Sayings")),
        ("$.matrix[1][0]", json!(3)),
        ("$.id-1", json!({"x:y": true})),
        ("$.id-1.x:y", json!(true)),
        ("$.größe", json!(5)),
        ("$['my key']['a.b']", json!(2)),
        ("$['my key']['it\\'s']", json!(1)),
        // As recorded from AWS: before another character a backslash stands for itself.
        ("$['my key']['quote\\\"d']", json!(3)),
        ("$$.Execution.Input.n", json!(7)),
        ("$$['Map'].Item.Index", json!(2)),
        ("$x.a[1]", json!(20)),
        ("$threshold", json!(9)),
        ("$größe_1", json!("v")),
    ]);
    assert_eq!(read("$").unwrap(), store());
    assert_eq!(read("$$").unwrap(), context());
}

#[test]
fn indefinite_paths_lead_to_lists() {
    expect(&[
        ("$.numbers[*]", json!([3, 1, 2])),
        ("$.numbers.*", json!([3, 1, 2])),
        ("$.store.bicycle.*", json!(["red", 19.95])),
        ("$.store.bicycle[*]", json!(["red", 19.95])),
        ("$.store.book[*].price", json!([8.95, 12.99, 8.99, 22.99])),
        ("$.store.book[0,2].title", json!(["Sayings", "Whale"])),
        ("$.store.book[2, 0].title", json!(["Whale", "Sayings"])),
        ("$.store.book[0,9].title", json!(["Sayings"])),
        ("$.store.book[0]['title','price']", json!({"title": "Sayings", "price": 8.95})),
        ("$.store.book[0]['title','isbn']", json!({"title": "Sayings"})),
        ("$.store.book[0:2]['title','isbn']", json!([{"title": "Sayings"}, {"title": "Sword"}])),
        ("$['limit','text']", json!({"limit": 10, "text": "hello"})),
        ("$.store['bicycle','nothing'].color", json!(["red"])),
        ("$.numbers[ 0 , 1 ]", json!([3, 1])),
        ("$.numbers[ 0 : 3 : 2 ]", json!([3, 2])),
        ("$[ 'limit' , 'text' ]", json!({"limit": 10, "text": "hello"})),
        ("$.numbers[1:]", json!([1, 2])),
        ("$.numbers[:1]", json!([3])),
        ("$.numbers[:-1]", json!([3, 1])),
        ("$.numbers[-2:]", json!([1, 2])),
        ("$.numbers[0:3:2]", json!([3, 2])),
        ("$.numbers[::-1]", json!([2, 1, 3])),
        ("$.numbers[2:0:-1]", json!([2, 1])),
        ("$.numbers[-100:100]", json!([3, 1, 2])),
        ("$.numbers[5:9]", json!([])),
        ("$.numbers[2:1]", json!([])),
        ("$.matrix[*][0]", json!([1, 3])),
        ("$..price", json!([8.95, 12.99, 8.99, 22.99, 19.95])),
        ("$.store..price", json!([8.95, 12.99, 8.99, 22.99, 19.95])),
        ("$..book[2].author", json!(["Herman Melville"])),
        ("$..book[-1:].title", json!(["Rings"])),
        ("$..['isbn']", json!(["0-553", "0-395"])),
        ("$.matrix..[0]", json!([[1, 2], 1, 3])),
        ("$.matrix..*", json!([[1, 2], [3, 4], 1, 2, 3, 4])),
        ("$x.a[*]", json!([10, 20])),
    ]);
}

/// As recorded from AWS for the input `{}`.
#[test]
fn an_indefinite_path_that_leads_nowhere_is_an_empty_list() {
    let input = json!({});
    let scope = Scope::new(&input, &Value::Null, &());
    for path in [
        "$[*]",
        "$.items[*]",
        "$.items[1:]",
        "$.items[:1]",
        "$.item.items[*]",
        "$.item.items[1:5]",
        "$.items[*].itemValue",
        "$.items[:1].itemValue",
        "$..x",
        "$.items[?(@.a == 1)]",
        "$.items[0,1]",
    ] {
        assert_eq!(Path::parse(path).unwrap().read(&scope).unwrap().into_owned(), json!([]), "{path}");
    }
}

#[test]
fn filters_choose_items() {
    let titles =
        |filter: &str| read(&format!("$.store.book[?({filter})].title")).unwrap_or_else(|error| panic!("{filter}: {error}"));
    for (filter, expected) in [
        ("@.price < 10", vec!["Sayings", "Whale"]),
        ("@.price<10", vec!["Sayings", "Whale"]),
        ("10 > @.price", vec!["Sayings", "Whale"]),
        ("@.price <= 8.99", vec!["Sayings", "Whale"]),
        ("@.price > 12.99", vec!["Rings"]),
        ("@.price >= 12.99", vec!["Sword", "Rings"]),
        ("@.price == 8.95", vec!["Sayings"]),
        ("@.price == '8.95'", vec!["Sayings"]),
        ("@.price != 8.95", vec!["Sword", "Whale", "Rings"]),
        ("@.category == 'fiction'", vec!["Sword", "Whale", "Rings"]),
        ("@.category=='fiction'&&@.price<10", vec!["Whale"]),
        ("@['category'] == \"reference\"", vec!["Sayings"]),
        ("@.isbn", vec!["Whale", "Rings"]),
        ("!@.isbn", vec!["Sayings", "Sword"]),
        ("!(@.isbn)", vec!["Sayings", "Sword"]),
        ("@.isbn && @.price < 10", vec!["Whale"]),
        ("@.isbn || @.price < 10", vec!["Sayings", "Whale", "Rings"]),
        // `&&` binds stronger.
        ("@.price < 9 || @.isbn && @.price > 20", vec!["Sayings", "Whale", "Rings"]),
        ("(@.price < 9 || @.isbn) && @.price > 20", vec!["Rings"]),
        ("@.price < $.limit", vec!["Sayings", "Whale"]),
        ("@.price < $threshold", vec!["Sayings", "Whale"]),
        ("@.price < $$.Execution.Input.n", vec![]),
        ("@.price > $.store.bicycle.price", vec!["Rings"]),
        ("@.author =~ /.*rees/i", vec!["Sayings"]),
        ("@.author =~ /.*rees/", vec![]),
        ("@.author =~ /Rees/", vec![]),
        ("@.isbn =~ /0-\\d{3}/", vec!["Whale", "Rings"]),
        ("@.title =~ /S(ayings|word)/", vec!["Sayings", "Sword"]),
        ("@.title in ['Whale', \"Rings\"]", vec!["Whale", "Rings"]),
        ("@.title IN ['Whale']", vec!["Whale"]),
        ("@.title nin ['Whale', 'Rings']", vec!["Sayings", "Sword"]),
        ("'a' in @.tags", vec!["Sayings", "Rings"]),
        ("@.tags contains 'a'", vec!["Sayings", "Rings"]),
        ("@.author contains 'Wau'", vec!["Sword"]),
        ("@.tags all ['a','c']", vec!["Rings"]),
        ("@.tags subsetof ['a','b']", vec!["Sayings", "Sword", "Whale"]),
        ("@.tags anyof ['c','a']", vec!["Sayings", "Rings"]),
        ("@.tags noneof ['a']", vec!["Sword", "Whale"]),
        ("@.tags size 2", vec!["Sayings"]),
        ("@.tags empty true", vec!["Whale"]),
        ("@.tags empty false", vec!["Sayings", "Sword", "Rings"]),
        ("@.price size 0 || @.price empty true || @.missing empty true", vec![]),
        ("@.title size 5", vec!["Sword", "Whale", "Rings"]),
        ("@.tags.length() >= 2", vec!["Sayings", "Rings"]),
        ("@.price == @.price", vec!["Sayings", "Sword", "Whale", "Rings"]),
        ("@.isbn == @.missing", vec![]),
        ("@.missing != 'x'", vec!["Sayings", "Sword", "Whale", "Rings"]),
        ("@.missing nin ['x']", vec!["Sayings", "Sword", "Whale", "Rings"]),
        ("@.missing == null", vec![]),
        ("@.missing < 1", vec![]),
        ("@.title > 1", vec![]),
        ("@.tags[?(@ == 'c')]", vec!["Rings"]),
        ("@.tags == ['a','b']", vec!["Sayings"]),
        ("@.tags[*] == ['b']", vec!["Sword"]),
    ] {
        assert_eq!(titles(filter), json!(expected), "{filter}");
    }
}

#[test]
fn filters_work_where_jayway_lets_them() {
    expect(&[
        // Of an array its items, of an object the object itself.
        ("$.numbers[?(@ > 1)]", json!([3, 2])),
        ("$.store.bicycle[?(@.color == 'red')].price", json!([19.95])),
        ("$.store.bicycle[?(@.color == 'blue')]", json!([])),
        ("$.text[?(@ == 'hello')]", json!([])),
        ("$.store.[?(@.bicycle)].bicycle.color", json!(["red"])),
        ("$..[?(@.price > 20)].title", json!(["Rings"])),
        ("$..[?(@.color)]", json!([{"color": "red", "price": 19.95}])),
        ("$..book[?(@.isbn)].isbn", json!(["0-553", "0-395"])),
        ("$.matrix[?(@[0] == 3)]", json!([[3, 4]])),
        ("$.matrix[?(@ == [3, 4.0])]", json!([[3, 4]])),
        ("$.matrix[?(@ == [3])]", json!([])),
        ("$.id-1[?(@['x:y'] == true)]", json!([{"x:y": true}])),
        ("$.id-1[?(@['x:y'] == false)]", json!([])),
        ("$[?(@.id-1 == {'x:y': true})].limit", json!([10])),
        ("$[?(@.id-1 == {'x:y': false})].limit", json!([])),
        ("$[?(@.nothing == null)].limit", json!([10])),
        ("$[?( @.id-1 in [ 1 , { 'x:y' : true } , [ ] , { } ] )].limit", json!([10])),
        ("$[?( @.limit in [ 9 , -1.5e1 , 10 ] )].limit", json!([10])),
        ("$[?( { 'a' : 1 , 'b' : [ ] } == { \"b\" : [] , \"a\" : 1.0 } )].limit", json!([10])),
        ("$.numbers[?(@ == 3 || @ == 2)]", json!([3, 2])),
        ("$.numbers[?@ == 3]", json!([3])),
    ]);
}

#[test]
fn functions_end_paths() {
    expect(&[
        ("$.numbers.length()", json!(3)),
        ("$.numbers.size()", json!(3)),
        ("$.text.length()", json!(5)),
        ("$.store.length()", json!(2)),
        ("$.store.book[*].length()", json!(4)),
        ("$..isbn.length()", json!(2)),
        ("$.nowhere[*].length()", json!(0)),
        ("$.numbers.min()", json!(1)),
        ("$.numbers.max()", json!(3)),
        ("$.numbers.sum()", json!(6)),
        ("$.numbers.avg()", json!(2)),
        ("$.numbers[0:2].stddev()", json!(1)),
        ("$.store.book[*].price.max()", json!(22.99)),
        ("$.max($.limit, 4)", json!(10)),
        ("$.sum($.numbers, 4)", json!(10)),
        ("$.numbers.sum($.limit)", json!(16)),
        ("$.store.bicycle.keys()", json!(["color", "price"])),
        ("$.concat($.text, \" \", 'you', 1)", json!("hello you1")),
        ("$.numbers.append(4, 'x')", json!([3, 1, 2, 4, "x"])),
        ("$.numbers.first()", json!(3)),
        ("$.numbers.last()", json!(2)),
        ("$.numbers.index(-2)", json!(1)),
        ("$.matrix[*][*].first()", json!(1)),
        ("$.matrix[*][*].last()", json!(4)),
        ("$.matrix[*][*].index(0)", json!(1)),
        ("$.matrix[*][*].index(2)", json!(3)),
        ("$.matrix[*][*].index(-3)", json!(2)),
    ]);
    for path in ["$.limit.length()", "$.text.keys()", "$.store.sum()", "$.numbers.index(3)", "$.numbers.append($.missing)"] {
        assert!(matches!(read(path), Err(ReadError::Missing { .. })), "{path}");
    }
}

/// The texts are those that AWS prints.
#[test]
fn a_definite_path_that_leads_nowhere_says_where_it_ends() {
    for (path, cause) in [
        ("$.NoSuch", "Invalid path '$.NoSuch' : No results for path: $['NoSuch']"),
        ("$.no.such.result", "Invalid path '$.no.such.result' : Missing property in path $['no']"),
        ("$.numbers[10]", "Invalid path '$.numbers[10]' : No results for path: $['numbers'][10]"),
        (
            "$.text.a",
            "Invalid path '$.text.a' : Expected to find an object with property ['a'] in path $['text'] but found a string",
        ),
        ("$.store[0]", "Invalid path '$.store[0]' : Filter: [0] can only be applied to arrays; $['store'] is an object"),
        ("$$.Nothing", "Invalid path '$$.Nothing' : No results for path: $$['Nothing']"),
        ("$unknown.a", "Invalid path '$unknown.a' : The variable $unknown has no value"),
    ] {
        let error = DataError::from(read(path).unwrap_err());
        assert_eq!((error.error, error.cause.as_str()), (ErrorName::Runtime, cause), "{path}");
    }
}

#[test]
fn existence_is_asked_without_errors() {
    let (input, context, variables) = (store(), context(), variables());
    let scope = Scope::new(&input, &context, &variables);
    for (path, expected) in [
        ("$", true),
        ("$.nothing", true),
        ("$.missing", false),
        ("$.text.a.b", false),
        ("$.numbers[2]", true),
        ("$.numbers[3]", false),
        ("$..isbn", true),
        ("$..nowhere", false),
        ("$.numbers[?(@ > 5)]", false),
        ("$.store.book[?(@.isbn)]['title','isbn']", true),
        ("$.store.book[?(@.never)]['title','isbn']", false),
        ("$unknown", false),
        ("$x.a", true),
    ] {
        assert_eq!(Path::parse(path).unwrap().exists(&scope), Ok(expected), "{path}");
    }
}

#[test]
fn mistakes_have_a_place() {
    for (path, position, message) in [
        ("", 0, "a path that begins with `$`"),
        ("a.b", 0, "a path that begins with `$`"),
        ("@.a", 1, "`@` is only known in a filter"),
        ("$.", 2, "a name"),
        ("$.a.", 4, "a name"),
        ("$..", 3, "a name"),
        ("$...a", 3, "a name"),
        ("$.a b", 3, "in brackets"),
        ("$.a]", 3, "the end of the path"),
        ("$a-b", 2, "the end of the path"),
        ("$1", 1, "does not begin with a digit"),
        ("$.a*", 2, "`*` stands alone"),
        ("$[", 2, "a quoted name"),
        ("$[]", 2, "a quoted name"),
        ("$[a]", 2, "a quoted name"),
        ("$['a", 2, "not closed"),
        ("$['a'", 5, "`]`"),
        ("$['a',]", 6, "a quoted name"),
        ("$[1,]", 4, "an index"),
        ("$[1:2:0]", 7, "not 0"),
        ("$[99999999999]", 2, "not an index"),
        ("$[1-2]", 2, "not an index"),
        ("$[(@.length-1)]", 2, "scripts are not supported"),
        ("$[?(@.a ==)]", 10, "a path, a quoted string"),
        ("$[?(@.a == 1]", 12, "`)`"),
        ("$[?(1)]", 4, "compare it with a path"),
        ("$[?(@.a =~ 'x')]", 11, "a regular expression"),
        ("$[?(@.a =~ /(/)]", 11, "cannot be used"),
        ("$[?(@.a =~ /a)|(b/)]", 11, "cannot be used"),
        ("$[?(@.a =~ /(?=x)/)]", 11, "look-around"),
        ("$[?(@.a =~ /x/q)]", 11, "no flag"),
        ("$[?(@.a size 'x')]", 12, "a number"),
        ("$[?(@.a empty 1)]", 13, "true or false"),
        ("$[?(@.a == '\\u12')]", 14, "hexadecimal"),
        ("$.a.nope()", 4, "no function of paths"),
        ("$.a.length().b", 12, "the last step"),
        ("$.a.length(1)", 4, "no argument"),
        ("$..length()", 11, "followed by a name"),
    ] {
        let error = Path::parse(path).map(|_| ()).expect_err(path);
        assert!(error.message.contains(message), "{path}: {error}");
        assert_eq!(error.position, position, "{path}: {error}");
    }
}

#[test]
fn kinds_of_paths_are_known() {
    for (path, is_definite, is_reference, is_context) in [
        ("$", true, true, false),
        ("$.a['b'][0]", true, true, false),
        ("$$.a", true, true, true),
        ("$x[0]", true, true, false),
        ("$['a','b']", true, false, false),
        ("$.a.length()", true, false, false),
        ("$[*].length()", true, false, false),
        ("$[*]", false, false, false),
        ("$..a", false, false, false),
        ("$[?(@.a)].b", false, false, false),
        ("$$.a[0:1]", false, false, true),
    ] {
        let path = Path::parse(path).unwrap();
        assert_eq!(
            (path.is_definite(), path.is_reference(), path.is_context()),
            (is_definite, is_reference, is_context),
            "{path}"
        );
    }
    let path = Path::parse("$x.a[?(@.b == $y.c && !($z[0] in $w))].sum($v)").unwrap();
    assert_eq!(path.variables(), ["x", "y", "z", "w", "v"]);
    assert_eq!(path.as_str(), path.clone().to_string());
}

#[test]
fn a_definite_path_borrows_and_paths_are_shared_between_threads() {
    let input = store();
    let scope = Scope::new(&input, &Value::Null, &());
    let found = Path::parse("$.store.book").unwrap().read(&scope).unwrap();
    assert!(matches!(found, Cow::Borrowed(found) if std::ptr::eq(found, &raw const input["store"]["book"])));
    fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<Path>();
    is_shared::<ReferencePath>();
}

#[test]
fn reference_paths_write() {
    let write = |input: Value, path: &str| ReferencePath::parse(path).unwrap().write(input, json!("new"));
    for (input, path, expected) in [
        (json!({"a": 1}), "$", json!("new")),
        (json!({"a": 1}), "$.b", json!({"a": 1, "b": "new"})),
        (json!({"a": 1, "b": 2}), "$.a", json!({"a": "new", "b": 2})),
        (json!({}), "$.a.b['c d']", json!({"a": {"b": {"c d": "new"}}})),
        (json!({"a": {"x": 1}}), "$.a.b", json!({"a": {"x": 1, "b": "new"}})),
        (json!({"a": [1, 2]}), "$.a[1]", json!({"a": [1, "new"]})),
        (json!([{"a": 1}]), "$[0].b.c", json!([{"a": 1, "b": {"c": "new"}}])),
    ] {
        assert_eq!(write(input, path).unwrap().to_string(), expected.to_string(), "{path}");
    }
    for (input, path) in [
        (json!("text"), "$.a"),
        (json!(null), "$.a"),
        (json!([1]), "$.a"),
        (json!({"a": 1}), "$.a.b"),
        (json!({"a": null}), "$.a.b"),
        (json!({"a": [1]}), "$.a[1]"),
        (json!({"a": [1]}), "$.a.b"),
        (json!({}), "$.a[0]"),
        (json!({}), "$.a.b[0]"),
    ] {
        let error = write(input.clone(), path).unwrap_err();
        assert_eq!(error.error.as_str(), "States.ResultPathMatchFailure", "{path}");
        assert_eq!(error.cause, format!("Unable to apply ReferencePath {path} to input {input}"));
    }
    for path in ["$$.a", "$x", "$.*", "$..a", "$[0,1]", "$[0:1]", "$[?(@.a)]", "$['a','b']", "$[-1]", "$.length()", "a", ""] {
        assert!(ReferencePath::parse(path).is_err(), "{path}");
    }
    assert!(ReferencePath::parse("$").unwrap().is_root());
    assert!(ReferencePath::parse(&format!("${}", ".a".repeat(VALUE_DEPTH_MAX - 1))).is_ok());
    assert!(ReferencePath::parse(&format!("${}", ".a".repeat(VALUE_DEPTH_MAX))).is_err());
}

#[test]
fn written_values_are_not_nested_without_bound() {
    let path = ReferencePath::parse("$.a").unwrap();
    let mut value = json!(1);
    let mut writes = 0;
    let error = loop {
        match path.write(json!({}), value) {
            Ok(written) => value = written,
            Err(error) => break error,
        }
        writes += 1;
        assert!(writes < 1_000, "it goes on");
    };
    assert_eq!(error.error, ErrorName::DataLimitExceeded);
}
