//! What clang and rustc say, on its way to the user: without temporary paths, and with what awsm knows about it.

use std::fmt::Write as _;
use std::path::Path;

/// Reads a producer's messages.
pub(super) struct Diagnostics {
    /// The temporary folder, with a slash at its end.
    folder: String,
    hints: Vec<String>,
}

/// What WASI has not, by headers and functions.
struct Lack {
    headers: &'static [&'static str],
    functions: &'static [&'static str],
    advice: &'static str,
}

const LACKS: &[Lack] = &[
    Lack {
        headers: &["pthread.h"],
        functions: &[
            "pthread_create",
            "pthread_join",
            "pthread_mutex_lock",
            "pthread_mutex_unlock",
            "thrd_create",
            "sem_wait",
            "sem_post",
        ],
        advice: "it has no threads, a function runs in one; for work at the same time call other functions (`sledge:call`)",
    },
    Lack {
        headers: &["netdb.h", "sys/epoll.h", "resolv.h", "curl/curl.h"],
        functions: &[
            "socket",
            "connect",
            "bind",
            "listen",
            "sendto",
            "recvfrom",
            "getaddrinfo",
            "gethostbyname",
            "epoll_create1",
        ],
        advice: "it has no sockets; ask other servers with `sledge_fetch_send` of sledge.h",
    },
    Lack {
        headers: &["sys/wait.h", "spawn.h"],
        functions: &[
            "fork", "vfork", "execl", "execlp", "execv", "execve", "execvp", "waitpid", "wait", "system", "popen", "pipe", "kill",
        ],
        advice: "it has no processes; call other functions (`sledge:call`)",
    },
    Lack {
        headers: &["dlfcn.h"],
        functions: &["dlopen", "dlsym"],
        advice: "it loads no libraries at run time; link what is needed",
    },
    Lack {
        headers: &["setjmp.h"],
        functions: &["setjmp", "longjmp", "_setjmp"],
        advice: "this C library has no setjmp; return error codes instead",
    },
    Lack {
        headers: &["termios.h", "sys/ttycom.h", "curses.h", "ncurses.h"],
        functions: &["tcgetattr", "tcsetattr"],
        advice: "a function has no terminal",
    },
    Lack {
        headers: &["pwd.h", "grp.h"],
        functions: &["getuid", "geteuid", "getgid", "getpwuid", "getpwnam", "chown", "umask"],
        advice: "it has no users and groups",
    },
    Lack {
        headers: &["sys/ipc.h", "sys/shm.h", "sys/sem.h", "sys/msg.h"],
        functions: &["shmget", "shmat", "semget", "msgget"],
        advice: "it has no memory shared among processes; keep what functions share in the key-value store (`sledge:kv`)",
    },
];

/// Functions that a library of wasi-libc imitates: what they are about, the library's name, the functions.
const EMULATED: &[(&str, &str, &[&str])] = &[
    ("signals", "signal", &["signal", "raise", "bsd_signal", "psignal", "strsignal"]),
    ("clocks of processes", "process-clocks", &["clock", "times", "getrusage"]),
    ("mmap", "mman", &["mmap", "munmap"]),
    ("process numbers", "getpid", &["getpid"]),
];

/// Names in `std` that a C++ library without threads lacks.
const CPP_THREADS: &[&str] = &[
    "thread",
    "jthread",
    "this_thread",
    "mutex",
    "recursive_mutex",
    "timed_mutex",
    "shared_mutex",
    "condition_variable",
    "condition_variable_any",
    "async",
    "future",
    "promise",
];

/// What clang says of files where the C++ library has none.
const CPP_FILES: &[&str] = &[
    "in namespace 'std::filesystem'",
    "undefined template 'std::basic_ifstream<",
    "undefined template 'std::basic_ofstream<",
    "undefined template 'std::basic_fstream<",
    "undefined template 'std::basic_filebuf<",
];

/// What code with exceptions calls in its library.
const UNWINDING: &[&str] =
    &["__cxa_throw", "__cxa_allocate_exception", "__cxa_begin_catch", "__cpp_exception", "_Unwind_CallPersonality"];

const NO_EXCEPTIONS: &str = "this C++ library has no exceptions; scripts/fetch-llvm-runtimes of Sledge's repository gets sources, of which awsm builds one that \
                             has them, once; or return error codes";

impl Diagnostics {
    /// For a producer whose temporary files are in that folder.
    pub(super) fn new(folder: &Path) -> Diagnostics {
        Diagnostics { folder: format!("{}/", folder.display()), hints: Vec::new() }
    }

    /// A line as the user is to see it; what it says is remembered.
    pub(super) fn line(&mut self, line: &str) -> String {
        if let Some(header) = before(line, "' file not found") {
            self.hint(missing_header(header));
        }
        let undefined = after(line, "undefined symbol: ").or_else(|| after(line, "call to undeclared function '"));
        if let Some(hint) = undefined.and_then(missing_function) {
            self.hint(hint);
        }
        if let Some((what, library, _)) = EMULATED.iter().find(|(_, library, _)| line.contains(&define(library))) {
            self.hint(emulated(what, library));
        }
        if before(line, "' in namespace 'std'").is_some_and(|name| CPP_THREADS.contains(&name)) {
            self.hint(format!("this C++ library has no threads: {}", LACKS[0].advice));
        }
        if CPP_FILES.iter().any(|words| line.contains(words)) {
            self.hint(
                "this C++ library has neither <filesystem> nor streams of files; fopen and opendir of the C library are there"
                    .to_owned(),
            );
        }
        if line.contains("with exceptions disabled") || undefined.is_some_and(|name| UNWINDING.contains(&name)) {
            self.hint(NO_EXCEPTIONS.to_owned());
        }
        if line.contains("[E0601]") {
            self.hint(
                "a single .rs file is a program, which needs `fn main`; a function with `sledge_handle` is a cargo package with crate-type = \
                 [\"cdylib\"] (`sledge new NAME --lang rust` makes one): give its folder"
                    .to_owned(),
            );
        }
        if line.contains("[E0432]") || line.contains("[E0433]") || line.contains("[E0463]") {
            self.hint("a single .rs file has no dependencies; make it a cargo package, and give its folder".to_owned());
        }
        without_temporary(line, &self.folder)
    }

