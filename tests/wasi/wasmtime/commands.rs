//! Programs that are run once, with `sledge run`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use sledge_tests::process::{self, Finished};
use sledge_tests::programs::sledge_command;

use crate::grants::{self, Folder, SOCKET_HOSTS, SOCKET_LISTEN};
use crate::{Program, TIME_MAX};

/// Runs a program, and says what was wrong.
pub(crate) type Check = Box<dyn Fn(&Program) -> Result<(), String>>;

/// How a program has to end.
#[derive(Clone, Copy)]
enum End {
    Status(i32),
    /// A trap, with these words on standard error.
    Trap(&'static str),
    /// Not with success.
    Failure,
}

/// One run of a program.
struct Run {
    options: Vec<String>,
    env: Vec<(String, String)>,
    folders: Vec<Folder>,
    args: Vec<String>,
    stdin: Vec<u8>,
    end: End,
    stdout: Option<String>,
    /// A file of the first folder, and what has to be in it afterwards.
    leaves: Option<(&'static str, &'static str)>,
}

impl Run {
    /// With nothing granted, to end well.
    fn bare() -> Run {
        let nothing = Vec::new;
        Run {
            options: nothing(),
            env: Vec::new(),
            folders: Vec::new(),
            args: nothing(),
            stdin: Vec::new(),
            end: End::Status(0),
            stdout: None,
            leaves: None,
        }
    }

    /// As wasmtime's tests of `wasi` run programs: a folder, all sockets, what says which system this is.
    fn usual() -> Run {
        let mut run = Run::bare();
        run.env = grants::environment().into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        run.folders = vec![Folder::empty(".")];
        run.args = vec![".".to_owned()];
        run.with_sockets()
    }

    fn with_sockets(mut self) -> Run {
        self.options.extend(SOCKET_HOSTS.iter().map(|entry| format!("--socket-host={entry}")));
        self.options.extend(SOCKET_LISTEN.iter().map(|entry| format!("--socket-listen={entry}")));
        self
    }

    fn args(mut self, args: &[&str]) -> Run {
        self.args = args.iter().map(|&arg| arg.to_owned()).collect();
        self
    }

