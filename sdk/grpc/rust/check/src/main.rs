//! A server that uses what the replacements promise, and calls itself by `CHECK`.

use std::pin::Pin;
use std::time::{Duration, Instant};

use check::check_client::CheckClient;
use check::check_server::{Check, CheckServer};
use check::{Number, Text};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataValue;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status, Streaming};

mod check {
    tonic::include_proto!("check");
}
mod short;

struct Checks {
    client: CheckClient<Channel>,
    warm: std::sync::Arc<tokio::sync::RwLock<u64>>,
}

type Numbers = Pin<Box<dyn Stream<Item = Result<Number, Status>> + Send>>;

fn number(number: u64) -> Number {
    Number { number }
}

#[tonic::async_trait]
impl Check for Checks {
    async fn echo(&self, request: Request<Text>) -> Result<Response<Text>, Status> {
        println!("echo after {}", *self.warm.read().await);
        let given = request.metadata().get("x-in").cloned();
        let seen = request.metadata().get("x-seen").cloned();
        let mut response = Response::new(request.into_inner());
        if let Some(given) = given {
            response.metadata_mut().insert("x-out", given);
        }
        if let Some(seen) = seen {
            response.metadata_mut().insert("x-seen", seen);
        }
        Ok(response)
    }

    async fn fail(&self, request: Request<Text>) -> Result<Response<Text>, Status> {
        let code = Code::from_i32(request.into_inner().text.parse().unwrap_or(2));
        let mut status = Status::with_details(code, "nicht schön", vec![1, 2, 255].into());
        status.metadata_mut().insert_bin("x-more-bin", MetadataValue::from_bytes(&[0, 255]));
        Err(status)
    }

    async fn sleep(&self, request: Request<Number>) -> Result<Response<Number>, Status> {
        let time = request.into_inner().number;
        sleep(Duration::from_millis(time)).await;
        Ok(Response::new(number(time)))
    }

    type CountStream = Numbers;

    async fn count(&self, request: Request<Number>) -> Result<Response<Numbers>, Status> {
        let (sender, receiver) = mpsc::channel(4);
        let to = request.into_inner().number;
        tokio::spawn(async move {
            for count in 1..=to {
                sleep(Duration::from_millis(1)).await;
                if sender.send(Ok(number(count))).await.is_err() {
                    break;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn sum(&self, request: Request<Streaming<Number>>) -> Result<Response<Number>, Status> {
        let (mut numbers, mut sum) = (request.into_inner(), 0);
        while let Some(more) = numbers.message().await? {
            sum += more.number;
        }
        Ok(Response::new(number(sum)))
    }

    type DoubleStream = Numbers;

    async fn double(&self, request: Request<Streaming<Number>>) -> Result<Response<Numbers>, Status> {
        let doubled = request.into_inner().map(|given| given.map(|given| number(2 * given.number)));
        Ok(Response::new(Box::pin(doubled)))
    }

    async fn both(&self, request: Request<Number>) -> Result<Response<Number>, Status> {
        let time = request.into_inner().number;
        let begun = Instant::now();
        let (mut one, mut other) = (self.client.clone(), self.client.clone());
        let (one, other) = tokio::join!(one.sleep(number(time)), other.sleep(number(time)));
        (one?, other?);
        Ok(Response::new(number(begun.elapsed().as_millis() as u64)))
    }

    async fn through(&self, request: Request<Number>) -> Result<Response<Number>, Status> {
        let to = request.into_inner().number;
        let (sender, receiver) = mpsc::channel(1);
        let mut doubled = self.client.clone().double(ReceiverStream::new(receiver)).await?.into_inner();
        let mut sum = 0;
        for count in 1..=to {
            sender.send(number(count)).await.map_err(|_| Status::internal("the callee takes nothing more"))?;
            let answer = timeout(Duration::from_secs(5), doubled.message()).await;
            sum += answer.map_err(|_| Status::deadline_exceeded("no answer"))??.map_or(0, |answer| answer.number);
        }
        drop(sender);
        match doubled.message().await? {
            None => Ok(Response::new(number(sum))),
            Some(_) => Err(Status::internal("one too many")),
        }
    }

    async fn give_up(&self, request: Request<Number>) -> Result<Response<Number>, Status> {
        let begun = Instant::now();
        let mut slow = Request::new(number(60_000));
        slow.set_timeout(Duration::from_millis(request.into_inner().number));
        match self.client.clone().sleep(slow).await {
            Err(status) if [Code::Cancelled, Code::DeadlineExceeded].contains(&status.code()) => {
                Ok(Response::new(number(begun.elapsed().as_millis() as u64)))
            }
            other => Err(Status::internal(format!("{other:?}"))),
        }
    }

    async fn short(&self, _: Request<Text>) -> Result<Response<Text>, Status> {
        Ok(Response::new(Text { text: short::said().await? }))
    }

    async fn panic(&self, request: Request<Text>) -> Result<Response<Text>, Status> {
        panic!("{}", request.into_inner().text)
    }
}

fn seen(mut request: Request<()>) -> Result<Request<()>, Status> {
    if request.metadata().contains_key("x-refuse") {
        return Err(Status::permission_denied("refused"));
    }
    request.metadata_mut().insert("x-seen", MetadataValue::from_static("yes"));
    Ok(request)
}

async fn serve() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let endpoint = Endpoint::from_shared(std::env::var("CHECK").unwrap_or_else(|_| "http://127.0.0.1:50053".to_owned()))?;
    let warm = std::sync::Arc::new(tokio::sync::RwLock::new(0));
    let warming = warm.clone();
    tokio::spawn(async move {
        *warming.write().await = tokio::task::spawn_blocking(|| 7).await.unwrap();
    });
    sleep(Duration::from_millis(2)).await;
    let checks = Checks { client: CheckClient::new(endpoint.connect_lazy()), warm };
    let service =
        CheckServer::new(checks).accept_compressed(CompressionEncoding::Gzip).send_compressed(CompressionEncoding::Gzip);
    let address = std::env::var("CHECK_LISTEN").unwrap_or_else(|_| "127.0.0.1:50053".to_owned());
    let listener = tokio::net::TcpListener::bind(&address).await?;
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    let ended = async { drop(tokio::signal::ctrl_c().await) };
    let plain = std::env::var("PLAIN_LISTEN").unwrap_or_else(|_| "127.0.0.1:50054".to_owned()).parse()?;
    tokio::spawn(Server::builder().add_service(short::service()).serve(plain));
    Server::builder()
        .timeout(Duration::from_secs(30))
        .add_service(InterceptedService::new(service, seen))
        .serve_with_incoming_shutdown(incoming, ended)
        .await?;
    Ok(())
}

#[cfg(not(feature = "by-hand"))]
#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    serve().await
}

/// The same without the macro.
#[cfg(feature = "by-hand")]
fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(serve())
}
