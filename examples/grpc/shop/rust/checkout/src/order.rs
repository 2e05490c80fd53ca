//! An order, from the cart to the confirmation.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use futures::future::try_join_all;
use shop::pb::cart_client::CartClient;
use shop::pb::catalogue_client::CatalogueClient;
use shop::pb::checkout_server::Checkout;
use shop::pb::currency_client::CurrencyClient;
use shop::pb::email_client::EmailClient;
use shop::pb::payment_client::PaymentClient;
use shop::pb::recommendation_client::RecommendationClient;
use shop::pb::shipping_client::ShippingClient;
use shop::pb::{
    Address, ChargeRequest, ConfirmRequest, EmptyCartRequest, GetCartRequest, GetProductRequest, Item, Offer, Order, Parcel,
    PlaceOrderReply, PlaceOrderRequest, Product, RecommendRequest, RefundRequest, Shipment,
};
use shop::telemetry::{traced, Traced};
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::prices::{self, Prices};

/// How often a service that is unavailable is asked, and how long to wait before it is asked again.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(5);
/// Products that go with those of an order.
const ALSO_LIKE: u32 = 3;

/// The services that are called.
pub struct Orders {
    catalogue: CatalogueClient<Traced>,
    cart: CartClient<Traced>,
    currency: CurrencyClient<Traced>,
    shipping: ShippingClient<Traced>,
    payment: PaymentClient<Traced>,
    email: EmailClient<Traced>,
    recommendation: RecommendationClient<Traced>,
}

impl Orders {
    /// Connections to all of them.
    pub fn connect() -> Result<Orders, Box<dyn Error>> {
        let to = |name, port| shop::channel(name, port).map(traced);
        Ok(Orders {
            catalogue: CatalogueClient::new(to("CATALOGUE", 50051)?),
            cart: CartClient::new(to("CART", 50052)?),
            currency: CurrencyClient::new(to("CURRENCY", 50053)?),
            shipping: ShippingClient::new(to("SHIPPING", 50054)?),
            payment: PaymentClient::new(to("PAYMENT", 50055)?),
            email: EmailClient::new(to("EMAIL", 50056)?),
            recommendation: RecommendationClient::new(to("RECOMMENDATION", 50057)?),
        })
    }

    /// The products of a cart, asked for all at once.
    async fn products(&self, items: Vec<Item>) -> Result<Vec<(Product, u32)>, Status> {
        let product = |item: Item| {
            let mut catalogue = self.catalogue.clone();
            async move {
                match catalogue.get(GetProductRequest { id: item.product.clone() }).await {
                    Ok(product) => Ok((product.into_inner(), item.quantity)),
                    Err(status) if status.code() == Code::NotFound => {
                        let why = format!("the cart has {:?}, which is not sold", item.product);
                        Err(refused("UNKNOWN_PRODUCT", why, [("product".to_owned(), item.product)].into()))
                    }
                    Err(status) => Err(status),
                }
            }
        };
        try_join_all(items.into_iter().map(product)).await
    }

    async fn offer(&self, parcel: &Parcel) -> Result<Offer, Status> {
        let ask = || {
            let mut shipping = self.shipping.clone();
            async move { shipping.quote(parcel.clone()).await }
        };
        tried(ask).await
    }

    async fn also_like(&self, bought: &[(Product, u32)]) -> Vec<Product> {
        let products = bought.iter().map(|(product, _)| product.id.clone()).collect();
        let asked = self.recommendation.clone().recommend(RecommendRequest { products, count_max: ALSO_LIKE }).await;
        asked.map(|reply| reply.into_inner().products).unwrap_or_else(|status| {
            tracing::warn!(%status, "no recommendations");
            Vec::new()
        })
    }

