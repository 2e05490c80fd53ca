//! Sandboxes to which instances are added one by one, linked to each other and to what the host makes.

use awsm_abi::types::*;
use sledge_sandbox::*;

use crate::guest::{LIMITS, artifact, call, parts, prepare, resume, worker};

fn host(params: &[ValType], results: &[ValType]) -> Extern {
    Extern::HostFunction(FuncType { params: params.to_vec(), results: results.to_vec() })
}

pub(crate) fn echo() -> Extern {
    host(&[ValType::I32], &[ValType::I32])
}

pub(crate) fn nothing() -> Extern {
    host(&[], &[])
}

#[test]
fn imports_are_served_by_host_or_instance() {
    let _worker = worker();
    let mut sandbox = Sandbox::new(&LIMITS).unwrap();
    let first = sandbox.instantiate(artifact(), 0, &[echo(), nothing()]).unwrap();
    // The second's `echo` is the first's `counter`-free `recurse_to`, its `nothing` the first's.
    let imports = [sandbox.export(first, "recurse_to").unwrap(), sandbox.export(first, "nothing").unwrap()];
    let second = sandbox.instantiate(artifact(), 0, &imports).unwrap();
    assert_eq!(sandbox.instances().collect::<Vec<_>>(), [first, second]);
    assert_eq!(sandbox.main_instance(), Some(second));
    assert_eq!(call(&mut sandbox, "call_import", &[12]), Ok(vec![Value::I32(12)]));
    assert_eq!(call(&mut sandbox, "call_element", &[1, 13]), Ok(vec![Value::I32(13)]), "an imported function in a table");

    // The third imports what the first imports from the host: the call is the first's.
    let mut reexport = parts();
    reexport.descriptor.modules[0].exports.push(awsm_abi::descriptor::Export {
        name: "echo".to_string(),
        kind: awsm_abi::descriptor::ExternKind::Function,
        index: 0,
    });
    let reexport = reexport.load();
    let third = sandbox.instantiate(&reexport, 0, &[echo(), nothing()]).unwrap();
    let imports = [sandbox.export(third, "echo").unwrap(), nothing()];
    let fourth = sandbox.instantiate(&reexport, 0, &imports).unwrap();
    assert_eq!(sandbox.main_instance(), Some(fourth));
    prepare(&mut sandbox, "call_import", &[Value::I32(5)]);
    assert_eq!(resume(&mut sandbox), Event::HostCall(HostCall { instance: third, import: 0 }));
    sandbox.host_results(&[Value::I32(6)]).unwrap();
    assert_eq!(resume(&mut sandbox), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I32(6)]);
    assert_eq!(sandbox.module(fourth).1, 0);
}

#[test]
fn imports_that_do_not_match_are_named_as_the_specification_does() {
    let mut sandbox = Sandbox::new(&LIMITS).unwrap();
    let error = sandbox.instantiate(artifact(), 0, &[echo()]).unwrap_err().to_string();
    assert!(error.starts_with("unknown import: `host` `nothing`"), "{error}");
    let error = sandbox.instantiate(artifact(), 0, &[nothing(), nothing()]).unwrap_err().to_string();
    assert!(error.starts_with("incompatible import type: `host` `echo` wants a function of type (i32) -> (i32)"), "{error}");
    let memory = MemoryType { pages_min: 1, pages_max: None, memory64: false, shared: false };
    let memory = Extern::Memory(sandbox.new_memory(memory).unwrap());
    let error = sandbox.instantiate(artifact(), 0, &[memory, nothing()]).unwrap_err().to_string();
    assert!(error.starts_with("incompatible import type") && error.contains("a memory of at least 1 pages"), "{error}");
    let error = sandbox.instantiate(artifact(), 0, &[echo(), nothing(), nothing()]).unwrap_err();
    assert!(matches!(error, InstantiateError::Misuse(_)));
    let mut other = Sandbox::new(&LIMITS).unwrap();
    let instance = other.instantiate(artifact(), 0, &[echo(), nothing()]).unwrap();
    let foreign = other.export(instance, "recurse_to").unwrap();
    assert!(matches!(sandbox.instantiate(artifact(), 0, &[foreign, nothing()]), Err(InstantiateError::Misuse(_))));
    assert!(matches!(sandbox.instantiate(artifact(), 1, &[]), Err(InstantiateError::Misuse(_))));
}

