//! The files of this folder, which the program carries along.

use std::path::Path;

use crate::{write as write_file, Error};

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../", $path)))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "rt/Cargo.toml",
    "rt/src/call.rs",
    "rt/src/entry.rs",
    "rt/src/exchange.rs",
    "rt/src/lib.rs",
    "rt/src/once.rs",
    "rt/src/park.rs",
    "rt/src/rows.rs",
    "rt/src/stdout.rs",
    "rt/src/sys.rs",
    "tokio-macros/Cargo.toml",
    "tokio-macros/src/lib.rs",
    "tokio/Cargo.toml",
    "tokio/src/__sledge.rs",
    "tokio/src/lib.rs",
    "tokio/src/net.rs",
    "tokio/src/process.rs",
    "tokio/src/runtime.rs",
    "tokio/src/signal.rs",
    "tokio/src/task.rs",
    "tonic/transport/channel/body.rs",
    "tonic/transport/channel/call.rs",
    "tonic/transport/channel/endpoint.rs",
    "tonic/transport/channel/mod.rs",
    "tonic/transport/channel/unary.rs",
    "tonic/transport/mod.rs",
    "tonic/transport/server/answer.rs",
    "tonic/transport/server/connection.rs",
    "tonic/transport/server/heads.rs",
    "tonic/transport/server/incoming.rs",
    "tonic/transport/server/mod.rs",
    "tonic/transport/service/mod.rs",
    "tonic/transport/service/rows.rs",
    "tonic/transport/tls.rs",
    "tonic/compat/0.10.rs",
    "tonic/compat/0.10.toml",
    "tonic/compat/0.11.toml",
    "tonic/compat/0.12.rs",
    "tonic/compat/0.12.toml",
    "tonic/compat/0.13.toml",
    "tonic/compat/0.14.rs",
    "tonic/compat/0.14.toml",
    "tonic/compat/direct-none.rs",
    "tonic/compat/http02.rs",
    "tonic/compat/http1.rs",
    "tonic/compat/service-http02.rs",
    "tonic/direct/client.rs",
    "tonic/direct/message.rs",
    "tonic/direct/mod.rs",
    "tonic/direct/server.rs",
    "tonic/direct/whole.rs",
];

/// The text of one.
pub fn text(path: &str) -> &'static str {
    FILES.iter().find(|(name, _)| *name == path).map_or("", |(_, text)| text)
}

/// Writes the files of the folder `from` to `to`, with what `change` makes of them.
pub fn write(from: &str, to: &Path, change: impl Fn(&str) -> String) -> Result<(), Error> {
    for (path, text) in FILES {
        if let Some(rest) = path.strip_prefix(from).and_then(|rest| rest.strip_prefix('/')) {
            write_file(&to.join(rest), change(text).as_bytes())?;
        }
    }
    Ok(())
}
