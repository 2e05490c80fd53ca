//! The example functions: their source, their input, and how a reply is judged.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::checkout;
use crate::gps;
use crate::photograph;
use crate::pictures;
use crate::printed;
use crate::street;

/// A function in `examples/` that the demonstration, the promises and the benchmarks run.
#[derive(Debug)]
pub struct Example {
    /// Its folder in `examples/`, its name on the server and its route.
    pub name: &'static str,
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
    content_type: "application/octet-stream",
    reply_file: "gps-ekf.bin",
    source: "gps-ekf.c",
    input: "input.bin",
    judge: |folder, request, reply| gps::judge(&read(&folder.join("expected.bin"))?, request, reply),
};

/// The image resizer in Rust.
pub const IMAGE_RESIZE: Example = Example {
    name: "image-resize",
    content_type: "image/png",
    reply_file: "image-resize.png",
    source: "",
    input: "input.jpg",
    judge: |_, request, reply| photograph::judge(request, reply),
};

/// The reader of printed text in C.
pub const OCR: Example = Example {
    name: "ocr",
    content_type: "text/plain",
    reply_file: "ocr.txt",
    source: "ocr.c",
    input: "input.pbm",
    judge: |folder, _, reply| printed::judge(&String::from_utf8(read(&folder.join("expected.txt"))?)?, reply),
};

/// The classifier of small pictures in C.
pub const IMAGE_CLASSIFY: Example = Example {
    name: "image-classify",
    content_type: "text/plain",
    reply_file: "image-classify.txt",
    source: "image-classify.c",
    input: "input.ppm",
    judge: |folder, _, reply| pictures::judge(&read(&folder.join("expected.txt"))?, reply),
};

/// The finder of licence plates in Rust.
pub const PLATE_DETECT: Example = Example {
    name: "plate-detect",
    content_type: "image/jpeg",
    reply_file: "plate-detect.jpg",
    source: "",
    input: "input.jpg",
    judge: |folder, request, reply| {
        let plate = String::from_utf8(read(&folder.join("expected.txt"))?)?;
        street::judge(street::rectangle(&plate)?, request, reply)
    },
};

/// All of them.
pub const EXAMPLES: [&Example; 5] = [&GPS_EKF, &IMAGE_RESIZE, &OCR, &IMAGE_CLASSIFY, &PLATE_DETECT];

impl Example {
    /// Its folder.
    pub fn folder(&self) -> PathBuf {
        checkout::root().join("examples").join(self.name)
    }

    /// What `awsm compile` is given: a file, or the folder of a cargo package.
    pub fn source(&self) -> PathBuf {
        if self.source.is_empty() { self.folder() } else { self.folder().join(self.source) }
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
