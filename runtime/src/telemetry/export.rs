//! The exporter: a thread that takes spans to the collector, in batches.
//!
//! A batch goes when it is full or a second old. What the collector does not take at once is tried again a few times, later each time, while the
//! queue fills; then it is given up, and counted. The log says when deliveries begin to fail and when they succeed again, not each time between.
//! When the server stops, what is there is delivered within [`FLUSH_TIME_MAX`], each batch tried once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc as std_mpsc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use opentelemetry_proto::tonic::resource::v1::Resource;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::settings::{Settings, TelemetryError};
use super::span::Span;
use super::tracer::{BATCH_SPANS_MAX, Tracer};
use super::{otlp, tracer};
use crate::upstream::Upstream;

/// How long the first span of a batch waits for others.
const BATCH_TIME: Duration = Duration::from_secs(1);
/// How often a batch is tried.
const ATTEMPTS_MAX: u32 = 5;
/// How long until it is tried again; each time twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, also where the collector asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long a server that stops waits for the collector.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(3);
/// What of an answer is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A running exporter.
#[derive(Debug)]
pub struct Telemetry {
    tracer: Arc<Tracer>,
    stop: watch::Sender<bool>,
    ended: std_mpsc::Receiver<()>,
}

impl Telemetry {
    /// Starts it. The thread has the privileges and the signals of the one that calls.
    ///
    /// # Errors
    /// When the system has no thread, or nothing to wait with.
    pub fn start(settings: Settings) -> Result<Telemetry, TelemetryError> {
        let (tracer, queue) = Tracer::new(settings.sample_ratio);
        let (tracer, (stop, stopped)) = (Arc::new(tracer), watch::channel(false));
        let (ending, ended) = std_mpsc::channel();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(1).thread_name("telemetry").build();
        let runtime = runtime.map_err(TelemetryError::Thread)?;
        let mut exporter = Exporter::new(settings, Arc::clone(&tracer), queue, stopped);
        let run = move || {
            runtime.block_on(exporter.run());
            exporter.report_rest();
            let _ = ending.send(());
            // A name that is still being resolved holds up nothing else.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("telemetry".to_owned()).spawn(run).map_err(TelemetryError::Thread)?;
        Ok(Telemetry { tracer, stop, ended })
    }

    /// For threads that have spans.
    #[must_use]
    pub const fn tracer(&self) -> &Arc<Tracer> {
        &self.tracer
    }

    /// Delivers what is there, if that is soon done.
    pub fn stop(self) {
        let _ = self.stop.send(true);
        // It keeps its own time; this is for one that has not even begun to.
        let _ = self.ended.recv_timeout(2 * FLUSH_TIME_MAX);
    }
}

/// What a request to the collector came to.
enum Answer {
    /// Taken, but for so many spans.
    Taken { rejected: u64, why: String },
    /// Not taken.
    Refused(String),
    /// Not taken now; perhaps later, and not before that.
    Later(String, Duration),
}

struct Exporter {
    settings: Settings,
    resource: Resource,
    upstream: Arc<Upstream>,
    tracer: Arc<Tracer>,
    queue: Receiver<Span>,
    stopped: watch::Receiver<bool>,
    batch: Vec<Span>,
    /// Spans that were given up since the collector took the last ones.
    lost: u64,
    /// Whether the log says that spans are dropped.
    told_dropped: bool,
}

impl Exporter {
    fn new(settings: Settings, tracer: Arc<Tracer>, queue: Receiver<Span>, stopped: watch::Receiver<bool>) -> Exporter {
        let resource = otlp::resource(&settings.service_name, &settings.resource);
        let upstream = Arc::new(Upstream::new(Arc::clone(&settings.allowed), Arc::clone(&settings.roots)));
        Exporter { settings, resource, upstream, tracer, queue, stopped, batch: Vec::new(), lost: 0, told_dropped: false }
    }

    /// Delivers until the server has stopped and nothing is left, or the time for that is over.
    async fn run(&mut self) {
        let mut stopped = self.stopped.clone();
        let too_late = async move {
            // It is told before its other side goes.
            let _ = stopped.wait_for(|stopped| *stopped).await;
            sleep(FLUSH_TIME_MAX).await;
        };
        let deliver = async {
            while self.collect().await {
                self.deliver().await;
            }
        };
        tokio::select! {
            () = deliver => {}
            () = too_late => {}
        }
    }

