//! Signals of programs in Go: none come to a function, and waiting for them must cost nothing.
//!
//! The first `signal.Notify` starts a goroutine that asks the runtime for signals. For wasip1, Go 1.24 to 1.26 wait for one by asking again and again (`notetsleepg` in
//! `runtime/lock_wasip1.go`). So some goroutine can always run, and Go's poller is only looked at when none can: no call and no request would ever be waited for.
//! Most servers call `signal.Notify`, to end in good order. Here they are built with an `os/signal` that does not start the goroutine (`go build -overlay`).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::BuildError;
use super::library::write_changed;

/// What is taken out of files of `os/signal`: the start of the goroutine, and where `signal.Stop` waits for it.
const LEFT_OUT: [(&str, &str); 2] =
    [("signal_unix.go", "\twatchSignalLoop = loop\n"), ("signal.go", "\tsignalWaitUntilIdle()\n")];

/// Writes what `-overlay` reads, for the Go that is in `root`. None where that Go has other files, which are then left as they are.
pub(super) fn overlay(root: &Path, folder: &Path) -> Result<Option<PathBuf>, BuildError> {
    let package = root.join("src/os/signal");
    let mut replaced = serde_json::Map::new();
    for (name, left_out) in LEFT_OUT {
        let original = package.join(name);
        let text = fs::read_to_string(&original).unwrap_or_default();
        // One without the other would wait for what never comes.
        let Some((before, behind)) = text.split_once(left_out) else { return Ok(None) };
        let ours = folder.join(name);
        write_changed(&ours, format!("{before}{behind}").as_bytes())?;
        replaced.insert(original.display().to_string(), ours.display().to_string().into());
    }
    let overlay = folder.join("overlay.json");
    write_changed(&overlay, json!({ "Replace": replaced }).to_string().as_bytes())?;
    Ok(Some(overlay))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_go_that_has_both_gets_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let (root, to) = (folder.path().join("go"), folder.path().join("signal"));
        let write = |name: &str, text: &str| write_changed(&root.join("src/os/signal").join(name), text.as_bytes()).unwrap();
        assert!(overlay(&root, &to).unwrap().is_none());
        write("signal_unix.go", "func init() {\n\twatchSignalLoop = loop\n}\n");
        write("signal.go", "func Stop() {\n}\n");
        assert!(overlay(&root, &to).unwrap().is_none());
        write("signal.go", "func Stop() {\n\tsignalWaitUntilIdle()\n}\n\nfunc signalWaitUntilIdle()\n");
        let file = overlay(&root, &to).unwrap().unwrap();
        let list: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let ours = list["Replace"][root.join("src/os/signal/signal.go").to_str().unwrap()].as_str().unwrap();
        assert_eq!(fs::read_to_string(ours).unwrap(), "func Stop() {\n}\n\nfunc signalWaitUntilIdle()\n");
        assert_eq!(fs::read_to_string(to.join("signal_unix.go")).unwrap(), "func init() {\n}\n");
    }
}
