//! Initialising once what is the same for all requests: what requests find afterwards, and what must not be done.

use crate::guest::{begun, loaded, on_worker};
use sledge::config::{FunctionConfig, Snapshot};
use sledge::invoke::driver::Progress;
use sledge::invoke::function::{Function, Home};
use sledge::invoke::loaded::FunctionError;
use sledge::invoke::snapshot::InitError;
use sledge::outcome::Failure;
use sledge_sandbox::TrapCode;

/// A reactor that is initialised so, and replies with the byte at 128.
fn reactor(imports: &str, body: &str, change: impl FnOnce(&mut FunctionConfig)) -> Result<Function, InitError> {
    let fields = format!(
        r#"{imports} ;; (tag $tag) (global $thrown (mut exnref) (ref.null exn)) (func (export "_initialize") {body})
          (func (export "sledge_handle") (result i32) (call $say (i32.load8_u (i32.const 128))) (i32.const 0))"#
    );
    match loaded(&fields, change) {
        Ok(loaded) => Ok(Function::new(loaded, Home::alone())),
        Err(FunctionError::Init(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

fn replies(function: &Function) -> Vec<u8> {
    on_worker(|| {
        let mut driver = begun(function);
        loop {
            match driver.run(&function.program) {
                Progress::Ended(result) => break assert_eq!(result, Ok(())),
                Progress::Preempted => {}
                other => panic!("{other:?}"),
            }
        }
        driver.finish().reply.to_vec()
    })
}

fn fails(imports: &str, body: &str) -> InitError {
    reactor(imports, body, |_| {}).err().unwrap_or_else(|| panic!("{body}: it is initialised"))
}

#[test]
fn each_request_begins_with_what_was_initialised_once() {
    let counts = "(i32.store8 (i32.const 128) (i32.add (i32.load8_u (i32.const 128)) (i32.const 97)))";
    let function = reactor("", counts, |_| {}).expect("a function");
    assert_eq!(function.program.stages.len(), 1, "the request alone");
    for _ in 0..2 {
        assert_eq!(replies(&function), b"a");
    }
    let function = reactor("", counts, |config| config.snapshot = Snapshot::Off).expect("a function");
    assert_eq!((function.program.stages.len(), replies(&function)), (2, b"a".to_vec()));
    // It takes quanta as any.
    let long = "(local $i i32) (loop $on (i32.store (i32.const 256) (i32.add (i32.load (i32.const 256)) (local.get $i)))
          (br_if $on (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20000000))))";
    assert_eq!(replies(&reactor("", &format!("{long} {counts}"), |_| {}).expect("a function")), b"a");
}

#[test]
fn what_fails_in_it_is_said_with_where() {
    assert!(
        matches!(fails("", "unreachable"), InitError::Trap { code: TrapCode::Unreachable, backtrace, .. } if backtrace.frames.len() == 1)
    );
    assert!(matches!(fails("", "(call $do (i32.const 2) (i32.const 7))"), InitError::Exit { status: 7, .. }));
    assert!(matches!(fails("", "(call $do (i32.const 2) (i32.const 0))"), InitError::Exit { status: 0, .. }));
    // By which `init` may be left, and nothing else.
    let leaves = "(call $do (i32.const 2) (i32.const 0x53455256))";
    assert!(matches!(fails("", leaves), InitError::Exit { status: 0x5345_5256, .. }));
    assert!(matches!(fails("", "(call $do (i32.const 10) (i32.const 0))"), InitError::Host { call: "act", .. }));
    assert!(matches!(fails("", "(call $do (i32.const 6) (i32.const 0))"), InitError::Failed { .. }));
    let error = fails("", "(call $do (i32.const 2) (i32.const 7))").to_string();
    assert_eq!(error, "its initialisation failed: `_initialize` ended the program with status 7");
}

#[test]
fn what_cannot_be_copied_is_refused() {
    let throws =
        "(global.set $thrown (block $caught (result exnref) (try_table (catch_all_ref $caught) (throw $tag)) unreachable))";
    assert!(matches!(fails("", throws), InitError::Exception));
    let switch = r#"(import "sledge:canonical" "switch" (func $switch (param i32)))"#;
    let fields = format!(
        r#"{switch} ;; (func (export "stack") (call $switch (i32.const 0)) unreachable)
          (func (export "_initialize") (call $switch (i32.const 1))) (func (export "sledge_handle") (result i32) (i32.const 0))"#
    );
    assert!(matches!(loaded(&fields, |_| {}), Err(FunctionError::Init(InitError::Stacks))));
    let folder = tempfile::tempdir().expect("a folder");
    let open = r#"(import "wasi_snapshot_preview1" "path_open"
        (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))"#;
    let opens = r#"(i32.store8 (i32.const 256) (i32.const 46))
        (drop (call $path_open (i32.const 3) (i32.const 0) (i32.const 256) (i32.const 1) (i32.const 2) (i64.const 0) (i64.const 0)
          (i32.const 0) (i32.const 512)))"#;
    let granted = |config: &mut FunctionConfig| {
        config.dirs = vec![sledge::config::DirConfig {
            host: folder.path().to_owned(),
            guest: "/d".to_owned(),
            write: sledge::config::DirWrite::No,
            within: None,
        }];
        config.snapshot = Snapshot::SharedSeed;
    };
    assert!(matches!(reactor(open, opens, granted), Err(InitError::Open)));
    // Without a folder it opens nothing, for any request.
    assert!(reactor(open, opens, |_| {}).is_ok());
}

/// A program that does not return from `init` may leave it by one status of WASI's exit, which no other call may.
#[test]
fn init_may_be_left_by_an_exit() {
    let exit = r#"(import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))"#;
    let leaves = "(call $proc_exit (i32.const 0x53455256))";
    let starts = |init: &str, handle: &str| {
        let fields = format!(
            r#"{exit} ;; (func (export "init") (i32.store8 (i32.const 128) (i32.const 97)) {init})
              (func (export "sledge_handle") (result i32) (call $say (i32.load8_u (i32.const 128))) {handle} (i32.const 0))"#
        );
        let change = |config: &mut FunctionConfig| {
            config.init = Some("init".to_owned());
            config.snapshot = Snapshot::Off;
        };
        let function = Function::new(loaded(&fields, change).expect("a function"), Home::alone());
        on_worker(|| {
            let mut driver = begun(&function);
            let result = loop {
                match driver.run(&function.program) {
                    Progress::Ended(result) => break result,
                    Progress::Preempted => {}
                    other => panic!("{other:?}"),
                }
            };
            (result, driver.finish().reply.to_vec())
        })
    };
    assert_eq!(starts(leaves, ""), (Ok(()), b"a".to_vec()));
    assert_eq!(starts("", ""), (Ok(()), b"a".to_vec()));
    let status = 0x5345_5256;
    assert_eq!(starts("(call $proc_exit (i32.const 7))", ""), (Err(Failure::Exit(7)), Vec::new()));
    assert_eq!(starts("(call $proc_exit (i32.const 0))", ""), (Ok(()), Vec::new()));
    // Another host function that ends the program, and another call.
    assert_eq!(starts("(call $do (i32.const 2) (i32.const 0x53455256))", ""), (Err(Failure::Exit(status)), Vec::new()));
    assert_eq!(starts("", leaves), (Err(Failure::Exit(status)), b"a".to_vec()));
}

/// What the operator may accept is done where that is accepted, and only that.
#[test]
fn what_differs_between_requests_is_refused_unless_it_is_accepted() {
    let random = r#"(import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))"#;
    let body = "(drop (call $random_get (i32.const 256) (i32.const 8))) (i32.store8 (i32.const 128) (i32.const 97))";
    assert!(matches!(fails(random, body), InitError::Refused { call: "random_get", acceptable: true, .. }));
    let accepted = reactor(random, body, |config| config.snapshot = Snapshot::SharedSeed).expect("it is accepted");
    assert_eq!(replies(&accepted), b"a");
    let says = "(call $say (i32.const 97))";
    for snapshot in [Snapshot::SharedSeed, Snapshot::On] {
        let Err(error) = reactor("", says, |config| config.snapshot = snapshot) else { panic!("it is not refused") };
        assert!(matches!(error, InitError::Refused { call: "fd_write", acceptable: false, .. }), "{error}");
    }
    // The log is the operator's.
    assert!(reactor("", "(call $write (i32.const 2) (i32.const 97))", |_| {}).is_ok());
}
