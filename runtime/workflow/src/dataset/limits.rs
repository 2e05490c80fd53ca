//! Limits of datasets, in one place.

/// Bytes of JSON of all items that one `ItemReader` reads. They are a part of the execution's state until the Map has ended.
pub const ITEMS_BYTES_MAX: usize = 4 << 20;
/// Items that one `ItemReader` reads.
pub const READ_ITEMS_MAX: usize = 100_000;
/// Columns of a row of CSV.
pub const COLUMNS_MAX: usize = 1_000;
/// Bytes of the names of all columns, as Step Functions has it.
pub const HEADER_BYTES_MAX: usize = 10 << 10;
