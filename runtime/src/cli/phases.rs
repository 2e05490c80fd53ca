//! `sledge phases`: what the phases of a function need, as the configuration takes it.

use std::process::ExitCode;

use clap::Args;
use http_body_util::Full;
use hyper::Request;
use serde_json::Value;

use super::operate::{Door, ask};
use super::{fail, print_line};
use crate::notice::{self, To};
use crate::phases::{PROFILE_SECONDS, PROFILE_SECONDS_DEFAULT};

/// Show the phases that a function declares, or measure what they need, as the configuration takes it.
#[derive(Debug, Args)]
pub(super) struct PhasesArgs {
    /// The function's name
    name: String,
    /// Measure them while the server runs requests of the function
    #[arg(long)]
    profile: bool,
    /// How long to measure, 1 to 50 seconds
    #[arg(long, value_name = "N", default_value_t = PROFILE_SECONDS_DEFAULT, requires = "profile", value_parser = clap::value_parser!(u64).range(PROFILE_SECONDS))]
    seconds: u64,
    /// Print the answer in JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    door: Door,
}

pub(super) fn phases(args: &PhasesArgs) -> ExitCode {
    let PhasesArgs { name, profile, seconds, json, door } = args;
    let answer = if *profile {
        let request = Request::get(format!("/functions/{name}/phases?seconds={seconds}")).body(Full::default());
        notice::during(To::Caller, || format!("the server measures {name} for {seconds} s"), || ask(door, request))
    } else {
        ask(door, Request::get(format!("/functions/{name}")).body(Full::default()))
    };
    match answer {
        Ok(answer) if *json => print_line(&answer["phases"].to_string()),
        Ok(answer) => {
            let phases = annotation(&answer);
            if phases.is_empty() {
                return fail(format_args!("`{name}` declares no phases; measure them with `sledge phases {name} --profile`"));
            }
            let measured =
                answer["requests"].as_u64().map(|requests| format!(", as measured in {seconds} s of {requests} requests"));
            let head = format!("# Phases of `{name}`{}; they belong below its [[functions]].", measured.unwrap_or_default());
            let more = "# There were more phases than a function can declare; they are missing here.\n";
            let more = if answer["has_more"] == true { more } else { "" };
            print_line(&format!("{head}\n{more}{}", phases.join("\n")))
        }
        Err(error) => fail(error),
    }
}

/// Phases of an answer as the configuration takes them, in TOML; what was measured beside that stands in comments.
fn annotation(answer: &Value) -> Vec<String> {
    let phase = |phase: &Value| {
        let (id, name) = (phase["id"].as_u64()?, phase["name"].as_str()?);
        // One in which a request begins need not be declared.
        let (cpu_us, cpu_percent) = (phase["cpu_us"].as_u64()?, phase["cpu_percent"].as_u64()?);
        let measured = phase["requests"].as_u64().map(|requests| {
            let (microtasks, microtask_us) = (phase["microtasks"].as_f64(), phase["microtask_us"].as_f64());
            let (microtasks, microtask_us) = (microtasks.unwrap_or_default(), microtask_us.unwrap_or_default());
            format!("# {requests} requests; of each {microtasks:.1} microtasks of {microtask_us:.0} us\n")
        });
        let measured = measured.unwrap_or_default();
        Some(format!(
            "{measured}[[functions.phases]]\nid = {id}\nname = \"{name}\"\ncpu_us = {cpu_us}\ncpu_percent = {cpu_percent}\n"
        ))
    };
    answer["phases"].as_array().into_iter().flatten().filter_map(phase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config;

    #[test]
    fn what_is_printed_can_be_pasted() {
        let measured = json!({ "requests": 3, "phases": [
            { "id": 0, "name": "begin", "cpu_us": 1, "cpu_percent": 100, "requests": 3, "microtasks": 1.0, "microtask_us": 0.4 },
            { "id": 4_000_000_000_u32, "name": "phase-4000000000", "cpu_us": 86_000, "cpu_percent": 1, "requests": 2, "microtasks": 8.5, "microtask_us": 61.2 },
        ] });
        let printed = annotation(&measured);
        assert!(printed[1].starts_with("# 2 requests; of each 8.5 microtasks of 61 us\n[[functions.phases]]\n"), "{printed:?}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sledge.toml");
        std::fs::write(&file, format!("[[functions]]\nname = \"f\"\npath = \"f.so\"\n\n{}", printed.join("\n"))).unwrap();
        let config = config::read(&file).unwrap();
        config::check(&config, Some(&file)).unwrap();
        let read = &config.functions[0].phases;
        let numbers: Vec<_> = read.iter().map(|phase| (phase.id, phase.name.as_str(), phase.cpu_us, phase.cpu_percent)).collect();
        assert_eq!(numbers, [(0, "begin", 1, 100), (4_000_000_000, "phase-4000000000", 86_000, 1)]);
    }

    #[test]
    fn what_is_not_declared_is_not_printed() {
        let declared = json!({ "phases": [{ "id": 0, "name": "begin", "cpu_percent": 100 }, { "id": 1, "name": "a", "cpu_us": 5, "cpu_percent": 9 }] });
        let printed = annotation(&declared);
        assert_eq!(printed, ["[[functions.phases]]\nid = 1\nname = \"a\"\ncpu_us = 5\ncpu_percent = 9\n"]);
        assert!(annotation(&json!({ "name": "f" })).is_empty());
    }
}
