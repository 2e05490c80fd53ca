//! What clients are told of the services that they can call: `grpc.reflection.v1` and `v1alpha`, whose messages are the same.
//!
//! One [`Session`] is one stream of questions. A file comes with all that it imports, but no file twice: clients keep them for a stream.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use prost::{DecodeError, Message, Oneof};

use super::{Code, Descriptors, HEALTH, Offer, REFLECTION, REFLECTION_ALPHA, frame, own};

/// The field of a response that has files.
const FILES_TAG: u32 = 4;

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(oneof = "Question", tags = "3, 4, 5, 6, 7")]
    question: Option<Question>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Question {
    #[prost(string, tag = "3")]
    File(String),
    #[prost(string, tag = "4")]
    FileOf(String),
    #[prost(message, tag = "5")]
    FileOfExtension(Extension),
    #[prost(string, tag = "6")]
    ExtensionsOf(String),
    #[prost(string, tag = "7")]
    Services(String),
}

#[derive(Clone, PartialEq, Message)]
struct Extension {
    #[prost(string, tag = "1")]
    message: String,
    #[prost(int32, tag = "2")]
    number: i32,
}

/// A response but for files.
#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(message, optional, tag = "2")]
    request: Option<Request>,
    #[prost(oneof = "Answer", tags = "5, 6, 7")]
    answer: Option<Answer>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Answer {
    #[prost(message, tag = "5")]
    Extensions(Extensions),
    #[prost(message, tag = "6")]
    Services(Services),
    #[prost(message, tag = "7")]
    Error(Error),
}

#[derive(Clone, PartialEq, Message)]
struct Extensions {
    #[prost(string, tag = "1")]
    message: String,
    #[prost(int32, repeated, tag = "2")]
    numbers: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    service: Vec<Service>,
}

#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Error {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// One stream of questions.
#[derive(Debug)]
pub struct Session {
    offers: Vec<Arc<Offer>>,
    /// For each set of descriptors, the files that the client has.
    known: Vec<Vec<bool>>,
}

impl Session {
    /// Of a client that can call what these offer.
    #[must_use]
    pub fn new(offers: Vec<Arc<Offer>>) -> Session {
        let known = vec![Vec::new(); offers.len() + 1];
        Session { offers, known }
    }

    /// The answer to a question, with its frame: pieces, since files are not copied.
    ///
    /// # Errors
    /// When the message is something else.
    pub fn answer(&mut self, message: Bytes) -> Result<Vec<Bytes>, DecodeError> {
        let request = Request::decode(message)?;
        let answer = match &request.question {
            Some(Question::File(name)) => self.files(|all| all.file(name), || format!("there is no file `{name}`")),
            Some(Question::FileOf(symbol)) => self.files(|all| all.file_of(symbol), || format!("there is no symbol `{symbol}`")),
            Some(Question::FileOfExtension(Extension { message, number })) => self.files(
                |all| all.file_of_extension(message, *number),
                || format!("there is no extension {number} of `{message}`"),
            ),
            Some(Question::ExtensionsOf(message)) => Err(match self.extensions_of(message) {
                Some(numbers) => Answer::Extensions(Extensions { message: message.clone(), numbers }),
                None => not_found(format!("there is no message `{message}`")),
            }),
            Some(Question::Services(_)) => Err(Answer::Services(self.services())),
            None => Err(error(Code::InvalidArgument, "the request asks for nothing that is known here".to_owned())),
        };
        Ok(match answer {
            Ok(files) => with_files(request, files),
            Err(answer) => {
                let response = Response { host: request.host.clone(), request: Some(request), answer: Some(answer) };
                vec![frame::framed(0, &response.encode_to_vec())]
            }
        })
    }

    /// All that is told of, the server's own services last.
    fn all(&self) -> impl Iterator<Item = Option<&Descriptors>> {
        self.offers.iter().map(|offer| offer.descriptors.as_ref()).chain([Some(own::descriptors())])
    }

    fn files(
        &mut self,
        find: impl Fn(&Descriptors) -> Option<usize>,
        otherwise: impl FnOnce() -> String,
    ) -> Result<Vec<Bytes>, Answer> {
        let found = self.all().enumerate().find_map(|(at, all)| Some((at, find(all?)?)));
        let Some((at, file)) = found else { return Err(not_found(otherwise())) };
        let mut known = std::mem::take(&mut self.known[at]);
        let files = self.all().nth(at).flatten().map(|all| all.with_imports(file, &mut known)).unwrap_or_default();
        self.known[at] = known;
        Ok(files)
    }

    fn extensions_of(&self, message: &str) -> Option<Vec<i32>> {
        self.all().find_map(|all| all?.extensions_of(message))
    }

    /// What can be called, and what the server itself offers.
    fn services(&self) -> Services {
        let own = [HEALTH, REFLECTION, REFLECTION_ALPHA];
        let mut names: Vec<&str> =
            self.offers.iter().filter(|offer| offer.reflects).flat_map(|offer| &offer.services).map(String::as_str).collect();
        names.extend(own);
        names.sort_unstable();
        names.dedup();
        Services { service: names.into_iter().map(|name| Service { name: name.to_owned() }).collect() }
    }
}

fn not_found(message: String) -> Answer {
    error(Code::NotFound, message)
}

fn error(code: Code, message: String) -> Answer {
    Answer::Error(Error { code: code as i32, message })
}

/// A response with files, and its frame.
fn with_files(request: Request, files: Vec<Bytes>) -> Vec<Bytes> {
    let head = Response { host: request.host.clone(), request: Some(request), answer: None }.encode_to_vec();
    let one = |file: &Bytes| key_len(1) + encoded_len_varint(file.len() as u64) + file.len();
    let all: usize = files.iter().map(one).sum();
    let length = head.len() + key_len(FILES_TAG) + encoded_len_varint(all as u64) + all;
    let mut begin = BytesMut::from(&frame::head(0, length)[..]);
    begin.put_slice(&head);
    encode_key(FILES_TAG, WireType::LengthDelimited, &mut begin);
    encode_varint(all as u64, &mut begin);
    let mut pieces = vec![begin.freeze()];
    for file in files {
        let mut begin = BytesMut::new();
        encode_key(1, WireType::LengthDelimited, &mut begin);
        encode_varint(file.len() as u64, &mut begin);
        pieces.extend([begin.freeze(), file]);
    }
    pieces
}
