//! Every limit of the protocol. Where AWS publishes one, it is AWS's.

/// Bytes of a request's body. AWS: 1 MB.
pub const BODY_MAX: usize = 1 << 20;
/// Bytes of the header `Authorization`.
pub const AUTHORIZATION_MAX: usize = 4_096;
/// Headers that a signature may cover.
pub const SIGNED_HEADERS_MAX: usize = 64;
/// Bytes of the values of all signed headers together.
pub const SIGNED_BYTES_MAX: usize = 32_768;
/// Bytes of the path, and of the query.
pub const TARGET_MAX: usize = 8_192;
/// Seconds by which the client's clock may be before or behind the server's.
pub const SKEW_MAX_S: i64 = 300;

/// Characters of a name of a state machine or an execution.
pub const NAME_MAX: usize = 80;
/// Characters of an ARN.
pub const ARN_MAX: usize = 256;
/// Characters of the ARN of a map run.
pub const LONG_ARN_MAX: usize = 2_000;
/// Characters of a region or an account in an ARN or a scope.
pub const SCOPE_MAX: usize = 64;
/// Bytes of an input or output, in JSON.
pub const DATA_MAX: usize = 262_144;
/// Characters of an error's name.
pub const ERROR_MAX: usize = 256;
/// Characters of a cause.
pub const CAUSE_MAX: usize = 32_768;
/// Characters of a task token.
pub const TASK_TOKEN_MAX: usize = 2_048;
/// Characters of a token for the next page.
pub const PAGE_TOKEN_MAX: usize = 1_024;
/// The same for `ListExecutions`.
pub const EXECUTIONS_PAGE_TOKEN_MAX: usize = 3_096;
/// Items of a page.
pub const PAGE_MAX: u32 = 1_000;
/// Items of a page when the client asks for none or 0.
pub const PAGE_DEFAULT: u32 = 100;
/// Characters of a client token, by which a repeated request is known.
pub const CLIENT_TOKEN_MAX: usize = 64;
/// Characters of a trace header.
pub const TRACE_HEADER_MAX: usize = 256;
/// Characters of a client's value that an error quotes.
pub const QUOTED_MAX: usize = 4_096;