    fn env(mut self, name: &str, value: &str) -> Run {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    fn option(mut self, option: &str) -> Run {
        self.options.push(option.to_owned());
        self
    }

    fn folder(mut self, folder: Folder) -> Run {
        self.folders.push(folder);
        self
    }

    fn stdin(mut self, stdin: &[u8]) -> Run {
        self.stdin = stdin.to_vec();
        self
    }

    fn ends(mut self, end: End) -> Run {
        self.end = end;
        self
    }

    fn prints(mut self, text: &str) -> Run {
        self.stdout = Some(text.to_owned());
        self
    }

    fn leaves(mut self, file: &'static str, contents: &'static str) -> Run {
        self.leaves = Some((file, contents));
        self
    }

    fn command(&self, program: &Program, scratch: &std::path::Path) -> Command {
        let mut command = sledge_command(&["run"]);
        command.args(&self.options);
        for (name, value) in &self.env {
            command.arg("--env").arg(format!("{name}={value}"));
        }
        for (index, folder) in self.folders.iter().enumerate() {
            command.arg("--dir").arg(folder.make(&scratch.join(index.to_string())));
        }
        command.arg(&program.artifact).arg("--").args(&self.args);
        command
    }

    fn check(&self, program: &Program) -> Result<(), String> {
        let scratch = tempfile::tempdir().expect("a folder");
        let done = process::run(&mut self.command(program, scratch.path()), &self.stdin, TIME_MAX);
        let ended = match self.end {
            End::Status(status) => done.code() == status,
            End::Trap(words) => done.code() == 134 && done.stderr.contains(words),
            // An end of `sledge` itself is none of the program.
            End::Failure => matches!(done.code(), 1 | 134) && !done.stderr.contains("panicked at runtime/"),
        };
        let left = self.leaves.is_none_or(|(file, contents)| {
            std::fs::read_to_string(scratch.path().join("0").join(file)).is_ok_and(|found| found == contents)
        });
        let printed = self.stdout.as_ref().is_none_or(|stdout| *stdout == done.text());
        // Other tests see the same files unchanged: what is granted to read is as it was.
        let kept = self.folders.iter().enumerate().filter(|(_, folder)| !folder.writable).all(|(index, folder)| {
            folder.files.iter().filter(|(name, _)| !name.ends_with('/')).all(|(name, contents)| {
                std::fs::read_to_string(scratch.path().join(index.to_string()).join(name)).is_ok_and(|found| found == *contents)
            })
        });
        if ended && left && printed && kept {
            return Ok(());
        }
        Err(format!("{:?}: printed {printed}, left {left}, kept {kept}, {}", self.args, told(&done)))
    }
}

fn told(done: &Finished) -> String {
    let text: String = done.text().chars().take(2_000).collect();
    format!("status {}\n{text}{}", done.code(), done.stderr)
}

fn all(runs: Vec<Run>) -> Option<Check> {
    Some(Box::new(move |program| runs.iter().try_for_each(|run| run.check(program))))
}

fn one(run: Run) -> Option<Check> {
    all(vec![run])
}

const READ_ONLY: Folder = Folder::read_only("readonly", &[("test.txt", "read only test file\n")]);
const BAR: Folder = Folder::with("/", &[("bar.txt", "And stood awhile in thought")]);
const BRILLIG: &str = "'Twas brillig, and the slithy toves.\n";
const TOVES: Folder = Folder::with("/", &[("bar.txt", BRILLIG)]);
const TREE: Folder = Folder::with(
    "/",
    &[("foo.txt", ""), ("bar.txt", ""), ("baz.txt", ""), ("sub/", ""), ("sub/wow.txt", ""), ("sub/yay.txt", "")],
);

/// How a program is run, if it is a command.
pub(crate) fn of(name: &str) -> Option<Check> {
    match name {
        "p2_cli_args" => one(Run::bare().args(&["hello", "this", "", "is an argument", "with 🚩 emoji"])),
        "p2_cli_stdin_empty" => one(Run::bare().stdin(b"not to be read")),
        "p2_cli_stdin" => one(Run::bare().stdin(b"So rested he by the Tumtum tree")),
        "p2_cli_splice_stdin" => {
            let text = "So rested he by the Tumtum tree";
            one(Run::bare()
                .stdin(text.as_bytes())
                .prints(&format!("before splice\n{text}\ncompleted splicing {} bytes\n", text.len())))
        }
        "p2_cli_stdout_epipe" => Some(Box::new(closed_output)),
        "p2_cli_stdin_eisdir" => Some(Box::new(folder_as_input)),
        "p2_cli_stdio_write_flushes" => Some(Box::new(|program| output_before_input(program, b"> ", b""))),
        "p3_cli_stdout_flush" => Some(Box::new(|program| output_before_input(program, b"READY", b"x"))),
        "p2_cli_env" => one(Run::bare().env("frabjous", "day").env("callooh", "callay")),
        "p2_cli_file_read" => one(Run::bare().folder(BAR)),
        "p2_cli_file_append" => {
            let after = "'Twas brillig, and the slithy toves.\nDid gyre and gimble in the wabe;\nAll mimsy were the borogoves,\nAnd the mome raths outgrabe.\n";
            one(Run::bare().folder(TOVES).leaves("bar.txt", after))
        }
        "p2_cli_file_dir_sync" => one(Run::bare().folder(TOVES)),
        "p2_cli_exit_failure" => one(Run::bare().ends(End::Status(1))),
        "p2_cli_exit_with_code" => one(Run::bare().ends(End::Status(42))),
        "p2_cli_exit_panic" => one(Run::bare().ends(End::Trap("Curiouser and curiouser!"))),
        "p2_cli_directory_list" => one(Run::bare().folder(TREE)),
        "p2_cli_sleep_forever" => {
            all(["1ms", "250ms"].map(|time| Run::bare().option(&format!("--timeout={time}")).ends(End::Status(124))).into())
        }
        "p2_cli_large_env" => {
            let value = "x".repeat(1024);
            let variables = (0..512).map(|number| (format!("KEY{number}"), value.clone())).collect();
            one(Run { env: variables, ..Run::bare() })
        }
        "p2_cli_argv0" => Some(Box::new(|program| {
            let stem = program.artifact.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            Run::bare().args(&[stem]).check(program)
        })),
        "config_get" => one(Run::bare().env("hello", "world")),
        "p2_cli_multiple_preopens" => {
            one(Run::bare().folder(Folder::empty("/a")).folder(Folder::empty("/b")).folder(Folder::empty("/c")))
        }
        "p3_cli_hello_stdout" | "p3_cli_hello_stdout_post_return" => one(Run::bare().prints("hello, world\n")),
        "p1_cli_much_stdout" | "p2_cli_much_stdout" | "p3_cli_much_stdout" => all((10..15)
            .map(|bits| {
                let times = ((1 << 18) >> bits).to_string();
                Run::bare().args(&[&"a".repeat(1 << bits), &times]).prints(&"a".repeat(1 << 18))
            })
            .collect()),
        "p3_cli_random_limits" => all(["random", "insecure"].map(|kind| Run::bare().args(&[kind, "256"])).into()),
        "p3_cli_read_stdin" => one(Run::bare().stdin(b"hello!")),
        "p2_cli_no_tcp" | "p2_cli_no_udp" | "p2_cli_no_ip_name_lookup" => one(Run::bare()),
        "p3_cli_deny_listen" => one(Run::bare().option("--socket-host=127.0.0.1:1-65535")),
        "p2_cli_http_headers" => all(["append", "append-empty", "append-same", "append-same-empty"]
            .iter()
            .flat_map(|test| {
                let of = |version: &str| Run::bare().args(&[&format!("{version}-{test}")]);
                [of("p2").ends(End::Failure), of("p3").prints("error received\n")]
            })
            .collect()),
        "p1_cli_hostcall_fuel" => one(Run::bare().folder(Folder::empty("."))),
        "p2_cli_hostcall_fuel" => {
            const FAIL: [&str; 11] = [
                "poll",
                "write",
                "mkdir",
                "write-stream",
                "write-stream-blocking",
                "resolve",
                "udp-send-many",
                "udp-send-big",
                "write-zeroes",
                "write-stream-buffer-too-large",
                "write-zeroes-buffer-too-large",
            ];
            let of = |test: &str| {
                let mut run = Run::bare().with_sockets().folder(Folder::with(".", &[]));
                run.folders = vec![Folder::with(".", megabyte())];
                run.args(&[test])
            };
            let fails = FAIL.iter().map(|test| of(test).ends(End::Failure));
            all(fails.chain(["read", "read-file-big", "read-tcp-big"].iter().map(|test| of(test))).collect())
        }
        "p2_pollable_traps" => one(Run::usual().ends(End::Trap("poll"))),
        "p2_stream_pollable_traps" => one(Run::usual().ends(End::Trap("trap: `[resource-drop]"))),
        "p2_udp_send_too_much" => one(Run::usual().ends(End::Trap("beyond what it had room for"))),
        "p1_file_truncation_readonly"
        | "p2_file_truncation_readonly"
        | "p3_file_truncation_readonly"
        | "p1_file_hardlink_across_perms"
        | "p2_file_hardlink_across_perms"
        | "p3_file_hardlink_across_perms"
        | "p1_file_rename_across_perms"
        | "p2_file_rename_across_perms"
        | "p3_file_rename_across_perms" => one(Run::usual().folder(READ_ONLY)),
        "p2_file_stream_not_permitted" => {
            one(Run::usual().folder(Folder::read_only("readonly", &[("stream-perms.txt", "stream permission test\n")])))
        }
        "p1_stat_extreme_host_mtime" => {
            one(Run { folders: vec![Folder::with(".", &[("extreme.dat", "hello")])], ..Run::usual() })
        }
        "p2_api_read_only" => {
            one(Run::bare().folder(Folder::read_only("/", &[("bar.txt", "And stood awhile in thought"), ("sub/", "")])))
        }
        "piped_simple" | "piped_multiple" | "piped_polling" => Some(Box::new(piped)),
        name if name.starts_with("p2_cli_serve") || name.starts_with("p3_cli_serve") => None,
        name if name.starts_with("p2_http")
            || name.starts_with("p3_http")
            || name.contains("_api_")
            || name.contains("_tls_") =>
        {
            None
        }
        name if name.starts_with("p2_cli_") || name.starts_with("p3_cli_") => one(Run::bare()),
        name if name.starts_with("p1_") || name.starts_with("p2_") || name.starts_with("p3_") => one(Run::usual()),
        _ => None,
    }
}

/// A file of a mebibyte.
fn megabyte() -> &'static [(&'static str, &'static str)] {
    use std::sync::LazyLock;
    static ZEROES: LazyLock<String> = LazyLock::new(|| "\0".repeat(1 << 20));
    static FILES: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| vec![("1mb", ZEROES.as_str())]);
    &FILES
}

