//! Says how much it got. It is an ordinary gRPC server.

use prodcon::consumer_server::{Consumer, ConsumerServer};
use prodcon::{ConsumeReply, ConsumeRequest};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

mod prodcon {
    tonic::include_proto!("prodcon");
}

struct Count;

#[tonic::async_trait]
impl Consumer for Count {
    async fn consume(&self, request: Request<ConsumeRequest>) -> Result<Response<ConsumeReply>, Status> {
        let value = request.into_inner().value;
        let sum = value.iter().copied().map(u32::from).fold(0, u32::wrapping_add);
        Ok(Response::new(ConsumeReply { ok: true, bytes: value.len() as u32, sum }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::var("CONSUMER_LISTEN").unwrap_or_else(|_| "127.0.0.1:50052".to_owned()).parse()?;
    println!("the consumer listens on {address}");
    Server::builder().add_service(ConsumerServer::new(Count)).serve(address).await?;
    Ok(())
}
