//! A shell on a machine of its own, as far as namespaces make one.

use sledge_tests::{process, programs};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Says that a command has ended.
const MARK: &str = "--- the command has ended ---";

/// The longest command builds a function with all that it depends on, beside other tests.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(600);

/// A running shell.
#[derive(Debug)]
pub(crate) struct Shell {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    _folder: tempfile::TempDir,
}

impl Shell {
    /// Starts one, with `awsm` and `sledge` to be installed, on a machine for a service.
    pub(crate) fn of_an_operator() -> Shell {
        let target = programs::sledge().ancestors().nth(2).expect("target/release/sledge");
        Shell::start(|command| {
            // `make install` installs what this test's own build has made.
            command.arg("operator").env("CARGO", "true").env("CARGO_TARGET_DIR", target);
        })
    }

    /// Starts one, with both installed, on the machine of an author of functions.
    pub(crate) fn of_an_author() -> Shell {
        Shell::of_an_author_with(&[])
    }

    /// The same with more variables.
    pub(crate) fn of_an_author_with(variables: &[(&str, &OsStr)]) -> Shell {
        let programs = programs::sledge().parent().expect("a folder");
        Shell::start(|command| {
            command.arg("author").arg(programs);
            // What cargo has built for one test is there for the next.
            command.env("CARGO_TARGET_DIR", programs.join("tests-projects")).env("CARGO_NET_OFFLINE", "true");
            // Nothing as this machine's user likes it.
            command.env("AWSM_NO_CACHE", "1").env_remove("RUST_LOG").env_remove("MAKEFLAGS").env_remove("SLEDGE_ADMIN");
            command.envs(variables.iter().copied());
        })
    }

    /// Starts one, in an empty folder.
    fn start(prepare: impl FnOnce(&mut Command)) -> Shell {
        let script = programs::tests_folder().join("drill/machine.sh");
        let repository = programs::tests_folder().parent().expect("the repository");
        let folder = tempfile::Builder::new().prefix("drill-").tempdir_in(programs::folder()).expect("a folder");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.arg("bash").arg(script).arg(repository);
        prepare(&mut command);
        command.current_dir(folder.path());
        // What `make test` tells programs below it is nothing for a `make` in a document.
        ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"].iter().for_each(|name| _ = command.env_remove(name));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("unshare, of util-linux");
        let input = child.stdin.take().expect("a pipe");
        let output = child.stdout.take().expect("a pipe");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut shell = Shell { child, input, lines, _folder: folder };
        let said = shell.run("true\n");
        assert_eq!(said, "", "tests/drill/machine.sh");
        shell
    }

    /// Runs a command to its end; what it printed.
    ///
    /// # Panics
    /// When it does not end.
    pub(crate) fn run(&mut self, command: &str) -> String {
        // The mark is on a line of its own also behind output that ends without one.
        write!(self.input, "{command}\nprintf '\\n%s\\n' '{MARK}'\n").expect("the shell reads");
        let deadline = Instant::now() + COMMAND_TIME_MAX;
        let mut lines: Vec<String> = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line == MARK => break,
                Ok(line) => lines.push(line),
                Err(why) => panic!("{command}: {why}; until then:\n{}", lines.join("\n")),
            }
        }
        // What `printf` began its line with: an empty line behind an output that ended with one, nothing otherwise.
        if lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Ends all processes of the namespace.
        process::kill(&mut self.child);
    }
}
