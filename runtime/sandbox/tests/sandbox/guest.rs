//! Artifacts made by hand from `guest.c`, so that the runtime is tested without the compiler.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use awsm_abi::cpu::Arch;
use awsm_abi::descriptor::*;
use awsm_abi::types::*;
use awsm_abi::vmctx::{Counts, Layout};
use object::{Object, ObjectSection, ObjectSymbol};
use sledge_sandbox::*;

/// Functions that the module exports, with their types as `entry_` names them.
const FUNCTIONS: &[(&str, &str)] = &[
    ("add", "ii_i"),
    ("nothing", "_"),
    ("spin", "_"),
    ("twice_host", "i_i"),
    ("many_host", "l_l"),
    ("call_nothing", "_"),
    ("tick", "l_l"),
    ("recurse_tick", "l_l"),
    ("leap_tick", "l_l"),
    ("mix", "l_l"),
    ("unreachable", "_"),
    ("illegal", "_"),
    ("divide", "ii_i"),
    ("load", "i_i"),
    ("store", "ii_i"),
    ("load_by_helper", "i_i"),
    ("outer", "i_i"),
    ("recurse", "i_i"),
    ("recurse_host", "i_i"),
    ("recurse_to", "i_i"),
    ("grow", "i_i"),
    ("memory_init", "i_"),
    ("data_drop", "_"),
    ("table_grow", "i_i"),
    ("no_such_builtin", "_"),
    ("stray_slots", "_"),
    ("counter", "_i"),
    ("foreign_bytes", "_i"),
    ("scribble", "i_i"),
    ("call_element", "ii_i"),
    ("reference", "_f"),
    ("call_import", "i_i"),
    ("wild", "_"),
    ("load_after_host", "i_i"),
    ("throw_host", "l_l"),
    ("throw_many", "l_l"),
];

const TYPES: &[&str] = &["_", "_i", "i_", "i_i", "ii_i", "l_l", "_f"];

/// Offset into the "WebAssembly module" at which the function's body begins.
pub(crate) fn wasm_start(function: &str) -> u32 {
    (position(FUNCTIONS.iter().map(|(name, _)| *name), function) + 1) * 100
}

fn position<'a>(names: impl Iterator<Item = &'a str>, name: &str) -> u32 {
    let mut names = names;
    names.position(|known| known == name).unwrap_or_else(|| panic!("no `{name}`")) as u32
}

fn ty(name: &str) -> FuncType {
    let types = |names: &str| {
        let ty = |name| match name {
            'i' => ValType::I32,
            'l' => ValType::I64,
            'f' => ValType::FUNCREF,
            _ => panic!("no type {name}"),
        };
        names.chars().map(ty).collect()
    };
    let (params, results) = name.split_once('_').unwrap();
    FuncType { params: types(params), results: types(results) }
}

/// What an artifact is made of, for tests to change before they link it.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) descriptor: Descriptor,
    pub(crate) texts: Vec<Text>,
    pub(crate) blob: Vec<u8>,
    /// Assembly to be added.
    pub(crate) assembly: String,
    /// Flags of the linker to be added.
    pub(crate) flags: Vec<&'static str>,
}

/// `guest.c`, compiled.
struct Compiled {
    object: PathBuf,
    offsets: HashMap<String, (u32, u32)>,
    text_bytes: u64,
}

/// For this machine. The compiler may be another machine's: emulators run its programs beside this one's.
const TARGET: &[&str] =
    if cfg!(target_arch = "aarch64") { &["--target=aarch64-linux-gnu"] } else { &["--target=x86_64-linux-gnu", "-march=native"] };

fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}

fn fresh(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    folder().join(format!("{}-{}-{name}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
}

fn layout() -> Layout {
    layout_with(0)
}

fn layout_with(tags: u32) -> Layout {
    let types = TYPES.len() as u32;
    let counts =
        Counts { arguments: 0, memories: 1, tables: 1, imported_functions: 2, imported_globals: 0, types, tags, globals: 2 };
    Layout::new(counts).unwrap()
}

fn compiled() -> &'static Compiled {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let object = fresh("guest.o");
        let layout = layout();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sandbox/guest.c");
        let mut clang = Command::new("clang-22");
        clang.args(TARGET).args(["-c", "-O1", "-fPIC", "-ffreestanding", "-fvisibility=hidden", "-fno-stack-protector"]);
        clang.args([
            "-fasynchronous-unwind-tables",
            "-fomit-frame-pointer",
            "-fno-optimize-sibling-calls",
            "-fstack-clash-protection",
        ]);
        clang.args(["-fno-jump-tables", "-Wno-infinite-recursion", "-Wno-incompatible-library-redeclaration"]);
        clang.arg(format!("-DMEMORY_BASE={}", layout.memory(0)));
        clang.arg(format!("-DTABLE_0={}", layout.table(0)));
        clang.arg(format!("-DGLOBAL_0={}", layout.global(0)));
        clang.arg(format!("-DIMPORT_0={}", layout.imported_function(0)));
        clang.arg(format!("-DEXCEPTIONS={}", layout_with(1).exceptions()));
        clang.arg(format!("-DEXCEPTION_ROOM={}", awsm_abi::calls::builtin::EXCEPTION_ROOM & !awsm_abi::calls::builtin::FLAG));
        run(clang.arg(&source).arg("-o").arg(&object));
        let bytes = std::fs::read(&object).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let symbols = file.symbols().filter_map(|s| Some((s.name().ok()?.to_string(), (s.address() as u32, s.size() as u32))));
        Compiled { offsets: symbols.collect(), text_bytes: file.section_by_name(".text").unwrap().size(), object: object.clone() }
    })
}

