//! tonic: the original with another transport.

use std::path::{Path, PathBuf};

use crate::direct;
use crate::manifest::{is_for_development, Manifest};
use crate::metadata::Original;
use crate::{copy, kit, read, write as write_file, Error};

/// A version that is supported, and the files that it takes.
struct Files {
    begin: &'static str,
    bodies: &'static str,
    version: &'static str,
    manifest: &'static str,
    /// Whether it gets the short way of unary calls.
    has_direct: bool,
}

const VERSIONS: [Files; 5] = [
    Files { begin: "0.10.", bodies: HTTP02, version: "0.10", manifest: "0.10", has_direct: false },
    Files { begin: "0.11.", bodies: HTTP02, version: "0.10", manifest: "0.11", has_direct: false },
    Files { begin: "0.12.", bodies: "http1", version: "0.12", manifest: "0.12", has_direct: false },
    Files { begin: "0.13.", bodies: "http1", version: "0.14", manifest: "0.13", has_direct: true },
    Files { begin: "0.14.", bodies: "http1", version: "0.14", manifest: "0.14", has_direct: true },
];
const SUPPORTED: &str = "0.10 to 0.14";
const HTTP02: &str = "http02";

/// What the original's transport needs, and this one does not, or with other features.
const LEFT_OUT: [&str; 11] = [
    "hyper",
    "hyper-timeout",
    "hyper-util",
    "rustls",
    "rustls-native-certs",
    "rustls-pemfile",
    "rustls-pki-types",
    "socket2",
    "tokio",
    "tokio-rustls",
    "webpki-roots",
];

/// Writes it; its folder.
pub fn write(original: &Original, out: &Path) -> Result<PathBuf, Error> {
    let unsupported = || Error::Version { name: "tonic", version: original.version.clone(), supported: SUPPORTED };
    let files = VERSIONS.iter().find(|files| original.version.starts_with(files.begin)).ok_or_else(unsupported)?;
    let folder = out.join("tonic");
    let mut kept = vec!["transport/error.rs", "transport/service/grpc_timeout.rs"];
    if files.bodies == HTTP02 {
        // There the routes are a part of the transport.
        kept.push("transport/service/router.rs");
    }
    let sources = original.folder.join("src");
    copy(&sources, &folder.join("src"), &|path, bytes| {
        let bytes = if files.has_direct { direct::changed(&sources, path, bytes)? } else { bytes };
        Ok(if path == Path::new("request.rs") {
            Some(without_certificates(&String::from_utf8_lossy(&bytes)).into_bytes())
        } else if path.starts_with("transport") && !kept.iter().any(|kept| Path::new(kept) == path) {
            None
        } else {
            Some(bytes)
        })
    })?;

    let transport = folder.join("src/transport");
    let service = if files.bodies == HTTP02 { kit::text("tonic/compat/service-http02.rs") } else { SERVICE };
    kit::write("tonic/transport", &transport, |text| if text == SERVICE { service.to_owned() } else { text.to_owned() })?;
    for (file, from) in [("compat", files.bodies), ("version", files.version)] {
        write_file(&transport.join(file).with_extension("rs"), kit::text(&format!("tonic/compat/{from}.rs")).as_bytes())?;
    }

    if files.has_direct {
        kit::write("tonic/direct", &transport.join("direct"), str::to_owned)?;
    } else {
        write_file(&transport.join("direct/mod.rs"), kit::text("tonic/compat/direct-none.rs").as_bytes())?;
    }

    let left_out = |head: &str| {
        let names = LEFT_OUT.iter().any(|name| head.strip_prefix("dependencies.") == Some(name));
        names || head == "features" || is_for_development(head)
    };
    let mut tables = Manifest::new(&read(&original.folder.join("Cargo.toml"))?).without(left_out);
    tables.push(kit::text(&format!("tonic/compat/{}.toml", files.manifest)));
    write_file(&folder.join("Cargo.toml"), tables.text().as_bytes())?;
    Ok(folder)
}

/// The module of which tonic 0.10 and 0.11 have one more file.
const SERVICE: &str = include_str!("../../tonic/transport/service/mod.rs");

/// What a request says of certificates has the types of rustls.
fn without_certificates(request: &str) -> String {
    let features = ["_tls-any", "tls-connect-info", "tls"];
    features.iter().fold(request.to_owned(), |text, feature| text.replace(&format!("feature = \"{feature}\""), "any()"))
}
