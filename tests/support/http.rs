//! Two clients: [`Client`] for well-formed requests, [`Raw`] for arbitrary bytes. Both give up at a deadline.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// For a whole exchange, when a test says nothing else.
pub const TIME_MAX: Duration = Duration::from_secs(120);

/// A reply.
#[derive(Clone, Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// A header's first value; its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A client that keeps connections alive.
#[derive(Clone, Debug)]
pub struct Client {
    agent: ureq::Agent,
    server: String,
}

impl Client {
    /// A client of that server; each exchange fails after `time`.
    #[must_use]
    pub fn new(server: SocketAddr, time: Duration) -> Client {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(time))
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .proxy(None)
            .build();
        Client { agent: config.into(), server: format!("http://{server}") }
    }

    /// POST.
    ///
    /// # Errors
    /// When there is no reply in time.
    pub fn try_post(&self, path: &str, body: &[u8], headers: &[(&str, &str)]) -> Result<Reply, ureq::Error> {
        let mut request = self.agent.post(format!("{}{path}", self.server));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(request.send(body)?)
    }

    /// A request with another method; its body is sent where there is one.
    ///
    /// # Errors
    /// When there is no reply in time.
    pub fn try_request(&self, method: &str, path: &str, body: &[u8], headers: &[(&str, &str)]) -> Result<Reply, ureq::Error> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.server));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(if body.is_empty() { self.agent.run(request.body(())?) } else { self.agent.run(request.body(body)?) }?)
    }

    /// POST.
    ///
    /// # Panics
    /// When there is no reply in time.
    #[must_use]
    pub fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Reply {
        self.try_post(path, body.as_ref(), &[]).unwrap_or_else(|error| panic!("POST {path}: {error}"))
    }

    /// GET.
    ///
    /// # Panics
    /// When there is no reply in time.
    #[must_use]
    pub fn get(&self, path: &str) -> Reply {
        let got = self.agent.get(format!("{}{path}", self.server)).call().and_then(reply);
        got.unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }
}

fn reply(response: ureq::http::Response<ureq::Body>) -> Result<Reply, ureq::Error> {
    let (head, body) = response.into_parts();
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    let headers = headers.collect();
    Ok(Reply { status: head.status.as_u16(), headers, body: body.into_with_config().limit(u64::MAX).read_to_vec()? })
}

/// One connection and whatever bytes a test wants to send.
#[derive(Debug)]
pub struct Raw {
    stream: BufReader<TcpStream>,
}

impl Raw {
    /// Connects.
    ///
    /// # Panics
    /// When that fails.
    #[must_use]
    pub fn connect(server: SocketAddr) -> Raw {
        let stream = TcpStream::connect_timeout(&server, TIME_MAX).expect("connect");
        stream.set_read_timeout(Some(TIME_MAX)).expect("a timeout");
        stream.set_write_timeout(Some(TIME_MAX)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Raw { stream: BufReader::new(stream) }
    }

    /// Sends bytes. A server that has closed its side already is no failure here: its reply is what counts.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.get_mut().write_all(bytes.as_ref());
    }

    /// Says that nothing more will be sent.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn shut_down_writing(&mut self) {
        self.stream.get_mut().shutdown(std::net::Shutdown::Write).expect("shutdown");
    }

    /// Reads one reply; none when the connection was closed before its first byte.
    ///
    /// # Panics
    /// When what comes is no whole reply.
    pub fn reply(&mut self) -> Option<Reply> {
        read_reply(&mut self.stream)
    }

    /// The head of a reply whose body does not follow, or does not matter.
    ///
    /// # Panics
    /// When what comes is none.
    pub fn head(&mut self) -> Option<Reply> {
        read_head(&mut self.stream)
    }

    /// So many bytes.
    ///
    /// # Panics
    /// When they do not come.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).expect("so many bytes");
        bytes
    }

    /// Everything that comes until the server closes the connection, well or with a reset.
    ///
    /// # Panics
    /// When it does not in time.
    pub fn everything(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Ok(_) => bytes,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe) => bytes,
            Err(error) => panic!("neither closed nor more: {error}"),
        }
    }

    /// Whether the server has ended the connection, whatever it still said.
    ///
    /// # Panics
    /// When it does not in time.
    pub fn is_ended(&mut self) -> bool {
        let _said = self.everything();
        true
    }

    /// Whether something has come, or comes within that time.
    ///
    /// # Panics
    /// When the connection fails.
    pub fn answers_within(&mut self, time: Duration) -> bool {
        self.stream.get_ref().set_read_timeout(Some(time)).expect("a timeout");
        let came = match self.stream.fill_buf() {
            Ok(_) => true,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => false,
            Err(error) => panic!("neither a reply nor silence: {error}"),
        };
        self.stream.get_ref().set_read_timeout(Some(TIME_MAX)).expect("a timeout");
        came
    }

    /// Whether the server has closed the connection, nothing more being sent: waits for it.
    ///
    /// # Panics
    /// When the server does neither in time.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => true,
            Err(error) => panic!("neither closed nor a reply: {error}"),
        }
    }
}

/// Reads one reply; none when the connection was closed before its first byte.
///
/// # Panics
/// When what comes is no whole reply.
pub fn read_reply(stream: &mut impl BufRead) -> Option<Reply> {
    let mut reply = read_head(stream)?;
    let bytes = reply.header("content-length").map(|length| length.parse().expect("a length"));
    if reply.status >= 200 {
        reply.body.resize(bytes.unwrap_or(0), 0);
        stream.read_exact(&mut reply.body).expect("the body, whole");
    }
    Some(reply)
}

fn read_head(stream: &mut impl BufRead) -> Option<Reply> {
    let mut line = String::new();
    match stream.read_line(&mut line) {
        Ok(0) => return None,
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
        Err(error) => panic!("no reply: {error}"),
    }
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no status: {line:?}"));
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a header");
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
    }
    Some(Reply { status, headers, body: Vec::new() })
}

/// A POST request as bytes.
#[must_use]
pub fn post_bytes(path: &str, body: &[u8], headers: &str) -> Vec<u8> {
    let mut bytes = format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