    /// Charges the card and hands the parcel to a carrier. If no carrier takes it, the money goes back.
    async fn pay_and_ship(
        &self,
        request: &PlaceOrderRequest,
        prices: &Prices,
        parcel: Parcel,
    ) -> Result<(String, String), Status> {
        let charge = ChargeRequest { amount: Some(prices.total.clone()), card: request.card.clone() };
        let mut payment = self.payment.clone();
        let transaction = payment.charge(charge).await?.into_inner().transaction;
        // Not tried again: a carrier may have taken it.
        match self.shipping.clone().ship(parcel).await {
            Ok(shipment) => {
                let Shipment { tracking } = shipment.into_inner();
                Ok((transaction, tracking))
            }
            Err(status) => {
                let refunded = payment.refund(RefundRequest { transaction: transaction.clone() }).await;
                if let Err(status) = refunded {
                    tracing::error!(transaction, %status, "not refunded");
                }
                Err(status)
            }
        }
    }

    async fn empty_cart(&self, user: &str) {
        if let Err(status) = self.cart.clone().empty(EmptyCartRequest { user: user.to_owned() }).await {
            tracing::warn!(user, %status, "the cart is not emptied");
        }
    }

    async fn confirm(&self, to: &str, order: &Order, also_like: &[Product]) -> bool {
        let mail = ConfirmRequest { to: to.to_owned(), order: Some(order.clone()), also_like: also_like.to_vec() };
        let sent = self.email.clone().confirm(mail).await;
        if let Err(status) = &sent {
            tracing::warn!(order = order.id, %status, "no confirmation");
        }
        sent.is_ok()
    }
}

#[tonic::async_trait]
impl Checkout for Orders {
    async fn place_order(&self, request: Request<PlaceOrderRequest>) -> Result<Response<PlaceOrderReply>, Status> {
        let request = request.into_inner();
        let address = checked(&request)?.clone();
        let items = self.cart.clone().get(GetCartRequest { user: request.user.clone() }).await?.into_inner().items;
        if items.is_empty() {
            return Err(refused("EMPTY_CART", "the cart is empty".to_owned(), HashMap::new()));
        }
        let bought = self.products(items).await?;
        let grams =
            bought.iter().fold(0_u32, |sum, (product, count)| sum.saturating_add(product.weight_grams.saturating_mul(*count)));
        let parcel = Parcel { address: Some(address.clone()), weight_grams: grams };

        let priced = prices::convert(self.currency.clone(), &bought, self.offer(&parcel), &request.currency);
        let (prices, also_like) = futures::try_join!(priced, async { Ok(self.also_like(&bought).await) })?;
        let (transaction, tracking) = self.pay_and_ship(&request, &prices, parcel).await?;

        let Prices { lines, shipping, total } = prices;
        let id = format!("{:016x}", rand::random::<u64>());
        let order =
            Order { id, lines, shipping: Some(shipping), total: Some(total), transaction, tracking, address: Some(address) };
        let ((), confirmed) = futures::join!(self.empty_cart(&request.user), self.confirm(&request.email, &order, &also_like));
        Ok(Response::new(PlaceOrderReply { order: Some(order), confirmed, also_like }))
    }
}

/// What a client has to say; the address.
fn checked(request: &PlaceOrderRequest) -> Result<&Address, Status> {
    let mut details = ErrorDetails::new();
    let mut require = |is_right: bool, field: &str, why: &str| {
        if !is_right {
            details.add_bad_request_violation(field, why);
        }
    };
    require(!request.user.is_empty(), "user", "is empty");
    require(request.email.contains('@'), "email", "is no address");
    require(request.card.is_some(), "card", "is missing");
    require(request.address.is_some(), "address", "is missing");
    match &request.address {
        Some(address) if !details.has_bad_request_violations() => Ok(address),
        _ => Err(Status::with_error_details(Code::InvalidArgument, "the request is not complete", details)),
    }
}

/// Why there is no order, for programs and for people.
fn refused(reason: &str, why: String, metadata: HashMap<String, String>) -> Status {
    Status::with_error_details(Code::FailedPrecondition, why, ErrorDetails::with_error_info(reason, "checkout.shop", metadata))
}

/// Asks a service, again after a pause if it is unavailable.
async fn tried<T, F>(mut ask: impl FnMut() -> F) -> Result<T, Status>
where
    F: std::future::Future<Output = Result<Response<T>, Status>>,
{
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match ask().await {
            Err(status) if status.code() == Code::Unavailable => tracing::warn!(%status, "asked again"),
            reply => return reply.map(Response::into_inner),
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    ask().await.map(Response::into_inner)
}
