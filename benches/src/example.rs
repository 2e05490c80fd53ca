//! The example functions: their source, their input, and how a reply is judged.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::checkout;
use crate::gps;
use crate::photograph;
use crate::pictures;
use crate::printed;
use crate::simple;
use crate::street;

/// A function in `examples/` that the demonstration, the promises and the benchmarks run.
#[derive(Debug)]
pub struct Example {
    /// Its folder in `examples/` and its name on the server.
    pub name: &'static str,
    /// Its path on the server.
    pub route: &'static str,
    /// The content type of its replies.
    pub content_type: &'static str,
    /// What its reply is saved as.
    pub reply_file: &'static str,
    source: &'static str,
    input: &'static str,
    judge: Judge,
}

/// From the example's folder, a request's body and its reply's to lines for people to read.
type Judge = fn(&Path, &[u8], &[u8]) -> Result<Vec<String>>;

/// The extended Kalman filter in C.
pub const GPS_EKF: Example = Example {
    name: "gps-ekf",
    route: "/gps-ekf",
    content_type: "application/octet-stream",
    reply_file: "gps-ekf.bin",
    source: "gps-ekf.c",
    input: "input.bin",
    judge: |folder, request, reply| gps::judge(&read(&folder.join("expected.bin"))?, request, reply),
};

/// The image resizer in Rust.
pub const IMAGE_RESIZE: Example = Example {
    name: "image-resize",
    route: "/image-resize",
    content_type: "image/png",
    reply_file: "image-resize.png",
    source: "",
    input: "input.jpg",
    judge: |_, request, reply| photograph::judge(request, reply),
};

/// The reader of printed text in C.
pub const OCR: Example = Example {
    name: "ocr",
    route: "/ocr",
    content_type: "text/plain",
    reply_file: "ocr.txt",
    source: "ocr.c",
    input: "input.pbm",
    judge: |folder, _, reply| printed::judge(&String::from_utf8(read(&folder.join("expected.txt"))?)?, reply),
};

/// The classifier of small pictures in C.
pub const IMAGE_CLASSIFY: Example = Example {
    name: "image-classify",
    route: "/image-classify",
    content_type: "text/plain",
    reply_file: "image-classify.txt",
    source: "image-classify.c",
    input: "input.ppm",
    judge: |folder, _, reply| pictures::judge(&read(&folder.join("expected.txt"))?, reply),
};

/// The finder of licence plates in Rust.
pub const PLATE_DETECT: Example = Example {
    name: "plate-detect",
    route: "/plate-detect",
    content_type: "image/jpeg",
    reply_file: "plate-detect.jpg",
    source: "",
    input: "input.jpg",
    judge: |folder, request, reply| {
        let plate = String::from_utf8(read(&folder.join("expected.txt"))?)?;
        street::judge(street::rectangle(&plate)?, request, reply)
    },
};

/// The body, unchanged, in C.
pub const ECHO: Example = Example {
    name: "echo",
    route: "/echo",
    content_type: "application/octet-stream",
    reply_file: "echo.bin",
    source: "echo.c",
    input: "input.bin",
    judge: |_, request, reply| simple::judge(request, reply),
};

/// The same reply always, in C.
pub const PING: Example = Example {
    name: "ping",
    route: "/ping",
    content_type: "text/plain",
    reply_file: "ping.txt",
    source: "ping.c",
    input: "ping.c",
    judge: |_, _, reply| simple::judge(b"pong\n", reply),
};

/// Processor time by the number, in C.
pub const FIBONACCI: Example = Example {
    name: "fibonacci",
    route: "/fibonacci",
    content_type: "text/plain",
    reply_file: "fibonacci.txt",
    source: "fibonacci.c",
    input: "input.txt",
    judge: |_, request, reply| simple::judge(&simple::fibonacci(request)?, reply),
};

/// Records by their keys, in Rust.
pub const SORT: Example = Example {
    name: "sort",
    route: "/sort",
    content_type: "application/octet-stream",
    reply_file: "sort.txt",
    source: "sort.rs",
    input: "input.txt",
    judge: |_, request, reply| simple::judge(&simple::sorted(request)?, reply),
};

/// The applications of the Sledge paper.
pub const APPLICATIONS: [&Example; 5] = [&GPS_EKF, &OCR, &IMAGE_CLASSIFY, &IMAGE_RESIZE, &PLATE_DETECT];

/// All of them.
pub const EXAMPLES: [&Example; 9] =
    [&GPS_EKF, &IMAGE_RESIZE, &OCR, &IMAGE_CLASSIFY, &PLATE_DETECT, &ECHO, &PING, &FIBONACCI, &SORT];

impl Example {
    /// Its folder.
    pub fn folder(&self) -> PathBuf {
        checkout::root().join("examples").join(self.name)
    }

    /// What `awsm compile` is given: a file, or the folder of a cargo package.
    pub fn source(&self) -> PathBuf {
        if self.is_package() { self.folder() } else { self.folder().join(self.source) }
    }

    /// Whether its source is a cargo package, not a file.
    pub fn is_package(&self) -> bool {
        self.source.is_empty()
    }

    /// The body of a real request.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn input(&self) -> Result<Vec<u8>> {
        read(&self.folder().join(self.input))
    }

    /// Judges `reply` to the body `request`: lines that show what is in it, for people to read.
    ///
    /// # Errors
    ///
    /// If it is not the right reply; the error says what is wrong with it.
    pub fn judge(&self, request: &[u8], reply: &[u8]) -> Result<Vec<String>> {
        (self.judge)(&self.folder(), request, reply).with_context(|| format!("{}: a wrong reply", self.name))
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
