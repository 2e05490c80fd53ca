//! Certificates: what a server refuses to begin with, `config check` refuses, and a new one comes with SIGHUP.

use crate::entry;
use crate::http::{ask, certificate, connect, run, speak_http2};
use hyper::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use sledge_tests::http::TIME_MAX;
use sledge_tests::process;
use sledge_tests::programs::sledge_command;
use sledge_tests::server::Server;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsConnector, rustls};

fn write_secret(path: &Path, secret: &str, mode: u32) {
    fs::write(path, secret).expect("write a secret");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

/// `config check` and `serve` say the same of it, which is returned, and neither goes on.
#[track_caller]
fn refused(folder: &Path, config: &Value) -> String {
    let file = folder.join("sledge.json");
    fs::write(&file, config.to_string()).expect("write the configuration");
    let said = [["config", "check"].as_slice(), &["serve", "--config"]].map(|command| {
        let done = process::run(sledge_command(command).arg(&file), b"", TIME_MAX);
        assert_eq!(done.code(), 1, "{command:?}: {}{}", done.text(), done.stderr);
        done.stderr
    });
    let lines = |text: &str| text.lines().filter(|line| line.contains("sledge.json: ")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&said[0]), lines(&said[1]), "{said:?}");
    said[0].clone()
}

fn good(folder: &Path) -> Value {
    json!({ "listen": "127.0.0.1:0", "admin": folder.join("admin.sock"), "functions": [entry("echo", "echo.wat")] })
}

#[test]
fn what_a_server_would_refuse_is_not_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (files, ..) = certificate(folder.path());
    let other = tempfile::tempdir().expect("a folder");
    let (others, ..) = certificate(other.path());
    write_secret(&path("open"), "a key that others may read", 0o644);
    write_secret(&path("short"), "short", 0o600);
    write_secret(&path("long"), "0123456789abcdef", 0o600);
    let (tls, key) = (&files["tls_certificate_file"], &files["tls_key"]);
    let function = |keys: Value| json!({ "functions": [crate::entry_with("echo", "echo.wat", &keys)] });
    let telemetry = |keys: Value| {
        let mut telemetry = json!({ "endpoint": "http://127.0.0.1:9" });
        keys.as_object().expect("an object").iter().for_each(|(key, value)| telemetry[key] = value.clone());
        json!({ "telemetry": telemetry })
    };
    for (keys, words) in [
        (json!({ "tls_key": key }), &["tls_certificate_file: is missing"][..]),
        (json!({ "tls_certificate_file": path("none.pem"), "tls_key": key }), &["tls_certificate_file: ", "none.pem"]),
        (json!({ "tls_certificate_file": tls, "tls_key": others["tls_key"] }), &["tls_key ", "key.pem"]),
        (json!({ "tls_certificate_file": path("short"), "tls_key": { "file": "short" } }), &["tls_key: ", "short"]),
        (
            json!({ "tls_certificate_file": tls, "tls_key": { "file": "open" } }),
            &["tls_key: ", "open: others may read or write it (mode 644)"],
        ),
        (
            json!({ "tls_certificate_file": tls, "tls_key": { "env": "SLEDGE_TEST_NO" } }),
            &["tls_key: environment variable SLEDGE_TEST_NO: is not set"],
        ),
        (json!({ "admin_token": { "file": "short" } }), &["admin_token: ", "short: holds 5 bytes; a token has at least 16"]),
        (json!({ "admin_token": { "file": "open" } }), &["admin_token: ", "open: others may read or write it"]),
        (json!({ "admin_token": { "file": "none" } }), &["admin_token: ", "none: No such file"]),
        (json!({ "admin": path("none/admin.sock") }), &["admin: ", "none: No such file"]),
        (json!({ "admin": path("long") }), &["admin: ", "long: a file that is not a socket exists there"]),
        (json!({ "http_ca_file": "none.pem" }), &["http_ca_file: ", "none.pem"]),
        (json!({ "state_dir": path("long").join("below") }), &["state_dir: ", "below: Not a directory"]),
        (
            telemetry(json!({ "headers": { "a": { "file": "open" } } })),
            &["telemetry.headers.a: ", "open: others may read or write it"],
        ),
        (
            function(json!({ "env": { "A": { "file": "open" } } })),
            &["function echo: ", "env.A: ", "open: others may read or write it"],
        ),
        (
            function(json!({ "dirs": [{ "host": path("none"), "guest": "/data" }] })),
            &["function echo: ", "functions[0].dirs[0].host: ", "none: No such file"],
        ),
    ] {
        let mut config = good(folder.path());
        keys.as_object().expect("an object").iter().for_each(|(key, value)| config[key] = value.clone());
        let said = refused(folder.path(), &config);
        assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
        assert!(!said.contains("a key that others may read"), "{said}");
    }
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    write_secret(&folder.path().join("short"), "short", 0o600);
    let mut config = good(folder.path());
    for (key, value) in [
        ("quantum_us", json!(1)),
        ("tls_certificate_file", json!("none.pem")),
        ("tls_key", json!({ "file": "none.key" })),
        ("admin_token", json!({ "file": "short" })),
        ("http_ca_file", json!("none.ca")),
        (
            "telemetry",
            json!({ "endpoint": "http://127.0.0.1:9", "headers": { "a": { "file": "none.a" }, "b": { "env": "SLEDGE_TEST_NO" } } }),
        ),
    ] {
        config[key] = value;
    }
    let telemetry = ["telemetry.headers.a: ", "telemetry.headers.b: "];
    for telemetry in [&telemetry[..], &[]] {
        let keys =
            [&["quantum_us: ", "tls_certificate_file: ", "tls_key: ", "admin_token: "], telemetry, &["http_ca_file: "]].concat();
        let said = refused(folder.path(), &config);
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("sledge.json: ")).collect();
        assert_eq!(lines.len(), keys.len(), "{said}");
        assert!(lines.iter().zip(keys).all(|(line, key)| line.contains(&format!("sledge.json: {key}"))), "{said}");
        // The authorities are named beside telemetry's own problems, and without telemetry.
        config.as_object_mut().expect("an object").remove("telemetry");
    }
}

