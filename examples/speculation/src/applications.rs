//! The six workflows.

/// A workflow of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Application {
    /// A user logs in: 3 functions.
    Login,
    /// A user transfers money: 6 functions.
    Banking,
    /// A user books a flight: 11 functions.
    FlightBook,
    /// A user books a hotel: 7 functions.
    HotelBook,
    /// A home is heated or cooled: 7 functions.
    SmartHome,
    /// A user buys what is in a cart: 13 functions.
    OnlinePurchase,
}

use Application::{Banking, FlightBook, HotelBook, Login, OnlinePurchase, SmartHome};

impl Application {
    /// All of them, in the paper's order.
    pub const ALL: [Application; 6] = [Login, Banking, FlightBook, HotelBook, SmartHome, OnlinePurchase];

    /// The name of its workflow, which is its route, too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Login => "login",
            Banking => "banking",
            FlightBook => "flight-book",
            HotelBook => "hotel-book",
            SmartHome => "smart-home",
            OnlinePurchase => "online-purchase",
        }
    }

    /// Its definition in Amazon States Language.
    #[must_use]
    pub fn definition(self) -> &'static str {
        match self {
            Login => include_str!("../workflows/login.asl.json"),
            Banking => include_str!("../workflows/banking.asl.json"),
            FlightBook => include_str!("../workflows/flight-book.asl.json"),
            HotelBook => include_str!("../workflows/hotel-book.asl.json"),
            SmartHome => include_str!("../workflows/smart-home.asl.json"),
            OnlinePurchase => include_str!("../workflows/online-purchase.asl.json"),
        }
    }

    /// What the names of its functions begin with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Login => "login-",
            Banking => "bank-",
            FlightBook => "flight-",
            HotelBook => "hotel-",
            SmartHome => "home-",
            OnlinePurchase => "shop-",
        }
    }

    /// Its functions.
    pub fn functions(self) -> impl Iterator<Item = &'static str> {
        crate::FUNCTIONS.into_iter().filter(move |name| name.starts_with(self.prefix()))
    }

    /// How many branches it has.
    #[must_use]
    pub fn branches(self) -> usize {
        match self {
            Login => 1,
            Banking | HotelBook | SmartHome => 2,
            FlightBook | OnlinePurchase => 4,
        }
    }
}
