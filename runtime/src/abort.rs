//! What the process does not outlive: a panic where the server would go on as half a server. The runtime catches panics of tasks, so that one of
//! a worker's would only be missed.

use std::future::Future;

/// Ends the process when it is dropped by a panic.
#[derive(Debug)]
pub struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// A task without which there is no server.
pub async fn vital<T>(task: impl Future<Output = T>) -> T {
    let _abort = AbortOnPanic;
    task.await
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use tokio::runtime::Builder;

    use super::*;

    const CHILD: &str = "SLEDGE_TEST_PANIC";

    #[test]
    fn a_vital_task_that_panics_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            let runtime = Builder::new_current_thread().build().expect("a runtime");
            let task = async {
                tokio::task::yield_now().await;
                panic!("as it was told");
            };
            let _: Result<(), _> = runtime.block_on(runtime.spawn(vital(task)));
            return;
        }
        let mut again = Command::new(std::env::current_exe().expect("this program"));
        again.args(["--exact", "abort::tests::a_vital_task_that_panics_ends_the_process"]).env(CHILD, "1");
        let status = again.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("a child");
        assert_eq!(status.signal(), Some(nix::libc::SIGABRT), "{status}");
    }
}
