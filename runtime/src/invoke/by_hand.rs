//! A function for tests of what is done with functions: an artifact made by hand, so that no compiler is needed. Its `_start` does nothing, and is not run.

use std::process::Command;
use std::sync::OnceLock;

use awsm_abi::Descriptor;
use awsm_abi::cpu::Arch;
use awsm_abi::descriptor::{self, CodeRef, Export, ExternKind, Instantiation, ModuleDescriptor, Text, TypeDescriptor};
use awsm_abi::types::FuncType;
use sledge_sandbox::{Artifact, LoadPolicy};

use super::loaded::{COMMAND, Loaded};
use crate::config::FunctionConfig;

/// One with these settings, of which no file is read.
pub(crate) fn loaded(config: &FunctionConfig) -> Loaded {
    static ARTIFACT: OnceLock<Artifact> = OnceLock::new();
    let artifact = || Artifact::load(&artifact("by hand"), &LoadPolicy::default()).unwrap_or_else(|error| panic!("{error}"));
    Loaded::new(ARTIFACT.get_or_init(artifact), config).expect("a function")
}

/// What the one function's code is, and that of the entry of its type: a return.
const CODE: CodeRef = CodeRef { text: 0, offset: 0 };
/// Of x86-64 one byte, of AArch64 four.
const CODE_BYTES: u32 = 4;

/// The descriptor of an artifact with one module, which exports functions of these names and types.
pub(crate) fn descriptor(exports: &[(&str, FuncType)]) -> Descriptor {
    let types =
        exports.iter().map(|(_, ty)| TypeDescriptor { ty: ty.clone(), supertype: None, is_final: true, entry: Some(CODE) });
    let function =
        |ty| descriptor::Function { ty, code: Some(CODE), code_bytes: CODE_BYTES, wasm_start: 0, wasm_end: 1, name: None };
    let export = |(name, index): (&str, u32)| Export { name: name.to_owned(), kind: ExternKind::Function, index };
    let module = ModuleDescriptor {
        wasm_base: 0,
        name: None,
        types: types.collect(),
        groups: vec![1; exports.len()],
        exceptions: false,
        imports: Vec::new(),
        functions: (0..).zip(exports).map(|(index, _)| function(index)).collect(),
        tables: Vec::new(),
        memories: Vec::new(),
        bounds: Vec::new(),
        segment: false,
        globals: Vec::new(),
        tags: Vec::new(),
        exports: exports.iter().map(|(name, _)| *name).zip(0..).map(export).collect(),
        start: None,
        elements: Vec::new(),
        data: Vec::new(),
    };
    Descriptor {
        compiler: "by hand".to_owned(),
        opt_level: 0,
        arch: Arch::HOST,
        cpu_features: Vec::new(),
        modules: vec![module],
        plan: vec![Instantiation { module: 0, imports: Vec::new() }],
        component: None,
        inlined: Vec::new(),
    }
}

/// The file of such an artifact, which differs by the name of its compiler.
pub(crate) fn artifact(compiler: &str) -> Vec<u8> {
    let descriptor = descriptor(&[(COMMAND, FuncType { params: Vec::new(), results: Vec::new() })]);
    let descriptor = Descriptor { compiler: compiler.to_owned(), ..descriptor };
    let text = Text { bytes: u64::from(CODE_BYTES), trap_rows: Vec::new() };
    let encoded = descriptor::encode(&descriptor, &[text], &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("descriptor"), &encoded.bytes).expect("a file");
    let (path, start) = (at("descriptor"), encoded.text_starts[0]);
    let source = format!(
        ".text\n.hidden text_start\n.globl text_start\ntext_start:\nret\n.balign {CODE_BYTES}\n\
         .section .awsm, \"a\", @progbits\n.globl awsm_descriptor\nawsm_descriptor:\n.incbin \"{path}\", 0, {start}\n\
         .quad text_start - .\n.incbin \"{path}\", {after}\n.section .note.GNU-stack,\"\",@progbits\n",
        path = path.display(),
        after = start + 8,
    );
    std::fs::write(at("artifact.s"), source).expect("a file");
    let target = if cfg!(target_arch = "aarch64") { "--target=aarch64-linux-gnu" } else { "--target=x86_64-linux-gnu" };
    run(Command::new("clang-22").arg(target).arg("-c").arg(at("artifact.s")).arg("-o").arg(at("artifact.o")));
    let flags = ["-shared", "-nostdlib", "-zrodynamic", "-znorelro", "-znoexecstack", "-zseparate-code", "--build-id=none", "-o"];
    run(Command::new("ld.lld-22").args(flags).arg(at("artifact.so")).arg(at("artifact.o")));
    std::fs::read(at("artifact.so")).expect("an artifact")
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}
