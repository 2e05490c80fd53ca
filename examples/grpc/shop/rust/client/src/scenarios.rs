//! Orders that succeed and others that do not. What is printed is the same wherever the services run: numbers that are made at random are checked, and left out.

use std::collections::HashSet;
use std::error::Error;
use std::time::{Duration, Instant};

use shop::pb::{
    AddRequest, Card, EmptyCartRequest, GetCartRequest, GetProductRequest, Item, ListRequest, Money, PlaceOrderReply,
    PlaceOrderRequest, Product,
};
use tonic::{Request, Status};
use tonic_types::StatusExt as _;

use crate::{order, Shop};

/// A client's patience. With `CARRIER_DELAY_MS=200` shipping takes longer.
const PATIENCE: Duration = Duration::from_millis(100);

/// Runs all of them.
pub async fn all(shop: &mut Shop) -> Result<(), Box<dyn Error>> {
    browse(shop).await?;
    let mut numbers = HashSet::new();
    for currency in ["EUR", "USD", "JPY"] {
        say("cart", &items(&shop.fill("ada", &[("mug", 2), ("board", 1), ("pen", 1), ("mug", 1)]).await?));
        let request = PlaceOrderRequest { currency: currency.to_owned(), ..order("ada") };
        let reply = place(shop, currency, request).await?;
        let order = reply.and_then(|reply| reply.order).ok_or("no order")?;
        for number in [order.id, order.transaction, order.tracking] {
            if !numbers.insert(number.clone()) || number.len() < 12 {
                return Err(format!("{number} is no new number").into());
            }
        }
    }
    place(shop, "empty cart", order("ada")).await?;
    refused(shop).await?;
    impatient(shop).await
}

/// Runs one that may fail because a service is away, of which each says something else.
pub async fn one(shop: &mut Shop) -> Result<(), Box<dyn Error>> {
    shop.fill("lea", &[("lamp", 1)]).await?;
    let placed = shop.checkout.place_order(order("lea")).await;
    say("order", &placed.map_or_else(|status| format!("{:?}", status.code()), |reply| self::placed(reply.get_ref())));
    say("cart", &items(&shop.cart.get(GetCartRequest { user: "lea".to_owned() }).await?.into_inner().items));
    Ok(shop.cart.empty(EmptyCartRequest { user: "lea".to_owned() }).await.map(drop)?)
}

/// What a customer looks at.
async fn browse(shop: &mut Shop) -> Result<(), Status> {
    for category in ["", "table", "garden"] {
        let mut stream = shop.catalogue.list(ListRequest { category: category.to_owned() }).await?.into_inner();
        let mut all = Vec::new();
        while let Some(product) = stream.message().await? {
            all.push(product);
        }
        say(&format!("list {category:?}"), &products(&all));
    }
    for id in ["mug", "sofa"] {
        let found = shop.catalogue.get(GetProductRequest { id: id.to_owned() }).await;
        say(id, &found.map_or_else(|status| described(&status), |product| products(&[product.into_inner()])));
    }
    for item in
        [None, Some(Item { product: "mug".to_owned(), quantity: 0 }), Some(Item { product: "mug".to_owned(), quantity: 999 })]
    {
        let added = shop.cart.add(AddRequest { user: "ben".to_owned(), item }).await;
        say("add", &added.map_or_else(|status| described(&status), |cart| items(&cart.into_inner().items)));
    }
    // All or none.
    let filled = shop.fill("ben", &[("pen", 1), ("mug", 2)]).await;
    say("fill", &filled.map_or_else(|status| described(&status), |cart| items(&cart)));
    let cart = shop.cart.get(GetCartRequest { user: "ben".to_owned() }).await?.into_inner();
    say("cart", &items(&cart.items));
    shop.cart.empty(EmptyCartRequest { user: "ben".to_owned() }).await.map(drop)
}

