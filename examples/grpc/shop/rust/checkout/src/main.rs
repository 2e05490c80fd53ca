//! Turns a cart into an order. What does not depend on each other is asked for at the same time.

mod order;
mod prices;

use std::error::Error;

use shop::pb::checkout_server::CheckoutServer;
use shop::telemetry;
use tonic::transport::Server;

use order::Orders;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    telemetry::begin();
    let orders = Orders::connect()?;
    let server = Server::builder().layer(telemetry::Layer).add_service(CheckoutServer::new(orders));
    Ok(server.serve_with_shutdown(shop::listen_address(50058)?, shop::terminated()).await?)
}
