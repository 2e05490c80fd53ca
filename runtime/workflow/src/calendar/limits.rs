//! Limits of schedules.

/// Bytes of an expression.
pub const EXPRESSION_BYTES_MAX: usize = 256;
/// Bytes of the name of a time zone. The longest of IANA's has 32.
pub const ZONE_BYTES_MAX: usize = 64;
/// The first year that a schedule may name, as EventBridge has it.
pub const YEAR_MIN: u16 = 1970;
/// The last year that a schedule may name, as EventBridge has it.
pub const YEAR_MAX: u16 = 2199;
/// Seconds between two times of a rate: 100 years.
pub const RATE_SECONDS_MAX: u64 = 100 * 366 * 86_400;
/// Times that one catch-up gives, whatever its policy says.
pub const CATCH_UP_MAX: usize = 1_000;
