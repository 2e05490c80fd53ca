//! The example functions as native programs: the same sources, the same inputs, the same answers.
//!
//! What the sandbox makes of them is checked end to end elsewhere; a difference between the two shows whose it is.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sledge_benches::example::{ECHO, Example, FIBONACCI, GPS_EKF, IMAGE_CLASSIFY, IMAGE_RESIZE, OCR, PING, SORT};
use sledge_benches::pictures;

fn native(example: &Example, folder: &Path) -> PathBuf {
    let program = folder.join(example.name);
    let source = example.source();
    let mut compiler = if source.extension().is_some_and(|extension| extension == "rs") {
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "-O"]);
        rustc
    } else {
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-O3"]);
        cc
    };
    compiler.arg(&source).arg("-o").arg(&program);
    if source.extension().is_some_and(|extension| extension == "c") {
        compiler.arg("-lm");
    }
    let run = compiler.output().expect("the compiler runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    program
}

fn run(program: &Path, body: &[u8]) -> Output {
    let mut child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    // It may end before it has read everything: that is for the caller to judge.
    let _ = child.stdin.take().expect("stdin is piped").write_all(body);
    child.wait_with_output().expect("it ends")
}

#[test]
fn gps_ekf_agrees_with_the_independent_computation() {
    let folder = tempfile::tempdir().unwrap();
    let program = native(&GPS_EKF, folder.path());
    let body = GPS_EKF.input().unwrap();
    let output = run(&program, &body);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    GPS_EKF.judge(&body, &output.stdout).unwrap();
}

#[test]
fn gps_ekf_refuses_bodies_that_make_no_sense() {
    let folder = tempfile::tempdir().unwrap();
    let program = native(&GPS_EKF, folder.path());
    let body = GPS_EKF.input().unwrap();
    let with_number = |index: usize, number: f64| {
        let mut changed = body.clone();
        changed[index * 8..index * 8 + 8].copy_from_slice(&number.to_le_bytes());
        changed
    };
    let cases = [
        (body[..0].to_vec(), "has 0 bytes"),
        (body[..711].to_vec(), "has 711 bytes"),
        ([&body[..], b"x"].concat(), "has more than 712 bytes"),
        (with_number(3, f64::NAN), "not finite"),
        (with_number(72, -1.0), "negative"),
        (with_number(8, -1e9), "not positive definite"),
    ];
    for (body, reason) in cases {
        let output = run(&program, &body);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{reason}: {message}");
        assert!(output.stdout.is_empty(), "{reason}");
        assert!(message.starts_with("gps-ekf: ") && message.contains(reason), "{reason}: {message}");
    }
}

#[test]
fn image_resize_answers_its_own_input() {
    let body = IMAGE_RESIZE.input().unwrap();
    let reply = image_resize::halve(&body).unwrap();
    IMAGE_RESIZE.judge(&body, &reply).unwrap();
}

#[test]
fn image_classify_answers_its_own_input_and_refuses_what_is_no_picture() {
    let folder = tempfile::tempdir().unwrap();
    let program = native(&IMAGE_CLASSIFY, folder.path());
    let body = IMAGE_CLASSIFY.input().unwrap();
    let output = run(&program, &body);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    IMAGE_CLASSIFY.judge(&body, &output.stdout).unwrap();

    let picture = pictures::draw(0, 1 << 40);
    let with_comment = [b"P6 # a comment, 99\n32\t32\n255\n", &picture[..]].concat();
    assert!(run(&program, &with_comment).status.success());
    let cases = [
        (body[..0].to_vec(), "has to begin with P6"),
        (b"P6\n".to_vec(), "32 x 32 pixels"),
        (b"P6 32 33 255\n".to_vec(), "32 x 32 pixels"),
        (b"P6 99999999999999999999 32 255\n".to_vec(), "32 x 32 pixels"),
        (body[..body.len() - 1].to_vec(), "has to end with the pixmap"),
        ([&body[..], b"x"].concat(), "has to end with the pixmap"),
        (vec![b'P'; 9000], "more than 8192 bytes"),
    ];
    for (body, reason) in cases {
        let output = run(&program, &body);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{reason}: {message}");
        assert!(output.stdout.is_empty(), "{reason}");
        assert!(message.starts_with("image-classify: ") && message.contains(reason), "{reason}: {message}");
    }
}

#[test]
fn the_small_ones_and_ocr_answer_natively() {
    let folder = tempfile::tempdir().unwrap();
    for example in [&ECHO, &PING, &FIBONACCI, &SORT, &OCR] {
        let program = native(example, folder.path());
        let body = example.input().unwrap();
        let output = run(&program, &body);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        example.judge(&body, &output.stdout).unwrap();
    }
    let large = vec![7; 300_000];
    assert_eq!(run(&folder.path().join("sort"), &large).stdout, large);
    for (name, body, reason) in
        [("sort", &b"short"[..], "has 5 bytes"), ("fibonacci", b"51", "0 to 50"), ("fibonacci", b"1x", "0 to 50")]
    {
        let output = run(&folder.path().join(name), body);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && output.stdout.is_empty() && message.contains(reason), "{name}: {message}");
    }
}
