//! The .proto files of an application, read by `awsm proto`: their descriptors, by which names of services are checked.

use std::fs;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fmt, io};

use ignore::WalkBuilder;

use crate::compile;
use crate::config::ApplicationConfig;
use crate::notice::{self, To};

/// .proto files of one application.
const FILES_MAX: usize = 10_000;

/// What `protos` is.
const WANTED: &str = "name the folders that have the .proto files, from the configuration's folder on";

/// Writes the descriptors of an application, if it names .proto files.
///
/// # Errors
/// What to tell the user.
pub(super) fn describe(application: &ApplicationConfig, to: To) -> Result<(), String> {
    let descriptors = application.descriptors();
    let failed = |what: &dyn fmt::Display, why: &dyn fmt::Display| format!("{}: protos: {what}: {why}", application.name);
    if application.protos.is_empty() {
        return match fs::remove_file(&descriptors) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&descriptors.display(), &error)),
            _ => Ok(()),
        };
    }
    let mut includes = application.protos.clone();
    // A file belongs to the innermost folder that has it.
    includes.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
    let mut files = Vec::new();
    for folder in &includes {
        let found = protos_in(folder).map_err(|error| failed(&folder.display(), &format_args!("{error}; {WANTED}")))?;
        if found.is_empty() {
            return Err(failed(&folder.display(), &format_args!("no .proto files in this folder; {WANTED}")));
        }
        files.extend(found);
    }
    files.sort_unstable();
    files.dedup();
    if files.len() > FILES_MAX {
        return Err(failed(&files.len(), &format_args!("files; an application has at most {FILES_MAX}")));
    }
    fs::create_dir_all(&application.folder).map_err(|error| failed(&application.folder.display(), &error))?;
    let program = compile::program().map_err(|error| error.to_string())?;
    let mut command = Command::new(&program);
    command.arg("proto").args(&files).arg("--descriptors").arg("-o").arg(&descriptors);
    for folder in &includes {
        command.arg("-I").arg(folder);
    }
    let run = || command.stdin(Stdio::null()).stdout(io::stderr().as_fd().try_clone_to_owned()?).status();
    let status = notice::during(to, || format!("reading the .proto files of {}", application.name), run);
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{}: the .proto files cannot be read: {}: {status}", application.name, program.display())),
        Err(error) => Err(failed(&program.display(), &error)),
    }
}

fn protos_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?;
    let mut files = Vec::new();
    for entry in WalkBuilder::new(folder).standard_filters(false).follow_links(true).build() {
        let entry = entry.map_err(io::Error::other)?;
        if entry.path().extension().is_some_and(|extension| extension == "proto") && entry.path().is_file() {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}
