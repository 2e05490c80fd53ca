//! Drawings of workflows: golden files of small ones (`BLESS=1` writes them), and what holds of all.

mod driver;

use std::collections::HashSet;
use std::sync::Arc;

use driver::{definition, generate};
use serde_json::{Map, Value, json};
use sledge_workflow::definition::Definition;
use sledge_workflow::draw;

fn chain() -> Value {
    json!({ "Comment": "a chain <&>", "StartAt": "Read", "States": {
        "Read": { "Type": "Task", "Resource": "fn:read-order", "Next": "Wait a little" },
        "Wait a little": { "Type": "Wait", "Seconds": 30, "Next": "Set" },
        "Set": { "Type": "Pass", "Result": 1, "Next": "Done" },
        "Done": { "Type": "Succeed" },
    } })
}

fn looping() -> Value {
    json!({ "QueryLanguage": "JSONata", "StartAt": "Submit", "States": {
        "Submit": { "Type": "Task", "Resource": "fn:submit", "Next": "Pause" },
        "Pause": { "Type": "Wait", "Seconds": 30, "Next": "Ask" },
        "Ask": { "Type": "Task", "Resource": "fn:status", "Next": "Finished?" },
        "Finished?": { "Type": "Choice", "Choices": [
            { "Condition": "{% $states.input.status = 'FAILED' %}", "Next": "Failed" },
            { "Condition": "{% $states.input.status = 'DONE' and $states.input.count > 10 %}", "Next": "Fetch" },
        ], "Default": "Pause" },
        "Fetch": { "Type": "Task", "Resource": "fn:fetch", "End": true },
        "Failed": { "Type": "Fail", "Error": "JobFailed" },
    } })
}

fn nested() -> Value {
    let task = |name: &str, next: Option<&str>| {
        let mut task = json!({ "Type": "Task", "Resource": format!("fn:{name}") });
        match next {
            Some(next) => task["Next"] = json!(next),
            None => task["End"] = json!(true),
        }
        task
    };
    json!({ "StartAt": "Prepare", "States": {
        "Prepare": { "Type": "Pass", "Next": "Both" },
        "Both": { "Type": "Parallel", "Next": "Join", "Branches": [
            { "StartAt": "Charge", "States": { "Charge": task("charge", Some("Mail")), "Mail": task("mail", None) } },
            { "StartAt": "Each item", "States": { "Each item": { "Type": "Map", "End": true, "ItemProcessor": { "StartAt": "In stock?", "States": {
                "In stock?": { "Type": "Choice", "Choices": [{ "Variable": "$.stock", "NumericGreaterThan": 0, "Next": "Pack" }], "Default": "Order" },
                "Order": task("order", Some("Pack")),
                "Pack": task("pack", None),
            } } } } },
            { "StartAt": "Log", "States": { "Log": task("log", None) } },
        ] },
        "Join": { "Type": "Pass", "End": true },
    } })
}

fn catches() -> Value {
    let catch = |errors: &[&str], next: &str| json!({ "ErrorEquals": errors, "Next": next });
    json!({ "StartAt": "Reserve", "States": {
        "Reserve": { "Type": "Task", "Resource": "fn:reserve", "Next": "Charge", "Catch": [catch(&["States.ALL"], "Cancel")] },
        "Charge": { "Type": "Task", "Resource": "https://pay.example.org/charge", "Next": "Ship",
            "Catch": [catch(&["Declined", "States.Timeout"], "Refund"), catch(&["States.ALL"], "Cancel")] },
        "Ship": { "Type": "Task", "Resource": "workflow:shipping.sync", "End": true, "Catch": [catch(&["Lost"], "Ship"), catch(&["States.ALL"], "Refund")] },
        "Refund": { "Type": "Task", "Resource": "fn:refund", "Next": "Cancel" },
        "Cancel": { "Type": "Fail", "Error": "OrderFailed" },
    } })
}

/// Forty states with choices ahead and back, and catches.
fn forty() -> Value {
    let mut rng = fastrand::Rng::with_seed(40);
    let mut states = Map::new();
    for n in 0..40 {
        let (name, next) = (format!("Step {n}"), format!("Step {}", n + 1));
        let mut state = match n % 5 {
            3 if n < 35 => {
                let other = if n % 10 == 3 { n + rng.usize(2..5) } else { n - rng.usize(2..4) };
                json!({ "Type": "Choice", "Choices": [{ "Variable": "$.a", "IsPresent": true, "Next": format!("Step {other}") }], "Default": next })
            }
            2 => json!({ "Type": "Wait", "Seconds": 5, "Next": next }),
            0 => {
                json!({ "Type": "Task", "Resource": "fn:work", "Next": next, "Catch": [{ "ErrorEquals": ["States.ALL"], "Next": "Step 39" }] })
            }
            _ => json!({ "Type": "Pass", "Next": next }),
        };
        if n == 39 {
            state = json!({ "Type": "Fail", "Error": "Given up" });
        }
        if n == 38 {
            state = json!({ "Type": "Succeed" });
        }
        states.insert(name, state);
    }
    json!({ "StartAt": "Step 0", "States": states })
}

