//! What an artifact's exports make of it.

use std::iter;

use awsm_abi::descriptor::{Export, Import};

use super::*;
use crate::invoke::by_hand;

fn ty(params: &[ValType], results: &[ValType]) -> FuncType {
    FuncType { params: params.to_vec(), results: results.to_vec() }
}

/// A function without parameters and results.
fn plain() -> FuncType {
    ty(&[], &[])
}

/// One that returns a status.
fn status() -> FuncType {
    ty(&[], &[ValType::I32])
}

/// The calls of an artifact with these exports: those that prepare it, the one that serves a request, and whether it is a reactor.
fn stages_of(exports: &[(&str, FuncType)], init: Option<&str>) -> Result<(Vec<Stage>, Stage, bool), String> {
    let stages = stages(&by_hand::descriptor(exports), init).map_err(|error| error.to_string())?;
    Ok((stages.init, stages.request, stages.reactor))
}

fn run(name: &str) -> Stage {
    Stage::Run(name.into())
}

#[test]
fn a_command_runs_from_its_start_for_each_request() {
    assert_eq!(stages_of(&[("other", plain()), (COMMAND, plain())], None), Ok((Vec::new(), run(COMMAND), false)));
    // It has nothing that could be done before.
    assert_eq!(stages_of(&[(COMMAND, plain()), (INITIALIZE, plain())], None), Ok((Vec::new(), run(COMMAND), false)));
    let error = stages_of(&[(COMMAND, plain()), ("prepare", plain())], Some("prepare")).unwrap_err();
    assert!(error.starts_with("`init` is `prepare`, but a command runs from its start for each request"), "{error}");
}

#[test]
fn a_reactor_is_prepared_in_order_and_then_handles_requests() {
    let handle = Stage::Status(HANDLE);
    assert_eq!(stages_of(&[(HANDLE, status())], None), Ok((Vec::new(), handle.clone(), true)));
    let all = [(COMMAND, plain()), (HANDLE, status()), ("prepare", plain()), (INITIALIZE, plain())];
    assert_eq!(stages_of(&all, None), Ok((vec![run(INITIALIZE)], handle.clone(), true)));
    assert_eq!(
        stages_of(&all, Some("prepare")),
        Ok((vec![run(INITIALIZE), Stage::Init("prepare".into())], handle.clone(), true))
    );
    let error = stages_of(&all[1..], Some("missing")).unwrap_err();
    assert_eq!(error, "`init` is `missing`, but it exports `sledge_handle`, `prepare`, `_initialize`");
    // Start functions come first, each in its instance.
    let mut descriptor = by_hand::descriptor(&all);
    descriptor.modules[0].start = Some(2);
    descriptor.plan.push(descriptor.plan[0].clone());
    let found = stages(&descriptor, None).unwrap();
    assert_eq!((found.init, found.request), (vec![Stage::Start(0), Stage::Start(1), run(INITIALIZE)], handle));
}

#[test]
fn what_is_to_be_called_has_the_right_type() {
    let wrong = |name: &str, ty: FuncType| stages_of(&[(name, ty)], None).unwrap_err();
    let (parameter, two) = (ty(&[ValType::I32], &[]), ty(&[], &[ValType::I32, ValType::I32]));
    assert_eq!(wrong(COMMAND, parameter), "exports `_start` as (i32) -> (), but it must be a function () -> ()");
    assert_eq!(wrong(HANDLE, plain()), "exports `sledge_handle` as () -> (), but it must be a function () -> (i32)");
    assert_eq!(wrong(HANDLE, two), "exports `sledge_handle` as () -> (i32, i32), but it must be a function () -> (i32)");
    assert!(stages_of(&[(HANDLE, status()), (INITIALIZE, status())], None).unwrap_err().contains("`_initialize`"));
    let mut descriptor = by_hand::descriptor(&[]);
    descriptor.modules[0].exports.push(Export { name: COMMAND.to_owned(), kind: ExternKind::Memory, index: 0 });
    let error = stages(&descriptor, None).err().unwrap().to_string();
    assert_eq!(error, "exports `_start` as memory, but it must be a function () -> ()");
}

