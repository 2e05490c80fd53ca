//! What the loader refuses, and that no bytes whatever make it panic or map what is inconsistent.

use awsm_abi::component::{Call, Description, Role};
use awsm_abi::descriptor::*;
use awsm_abi::types::*;
use sledge_sandbox::*;

use crate::guest::{LIMITS, Parts, bytes, call, parts, worker};
use crate::shared::own_bytes_in;

fn load(bytes: &[u8]) -> Result<Artifact, LoadError> {
    Artifact::load(bytes, &LoadPolicy::default())
}

/// The message with which an artifact changed so is refused.
fn refusal(change: impl FnOnce(&mut Parts)) -> String {
    let mut parts = parts();
    change(&mut parts);
    load(&parts.link()).expect_err("it should be refused").to_string()
}

fn module(parts: &mut Parts) -> &mut ModuleDescriptor {
    &mut parts.descriptor.modules[0]
}

#[test]
fn what_is_no_artifact_is_told_what_to_do() {
    let message = |bytes: &[u8]| load(bytes).unwrap_err().to_string();
    assert!(message(b"").contains("empty"));
    assert!(message(b"\0asm\x01\0\0\0").contains("run `awsm compile`"));
    assert!(message(b"#!/bin/sh\n").contains("no ELF shared object; give a .so made by"));
    let mut foreign = bytes().to_vec();
    foreign[18] = 0xf3;
    let this = std::env::consts::ARCH;
    assert!(message(&foreign).contains(&format!("made for processor number 243, this machine is {this}")));
    let (other, number) = if this == "aarch64" { ("x86_64", 0x3e) } else { ("aarch64", 0xb7) };
    foreign[18] = number;
    assert!(message(&foreign).contains(&format!("made for {other}")));
    let mut executable = bytes().to_vec();
    executable[16] = 2;
    assert!(message(&executable).contains("no shared object but an executable"));
    let program = std::fs::read("/proc/self/exe").unwrap();
    assert!(load(&program).is_err());
    let missing = Artifact::open("/no/such/file.so".as_ref(), &LoadPolicy::default()).unwrap_err().to_string();
    assert!(missing.contains("/no/such/file.so") && missing.contains("cannot read"), "{missing}");
}

#[test]
fn another_abi_version_is_named() {
    let mut other = bytes().to_vec();
    let at = other.windows(8).position(|window| window == MAGIC).unwrap();
    other[at + 8] = 99;
    let error = load(&other).unwrap_err();
    assert!(matches!(error, LoadError::AbiVersion { found: 99 }), "{error}");
    assert!(error.to_string().contains("compile it again"));
}

#[test]
fn missing_processor_features_are_named() {
    let message = refusal(|parts| parts.descriptor.cpu_features.push("x87-from-the-future".to_string()));
    assert!(message.contains("`x87-from-the-future`") && message.contains("--cpu baseline"), "{message}");
}

#[test]
fn unchecked_code_is_refused_unless_allowed() {
    let mut parts = parts();
    module(&mut parts).bounds = vec![Bounds::None];
    let bytes = parts.link();
    assert!(matches!(load(&bytes), Err(LoadError::Unchecked)));
    assert!(Artifact::load(&bytes, &LoadPolicy { allow_unchecked: true }).is_ok());
}

/// Where the entry of the one dynamic symbol lies in the file.
fn dynamic_symbol(bytes: &[u8]) -> usize {
    use object::{Object, ObjectSection};
    let file = object::File::parse(bytes).unwrap();
    file.section_by_name(".dynsym").unwrap().file_range().unwrap().0 as usize + 24
}

#[test]
fn what_would_need_a_dynamic_linker_is_refused() {
    let with = |assembly: &str, flags: &[&'static str]| {
        refusal(|parts| {
            parts.assembly = assembly.to_string();
            parts.flags = flags.to_vec();
        })
    };
    assert!(with(".data\n.quad 1\n", &[]).contains("writable segment"));
    assert!(with(".bss\n.zero 8\n", &[]).contains("writable segment"));
    assert!(with(".section .x,\"a\"\n.quad missing\n", &["-znotext"]).contains("relocat"));
    assert!(with(".data\n.quad awsm_descriptor\n", &[]).contains("refused"));
    assert!(with(".section .tdata,\"awT\",@progbits\n.quad 1\n", &[]).contains("refused"));
    assert!(with(".section .init_array,\"aw\",@init_array\n.quad 1\n", &[]).contains("refused"));
    assert!(with(".globl extra\nextra:\n", &[]).contains("an exported symbol that artifacts do not have, `extra`"));
    let mut undefined = bytes().to_vec();
    let at = dynamic_symbol(&undefined);
    undefined[at + 6..at + 8].fill(0);
    let message = load(&undefined).unwrap_err().to_string();
    assert!(message.contains("an undefined symbol, `awsm_descriptor`"), "{message}");
    let ifunc = with(".text\n.globl choose\n.type choose, @gnu_indirect_function\nchoose: ret\n", &[]);
    assert!(ifunc.contains("indirect function, `choose`"), "{ifunc}");
    assert!(with("", &["-zexecstack"]).contains("executable stack"));
    assert!(with("", &["-init=text_start"]).contains("refused"));
    assert!(with("", &["-zwxneeded", "--omagic"]).contains("refused"));
}