fn wide() -> Value {
    let long = "A rather long name of a state that does not fit into any box, 再見 <b>&";
    let branch = |n: usize| {
        let name = format!("{n} {long}");
        json!({ "StartAt": name, "States": { name.clone(): { "Type": "Pass", "End": true } } })
    };
    json!({ "StartAt": "All", "States": { "All": { "Type": "Parallel", "Branches": (0..6).map(branch).collect::<Vec<_>>(), "End": true } } })
}

#[test]
fn drawings_are_the_golden_ones() {
    let folder = format!("{}/tests/golden", env!("CARGO_MANIFEST_DIR"));
    let bless = std::env::var_os("BLESS").is_some();
    let table = [
        ("chain", chain()),
        ("looping", looping()),
        ("nested", nested()),
        ("catches", catches()),
        ("forty", forty()),
        ("wide", wide()),
    ];
    let mut wrong = Vec::new();
    for (name, source) in table {
        let definition = definition(&source);
        for (kind, drawn) in [("svg", draw::svg(&definition)), ("txt", draw::text(&definition))] {
            let path = format!("{folder}/{name}.{kind}");
            if bless {
                std::fs::write(&path, &drawn).expect("a golden file");
            } else if std::fs::read_to_string(&path).ok().as_deref() != Some(&drawn) {
                wrong.push(format!("{path}\n{}", if kind == "txt" { &drawn } else { "" }));
            }
        }
    }
    assert!(wrong.is_empty(), "these differ; look at them, and run with BLESS=1 if they are right:\n{}", wrong.join("\n"));
}

/// What a drawing as SVG consists of, read back from its text.
fn attributes<'t>(line: &'t str, name: &str) -> Option<&'t str> {
    line.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

fn number(line: &str, name: &str) -> i64 {
    attributes(line, name).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name} in {line}"))
}

/// Boxes of states that hold no others: left, top, right, bottom.
fn boxes(svg: &str) -> Vec<(i64, i64, i64, i64)> {
    let inner = |line: &&str| line.contains("class=\"sw-box") && !line.contains("sw-frame") && !line.contains("sw-behind");
    svg.lines()
        .filter(inner)
        .map(|line| {
            (
                number(line, "x"),
                number(line, "y"),
                number(line, "x") + number(line, "width"),
                number(line, "y") + number(line, "height"),
            )
        })
        .collect()
}

/// The straight parts of lines; round corners are taken as they turn.
fn parts(svg: &str) -> Vec<((i64, i64), (i64, i64))> {
    let mut parts = Vec::new();
    for line in svg.lines().filter(|line| line.contains("sw-wire") && line.starts_with("<path")) {
        let path = attributes(line, "d").expect("a path").replace(['M', 'L', 'Q'], " ");
        let numbers: Vec<i64> = path.split_whitespace().map(|text| text.parse().expect("a number")).collect();
        let points: Vec<_> = numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect();
        parts.extend(points.windows(2).map(|pair| (pair[0], pair[1])));
    }
    parts
}

fn check(definition: &Definition, source: &Value) {
    let svg = draw::svg(definition);
    let boxes = boxes(&svg);
    let frames = definition.states().iter().filter(|state| matches!(state.kind.name(), "Parallel" | "Map")).count();
    assert_eq!(boxes.len() + frames, definition.states().len(), "each state has a box: {source}");
    for (at, one) in boxes.iter().enumerate() {
        for other in &boxes[at + 1..] {
            let apart = one.2 < other.0 || other.2 < one.0 || one.3 < other.1 || other.3 < one.1;
            assert!(apart, "boxes {one:?} and {other:?} lie on each other: {source}");
        }
    }
    let (width, height) = (number(&svg, "width"), number(&svg, "height"));
    for (from, to) in parts(&svg) {
        let (left, right, top, bottom) = (from.0.min(to.0), from.0.max(to.0), from.1.min(to.1), from.1.max(to.1));
        assert!(
            left >= -16 && top >= -16 && right <= width - 16 && bottom <= height - 16,
            "{from:?} to {to:?} is not on the page: {source}"
        );
        for own in &boxes {
            let crosses = left < own.2 && own.0 < right.max(left + 1) && top < own.3 && own.1 < bottom.max(top + 1);
            assert!(
                !(crosses && !(bottom == own.1 || top == own.3)),
                "the line {from:?} to {to:?} crosses the box {own:?}: {source}"
            );
        }
    }
    let text = draw::text(definition);
    let count = text.matches('┌').count();
    assert!(count >= boxes.len(), "each state has a box as text: {source}");
    assert!(!text.lines().any(|line| line.ends_with(' ')));
}

#[test]
fn no_line_crosses_a_box_in_random_drawings() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut drawn = 0;
    for round in 0..10_000 {
        let mut source = generate::definition(&mut rng);
        if round % 2 == 0 {
            tangle(&mut rng, &mut source);
        }
        // Some of those with more edges are refused: states that no way leads to.
        if let Ok(definition) = Definition::parse(&source.to_string()) {
            check(&definition, &source);
            drawn += 1;
        }
    }
    assert!(drawn > 9_000, "only {drawn} were valid");
}