#[test]
fn globals_tables_and_references_are_seen_from_outside() {
    let _worker = worker();
    let mut sandbox = Sandbox::new(&LIMITS).unwrap();
    let main = sandbox.instantiate(artifact(), 0, &[echo(), nothing()]).unwrap();
    let Some(Extern::Global(counter)) = sandbox.export(main, "counter_value") else { panic!("no global") };
    assert_eq!(sandbox.global_get(counter), Value::I64(7));
    call(&mut sandbox, "counter", &[]).unwrap();
    assert_eq!(sandbox.global_get(counter), Value::I64(8));

    let Some(Extern::Table(table)) = sandbox.export(main, "table") else { panic!("no table") };
    let Some(Value::FuncRef(Some(recurse_to))) = sandbox.table_get(table, 0) else { panic!("no reference") };
    assert_eq!(Some(recurse_to), sandbox.export_function(main, "recurse_to"));
    assert_eq!(sandbox.table_get(table, 3), Some(Value::FuncRef(None)));
    assert_eq!(sandbox.table_get(table, 4), None);
    prepare(&mut sandbox, "reference", &[]);
    assert_eq!(resume(&mut sandbox), Event::Returned);
    assert_eq!(sandbox.results(), [Value::FuncRef(Some(recurse_to))]);
    sandbox.prepare(recurse_to, &[Value::I32(3)]).unwrap();
    assert_eq!(resume(&mut sandbox), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I32(3)]);

    let ty = TableType { element: ValType::EXTERNREF, elements_min: 2, elements_max: None, table64: false };
    let table = sandbox.new_table(ty, Value::ExternRef(Some(0))).unwrap();
    assert_eq!(sandbox.table_get(table, 1), Some(Value::ExternRef(Some(0))));
    assert!(sandbox.new_table(ty, Value::FuncRef(None)).is_err());
    let global = sandbox.new_global(GlobalType { value: ValType::F32, mutable: true }, Value::F32(1)).unwrap();
    assert_eq!(sandbox.global_get(global), Value::F32(1));
    assert!(sandbox.new_global(GlobalType { value: ValType::F32, mutable: true }, Value::I32(1)).is_err());
}

#[test]
fn a_failed_instance_leaves_its_functions_callable_in_tables() {
    let _worker = worker();
    use awsm_abi::descriptor::{ConstOp, ImportType, SegmentMode};
    let mut sandbox = Sandbox::new(&LIMITS).unwrap();
    let ty = TableType { element: ValType::FUNCREF, elements_min: 10, elements_max: None, table64: false };
    let table = sandbox.new_table(ty, Value::FuncRef(None)).unwrap();
    let mut failing = parts();
    let module = &mut failing.descriptor.modules[0];
    module.tables.clear();
    module.imports.push(awsm_abi::descriptor::Import { module: "m".into(), name: "t".into(), ty: ImportType::Table(ty) });
    module.data[1].mode = SegmentMode::Active { target: 0, offset: vec![ConstOp::I32Const(-1)] };
    failing.descriptor.plan.clear();
    let imports = [echo(), nothing(), Extern::Table(table)];
    let error = sandbox.instantiate(&failing.load(), 0, &imports).unwrap_err();
    assert!(matches!(error, InstantiateError::Trap(TrapCode::MemoryOutOfBounds)), "{error}");
    let Some(Value::FuncRef(Some(function))) = sandbox.table_get(table, 0) else { panic!("no reference") };
    sandbox.prepare(function, &[Value::I32(4)]).unwrap();
    assert_eq!(resume(&mut sandbox), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I32(4)]);
}

#[test]
fn memories_made_by_the_host_obey_the_limits() {
    let mut sandbox = Sandbox::new(&LIMITS).unwrap();
    let ty = |pages_min| MemoryType { pages_min, pages_max: None, memory64: false, shared: false };
    let memory = sandbox.new_memory(ty(60)).unwrap();
    assert_eq!(sandbox.memory_of(memory).len(), 60 << 16);
    let error = sandbox.new_memory(ty(5)).unwrap_err().to_string();
    assert!(error.contains("the limit is 4194304"), "{error}");
    assert!(sandbox.new_memory(ty(u64::MAX)).is_err());
    assert_eq!(sandbox.memory_bytes(), 60 << 16);
}