/// A client that believes anybody: which certificate is shown is what counts here.
fn connector() -> TlsConnector {
    #[derive(Debug)]
    struct Anybody(rustls::crypto::CryptoProvider);
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, UnixTime};
    impl ServerCertVerifier for Anybody {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, rustls::Error> {
            Ok(ServerCertVerified::assertion())
        }
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &rustls::DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
        }
        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &rustls::DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
        }
        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
    let provider = rustls::crypto::ring::default_provider();
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(provider.clone()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions").dangerous();
    let mut client = builder.with_custom_certificate_verifier(Arc::new(Anybody(provider))).with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(client).into()
}

/// A connection and the certificate that was shown; the client resumes sessions, as clients do.
async fn shown(connector: &TlsConnector, server: &Server) -> (TlsStream<TcpStream>, Vec<u8>) {
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = connector.connect(name, connect(server).await).await.expect("TLS");
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()).expect("a certificate").to_vec();
    (stream, certificate)
}

/// New connections get the new certificate, those that there are go on, and no request is lost meanwhile. What does not fit is refused, said, and the
/// certificate before it stays.
#[test]
fn certificates_are_read_again_at_sighup() {
    for listeners in crate::LISTENERS {
        let folder = tempfile::tempdir().expect("a folder");
        let (files, _, first) = certificate(folder.path());
        let mut config = json!({ "workers": 2, "listeners": listeners, "functions": [entry("echo", "echo.wat")] });
        files.as_object().expect("an object").iter().for_each(|(key, value)| config[key] = value.clone());
        let server = Server::start(config);
        let other = tempfile::tempdir().expect("a folder");
        let (_, _, second) = certificate(other.path());
        let take = |name: &str| {
            // In place, as a program that renews them does; the mode goes with it.
            let (from, to) = (other.path().join(name), folder.path().join(name));
            fs::copy(from, &to).expect("copy");
        };
        let ready = || server.admin().get("/readyz").text();
        let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            // Under load all the while: one connection that stays, and new ones.
            let load = scope.spawn(|| {
                run(async {
                    let connector = connector();
                    let kept = speak_http2(shown(&connector, &server).await.0).await;
                    while !stop.load(Ordering::Relaxed) {
                        let new = speak_http2(shown(&connector, &server).await.0).await;
                        for sender in [&kept, &new] {
                            let reply = ask(sender, Method::POST, "/echo", "x").await;
                            assert!(reply.status == 200 && reply.body == "x");
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            });
            let connector = connector();
            let is_shown = |certificate: &rcgen::CertifiedKey<rcgen::KeyPair>| {
                let before = answered.load(Ordering::Relaxed);
                while answered.load(Ordering::Relaxed) < before + 20 {
                    assert!(!load.is_finished(), "a request was lost");
                    std::thread::yield_now();
                }
                // Each thread shows it.
                (0..8).all(|_| run(shown(&connector, &server)).1 == certificate.cert.der().as_ref())
            };
            assert!(is_shown(&first));

            // A key that does not fit.
            take("key.pem");
            server.signal(Signal::HUP);
            server.wait_for_log("the certificate before it is still in use");
            assert!(is_shown(&first));
            crate::eventually("it is degraded", || ready().contains("certificate") && ready().contains("tls_key"));

            take("certificate.pem");
            server.signal(Signal::HUP);
            server.wait_for_log("new connections get the new certificate");
            server.wait_for_log("no longer degraded");
            assert!(is_shown(&second));
            crate::eventually("it is ready", || !ready().contains("certificate"));

            // Others may read the key.
            fs::set_permissions(folder.path().join("key.pem"), fs::Permissions::from_mode(0o644)).expect("chmod");
            server.signal(Signal::HUP);
            server.wait_for_log("(mode 644)");
            assert!(is_shown(&second));
            stop.store(true, Ordering::Relaxed);
        });
        server.stop();
    }
}