/// What it writes is not read any more.
fn closed_output(program: &Program) -> Result<(), String> {
    let mut command = sledge_command(&["run"]);
    command.arg(&program.artifact).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("it is piped");
    stdout.read_exact(&mut [0; 64]).expect("bytes");
    drop(stdout);
    ends_with(child, "got expected StreamError::Closed")
}

/// Its input is a folder.
fn folder_as_input(program: &Program) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = sledge_command(&["run"]);
    let input = File::open(folder.path()).expect("a folder");
    command.arg(&program.artifact).stdin(input).stdout(Stdio::null()).stderr(Stdio::piped());
    ends_with(command.spawn().expect("it starts"), "got expected ErrorCode::IsDirectory")
}

fn ends_with(mut child: std::process::Child, words: &str) -> Result<(), String> {
    let Some(status) = process::wait(&mut child, TIME_MAX) else {
        process::kill(&mut child);
        return Err(format!("it does not end: no {words:?}"));
    };
    let mut stderr = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut stderr).expect("text");
    if status.success() && stderr.contains(words) { Ok(()) } else { Err(format!("{status}\n{stderr}")) }
}

/// It writes that and waits for input: what was written is there meanwhile.
fn output_before_input(program: &Program, text: &[u8], input: &[u8]) -> Result<(), String> {
    let mut command = sledge_command(&["run"]);
    command.arg(&program.artifact).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut found = vec![0; text.len()];
    let came = process::Timed(child.stdout.take().expect("it is piped"), TIME_MAX).read_exact(&mut found);
    if came.is_err() || found != text {
        process::kill(&mut child);
        return Err(format!("{came:?}: {found:?}, not {text:?}"));
    }
    // It may have ended already.
    let _ = stdin.write_all(input);
    drop(stdin);
    ends_with(child, "")
}

/// The output of one run is the input of the other.
fn piped(program: &Program) -> Result<(), String> {
    let side = |name: &str| {
        let mut command = sledge_command(&["run", "--env", &format!("PIPED_SIDE={name}")]);
        command.arg(&program.artifact);
        command
    };
    let mut producer =
        side("PRODUCER").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let pipe = producer.stdout.take().expect("it is piped");
    let consumer = side("CONSUMER").stdin(pipe).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    // Both, whatever becomes of the first: none is left running.
    let (producer, consumer) = (ends_with(producer, ""), ends_with(consumer, ""));
    producer.and(consumer)
}