#[test]
fn descriptors_that_contradict_themselves_are_refused() {
    let outside = CodeRef { text: 0, offset: u32::MAX };
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Parts));
    let refused: &[Change<'_>] = &[
        ("no modules", &|parts| parts.descriptor.modules.clear()),
        ("entry outside", &|parts| module(parts).types[0].entry = Some(outside)),
        ("entry in no range", &|parts| module(parts).types[0].entry = Some(CodeRef { text: 1, offset: 0 })),
        ("function outside", &|parts| module(parts).functions[0].code = Some(outside)),
        ("function too long", &|parts| module(parts).functions[0].code_bytes = u32::MAX),
        ("function of no type", &|parts| module(parts).functions[0].ty = 99),
        ("exported without code", &|parts| module(parts).functions[0].code = None),
        ("exported without entry", &|parts| module(parts).types.iter_mut().for_each(|ty| ty.entry = None)),
        ("bodies out of order", &|parts| module(parts).functions.swap(0, 1)),
        ("body ends before its start", &|parts| module(parts).functions[0].wasm_end = 1),
        ("export of nothing", &|parts| module(parts).exports[0].index = 999),
        ("two exports of one name", &|parts| module(parts).exports[0].name = "nothing".to_string()),
        ("start without type", &|parts| module(parts).start = Some(999)),
        ("start with parameters", &|parts| module(parts).start = Some(2)),
        ("element of nothing", &|parts| module(parts).elements[0].items = ElementItems::Functions(vec![999])),
        ("elements of numbers", &|parts| module(parts).elements[0].ty = ValType::I32),
        ("elements for no table", &|parts| {
            module(parts).elements[0].mode = SegmentMode::Active { target: 1, offset: vec![ConstOp::I32Const(0)] };
        }),
        ("elements at a float", &|parts| {
            module(parts).elements[0].mode = SegmentMode::Active { target: 0, offset: vec![ConstOp::F32Const(0)] };
        }),
        ("data outside", &|parts| module(parts).data[0].bytes = 5),
        ("data overflowing", &|parts| module(parts).data[0].blob_start = u64::MAX),
        ("data that declares", &|parts| module(parts).data[0].mode = SegmentMode::Declared),
        ("data for no memory", &|parts| {
            module(parts).data[1].mode = SegmentMode::Active { target: 1, offset: vec![ConstOp::I32Const(0)] };
        }),
        ("expression without operands", &|parts| module(parts).globals[1].init = vec![ConstOp::I32Add]),
        ("empty expression", &|parts| module(parts).globals[0].init = vec![]),
        ("two values", &|parts| module(parts).globals[0].init = vec![ConstOp::I64Const(1); 2]),
        ("a global before itself", &|parts| module(parts).globals[0].init = vec![ConstOp::GlobalGet(0)]),
        ("null of a number", &|parts| module(parts).globals[0].init = vec![ConstOp::RefNull(ValType::I64)]),
        ("endless expression", &|parts| module(parts).globals[0].init = vec![ConstOp::I64Const(1); 5000]),
        ("table of numbers", &|parts| module(parts).tables[0].ty.element = ValType::I32),
        ("huge table", &|parts| module(parts).tables[0].ty.elements_min = u64::MAX),
        ("memory above its maximum", &|parts| module(parts).memories[0].ty.pages_min = 65),
        ("memory of 5 GiB", &|parts| module(parts).memories[0].ty.pages_max = Some(80_000)),
        ("shared memory without a maximum", &|parts| {
            module(parts).memories[0].ty.shared = true;
            module(parts).memories[0].ty.pages_max = None;
        }),
        ("guarded 64-bit memory", &|parts| module(parts).memories[0].ty.memory64 = true),
        ("no bounds mode", &|parts| module(parts).bounds.clear()),
        ("segment bounds without saying so", &|parts| module(parts).bounds = vec![Bounds::Segment]),
        ("plan of no module", &|parts| parts.descriptor.plan[0].module = 1),
        ("plan without imports", &|parts| parts.descriptor.plan[0].imports.clear()),
        ("plan from the future", &|parts| {
            parts.descriptor.plan[0].imports[0] = ImportSource::Instance { instance: 0, export: "add".to_string() };
        }),
        ("row outside", &|parts| {
            parts.texts[0].trap_rows.push(TrapRow { code_offset: u32::MAX, wasm_offset: 0, trap: 0 });
        }),
        ("rows out of order", &|parts| parts.texts[0].trap_rows.reverse()),
        ("row of no trap", &|parts| parts.texts[0].trap_rows[0].trap = 200),
        ("inlined functions out of order", &|parts| {
            let inlined = |start| Inlined { text: 0, start, depth: 1, bytes: 1, call: 0 };
            parts.descriptor.inlined = vec![inlined(2), inlined(1)];
        }),
        ("component without roles", &|parts| parts.descriptor.component = Some(Description::default())),
        ("component with a long name", &|parts| {
            let roles = vec![Role::State; parts.descriptor.plan.len()];
            let instances = vec![Some("a".repeat(257))];
            parts.descriptor.component = Some(Description { instances, roles, ..Description::default() });
        }),
        ("component with many instances", &|parts| {
            let roles = vec![Role::State; parts.descriptor.plan.len()];
            let instances = vec![None; awsm_abi::limits::COMPONENT_INSTANCES_MAX + 1];
            parts.descriptor.component = Some(Description { instances, roles, ..Description::default() });
        }),
        ("component with calls out of order", &|parts| {
            let roles = vec![Role::State; parts.descriptor.plan.len()];
            let call = |function| Call {
                module: 0,
                function,
                name: String::new(),
                caller: 0,
                callee: 0,
                target: 0,
                at: 0,
                direct: false,
            };
            let calls = vec![call(2), call(1)];
            parts.descriptor.component = Some(Description { roles, calls, ..Description::default() });
        }),
        ("code range beyond the code", &|parts| parts.texts[0].bytes = 1 << 40),
        ("function type with many results", &|parts| module(parts).types[0].ty.results = vec![ValType::I32; 1001]),
    ];
    let mut passed = Vec::new();
    for (name, change) in refused {
        let mut parts = parts();
        change(&mut parts);
        if load(&parts.link()).is_ok() {
            passed.push(name);
        }
    }
    assert!(passed.is_empty(), "these passed: {passed:?}");
}

