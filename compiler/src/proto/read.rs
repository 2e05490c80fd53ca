//! Reading .proto files: protox finds imports, parses, and checks; what it does not read is respelled or refused.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver};
use protox::prost::Message as _;
use protox::prost_reflect::prost_types::FileDescriptorSet;
use protox::prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage as _, Value};

use super::editions::{self, Features};
use super::error::ProtoError;
use super::sources::Sources;
use super::text::printable;

/// The files that were asked for, as imports name them, and all that they import.
pub(super) struct Read {
    pub pool: DescriptorPool,
    pub asked: Vec<String>,
    pub sources: Sources,
}

/// Reads files, which stand under `includes`, and what they import.
pub(super) fn read(files: &[PathBuf], includes: &[PathBuf]) -> Result<Read, ProtoError> {
    compile(files, includes).map(|(_, read)| read)
}

/// Their descriptors, without comments and places: a `FileDescriptorSet`.
pub(super) fn descriptors(files: &[PathBuf], includes: &[PathBuf]) -> Result<Vec<u8>, ProtoError> {
    let (mut compiler, Read { sources, .. }) = compile(files, includes)?;
    let bytes = compiler.include_source_info(false).encode_file_descriptor_set();
    let invalid = |error: &dyn std::fmt::Display| ProtoError::Invalid(printable(&error.to_string()));
    let descriptor = FileDescriptorSet::default().descriptor();
    let mut set = DynamicMessage::decode(descriptor, &bytes[..]).map_err(|error| invalid(&error))?;
    let mut has_edition = false;
    if let Some(Value::List(files)) = set.get_field_by_name_mut(FILES) {
        for file in files.iter_mut().filter_map(Value::as_message_mut) {
            let name = file.get_field_by_name("name").and_then(|name| name.as_str().map(str::to_owned));
            if name.is_some_and(|name| sources.features.has_edition(&name)) {
                file.set_field_by_name("syntax", Value::String("editions".to_owned()));
                file.set_field_by_name("edition", Value::EnumNumber(editions::EDITION_NUMBER));
                editions::renumber(file);
                has_edition = true;
            }
        }
    }
    Ok(if has_edition { set.encode_to_vec() } else { bytes })
}

/// The field of a `FileDescriptorSet`.
const FILES: &str = "file";

fn compile(files: &[PathBuf], includes: &[PathBuf]) -> Result<(protox::Compiler, Read), ProtoError> {
    let failed = |error: protox::Error| ProtoError::Read(printable(&format!("{error:?}")));
    let editions = Arc::default();
    let mut compiler = protox::Compiler::with_file_resolver(Resolver::new(includes, &editions));
    compiler.include_source_info(true).include_imports(true);
    for file in files {
        compiler.open_file(file).map_err(failed)?;
    }
    let pool = compiler.descriptor_pool();
    let asked = compiler.files().filter(|file| !file.is_import()).map(|file| file.name().to_owned()).collect();
    let editions = editions.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let sources = Sources::of(&pool, Features::of(editions));
    sources.features.check(&pool, &sources)?;
    Ok((compiler, Read { pool, asked, sources }))
}

/// Finds the files that come with Protobuf, then those in folders. protox cannot read all copies of the former (`extensions 5 [..]` in descriptor.proto).
struct Resolver {
    google: GoogleFileResolver,
    includes: Vec<PathBuf>,
    chain: ChainFileResolver,
    /// The files of an edition that were read.
    editions: Arc<Mutex<HashSet<String>>>,
}

impl Resolver {
    fn new(includes: &[PathBuf], editions: &Arc<Mutex<HashSet<String>>>) -> Resolver {
        let mut chain = ChainFileResolver::new();
        includes.iter().for_each(|include| chain.add(IncludeFileResolver::new(include.clone())));
        Resolver { google: GoogleFileResolver::new(), includes: includes.to_vec(), chain, editions: Arc::clone(editions) }
    }

    /// The file of that name: the first folder's that has it.
    fn path(&self, name: &str) -> Option<PathBuf> {
        self.includes.iter().map(|folder| folder.join(name)).find(|path| path.exists())
    }

    fn is_there(&self, name: &str) -> bool {
        self.google.open_file(name).is_ok() || self.path(name).is_some()
    }
}

impl FileResolver for Resolver {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        self.chain.resolve_path(path)
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if let Ok(file) = self.google.open_file(name) {
            return Ok(file);
        }
        let source = self.path(name).and_then(|path| fs::read_to_string(path).ok());
        match source.filter(|source| editions::edition(source).is_some()) {
            Some(source) => {
                let file = editions::read(name, &source, |import| self.is_there(import))?;
                self.editions.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
                Ok(file)
            }
            None => self.chain.open_file(name),
        }
    }
}

/// As protox carries it.
pub(super) fn refused(error: ProtoError) -> protox::Error {
    protox::Error::new(Refused(error))
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
