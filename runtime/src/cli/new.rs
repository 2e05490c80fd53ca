//! `sledge new`: a project that builds, tests and deploys. Its files stand in `templates/`, and the SDK's in `sdk/`; they are in the program. The JSON Schema of
//! its configuration is that of this program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{fail, print_line, schema_text};

/// What stands in the templates for the project's name.
const NAME: &str = "{{name}}";
/// Where the JSON Schema is for editors: the first line of each template's `sledge.toml` says so.
const SCHEMA_FILE: &str = "sledge.schema.json";
/// Bytes of a project's name.
const NAME_BYTES_MAX: usize = 64;
/// What of a manifest is not for users stands behind this.
const NOT_FOR_USERS: &str = "# What follows is for this repository";

/// Create a project for a function.
#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// Name of the function and of its folder
    name: String,
    /// Language of the function
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    lang: Language,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    Rust,
    C,
    Go,
    Python,
    Js,
}

impl Language {
    /// What the first build needs and fetches, if that is more than a compiler.
    fn needs(self) -> Option<&'static str> {
        match self {
            Language::Rust | Language::C | Language::Go => None,
            Language::Python => {
                Some("it needs python3 with venv and pip; the first build installs componentize-py from PyPI into .venv")
            }
            Language::Js => {
                Some("it needs Node.js 18 or newer and npm; the first build installs componentize-js from npm into node_modules")
            }
        }
    }
}

/// A file of a project: its path there, and its text.
type File = (&'static str, &'static str);

macro_rules! files {
    ($from:literal: $($path:literal = $file:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../", $from, $file)))),*]
    };
}

const RUST: &[File] = files!("templates/rust/":
    "Cargo.toml" = "Cargo.toml", "Cargo.lock" = "Cargo.lock", "src/lib.rs" = "src/lib.rs", "sledge.toml" = "sledge.toml",
    "README.md" = "README.md", ".gitignore" = "gitignore",
);
const C: &[File] = files!("templates/c/":
    "function.c" = "function.c", "test.c" = "test.c", "Makefile" = "Makefile", "sledge.toml" = "sledge.toml", "README.md" = "README.md",
    ".gitignore" = "gitignore",
);
const GO: &[File] = files!("templates/go/":
    "main.go" = "main.go", "main_test.go" = "main_test.go", "go.mod" = "go.mod", "sledge.toml" = "sledge.toml", "README.md" = "README.md",
    ".gitignore" = "gitignore",
);
const PYTHON: &[File] = files!("templates/python/":
    "app.py" = "app.py", "greeting.py" = "greeting.py", "test_greeting.py" = "test_greeting.py", "requirements.txt" = "requirements.txt",
    "build.sh" = "build.sh", "sledge.toml" = "sledge.toml", "README.md" = "README.md", ".gitignore" = "gitignore",
);
const JS: &[File] = files!("templates/js/":
    "function.js" = "function.js", "greeting.js" = "greeting.js", "greeting.test.js" = "greeting.test.js", "package.json" = "package.json",
    "package-lock.json" = "package-lock.json", "wit/world.wit" = "wit/world.wit", "sledge.toml" = "sledge.toml", "README.md" = "README.md",
    ".gitignore" = "gitignore",
);
const C_SDK: &[File] = files!("sdk/c/": "sledge.h" = "sledge.h");
const RUST_SDK: &[File] = files!("sdk/rust/":
    "sdk/Cargo.toml" = "Cargo.toml", "sdk/README.md" = "README.md", "sdk/src/lib.rs" = "src/lib.rs", "sdk/src/call.rs" = "src/call.rs",
    "sdk/src/fetch.rs" = "src/fetch.rs", "sdk/src/function.rs" = "src/function.rs", "sdk/src/json.rs" = "src/json.rs", "sdk/src/kv.rs" = "src/kv.rs",
    "sdk/src/note.rs" = "src/note.rs", "sdk/src/reply.rs" = "src/reply.rs", "sdk/src/request.rs" = "src/request.rs",
    "sdk/src/testing.rs" = "src/testing.rs", "sdk/src/sys/mod.rs" = "src/sys/mod.rs", "sdk/src/sys/fake.rs" = "src/sys/fake.rs",
    "sdk/src/sys/host.rs" = "src/sys/host.rs", "sdk/macros/Cargo.toml" = "macros/Cargo.toml", "sdk/macros/src/lib.rs" = "macros/src/lib.rs",
);
const GO_SDK: &[File] = files!("sdk/go/":
    "sdk/go.mod" = "go.mod", "sdk/README.md" = "README.md", "sdk/bytes.go" = "bytes.go", "sdk/call.go" = "call.go", "sdk/errno.go" = "errno.go",
    "sdk/fetch.go" = "fetch.go", "sdk/host_native.go" = "host_native.go", "sdk/host_wasip1.go" = "host_wasip1.go", "sdk/kv.go" = "kv.go",
    "sdk/note.go" = "note.go", "sdk/recorder.go" = "recorder.go", "sdk/sledge.go" = "sledge.go",
);

pub(super) fn new(args: &NewArgs) -> ExitCode {
    let NewArgs { name, lang } = args;
    if let Err(why) = check(name) {
        return super::usage(format_args!("`{name}` cannot be a project's name: {why}"));
    }
    let folder = PathBuf::from(name);
    match write(&folder, name, *lang) {
        Ok(()) => {
            let next = format!("created {name}; next: cd {name} && sledge dev");
            print_line(&lang.needs().map_or_else(|| next.clone(), |needs| format!("{next}\n{needs}")))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fail(format_args!("{name}: already exists; nothing was changed"))
        }
        Err(error) => fail(format_args!("{name}: {error}")),
    }
}

/// It becomes a folder, a package of cargo or Go, a route, and a file.
fn check(name: &str) -> Result<(), &'static str> {
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Err("it has to start with a letter");
    }
    if name.len() > NAME_BYTES_MAX || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Err("give at most 64 letters, digits, `-` and `_`");
    }
    // The SDK's own packages and modules lie beside it.
    if name == "sledge" || name.starts_with("sledge-sdk") { Err("this is the name of the SDK") } else { Ok(()) }
}

