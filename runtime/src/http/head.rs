//! What is wrong with a request's head that could be parsed: its target, its host, its transfer coding (RFC 9112, 3 and 6; RFC 9113, 8.3.1).
//!
//! A head that two programs may understand differently hides requests in others. So it is refused, wherever it is not plain.

use std::net::Ipv6Addr;

use hyper::header::{HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{Method, Version};

use crate::outcome::Failure;

/// Checks a head; `has_body` says whether something comes with it. What a head says of its host is one thing afterwards: what stands in an
/// absolute target counts, whatever the header says.
///
/// # Errors
/// [`Failure::BadHead`], with what is wrong.
pub(super) fn check(head: &mut Parts, has_body: bool) -> Result<(), Failure> {
    let path = head.uri.path();
    let is_known = path.starts_with('/') || path == "*" && head.method == Method::OPTIONS;
    if !is_known {
        return Err(Failure::BadHead("target_malformed"));
    }
    if has_body && head.version == Version::HTTP_11 {
        check_coding(&head.headers)?;
    }
    let host = host(&head.headers)?;
    let Some(authority) = head.uri.authority() else {
        // HTTP/1.0 did not know it.
        return if host.is_some() || head.version < Version::HTTP_11 { Ok(()) } else { Err(Failure::BadHead("host_missing")) };
    };
    if !is_host(authority.as_str().as_bytes()) {
        return Err(Failure::BadHead("target_malformed"));
    }
    if head.version < Version::HTTP_2 {
        if host.is_none() && head.version == Version::HTTP_11 {
            return Err(Failure::BadHead("host_missing"));
        }
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| Failure::BadHead("target_malformed"))?;
        head.headers.insert(HOST, host);
    } else if host.is_some_and(|host| !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes())) {
        return Err(Failure::BadHead("host_contradicts_authority"));
    }
    Ok(())
}

/// One coding, which is `chunked`: no other is known here, and that one is applied once.
fn check_coding(headers: &HeaderMap) -> Result<(), Failure> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_plain = codings.next().is_none_or(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    if is_plain && codings.next().is_none() { Ok(()) } else { Err(Failure::BadHead("transfer_encoding_unknown")) }
}

/// The header, if there is one: one at most, and well-formed.
fn host(headers: &HeaderMap) -> Result<Option<&HeaderValue>, Failure> {
    let mut hosts = headers.get_all(HOST).iter();
    let Some(host) = hosts.next() else { return Ok(None) };
    if hosts.next().is_some() {
        return Err(Failure::BadHead("host_repeated"));
    }
    if is_host(host.as_bytes()) { Ok(Some(host)) } else { Err(Failure::BadHead("host_malformed")) }
}

/// Whether it is a host, perhaps with a port (RFC 3986, 3.2.2). No user, and not nothing (RFC 9110, 4.2).
fn is_host(text: &[u8]) -> bool {
    let (is_good, rest) = match text.strip_prefix(b"[") {
        Some(literal) => {
            let Some(end) = literal.iter().position(|byte| *byte == b']') else { return false };
            let address = std::str::from_utf8(&literal[..end]).ok().and_then(|address| address.parse::<Ipv6Addr>().ok());
            (address.is_some(), &literal[end + 1..])
        }
        None => {
            let end = text.iter().position(|byte| *byte == b':').unwrap_or(text.len());
            (is_name(&text[..end]), &text[end..])
        }
    };
    is_good && (rest.is_empty() || rest.strip_prefix(b":").is_some_and(is_port))
}

/// Whether it is a port, or nothing, which is a port, too.
fn is_port(port: &[u8]) -> bool {
    let mut digits = port.iter().map(|byte| byte.is_ascii_digit().then(|| u16::from(byte - b'0')));
    digits.try_fold(0_u16, |number, digit| number.checked_mul(10)?.checked_add(digit?)).is_some()
}

