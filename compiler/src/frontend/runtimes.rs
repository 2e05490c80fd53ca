//! The C++ library that throws: libc++, libc++abi and the unwinder, built once of LLVM's sources with WebAssembly's exceptions, and kept.
//!
//! ```text
//!   in the user's cache folder
//!     awsm/llvm-runtimes/     the sources, as scripts/fetch-llvm-runtimes puts them there; AWSM_LLVM_RUNTIMES names another folder
//!     awsm/c++/HASH.a         what was built: all objects; HASH is of the sources, the installed headers and clang's version
//! ```
//!
//! The headers are those of the installed libc++, which has to be of the same version.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use blake3::Hasher;

use super::clang::{Clang, DEBIAN_HEADERS};
use super::{FrontendError, scratch, tool};
use crate::parts::{is_own, user_cache};

/// Where Debian's packages libc++-22-dev-wasm32 and libc++abi-22-dev-wasm32 keep headers.
pub(super) const DEBIAN_CPP_HEADERS: &str = "/usr/include/wasm32-wasi/c++/v1";

/// Exceptions as the finished proposal has them. Clang's own choice is the form before it.
pub(super) const EXCEPTIONS: [&str; 3] = ["-fwasm-exceptions", "-mllvm", FINISHED];
pub(super) const FINISHED: &str = "-wasm-use-legacy-eh=false";

/// Names the folder of sources.
const VARIABLE: &str = "AWSM_LLVM_RUNTIMES";
const WHAT: &str = "LLVM's sources of the C++ library";
const ADVICE: &str =
    "scripts/fetch-llvm-runtimes of Sledge's repository gets them; `awsm compile FILE -- -fno-exceptions` does without";

/// Defines the tag of C++'s exceptions.
const TAG: &str = include_str!("cpp_exception.s");

/// Sources of libc++ that are for programs with threads.
const THREADS: [&str; 9] = [
    "atomic.cpp",
    "barrier.cpp",
    "condition_variable.cpp",
    "condition_variable_destructor.cpp",
    "future.cpp",
    "mutex.cpp",
    "mutex_destructor.cpp",
    "shared_mutex.cpp",
    "thread.cpp",
];
/// Sources of libc++abi that are for programs with threads, or without exceptions.
const LEFT_OUT: [&str; 2] = ["cxa_thread_atexit.cpp", "cxa_noexception.cpp"];
/// Also of libc++: what Debian's has of its filesystem.
const FILESYSTEM: [&str; 3] = ["filesystem_clock.cpp", "filesystem_error.cpp", "path.cpp"];

/// For all of them. Loops are unrolled by awsm.
const FLAGS: [&str; 7] =
    ["-c", "-O2", "-DNDEBUG", "-fno-unroll-loops", "-nostdlibinc", "-w", "-Wno-unused-command-line-argument"];
const LIBCXX: [&str; 3] = ["-std=c++23", "-D_LIBCPP_BUILDING_LIBRARY", "-DLIBCXX_BUILDING_LIBCXXABI"];
const LIBCXXABI: [&str; 5] = [
    "-std=c++23",
    "-D_LIBCXXABI_BUILDING_LIBRARY",
    "-D_LIBCXXABI_HAS_NO_THREADS",
    "-D_LIBCPP_ENABLE_CXX17_REMOVED_UNEXPECTED_FUNCTIONS",
    "-DLIBCXX_BUILDING_LIBCXXABI",
];
const LIBUNWIND: [&str; 2] = ["-std=c11", "-D_LIBUNWIND_HIDE_SYMBOLS"];

/// The sources.
pub(super) struct Runtimes {
    folder: PathBuf,
    /// awsm's folder of the user's cache.
    cache: PathBuf,
}

/// A source, and how it is compiled.
struct Unit {
    path: PathBuf,
    flags: &'static [&'static str],
}

impl Runtimes {
    /// None where there are no sources.
    ///
    /// # Errors
    /// When the folder that the user names has none, or when they are of another version than the installed headers.
    pub(super) fn find() -> Result<Option<Runtimes>, FrontendError> {
        let Some(cache) = user_cache() else { return Ok(None) };
        let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
        let folder = named.clone().unwrap_or_else(|| cache.join("llvm-runtimes"));
        let runtimes = Runtimes { folder, cache };
        let unwinder = runtimes.folder.join("libunwind/src/Unwind-wasm.c");
        if !unwinder.is_file() {
            let looked_for = || format!("{} (from {VARIABLE})", unwinder.display());
            return named
                .map_or(Ok(None), |_| Err(FrontendError::ToolMissing { what: WHAT, looked_for: looked_for(), advice: ADVICE }));
        }
        runtimes.check_version(Path::new(DEBIAN_CPP_HEADERS))?;
        Ok(Some(runtimes))
    }

