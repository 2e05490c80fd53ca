//! Modules to artifacts: by `awsm` in this process, or in another one, for runners on a machine that has no compiler.
//!
//! The other is this program, too, built with a compiler: `spec-runner compile MODE MACHINE SCRIPT`. It answers requests one by one, until its
//! standard input ends. All numbers are little-endian:
//!
//! ```text
//!   request   bytes: u32, the module
//!   reply     kind: u8 (0 artifact, 1 invalid, 2 unsupported, 3 internal error), bytes: u32, the artifact or a message
//! ```

use crate::engine::Failure;
use anyhow::Context;
use sledge_tests::spec::{Mode, Script};
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Names the program that compiles, where this one cannot: a `spec-runner`.
const PROGRAM: &str = "SPEC_COMPILER";

/// What makes artifacts.
pub(crate) enum Compiler {
    /// This process.
    #[cfg(feature = "compiler")]
    Here(here::Here),
    /// Another.
    Elsewhere(Elsewhere),
}

impl Compiler {
    /// One for this machine and a script's modules.
    pub(crate) fn new(mode: Mode, script: &Script) -> anyhow::Result<Compiler> {
        if let Some(program) = std::env::var_os(PROGRAM) {
            let mut command = Command::new(program);
            command.args(["compile", &mode.to_string(), std::env::consts::ARCH, &script.name]).env_remove(PROGRAM);
            return Ok(Compiler::Elsewhere(Elsewhere::start(&mut command)?));
        }
        #[cfg(feature = "compiler")]
        return Ok(Compiler::Here(here::Here::new(mode, awsm::Arch::HOST, script)?));
        #[cfg(not(feature = "compiler"))]
        anyhow::bail!("this runner has no compiler: set {PROGRAM} to the path of one that has");
    }

    /// The artifact of a module.
    pub(crate) fn compile(&mut self, wasm: &[u8]) -> Result<Vec<u8>, Failure> {
        match self {
            #[cfg(feature = "compiler")]
            Compiler::Here(here) => here.compile(wasm),
            Compiler::Elsewhere(elsewhere) => elsewhere
                .ask(wasm)
                .unwrap_or_else(|error| Err(Failure::Internal(format!("the compiler does not answer: {error}")))),
        }
    }
}

/// A compiler in a process of its own; gone with this value.
pub(crate) struct Elsewhere {
    child: Child,
    requests: ChildStdin,
    replies: ChildStdout,
}

impl Elsewhere {
    fn start(command: &mut Command) -> anyhow::Result<Elsewhere> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().with_context(|| format!("{command:?}"))?;
        let requests = child.stdin.take().context("no pipe")?;
        let replies = child.stdout.take().context("no pipe")?;
        Ok(Elsewhere { child, requests, replies })
    }

    fn ask(&mut self, wasm: &[u8]) -> io::Result<Result<Vec<u8>, Failure>> {
        write_bytes(&mut self.requests, wasm)?;
        let mut kind = [0];
        self.replies.read_exact(&mut kind)?;
        let bytes = read_bytes(&mut self.replies)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(match kind[0] {
            0 => Ok(bytes),
            1 => Err(Failure::Invalid(text(bytes))),
            2 => Err(Failure::Unsupported(text(bytes))),
            3 => Err(Failure::Limit(text(bytes))),
            _ => Err(Failure::Internal(text(bytes))),
        })
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

fn read_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(feature = "compiler")]
pub(crate) use here::serve;

#[cfg(feature = "compiler")]
mod here {
    use super::{Failure, Mode, Script, read_bytes, write_bytes};
    use anyhow::Context;
    use awsm::{Arch, Bounds, CompileError, CompileOptions, Cpu, OptLevel, Program};
    use sledge_tests::spec::ARTIFACTS;
    use std::fs;
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::io::{self, Write};
    use std::path::{Path, PathBuf};