    fn hint(&mut self, hint: String) {
        if !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
    }

    /// What can be done about it, each on a line of its own.
    pub(super) fn advice(&self) -> String {
        self.hints.iter().fold(String::new(), |mut all, hint| {
            let _ = write!(all, "\n  {hint}");
            all
        })
    }
}

/// The quoted text that ends with `end`.
fn before<'a>(line: &'a str, end: &str) -> Option<&'a str> {
    line.split_once(end)?.0.rsplit_once('\'').map(|(_, quoted)| quoted)
}

/// The name that follows `start`.
fn after<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    let rest = line.split_once(start)?.1;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end])
}

fn missing_header(header: &str) -> String {
    match LACKS.iter().find(|lack| lack.headers.contains(&header)) {
        Some(lack) => format!("{header} is not on WASI: {}", lack.advice),
        None => format!(
            "{header} is neither in the C library for WASI nor in a folder given with -I; headers of this machine are not looked at, since its \
             libraries are no WebAssembly: give what was built for wasm32-wasi, `-- -I FOLDER -L FOLDER -l NAME`"
        ),
    }
}

fn missing_function(name: &str) -> Option<String> {
    if let Some((what, library, _)) = EMULATED.iter().find(|(.., functions)| functions.contains(&name)) {
        return Some(emulated(what, library));
    }
    if name == "main" || name == "__main_void" || name == "__main_argc_argv" {
        return Some(
            "a program needs `main`; a function with `sledge_handle` is a reactor: `-- -mexec-model=reactor` (see sdk/c)"
                .to_owned(),
        );
    }
    let lack = LACKS.iter().find(|lack| lack.functions.contains(&name))?;
    Some(format!("{name} is not on WASI: {}", lack.advice))
}

/// The macro without which the headers of an imitation refuse.
fn define(library: &str) -> String {
    format!("_WASI_EMULATED_{}", library.replace('-', "_").to_uppercase())
}

fn emulated(what: &str, library: &str) -> String {
    format!(
        "WASI has no {what}; wasi-libc imitates a part: `awsm compile FILE -- -D{} -lwasi-emulated-{library}`",
        define(library)
    )
}

/// The line without the folder's path. An object that clang made for a source, `STEM-0a1b2c.o`, is shown as `STEM.o`.
fn without_temporary(line: &str, folder: &str) -> String {
    let mut pieces = line.split(folder);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let name = piece.find(".o").map(|end| piece.split_at(end));
        let stem = name.and_then(|(stem, rest)| Some((stem.rsplit_once('-')?, rest))).filter(|((stem, random), _)| {
            random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !stem.contains([' ', '/'])
        });
        match stem {
            Some(((stem, _), rest)) => text.extend([stem, rest]),
            None => text.push_str(piece),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cpp_library_lacks_is_named() {
        for (line, words) in [
            ("a.cpp:2:18: error: no type named 'mutex' in namespace 'std'", "has no threads"),
            ("a.cpp:2:18: error: no member named 'thread' in namespace 'std'; did you mean 'fread'?", "has no threads"),
            ("a.cpp:2:20: error: no member named 'exists' in namespace 'std::filesystem'; did you mean 'exit'?", "<filesystem>"),
            ("a.cpp:2:27: error: implicit instantiation of undefined template 'std::basic_ifstream<char>'", "streams of files"),
            ("a.cpp:1:42: error: cannot use 'throw' with exceptions disabled", "scripts/fetch-llvm-runtimes"),
            ("wasm-ld-22: error: a.o: undefined symbol: __cxa_throw", "scripts/fetch-llvm-runtimes"),
        ] {
            let mut read = Diagnostics::new(Path::new("/tmp/awsm-Xy"));
            read.line(line);
            assert!(read.advice().contains(words), "{line}: {}", read.advice());
        }
        let mut read = Diagnostics::new(Path::new("/tmp/awsm-Xy"));
        read.line("a.cpp:2:18: error: no type named 'sting' in namespace 'std'; did you mean 'string'?");
        assert_eq!(read.advice(), "");
    }

    #[test]
    fn temporary_paths_are_not_shown() {
        let mut read = Diagnostics::new(Path::new("/tmp/awsm-Xy"));
        let line = "wasm-ld: error: /tmp/awsm-Xy/my-app-94b149.o: undefined symbol: clock";
        assert_eq!(read.line(line), "wasm-ld: error: my-app.o: undefined symbol: clock");
        assert_eq!(read.line("/tmp/awsm-Xy/minmax.o and /tmp/awsm-Xy/app.wasm"), "minmax.o and app.wasm");
        assert_eq!(
            read.advice(),
            "\n  WASI has no clocks of processes; wasi-libc imitates a part: `awsm compile FILE -- -D_WASI_EMULATED_PROCESS_CLOCKS \
             -lwasi-emulated-process-clocks`"
        );
    }
}
