//! `wasi:http`, as its WIT says it: what serves a request, and what asks other servers.

use super::wasi::{BYTES, allocating, ending, ending_with_more, function, taken};
use super::{End, Interface, Taken};
use crate::types::ValType::{I32, I64};

/// `wasi:http/types@0.2`.
pub(super) const TYPES: Interface = Interface {
    name: "wasi:http/types@0.2",
    functions: &[
        function("[constructor]fields", &[], &[I32]),
        function("[static]fields.from-list", &[I32, I32, I32], &[]),
        allocating("[method]fields.get", &[I32, I32, I32, I32]),
        function("[method]fields.has", &[I32, I32, I32], &[I32]),
        function("[method]fields.set", &[I32, I32, I32, I32, I32, I32], &[]),
        function("[method]fields.delete", &[I32, I32, I32, I32], &[]),
        function("[method]fields.append", &[I32, I32, I32, I32, I32, I32], &[]),
        allocating("[method]fields.entries", &[I32, I32]),
        function("[method]fields.clone", &[I32], &[I32]),
        allocating("[method]incoming-request.method", &[I32, I32]),
        allocating("[method]incoming-request.path-with-query", &[I32, I32]),
        allocating("[method]incoming-request.scheme", &[I32, I32]),
        allocating("[method]incoming-request.authority", &[I32, I32]),
        function("[method]incoming-request.headers", &[I32], &[I32]),
        function("[method]incoming-request.consume", &[I32, I32], &[]),
        function("[constructor]outgoing-request", &[I32], &[I32]),
        function("[method]outgoing-request.body", &[I32, I32], &[]),
        allocating("[method]outgoing-request.method", &[I32, I32]),
        function("[method]outgoing-request.set-method", &[I32, I32, I32, I32], &[I32]),
        allocating("[method]outgoing-request.path-with-query", &[I32, I32]),
        function("[method]outgoing-request.set-path-with-query", &[I32, I32, I32, I32], &[I32]),
        allocating("[method]outgoing-request.scheme", &[I32, I32]),
        function("[method]outgoing-request.set-scheme", &[I32, I32, I32, I32, I32], &[I32]),
        allocating("[method]outgoing-request.authority", &[I32, I32]),
        function("[method]outgoing-request.set-authority", &[I32, I32, I32, I32], &[I32]),
        function("[method]outgoing-request.headers", &[I32], &[I32]),
        function("[constructor]request-options", &[], &[I32]),
        function("[method]request-options.connect-timeout", &[I32, I32], &[]),
        function("[method]request-options.set-connect-timeout", &[I32, I32, I64], &[I32]),
        function("[method]request-options.first-byte-timeout", &[I32, I32], &[]),
        function("[method]request-options.set-first-byte-timeout", &[I32, I32, I64], &[I32]),
        function("[method]request-options.between-bytes-timeout", &[I32, I32], &[]),
        function("[method]request-options.set-between-bytes-timeout", &[I32, I32, I64], &[I32]),
        allocating("[method]response-outparam.send-informational", &[I32, I32, I32, I32]),
        function("[static]response-outparam.set", &[I32, I32, I32, I32, I64, I32, I32, I32, I32], &[]),
        function("[method]incoming-response.status", &[I32], &[I32]),
        function("[method]incoming-response.headers", &[I32], &[I32]),
        function("[method]incoming-response.consume", &[I32, I32], &[]),
        function("[method]incoming-body.stream", &[I32, I32], &[]),
        function("[static]incoming-body.finish", &[I32], &[I32]),
        function("[method]future-trailers.subscribe", &[I32], &[I32]),
        allocating("[method]future-trailers.get", &[I32, I32]),
        function("[constructor]outgoing-response", &[I32], &[I32]),
        function("[method]outgoing-response.status-code", &[I32], &[I32]),
        function("[method]outgoing-response.set-status-code", &[I32, I32], &[I32]),
        function("[method]outgoing-response.headers", &[I32], &[I32]),
        function("[method]outgoing-response.body", &[I32, I32], &[]),
        function("[method]outgoing-body.write", &[I32, I32], &[]),
        allocating("[static]outgoing-body.finish", &[I32, I32, I32, I32]),
        function("[method]future-incoming-response.subscribe", &[I32], &[I32]),
        allocating("[method]future-incoming-response.get", &[I32, I32]),
        allocating("http-error-code", &[I32, I32]),
    ],
};