/// Functions that are imported come first in the index space of functions, and only functions count there.
#[test]
fn imported_functions_are_counted() {
    let mut descriptor = by_hand::descriptor(&[("other", status()), (COMMAND, plain())]);
    let module = &mut descriptor.modules[0];
    let thunk = module.types[0].entry.unwrap();
    let import = |ty| Import { module: "env".to_owned(), name: "x".to_owned(), ty };
    let global = awsm_abi::types::GlobalType { value: ValType::I32, mutable: false };
    module.imports = vec![import(ImportType::Global(global)), import(ImportType::Function { ty: 0, thunk })];
    assert!(stages(&descriptor, None).is_err(), "the function at its index is `other` now");
    descriptor.modules[0].exports.iter_mut().for_each(|export| export.index += 1);
    assert_eq!(stages(&descriptor, None).unwrap().request, run(COMMAND));
    // An export of what is imported.
    descriptor.modules[0].exports = vec![Export { name: HANDLE.to_owned(), kind: ExternKind::Function, index: 0 }];
    assert_eq!(stages(&descriptor, None).unwrap().request, Stage::Status(HANDLE));
    descriptor.modules[0].exports[0].index = 3;
    assert!(stages(&descriptor, None).err().unwrap().to_string().contains("as function"), "there is no such function");
}

#[test]
fn what_has_nothing_to_call_is_told_what_it_exports() {
    let nothing = |exports: &[(&str, FuncType)]| {
        let error = stages_of(exports, None).unwrap_err();
        error.strip_prefix("exports neither `_start` (a command) nor `sledge_handle` (a reactor); ").map(str::to_owned)
    };
    assert_eq!(nothing(&[]).as_deref(), Some("it exports no function at all"));
    assert_eq!(nothing(&[("a", plain()), ("b", status())]).as_deref(), Some("it exports `a`, `b`"));
    let ten = iter::repeat_n("`x`", 10).collect::<Vec<_>>().join(", ");
    assert_eq!(nothing(&vec![("x", plain()); 10]), Some(format!("it exports {ten}")));
    assert_eq!(nothing(&vec![("x", plain()); 13]), Some(format!("it exports {ten} and 3 more")));
    let mut descriptor = by_hand::descriptor(&[("f", plain())]);
    descriptor.modules[0].exports.push(Export { name: "memory".to_owned(), kind: ExternKind::Memory, index: 0 });
    assert!(stages(&descriptor, None).err().unwrap().to_string().ends_with("it exports `f`"), "functions only");
    descriptor.plan.clear();
    assert!(stages(&descriptor, None).err().unwrap().to_string().ends_with("it has no instance"));
}

#[test]
fn settings_are_kept_and_those_that_no_reply_can_carry_refused() {
    let config = FunctionConfig { cpu_ms_max: Some(30), body: BodyMode::Stream, ..FunctionConfig::new("f", "f.wasm") };
    let loaded = by_hand::loaded(&config);
    assert_eq!((loaded.cpu_max, loaded.streams_body), (Duration::from_millis(30), true));
    assert_eq!(loaded.content_type, CONTENT_TYPE_DEFAULT);
    let loaded = by_hand::loaded(&FunctionConfig { content_type: "text/csv".to_owned(), ..FunctionConfig::new("f", "f.wasm") });
    assert_eq!((loaded.cpu_max, loaded.streams_body), (Duration::MAX, false));
    assert_eq!(loaded.content_type, "text/csv");
    assert!(loaded.process.upstream.is_none());
    assert!(matches!(content_type("a\nb"), Err(FunctionError::ContentType(text)) if text == "a\nb"));
    let config = FunctionConfig { http_hosts: vec!["example.org".to_owned()], ..FunctionConfig::new("f", "f.wasm") };
    assert!(by_hand::loaded(&config).process.upstream.is_some());
}

#[test]
fn edges_lead_to_functions_and_to_servers() {
    let config = |list: &[(&str, EdgeConfig)]| {
        let edges = list.iter().map(|(service, edge)| ((*service).to_owned(), edge.clone())).collect();
        FunctionConfig { edges, ..FunctionConfig::new("f", "f.wasm") }
    };
    assert!(by_hand::loaded(&config(&[])).process.edges.is_none());
    let cart = ("shop.Cart", EdgeConfig::Function("cart".to_owned()));
    let tax = |url: &str| ("shop.Tax", EdgeConfig::Url(url.to_owned()));
    let found = by_hand::loaded(&config(&[cart.clone(), tax("https://tax.example:8443")])).process.edges;
    let found = format!("{:?}", found.expect("edges"));
    assert!(found.contains(r#""shop.Cart": Function("cart")"#), "{found}");
    assert!(found.contains(r#""shop.Tax": Server("#) && found.contains("tax.example:8443"), "{found}");
    let error = edges(&config(&[cart, tax("ftp://tax.example")])).unwrap_err();
    assert!(matches!(&error, FunctionError::Edge { service, .. } if service == "shop.Tax"), "{error}");
}