fn code(symbol: &str) -> CodeRef {
    CodeRef { text: 0, offset: compiled().offsets[symbol].0 }
}

/// The guest as it is; its memory has 2 pages, at most 64, and "wasm" at address 16; its table has 4 elements, of which 0 is `recurse_to`
/// and 1 is the imported `host.echo`.
pub(crate) fn parts() -> Parts {
    let types = TYPES
        .iter()
        .map(|name| TypeDescriptor { ty: ty(name), supertype: None, is_final: true, entry: Some(code(&format!("entry_{name}"))) })
        .collect();
    let type_index = |name: &str| position(TYPES.iter().copied(), name);
    let import = |name: &str, ty: &str, thunk: &str| Import {
        module: "host".to_string(),
        name: name.to_string(),
        ty: ImportType::Function { ty: type_index(ty), thunk: code(thunk) },
    };
    let functions = FUNCTIONS.iter().map(|&(name, ty)| Function {
        ty: type_index(ty),
        code: Some(code(name)),
        code_bytes: compiled().offsets[name].1,
        wasm_start: wasm_start(name),
        wasm_end: wasm_start(name) + 50,
        name: Some(if name == "outer" { "_ZN5guest5outer17h0123456789abcdefE".to_string() } else { name.to_string() }),
    });
    let exports = FUNCTIONS.iter().enumerate().map(|(i, (name, _))| Export {
        name: name.to_string(),
        kind: ExternKind::Function,
        index: 2 + i as u32,
    });
    let others = [("memory", ExternKind::Memory), ("table", ExternKind::Table), ("counter_value", ExternKind::Global)];
    let others = others.map(|(name, kind)| Export { name: name.to_string(), kind, index: 0 });
    let element = |name: &str| 2 + position(FUNCTIONS.iter().map(|(name, _)| *name), name);
    let module = ModuleDescriptor {
        wasm_base: 0,
        name: None,
        types,
        groups: vec![1; TYPES.len()],
        exceptions: false,
        imports: vec![import("echo", "i_i", "thunk_0"), import("nothing", "_", "thunk_1")],
        functions: functions.collect(),
        tables: vec![Table {
            ty: TableType { element: ValType::FUNCREF, elements_min: 4, elements_max: None, table64: false },
            init: None,
        }],
        memories: vec![Memory { ty: MemoryType { pages_min: 2, pages_max: Some(64), memory64: false, shared: false } }],
        bounds: vec![Bounds::Guard],
        segment: false,
        globals: vec![
            Global { ty: GlobalType { value: ValType::I64, mutable: true }, init: vec![ConstOp::I64Const(7)] },
            Global {
                ty: GlobalType { value: ValType::I32, mutable: false },
                init: vec![ConstOp::I32Const(5), ConstOp::I32Const(3), ConstOp::I32Sub],
            },
        ],
        tags: Vec::new(),
        exports: exports.chain(others).collect(),
        start: None,
        elements: vec![ElementSegment {
            ty: ValType::FUNCREF,
            mode: SegmentMode::Active { target: 0, offset: vec![ConstOp::I32Const(0)] },
            items: ElementItems::Functions(vec![element("recurse_to"), 0]),
        }],
        data: vec![
            DataSegment { mode: SegmentMode::Passive, blob_start: 4, bytes: 4 },
            DataSegment { mode: SegmentMode::Active { target: 0, offset: vec![ConstOp::I32Const(16)] }, blob_start: 0, bytes: 4 },
        ],
    };
    let mut rows: Vec<TrapRow> = FUNCTIONS
        .iter()
        .map(|(name, _)| TrapRow {
            code_offset: code(name).offset,
            wasm_offset: wasm_start(name) + 10,
            trap: if *name == "divide" { TrapCode::IntegerDivideByZero.number() } else { 0 },
        })
        .collect();
    rows.sort_by_key(|row| row.code_offset);
    Parts {
        descriptor: Descriptor {
            compiler: "by hand".to_string(),
            opt_level: 1,
            arch: Arch::HOST,
            cpu_features: Vec::new(),
            modules: vec![module],
            plan: vec![Instantiation { module: 0, imports: vec![ImportSource::Host; 2] }],
            component: None,
            inlined: Vec::new(),
        },
        texts: vec![Text { bytes: compiled().text_bytes, trap_rows: rows }],
        blob: b"wasmdata".to_vec(),
        assembly: String::new(),
        flags: Vec::new(),
    }
}

