//! Componentizing: a core module becomes a component, as its compiler left it: its functions import and export what a world says, by the names of the canonical ABI.
//!
//! ```text
//! module + world -> wit-component: types of the world, adapter for WASI preview 1 if the module imports that -> component
//! ```

use std::path::Path;

use awsm_abi::text;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::text_parser;

/// What a command exports.
const COMMAND_ENTRY: &str = "_start";

/// Why a module does not become a component.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComponentizeError {
    /// The module cannot be read.
    #[error("not a core module: {0}")]
    Module(String),
    /// The module is a component.
    #[error("this is a component already")]
    Component,
    /// The world cannot be read, or there is none of that name.
    #[error("{wit}: {message}")]
    World {
        /// The file or folder of the world.
        wit: String,
        /// What is wrong with it.
        message: String,
    },
    /// The module does not have what its world says.
    #[error("{0}")]
    Encoding(String),
}

/// Makes a component of a module, binary or text. `wit` is a file or folder, and the name of the world in it if there are several; without it, what the module says of itself counts.
///
/// # Errors
/// When the world cannot be read, or the module does not import and export what it says.
pub fn componentize(module: &[u8], wit: Option<(&Path, Option<&str>)>) -> Result<Vec<u8>, ComponentizeError> {
    let mut module = text_parser::to_binary(None, module).map_err(ComponentizeError::Module)?.into_owned();
    if Parser::is_component(&module) {
        return Err(ComponentizeError::Component);
    }
    let adapter = adapter(&module).map_err(|error| ComponentizeError::Module(text::line(&error.to_string())))?;
    if let Some((path, world)) = wit {
        let failed = |error: &dyn std::fmt::Display| ComponentizeError::World {
            wit: path.display().to_string(),
            message: text::lines(&error.to_string()),
        };
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_path(path).map_err(|error| failed(&format!("{error:#}")))?;
        let world = resolve.select_world(&[package], world).map_err(|error| failed(&format!("{error:#}")))?;
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)
            .map_err(|error| failed(&format!("{error:#}")))?;
    }
    let encode = || {
        let mut encoder = ComponentEncoder::default();
        encoder.validate(true).module(&module)?;
        if let Some(adapter) = adapter {
            encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter)?;
        }
        encoder.encode()
    };
    encode().map_err(|error| ComponentizeError::Encoding(text::line(&format!("{error:#}"))))
}

/// What carries out preview 1 by preview 2 for that module, if it needs that.
fn adapter(module: &[u8]) -> Result<Option<&'static [u8]>, wasmparser::BinaryReaderError> {
    let (mut is_needed, mut adapter) = (false, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER);
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    is_needed |= import?.module == WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    if export?.name == COMMAND_ENTRY {
                        adapter = WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(is_needed.then_some(adapter))
}
