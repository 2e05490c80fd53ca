//! A client of the shop.
//!
//! ```text
//! client               a list of orders and what became of them
//! client order         one order and what became of it
//! client load COUNT    so many orders, one after the other; the time of each in microseconds, one a line
//! ```
//!
//! `CHECKOUT`, `CART` and `CATALOGUE` in the environment say where the services are. An application has one address for all.

mod scenarios;

use std::error::Error;
use std::time::Instant;

use shop::pb::cart_client::CartClient;
use shop::pb::catalogue_client::CatalogueClient;
use shop::pb::checkout_client::CheckoutClient;
use shop::pb::{AddRequest, Address, Card, Item, PlaceOrderRequest};
use tonic::transport::Channel;
use tonic::Status;

struct Shop {
    catalogue: CatalogueClient<Channel>,
    cart: CartClient<Channel>,
    checkout: CheckoutClient<Channel>,
}

impl Shop {
    fn connect() -> Result<Shop, Box<dyn Error>> {
        Ok(Shop {
            catalogue: CatalogueClient::new(shop::channel("CATALOGUE", 50051)?),
            cart: CartClient::new(shop::channel("CART", 50052)?),
            checkout: CheckoutClient::new(shop::channel("CHECKOUT", 50058)?),
        })
    }

    /// Puts products into a cart, as a stream.
    async fn fill(&mut self, user: &str, items: &[(&str, u32)]) -> Result<Vec<Item>, Status> {
        let add = |&(product, quantity): &(&str, u32)| AddRequest {
            user: user.to_owned(),
            item: Some(Item { product: product.to_owned(), quantity }),
        };
        let all: Vec<_> = items.iter().map(add).collect();
        Ok(self.cart.fill(tokio_stream::iter(all)).await?.into_inner().items)
    }
}

/// An order as most are.
fn order(user: &str) -> PlaceOrderRequest {
    let address = Address {
        street: "Am Hof 1".to_owned(),
        city: "Bonn".to_owned(),
        postal_code: "53113".to_owned(),
        country: "DE".to_owned(),
    };
    PlaceOrderRequest {
        user: user.to_owned(),
        currency: "EUR".to_owned(),
        address: Some(address),
        email: format!("{user}@example.org"),
        card: Some(Card { number: "4242424242424242".to_owned(), year: 2099, month: 12 }),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut shop = Shop::connect()?;
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => scenarios::all(&mut shop).await,
        ["order"] => scenarios::one(&mut shop).await,
        ["load", count] => load(&mut shop, count.parse()?).await,
        _ => Err("usage: client [order | load COUNT]".into()),
    }
}

async fn load(shop: &mut Shop, count: usize) -> Result<(), Box<dyn Error>> {
    for number in 0..count {
        let user = format!("load-{number}");
        shop.fill(&user, &[("mug", 2), ("board", 1), ("pen", 1)]).await?;
        let start = Instant::now();
        let reply = shop.checkout.place_order(order(&user)).await?.into_inner();
        let time = start.elapsed();
        let total = reply.order.and_then(|order| order.total).map(|total| (total.units, total.nanos));
        if total != Some((71, 40_000_000)) || !reply.confirmed || reply.also_like.len() != 3 {
            return Err(format!("another reply than expected: {total:?}").into());
        }
        println!("{}", time.as_micros());
    }
    Ok(())
}