impl Parts {
    /// Links the artifact.
    pub(crate) fn link(&self) -> Vec<u8> {
        let encoded = encode(&self.descriptor, &self.texts, &self.blob);
        let (binary, assembly, object, output) = (fresh("d.bin"), fresh("d.s"), fresh("d.o"), fresh("guest.so"));
        std::fs::write(&binary, &encoded.bytes).unwrap();
        let start = encoded.text_starts[0];
        let source = format!(
            ".section .awsm, \"a\", @progbits\n.globl awsm_descriptor\nawsm_descriptor:\n.incbin \"{path}\", 0, {start}\n\
             .quad text_start - .\n.incbin \"{path}\", {after}\n.hidden text_start\n{more}\n.section .note.GNU-stack,\"\",@progbits\n",
            path = binary.display(),
            after = start + 8,
            more = self.assembly,
        );
        std::fs::write(&assembly, source).unwrap();
        run(Command::new("clang-22").args(TARGET).arg("-c").arg(&assembly).arg("-o").arg(&object));
        let mut lld = Command::new("ld.lld-22");
        lld.args(["-shared", "-nostdlib", "-zrodynamic", "-znorelro", "-znoexecstack", "-zseparate-code", "--build-id=none"]);
        lld.args(&self.flags).arg("-o").arg(&output).arg(&compiled().object).arg(&object);
        run(&mut lld);
        let bytes = std::fs::read(&output).unwrap();
        for path in [binary, assembly, object, output] {
            let _ = std::fs::remove_file(path);
        }
        bytes
    }

    /// Links and loads it.
    pub(crate) fn load(&self) -> Artifact {
        Artifact::load(&self.link(), &LoadPolicy::default()).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// The bytes of the guest as it is.
pub(crate) fn bytes() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| parts().link())
}

/// The guest as it is, loaded.
pub(crate) fn artifact() -> &'static Artifact {
    static ARTIFACT: OnceLock<Artifact> = OnceLock::new();
    ARTIFACT.get_or_init(|| Artifact::load(bytes(), &LoadPolicy::default()).unwrap_or_else(|error| panic!("{error}")))
}

/// Small limits, for tests that reach them.
pub(crate) const LIMITS: SandboxLimits =
    SandboxLimits { memory_bytes_max: 64 << 16, table_elements_max: 1000, stack_bytes: 256 << 10 };

/// A template of the guest.
pub(crate) fn template() -> Template {
    Template::new(artifact(), &LIMITS).unwrap()
}

/// Prepares a call of an exported function.
pub(crate) fn prepare(sandbox: &mut Sandbox, name: &str, args: &[Value]) {
    let function = sandbox.export_function(sandbox.main_instance().unwrap(), name).unwrap_or_else(|| panic!("no `{name}`"));
    sandbox.prepare(function, args).unwrap();
}

/// Resumes until something else than a preemption happens.
pub(crate) fn resume(sandbox: &mut Sandbox) -> Event {
    loop {
        match sandbox.resume() {
            Event::Preempted => {}
            event => return event,
        }
    }
}

/// Calls an exported function that ends without asking the host.
pub(crate) fn call(sandbox: &mut Sandbox, name: &str, args: &[i32]) -> Result<Vec<Value>, Trap> {
    prepare(sandbox, name, &args.iter().map(|&arg| Value::I32(arg)).collect::<Vec<_>>());
    match resume(sandbox) {
        Event::Returned => Ok(sandbox.results()),
        Event::Trapped(trap) => Err(trap),
        event => panic!("{event:?}"),
    }
}

/// This process and thread, as an argument of functions that send themselves signals.
pub(crate) fn thread_id() -> Value {
    let (process, thread) = (rustix::process::getpid(), rustix::thread::gettid());
    Value::I64(i64::from(process.as_raw_pid()) << 32 | i64::from(thread.as_raw_pid()))
}

/// A worker whose timer does not run.
pub(crate) fn worker() -> WorkerThread {
    WorkerThread::enter(std::time::Duration::from_micros(500)).unwrap()
}
