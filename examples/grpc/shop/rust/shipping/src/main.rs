//! Knows what carriers take, and hands parcels to them.

use std::error::Error;
use std::time::Duration;

use shop::pb::shipping_server::{Shipping, ShippingServer};
use shop::pb::{Money, Offer, Parcel, Shipment};
use shop::telemetry;
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// What a carrier takes: cents for a parcel, cents for each kilogram that is begun, days.
struct Zone {
    countries: &'static [&'static str],
    parcel: u32,
    kilogram: u32,
    days: u32,
}

const ZONES: [Zone; 3] = [
    Zone { countries: &["DE"], parcel: 390, kilogram: 50, days: 2 },
    Zone { countries: &["AT", "BE", "CZ", "DK", "ES", "FR", "IT", "NL", "NO", "PL", "SE"], parcel: 890, kilogram: 120, days: 4 },
    Zone { countries: &["AU", "CA", "CH", "GB", "IN", "JP", "US"], parcel: 1_950, kilogram: 480, days: 9 },
];
/// No carrier takes more.
const GRAMS_MAX: u32 = 30_000;

struct Carriers {
    /// How long a carrier takes to answer.
    delay: Duration,
}

impl Carriers {
    fn offer(parcel: &Parcel) -> Result<Offer, Status> {
        let country = parcel.address.as_ref().map_or("", |address| &address.country);
        let zone = ZONES.iter().find(|zone| zone.countries.contains(&country));
        let wrong = |field: &str, why: String| {
            let details = ErrorDetails::with_bad_request_violation(field, &why);
            Status::with_error_details(Code::InvalidArgument, format!("{field}: {why}"), details)
        };
        let zone = zone.ok_or_else(|| wrong("address.country", format!("no carrier goes to {country:?}")))?;
        if parcel.weight_grams > GRAMS_MAX {
            return Err(wrong("weight_grams", format!("{} is above {GRAMS_MAX}", parcel.weight_grams)));
        }
        let cents = zone.parcel + zone.kilogram * parcel.weight_grams.div_ceil(1_000);
        let cost = Money { currency: "EUR".to_owned(), units: i64::from(cents / 100), nanos: (cents % 100) as i32 * 10_000_000 };
        Ok(Offer { cost: Some(cost), days: zone.days })
    }

    async fn ask(&self) {
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
    }
}

#[tonic::async_trait]
impl Shipping for Carriers {
    async fn quote(&self, request: Request<Parcel>) -> Result<Response<Offer>, Status> {
        let offer = Self::offer(request.get_ref())?;
        self.ask().await;
        Ok(Response::new(offer))
    }

    async fn ship(&self, request: Request<Parcel>) -> Result<Response<Shipment>, Status> {
        Self::offer(request.get_ref())?;
        self.ask().await;
        Ok(Response::new(Shipment { tracking: format!("{:012x}", rand::random::<u64>() >> 16) }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    telemetry::begin();
    let delay = Duration::from_millis(shop::variable("CARRIER_DELAY_MS", "0").parse()?);
    let server = Server::builder().layer(telemetry::Layer).add_service(ShippingServer::new(Carriers { delay }));
    Ok(server.serve_with_shutdown(shop::listen_address(50054)?, shop::terminated()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shop::pb::Address;

    #[test]
    fn offers() {
        let parcel = |country: &str, weight_grams| {
            let address = Address { country: country.to_owned(), ..Address::default() };
            Carriers::offer(&Parcel { address: Some(address), weight_grams })
        };
        let euros = |offer: Offer| offer.cost.map(|cost| (cost.units, cost.nanos));
        assert_eq!(parcel("DE", 1_001).map(euros).unwrap(), Some((4, 900_000_000)));
        assert_eq!(parcel("US", 0).map(euros).unwrap(), Some((19, 500_000_000)));
        assert_eq!(parcel("XX", 1).unwrap_err().message(), "address.country: no carrier goes to \"XX\"");
        assert_eq!(
            parcel("FR", 30_001).unwrap_err().get_details_bad_request().unwrap().field_violations[0].field,
            "weight_grams"
        );
    }
}
