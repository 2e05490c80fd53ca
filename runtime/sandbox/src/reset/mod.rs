//! Sandboxes that are used again: what they begin as, and where they wait for their next request.

mod pool;
mod pools;
mod prefetch;
mod recency;
mod template;

pub use pool::Pool;
pub use pools::Pools;
pub use prefetch::prefetch;
pub use template::Template;
