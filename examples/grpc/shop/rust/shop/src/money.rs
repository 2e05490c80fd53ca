//! Exact arithmetic on amounts. An amount is a whole number of nanos; nothing here is a floating-point number.

use std::cmp::Ordering;
use std::fmt;

use crate::pb::Money;

const NANOS: i128 = 1_000_000_000;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoneyError {
    /// Nanos of a whole unit or more, or with another sign than the units.
    Malformed,
    /// Amounts of two currencies cannot be added.
    Currencies(String, String),
    /// The result has more units than 64 bits.
    Overflow,
}

impl fmt::Display for MoneyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoneyError::Malformed => f.write_str("nanos are less than a unit and have its sign"),
            MoneyError::Currencies(one, other) => write!(f, "{one} and {other} cannot be added"),
            MoneyError::Overflow => f.write_str("the amount is too large"),
        }
    }
}

impl std::error::Error for MoneyError {}

/// What one unit of a reference currency is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Millionths of a unit.
    pub millionths: u64,
    /// Digits behind the point that amounts of this currency have, at most 9.
    pub digits: u32,
}

/// An amount in nanos.
fn nanos(money: &Money) -> Result<i128, MoneyError> {
    let (units, nanos) = (i128::from(money.units), i128::from(money.nanos));
    if nanos.abs() >= NANOS || units.signum() * nanos.signum() < 0 {
        return Err(MoneyError::Malformed);
    }
    Ok(units * NANOS + nanos)
}

fn money(currency: &str, nanos: i128) -> Result<Money, MoneyError> {
    let units = i64::try_from(nanos / NANOS).map_err(|_| MoneyError::Overflow)?;
    // Both have the sign of the whole; the rest is less than a unit.
    Ok(Money { currency: currency.to_owned(), units, nanos: (nanos % NANOS) as i32 })
}

/// The sum of two amounts of one currency.
pub fn add(one: &Money, other: &Money) -> Result<Money, MoneyError> {
    if one.currency != other.currency {
        return Err(MoneyError::Currencies(one.currency.clone(), other.currency.clone()));
    }
    money(&one.currency, nanos(one)? + nanos(other)?)
}

/// So many times an amount.
pub fn times(one: &Money, count: u32) -> Result<Money, MoneyError> {
    money(&one.currency, nanos(one)? * i128::from(count))
}

/// An amount in another currency, rounded to the digits that it has; a half goes to the even neighbour.
pub fn convert(from: &Money, rate: Rate, currency: &str, to: Rate) -> Result<Money, MoneyError> {
    let product = nanos(from)?.checked_mul(i128::from(to.millionths)).ok_or(MoneyError::Overflow)?;
    let step = 10_i128.pow(9 - to.digits.min(9));
    let divisor = i128::from(rate.millionths.max(1)).checked_mul(step).ok_or(MoneyError::Overflow)?;
    let steps = divide(product, divisor).checked_mul(step).ok_or(MoneyError::Overflow)?;
    money(currency, steps)
}

/// The nearest whole number to a quotient. The divisor is positive.
fn divide(number: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (number.div_euclid(divisor), number.rem_euclid(divisor));
    match rest.cmp(&(divisor - rest)) {
        Ordering::Less => quotient,
        Ordering::Greater => quotient + 1,
        Ordering::Equal => quotient + quotient.rem_euclid(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eur(units: i64, nanos: i32) -> Money {
        Money { currency: "EUR".to_owned(), units, nanos }
    }

    #[test]
    fn sums_carry() {
        assert_eq!(add(&eur(1, 600_000_000), &eur(2, 500_000_000)), Ok(eur(4, 100_000_000)));
        assert_eq!(add(&eur(-1, -600_000_000), &eur(2, 500_000_000)), Ok(eur(0, 900_000_000)));
        assert_eq!(add(&eur(-1, -600_000_000), &eur(1, 0)), Ok(eur(0, -600_000_000)));
        // In floating-point numbers this is 0.30000000000000004.
        assert_eq!(add(&eur(0, 100_000_000), &eur(0, 200_000_000)), Ok(eur(0, 300_000_000)));
    }

    #[test]
    fn products_carry() {
        assert_eq!(times(&eur(0, 990_000_000), 100), Ok(eur(99, 0)));
        assert_eq!(times(&eur(-1, -1), 3), Ok(eur(-3, -3)));
        assert_eq!(times(&eur(9, 9), 0), Ok(eur(0, 0)));
    }

    #[test]
    fn amounts_that_are_none_are_refused() {
        let usd = Money { currency: "USD".to_owned(), units: 1, nanos: 0 };
        assert_eq!(add(&eur(1, 0), &usd), Err(MoneyError::Currencies("EUR".to_owned(), "USD".to_owned())));
        assert_eq!(add(&eur(1, -1), &eur(1, 0)), Err(MoneyError::Malformed));
        assert_eq!(times(&eur(0, 1_000_000_000), 1), Err(MoneyError::Malformed));
        assert_eq!(times(&eur(i64::MAX, 0), 2), Err(MoneyError::Overflow));
        assert_eq!(add(&eur(i64::MIN, 0), &eur(0, -1)), Ok(eur(i64::MIN, -1)));
        assert_eq!(add(&eur(i64::MIN, 0), &eur(-1, 0)), Err(MoneyError::Overflow));
    }

    #[test]
    fn conversions_are_rounded_to_what_the_currency_has() {
        let rate = |millionths, digits| Rate { millionths, digits };
        let (euro, dollar, yen) = (rate(1_000_000, 2), rate(1_083_700, 2), rate(163_420_000, 0));
        let converted = |from: Money, by, currency, to| convert(&from, by, currency, to).map(|money| (money.units, money.nanos));
        // 19.99 * 1.0837 = 21.663163
        assert_eq!(converted(eur(19, 990_000_000), euro, "USD", dollar), Ok((21, 660_000_000)));
        assert_eq!(converted(eur(19, 990_000_000), euro, "JPY", yen), Ok((3267, 0)));
        assert_eq!(converted(eur(-19, -990_000_000), euro, "JPY", yen), Ok((-3267, 0)));
        // 0.50 and 1.50 of a currency without digits: both to the even neighbour.
        let whole = rate(1_000_000, 0);
        assert_eq!(converted(eur(0, 500_000_000), euro, "XXX", whole), Ok((0, 0)));
        assert_eq!(converted(eur(1, 500_000_000), euro, "XXX", whole), Ok((2, 0)));
        assert_eq!(converted(eur(-1, -500_000_000), euro, "XXX", whole), Ok((-2, 0)));
        assert_eq!(converted(eur(i64::MAX, 0), euro, "JPY", yen), Err(MoneyError::Overflow));
    }

    #[test]
    fn an_amount_comes_back_as_it_went() {
        let (euro, dollar) = (Rate { millionths: 1_000_000, digits: 2 }, Rate { millionths: 1_083_700, digits: 9 });
        for cents in (0..1_000_000).step_by(77) {
            let there = convert(&eur(cents / 100, (cents % 100) as i32 * 10_000_000), euro, "USD", dollar).unwrap();
            let back = convert(&there, dollar, "EUR", euro).unwrap();
            assert_eq!((back.units, back.nanos), (cents / 100, (cents % 100) as i32 * 10_000_000), "{there:?}");
        }
    }
}
