//! What the services in Rust share.

pub mod money;
pub mod telemetry;

use std::error::Error;
use std::net::SocketAddr;

use tonic::transport::{Channel, Endpoint};

/// Messages, clients and servers of `proto/shop.proto`.
pub mod pb {
    tonic::include_proto!("shop");
}

/// A variable of the environment that may be missing.
pub fn variable(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

/// Where a service listens: `LISTEN`, or this port of the loopback interface.
pub fn listen_address(port: u16) -> Result<SocketAddr, Box<dyn Error>> {
    let address = variable("LISTEN", &format!("127.0.0.1:{port}"));
    Ok(address.parse().map_err(|error| format!("LISTEN: {address}: {error}"))?)
}

/// A connection to another service, which is made when it is used: its address is in the environment, or this port of the loopback interface.
pub fn channel(name: &str, port: u16) -> Result<Channel, Box<dyn Error>> {
    let address = variable(name, &format!("127.0.0.1:{port}"));
    Ok(Endpoint::from_shared(format!("http://{address}")).map_err(|error| format!("{name}: {address}: {error}"))?.connect_lazy())
}

/// Waits until the service is to end.
pub async fn terminated() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
