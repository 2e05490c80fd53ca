//! `sledge serve`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tracing::Level;

use super::{dirs, fail, print_line, usage};
use crate::compile::{self, Broker};
use crate::config::{self, ADMIN_NONE, Config, ConfigError, DirConfig, FunctionConfig, LISTEN_DEFAULT};
use crate::deploy::Deployer;
use crate::load;
use crate::logging::{self, Format};
use crate::server;
use crate::server::prepare::prepare;
use crate::symbols;

/// Serve functions over HTTP.
#[derive(Clone, Debug, Args)]
pub(super) struct ServeArgs {
    /// Configuration, TOML or (when its name ends in .json) JSON; `sledge config schema` describes it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", help = format!("Address to listen on; port 0 takes a free one [default: {LISTEN_DEFAULT}]"))]
    listen: Option<String>,
    /// Worker threads [default: one for every core]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// How long a function runs before others get their turn, in microseconds [default: 500]
    #[arg(long, value_name = "N")]
    quantum_us: Option<u64>,
    /// Admin door: path of a Unix socket, IP:PORT, or none [default: sledge-PORT.sock in the user's folder for sockets]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
    /// Folder in which deployed functions are kept for the next start [default: they are not]
    #[arg(long, value_name = "FOLDER")]
    state_dir: Option<PathBuf>,
    /// How the log looks
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", env = "SLEDGE_LOG_FORMAT")]
    log_format: Format,
    /// Give functions named here a folder of this machine, under the name GUEST, to read, or with ::rw to write too
    #[arg(long, value_name = "HOST[::GUEST[::rw]]", value_parser = dirs::parse)]
    dir: Vec<DirConfig>,
    /// Load functions even if they were compiled with `--bounds none`: they can read and write everything; for measurements only
    #[arg(long)]
    allow_unchecked: bool,
    /// Tell perf, in /tmp/perf-PID.map, and gdb, in the log, where which function's code lies
    #[arg(long)]
    symbols: bool,
    /// Functions (.so or .wasm) to serve besides those of the configuration, each at /NAME for a file NAME.so
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn serve(args: ServeArgs) -> ExitCode {
    if args.config.is_none() && args.files.is_empty() && args.admin.is_none() && args.state_dir.is_none() {
        let what = "give a configuration with --config FILE, or functions (.so or .wasm), or an --admin door to deploy some";
        return usage(format_args!("nothing to serve: {what}"));
    }
    // Before anything is there that it should not have.
    let broker = match Broker::start() {
        Ok(broker) => broker,
        Err(error) => return fail(format_args!("cannot start the process that starts compilers: {error}")),
    };
    logging::queueable(Level::INFO, args.log_format);
    if args.symbols
        && let Err(error) = symbols::tell()
    {
        return fail(error);
    }
    let config = match configure(args.clone()) {
        Ok(config) => config,
        Err(error) => return fail(error),
    };
    if config.admin.as_deref() != Some(ADMIN_NONE)
        && let Err(error) = compile::program()
    {
        tracing::info!("no function can be deployed at the admin door: {error}");
    }
    let load = || Deployer::new(&config, load::compiler(&config).through(broker));
    let prepared = match prepare(&config, args.config.as_deref(), load) {
        Ok(prepared) => prepared,
        Err(error) => return fail(error),
    };
    let scheme = scheme(&config);
    let ready = |address| {
        print_line(&format!("listening on {scheme}://{address}"));
    };
    let reread = move || {
        let config = configure(args.clone())?;
        config::check(&config, args.config.as_deref()).map(|()| config)
    };
    match server::serve(&config, prepared, reread, ready) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error),
    }
}

/// What is spoken.
pub(super) const fn scheme(config: &Config) -> &'static str {
    if config.tls_certificate_file.is_some() { "https" } else { "http" }
}

/// The configuration file, with what the command line says otherwise or besides.
fn configure(args: ServeArgs) -> Result<Config, ConfigError> {
    let mut config = args.config.as_deref().map(config::read).transpose()?.unwrap_or_default();
    if let Some(listen) = args.listen {
        config.listen = listen;
    }
    if let Some(workers) = args.workers {
        config.workers = Some(workers.get());
    }
    if let Some(quantum_us) = args.quantum_us {
        config.quantum_us = quantum_us;
    }
    config.admin = args.admin.or(config.admin);
    config.state_dir = args.state_dir.or(config.state_dir);
    let function =
        |file: PathBuf| FunctionConfig { dirs: args.dir.clone(), ..FunctionConfig::new(config::stem_name(&file), file) };
    config.functions.extend(args.files.into_iter().map(function));
    if args.allow_unchecked {
        config.functions.iter_mut().for_each(|function| function.allow_unchecked = true);
    }
    Ok(config)
}
