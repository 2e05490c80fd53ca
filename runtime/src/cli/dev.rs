//! `sledge dev`: serves the functions of a project, and builds and swaps them when a file changes.
//!
//! Whatever fails (a build, the configuration, loading) is said, and the next change waited for. Until the first time that all goes well there is
//! no server; from then on it changes as at SIGHUP, and serves what was good last while something is not. Modules are compiled for a developer who
//! waits ([`Purpose::Development`]).

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use clap::Args;
use tracing::Level;

use super::build;
use super::made::Made;
use super::watch::{Files, Watch};
use super::{fail, print_line, usage};
use crate::compile::Purpose;
use crate::config::{self, Config, ConfigError, DirWrite, FunctionConfig};
use crate::deploy::{self, Deployer};
use crate::kv::embedded::log_path;
use crate::kv::file as kv_file;
use crate::notice::{self, To};
use crate::server::prepare::{Prepared, prepare};
use crate::{load, logging, server};

/// Builds in a row because of files that change meanwhile; what still changes in the last one is made by it.
const BUILDS_MAX: usize = 3;

/// Serve a project; rebuild and reload it when a file changes.
#[derive(Clone, Debug, Args)]
pub(super) struct DevArgs {
    /// The project's configuration; `build` of each function is the command that builds it
    #[arg(long, value_name = "FILE", default_value = "sledge.toml")]
    config: PathBuf,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

impl DevArgs {
    /// The folder that is watched, in which builds run.
    fn folder(&self) -> &Path {
        self.config.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    fn read(&self) -> Result<Config, ConfigError> {
        let mut config = config::read(&self.config)?;
        // Builds are programs, which a server that is confined may not start.
        config.confined = false;
        // Their .proto files are read with every build.
        config.applications.iter_mut().for_each(|application| application.is_described = true);
        // Compiled for a developer at a terminal, as all are; `sledge build` makes the artifacts.
        for function in config.functions.iter_mut().filter(|function| function.application.is_some()) {
            function.path.set_extension("wasm");
        }
        if let Some(listen) = &self.listen {
            config.listen.clone_from(listen);
        }
        Ok(config)
    }

    /// Builds all functions.
    fn build(&self, config: &Config) -> Result<(), String> {
        functions(config, self.folder())?;
        build::modules(config, To::Log)
    }

    /// The same, with everything there that it names.
    fn checked(&self) -> Result<Config, ConfigError> {
        let config = self.read()?;
        config::check(&config, Some(&self.config)).map(|()| config)
    }
}

/// What is worked on.
#[derive(Debug)]
struct Project {
    args: DevArgs,
    watch: Watch,
    made: Made,
    /// How the files were when they were built last.
    files: Files,
}

pub(super) fn dev(args: DevArgs) -> ExitCode {
    if !args.config.is_file() {
        let what = "`sledge new` creates a project; or give a configuration with --config FILE";
        return usage(format_args!("{}: no such file; {what}", args.config.display()));
    }
    logging::queueable(Level::INFO, logging::Format::default());
    let watch = match Watch::new(args.folder(), args.config.file_name().unwrap_or_default()) {
        Ok(watch) => watch,
        Err(error) => return fail(format_args!("{}: cannot watch this folder: {error}", args.folder().display())),
    };
    let mut project = Project { args: args.clone(), watch, made: Made::default(), files: Files::default() };
    let (config, prepared) = loop {
        match project.begin() {
            Ok(begun) => break begun,
            Err(error) => tracing::error!("{error}; waiting for the next change"),
        }
        project.wait();
    };
    let scheme = super::serve::scheme(&config);
    let ready = |address| {
        print_line(&format!("listening on {scheme}://{address}"));
        // Here, where signals are left to the main thread already.
        if let Err(error) = thread::Builder::new().name("dev".to_owned()).spawn(move || project.follow()) {
            tracing::error!(%error, "cannot watch for changes");
        }
    };
    match server::serve(&config, prepared, move || args.checked(), ready) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error),
    }
}

