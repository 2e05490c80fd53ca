//! Expressions that read `$states` in all ways give the same, whether its members are bound as variables of their own or as one object.

mod driver;

use driver::{Player, definition, generate};
use serde_json::{Value, json};
use sledge_workflow::machine::Limits;

fn output(expression: &str, input: &Value) -> Value {
    let source = json!({ "StartAt": "A", "QueryLanguage": "JSONata", "States": {
        "A": { "Type": "Pass", "Assign": { "v": [1, { "a": 2 }] }, "Output": "{% $states.input %}", "Next": "B" },
        "B": { "Type": "Pass", "Output": { "x": format!("{{% {expression} %}}") }, "End": true } } });
    let result = Player::new(definition(&source), Limits::default(), 3).unchecked().play(input.clone()).result();
    // The cause names the expression.
    if result.get("error").is_some() { result["error"].clone() } else { result }
}

#[test]
fn members_of_states_are_read_the_same_in_both_ways() {
    let mut failures = 0;
    for path in [
        "$states.input",
        "$states.input.a",
        "$states.input[0]",
        "$states.input[-1].a",
        "$states.input.a[0]",
        "$states.input.a.b",
        "$states.input.*",
        "$states.input.**.a",
        "$states.input[a > 1]",
        "$states.input.a[]",
        "$states.input[]",
        "$count($states.input)",
        "$states.input.$string()",
        "$states.input ~> $string",
        "$states.input^(a)",
        "$states.input{a: $count(b)}",
        "[$states.input]",
        "{'k': $states.input.a}",
        "$states . input . a",
        "$states.input = $states.context.Execution.Input",
        "$map($states.input, function($i) { $i.a })",
        "$states.context.State.Name & $string($states.input.a)",
        "($f := function() { $states.input.b }; $f())",
        "$states.input.(a + 1)",
        "$states.input.a.$v",
        "$exists($states.result)",
        "$type($states.errorOutput)",
        "$states.input.`a`",
        "'$states' & $states.context.State.Name",
        "$sort($keys($states.input))",
        "$each($states.input, function($x, $k) { $k })",
        "$v[1].a + 1",
        "$states.input ? 1 : 2",
        "$merge([$states.input, {'z': 1}])",
    ] {
        // The whole object cannot be read member by member.
        let whole = format!("($ignored := $states; {path})");
        for seed in 0..60 {
            let input = generate::document(&mut fastrand::Rng::with_seed(seed), 3);
            let (direct, indirect) = (output(path, &input), output(&whole, &input));
            assert_eq!(direct, indirect, "{path} on {input}");
            failures += usize::from(direct.is_string());
        }
    }
    assert!(failures < 60 * 25, "most expressions give something: {failures} do not");
}
