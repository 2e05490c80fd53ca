//! What all threads share: which traces are wanted, and the queue of spans that are over.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::rand::{GetRandomFlags, getrandom};
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::context::{SpanId, TraceId};
use super::span::Span;

/// Spans that wait for the exporter; further ones are dropped.
pub const QUEUE_SPANS_MAX: usize = 4_096;
/// Spans in one request to the collector.
pub const BATCH_SPANS_MAX: usize = 512;
/// How much randomness is fetched from the system at once: as much as no signal interrupts (getrandom(2)).
const RANDOM_BYTES: usize = 256;

/// The side of the threads that serve.
#[derive(Debug)]
pub struct Tracer {
    /// Of 2^63 traces that begin here, how many are wanted.
    wanted: u64,
    spans: Sender<Span>,
    /// Told when there is a batch, so that the exporter does not wait for its time.
    pub(super) batch: Notify,
    pub(super) counts: Counts,
}

/// What became of spans.
#[derive(Debug, Default)]
pub struct Counts {
    pub(super) delivered: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) dropped: AtomicU64,
}

thread_local! {
    /// Random bytes of this thread, and how many of them are used up.
    static RANDOM: RefCell<([u8; RANDOM_BYTES], usize)> = const { RefCell::new(([0; RANDOM_BYTES], RANDOM_BYTES)) };
}

impl Tracer {
    /// One that wants that part of the traces that begin here, and where its spans come out.
    #[must_use]
    pub fn new(sample_ratio: f64) -> (Tracer, Receiver<Span>) {
        let (spans, queue) = mpsc::channel(QUEUE_SPANS_MAX);
        let wanted = (sample_ratio.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64;
        (Tracer { wanted, spans, batch: Notify::new(), counts: Counts::default() }, queue)
    }

    /// Whether a trace that begins here is wanted: by its number, as OpenTelemetry's own libraries decide, so that all servers with the same ratio want
    /// the same ones.
    #[must_use]
    pub fn samples(&self, trace: TraceId) -> bool {
        let low = u128::from_be_bytes(trace.0) as u64;
        low >> 1 < self.wanted
    }

    /// Spans by what became of them: taken by the collector, not taken by it, dropped since the queue was full.
    #[must_use]
    pub fn counts(&self) -> [(&'static str, u64); 3] {
        let Counts { delivered, refused, dropped } = &self.counts;
        // Relaxed, here and below: numbers that order nothing else.
        [("delivered", delivered), ("refused", refused), ("dropped", dropped)]
            .map(|(result, count)| (result, count.load(Ordering::Relaxed)))
    }

    /// Queues a span.
    pub(super) fn submit(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if self.spans.max_capacity() - self.spans.capacity() >= BATCH_SPANS_MAX {
            self.batch.notify_one();
        }
    }
}

/// A new trace's number.
pub(super) fn trace_id() -> TraceId {
    TraceId(random())
}

/// A new span's number.
pub(super) fn span_id() -> SpanId {
    SpanId(random())
}

/// Random bytes, not all of them zero.
fn random<const N: usize>() -> [u8; N] {
    RANDOM.with_borrow_mut(|(bytes, used)| {
        loop {
            if *used + N > RANDOM_BYTES {
                // Where the system has no random numbers, all have the same: what is traced is of little use then, but valid.
                if !getrandom(&mut *bytes, GetRandomFlags::empty()).is_ok_and(|count| count == RANDOM_BYTES) {
                    bytes.fill(1);
                }
                *used = 0;
            }
            let mut next = [0; N];
            next.copy_from_slice(&bytes[*used..*used + N]);
            *used += N;
            if next != [0; N] {
                return next;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_and_a_ratio_is_kept() {
        let traces: Vec<TraceId> = (0..20_000).map(|_| trace_id()).collect();
        assert!(traces.windows(2).all(|pair| pair[0] != pair[1]));
        for ratio in [0.0, 0.1, 0.5, 1.0] {
            let tracer = Tracer::new(ratio).0;
            let wanted = traces.iter().filter(|trace| tracer.samples(**trace)).count() as f64 / traces.len() as f64;
            // Ten standard deviations and more.
            assert!((wanted - ratio).abs() < 0.04, "{ratio}: {wanted}");
            assert!(ratio != 0.0 && ratio != 1.0 || wanted == ratio, "{ratio}: {wanted}");
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let (tracer, _queue) = Tracer::new(1.0);
        let (name, id) = ("x".into(), span_id());
        let (kind, attributes) = (super::super::Kind::Internal, Vec::new());
        let (begin_unix_ns, end_unix_ns) = (1, 2);
        let span = Span {
            trace: trace_id(),
            id,
            parent: None,
            state: None,
            name,
            kind,
            begin_unix_ns,
            end_unix_ns,
            attributes,
            error: None,
        };
        (0..QUEUE_SPANS_MAX + 7).for_each(|_| tracer.submit(span.clone()));
        assert_eq!(tracer.counts()[2], ("dropped", 7));
    }
}
