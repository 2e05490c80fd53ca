//! A thread's counts, which another thread adds up while the first goes on.

use std::time::Duration;

// Both sides are threads of the model: loom does not run others between two reads of the thread in which the model began.

use loom::sync::Arc;
use loom::thread;

use crate::counters::{Count, Histogram, Sum};

/// Fails if `Count::add` stores anything but the sum, such as zero before it.
#[test]
fn a_count_only_grows_and_nothing_is_lost() {
    loom::model(|| {
        let count = Arc::new(Count::default());
        let writer = {
            let count = Arc::clone(&count);
            thread::spawn(move || (0..3).for_each(|_| count.add(1)))
        };
        let reader = {
            let count = Arc::clone(&count);
            thread::spawn(move || (count.get(), count.get()))
        };
        writer.join().unwrap();
        let (first, second) = reader.join().unwrap();
        assert!(first <= second && second <= 3, "{first}, then {second}");
        assert_eq!(count.get(), 3);
    });
}

/// Sum and buckets are read one after the other, so a scrape may have one without the other; the next has both. Fails if `observe` leaves out the sum.
#[test]
fn a_duration_is_in_the_sum_and_in_a_bucket_once_its_thread_has_gone_on() {
    loom::model(|| {
        let histogram = Arc::new(Histogram::default());
        let writer = {
            let histogram = Arc::clone(&histogram);
            thread::spawn(move || histogram.observe(Duration::from_micros(1)))
        };
        let read = |histogram: &Histogram| {
            let mut sum = Sum::default();
            sum.add(histogram);
            (sum.count(), sum.seconds())
        };
        let reader = {
            let histogram = Arc::clone(&histogram);
            thread::spawn(move || read(&histogram))
        };
        writer.join().unwrap();
        let (count, seconds) = reader.join().unwrap();
        assert!(count <= 1 && [0.0, 1e-6].contains(&seconds), "{count} in {seconds} s");
        assert_eq!(read(&histogram), (1, 1e-6));
    });
}