/// Orders that are refused: the cart stays as it is.
async fn refused(shop: &mut Shop) -> Result<(), Box<dyn Error>> {
    shop.fill("eve", &[("kettle", 1)]).await?;
    let card = |number: &str, year| Some(Card { number: number.to_owned(), year, month: 1 });
    let mut abroad = order("eve");
    abroad.address.get_or_insert_default().country = "AQ".to_owned();
    let requests = [
        ("declined", PlaceOrderRequest { card: card("4000000000000002", 2099), ..order("eve") }),
        ("expired", PlaceOrderRequest { card: card("4242424242424242", 2020), ..order("eve") }),
        ("no such card", PlaceOrderRequest { card: card("1234", 2099), ..order("eve") }),
        ("no such currency", PlaceOrderRequest { currency: "XYZ".to_owned(), ..order("eve") }),
        ("no such country", abroad),
        ("nothing", PlaceOrderRequest { user: "eve".to_owned(), ..PlaceOrderRequest::default() }),
    ];
    for (name, request) in requests {
        place(shop, name, request).await?;
    }
    shop.fill("eve", &[("sofa", 1)]).await?;
    place(shop, "unknown product", order("eve")).await?;
    say("cart", &items(&shop.cart.get(GetCartRequest { user: "eve".to_owned() }).await?.into_inner().items));
    shop.cart.empty(EmptyCartRequest { user: "eve".to_owned() }).await?;
    Ok(())
}

/// An order whose time is over before it is placed. How that is said depends on where it is noticed first, so it is left out.
async fn impatient(shop: &mut Shop) -> Result<(), Box<dyn Error>> {
    shop.fill("tom", &[("lamp", 1)]).await?;
    let mut request = Request::new(order("tom"));
    request.set_timeout(PATIENCE);
    let start = Instant::now();
    match shop.checkout.place_order(request).await {
        Ok(_) => say("impatient", "an order, in time"),
        Err(_) if start.elapsed() > PATIENCE * 5 => return Err(format!("{:?} is too late", start.elapsed()).into()),
        Err(_) => say("impatient", "no order"),
    }
    // What is still under way comes to its end.
    tokio::time::sleep(PATIENCE * 10).await;
    say("cart", &items(&shop.cart.get(GetCartRequest { user: "tom".to_owned() }).await?.into_inner().items));
    Ok(shop.cart.empty(EmptyCartRequest { user: "tom".to_owned() }).await.map(drop)?)
}

/// Places an order and says what became of it.
async fn place(shop: &mut Shop, name: &str, request: PlaceOrderRequest) -> Result<Option<PlaceOrderReply>, Box<dyn Error>> {
    let mut request = Request::new(request);
    let id = format!("test-{}", name.replace(' ', "-"));
    request.metadata_mut().insert("x-request-id", id.parse()?);
    match shop.checkout.place_order(request).await {
        Ok(reply) => {
            let is_same = reply.metadata().get("x-request-id").is_some_and(|value| value == id.as_str());
            say(name, &placed(reply.get_ref()));
            say(name, if is_same { "the request's number came back" } else { "another number came back" });
            Ok(Some(reply.into_inner()))
        }
        Err(status) => {
            say(name, &described(&status));
            Ok(None)
        }
    }
}

fn say(what: &str, text: &str) {
    println!("{what}: {text}");
}

fn placed(reply: &PlaceOrderReply) -> String {
    let Some(order) = &reply.order else { return "no order".to_owned() };
    let line = |line: &shop::pb::OrderLine| {
        let name = line.product.as_ref().map_or("?", |product| &product.name);
        format!("{} {name} {}", line.quantity, amount(line.cost.as_ref()))
    };
    let lines: Vec<_> = order.lines.iter().map(line).collect();
    format!(
        "{}; shipping {}; total {}; to {}; confirmed: {}; also: {}",
        lines.join(", "),
        amount(order.shipping.as_ref()),
        amount(order.total.as_ref()),
        order.address.as_ref().map_or("?", |address| &address.city),
        reply.confirmed,
        products(&reply.also_like)
    )
}

fn amount(money: Option<&Money>) -> String {
    money.map_or("nothing".to_owned(), |money| format!("{} {}.{:09}", money.currency, money.units, money.nanos))
}

fn products(all: &[Product]) -> String {
    let one = |product: &Product| format!("{} ({})", product.id, amount(product.price.as_ref()));
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn items(all: &[Item]) -> String {
    all.iter().map(|item| format!("{} {}", item.quantity, item.product)).collect::<Vec<_>>().join(", ")
}

/// A status with its details.
fn described(status: &Status) -> String {
    let details = status.get_error_details();
    let mut text = format!("{:?}: {}", status.code(), status.message());
    if let Some(info) = details.error_info() {
        let mut metadata: Vec<_> = info.metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
        metadata.sort_unstable();
        text += &format!(" [{} {} {}]", info.domain, info.reason, metadata.join(" "));
    }
    for violation in details.bad_request().into_iter().flat_map(|bad| &bad.field_violations) {
        text += &format!(" [{}: {}]", violation.field, violation.description);
    }
    text
}
