//! Converts amounts by a table of rates, which is a file of the program.

use std::collections::BTreeMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;

use shop::money::{self, Rate};
use shop::pb::currency_server::{Currency, CurrencyServer};
use shop::pb::{Conversion, Currencies, Money};
use shop::telemetry;
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// What a euro is worth, by currency.
struct Rates(BTreeMap<String, Rate>);

impl Rates {
    /// Reads lines of a currency, its rate and the digits that its amounts have.
    fn new(csv: &str) -> Result<Rates, Box<dyn Error>> {
        let line = |line: &str| {
            let mut fields = line.split(',');
            let (code, rate, digits) = (fields.next()?, fields.next()?, fields.next()?);
            let (units, fraction) = rate.split_once('.').unwrap_or((rate, ""));
            let millionths = units.parse::<u64>().ok()? * 1_000_000 + format!("{fraction:0<6.6}").parse::<u64>().ok()?;
            Some((code.to_owned(), Rate { millionths, digits: digits.parse().ok()? }))
        };
        csv.lines().map(|text| line(text).ok_or_else(|| format!("{text}: no rate").into())).collect::<Result<_, _>>().map(Rates)
    }

    fn convert(&self, conversion: &Conversion) -> Result<Money, Status> {
        let Some(from) = &conversion.from else { return Err(Status::invalid_argument("from: no amount")) };
        let rate =
            |code: &str| self.0.get(code).copied().ok_or_else(|| Status::invalid_argument(format!("no currency {code:?}")));
        let (by, to) = (rate(&from.currency)?, rate(&conversion.to)?);
        money::convert(from, by, &conversion.to, to).map_err(|error| Status::out_of_range(error.to_string()))
    }
}

struct Converter(Arc<Rates>);

#[tonic::async_trait]
impl Currency for Converter {
    type ConvertStream = Pin<Box<dyn Stream<Item = Result<Money, Status>> + Send>>;

    async fn supported(&self, _: Request<()>) -> Result<Response<Currencies>, Status> {
        Ok(Response::new(Currencies { codes: self.0 .0.keys().cloned().collect() }))
    }

    async fn convert(&self, request: Request<Streaming<Conversion>>) -> Result<Response<Self::ConvertStream>, Status> {
        let rates = self.0.clone();
        let answers = request.into_inner().map(move |conversion| rates.convert(&conversion?));
        Ok(Response::new(Box::pin(answers)))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    telemetry::begin();
    let rates = Arc::new(Rates::new(include_str!("rates.csv"))?);
    let server = Server::builder().layer(telemetry::Layer).add_service(CurrencyServer::new(Converter(rates)));
    Ok(server.serve_with_shutdown(shop::listen_address(50053)?, shop::terminated()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_exactly() {
        let rates = Rates::new(include_str!("rates.csv")).unwrap();
        assert_eq!(rates.0["EUR"], Rate { millionths: 1_000_000, digits: 2 });
        assert_eq!(rates.0["USD"], Rate { millionths: 1_083_700, digits: 2 });
        assert_eq!(rates.0["JPY"], Rate { millionths: 163_420_000, digits: 0 });
        assert!(Rates::new("EUR,one,2").is_err());
    }

    #[test]
    fn unknown_currencies_are_named() {
        let rates = Rates::new(include_str!("rates.csv")).unwrap();
        let from = Money { currency: "EUR".to_owned(), units: 10, nanos: 0 };
        let to = |to: &str| rates.convert(&Conversion { from: Some(from.clone()), to: to.to_owned() });
        assert_eq!(to("USD").unwrap(), Money { currency: "USD".to_owned(), units: 10, nanos: 840_000_000 });
        assert_eq!(to("XYZ").unwrap_err().message(), "no currency \"XYZ\"");
    }
}
