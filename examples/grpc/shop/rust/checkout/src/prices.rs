//! What an order costs, in the currency that it is paid in.

use futures::Future;
use shop::money::{self, MoneyError};
use shop::pb::currency_client::CurrencyClient;
use shop::pb::{Conversion, Money, Offer, OrderLine, Product};
use shop::telemetry::Traced;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// What is paid for.
pub struct Prices {
    pub lines: Vec<OrderLine>,
    pub shipping: Money,
    pub total: Money,
}

/// Converts prices and shipping in one conversation: the prices are sent while the carrier is still asked, and its offer follows them.
pub async fn convert(
    mut converter: CurrencyClient<Traced>,
    bought: &[(Product, u32)],
    offer: impl Future<Output = Result<Offer, Status>>,
    currency: &str,
) -> Result<Prices, Status> {
    let (sender, amounts) = mpsc::channel(bought.len() + 1);
    // There is room for all. If the conversation has ended, its answer below says why.
    let send = |from: Option<Money>| drop(sender.try_send(Conversion { from, to: currency.to_owned() }));
    for (product, _) in bought {
        send(product.price.clone());
    }
    let (mut converted, offer) =
        futures::try_join!(async { Ok(converter.convert(ReceiverStream::new(amounts)).await?.into_inner()) }, offer)?;
    send(offer.cost);
    drop(sender);

    let mut lines = Vec::with_capacity(bought.len());
    let mut next = async || converted.message().await?.ok_or_else(|| Status::internal("the conversion of prices ended early"));
    for (product, quantity) in bought {
        let cost = money::times(&next().await?, *quantity).map_err(wrong)?;
        lines.push(OrderLine { product: Some(product.clone()), quantity: *quantity, cost: Some(cost) });
    }
    let shipping = next().await?;
    let mut total = shipping.clone();
    for cost in lines.iter().filter_map(|line| line.cost.as_ref()) {
        total = money::add(&total, cost).map_err(wrong)?;
    }
    Ok(Prices { lines, shipping, total })
}

fn wrong(error: MoneyError) -> Status {
    Status::out_of_range(error.to_string())
}
