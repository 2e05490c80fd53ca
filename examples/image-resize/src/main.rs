//! image-resize as a function: the body (a JPEG) on standard input, the reply (a PNG of half the size) on
//! standard output. What goes wrong is a line on standard error and exit status 1, without a reply.

use std::process::ExitCode;

fn main() -> ExitCode {
    photograph::function::answer("image-resize", image_resize::halve)
}