/// `wasi:http/outgoing-handler@0.2`.
pub(super) const OUTGOING_HANDLER: Interface =
    Interface { name: "wasi:http/outgoing-handler@0.2", functions: &[allocating("handle", &[I32, I32, I32, I32])] };

/// A future of what became of a message.
const OUTCOME: End = End { is_future: true, size: 40, align: 8, is_value: true };
/// A future of what comes behind a body.
const TRAILERS: End = End { is_future: true, size: 40, align: 8, is_value: true };
/// What a message is made of, behind its headers.
const MESSAGE: &[Taken] = &[Taken { at: 2, is_optional: true, end: BYTES }, taken(3, TRAILERS)];

/// `wasi:http/types@0.3`.
pub(super) const TYPES3: Interface = Interface {
    name: "wasi:http/types@0.3",
    functions: &[
        function("[constructor]fields", &[], &[I32]),
        allocating("[static]fields.from-list", &[I32, I32, I32]),
        allocating("[method]fields.get", &[I32, I32, I32, I32]),
        function("[method]fields.has", &[I32, I32, I32], &[I32]),
        allocating("[method]fields.set", &[I32, I32, I32, I32, I32, I32]),
        allocating("[method]fields.delete", &[I32, I32, I32, I32]),
        allocating("[method]fields.get-and-delete", &[I32, I32, I32, I32]),
        allocating("[method]fields.append", &[I32, I32, I32, I32, I32, I32]),
        allocating("[method]fields.copy-all", &[I32, I32]),
        function("[method]fields.clone", &[I32], &[I32]),
        function("[constructor]request-options", &[], &[I32]),
        function("[method]request-options.get-connect-timeout", &[I32, I32], &[]),
        allocating("[method]request-options.set-connect-timeout", &[I32, I32, I64, I32]),
        function("[method]request-options.get-first-byte-timeout", &[I32, I32], &[]),
        allocating("[method]request-options.set-first-byte-timeout", &[I32, I32, I64, I32]),
        function("[method]request-options.get-between-bytes-timeout", &[I32, I32], &[]),
        allocating("[method]request-options.set-between-bytes-timeout", &[I32, I32, I64, I32]),
        function("[method]request-options.clone", &[I32], &[I32]),
        ending_with_more("[static]request.new", &[I32, I32, I32, I32, I32, I32, I32], MESSAGE, &[OUTCOME]),
        allocating("[method]request.get-method", &[I32, I32]),
        function("[method]request.set-method", &[I32, I32, I32, I32], &[I32]),
        allocating("[method]request.get-path-with-query", &[I32, I32]),
        function("[method]request.set-path-with-query", &[I32, I32, I32, I32], &[I32]),
        allocating("[method]request.get-scheme", &[I32, I32]),
        function("[method]request.set-scheme", &[I32, I32, I32, I32, I32], &[I32]),
        allocating("[method]request.get-authority", &[I32, I32]),
        function("[method]request.set-authority", &[I32, I32, I32, I32], &[I32]),
        function("[method]request.get-options", &[I32, I32], &[]),
        function("[method]request.get-headers", &[I32], &[I32]),
        ending("[static]request.consume-body", &[I32, I32, I32], &[], &[taken(1, OUTCOME)], &[BYTES, TRAILERS]),
        ending_with_more("[static]response.new", &[I32, I32, I32, I32, I32], MESSAGE, &[OUTCOME]),
        function("[method]response.get-status-code", &[I32], &[I32]),
        function("[method]response.set-status-code", &[I32, I32], &[I32]),
        function("[method]response.get-headers", &[I32], &[I32]),
        ending("[static]response.consume-body", &[I32, I32, I32], &[], &[taken(1, OUTCOME)], &[BYTES, TRAILERS]),
    ],
};

/// `wasi:http/client@0.3`.
pub(super) const CLIENT: Interface = Interface { name: "wasi:http/client@0.3", functions: &[allocating("send", &[I32, I32])] };
