//! What LLVM IR and assembly `awsm` emits: each `*.wat` here says with what options it is compiled and what must stand in the output.
//!
//! ```text
//! ;; RUN: --bounds guard -O3 --emit llvm-ir       options of `awsm compile`; what follows belongs to this run
//! ;; FUNCTION: load                               what follows is looked for in the lines of that function
//! ;; CHECK: load i32                              stands in a line, after that of the check before
//! ;; NOT: br                                      stands in no line of the function
//! ;; COUNT: 2 icmp                                stands in exactly so many lines of the function
//! ```
//!
//! Checks hold what matters and not the rest, so there is little to bless. `BLESS=1` writes each run's output beside the file, as
//! `NAME.N.out`, for a look; these files are not kept.

use sledge_tests::{golden, programs};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A run of the compiler and what is expected of its output.
#[derive(Debug, Default)]
struct Run {
    options: Vec<String>,
    checks: Vec<Check>,
}

#[derive(Debug)]
struct Check {
    /// Line in the file.
    line: usize,
    function: Option<String>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Contains(String),
    Not(String),
    Count(usize, String),
}

#[test]
fn emitted_code() {
    let folder = programs::tests_folder().join("filetests");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).expect("the folder").flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "wat"));
    files.sort();
    assert!(!files.is_empty(), "no filetests");
    let failures: Vec<String> = files.iter().flat_map(|file| check_file(file)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check_file(file: &Path) -> Vec<String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(file).expect("the file");
    let runs = match parse(&text) {
        Ok(runs) => runs,
        Err(error) => return vec![format!("{name}: {error}")],
    };
    let mut failures = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let mut arguments = vec!["compile", file.to_str().expect("a path in UTF-8"), "-o", "-"];
        if !run.options.iter().any(|option| option == "--cpu") {
            arguments.extend(["--cpu", "x86-64-v3"]);
        }
        arguments.extend(run.options.iter().map(String::as_str));
        let done = programs::run_awsm(&arguments);
        if done.code() != 0 {
            failures.push(format!("{name}: {}: {}", run.options.join(" "), done.stderr));
            continue;
        }
        let output = done.text();
        if golden::is_blessing() {
            let out = file.with_extension(format!("{i}.out"));
            std::fs::write(&out, &output).expect("write the output");
        }
        for failure in run.failures(&output) {
            failures.push(format!("{name}:{failure}\n  with {}", run.options.join(" ")));
        }
    }
    failures
}

fn parse(text: &str) -> Result<Vec<Run>, String> {
    let mut runs: Vec<Run> = Vec::new();
    let mut function = None;
    for (i, line) in text.lines().enumerate() {
        let Some((word, rest)) = line.trim().strip_prefix(";; ").and_then(|line| line.split_once(": ")) else { continue };
        let (line, rest) = (i + 1, rest.trim());
        let kind = match word {
            "RUN" => {
                function = None;
                runs.push(Run { options: rest.split_whitespace().map(str::to_string).collect(), checks: Vec::new() });
                continue;
            }
            "FUNCTION" => {
                function = Some(rest.to_string());
                continue;
            }
            "CHECK" => Kind::Contains(rest.to_string()),
            "NOT" => Kind::Not(rest.to_string()),
            "COUNT" => {
                let (count, rest) = rest.split_once(' ').ok_or_else(|| format!("line {line}: COUNT: NUMBER TEXT"))?;
                Kind::Count(count.parse().map_err(|_| format!("line {line}: {count} is no number"))?, rest.trim().to_string())
            }
            _ => continue,
        };
        let run = runs.last_mut().ok_or_else(|| format!("line {line}: no RUN before it"))?;
        run.checks.push(Check { line, function: function.clone(), kind });
    }
    if runs.is_empty() { Err("has no RUN".to_string()) } else { Ok(runs) }
}

impl Run {
    fn failures(&self, output: &str) -> Vec<String> {
        let mut failures = Vec::new();
        // Each check looks behind the line of the one before, within the same function.
        let (mut at, mut within) = (0, None);
        for check in &self.checks {
            if within != Some(&check.function) {
                (at, within) = (0, Some(&check.function));
            }
            let Some(lines) = body(output, check.function.as_deref()) else {
                failures.push(format!("{}: no function {:?} in the output", check.line, check.function.as_deref().unwrap_or("")));
                continue;
            };
            let wrong = match &check.kind {
                Kind::Contains(text) => match lines[at..].iter().position(|line| line.contains(text.as_str())) {
                    Some(found) => {
                        at += found + 1;
                        None
                    }
                    None => Some(format!("{text:?} does not stand there")),
                },
                Kind::Not(text) => {
                    lines.iter().find(|line| line.contains(text.as_str())).map(|line| format!("{text:?} stands in {line:?}"))
                }
                Kind::Count(count, text) => {
                    let found = lines.iter().filter(|line| line.contains(text.as_str())).count();
                    (found != *count).then(|| format!("{text:?} stands in {found} lines, not {count}"))
                }
            };
            if let Some(wrong) = wrong {
                let mut failure = format!("{}: {wrong}; there is:", check.line);
                // Writing to a string cannot fail.
                for line in lines {
                    let _ = write!(failure, "\n    {line}");
                }
                failures.push(failure);
            }
        }
        failures
    }
}

/// The lines of a function, or of everything: from the line that begins it to the one that ends it, in LLVM IR and in assembly.
fn body<'a>(output: &'a str, function: Option<&str>) -> Option<Vec<&'a str>> {
    let lines: Vec<&str> = output.lines().collect();
    let Some(function) = function else { return Some(lines) };
    let is_ir = |line: &str| {
        line.starts_with("define ") && (line.contains(&format!("@{function}(")) || line.contains(&format!("@\"{function}\"(")))
    };
    let is_asm = |line: &str| line.starts_with(&format!("{function}:")) || line.starts_with(&format!("\"{function}\":"));
    let start = lines.iter().position(|line| is_ir(line) || is_asm(line))?;
    let end = lines[start..].iter().position(|line| *line == "}" || line.starts_with(".Lfunc_end"))?;
    Some(lines[start..=start + end].to_vec())
}

#[test]
fn checks_find_what_is_wrong() {
    let text = ";; RUN: -O0\n;; FUNCTION: f\n;; CHECK: one\n;; CHECK: two\n;; NOT: three\n;; COUNT: 1 one\n";
    let runs = parse(text).unwrap();
    assert_eq!(runs[0].failures("define void @f(i32) {\n  one\n  two\n}\n"), [""; 0]);
    assert_eq!(runs[0].failures("define void @f(i32) {\n  two\n  one\n}\n").len(), 1);
    assert_eq!(runs[0].failures("define void @f(i32) {\n  one\n  two\n  three one\n}\n").len(), 2);
    assert_eq!(runs[0].failures("define void @g(i32) {\n}\n").len(), 4);
    assert!(parse(";; CHECK: x\n").is_err());
}
