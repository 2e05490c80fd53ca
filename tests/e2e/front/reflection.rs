//! `grpc.reflection.v1` and `v1alpha`.

use super::{Application, Call, config, connect, describe, framed, free_address, is_own, own, packed, shop, text, unary};
use crate::LISTENERS;
use crate::http::run;
use bytes::Bytes;
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use rustix::process::Signal;
use serde_json::json;
use sledge_tests::http::TIME_MAX;
use sledge_tests::programs;
use std::fs;

const PATH: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
const OWN: [&str; 3] =
    ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(bytes = "bytes", tag = "2")]
    question: Bytes,
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "5")]
    extensions: Option<Extensions>,
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
    #[prost(message, optional, tag = "7")]
    error: Option<Error>,
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    file: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct Extensions {
    #[prost(string, tag = "1")]
    message: String,
    #[prost(int32, repeated, tag = "2")]
    number: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    service: Vec<Service>,
}

#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Error {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

fn extension(message: &str, number: u8) -> Vec<u8> {
    // A number beyond 127 has two bytes.
    let number = if number < 128 { vec![0x10, number] } else { vec![0x10, number, 1] };
    let inner = [text(1, message), number].concat();
    [&[5 << 3 | 2, u8::try_from(inner.len()).expect("short")], &inner[..]].concat()
}

async fn ask(call: &mut Call, question: &[u8]) -> Answer {
    let question = [text(1, "host"), question.to_vec()].concat();
    call.say(&question).await;
    let answer = Answer::decode(call.hear().await.expect("an answer")).expect("an answer");
    assert_eq!((&*answer.host, &answer.question[..]), ("host", &question[..]));
    answer
}

/// What a question comes to: names of files, or the number of an error.
async fn names(call: &mut Call, question: &[u8]) -> Result<Vec<String>, i32> {
    let answer = ask(call, question).await;
    if let Some(error) = answer.error {
        assert!(!error.message.is_empty());
        return Err(error.code);
    }
    let files = answer.files.expect("files").file;
    Ok(files.into_iter().map(|file| FileDescriptorProto::decode(file).expect("a file").name().to_owned()).collect())
}

async fn services(call: &mut Call) -> Vec<String> {
    ask(call, &text(7, "")).await.services.expect("services").service.into_iter().map(|service| service.name).collect()
}

#[test]
fn clients_are_told_of_what_they_can_call() {
    for listeners in LISTENERS {
        let mut config = config(&[shop(&json!({}))]);
        config["listeners"] = listeners.into();
        let application = Application::new(&config);
        let server = application.start();
        run(async {
            let connection = connect(server.address).await;
            for path in [PATH, ALPHA] {
                // Each answer comes while more can be asked.
                let call = &mut Call::begin(&connection, path).await;
                assert_eq!(call.head["content-type"], "application/grpc");
                assert_eq!(services(call).await, [&OWN[..], &["shop.Echo"]].concat());
                let all = [
                    "shop/front.proto",
                    "shop/options.proto",
                    "google/protobuf/timestamp.proto",
                    "google/protobuf/descriptor.proto",
                ];
                assert_eq!(names(call, &text(4, "shop.Echo")).await.unwrap(), all);
                // What the client has is not sent again, but for the file that it asks for.
                let known = [
                    "shop.Echo.Chat",
                    "shop.Text",
                    "shop.Text.text",
                    "shop.Text.kind",
                    "shop.Text.Inner.value",
                    "shop.Text.Colour",
                    "shop.Text.BLUE",
                    "shop.note",
                ];
                for symbol in known {
                    assert_eq!(names(call, &text(4, symbol)).await.unwrap(), ["shop/front.proto"], "{symbol}");
                }
                assert_eq!(names(call, &text(3, "shop/options.proto")).await.unwrap(), ["shop/options.proto"]);
                assert_eq!(names(call, &extension("shop.Text", 101)).await.unwrap(), ["shop/front.proto"]);
                assert_eq!(names(call, &extension("shop.Text", 150)).await.unwrap(), ["shop/more.proto"]);
                let extensions = ask(call, &text(6, "shop.Text")).await.extensions.expect("numbers");
                assert_eq!((&*extensions.message, &extensions.number[..]), ("shop.Text", &[101, 150][..]));
                let none = ask(call, &text(6, "shop.Text.Inner")).await.extensions.expect("numbers");
                assert_eq!(none.number, [0; 0]);
                let unknown = [
                    text(3, "shop/apart.proto"),
                    text(3, ""),
                    text(4, "shop.Ledger"),
                    text(4, "shop.Ledger.Book"),
                    text(4, "shop"),
                    text(4, "shop.apart.Secret"),
                    text(4, "Echo"),
                    extension("shop.Text", 102),
                    text(6, "shop.Echo"),
                    text(6, "x"),
                ];
                for question in unknown {
                    assert_eq!(names(call, &question).await, Err(5), "{}", String::from_utf8_lossy(&question));
                }
                assert_eq!(names(call, &[]).await, Err(3));
                call.end();
                assert_eq!(call.status().await.0, "0");
            }
            // On another stream the client knows nothing.
            let call = &mut Call::begin(&connection, PATH).await;
            let files = ask(call, &text(3, "shop/front.proto")).await.files.expect("files").file;
            assert_eq!(files.len(), 4);
            let front = FileDescriptorProto::decode(files[0].clone()).expect("a file");
            // Options that the server does not know are there, and services that clients cannot call are not.
            assert!(files[0].windows(3).any(|bytes| bytes == b"ada"));
            assert_eq!(front.service.iter().map(|service| service.name()).collect::<Vec<_>>(), ["Echo"]);
            assert_eq!(front.service[0].method.len(), 4);
        });
        server.stop();
    }
}

