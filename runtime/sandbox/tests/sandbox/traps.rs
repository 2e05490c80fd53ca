//! Every way in which a guest can trap, each followed by proof that the sandbox's host is well.

use sledge_sandbox::*;

use crate::guest::{LIMITS, artifact, call, parts, prepare, resume, template, wasm_start, worker};

fn trap_of(name: &str, args: &[i32]) -> Trap {
    let mut sandbox = template().instantiate().unwrap();
    let trap = call(&mut sandbox, name, args).unwrap_err();
    assert_eq!(call(&mut sandbox, "add", &[1, 2]), Ok(vec![Value::I32(3)]), "the next call after {trap:?}");
    trap
}

#[test]
fn explicit_traps_carry_their_reason_and_place() {
    let _worker = worker();
    let trap = trap_of("unreachable", &[]);
    assert_eq!(trap.code, TrapCode::Unreachable);
    let location = trap.location.unwrap();
    assert_eq!(location.offset, wasm_start("unreachable") + 10);
    let functions = &artifact().descriptor().modules[0].functions;
    assert_eq!(functions[location.function as usize - 2].name.as_deref(), Some("unreachable"));
}

#[test]
fn an_instruction_that_is_no_trap_is_an_internal_error_and_contained() {
    let _worker = worker();
    assert_eq!(trap_of("illegal", &[]).code, TrapCode::Internal);
    assert_eq!(trap_of("no_such_builtin", &[]).code, TrapCode::Internal);
    assert_eq!(trap_of("stray_slots", &[]).code, TrapCode::Internal);
}

#[test]
#[cfg(target_arch = "x86_64")] // elsewhere divisions do not fault
fn hardware_faults_of_division_have_the_reason_that_the_table_names() {
    let _worker = worker();
    assert_eq!(trap_of("divide", &[1, 0]).code, TrapCode::IntegerDivideByZero);
}

#[test]
fn accesses_outside_of_the_memory_trap_everywhere_a_32_bit_index_can_reach() {
    let _worker = worker();
    for address in [0x2_0000, 0x1_fffd, 0x10_0000, i32::MAX, i32::MIN, -4, -1] {
        let trap = trap_of("load", &[address]);
        assert_eq!(trap.code, TrapCode::MemoryOutOfBounds, "load at {address:#x}");
        assert_eq!(trap_of("store", &[address, 1]).code, TrapCode::MemoryOutOfBounds, "store at {address:#x}");
    }
    let mut sandbox = template().instantiate().unwrap();
    assert_eq!(call(&mut sandbox, "load", &[0x1_fffc]), Ok(vec![Value::I32(0)]));
}

#[test]
fn a_memory_without_pages_traps_at_its_first_byte() {
    let _worker = worker();
    let mut parts = parts();
    parts.descriptor.modules[0].memories[0].ty.pages_min = 0;
    parts.descriptor.modules[0].data.truncate(1);
    let template = Template::new(&parts.load(), &LIMITS).unwrap();
    let mut sandbox = template.instantiate().unwrap();
    assert_eq!(call(&mut sandbox, "load", &[0]).unwrap_err().code, TrapCode::MemoryOutOfBounds);
    assert_eq!(call(&mut sandbox, "grow", &[1]), Ok(vec![Value::I32(0)]));
    assert_eq!(call(&mut sandbox, "load", &[0]), Ok(vec![Value::I32(0)]));
}

#[test]
fn a_fault_in_a_helper_is_its_callers_and_the_backtrace_shows_the_caller() {
    let _worker = worker();
    let mut sandbox = template().instantiate().unwrap();
    let trap = call(&mut sandbox, "outer", &[-1]).unwrap_err();
    assert_eq!(trap.code, TrapCode::MemoryOutOfBounds);
    check_helpers_backtrace(&sandbox);

    // The same where the unwind information is found through its table.
    let mut parts = parts();
    parts.flags = vec!["--eh-frame-hdr"];
    let mut sandbox = Template::new(&parts.load(), &LIMITS).unwrap().instantiate().unwrap();
    call(&mut sandbox, "outer", &[-1]).unwrap_err();
    check_helpers_backtrace(&sandbox);
}