    /// `awsm`, with a mode's options.
    pub(crate) struct Here {
        options: CompileOptions,
        /// Where artifacts are kept for other scripts of this mode.
        artifacts: Option<PathBuf>,
    }

    impl Here {
        pub(super) fn new(mode: Mode, arch: Arch, script: &Script) -> anyhow::Result<Here> {
            let bounds = match mode.bounds {
                "guard" => Bounds::Guard,
                "segment" => Bounds::Segment,
                "software" => Bounds::Software,
                _ => Bounds::None,
            };
            let opt_level = OptLevel::from_number(mode.opt_level).context("no such optimisation level")?;
            let options = CompileOptions {
                bounds,
                arch,
                opt_level,
                given_up: mode.given_up,
                cpu: cpu(arch),
                legacy_exceptions: script.name.contains("legacy"),
                // The modules of a script are linked with each other, and `spectest` with all.
                foreign_exceptions: script.text.contains("(tag"),
                ..CompileOptions::default()
            };
            Ok(Here { options, artifacts: std::env::var_os(ARTIFACTS).map(PathBuf::from) })
        }

        pub(super) fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, Failure> {
            // All else is the same in all scripts of a mode.
            let place = self.artifacts.as_ref().map(|folder| {
                let mut hasher = DefaultHasher::new();
                (wasm, self.options.legacy_exceptions, self.options.foreign_exceptions).hash(&mut hasher);
                (folder, folder.join(format!("{:016x}", hasher.finish())))
            });
            if let Some((_, path)) = &place
                && let Ok(artifact) = fs::read(path)
            {
                return Ok(artifact);
            }
            let artifact = awsm::compile(&Program::of(wasm), &self.options, &())?;
            if let Some((folder, path)) = place {
                // Without it, the next script compiles the module itself.
                let _ = keep(folder, &path, &artifact);
            }
            Ok(artifact)
        }
    }

    /// Writes a file that others may look for at any time: it is there as a whole.
    fn keep(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    }

    /// The processor that `SPEC_CPU` names, as on `awsm`'s command line; without it, this one, or any of another architecture.
    fn cpu(arch: Arch) -> Cpu {
        match std::env::var("SPEC_CPU").ok().as_deref() {
            None if arch != Arch::HOST => Cpu::Baseline,
            None | Some("native") => Cpu::Native,
            Some("baseline") => Cpu::Baseline,
            Some(name) => Cpu::Named(name.to_string()),
        }
    }

    impl From<CompileError> for Failure {
        fn from(error: CompileError) -> Failure {
            match error {
                CompileError::Module { source, .. } => (*source).into(),
                CompileError::Invalid { .. } => Failure::Invalid(error.to_string()),
                CompileError::Limit { .. } => Failure::Limit(error.to_string()),
                CompileError::Unsupported { .. } | CompileError::Component { .. } | CompileError::Options { .. } => {
                    Failure::Unsupported(error.to_string())
                }
                _ => Failure::Internal(error.to_string()),
            }
        }
    }

    /// Answers requests until there are no more.
    pub(crate) fn serve(mode: Mode, arch: &str, script: &Script) -> anyhow::Result<()> {
        let arch =
            Arch::ALL.into_iter().find(|known| known.name() == arch).with_context(|| format!("no machine is named {arch}"))?;
        let compiler = Here::new(mode, arch, script)?;
        let (mut requests, mut replies) = (io::stdin().lock(), io::stdout().lock());
        loop {
            let wasm = match read_bytes(&mut requests) {
                Ok(wasm) => wasm,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let (kind, bytes) = match compiler.compile(&wasm) {
                Ok(artifact) => (0, artifact),
                Err(Failure::Invalid(message)) => (1, message.into_bytes()),
                Err(Failure::Unsupported(message)) => (2, message.into_bytes()),
                Err(Failure::Limit(message)) => (3, message.into_bytes()),
                Err(other) => (4, other.to_string().into_bytes()),
            };
            replies.write_all(&[kind])?;
            write_bytes(&mut replies, &bytes)?;
        }
    }
}
