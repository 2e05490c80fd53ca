//! Sends data to the consumer, one call after the other, and adds up what it answers.

use prodcon::consumer_client::ConsumerClient;
use prodcon::producer_server::{Producer, ProducerServer};
use prodcon::{ConsumeRequest, ProduceReply, ProduceRequest};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

mod prodcon {
    tonic::include_proto!("prodcon");
}

/// The most that a message may have.
const BYTES_MAX: u32 = 1 << 20;

struct Calls {
    consumer: ConsumerClient<Channel>,
}

#[tonic::async_trait]
impl Producer for Calls {
    async fn produce(&self, request: Request<ProduceRequest>) -> Result<Response<ProduceReply>, Status> {
        let ProduceRequest { calls, bytes } = request.into_inner();
        if bytes > BYTES_MAX {
            return Err(Status::invalid_argument(format!("{bytes} bytes are more than {BYTES_MAX}")));
        }
        let data = vec![b'x'; bytes as usize];
        let mut consumer = self.consumer.clone();
        let mut total = 0;
        for _ in 0..calls {
            total += consumer.consume(ConsumeRequest { data: data.clone() }).await?.into_inner().length;
        }
        Ok(Response::new(ProduceReply { total }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let consumer = std::env::var("CONSUMER").unwrap_or_else(|_| "http://127.0.0.1:50052".to_owned());
    let channel = Endpoint::from_shared(consumer)?.connect_lazy();
    let address = std::env::var("PRODUCER_LISTEN").unwrap_or_else(|_| "127.0.0.1:50051".to_owned()).parse()?;
    println!("the producer listens on {address}");
    let calls = Calls { consumer: ConsumerClient::new(channel) };
    Server::builder().add_service(ProducerServer::new(calls)).serve(address).await?;
    Ok(())
}