#[test]
fn the_servers_own_services_are_those_of_their_proto_files() {
    let application = Application::new(&config(&[shop(&json!({}))]));
    let protos = programs::tests_folder().join("../sdk/grpc/go/internal/proto");
    let files = ["health/v1/health", "reflection/v1/reflection", "reflection/v1alpha/reflection"]
        .map(|name| format!("grpc/{name}.proto"));
    let set = application.folder.path().join("own.binpb");
    describe(&protos, &files, &set);
    let set = FileDescriptorSet::decode(&*fs::read(set).expect("descriptors")).expect("descriptors");
    let server = application.start();
    run(async {
        let connection = connect(server.address).await;
        let call = &mut Call::begin(&connection, PATH).await;
        for (mut expected, service) in set.file.into_iter().zip(OWN) {
            let found = ask(call, &text(4, service)).await.files.expect("a file").file;
            assert_eq!(found.len(), 1, "{service}");
            // Which are for generators of code.
            expected.options = None;
            assert_eq!(FileDescriptorProto::decode(found[0].clone()).expect("a file"), expected, "{service}");
        }
    });
    server.stop();
}

#[test]
fn there_is_no_reflection_where_it_is_not_wanted() {
    let own = free_address();
    let quiet = shop(&json!({ "reflection": false, "listen": own.to_string() }));
    let application = Application::new(&config(&[quiet]));
    let server = application.start();
    run(async {
        let no = ("12".to_owned(), "no_such_route".to_owned());
        for address in [own, server.address] {
            let connection = connect(address).await;
            for path in [PATH, ALPHA, "/grpc.reflection.v1.ServerReflection/Other"] {
                assert_eq!(unary(&connection, path, &text(7, "")).await, Err(no.clone()), "{address} {path}");
            }
        }
    });
    server.stop();
}

#[test]
fn a_function_that_offers_it_is_called() {
    let mut config = config(&[shop(&json!({}))]);
    config["functions"] = json!([own("/grpc.reflection.v1.ServerReflection/*")]);
    let application = Application::new(&config);
    let server = application.start();
    run(async {
        let connection = connect(server.address).await;
        assert!(is_own(&connection, PATH).await);
        assert!(services(&mut Call::begin(&connection, ALPHA).await).await.contains(&"shop.Echo".to_owned()));
    });
    server.stop();
}

#[test]
fn what_is_no_question_ends_the_stream_and_so_does_the_server() {
    let application = Application::new(&config(&[shop(&json!({}))]));
    let mut server = application.start();
    run(async {
        let connection = connect(server.address).await;
        for (bytes, status) in [
            (framed(0, &[7]), "13"),
            (framed(1, b"x"), "12"),
            (framed(0, &text(4, "shop.Echo")).slice(..9), "13"),
            (Bytes::from_static(&[0, 0, 1, 0, 1]), "8"),
        ] {
            let mut call = Call::begin(&connection, PATH).await;
            call.send(bytes.clone()).await;
            call.end();
            assert_eq!(call.status().await.0, status, "{bytes:?}");
        }
        let gzip = [("grpc-encoding", "gzip")];
        let mut call = Call::begin_with(&connection, PATH, &gzip).await;
        assert_eq!(call.head["grpc-accept-encoding"], "gzip, identity");
        call.send(framed(1, &packed(&text(7, "")))).await;
        assert!(call.hear().await.is_some_and(|answer| Answer::decode(answer).expect("an answer").services.is_some()));
        // Few bytes that become many.
        call.send(framed(1, &packed(&[0; 100_000]))).await;
        assert_eq!(call.status().await.0, "8");
        let mut broken = Call::begin_with(&connection, PATH, &gzip).await;
        broken.send(framed(1, b"no gzip")).await;
        assert_eq!(broken.status().await.0, "13");
        let mut late = Call::begin_with(&connection, PATH, &[("grpc-timeout", "50m")]).await;
        assert_eq!(late.status().await.0, "4");
        let malformed = Call::begin_with(&connection, PATH, &[("grpc-timeout", "5")]).await;
        assert_eq!(malformed.head["grpc-status"], "13");
        // A client that asks nothing does not keep the server from stopping.
        let mut idle = Call::begin(&connection, PATH).await;
        assert_eq!(services(&mut idle).await.len(), 4);
        server.signal(Signal::TERM);
        assert_eq!(idle.status().await, ("14".to_owned(), "stopping".to_owned()));
    });
    assert!(server.wait(TIME_MAX).success());
}