fn check_helpers_backtrace(sandbox: &Sandbox) {
    let backtrace = sandbox.backtrace();
    let names: Vec<_> = backtrace.frames.iter().map(|frame| frame.name.clone().unwrap()).collect();
    assert_eq!(names.last().map(String::as_str), Some("guest::outer"), "demangled");
    assert_eq!(names[names.len() - 2..], ["load_by_helper", "guest::outer"]);
    assert!(!backtrace.truncated && backtrace.frames.iter().all(|frame| !frame.inlined));
    assert!(backtrace.to_string().starts_with("   0: "), "{backtrace}");
}

#[test]
fn endless_recursion_exhausts_the_stack_and_the_backtrace_has_a_limit() {
    let _worker = worker();
    for _ in 0..3 {
        let mut sandbox = template().instantiate().unwrap();
        assert_eq!(call(&mut sandbox, "recurse", &[0]).unwrap_err().code, TrapCode::StackExhausted);
        let backtrace = sandbox.backtrace();
        assert!(backtrace.truncated && backtrace.frames.len() == limits::BACKTRACE_FRAMES_MAX);
        assert_eq!(backtrace.frames[0].name.as_deref(), Some("recurse"));
        assert_eq!(call(&mut sandbox, "recurse_to", &[100]), Ok(vec![Value::I32(100)]));
    }
}

#[test]
fn the_stack_runs_out_at_every_alignment_of_a_host_call() {
    let _worker = worker();
    let template = template();
    // Stacks of different sizes let the guard be reached at different instructions: in the function, the thunk, the stub.
    for bytes in (0..40).map(|i| (64 << 10) + i * 4096) {
        let template = Template::new(template.artifact(), &SandboxLimits { stack_bytes: bytes, ..LIMITS }).unwrap();
        let mut sandbox = template.instantiate().unwrap();
        prepare(&mut sandbox, "recurse_host", &[Value::I32(0)]);
        let trap = loop {
            match resume(&mut sandbox) {
                Event::HostCall(_) => sandbox.host_results(&[Value::I32(0)]).unwrap(),
                Event::Trapped(trap) => break trap,
                event => panic!("{event:?}"),
            }
        };
        assert_eq!(trap.code, TrapCode::StackExhausted);
        assert!(sandbox.backtrace().frames[0].name.as_deref() == Some("recurse_host"), "{}", sandbox.backtrace());
    }
}

#[test]
fn a_deep_stack_holds_what_its_size_promises() {
    let _worker = worker();
    let template = Template::new(artifact(), &SandboxLimits { stack_bytes: 16 << 20, ..LIMITS }).unwrap();
    let mut sandbox = template.instantiate().unwrap();
    assert_eq!(call(&mut sandbox, "recurse_to", &[200_000]), Ok(vec![Value::I32(200_000)]));
}

#[test]
fn bulk_operations_out_of_bounds_trap_and_dropped_segments_are_empty() {
    let _worker = worker();
    let mut sandbox = template().instantiate().unwrap();
    assert_eq!(call(&mut sandbox, "memory_init", &[0x1_fffc]), Ok(vec![]));
    assert_eq!(call(&mut sandbox, "load", &[0x1_fffc]), Ok(vec![Value::I32(i32::from_le_bytes(*b"data"))]));
    let trap = call(&mut sandbox, "memory_init", &[0x1_fffd]).unwrap_err();
    assert_eq!(trap.code, TrapCode::MemoryOutOfBounds);
    assert_eq!(trap.location.unwrap().offset, wasm_start("memory_init") + 10);
    assert_eq!(sandbox.backtrace().frames.len(), 1);
    assert_eq!(call(&mut sandbox, "data_drop", &[]), Ok(vec![]));
    assert_eq!(call(&mut sandbox, "memory_init", &[0]).unwrap_err().code, TrapCode::MemoryOutOfBounds);
}