impl Project {
    /// Builds and loads everything.
    fn begin(&mut self) -> Result<(Config, Prepared), String> {
        let text = |error: &dyn fmt::Display| error.to_string();
        self.build()?;
        let config = self.args.read().map_err(|error| text(&error))?;
        let load = || Deployer::new(&config, load::compiler(&config).with_purpose(Purpose::Development));
        let prepared = prepare(&config, Some(&self.args.config), load).map_err(|error| text(&error))?;
        Ok((config, prepared))
    }

    /// Builds what has changed, and has the server take it.
    fn follow(&mut self) {
        loop {
            self.wait();
            match self.build() {
                // What then goes wrong is said where the configuration is read anew.
                Ok(()) => drop(rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP)),
                Err(error) => tracing::error!("{error}; the last good version stays in service; waiting for the next change"),
            }
        }
    }

    /// Waits until a file is edited.
    fn wait(&mut self) {
        let now = self.watch.wait(&self.files);
        self.made.edited(&self.files, &now);
    }

    /// Builds everything; once more when a file that may have been edited meanwhile is otherwise afterwards.
    fn build(&mut self) -> Result<(), String> {
        for builds_left in (0..BUILDS_MAX).rev() {
            let config = self.args.read();
            self.watch.look_into(config.iter().flat_map(build::sources));
            self.watch.leave_out(config.iter().flat_map(written));
            let before = self.watch.files();
            let built = config.map_err(|error| error.to_string()).and_then(|config| self.args.build(&config));
            self.files = self.watch.files();
            let edited = self.made.built(&before, &self.files);
            let Some(first) = edited.first() else { return built };
            let file = first.display();
            if builds_left == 0 {
                tracing::warn!(%file, "changes with every build, so it is treated as a build product; add it to .gitignore");
                self.made.extend(edited);
                return built;
            }
            tracing::info!(%file, "changed during the build; building again");
        }
        Ok(())
    }
}

/// Files and folders that the server and its functions write.
fn written(config: &Config) -> impl Iterator<Item = PathBuf> + use<> {
    let dirs = config
        .functions
        .iter()
        .flat_map(|function| &function.dirs)
        .filter(|dir| dir.write == DirWrite::Yes)
        .map(|dir| dir.host.clone());
    let own = [&config.kv, &config.state_dir, &config.cache_dir].into_iter().flatten().cloned();
    let log = kv_file(config.kv.as_deref()).map(log_path);
    own.chain(log).chain(deploy::pinned_folder(config)).chain(dirs).collect::<Vec<_>>().into_iter()
}

/// Runs the commands that make the functions, one after the other. What they print goes to standard error.
fn functions(config: &Config, folder: &Path) -> Result<(), String> {
    for function in &config.functions {
        let Some((program, arguments)) = function.build.split_first() else { continue };
        tracing::info!(function = function.name, "building");
        let failed = |why: &dyn fmt::Display| format!("{}: the build failed: {program}: {why}", function.name);
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).env("PATH", path());
        // Not all that take minutes say what they do.
        let run = || errors().and_then(|errors| command.stdout(errors).status());
        let status = notice::during(To::Log, || format!("{program} builds {}", function.name), run);
        let status = status.map_err(|error| failed(&error))?;
        if !status.success() {
            return Err(failed(&status));
        }
        check_made(function)?;
    }
    Ok(())
}

fn check_made(function: &FunctionConfig) -> Result<(), String> {
    let path = &function.path;
    if path.is_file() { Ok(()) } else { Err(format!("{}: its `build` did not create {}", function.name, path.display())) }
}

/// Where programs are looked for: the compiler beside this one first.
fn path() -> OsString {
    let own = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(own.into_iter().chain(std::env::split_paths(&others))).unwrap_or(others)
}

/// Standard error, for another program.
fn errors() -> io::Result<Stdio> {
    Ok(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?))
}
