//! Calls every method of a server of `check` and compares what it answers: `client http://ADDRESS`.

use std::time::{Duration, Instant};

use check::check_client::CheckClient;
use check::{Number, Text};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

mod check {
    tonic::include_proto!("check");
}

type Client = CheckClient<Channel>;

fn number(number: u64) -> Number {
    Number { number }
}

fn text(text: &str) -> Text {
    Text { text: text.to_owned() }
}

fn expect<T: PartialEq + std::fmt::Debug>(found: T, wanted: T) -> Result<(), Status> {
    if found == wanted {
        return Ok(());
    }
    Err(Status::unknown(format!("found {found:?}, not {wanted:?}")))
}

async fn echo(mut client: Client) -> Result<(), Status> {
    let mut request = Request::new(text("hé"));
    request.metadata_mut().insert("x-in", MetadataValue::from_static("1"));
    let response = client.echo(request).await?;
    expect(response.metadata().get("x-out").map(|value| value.as_bytes()), Some(&b"1"[..]))?;
    expect(response.metadata().get("x-seen").map(|value| value.as_bytes()), Some(&b"yes"[..]))?;
    expect(response.into_inner(), text("hé"))
}

async fn interceptor(mut client: Client) -> Result<(), Status> {
    let mut request = Request::new(text(""));
    request.metadata_mut().insert("x-refuse", MetadataValue::from_static("1"));
    expect(client.echo(request).await.map_err(|status| status.code()).err(), Some(Code::PermissionDenied))
}

async fn status(mut client: Client) -> Result<(), Status> {
    let Err(status) = client.fail(text("9")).await else { return Err(Status::unknown("it did not fail")) };
    expect(status.code(), Code::FailedPrecondition)?;
    expect(status.message(), "nicht schön")?;
    expect(status.details(), &[1, 2, 255][..])?;
    let more = status.metadata().get_bin("x-more-bin").and_then(|value| value.to_bytes().ok());
    expect(more.as_deref(), Some(&[0, 255][..]))
}

async fn deadline(mut client: Client) -> Result<(), Status> {
    let mut request = Request::new(number(10_000));
    request.set_timeout(Duration::from_millis(100));
    let begun = Instant::now();
    let code = client.sleep(request).await.map_err(|status| status.code()).err();
    expect([Some(Code::Cancelled), Some(Code::DeadlineExceeded)].contains(&code), true)?;
    expect(begun.elapsed() < Duration::from_secs(5), true)
}

async fn server_streams(mut client: Client) -> Result<(), Status> {
    let mut numbers = client.count(number(5)).await?.into_inner();
    for wanted in 1..=5 {
        expect(numbers.message().await?, Some(number(wanted)))?;
    }
    expect(numbers.message().await?, None)
}

async fn client_streams(mut client: Client) -> Result<(), Status> {
    let numbers = tokio_stream::iter((1..=100).map(number));
    expect(client.sum(numbers).await?.into_inner(), number(5050))
}

async fn both_stream(mut client: Client) -> Result<(), Status> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let mut doubled = client.double(ReceiverStream::new(receiver)).await?.into_inner();
    for count in 0..10 {
        sender.send(number(count)).await.map_err(|_| Status::unknown("the server takes nothing more"))?;
        expect(doubled.message().await?, Some(number(2 * count)))?;
    }
    drop(sender);
    expect(doubled.message().await?, None)
}

async fn two_at_once(mut client: Client) -> Result<(), Status> {
    let took = client.both(number(200)).await?.into_inner().number;
    expect((200..390).contains(&took), true)
}

async fn streams_within(mut client: Client) -> Result<(), Status> {
    expect(client.through(number(10)).await?.into_inner(), number(110))
}

async fn gives_up(mut client: Client) -> Result<(), Status> {
    let took = client.give_up(number(50)).await?.into_inner().number;
    expect((50..5000).contains(&took), true)
}

async fn panics(mut client: Client) -> Result<(), Status> {
    expect(client.panic(text("oh")).await.is_err(), true)?;
    expect(client.echo(text("after")).await?.into_inner(), text("after"))
}

async fn short(mut client: Client) -> Result<(), Status> {
    let (found, wanted) = (client.short(text("")).await?.into_inner().text, include_str!("../short.txt").trim_end());
    for (found, wanted) in found.lines().zip(wanted.lines()) {
        expect(found, wanted)?;
    }
    expect(found.lines().count(), wanted.lines().count())
}

async fn compressed(client: Client) -> Result<(), Status> {
    let mut client = client.send_compressed(CompressionEncoding::Gzip).accept_compressed(CompressionEncoding::Gzip);
    let long = "a".repeat(100_000);
    expect(client.echo(text(&long)).await?.into_inner().text.len(), long.len())
}

async fn large(client: Client) -> Result<(), Status> {
    let mut client = client.max_decoding_message_size(8 << 20);
    let long = "a".repeat(3 << 20);
    expect(client.echo(text(&long)).await?.into_inner().text.len(), long.len())
}

async fn unknown(client: Client) -> Result<(), Status> {
    // There is no such method: the client of another service with this one's prefix.
    let mut grpc = tonic::client::Grpc::new(client_channel(client).await?);
    grpc.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    let path = "/check.Check/Nothing".parse().map_err(|_| Status::unknown("no path"))?;
    let codec = tonic_prost::ProstCodec::<Text, Text>::default();
    let code = grpc.unary(Request::new(text("")), path, codec).await.map_err(|status| status.code()).err();
    expect(code, Some(Code::Unimplemented))
}

async fn client_channel(_: Client) -> Result<Channel, Status> {
    let address = std::env::args().nth(1).unwrap_or_default();
    let endpoint = Channel::from_shared(address).map_err(|error| Status::unknown(error.to_string()))?;
    endpoint.connect().await.map_err(|error| Status::unknown(error.to_string()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("usage: client http://ADDRESS")?;
    let client = CheckClient::new(Channel::from_shared(address)?.connect().await?);
    let (mut passed, mut failed) = (0, 0);
    macro_rules! run {
        ($($name:ident),* $(,)?) => {
            $(match tokio::time::timeout(Duration::from_secs(20), $name(client.clone())).await {
                Ok(Ok(())) => passed += 1,
                Ok(Err(status)) => { failed += 1; println!("{}: {status}", stringify!($name)); }
                Err(_) => { failed += 1; println!("{}: no answer", stringify!($name)); }
            })*
        };
    }
    run!(
        echo,
        interceptor,
        status,
        deadline,
        server_streams,
        client_streams,
        both_stream,
        two_at_once,
        streams_within,
        gives_up,
        panics,
        short,
        compressed,
        large,
        unknown,
    );
    println!("{passed} passed, {failed} failed");
    if failed == 0 {
        Ok(())
    } else {
        Err("it is not as it should be".into())
    }
}
