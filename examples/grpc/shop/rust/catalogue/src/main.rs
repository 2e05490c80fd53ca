//! The products, which are a file of the program.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;

use serde::Deserialize;
use shop::pb::catalogue_server::{Catalogue, CatalogueServer};
use shop::pb::{GetProductRequest, ListRequest, Money, Product};
use shop::telemetry;
use tokio_stream::Stream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// A product as the file has it.
#[derive(Deserialize)]
struct Entry {
    id: String,
    name: String,
    /// In EUR: units, a point, two digits.
    price: String,
    categories: Vec<String>,
    weight_grams: u32,
}

impl Entry {
    fn product(self) -> Result<Product, Box<dyn Error>> {
        let price = self.price.split_once('.').and_then(|(units, cents)| Some((units.parse().ok()?, cents.parse::<i32>().ok()?)));
        let (units, cents) = price.ok_or_else(|| format!("{}: {} is no price", self.id, self.price))?;
        let price = Money { currency: "EUR".to_owned(), units, nanos: cents * 10_000_000 };
        let Entry { id, name, categories, weight_grams, .. } = self;
        Ok(Product { id, name, price: Some(price), categories, weight_grams })
    }
}

struct Products(Arc<[Product]>);

impl Products {
    fn new(json: &str) -> Result<Products, Box<dyn Error>> {
        let entries: Vec<Entry> = serde_json::from_str(json)?;
        Ok(Products(entries.into_iter().map(Entry::product).collect::<Result<_, _>>()?))
    }
}

#[tonic::async_trait]
impl Catalogue for Products {
    type ListStream = Pin<Box<dyn Stream<Item = Result<Product, Status>> + Send>>;

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<Self::ListStream>, Status> {
        let ListRequest { category } = request.into_inner();
        let is_in = |product: &&Product| category.is_empty() || product.categories.contains(&category);
        let found: Vec<_> = self.0.iter().filter(is_in).cloned().map(Ok).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(found))))
    }

    async fn get(&self, request: Request<GetProductRequest>) -> Result<Response<Product>, Status> {
        let GetProductRequest { id } = request.into_inner();
        let found = self.0.iter().find(|product| product.id == id).cloned();
        found.map(Response::new).ok_or_else(|| Status::not_found(format!("no product {id}")))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    telemetry::begin();
    let products = Products::new(include_str!("products.json"))?;
    let server = Server::builder().layer(telemetry::Layer).add_service(CatalogueServer::new(products));
    Ok(server.serve_with_shutdown(shop::listen_address(50051)?, shop::terminated()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_exactly() {
        let products = Products::new(include_str!("products.json")).unwrap();
        let mug = products.0.iter().find(|product| product.id == "mug").unwrap();
        assert_eq!(mug.price, Some(Money { currency: "EUR".to_owned(), units: 8, nanos: 950_000_000 }));
        assert!(Products::new(r#"[{ "id": "a", "name": "", "price": "1", "categories": [], "weight_grams": 1 }]"#).is_err());
    }
}
