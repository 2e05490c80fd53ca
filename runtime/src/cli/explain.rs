//! `sledge explain-effects`: what the runs of a function did, and whether they can be answered from a table.

use std::process::ExitCode;

use clap::Args;
use http_body_util::Full;
use hyper::Request;
use serde_json::Value;

use super::operate::{AskArgs, ask, done};

/// Show what the runs of a function did, and why equal requests can be answered from a table or not.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The function's name
    name: String,
    #[command(flatten)]
    ask: AskArgs,
}

pub(super) fn explain(args: &ExplainArgs) -> ExitCode {
    let ExplainArgs { name, ask: AskArgs { json, door } } = args;
    let answer = ask(door, Request::get(format!("/functions/{name}/effects")).body(Full::default()));
    done(answer.map(|answer| if *json { answer.to_string() } else { told(&answer).join("\n") }))
}

/// In words, a line each.
fn told(answer: &Value) -> Vec<String> {
    let (did, number) = (&answer["did"], |value: &Value| value.as_u64().unwrap_or_default());
    let (runs, repeatable) = (number(&did["runs"]), number(&did["repeatable"]));
    let is_pure = if did["pure"] == true { ", pure = true" } else { "" };
    let mut lines = vec![
        format!("memo                 {}{is_pure}", did["memo"].as_str().unwrap_or_default()),
        format!("runs                 {runs}, {repeatable} of them deterministic"),
        format!("verdict              {}", verdict(did, runs, repeatable)),
    ];
    let refused = did["refused"].as_array().into_iter().flatten();
    lines.extend(refused.map(|why| {
        let (reason, meaning) = (why["reason"].as_str().unwrap_or_default(), why["meaning"].as_str().unwrap_or_default());
        format!("  {reason:18} {} runs: {meaning}", number(&why["runs"]))
    }));
    let list = |names: &Value| names.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    let effects = list(&did["effects"]);
    lines.push(format!("effects              {}", if effects.is_empty() { "none" } else { &effects }));
    for (what, key) in
        [("reads of the head", "head"), ("keys read", "reads"), ("keys listed", "lists"), ("keys written", "writes")]
    {
        let names = list(&did[key]["names"]);
        if !names.is_empty() {
            let more = if did[key]["has_more"] == true { ", and more" } else { "" };
            lines.push(format!("{what:20} {names}{more}"));
        }
    }
    let (entries, bytes, bytes_max) = (number(&did["entries"]), number(&did["bytes"]), number(&did["bytes_max"]));
    lines.push(format!(
        "table                {entries} entries, {bytes} of {bytes_max} bytes; {} answers",
        number(&did["answered"])
    ));
    let conflicts = answer["conflicts"].as_array().into_iter().flatten();
    lines.extend(conflicts.map(|conflict| {
        let turns = if conflict["takes_turns"] == true { "; transactions take turns there" } else { "" };
        let keys = conflict["keys"].as_str().unwrap_or_default();
        format!("conflicts            {keys}: {} lately, of all functions of the tenant{turns}", number(&conflict["conflicts"]))
    }));
    lines
}

fn verdict(did: &Value, runs: u64, repeatable: u64) -> &'static str {
    match (runs, repeatable) {
        _ if did["is_off"] == true => "switched off: an answer was wrong, so `pure = true` does not hold",
        (0, _) => "unknown, since no request has run",
        (_, 0) => "not deterministic",
        (runs, repeatable) if runs == repeatable => "deterministic",
        _ => "deterministic for some requests",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_runs_did_is_told_in_words() {
        let names = |names: &[&str], has_more: bool| json!({ "names": names, "has_more": has_more });
        let answer = json!({
            "did": {
                "memo": "auto", "pure": false, "is_off": false, "runs": 5, "repeatable": 3, "answered": 7,
                "refused": [{ "reason": "wrote", "runs": 2, "meaning": "wrote to the key-value store" }],
                "effects": ["stream", "kvread"], "head": names(&["the path"], false), "reads": names(&["b/user:#"], true),
                "lists": names(&[], false), "writes": names(&["b/n"], false), "entries": 2, "bytes": 700, "bytes_max": 65536,
            },
            "conflicts": [{ "keys": "b/user:#", "conflicts": 4, "takes_turns": true }],
        });
        let expected = [
            "memo                 auto",
            "runs                 5, 3 of them deterministic",
            "verdict              deterministic for some requests",
            "  wrote              2 runs: wrote to the key-value store",
            "effects              stream, kvread",
            "reads of the head    the path",
            "keys read            b/user:#, and more",
            "keys written         b/n",
            "table                2 entries, 700 of 65536 bytes; 7 answers",
            "conflicts            b/user:#: 4 lately, of all functions of the tenant; transactions take turns there",
        ];
        assert_eq!(told(&answer), expected);
        let verdicts = [(0, 0, false), (2, 0, false), (2, 2, false), (2, 2, true)];
        let verdicts = verdicts.map(|(runs, repeatable, is_off)| verdict(&json!({ "is_off": is_off }), runs, repeatable));
        assert_eq!(verdicts[..3], ["unknown, since no request has run", "not deterministic", "deterministic"]);
        assert!(verdicts[3].starts_with("switched off"));
    }
}
