//! `sledge dev` with an application, whose sources are outside of the project's folder.

use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::programs::{self, sledge_command};
use sledge_tests::server::Server;
use sledge_tests::sources::{copy, has_go};
use std::fs;
use std::time::{Duration, Instant};

/// Go builds the program, and it is compiled, on a machine that does other things too.
const BUILD_TIME_MAX: Duration = Duration::from_secs(180);

/// What the consumer says of three bytes, 1, 2 and 3: that it got them, how many, and a sum.
fn consume(client: &Client) -> Vec<u8> {
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    client.try_post("/prodcon.Consumer/Consume", &[0, 0, 0, 0, 5, 10, 3, 1, 2, 3], &headers).expect("a reply").body
}

fn summed(sum: u8) -> Vec<u8> {
    vec![0, 0, 0, 0, 6, 8, 1, 16, 3, 24, sum]
}

#[test]
#[ignore = "builds for minutes: make test-projects"]
fn an_application_is_built_and_served_anew_when_a_source_changes() {
    if !has_go() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let example = programs::tests_folder().join("../examples/grpc/prodcon");
    copy(&example.join("consumer"), &folder.path().join("consumer"));
    for name in ["protos", "project"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    fs::copy(example.join("prodcon.proto"), folder.path().join("protos/prodcon.proto")).expect("a .proto file");
    let config = "admin = 'none'\n[[applications]]\nname = 'a'\nprotos = ['../protos']\n\
                  [[applications.functions]]\nname = 'consumer'\nsource = '../consumer'\nservices = ['prodcon.Consumer']\n";
    fs::write(folder.path().join("project/sledge.toml"), config).expect("write");
    let source = folder.path().join("consumer/main.go");
    let replace = |from: &str, to: &str| {
        let text = fs::read_to_string(&source).expect("the source");
        assert!(text.contains(from), "{from} is missing in\n{text}");
        fs::write(&source, text.replace(from, to)).expect("write");
    };

    let mut dev = sledge_command(&["dev", "--listen", "127.0.0.1:0"]);
    let server = Server::start_within(dev.current_dir(folder.path().join("project")), BUILD_TIME_MAX);
    let client = Client::new(server.address, TIME_MAX);
    assert_eq!(consume(&client), summed(6), "{}", server.log());

    replace("uint32(one)", "uint32(one) + oops");
    server.wait_for_log("undefined: oops");
    server.wait_for_log("the last good version stays in service");
    assert_eq!(consume(&client), summed(6));
    replace("uint32(one) + oops", "2 * uint32(one)");
    let end = Instant::now() + BUILD_TIME_MAX;
    while consume(&client) != summed(12) {
        assert!(Instant::now() < end, "{}", server.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    server.stop();
}
