//! A span's place in its trace, as it goes from server to server: the headers `traceparent` and `tracestate` (<https://www.w3.org/TR/trace-context/>).

use std::fmt;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const PARENT_BYTES: usize = 55;
/// The longest `tracestate` that is passed on: as much as everybody has to (3.3.1.5).
const STATE_BYTES_MAX: usize = 512;
/// The flag that says that the client keeps its spans.
const SAMPLED: u8 = 1;

/// A trace's number; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(pub [u8; 16]);

/// A span's number; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId(pub [u8; 8]);

/// A span, for others to have as their parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace that it belongs to.
    pub trace: TraceId,
    /// Which of its spans it is.
    pub span: SpanId,
    /// Whether it is kept.
    pub sampled: bool,
    /// What others have noted of the trace, and want passed on.
    pub state: Option<HeaderValue>,
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl SpanContext {
    /// The span of the client that sent these headers; none where they name none, or not as they should.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<SpanContext> {
        let mut parents = headers.get_all(&TRACEPARENT).iter();
        let parent = parents.next()?;
        // Of several, it is not known which.
        if parents.next().is_some() {
            return None;
        }
        let (trace, span, sampled) = parse(parent.as_bytes())?;
        Some(SpanContext { trace, span, sampled, state: state(headers) })
    }

    /// Puts it into headers, in place of another that stands there.
    pub fn inject(&self, headers: &mut HeaderMap) {
        let text = format!("00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled) * SAMPLED);
        let Ok(parent) = HeaderValue::try_from(text) else { return };
        headers.insert(TRACEPARENT, parent);
        match &self.state {
            Some(state) => drop(headers.insert(TRACESTATE, state.clone())),
            None => drop(headers.remove(TRACESTATE)),
        }
    }
}

/// Reads a `traceparent` (3.2): of versions that are not known yet, what they have in common with the first.
fn parse(text: &[u8]) -> Option<(TraceId, SpanId, bool)> {
    let (head, behind) = text.split_at_checked(PARENT_BYTES)?;
    let [version] = number::<1>(head.get(..2)?)?;
    let is_whole = if version == 0 { behind.is_empty() } else { behind.is_empty() || behind[0] == b'-' };
    if version == u8::MAX || !is_whole || [head[2], head[35], head[52]] != [b'-'; 3] {
        return None;
    }
    let (trace, span, [flags]) = (number(&head[3..35])?, number(&head[36..52])?, number::<1>(&head[53..])?);
    let is_some = trace != [0; 16] && span != [0; 8];
    is_some.then_some((TraceId(trace), SpanId(span), flags & SAMPLED != 0))
}

/// A number in hexadecimal digits, small ones.
fn number<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut number = [0; N];
    for (byte, pair) in number.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(number)
}

/// All of `tracestate` in one line, if it is a list of `KEY=VALUE` and not too long; what is in it is for others.
fn state(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut lines = headers.get_all(&TRACESTATE).iter();
    let first = lines.next()?;
    let all = match lines.next() {
        None => first.clone(),
        Some(_) => {
            let lines: Vec<&[u8]> = headers.get_all(&TRACESTATE).iter().map(HeaderValue::as_bytes).collect();
            HeaderValue::from_bytes(&lines.join(&b","[..])).ok()?
        }
    };
    let text = all.to_str().ok()?;
    let mut members = text.split(',').map(str::trim).filter(|member| !member.is_empty()).peekable();
    let is_list = members.peek().is_some()
        && members.all(|member| member.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty()));
    (is_list && text.len() <= STATE_BYTES_MAX).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn of(lines: &[(&'static str, &str)]) -> Option<SpanContext> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        SpanContext::of(&headers)
    }

    #[test]
    fn what_comes_in_goes_out() {
        for parent in [GOOD, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"] {
            let context = of(&[("traceparent", parent), ("tracestate", "a=1,b=2"), ("tracestate", "c@d=3")]).unwrap();
            assert_eq!(context.sampled, parent.ends_with('1'));
            let mut headers = HeaderMap::from_iter([(TRACEPARENT, HeaderValue::from_static("old"))]);
            context.inject(&mut headers);
            assert_eq!(
                (&headers["traceparent"], &headers["tracestate"]),
                (&parent.try_into().unwrap(), &"a=1,b=2,c@d=3".try_into().unwrap())
            );
        }
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        let later = GOOD.replacen("00", "cc", 1);
        for (text, is_good) in [(later.clone(), true), (format!("{later}-more"), true), (format!("{later}.more"), false)] {
            assert_eq!(of(&[("traceparent", &text)]).is_some_and(|context| context.sampled), is_good, "{text}");
        }
        // All flags but the one that is known.
        assert!(!of(&[("traceparent", &GOOD.replace("-01", "-fe"))]).unwrap().sampled);
    }

    #[test]
    fn what_is_malformed_is_none() {
        let upper = GOOD.to_uppercase();
        let bad = [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}0"),
            &format!("{GOOD}-more"),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.replacen("00", "0x", 1),
            &GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            &GOOD.replace('-', "_"),
            &GOOD.replace("0af7", "0ag7"),
            &GOOD.replace("-01", "-0."),
            &upper,
        ];
        for text in bad {
            assert_eq!(of(&[("traceparent", text)]), None, "{text:?}");
        }
        assert_eq!(of(&[("traceparent", GOOD), ("traceparent", GOOD)]), None);
        assert_eq!(of(&[("tracestate", "a=1")]), None);
        for state in ["a", "a=", "=1", "a=1,b", " , ", &format!("a={}", "1".repeat(511))] {
            assert_eq!(of(&[("traceparent", GOOD), ("tracestate", state)]).unwrap().state, None, "{state:?}");
        }
    }
}
