//! What an execution did, as text: a bar for each run, and why runs do not count.

use awsm_abi::text::line;
use sledge_workflow::data::Timestamp;

use super::super::super::operate::rows_of;
use super::{comparison, count, depth, ms, number, summary};
use crate::workflow::explained::{Explained, ExplainedGuess, ExplainedRun, Guess, Kept, RunResult};

/// Cells of a bar.
const CELLS: usize = 48;
/// The longest name of a state that is shown whole.
const NAME_CHARS_MAX: usize = 26;

/// What one execution did.
pub(super) fn text(explained: &Explained) -> String {
    let mut lines = vec![
        format!("{} {}", line(&explained.execution), line(&summary(explained))),
        format!("  {}", comparison(explained)),
        format!("  {}", runs_line(explained)),
        format!("  {}", commits_line(explained)),
        format!("  {}", guesses_line(explained)),
        String::new(),
    ];
    lines.extend(bars(explained));
    if explained.left_out > 0 {
        lines.push(format!("  and {} more runs, of which nothing is kept", explained.left_out));
    }
    lines.push(String::new());
    lines.push("█ runs  ▒ runs in vain  ░ waits for its commit  │ commit  × dropped".to_owned());
    lines.extend(section("runs that do not count", why(explained)));
    lines.extend(section("guesses that were not right", guesses(explained)));
    lines.join("\n")
}

/// The executions that can be explained.
pub(super) fn list(kept: &Kept) -> String {
    let head = ["execution", "started", "ms", "outcome", "runs", "adopted", "dropped", "squashed"].map(str::to_owned);
    let rows = kept.executions.iter().map(|one| {
        let outcome = serde_json::to_value(one.outcome).ok().and_then(|word| word.as_str().map(str::to_owned));
        let counts = [one.runs, one.adopted, one.dropped, one.squashed].map(|count| count.to_string());
        let [runs, adopted, dropped, squashed] = counts;
        [
            line(&one.execution),
            time(one.started_ms),
            ms(one.took_us),
            outcome.unwrap_or_default(),
            runs,
            adopted,
            dropped,
            squashed,
        ]
    });
    rows_of(std::iter::once(head).chain(rows).collect())
}

fn time(ms: i64) -> String {
    Timestamp::from_unix_ms(ms).map(|time| time.to_string()).unwrap_or_default()
}

fn section(title: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    let title = [String::new(), format!("{title}:")];
    title.into_iter().chain(lines.into_iter().map(|line| format!("  {line}"))).collect()
}

