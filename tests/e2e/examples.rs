//! The functions in `examples/`, compiled, served, and judged by the same code that judges the demonstration: gps-ekf against an independent
//! computation, image-resize pixel by pixel against a native run.

use serde_json::json;
use sledge_benches::example::{EXAMPLES, Example};
use sledge_tests::programs;
use sledge_tests::server::Server;

/// Compiles an example and has it judged, alone and among many requests of others.
fn serve(example: &Example, options: &[&str]) {
    let artifact = programs::folder().join(format!("{}{}.so", example.name, options.concat()));
    let source = example.source();
    let mut arguments =
        vec!["compile", source.to_str().expect("a path in UTF-8"), "-o", artifact.to_str().expect("a path in UTF-8")];
    arguments.extend(options);
    let compiled = programs::run_awsm(&arguments);
    assert_eq!(compiled.code(), 0, "{}", compiled.text());

    let entry = json!({ "name": example.name, "path": artifact, "content_type": example.content_type });
    let server = Server::start(json!({ "functions": [entry] }));
    let body = example.input().expect("the example's input");
    let route = format!("/{}", example.name);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = server.client();
                for _ in 0..5 {
                    let reply = client.post(&route, &body);
                    assert_eq!((reply.status, reply.header("content-type")), (200, Some(example.content_type)), "{options:?}");
                    example.judge(&body, &reply.body).unwrap_or_else(|error| panic!("{} {options:?}: {error:#}", example.name));
                }
            });
        }
    });
    server.stop();
}

#[test]
fn examples_answer_as_they_should() {
    for example in EXAMPLES {
        serve(example, &[]);
    }
}

#[test]
fn gps_ekf_answers_the_same_however_it_is_compiled() {
    for options in [["--bounds", "software", "-O", "0"], ["--bounds", "software", "-O", "3"], ["--cpu", "baseline", "-O", "2"]] {
        serve(&sledge_benches::example::GPS_EKF, &options);
    }
}