    /// Takes a batch from the queue; false when there is none left and the server has stopped.
    async fn collect(&mut self) -> bool {
        let tracer = Arc::clone(&self.tracer);
        if !*self.stopped.borrow() {
            let first = tokio::select! {
                first = self.queue.recv() => first,
                _ = self.stopped.changed() => None,
            };
            self.batch.extend(first);
        }
        if !*self.stopped.borrow() && self.queue.len() < BATCH_SPANS_MAX {
            tokio::select! {
                () = sleep(BATCH_TIME) => {}
                () = tracer.batch.notified() => {}
                _ = self.stopped.changed() => {}
            }
        }
        while self.batch.len() < BATCH_SPANS_MAX
            && let Ok(span) = self.queue.try_recv()
        {
            self.batch.push(span);
        }
        !self.batch.is_empty() || !*self.stopped.borrow()
    }

    /// Delivers the batch, or gives it up.
    async fn deliver(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let body = Bytes::from(otlp::encode(&self.resource, &self.batch));
        let count = self.batch.len() as u64;
        let mut pause = PAUSE;
        for attempt in 1.. {
            match self.send(body.clone()).await {
                Answer::Taken { rejected, why } => {
                    self.taken(count.saturating_sub(rejected), rejected, &why);
                    break;
                }
                Answer::Refused(why) => {
                    self.refused(count, &why);
                    break;
                }
                Answer::Later(why, _) if attempt >= ATTEMPTS_MAX || *self.stopped.borrow() => {
                    self.refused(count, &why);
                    break;
                }
                Answer::Later(_, at_least) => {
                    // Not all servers at the same time.
                    let jitter = f64::from(tracer::span_id().0[0]) / f64::from(u8::MAX);
                    let pause_now = pause.mul_f64(0.75 + jitter / 2.0).max(at_least).min(PAUSE_MAX);
                    tokio::select! {
                        () = sleep(pause_now) => {}
                        _ = self.stopped.changed() => {}
                    }
                    pause *= 2;
                }
            }
        }
        self.batch.clear();
        self.tell_dropped();
    }

    async fn send(&self, body: Bytes) -> Answer {
        let mut request = Request::new(Full::new(body));
        (*request.method_mut(), *request.uri_mut()) = (Method::POST, self.settings.target.clone());
        *request.headers_mut() = self.settings.headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(otlp::CONTENT_TYPE));
        let exchange = async {
            let (head, body) =
                Arc::clone(&self.upstream).send(request).await.map_err(|failure| failure.to_string())?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
            Ok::<_, String>((head, body.to_bytes()))
        };
        let (head, body) = match timeout(self.settings.timeout, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => return Answer::Later(why, Duration::ZERO),
            Err(_) => return Answer::Later("no answer within telemetry.timeout_ms".to_owned(), Duration::ZERO),
        };
        match head.status {
            StatusCode::OK => {
                let (rejected, why) = otlp::rejected(&body);
                Answer::Taken { rejected, why }
            }
            status if status.is_success() => Answer::Taken { rejected: 0, why: String::new() },
            // Those that OTLP names.
            status @ (StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT) => Answer::Later(format!("answered with {status}"), retry_after(&head.headers)),
            status => Answer::Refused(format!("answered with {status}")),
        }
    }

    fn taken(&mut self, delivered: u64, rejected: u64, why: &str) {
        self.tracer.counts.delivered.fetch_add(delivered, Ordering::Relaxed);
        if rejected > 0 {
            return self.refused(rejected, &format!("some spans were rejected: {}", why.escape_debug()));
        }
        if self.lost > 0 {
            tracing::info!(lost = self.lost, "spans are delivered again");
            self.lost = 0;
        }
    }

    fn refused(&mut self, count: u64, why: &str) {
        self.tracer.counts.refused.fetch_add(count, Ordering::Relaxed);
        if self.lost == 0 {
            tracing::warn!(collector = %self.settings.target, why, "spans cannot be delivered; said once, until they are again");
        }
        self.lost += count;
    }

    fn tell_dropped(&mut self) {
        if !self.told_dropped && self.tracer.counts.dropped.load(Ordering::Relaxed) > 0 {
            tracing::warn!("there are more spans than the collector takes; those dropped are counted in /metrics (said once)");
            self.told_dropped = true;
        }
    }

    /// Says what will not be delivered any more.
    fn report_rest(&mut self) {
        let lost = self.batch.len() + self.queue.len();
        if lost > 0 {
            tracing::warn!(lost, "spans were not delivered in time");
        }
    }
}

/// How long a collector wants to be left alone, in seconds; dates are not understood.
fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    seconds.map_or(Duration::ZERO, Duration::from_secs)
}