fn runs_line(explained: &Explained) -> String {
    let of = |result: RunResult| explained.runs.iter().filter(|run| run.result == result).count();
    let counts = [
        count(of(RunResult::Committed), "committed"),
        count(of(RunResult::Adopted), "ran ahead and counted"),
        count(of(RunResult::Skipped), "left out, since their answers were known"),
        count(of(RunResult::CarriedOut), "carried out for good"),
        count(of(RunResult::Dropped), "dropped"),
        count(of(RunResult::Squashed), "squashed"),
        count(of(RunResult::Left), "not finished"),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    format!("{}: {}", number(explained.runs.len(), "run"), if counts.is_empty() { "none".to_owned() } else { counts.join(", ") })
}

fn commits_line(explained: &Explained) -> String {
    let made: Vec<_> = explained.commits.iter().filter(|commit| commit.undone.is_none()).collect();
    let undone = explained.commits.len() - made.len();
    let undone = if undone > 0 { format!(", and {undone} not made") } else { String::new() };
    let Some(sum) = made.iter().map(|commit| u64::from(commit.ended_us.saturating_sub(commit.began_us))).reduce(|a, b| a + b)
    else {
        return format!("no commits{undone}");
    };
    let runs: Vec<String> = made.iter().map(|commit| commit.runs.to_string()).collect();
    let mean = ms(sum / made.len() as u64);
    format!("{}, of {} runs, {mean} ms each{undone}", number(made.len(), "commit"), runs.join(" + "))
}

fn guesses_line(explained: &Explained) -> String {
    let runs = explained.runs.iter().filter_map(|run| run.guess).map(|guess| guess.right);
    let all: Vec<Option<bool>> = runs.chain(explained.ways.iter().map(|way| way.right)).collect();
    let of = |right: Option<bool>| all.iter().filter(|known| **known == right).count();
    let counts = [count(of(Some(true)), "right"), count(of(Some(false)), "wrong"), count(of(None), "not found out")];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    if counts.is_empty() { "no guesses".to_owned() } else { format!("{} guesses: {}", all.len(), counts.join(", ")) }
}

/// A table of all runs, with bars.
fn bars(explained: &Explained) -> Vec<String> {
    let scale = Scale { us: explained.took_us.max(1) };
    let names: Vec<String> = explained.runs.iter().map(name).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("state".len());
    let end = format!("{} ms", ms(explained.took_us));
    let axis = format!("0{end:>0$}", CELLS - 1);
    let mut lines = vec![format!("  #  {:width$}  {axis}   began   ended    over  result", "state")];
    for (at, (run, name)) in explained.runs.iter().zip(&names).enumerate() {
        let times = [Some(run.begun_us), run.ended_us, Some(run.over_us)].map(|time| {
            let time = time.map_or_else(|| "-".to_owned(), |us| ms(us.into()));
            format!("{time:>8}")
        });
        let bar = bar(explained, run, &scale);
        let pad = width - name.chars().count();
        lines.push(format!("{:>3}  {name}{:pad$}  {bar}{}  {}", at + 1, "", times.concat(), result(run)));
    }
    lines
}

fn name(run: &ExplainedRun) -> String {
    let indented = format!("{}{}", "  ".repeat(depth(run).min(4)), line(&run.state));
    if indented.chars().count() <= NAME_CHARS_MAX {
        return indented;
    }
    indented.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect()
}

/// Where times are in a bar.
struct Scale {
    us: u64,
}

impl Scale {
    fn cell(&self, us: u32) -> usize {
        let cell = u64::from(us) * CELLS as u64 / self.us;
        (cell as usize).min(CELLS - 1)
    }
}

fn bar(explained: &Explained, run: &ExplainedRun, scale: &Scale) -> String {
    let mut cells = [' '; CELLS];
    for commit in explained.commits.iter().filter(|commit| commit.undone.is_none()) {
        cells[scale.cell(commit.ended_us)] = '│';
    }
    let (begun, ended) = (scale.cell(run.begun_us), scale.cell(run.ended_us.unwrap_or(run.over_us)));
    let over = scale.cell(run.over_us);
    let counts = run.result.counts();
    if run.ended_us.is_some() && over > ended {
        cells[ended..=over].fill('░');
    }
    cells[begun..=ended.max(begun)].fill(if counts { '█' } else { '▒' });
    if run.commit.is_some() && over > ended {
        cells[over] = '│';
    }
    if !counts {
        cells[over] = '×';
    }
    cells.iter().collect()
}

fn result(run: &ExplainedRun) -> String {
    let mut text = word(run.result).to_owned();
    if let Some(behind) = &run.behind {
        text = format!("{text}, behind {}", line(behind));
    }
    if let Some(error) = &run.error {
        text = format!("{text}, failed with {}", line(error));
    }
    match run.refused {
        0 => text,
        count => format!("{text}, {count} times there was no room for it"),
    }
}

/// What has become of a run, for people.
pub(super) const fn word(result: RunResult) -> &'static str {
    match result {
        RunResult::Committed => "committed",
        RunResult::Adopted => "ran ahead",
        RunResult::Skipped => "answer known",
        RunResult::CarriedOut => "carried out",
        RunResult::Dropped => "dropped",
        RunResult::Squashed => "squashed",
        RunResult::Left => "not finished",
    }
}

/// Why runs do not count.
pub(super) fn why(explained: &Explained) -> Vec<String> {
    let why = |(at, run): (usize, &ExplainedRun)| {
        let reason = run.reason.as_ref()?;
        Some(format!("{} {} was {}: {}", at + 1, line(&run.state), word(run.result), line(&reason.text)))
    };
    explained.runs.iter().enumerate().filter_map(why).collect()
}

/// What was guessed and was not right, or not found out, in the order of time.
fn guesses(explained: &Explained) -> Vec<String> {
    let of_run = |(at, run): (usize, &ExplainedRun)| {
        let ExplainedGuess { what, at_us, right } = run.guess.filter(|guess| guess.right != Some(true))?;
        let what = match what {
            Guess::Answer => "answers as it did to that input before",
            Guess::Failure => "fails as it did with that input before",
            Guess::Shape => "does not fail, so that what does not need its answer begins",
        };
        Some((at_us, format!("{} {} {what}: {}", at + 1, line(&run.state), verdict(right))))
    };
    let runs = explained.runs.iter().enumerate().filter_map(of_run);
    let ways = explained.ways.iter().filter(|way| way.right != Some(true)).map(|way| {
        let went = way.went.as_deref().map(|went| format!(", it went to {}", line(went))).unwrap_or_default();
        (way.at_us, format!("{} leads to {}: {}{went}", line(&way.state), line(&way.guessed), verdict(way.right)))
    });
    let mut all: Vec<(u32, String)> = runs.chain(ways).collect();
    all.sort_by_key(|(at_us, _)| *at_us);
    all.into_iter().map(|(at_us, text)| format!("{:>7} ms  {text}", ms(at_us.into()))).collect()
}

const fn verdict(right: Option<bool>) -> &'static str {
    if right.is_some() { "wrong" } else { "not found out" }
}
