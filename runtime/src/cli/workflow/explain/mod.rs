//! `sledge workflow explain`: what an express execution did that went ahead of itself, from the admin API of a running server.

mod svg;
mod text;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use http_body_util::Full;
use hyper::Request;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::operate::{AskArgs, ask};
use super::super::{fail, print_line};
use crate::admin::client::ClientError;
use crate::workflow::explained::{Explained, ExplainedRun, Kept};

#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArgs {
    /// The workflow's name
    workflow: String,
    /// The execution's name, from the header `sledge-execution` of the response, or its ARN [default: the last one that has ended]
    execution: Option<String>,
    /// The workflow's tenant
    #[arg(long, default_value = "default")]
    tenant: String,
    /// List the executions that can be explained, the last one first
    #[arg(long, conflicts_with_all = ["execution", "svg"])]
    list: bool,
    /// Write a drawing to this file, in SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    ask: AskArgs,
}

pub(super) fn explain(args: &ExplainArgs) -> ExitCode {
    match told(args) {
        Ok(text) if text.is_empty() => ExitCode::SUCCESS,
        Ok(text) => print_line(&text),
        Err(error) => fail(error),
    }
}

fn told(args: &ExplainArgs) -> Result<String, ClientError> {
    let ExplainArgs { workflow, execution, tenant, list, svg, ask: AskArgs { json, door } } = args;
    let verb = if *list { "explained" } else { "explain" };
    let execution = execution.as_ref().map(|name| format!("&execution={}", utf8_percent_encode(name, NON_ALPHANUMERIC)));
    let path = format!("/workflows/{workflow}/{verb}?tenant={tenant}{}", execution.unwrap_or_default());
    let answer = ask(door, Request::get(path).body(Full::default()))?;
    if *list {
        return if *json { Ok(answer.to_string()) } else { Ok(text::list(&read::<Kept>(answer)?)) };
    }
    if svg.is_none() && *json {
        return Ok(answer.to_string());
    }
    let (json, explained) = (json.then(|| answer.to_string()), read::<Explained>(answer)?);
    let Some(file) = svg else { return Ok(text::text(&explained)) };
    fs::write(file, svg::svg(&explained))
        .map_err(|error| ClientError::Refused(format!("the drawing cannot be written to {}: {error}", file.display())))?;
    Ok(json.unwrap_or_default())
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, ClientError> {
    serde_json::from_value(answer).map_err(|error| {
        ClientError::Refused(format!("the server's answer cannot be read, since it is of another version of sledge: {error}"))
    })
}

/// Milliseconds, as people read them.
fn ms(us: u64) -> String {
    let ms = us as f64 / 1e3;
    if us < 10_000 { format!("{ms:.2}") } else { format!("{ms:.1}") }
}

/// How many of these there are, in words; none where there are none.
fn count(count: usize, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {what}"))
}

/// A number with its word.
fn number(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// In how many frames of branches and iterations a run lies.
fn depth(run: &ExplainedRun) -> usize {
    run.path.len().saturating_sub(2) / 2
}

/// How an execution ended, and how long that took.
fn summary(explained: &Explained) -> String {
    use crate::workflow::explained::Outcome;
    let took = ms(explained.took_us);
    match explained.outcome {
        Outcome::Succeeded => format!("succeeded in {took} ms"),
        Outcome::Failed => format!("failed with {} after {took} ms", explained.error.as_deref().unwrap_or("an error")),
        Outcome::TimedOut => format!("timed out after {took} ms"),
        Outcome::GivenUp => format!("was given up after {took} ms, since the client had gone or the server stopped"),
        Outcome::Rests => format!("had not ended after {took} ms: it went on from its journal"),
    }
}

/// How long it would have taken one after the other.
fn comparison(explained: &Explained) -> String {
    let (alone, took) = (explained.in_sequence_us, explained.took_us.max(1));
    format!("one after the other at most {} ms ({:.1} times as long)", ms(alone), alone as f64 / took as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An execution of four states: the second one was dropped and the third one squashed, each of which has run again.
    fn explained(state: &str) -> Explained {
        let run = |number: u32, state: &str, times: [u32; 3], result: &str| {
            let [begun, ended, over] = times;
            json!({
                "path": [number, 0], "state": state, "asked_us": 0, "begun_us": begun, "ended_us": ended, "over_us": over,
                "result": result, "refused": 0,
            })
        };
        let mut runs = [
            run(0, "A", [0, 2_000, 9_000], "committed"),
            run(1, "B", [100, 1_000, 2_000], "dropped"),
            run(1, "B", [2_000, 4_000, 9_000], "adopted"),
            run(2, state, [100, 3_000, 4_000], "squashed"),
            run(2, state, [4_000, 6_000, 9_000], "adopted"),
        ];
        runs[0]["guess"] = json!({ "what": "answer", "at_us": 50, "right": false });
        for (run, behind) in [(1, 0), (3, 1)] {
            runs[run]["behind"] = runs[behind]["state"].clone();
            runs[run]["behind_run"] = json!(behind);
        }
        runs[1]["reason"] = json!({ "code": "other_input", "text": "its state is asked for with another input: the answer of A was guessed wrong", "state": "A" });
        runs[3]["reason"] = json!({ "code": "read_too_early", "text": "it had read b/k before B wrote it", "key": "b/k" });
        for run in [0, 2, 4] {
            runs[run]["commit"] = json!(0);
        }
        runs[4]["path"] = json!([2, 1, 0, 0]);
        runs[4]["error"] = json!("Late");
        runs[4]["refused"] = json!(2);
        let explained = json!({
            "workflow": "w", "execution": "w-1", "arn": "arn", "speculation": "outputs", "started_ms": 0, "took_us": 9_600, "in_sequence_us": 19_200,
            "outcome": "succeeded", "left_out": 3, "runs": runs,
            "commits": [{ "began_us": 6_000, "ended_us": 9_000, "runs": 3 }, { "began_us": 3_000, "ended_us": 3_500, "runs": 1, "undone": "conflict" }],
            "ways": [{ "state": "Which", "at_us": 20, "guessed": state, "went": "B", "right": false }],
        });
        serde_json::from_value(explained).unwrap()
    }

    #[test]
    fn an_execution_is_told_with_a_bar_for_each_run_and_why_runs_do_not_count() {
        let expected = "\
w-1 succeeded in 9.60 ms
  one after the other at most 19.2 ms (2.0 times as long)
  5 runs: 1 committed, 2 ran ahead and counted, 1 dropped, 1 squashed
  1 commit, of 3 runs, 3.00 ms each, and 1 not made
  2 guesses: 2 wrong

  #  state  0                                        9.60 ms   began   ended    over  result
  1  A      ███████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░│      0.00    2.00    9.00  committed
  2  B      ▒▒▒▒▒▒░░░░×                                  │      0.10    1.00    2.00  dropped, behind A
  3  B                ███████████░░░░░░░░░░░░░░░░░░░░░░░░│      2.00    4.00    9.00  ran ahead
  4  C      ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒░░░░×                        │      0.10    3.00    4.00  squashed, behind B
  5    C                        ███████████░░░░░░░░░░░░░░│      4.00    6.00    9.00  ran ahead, failed with Late, 2 times there was no room for it
  and 3 more runs, of which nothing is kept

█ runs  ▒ runs in vain  ░ waits for its commit  │ commit  × dropped

runs that do not count:
  2 B was dropped: its state is asked for with another input: the answer of A was guessed wrong
  4 C was squashed: it had read b/k before B wrote it

guesses that were not right:
     0.02 ms  Which leads to C: wrong, it went to B
     0.05 ms  1 A answers as it did to that input before: wrong";
        assert_eq!(text::text(&explained("C")), expected);
    }

    #[test]
    fn a_drawing_has_all_runs_and_texts_of_others_are_no_elements() {
        let drawing = svg::svg(&explained("C"));
        for part in [
            "class=\"se-adopted\"",
            "class=\"se-squashed\"",
            "se-undone",
            "commit 1 of 3 runs, made",
            "it had read b/k before B wrote it",
        ] {
            assert!(drawing.contains(part), "{part}: {drawing}");
        }
        let arrows = drawing.matches("marker-end").count();
        assert_eq!((arrows, drawing.matches("<title>").count()), (2, 1 + 2 + 5));
        let hostile = svg::svg(&explained("<script>alert('1')</script>\" x=\"&\u{7}]]>"));
        assert!(!hostile.contains("<script") && !hostile.contains('\u{7}') && !hostile.contains("]]>"), "{hostile}");
        assert!(hostile.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot; x=&quot;&amp;"), "{hostile}");
        let told = text::text(&explained("a\u{1b}[31m\nb"));
        assert!(!told.contains('\u{1b}') && told.lines().all(|line| !line.starts_with('b')), "{told}");
    }

    #[test]
    fn an_execution_without_runs_is_drawn() {
        let nothing =
            Explained { runs: Vec::new(), commits: Vec::new(), ways: Vec::new(), took_us: 0, left_out: 0, ..explained("C") };
        assert!(text::text(&nothing).contains("0 runs: none\n  no commits\n"));
        assert!(svg::svg(&nothing).ends_with("</svg>\n"));
        assert_eq!(text::list(&Kept { executions: Vec::new() }).lines().count(), 1);
    }
}
