//! Reading .proto files: protox finds imports, parses, and checks; what it does not read is refused here with its line.

use std::fs;
use std::path::{Path, PathBuf};

use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver};
use protox::prost_reflect::DescriptorPool;

use super::error::{Place, ProtoError};
use super::text::printable;

/// The files that were asked for, as imports name them, and all that they import.
pub(super) struct Read {
    pub pool: DescriptorPool,
    pub asked: Vec<String>,
}

/// Reads files, which stand under `includes`, and what they import.
pub(super) fn read(files: &[PathBuf], includes: &[PathBuf]) -> Result<Read, ProtoError> {
    let compiler = compile(files, includes, true)?;
    let asked = compiler.files().filter(|file| !file.is_import()).map(|file| file.name().to_owned()).collect();
    Ok(Read { pool: compiler.descriptor_pool(), asked })
}

/// The same with all that protox knows of them, with or without comments.
pub(super) fn compile(files: &[PathBuf], includes: &[PathBuf], with_comments: bool) -> Result<protox::Compiler, ProtoError> {
    let failed = |error: protox::Error| ProtoError::Read(printable(&format!("{error:?}")));
    let mut compiler = protox::Compiler::with_file_resolver(Resolver::new(includes));
    compiler.include_source_info(with_comments).include_imports(true);
    for file in files {
        compiler.open_file(file).map_err(failed)?;
    }
    Ok(compiler)
}

/// Finds the files that come with Protobuf, then those in folders. protox cannot read all copies of the former (`extensions 5 [..]` in descriptor.proto).
struct Resolver {
    includes: Vec<PathBuf>,
    chain: ChainFileResolver,
}

impl Resolver {
    fn new(includes: &[PathBuf]) -> Resolver {
        let mut chain = ChainFileResolver::new();
        chain.add(GoogleFileResolver::new());
        includes.iter().for_each(|include| chain.add(IncludeFileResolver::new(include.clone())));
        Resolver { includes: includes.to_vec(), chain }
    }
}

impl FileResolver for Resolver {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        self.chain.resolve_path(path)
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        self.chain.open_file(name).map_err(|error| {
            let source = if error.is_parse() {
                self.includes.iter().find_map(|folder| fs::read_to_string(folder.join(name)).ok())
            } else {
                None
            };
            match source.as_deref().and_then(edition) {
                Some(Edition { position, name: edition }) => {
                    let place = Place { file: name.to_owned(), position: Some(position) };
                    protox::Error::new(Refused(ProtoError::Unsupported {
                        place,
                        message: format!("edition {edition:?}: editions are not supported; proto2 and proto3 are"),
                    }))
                }
                None => error,
            }
        })
    }
}

/// protox shows what it carries as `Debug`; this one's is its message.
#[derive(thiserror::Error)]
#[error(transparent)]
struct Refused(ProtoError);

impl std::fmt::Debug for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a file says at its head in place of `syntax`.
#[derive(Debug, PartialEq, Eq)]
struct Edition<'s> {
    position: (u32, u32),
    name: &'s str,
}

/// The edition that a file names: `edition = "2023";`, as the first thing in it.
fn edition(source: &str) -> Option<Edition<'_>> {
    let start = skipped(source, 0);
    let rest = source[start..].strip_prefix("edition")?;
    let rest = &rest[skipped(rest, 0)..];
    let rest = rest.strip_prefix('=')?;
    let rest = &rest[skipped(rest, 0)..];
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let name = rest[1..].split(quote).next()?;
    let before = &source[..start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let position = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
    let line = position(before.matches('\n').count());
    Some(Edition { position: (line, position(start - line_start)), name })
}

/// Where the first thing that is neither space nor comment stands.
fn skipped(source: &str, mut at: usize) -> usize {
    loop {
        let rest = &source[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.starts_with("//") {
            at += trimmed.find('\n').unwrap_or(trimmed.len());
        } else if let Some(comment) = trimmed.strip_prefix("/*") {
            at += 2 + comment.find("*/").map_or(comment.len(), |end| end + 2);
        } else {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Edition, edition};

    #[test]
    fn editions_are_seen() {
        let found = |position, name| Some(Edition { position, name });
        assert_eq!(edition("edition = \"2023\";"), found((1, 1), "2023"));
        assert_eq!(edition("// edition\n/* a\n*/ edition='2024';"), found((3, 4), "2024"));
        for source in ["", "syntax = \"proto3\";", "edition", "edition =", "/* edition = \"2023\"", "edition = 2023;"] {
            assert_eq!(edition(source), None, "{source}");
        }
    }
}
