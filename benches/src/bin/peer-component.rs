//! Makes a component of a module for `wasmtime serve`: `peer-component WIT MODULE COMPONENT`, built with the feature `wasmtime`.
//!
//! WIT is the file of the only world that the module is written for (`benches/peers/component.wit`).
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Makes a component of a module.
#[derive(Parser)]
struct Options {
    /// The world that the module is written for
    wit: PathBuf,
    /// The module
    module: PathBuf,
    /// What is written
    component: PathBuf,
}

fn main() -> Result<()> {
    let Options { wit, module, component } = Options::parse();
    let mut resolve = Resolve::default();
    let package = resolve.push_file(&wit).with_context(|| wit.display().to_string())?;
    let world = resolve.select_world(&[package], None).with_context(|| wit.display().to_string())?;
    let mut bytes = fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
    let encoded = embed_component_metadata(&mut bytes, &resolve, world, StringEncoding::UTF8, false)
        .and_then(|()| ComponentEncoder::default().module(&bytes)?.encode());
    let encoded = encoded.with_context(|| format!("{} is no module for {}", module.display(), wit.display()))?;
    fs::write(&component, encoded).with_context(|| format!("cannot write {}", component.display()))
}