#[test]
fn growth_keeps_to_the_limits_of_type_and_sandbox() {
    let _worker = worker();
    let mut sandbox = template().instantiate().unwrap();
    let grow = |sandbox: &mut Sandbox, pages| call(sandbox, "grow", &[pages]).unwrap()[0];
    assert_eq!(grow(&mut sandbox, 1), Value::I32(2));
    assert_eq!(grow(&mut sandbox, 62), Value::I32(-1));
    assert_eq!(sandbox.refusal(), None);
    assert_eq!(grow(&mut sandbox, -1), Value::I32(-1));
    assert_eq!(grow(&mut sandbox, 61), Value::I32(3));
    assert_eq!(call(&mut sandbox, "load", &[(64 << 16) - 4]), Ok(vec![Value::I32(0)]));
    assert_eq!(sandbox.memory_bytes(), 64 << 16);

    let template = Template::new(artifact(), &SandboxLimits { memory_bytes_max: 10 << 16, ..LIMITS }).unwrap();
    let mut sandbox = template.instantiate().unwrap();
    assert_eq!(grow(&mut sandbox, 9), Value::I32(-1));
    assert_eq!(sandbox.refusal(), Some(Refusal::Limit));
    assert_eq!(grow(&mut sandbox, 8), Value::I32(2));
    assert_eq!(call(&mut sandbox, "table_grow", &[996]), Ok(vec![Value::I32(4)]));
    assert_eq!(call(&mut sandbox, "table_grow", &[1]), Ok(vec![Value::I32(-1)]));
    assert!(Template::new(artifact(), &SandboxLimits { memory_bytes_max: 65536, ..LIMITS }).is_err());
}

/// Runs a test in a process of its own, in which [`is_doomed`] is true.
pub(crate) fn in_another_process(test: &str) -> std::process::Output {
    let this = std::env::current_exe().unwrap();
    // Programs for another machine are started as cargo starts them: `qemu-aarch64 -L ...`.
    let runner = std::env::var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER").ok().filter(|_| cfg!(target_arch = "aarch64"));
    let runner = runner.unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut command = std::process::Command::new(words.next().map_or(this.as_os_str(), std::ffi::OsStr::new));
    if !runner.is_empty() {
        command.args(words).arg(&this);
    }
    command.args(["--exact", test, "--nocapture"]).env("SLEDGE_SANDBOX_DOOMED", "1").output().unwrap()
}

pub(crate) fn is_doomed() -> bool {
    std::env::var_os("SLEDGE_SANDBOX_DOOMED").is_some()
}

#[test]
fn an_access_that_no_sandbox_owns_ends_the_process_with_a_message() {
    use std::os::unix::process::ExitStatusExt;
    if is_doomed() {
        let _worker = worker();
        let mut sandbox = template().instantiate().unwrap();
        let _ = call(&mut sandbox, "wild", &[]);
        std::process::exit(0);
    }
    let output = in_another_process("traps::an_access_that_no_sandbox_owns_ends_the_process_with_a_message");
    assert_eq!(output.status.signal(), Some(6), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("touched 0x0000000000001000, which is no part of its sandbox"), "{message}");
}

#[test]
fn faults_of_the_host_go_to_the_handler_that_was_there_before() {
    use std::os::unix::process::ExitStatusExt;
    #[allow(unconditional_recursion)]
    fn overflow(depth: u64) -> u64 {
        overflow(std::hint::black_box(depth + 1)) + 1
    }
    if is_doomed() {
        let _worker = worker();
        let mut sandbox = template().instantiate().unwrap();
        call(&mut sandbox, "add", &[1, 1]).unwrap();
        println!("{}", overflow(0));
        std::process::exit(0);
    }
    let output = in_another_process("traps::faults_of_the_host_go_to_the_handler_that_was_there_before");
    assert_eq!(output.status.signal(), Some(6), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("has overflowed its stack"), "{message}");
}