    /// Sources and headers fit if they are of one release; they may have different fixes.
    fn check_version(&self, headers: &Path) -> Result<(), FrontendError> {
        let config = self.folder.join("libcxx/include/__config");
        let (ours, theirs) = (release(&config)?, release(&headers.join("__config"))?);
        if ours == theirs {
            return Ok(());
        }
        let name = |release: Option<u32>| {
            release.map_or("an unknown version".to_owned(), |release| format!("{}.{}", release / 100, release % 100))
        };
        let looked_for = format!("release {} in {}, which has {}", name(theirs), self.folder.display(), name(ours));
        Err(FrontendError::ToolMissing { what: WHAT, looked_for, advice: ADVICE })
    }

    /// The archive of them, built if it is not there.
    ///
    /// # Errors
    /// When it cannot be built or written.
    pub(super) fn archive(&self, clang: &Clang) -> Result<PathBuf, FrontendError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| FrontendError::Io { path, source }
        };
        let kept = self.cache.join("c++");
        let archive = kept.join(format!("{}.a", self.key(clang)?));
        if is_kept(&archive) {
            return Ok(archive);
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&kept).map_err(at(&kept))?;
        // Others that want it meanwhile wait.
        let lock = kept.join("lock");
        let held = File::create(&lock).and_then(|file| file.lock().map(|()| file)).map_err(at(&lock))?;
        if !is_kept(&archive) {
            let _ = writeln!(io::stderr(), "awsm: building the C++ library with exceptions, once: this takes about a minute");
            let bytes = self
                .build(clang)
                .map_err(|source| FrontendError::Runtimes { folder: self.folder.clone(), source: Box::new(source) })?;
            let mut file = tempfile::NamedTempFile::new_in(&kept).map_err(at(&kept))?;
            file.write_all(&bytes).map_err(at(file.path()))?;
            file.persist(&archive).map_err(|error| at(&archive)(error.error))?;
        }
        drop(held);
        Ok(archive)
    }

    /// Changes with everything that the archive depends on.
    fn key(&self, clang: &Clang) -> Result<String, FrontendError> {
        let mut hasher = Hasher::new_derive_key("awsm 2026-11-29 C++ library with exceptions");
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        add(tool::ask(clang.command().arg("--version")).unwrap_or_default().as_bytes());
        for flag in [FLAGS.as_slice(), &EXCEPTIONS, &LIBCXX, &LIBCXXABI, &LIBUNWIND].concat() {
            add(flag.as_bytes());
        }
        add(TAG.as_bytes());
        let parts = ["libcxx/src", "libcxxabi/include", "libcxxabi/src", "libunwind/include", "libunwind/src"];
        let headers = ["__config", "__config_site"].map(|name| Path::new(DEBIAN_CPP_HEADERS).join(name));
        let mut files = BTreeSet::from(headers);
        for part in parts {
            files_in(&self.folder.join(part), &mut files)?;
        }
        for file in files {
            let relative = file.strip_prefix(&self.folder).unwrap_or(&file);
            add(relative.as_os_str().as_encoded_bytes());
            add(&fs::read(&file).map_err(|source| FrontendError::Io { path: file.clone(), source })?);
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Compiles all of it, on all processors.
    fn build(&self, clang: &Clang) -> Result<Vec<u8>, FrontendError> {
        let scratch = scratch()?;
        let tag = scratch.path().join("cpp_exception.s");
        fs::write(&tag, TAG).map_err(FrontendError::Scratch)?;
        let mut units = self.units()?;
        units.push(Unit { path: tag, flags: &[] });
        let next = AtomicUsize::new(0);
        let object = |at: usize| scratch.path().join(format!("{at}.o"));
        let work = || -> Result<(), FrontendError> {
            while let Some((at, unit)) = next_of(&units, &next) {
                let done = tool::run_in(scratch.path(), self.command(clang, unit).arg("-o").arg(object(at)), &unit.path);
                if done.is_err() {
                    // The others need not go on.
                    next.store(units.len(), Ordering::Relaxed);
                    return done;
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let count = thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        let mut archive = b"!<arch>\n".to_vec();
        for (at, unit) in units.iter().enumerate() {
            let bytes = fs::read(object(at)).map_err(FrontendError::Scratch)?;
            add_member(&mut archive, unit.path.file_stem().unwrap_or_default(), &bytes);
        }
        Ok(archive)
    }

    fn command(&self, clang: &Clang, unit: &Unit) -> Command {
        let mut command = clang.command();
        command.args(FLAGS).args(EXCEPTIONS).args(unit.flags);
        for part in
            ["libcxx/src", "libcxx/libc", "libc", "libcxxabi/src", "libcxxabi/include", "libunwind/src", "libunwind/include"]
        {
            command.arg("-I").arg(self.folder.join(part));
        }
        command.args(["-cxx-isystem", DEBIAN_CPP_HEADERS, "-cxx-isystem", DEBIAN_HEADERS]);
        command.args(["-Xclang", "-c-isystem", "-Xclang", DEBIAN_HEADERS]);
        command.arg(&unit.path);
        command
    }

    /// What there is to compile.
    fn units(&self) -> Result<Vec<Unit>, FrontendError> {
        let mut units = Vec::new();
        let mut add = |folder: &str, flags: &'static [&'static str], wanted: &dyn Fn(&str) -> bool| {
            let folder = self.folder.join(folder);
            let entries = fs::read_dir(&folder).map_err(|source| FrontendError::Io { path: folder.clone(), source })?;
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.retain(|path| {
                path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.ends_with(".cpp") && wanted(name))
            });
            paths.sort();
            units.extend(paths.into_iter().map(|path| Unit { path, flags }));
            Ok::<(), FrontendError>(())
        };
        add("libcxx/src", &LIBCXX, &|name| !THREADS.contains(&name))?;
        add("libcxx/src/ryu", &LIBCXX, &|_| true)?;
        add("libcxx/src/filesystem", &LIBCXX, &|name| FILESYSTEM.contains(&name))?;
        add("libcxxabi/src", &LIBCXXABI, &|name| !LEFT_OUT.contains(&name))?;
        units.push(Unit { path: self.folder.join("libunwind/src/Unwind-wasm.c"), flags: &LIBUNWIND });
        Ok(units)
    }
}

/// Whether it was built by this user, as far as others could see to it.
fn is_kept(archive: &Path) -> bool {
    fs::metadata(archive).is_ok_and(|metadata| metadata.is_file() && is_own(&metadata))
}

/// What is to be done next, with its number.
fn next_of<'a, T>(all: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, all.get(at)?))
}

/// The release of libc++ that a `__config` is of: 2201 is 22.1.
fn release(config: &Path) -> Result<Option<u32>, FrontendError> {
    let text = fs::read_to_string(config).map_err(|source| FrontendError::Io { path: config.to_owned(), source })?;
    let version = text.lines().find_map(|line| line.split_once("define _LIBCPP_VERSION ")?.1.trim().parse::<u32>().ok());
    Ok(version.map(|version| version / 100))
}

/// Adds all files below a folder.
fn files_in(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), FrontendError> {
    let failed = |source| FrontendError::Io { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            files_in(&path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

/// Adds an object to an archive (ar), which has no index: the linker looks into the objects itself.
fn add_member(archive: &mut Vec<u8>, stem: &OsStr, bytes: &[u8]) {
    // There is room for 15 characters.
    let name: String = stem.to_string_lossy().chars().filter(char::is_ascii).take(13).collect();
    let name = format!("{name}.o/");
    archive.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, bytes.len()).into_bytes());
    archive.extend(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_as_ar_writes_them() {
        let mut archive = b"!<arch>\n".to_vec();
        add_member(&mut archive, OsStr::new("ios.instantiations"), b"odd");
        add_member(&mut archive, OsStr::new("any"), b"even");
        let expected = "!<arch>\n\
                        ios.instantia.o/0           0     0     644     3         `\nodd\n\
                        any.o/          0           0     0     644     4         `\neven";
        assert_eq!(String::from_utf8(archive).unwrap(), expected);
    }

    #[test]
    fn sources_of_another_release_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (sources, headers) = (folder.path().join("sources"), folder.path().join("headers"));
        let write = |folder: &Path, version: &str| {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("__config"), format!("#  define _LIBCPP_VERSION {version}\n")).unwrap();
        };
        let runtimes = Runtimes { folder: sources.clone(), cache: folder.path().to_owned() };
        write(&sources.join("libcxx/include"), "220108");
        write(&headers, "220101");
        runtimes.check_version(&headers).unwrap();
        write(&headers, "230100");
        let said = runtimes.check_version(&headers).unwrap_err().to_string();
        assert!(
            said.contains("looked for release 23.1 in ") && said.contains("which has 22.1. scripts/fetch-llvm-runtimes"),
            "{said}"
        );
    }
}
