//! All of it in the OpenMetrics format, which Prometheus reads.

use std::fmt;
use std::time::Instant;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::process;
use super::shard::{MEMO_EVENTS, Metrics, OUTCOMES, Totals};
use crate::counters::{Count, Sum};
use crate::grpc::STATUSES;
use crate::kv::{JoinCounts, ReadCounts};
use crate::memo::rule::Why;
use crate::schedule::CLASSES;

/// Durable executions of workflows.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExecutionCounts {
    /// Those that have not ended.
    pub open: u64,
    /// Those of them that have not begun.
    pub queued: u64,
    /// Those that have ended, by how.
    pub ended: [(&'static str, u64); 4],
}

/// What comes from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// Requests taken and not over.
    pub requests: u64,
    /// Sandboxes that are ready for a request.
    pub idle: u64,
    /// Functions served.
    pub functions: u64,
    /// Versions that were replaced and still have requests.
    pub retired: u64,
    /// Bytes promised to requests and idle sandboxes.
    pub memory_bytes_used: u64,
    /// Bytes that may be.
    pub memory_bytes_max: u64,
    /// Bytes that requests keep of folders with `write = "scratch"`.
    pub scratch_bytes: u64,
    /// Files that were copied there.
    pub scratch_copies: u64,
    /// Changes there that found no room.
    pub scratch_refusals: u64,
    /// Modules, by what became of them.
    pub compilations: [(&'static str, u64); 3],
    /// How long compiling took.
    pub compile: Sum,
    /// What is wrong with the server: a function that is quarantined, the key-value store.
    pub problems: Vec<String>,
    /// Commits of the key-value store, by what became of them, where there is one.
    pub kv_commits: Option<[(&'static str, u64); 5]>,
    /// How reads of the key-value store were answered, where they are joined or merged.
    pub kv_reads: Option<ReadCounts>,
    /// Durable executions, where there is a store.
    pub executions: Option<ExecutionCounts>,
    /// Bytes of the store that durable executions take up, by tenant, where that is limited.
    pub execution_bytes: Vec<(String, u64)>,
    /// Runs of functions that were begun ahead, by tenant and by what became of them.
    pub ahead: Vec<([String; 2], u64)>,
    /// Lines of the server's own log that were dropped.
    pub server_log_lines_dropped: u64,
    /// Spans, by what became of them, where they are wanted.
    pub spans: Option<[(&'static str, u64); 3]>,
    /// Lines of functions' standard error that were dropped: function, tenant and number.
    pub log_lines_dropped: Vec<([String; 2], u64)>,
    /// How many requests of functions may run at the same time, where that is limited: function, tenant and number.
    pub concurrency_limits: Vec<([String; 2], u64)>,
    /// Bytes of tables of answers: function, tenant and number.
    pub memo_bytes: Vec<([String; 2], u64)>,
    /// What functions declare of their phases: function, tenant and phase, processor time expected (none where nothing is), part of a core.
    pub phases: Vec<([String; 3], Option<f64>, f64)>,
}

/// Writes everything, or what belongs to one tenant.
///
/// # Errors
/// None with a string to write into.
pub fn encode(text: &mut String, metrics: &Metrics, gauges: &Gauges, tenant: Option<&str>) -> fmt::Result {
    // The registry wants to own what it asks; everything here is asked once.
    let mut registry = prometheus_client::registry::Registry::with_prefix("sledge");
    let (functions, threads, classes) = (metrics.functions(), threads(metrics), metrics.classes());
    let readiness = metrics.readiness(&functions, Instant::now());
    let has_server = tenant.is_none();
    let mut collector = Collected { functions, readiness, threads, classes, gauges: gauges.clone(), has_server };
    if let Some(tenant) = tenant {
        collector.keep(tenant);
    }
    registry.register_collector(Box::new(collector));
    prometheus_client::encoding::text::encode(text, &registry)?;
    Ok(())
}

type Function = (String, String);

/// A part of what requests take: name, help, and where it is.
type Part = (&'static str, &'static str, fn(&Totals) -> &Sum);

/// Counts of every thread: name, help, and thread and number.
type ThreadCounts = (&'static str, &'static str, Vec<(String, u64)>);

fn threads(metrics: &Metrics) -> Vec<ThreadCounts> {
    let closed = metrics.threads(|thread| &thread.closed);
    let open = metrics.threads(|thread| &thread.accepted);
    let open = open.into_iter().zip(closed).map(|((name, accepted), (_, closed))| (name, accepted.saturating_sub(closed)));
    let of = |name, help, count: fn(&super::shard::Thread) -> &Count| (name, help, metrics.threads(count));
    vec![
        of("unrouted_requests", "Requests for which there is no route", |thread| &thread.unrouted),
        of("redirected_requests", "Requests for paths that have moved", |thread| &thread.redirected),
        of("workflow_requests", "Requests for workflows", |thread| &thread.executions),
        of("file_requests", "Requests for files of folders", |thread| &thread.files),
        of("connections", "Connections accepted", |thread| &thread.accepted),
        of("stolen", "Requests, begun or not, taken over from other workers", |thread| &thread.stolen),
        ("open_connections", "Connections that are open", open.collect()),
    ]
}

#[derive(Debug)]
struct Collected {
    functions: std::collections::BTreeMap<Function, Totals>,
    readiness: Vec<(Function, f64)>,
    threads: Vec<ThreadCounts>,
    classes: [[u64; 2]; CLASSES],
    gauges: Gauges,
    /// Whether what belongs to no tenant is written, too.
    has_server: bool,
}

/// The one of the threads' that goes up and down.
const THREAD_GAUGE: &str = "open_connections";

impl prometheus_client::collector::Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.functions(&mut encoder)?;
        self.tenants(&mut encoder)?;
        if !self.has_server {
            return Ok(());
        }
        for (name, help, counts) in &self.threads {
            let labelled = counts.iter().map(|(thread, count)| ([("thread", thread.as_str())], *count));
            if *name == THREAD_GAUGE {
                gauges(&mut encoder, name, help, labelled)?;
            } else {
                counters(&mut encoder, name, help, labelled)?;
            }
        }
        self.classes(&mut encoder)?;
        self.server(&mut encoder)
    }
}

impl Collected {
    /// Keeps what belongs to that tenant.
    fn keep(&mut self, tenant: &str) {
        self.functions.retain(|(_, other), _| other == tenant);
        self.readiness.retain(|((_, other), _)| other == tenant);
        let Gauges { execution_bytes, ahead, log_lines_dropped, concurrency_limits, memo_bytes, phases, .. } = &mut self.gauges;
        execution_bytes.retain(|(other, _)| other == tenant);
        ahead.retain(|([other, _], _)| other == tenant);
        phases.retain(|([_, other, _], ..)| other == tenant);
        for list in [log_lines_dropped, concurrency_limits, memo_bytes] {
            list.retain(|([_, other], _)| other == tenant);
        }
    }

    /// Of tenants, and of the logs of their functions.
    fn tenants(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Gauges { execution_bytes, ahead, log_lines_dropped, .. } = &self.gauges;
        if !execution_bytes.is_empty() {
            let help = "Bytes of the store that durable executions take up, those that have ended and are kept among them";
            let bytes = execution_bytes.iter().map(|(tenant, bytes)| ([("tenant", tenant.as_str())], *bytes));
            gauges(encoder, "executions_stored_bytes", help, bytes)?;
        }
        if !ahead.is_empty() {
            let help = "Runs of functions that were begun before those before them had ended, or before they were called, by what became of them";
            let runs = ahead
                .iter()
                .map(|([tenant, result], count)| ([("tenant", tenant.as_str()), ("result", result.as_str())], *count));
            counters(encoder, "speculative_runs", help, runs)?;
        }
        let dropped = log_lines_dropped.iter().map(|([function, _], count)| ([("function", function.as_str())], *count));
        counters(encoder, "log_lines_dropped", "Lines of functions' standard error that were dropped", dropped)
    }

    fn functions(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let labels = |(function, tenant): &'_ Function| [("function", function.clone()), ("tenant", tenant.clone())];
        let mut metric =
            encoder.encode_descriptor("requests", "Requests answered, by how they ended", None, MetricType::Counter)?;
        for ((function, tenant), totals) in &self.functions {
            for (outcome, count) in OUTCOMES.iter().zip(totals.outcomes).filter(|(_, count)| *count > 0) {
                let labels = [("function", function.as_str()), ("tenant", tenant.as_str()), ("outcome", outcome)];
                ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
            }
        }
        let calls = self.functions.iter().flat_map(|((function, tenant), totals)| {
            let counts = STATUSES.into_iter().zip(totals.calls).filter(|(_, count)| *count > 0);
            counts.map(move |(status, count)| {
                ([("function", function.as_str()), ("tenant", tenant.as_str()), ("grpc_status", status)], count)
            })
        });
        counters(encoder, "grpc_requests", "Requests by gRPC, by the status that their clients got", calls)?;
        let histograms: [Part; 4] = [
            ("queue", "From a request's arrival until a worker took it", |totals| &totals.queue),
            ("instantiate", "Getting a sandbox", |totals| &totals.instantiate),
            ("run", "From then until the request was over", |totals| &totals.run),
            ("reset", "Making the sandbox what it was, after the reply", |totals| &totals.reset),
        ];
        for (name, help, sum) in histograms {
            let mut metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
            for (function, totals) in &self.functions {
                let (labels, sum) = (labels(function), sum(totals));
                let mut metric = metric.encode_family(&labels)?;
                metric.encode_histogram::<[(&str, &str); 0]>(sum.seconds(), sum.count(), &sum.buckets(), None)?;
            }
        }
        self.phases(encoder)?;
        let of =
            |count: fn(&Totals) -> u64| self.functions.iter().map(move |(function, totals)| (labels(function), count(totals)));
        counters(
            encoder,
            "reruns",
            "How often a transaction ran again, since what it had read was changed",
            of(|totals| totals.reruns),
        )?;
        self.memo(encoder)?;
        counters(encoder, "preemptions", "How often a quantum was over before its request", of(|totals| totals.preemptions))?;
        let of = |time: fn(&Totals) -> u64| {
            self.functions.iter().map(move |(function, totals)| (labels(function), seconds(time(totals))))
        };
        let ready = "For how long requests could have run and did not";
        seconds_counters(encoder, "ready", ready, of(|totals| totals.ready))?;
        seconds_counters(encoder, "running", "For how long requests ran", of(|totals| totals.running))?;
        let blocked = "For how long requests waited for something else than their turn";
        seconds_counters(encoder, "blocked", blocked, of(|totals| totals.blocked))?;
        let help = "For how long requests could have run and did not, by the time for which they ran or waited for something else, lately";
        let mut metric = encoder.encode_descriptor("ready", help, Some(&Unit::Ratios), MetricType::Gauge)?;
        for (function, ratio) in &self.readiness {
            ConstGauge::new(*ratio).encode(metric.encode_family(&labels(function))?)?;
        }
        let limits = self.gauges.concurrency_limits.iter();
        let limits =
            limits.map(|([function, tenant], limit)| ([("function", function.as_str()), ("tenant", tenant.as_str())], *limit));
        gauges(encoder, "concurrency_limit", "Requests of a function that may run at the same time, now", limits)
    }

    /// Of the functions with tables of answers.
    fn memo(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let each = |name: &'static str, of: fn(&Totals) -> Vec<(&'static str, u64)>| {
            self.functions.iter().flat_map(move |((function, tenant), totals)| {
                let counts = of(totals).into_iter().filter(|(_, count)| *count > 0);
                counts.map(move |(value, count)| {
                    ([("function", function.as_str()), ("tenant", tenant.as_str()), (name, value)], count)
                })
            })
        };
        let events = each("event", |totals| MEMO_EVENTS.into_iter().zip(totals.memo.events).collect());
        counters(
            encoder,
            "memo_events",
            "Requests and runs of functions with a table of answers, by what became of them",
            events,
        )?;
        let refused = each("reason", |totals| Why::ALL.map(Why::name).into_iter().zip(totals.memo.refused).collect());
        counters(encoder, "memo_refusals", "Runs that were not remembered, by reason", refused)?;
        let bytes = self.gauges.memo_bytes.iter();
        let bytes =
            bytes.map(|([function, tenant], bytes)| ([("function", function.as_str()), ("tenant", tenant.as_str())], *bytes));
        gauges(encoder, "memo_bytes", "Memory of a function's table of answers", bytes)
    }

    /// Of microtasks, where they have classes.
    fn classes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.classes.iter().all(|[ended, _]| *ended == 0) {
            return Ok(());
        }
        let each = || (0..).zip(&self.classes).map(|(class, counts): (u32, _)| ([("class", class.to_string())], counts));
        let ended = each().map(|(labels, [ended, _])| (labels, *ended));
        counters(encoder, "microtasks", "Stretches between two waits of a request, by the class of their length", ended)?;
        let cpu = each().map(|(labels, [_, cpu])| (labels, seconds(*cpu)));
        seconds_counters(encoder, "class_cpu", "Processor time that was used in each class", cpu)
    }

    /// Of the functions that declare phases: how long they took, and what was expected.
    fn phases(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let labels = |[function, tenant, phase]: [&str; 3]| {
            [("function", function.to_owned()), ("tenant", tenant.to_owned()), ("phase", phase.to_owned())]
        };
        let (name, help) = ("phase_cpu", "Processor time of a request in a phase");
        let mut metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for ((function, tenant), totals) in &self.functions {
            for (phase, sum) in &totals.phases {
                let labels = labels([function, tenant, phase]);
                let mut metric = metric.encode_family(&labels)?;
                metric.encode_histogram::<[(&str, &str); 0]>(sum.seconds(), sum.count(), &sum.buckets(), None)?;
            }
        }
        let labels = |names: &[String; 3]| labels([&names[0], &names[1], &names[2]]);
        let (name, help) = ("phase_expected_cpu", "The same, as its function declares it");
        let mut metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Gauge)?;
        for (names, expected) in self.gauges.phases.iter().filter_map(|(names, expected, _)| Some((names, (*expected)?))) {
            ConstGauge::new(expected).encode(metric.encode_family(&labels(names))?)?;
        }
        let (name, help) =
            ("phase_expected_core", "Part of a core that a phase uses while it lasts, as its function declares it");
        let mut metric = encoder.encode_descriptor(name, help, Some(&Unit::Ratios), MetricType::Gauge)?;
        for (names, _, part) in &self.gauges.phases {
            ConstGauge::new(*part).encode(metric.encode_family(&labels(names))?)?;
        }
        Ok(())
    }

    fn server(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Gauges {
            requests,
            idle,
            functions,
            retired,
            memory_bytes_used,
            memory_bytes_max,
            scratch_bytes,
            scratch_copies,
            scratch_refusals,
            compilations,
            compile,
            server_log_lines_dropped,
            spans,
            log_lines_dropped: _,
            concurrency_limits: _,
            memo_bytes: _,
            phases: _,
            problems,
            kv_commits,
            kv_reads,
            executions,
            execution_bytes: _,
            ahead: _,
        } = &self.gauges;
        let now = process::process();
        for (name, help, value) in [
            ("requests_under_way", "Requests taken and not over", *requests),
            ("idle_sandboxes", "Sandboxes that are ready for a request", *idle),
            ("functions", "Functions that are served", *functions),
            ("retired_versions", "Replaced versions that still have requests", *retired),
            ("memory_used_bytes", "Memory promised to requests and idle sandboxes", *memory_bytes_used),
            ("memory_max_bytes", "Memory that may be promised", *memory_bytes_max),
            ("scratch_bytes", "Memory of private copies of files, which requests make", *scratch_bytes),
            ("process_resident_bytes", "Resident memory of the process", now.resident_bytes),
            ("process_virtual_bytes", "Reserved address space of the process", now.virtual_bytes),
            ("process_threads", "Threads of the process", now.threads),
            ("process_open_fds", "Open files and sockets", now.files),
            ("process_max_fds", "Files and sockets that may be open", now.files_max),
        ] {
            ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        let wrong = problems.iter().map(|subject| ([("subject", subject.as_str())], 1));
        gauges(encoder, "problems", "1 for each part of the server that is degraded, as /readyz lists them", wrong)?;
        let faults = ["minor", "major"].into_iter().zip(now.faults).map(|(kind, count)| ([("kind", kind)], count));
        counters(encoder, "process_page_faults", "Page faults of the process", faults)?;
        let (name, help) = ("process_cpu", "Processor time of the process");
        let metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Counter)?;
        ConstCounter::new(now.cpu_seconds).encode(metric)?;
        for (name, help, value) in [
            ("scratch_copies", "Files that a request copied before it changed them", *scratch_copies),
            ("scratch_refusals", "Changes of private copies for which there was no space", *scratch_refusals),
        ] {
            ConstCounter::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        }
        let made = compilations.iter().map(|(result, count)| ([("result", *result)], *count));
        counters(encoder, "compilations", "Modules, by what became of them", made)?;
        let mut metric =
            encoder.encode_descriptor("compile", "Compiling a module", Some(&Unit::Seconds), MetricType::Histogram)?;
        metric.encode_histogram::<[(&str, &str); 0]>(compile.seconds(), compile.count(), &compile.buckets(), None)?;
        let (name, help) = (
            "server_log_lines_dropped",
            "Lines of the log that were dropped, because they were written faster than they could be passed on",
        );
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(*server_log_lines_dropped).encode(metric)?;
        if let Some(commits) = kv_commits {
            let commits = commits.iter().map(|(outcome, count)| ([("outcome", *outcome)], *count));
            counters(encoder, "kv_commits", "Commits of the key-value store, by what became of them", commits)?;
        }
        if let Some(ReadCounts { joins: JoinCounts { sent, alone, joined, slots_lost }, merged, merged_commits }) = kv_reads {
            let reads = [("sent", sent), ("alone", alone), ("joined", joined), ("merged", merged)]
                .map(|(way, count)| ([("way", way)], *count));
            counters(encoder, "kv_reads", "Reads of keys in Redis, by how they were answered", reads.into_iter())?;
            let (name, help) =
                ("kv_slots_closed", "Slots whose reads are not joined now, since a write of unknown outcome may still be made");
            ConstGauge::new(*slots_lost).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
            let (name, help) = ("kv_commits_merged", "Commits that were sent to Redis together with others");
            ConstCounter::new(*merged_commits).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        }
        if let Some(ExecutionCounts { open, queued, ended }) = executions {
            let (name, help) = ("executions_open", "Durable executions of workflows that have not ended");
            ConstGauge::new(*open).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
            let (name, help) = ("executions_queued", "Those that have not begun, since their workflow has limits");
            ConstGauge::new(*queued).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
            let ended = ended.iter().map(|(status, count)| ([("status", *status)], *count));
            counters(encoder, "executions", "Durable executions of workflows that have ended, by how", ended)?;
        }
        if let Some(spans) = spans {
            let spans = spans.iter().map(|(result, count)| ([("result", *result)], *count));
            counters(
                encoder,
                "spans",
                "Spans, by what became of them: those that did not fit into the queue are dropped",
                spans,
            )?;
        }
        Ok(())
    }
}

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    counts: impl Iterator<Item = (impl EncodeLabelSet, u64)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, count) in counts {
        ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Nanoseconds in seconds.
fn seconds(nanos: u64) -> f64 {
    std::time::Duration::from_nanos(nanos).as_secs_f64()
}

fn seconds_counters(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    times: impl Iterator<Item = (impl EncodeLabelSet, f64)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Counter)?;
    for (labels, time) in times {
        ConstCounter::new(time).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (impl EncodeLabelSet, u64)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}