/// The bytes of a name that need no escape: unreserved ones, and delimiters of parts (RFC 3986, 2.2 and 2.3).
const PLAIN: [bool; 256] = {
    let (mut plain, mut byte) = ([false; 256], 0);
    while byte < plain.len() {
        plain[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let (others, mut index) = (b"-._~!$&'()*+,;=", 0);
    while index < others.len() {
        plain[others[index] as usize] = true;
        index += 1;
    }
    plain
};

fn is_name(name: &[u8]) -> bool {
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        let is_escaped = |bytes: &mut std::slice::Iter<'_, u8>| (0..2).all(|_| bytes.next().is_some_and(u8::is_ascii_hexdigit));
        let is_good = PLAIN[usize::from(*byte)] || *byte == b'%' && is_escaped(&mut bytes);
        if !is_good {
            return false;
        }
    }
    !name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_addresses_and_perhaps_a_port() {
        for good in ["a", "a.b-c_d~", "127.0.0.1", "a:80", "a:", "[::1]", "[::1]:65535", "%41b", "xn--bcher-kva.example"] {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        let wrong = [
            "", ":80", "a:b", "a:65536", "a:80:80", "a:-1", "u@a", "u:p@a", "a b", "a/b", "a?b", "a#b", "[::1", "::1", "[a]",
            "[::1]a", "%4", "%zz", "a\\b", "a\u{e4}", "http://a", "[]", "a, b", "a:+1", "a 41", "a@41",
        ];
        for wrong in wrong {
            assert!(!is_host(wrong.as_bytes()), "{wrong}");
        }
    }
    /// A request's head: its method, version and target, and values of `Host` and `Transfer-Encoding`.
    fn head(start: (&str, Version, &str), hosts: &[&str], codings: &[&str]) -> Parts {
        let (method, version, target) = start;
        let mut request = hyper::Request::builder().method(method).version(version).uri(target);
        for (name, values) in [(HOST, hosts), (TRANSFER_ENCODING, codings)] {
            request = values.iter().fold(request, |request, value| request.header(&name, *value));
        }
        request.body(()).expect("a head that can be parsed").into_parts().0
    }

    /// The host that a request is for, as its header says it afterwards, or what is wrong.
    fn checked(start: (&str, Version, &str), hosts: &[&str]) -> Result<Option<String>, Failure> {
        let mut head = head(start, hosts, &[]);
        check(&mut head, false)?;
        let mut hosts = head.headers.get_all(HOST).iter();
        let host = hosts.next().map(|host| host.to_str().expect("a text").to_owned());
        assert!(hosts.next().is_none(), "one at most");
        Ok(host)
    }

    const HTTP_10: Version = Version::HTTP_10;
    const HTTP_11: Version = Version::HTTP_11;
    const HTTP_2: Version = Version::HTTP_2;

    #[test]
    fn a_target_is_a_path_or_with_options_the_whole_server() {
        let is_known = |method, target| checked((method, HTTP_11, target), &["a"]) != Err(Failure::BadHead("target_malformed"));
        assert!(is_known("GET", "/") && is_known("GET", "/a?b") && is_known("OPTIONS", "/a") && is_known("OPTIONS", "*"));
        assert!(!is_known("GET", "*") && !is_known("CONNECT", "a:80") && !is_known("OPTIONS", "a:80"));
    }

    #[test]
    fn a_request_is_for_one_host_and_that_of_its_target_counts() {
        let good = |host: Option<&str>| Ok(host.map(str::to_owned));
        let bad = |why| Err(Failure::BadHead(why));
        for (version, target, hosts, expected) in [
            (HTTP_10, "/", &[][..], good(None)),
            (HTTP_10, "/", &["a"], good(Some("a"))),
            (HTTP_10, "http://b/", &[], good(Some("b"))),
            (HTTP_11, "/", &[], bad("host_missing")),
            (HTTP_11, "/", &["a:80"], good(Some("a:80"))),
            (HTTP_11, "/", &["a", "a"], bad("host_repeated")),
            (HTTP_11, "/", &["a b"], bad("host_malformed")),
            (HTTP_11, "/", &[""], bad("host_malformed")),
            (HTTP_11, "http://b:8/x", &["a"], good(Some("b:8"))),
            (HTTP_11, "http://b/x", &[], bad("host_missing")),
            (HTTP_11, "http://b/x", &["a", "b"], bad("host_repeated")),
            (HTTP_11, "http://u@b/x", &["b"], bad("target_malformed")),
            (HTTP_2, "/", &[], bad("host_missing")),
            (HTTP_2, "/", &["a"], good(Some("a"))),
            (HTTP_2, "https://b/", &[], good(None)),
            (HTTP_2, "https://b/", &["B"], good(Some("B"))),
            (HTTP_2, "https://b/", &["a"], bad("host_contradicts_authority")),
            (HTTP_2, "https://u@b/", &[], bad("target_malformed")),
        ] {
            assert_eq!(checked(("GET", version, target), hosts), expected, "{version:?} {target} {hosts:?}");
        }
    }

    #[test]
    fn a_body_is_chunked_once_or_not_at_all() {
        let is_good = |version, codings: &[&str], has_body| {
            check(&mut head(("POST", version, "/"), &["a"], codings), has_body)
                != Err(Failure::BadHead("transfer_encoding_unknown"))
        };
        for good in [&[][..], &["chunked"], &["Chunked"], &["\tchunked "]] {
            assert!(is_good(HTTP_11, good, true), "{good:?}");
        }
        for wrong in [&["gzip"][..], &["gzip, chunked"], &["chunked", "chunked"], &["chunked", "gzip"], &[""]] {
            assert!(!is_good(HTTP_11, wrong, true), "{wrong:?}");
            // HTTP/1.0 knows none, and without a body it says nothing.
            assert!(is_good(HTTP_10, wrong, true) && is_good(HTTP_11, wrong, false), "{wrong:?}");
        }
    }
}