/// A small generator, so that runs can be repeated (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}

#[test]
fn every_truncation_is_refused_and_no_changed_byte_makes_the_loader_panic() {
    let bytes = bytes();
    for end in (0..bytes.len()).step_by(13) {
        assert!(load(&bytes[..end]).is_err(), "cut at {end}");
    }
    // An unaligned copy is the same artifact.
    let mut shifted = vec![0];
    shifted.extend_from_slice(bytes);
    assert!(load(&shifted[1..]).is_ok());

    #[expect(clippy::disallowed_methods, reason = "a seed")]
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let mut random = Random(seed);
    // Where the structure is: headers, descriptor, section headers. Each byte there is changed in several ways, others at random.
    let descriptor = bytes.windows(8).position(|window| window == MAGIC).unwrap();
    let structure = (0..600).chain(descriptor..bytes.len().min(descriptor + 4000)).chain(bytes.len() - 1200..bytes.len());
    let (mut refused, mut harmless) = (0, 0);
    let mut attempt = |changed: &[u8]| match load(changed) {
        Ok(artifact) => {
            harmless += 1;
            // What was let through can be instantiated or refused, without a panic either; no code is run.
            let limits = SandboxLimits { memory_bytes_max: 1 << 24, ..crate::guest::LIMITS };
            if let Ok(template) = Template::new(&artifact, &limits) {
                let _ = template.instantiate();
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            refused += 1;
        }
    };
    let mut changed = bytes.to_vec();
    for at in structure {
        for flip in [0x01, 0x80, 0xff] {
            changed[at] ^= flip;
            attempt(&changed);
            changed[at] ^= flip;
        }
    }
    for _ in 0..4000 {
        let mut changed = bytes.to_vec();
        for _ in 0..1 + random.below(4) {
            let at = random.below(changed.len());
            changed[at] = random.below(256) as u8;
        }
        if random.below(8) == 0 {
            changed.truncate(random.below(bytes.len()));
        }
        attempt(&changed);
    }
    println!("{refused} refused, {harmless} harmless");
    assert!(refused > 2000);
}

/// Names, types and trap tables are read once. Artifacts of large modules have megabytes of them.
#[test]
fn what_only_the_loader_reads_takes_no_memory_afterwards() {
    const NAME_BYTES: usize = 3 << 20;
    let _worker = worker();
    let mut parts = parts();
    let recurse = parts.descriptor.modules[0].functions.iter_mut().find(|function| function.name.as_deref() == Some("recurse"));
    recurse.unwrap().name = Some("n".repeat(NAME_BYTES));
    let artifact = parts.load();
    let (own, _) = own_bytes_in(artifact.address()..artifact.address() + artifact.mapped_bytes());
    assert!(artifact.mapped_bytes() >= NAME_BYTES && own < NAME_BYTES / 2, "{own} of {}", artifact.mapped_bytes());
    // All that is needed is there still: code, data of passive segments and unwind information.
    let mut sandbox = Template::new(&artifact, &LIMITS).unwrap().instantiate().unwrap();
    assert_eq!(call(&mut sandbox, "memory_init", &[64]), Ok(vec![]));
    assert_eq!(call(&mut sandbox, "load", &[64]), Ok(vec![Value::I32(i32::from_le_bytes(*b"data"))]));
    call(&mut sandbox, "recurse", &[0]).unwrap_err();
    assert!(sandbox.backtrace().frames[0].name.as_ref().is_some_and(|name| name.starts_with("nnnn")));
}