fn write(folder: &Path, name: &str, language: Language) -> io::Result<()> {
    let (files, sdk) = match language {
        Language::Rust => (RUST, RUST_SDK),
        Language::C => (C, C_SDK),
        Language::Go => (GO, GO_SDK),
        Language::Python => (PYTHON, &[][..]),
        Language::Js => (JS, &[][..]),
    };
    fs::create_dir(folder)?;
    let named = files.iter().map(|(path, text)| (path, text.replace(NAME, name)));
    let sdk = sdk.iter().map(|(path, text)| (path, for_users(text).to_owned()));
    let schema = (&SCHEMA_FILE, schema_text() + "\n");
    for (path, text) in named.chain(sdk).chain([schema]) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(&path, text)?;
    }
    Ok(())
}

/// A manifest without the tests and examples that do not come along.
fn for_users(text: &str) -> &str {
    text.split_once(NOT_FOR_USERS).map_or(text, |(before, _)| before.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_good_for_everything_that_they_become() {
        for good in ["a", "hello", "Hello_2-you", &"x".repeat(64)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "2", "-a", "a.b", "a/b", "a b", "..", "ä", "sledge", "sledge-sdk", &"x".repeat(65)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn editors_are_told_where_the_schema_is() {
        let all = tempfile::tempdir().unwrap();
        for language in Language::value_variants() {
            let folder = all.path().join(format!("{language:?}"));
            write(&folder, "hello", *language).unwrap();
            let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
            let named = read("sledge.toml").lines().next().and_then(|line| line.strip_prefix("#:schema ./")).map(str::to_owned);
            let schema: serde_json::Value = serde_json::from_str(&read(&named.unwrap())).unwrap();
            assert_eq!(schema, crate::config::schema(), "{language:?}");
        }
    }

    #[test]
    fn all_of_the_rust_sdk_comes_along() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/rust");
        for part in ["src", "src/sys", "macros/src"] {
            for file in fs::read_dir(folder.join(part)).unwrap().flatten().filter(|entry| entry.path().is_file()) {
                let path = format!("sdk/{part}/{}", file.file_name().to_string_lossy());
                assert!(RUST_SDK.iter().any(|(known, _)| *known == path), "{path} is missing");
            }
        }
    }

    #[test]
    fn all_of_the_go_sdk_comes_along() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/go");
        for file in fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_file()) {
            let name = file.file_name().into_string().unwrap();
            let path = format!("sdk/{name}");
            assert!(name.ends_with("_test.go") || GO_SDK.iter().any(|(known, _)| *known == path), "{path} is missing");
        }
    }
}
