//! What becomes of each request, as spans in OpenTelemetry's sense, for a collector that speaks OTLP over HTTP.
//!
//! ```text
//!   http (server span), scheduler (its parts, calls), host::fetch (client spans) --Trace--> Tracer --queue--> Exporter (a thread) --> collector
//! ```
//!
//! * [`context`]: what of a trace goes from server to server, as W3C Trace Context says;
//! * [`trace`]: a request's place in its trace, and whether its spans are wanted; [`span`]: one span;
//! * [`tracer`]: decides that, and queues what is over; [`export`]: takes it to the collector, in batches; [`otlp`]: in its words;
//! * [`settings`]: where to, and how.
//!
//! No request waits for the collector: what does not fit into the queue is dropped and counted. A request whose spans are not wanted still has a place in
//! its trace, so that the servers that it asks leave theirs out, too. Knows neither HTTP's nor the scheduler's side of a request.

mod config;
pub mod context;
pub mod export;
pub mod otlp;
pub mod settings;
pub mod span;
pub mod trace;
pub mod tracer;

pub use config::TelemetryConfig;
pub use context::{SpanContext, SpanId, TraceId};
pub use export::Telemetry;
pub use settings::{Settings, TelemetryError};
pub use span::{Kind, Span, Value};
pub use trace::Trace;
pub use tracer::Tracer;
