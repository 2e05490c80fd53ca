//! `sledge serve`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tracing::Level;

use super::network::NetworkArgs;
use super::{dirs, fail, print_line, usage};
use crate::compile::{self, Broker, OPT_LEVEL_MAX};
use crate::config::{self, ADMIN_NONE, Config, ConfigError, DirConfig, FunctionConfig, LISTEN_DEFAULT, Snapshot, Source};
use crate::deploy::Deployer;
use crate::load;
use crate::logging::{self, Format};
use crate::server;
use crate::server::prepare::prepare;
use crate::symbols;

/// Serve functions over HTTP.
#[derive(Clone, Debug, Args)]
pub(super) struct ServeArgs {
    /// Configuration file: TOML, or JSON if its name ends in .json; `sledge config schema` describes it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", help = format!("Address to listen on; port 0 takes a free one [default: {LISTEN_DEFAULT}]"))]
    listen: Option<String>,
    /// Worker threads [default: one for every core]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// How long a function runs before the worker switches to another, in microseconds [default: 500, or until something arrives]
    #[arg(long, value_name = "N")]
    quantum_us: Option<u64>,
    /// Address of the admin API: path of a Unix socket, IP:PORT, or none [default: sledge-PORT.sock in the user's runtime folder]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
    /// Folder that keeps deployed functions for the next start [default: none]
    #[arg(long, value_name = "FOLDER")]
    state_dir: Option<PathBuf>,
    /// Format of the log
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", env = "SLEDGE_LOG_FORMAT")]
    log_format: Format,
    /// Grant the functions named here a folder of this machine under the name GUEST: to read, with ::rw also to write, with ::scratch to write private copies that are dropped at the end
    #[arg(long, value_name = "HOST[::GUEST[::rw|scratch]]", value_parser = dirs::parse)]
    dir: Vec<DirConfig>,
    #[command(flatten)]
    network: NetworkArgs,
    /// How much to optimise each .wasm that is named here
    #[arg(short = 'O', value_name = "LEVEL", help = format!("How much to optimise each .wasm that is named here: 0, which compiles fastest, to 3 [default: {OPT_LEVEL_MAX}]"), value_parser = clap::value_parser!(u8).range(0..=i64::from(OPT_LEVEL_MAX)))]
    opt_level: Option<u8>,
    /// When the reactors named here are initialised [default: on]
    #[arg(long, value_enum, value_name = "WHEN")]
    snapshot: Option<Snapshot>,
    /// Compile components named here even if they import functions that Sledge does not offer; a request that calls one fails
    #[arg(long)]
    allow_unknown_imports: bool,
    /// Load code compiled with `--bounds none`, which can read and write all memory; for measurements only
    #[arg(long)]
    allow_unchecked: bool,
    /// Write the addresses of the functions' code for perf (/tmp/perf-PID.map) and gdb (the log)
    #[arg(long)]
    symbols: bool,
    /// Functions (.so or .wasm) to serve in addition to the configuration's; NAME.so is served at /NAME
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl ServeArgs {
    /// The options given that are settings of the functions named beside them, with the keys of these settings.
    fn for_files(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let given = [
            (!self.dir.is_empty(), "--dir", "dirs"),
            (self.opt_level.is_some(), "-O", "opt_level"),
            (self.snapshot.is_some(), "--snapshot", "snapshot"),
            (self.allow_unknown_imports, "--allow-unknown-imports", "allow_unknown_imports"),
        ];
        let given = given.into_iter().filter_map(|(is_given, option, key)| is_given.then_some((option, key)));
        given.chain(self.network.given())
    }
}

pub(super) fn serve(args: ServeArgs) -> ExitCode {
    if args.config.is_none() && args.files.is_empty() && args.admin.is_none() && args.state_dir.is_none() {
        let what = "give a configuration with --config FILE, functions (.so or .wasm), or an --admin address to deploy functions";
        return usage(format_args!("nothing to serve: {what}"));
    }
    if let Some((option, key)) = args.files.is_empty().then(|| args.for_files().next()).flatten() {
        let what = "it is for functions that are named on the command line, and none is";
        return usage(format_args!("{option}: {what}; for a function of the configuration, set `{key}` there"));
    }
    // Before anything is there that it should not have.
    let broker = match Broker::start() {
        Ok(broker) => broker,
        Err(error) => return fail(format_args!("cannot start the compile broker: {error}")),
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
        tracing::info!("functions cannot be deployed: {error}");
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
    config.quantum_us = args.quantum_us.or(config.quantum_us);
    config.admin = args.admin.or(config.admin);
    config.state_dir = args.state_dir.or(config.state_dir);
    let function = |file: PathBuf| {
        let mut function = FunctionConfig::new(config::stem_name(&file), file);
        function.dirs.clone_from(&args.dir);
        function.opt_level = args.opt_level.unwrap_or(function.opt_level);
        function.snapshot = args.snapshot.unwrap_or_default();
        function.allow_unknown_imports = args.allow_unknown_imports;
        function.source = Source::CommandLine;
        args.network.grant(&mut function);
        function
    };
    config.functions.extend(args.files.into_iter().map(function));
    if args.allow_unchecked {
        config.functions.iter_mut().for_each(|function| function.allow_unchecked = true);
    }
    Ok(config)
}