/// Leads edges of the top level anywhere: loops, and many edges to one state.
fn tangle(rng: &mut fastrand::Rng, source: &mut Value) {
    let names: Vec<String> = source["States"].as_object().expect("states").keys().cloned().collect();
    let any = |rng: &mut fastrand::Rng| names[rng.usize(..names.len())].clone();
    for state in source["States"].as_object_mut().expect("states").values_mut() {
        match state["Type"].as_str() {
            Some("Choice") => {
                let mut more: Vec<_> = state["Choices"].as_array().expect("rules").clone();
                for _ in 0..rng.usize(..4) {
                    let mut rule = more[0].clone();
                    rule["Next"] = json!(any(rng));
                    more.push(rule);
                }
                state["Choices"] = json!(more);
            }
            Some("Task" | "Parallel" | "Map") => {
                let catchers: Vec<_> =
                    (0..rng.usize(1..4)).map(|n| json!({ "ErrorEquals": [format!("E{n}")], "Next": any(rng) })).collect();
                state["Catch"] = json!(catchers);
            }
            _ => {}
        }
    }
}

#[test]
fn texts_are_escaped_and_long_names_have_tooltips() {
    let source = json!({ "StartAt": "<script>alert('x')</script> & \"so on\" that is cut", "States": {
        "<script>alert('x')</script> & \"so on\" that is cut": { "Type": "Choice", "Choices": [
            { "Variable": "$.a", "StringEquals": "</text><b>", "Next": "Bell \u{7} and tab \t" }] },
        "Bell \u{7} and tab \t": { "Type": "Fail", "Error": "]]>" },
    } });
    let svg = draw::svg(&definition(&source));
    assert!(!svg.contains("<script") && !svg.contains("<b>") && !svg.contains('\u{7}') && !svg.contains("]]>"), "{svg}");
    assert!(
        svg.contains(
            "<title>&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;so on&quot; that is cut: Choice</title>"
        ),
        "{svg}"
    );
    let tags: Vec<_> =
        svg.split('<').skip(1).filter_map(|tag| tag.split(|c: char| !c.is_ascii_alphabetic() && c != '/').next()).collect();
    let known: HashSet<_> = ["svg", "title", "style", "defs", "marker", "path", "rect", "g", "text", "circle"].into();
    assert!(tags.iter().all(|tag| known.contains(tag.trim_matches('/'))), "{tags:?}");
    let text = draw::text(&definition(&source));
    assert!(!text.contains(['\u{7}', '\t']), "{text}");
}

#[test]
fn drawings_as_text_fit_where_they_can() {
    for source in [chain(), looping(), nested(), catches(), forty(), wide()] {
        let text = draw::text(&definition(&source));
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= 101, "{widest} columns:\n{text}");
    }
}

/// The largest drawings: what is too large says so, and what is not is drawn in a moment.
#[test]
fn large_definitions_have_bounds() {
    let row = |count: usize, rules: usize| -> Arc<Definition> {
        let mut states = Map::new();
        for n in 0..count {
            let rules: Vec<_> = (0..rules)
                .map(|rule| json!({ "Variable": "$.a", "NumericEquals": rule, "Next": format!("S{}", (n * 7 + rule * 13) % count) }))
                .collect();
            let next = format!("S{}", (n + 1) % count);
            let state = if rules.is_empty() {
                if n + 1 == count { json!({ "Type": "Succeed" }) } else { json!({ "Type": "Pass", "Next": next }) }
            } else {
                json!({ "Type": "Choice", "Choices": rules, "Default": next })
            };
            states.insert(format!("S{n}"), state);
        }
        definition(&json!({ "StartAt": "S0", "States": states }))
    };
    assert!(draw::svg(&row(1_001, 0)).contains("The workflow has 1001 states; drawings show at most 1000."));
    assert_eq!(draw::text(&row(1_001, 0)), "The workflow has 1001 states; drawings show at most 1000.\n");
    let began = std::time::Instant::now();
    for (count, rules) in [(1_000, 0), (1_000, 4), (40, 39), (2, 1_000)] {
        let definition = row(count, rules);
        let (svg, text) = (draw::svg(&definition), draw::text(&definition));
        println!("{count} states, {rules} rules: {} and {} bytes, {:?}", svg.len(), text.len(), began.elapsed());
        assert!(svg.len() < 8_000_000 && text.len() < 16_000_000);
    }
    let branches: Vec<_> = (0..900)
        .map(|n| json!({ "StartAt": format!("B{n}"), "States": { format!("B{n}"): { "Type": "Pass", "End": true } } }))
        .collect();
    let parallel =
        definition(&json!({ "StartAt": "P", "States": { "P": { "Type": "Parallel", "Branches": branches, "End": true } } }));
    assert!(draw::svg(&parallel).contains("B899"));
    assert!(draw::text(&parallel).contains("B899"));
    // An unoptimised build on a busy machine.
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}
