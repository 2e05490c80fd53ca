//! Calls guests one at a time, for a tracer that steps through their instructions (`stepping.rs`).
//!
//! Given an artifact, says its thread's number, and then for each line `EXPORT resume` or `EXPORT kill` calls that export in a sandbox of a
//! pool, between a SIGUSR1 and a SIGUSR2 to itself. What is suspended meanwhile is resumed, or killed. Answers with what came of it, how often it was
//! suspended, and whether a tick was noted elsewhere.
#![forbid(unsafe_code)]

use nix::sys::signal::{Signal, raise};
use sledge_sandbox::{Artifact, Event, LoadPolicy, Pool, Sandbox, SandboxLimits, Template, Value, WorkerThread};
use std::time::Duration;

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| anyhow::anyhow!("give an artifact"))?;
    let artifact = Artifact::load(&std::fs::read(path)?, &LoadPolicy::default())?;
    let limits = SandboxLimits { memory_bytes_max: 1 << 20, stack_bytes: 128 << 10, ..SandboxLimits::default() };
    let template = Template::new(&artifact, &limits)?;
    // Its timer is never started: signals come from outside.
    let worker = WorkerThread::enter(Duration::from_secs(1))?;
    let mut pool = Pool::new();
    println!("{}", nix::unistd::gettid());
    for line in std::io::stdin().lines() {
        let line = line?;
        let (export, what) = line.split_once(' ').ok_or_else(|| anyhow::anyhow!("{line:?}"))?;
        let mut sandbox = pool.take(&template)?;
        let function = sandbox.main_instance().and_then(|main| sandbox.export_function(main, export));
        sandbox.prepare(function.ok_or_else(|| anyhow::anyhow!("no {export}"))?, &[])?;
        let _ = worker.take_tick();
        raise(Signal::SIGUSR1)?;
        let (end, suspended) = run(&mut sandbox, what == "kill")?;
        raise(Signal::SIGUSR2)?;
        let noted = worker.take_tick();
        let idle = pool.idle();
        let whole = end.starts_with("returned");
        pool.put(sandbox);
        anyhow::ensure!((pool.idle() > idle) == whole, "{line}: {end}, and {} idle sandboxes after {idle}", pool.idle());
        println!("{end}; suspended {suspended}, noted {}", u32::from(noted));
    }
    Ok(())
}

fn run(sandbox: &mut Sandbox, kill: bool) -> anyhow::Result<(String, u32)> {
    let mut suspended = 0;
    loop {
        match sandbox.resume() {
            Event::Preempted => {
                suspended += 1;
                if kill {
                    sandbox.kill();
                    return Ok(("killed".to_owned(), suspended));
                }
            }
            Event::HostCall(_) => {
                let argument = sandbox.host_args().first().map_or(0, |slot| slot.i32());
                sandbox.host_results(&[Value::I32(argument.wrapping_mul(3))])?;
            }
            Event::Returned => return Ok((format!("returned {:?}", sandbox.results()), suspended)),
            Event::Waits { .. } => anyhow::bail!("it waits, and nothing wakes it"),
            Event::Trapped(trap) => return Ok((format!("trapped {:?}", trap.code), suspended)),
        }
    }
}
