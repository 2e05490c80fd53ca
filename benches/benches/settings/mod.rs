//! How long all phases are measured: short, since there are many, and each takes microseconds.

use std::time::Duration;

use criterion::Criterion;

pub(crate) fn settings() -> Criterion {
    Criterion::default().sample_size(50).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2))
}
