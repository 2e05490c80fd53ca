//! Sends messages to the consumer when it is asked to. It is an ordinary gRPC server, and client of another.

use prodcon::consumer_client::ConsumerClient;
use prodcon::producer_server::{Producer, ProducerServer};
use prodcon::{ConsumeRequest, ProduceReply, ProduceRequest};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

mod prodcon {
    tonic::include_proto!("prodcon");
}

/// The largest message, so that it fits the consumer's default limit.
const SIZE_MAX: u32 = 1 << 20;

struct Calls {
    consumer: ConsumerClient<Channel>,
}

#[tonic::async_trait]
impl Producer for Calls {
    async fn produce(&self, request: Request<ProduceRequest>) -> Result<Response<ProduceReply>, Status> {
        let ProduceRequest { count, size } = request.into_inner();
        if size > SIZE_MAX {
            return Err(Status::invalid_argument(format!("size {size} is above {SIZE_MAX}")));
        }
        let value: Vec<u8> = (0..size).map(|index| index as u8).collect();
        let mut consumer = self.consumer.clone();
        let mut reply = ProduceReply::default();
        for _ in 0..count {
            let one = consumer.consume(ConsumeRequest { value: value.clone() }).await?.into_inner();
            reply.count += 1;
            reply.bytes += u64::from(one.bytes);
            reply.sum += u64::from(one.sum);
        }
        Ok(Response::new(reply))
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
