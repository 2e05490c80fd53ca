//! Answers how long the data is that it gets.

use prodcon::consumer_server::{Consumer, ConsumerServer};
use prodcon::{ConsumeReply, ConsumeRequest};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

mod prodcon {
    tonic::include_proto!("prodcon");
}

struct Length;

#[tonic::async_trait]
impl Consumer for Length {
    async fn consume(&self, request: Request<ConsumeRequest>) -> Result<Response<ConsumeReply>, Status> {
        let length = request.into_inner().data.len() as u64;
        Ok(Response::new(ConsumeReply { length }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::var("CONSUMER_LISTEN").unwrap_or_else(|_| "127.0.0.1:50052".to_owned()).parse()?;
    println!("the consumer listens on {address}");
    Server::builder().add_service(ConsumerServer::new(Length)).serve(address).await?;
    Ok(())
}
