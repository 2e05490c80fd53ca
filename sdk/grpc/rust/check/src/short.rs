//! Unary calls in all their ways, of a server that has nothing around its services. What they say is the same natively and as functions: [`said`] tells it line by line.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tonic::codec::CompressionEncoding;
use tonic::metadata::{KeyRef, MetadataMap, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};

use crate::check::plain_client::PlainClient;
use crate::check::plain_server::{Plain, PlainServer};
use crate::check::Text;

/// The server takes messages of so many bytes.
const TAKEN_MAX: usize = 2_000_000;
/// And answers with so many at most.
const ANSWERED_MAX: usize = 1_500_000;

/// Answers with the text. What it is asked besides stands in front of a colon.
pub struct Says;

#[tonic::async_trait]
impl Plain for Says {
    async fn say(&self, request: Request<Text>) -> Result<Response<Text>, Status> {
        let told = keys(request.metadata());
        let given = request.metadata().get("x-in").cloned();
        let bytes = request.metadata().get_bin("x-in-bin").cloned();
        let text = request.into_inner().text;
        match text.split_once(':').unwrap_or_default().0 {
            "fail" => {
                let mut status = Status::with_details(Code::FailedPrecondition, "nicht schön: 5 %", vec![1, 2, 255].into());
                status.metadata_mut().insert("x-more", MetadataValue::from_static("more"));
                return Err(status);
            }
            "wait" => sleep(Duration::from_millis(3)).await,
            "panic" => panic!("{text}"),
            _ => {}
        }
        let mut response = Response::new(Text { text });
        if let Some(given) = given {
            response.metadata_mut().insert("x-out", given);
            response.metadata_mut().insert("x-told", told.parse().map_err(|_| Status::internal("no header"))?);
        }
        if let Some(bytes) = bytes {
            response.metadata_mut().insert_bin("x-out-bin", bytes);
        }
        Ok(response)
    }
}

/// The service.
pub fn service() -> PlainServer<Says> {
    PlainServer::new(Says).max_decoding_message_size(TAKEN_MAX).max_encoding_message_size(ANSWERED_MAX)
}

/// Names of metadata, in order. Of the time, which only a connection tells, nothing.
fn keys(metadata: &MetadataMap) -> String {
    let mut keys: Vec<_> = metadata
        .keys()
        .map(|key| match key {
            KeyRef::Ascii(key) => key.as_str().to_owned(),
            KeyRef::Binary(key) => key.as_str().to_owned(),
        })
        .filter(|key| key != "date")
        .collect();
    keys.sort();
    keys.join(" ")
}

fn text(text: impl Into<String>) -> Text {
    Text { text: text.into() }
}

/// What a call came to.
fn told(result: Result<Response<Text>, Status>) -> String {
    match result {
        Ok(response) => {
            let metadata = response.metadata();
            let out = |name| metadata.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
            let bytes = metadata.get_bin("x-out-bin").and_then(|value| value.to_bytes().ok());
            let (keys, out, seen) = (keys(metadata), out("x-out"), out("x-told"));
            let said = response.into_inner().text;
            let head: String = said.chars().take(10).collect();
            format!("{} {head:?} [{keys}] {out:?} {seen:?} {bytes:?}", said.len())
        }
        Err(status) => {
            let more = status.metadata().get("x-more").and_then(|value| value.to_str().ok());
            format!("{:?} {:?} {:?} {more:?}", status.code(), status.message(), status.details())
        }
    }
}

/// All of them, by `PLAIN`.
pub async fn said() -> Result<String, Status> {
    let address = std::env::var("PLAIN").unwrap_or_else(|_| "http://127.0.0.1:50054".to_owned());
    let endpoint = Endpoint::from_shared(address).map_err(|error| Status::internal(error.to_string()))?;
    let channel = endpoint.connect_lazy();
    let mut client = PlainClient::new(channel.clone());
    let mut lines = Vec::new();
    lines.push(told(client.say(text("plain")).await));
    lines.push(told(client.say(text("")).await));
    lines.push(told(client.say(text("fail:")).await));
    lines.push(told(client.say(text("wait:")).await));

    let mut request = Request::new(text("metadata"));
    request.metadata_mut().insert("x-in", MetadataValue::from_static("1"));
    request.metadata_mut().insert_bin("x-in-bin", MetadataValue::from_bytes(&[0, 255]));
    lines.push(told(client.say(request).await));
    // And it is gone with the next call.
    lines.push(told(client.say(text("none")).await));
    let mut request = Request::new(text("timed"));
    request.set_timeout(Duration::from_secs(20));
    lines.push(told(client.say(request).await));

    for bytes in [4_000, 60_000, 70_000, 1_400_000, 1_600_000, 2_100_000] {
        lines.push(told(client.clone().max_decoding_message_size(8 << 20).say(text("a".repeat(bytes))).await));
    }
    lines.push(told(client.clone().max_decoding_message_size(100).say(text("a".repeat(99))).await));
    lines.push(told(client.clone().max_decoding_message_size(100).say(text("a".repeat(90))).await));

    let mut zipped = client.clone().send_compressed(CompressionEncoding::Gzip);
    lines.push(told(zipped.say(text("zipped")).await));
    lines.push(told(client.clone().accept_compressed(CompressionEncoding::Gzip).say(text("may be")).await));
    let limited = endpoint.clone().concurrency_limit(1).timeout(Duration::from_secs(20)).connect_lazy();
    lines.push(told(PlainClient::new(limited).say(text("limited")).await));
    let mut asked = PlainClient::with_interceptor(channel.clone(), |mut request: Request<()>| {
        request.metadata_mut().insert("x-in", MetadataValue::from_static("asked"));
        Ok(request)
    });
    lines.push(told(asked.say(text("asked")).await));
    lines.push(told(unknown(channel, "/check.Plain/Nothing").await));
    lines.push(told(client.say(text("at last")).await));
    lines.push(format!("others had their turn: {}", others_have_their_turn(client).await?));
    Ok(lines.join("\n"))
}

async fn unknown(channel: Channel, path: &'static str) -> Result<Response<Text>, Status> {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.map_err(|error| Status::internal(error.to_string()))?;
    let codec = tonic_prost::ProstCodec::<Text, Text>::default();
    let reply = grpc.unary(Request::new(text("")), tonic::codegen::http::uri::PathAndQuery::from_static(path), codec).await;
    // Its text is the version's.
    reply.map_err(|status| Status::new(status.code(), ""))
}

/// Whether a task runs beside one whose calls never wait.
async fn others_have_their_turn(mut client: PlainClient<Channel>) -> Result<bool, Status> {
    let turn = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&turn);
    tokio::spawn(async move { other.store(true, Relaxed) });
    for _ in 0..200 {
        client.say(text("one of many")).await?;
    }
    Ok(turn.load(Relaxed))
}
