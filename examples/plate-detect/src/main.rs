//! plate-detect as a function: the body (a JPEG) on standard input, the reply (a JPEG with a box round the licence plate) on standard
//! output. Where there is no plate, that is a line on standard error, and the reply has no box. What goes wrong is a line on standard error
//! and exit status 1, without a reply.

use std::process::ExitCode;

fn main() -> ExitCode {
    photograph::function::answer("plate-detect", |body| {
        let marked = plate_detect::mark(body)?;
        if marked.plate.is_none() {
            eprintln!("plate-detect: there is no licence plate in the picture");
        }
        Ok(marked.jpeg)
    })
}
