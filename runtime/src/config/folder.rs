//! Folders of files that the server sends, without running a function.

use std::net::SocketAddr;
use std::path::PathBuf;

use hyper::header::HeaderValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Problems, route};
use super::{CompressionConfig, compression};

/// Folders of one server.
pub const FOLDERS_MAX: usize = 1_000;

/// A folder whose files clients can read. Names that begin with `.` are left out, except `.well-known`, and links lead nowhere outside of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderConfig {
    /// A prefix: `/assets/*` stands for all paths below `/assets/` that no other route matches. What stands in place of the `*` is the name of a file. `index.html` stands for its folder.
    #[schemars(length(min = 3, max = 200))]
    pub route: String,
    /// The folder. Relative to the configuration file's folder.
    pub path: PathBuf,
    /// What `cache-control` says of the files, such as `max-age=3600`. Default: nothing; clients ask whether a file has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    /// Which files are compressed on their way out; `{}` for the defaults. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<CompressionConfig>,
    /// The address, `IP:PORT`, if the paths are at an address that functions have to themselves (`listen`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
}

impl FolderConfig {
    /// The address at which it is, if that is not the server's own.
    #[must_use]
    pub fn site(&self) -> Option<SocketAddr> {
        self.listen.as_deref().and_then(|listen| listen.parse().ok())
    }
}

/// Checks one by itself; `at` is its key, and `listens` says whether functions have an address.
pub(super) fn check(at: &str, folder: &FolderConfig, listens: impl Fn(&str) -> bool, problems: &mut Problems<'_>) {
    // Whether the folder is there shows when it is opened: one that is not does not keep the server from its work.
    let FolderConfig { route, path: _, cache_control, compression, listen } = folder;
    if route.ends_with("/*") {
        self::route(format!("{at}.route"), route, problems);
    } else {
        problems.push(format!("{at}.route"), format!("`{}` is no prefix; give one such as /assets/*", route.escape_default()));
    }
    if let Some(text) = cache_control.as_ref().filter(|text| text.is_empty() || HeaderValue::from_str(text).is_err()) {
        problems.push(format!("{at}.cache_control"), format!("`{}` is not the value of a header", text.escape_default()));
    }
    if let Some(compression) = compression {
        compression::check(&format!("{at}.compression"), compression, problems);
    }
    if let Some(listen) = listen.as_deref().filter(|listen| !listens(listen)) {
        problems.push(format!("{at}.listen"), format!("`{}` is not the address of a function", listen.escape_default()));
    }
}
