//! Every function that the host offers to components, and the resources that it makes.

use super::{End, Function, Interface, Taken};
use crate::types::ValType::{self, I32, I64};

/// The host's resources: interface and name. A resource's number is its place, from 1; it stands in artifacts, so new ones come last.
pub const RESOURCES: &[(&str, &str)] = &[
    ("wasi:io/error@0.2", "error"),
    ("wasi:io/poll@0.2", "pollable"),
    ("wasi:io/streams@0.2", "input-stream"),
    ("wasi:io/streams@0.2", "output-stream"),
    ("wasi:cli/terminal-input@0.2", "terminal-input"),
    ("wasi:cli/terminal-output@0.2", "terminal-output"),
    ("wasi:filesystem/types@0.2", "descriptor"),
    ("wasi:filesystem/types@0.2", "directory-entry-stream"),
    ("wasi:http/types@0.2", "fields"),
    ("wasi:http/types@0.2", "incoming-request"),
    ("wasi:http/types@0.2", "outgoing-request"),
    ("wasi:http/types@0.2", "request-options"),
    ("wasi:http/types@0.2", "response-outparam"),
    ("wasi:http/types@0.2", "incoming-response"),
    ("wasi:http/types@0.2", "incoming-body"),
    ("wasi:http/types@0.2", "future-trailers"),
    ("wasi:http/types@0.2", "outgoing-response"),
    ("wasi:http/types@0.2", "outgoing-body"),
    ("wasi:http/types@0.2", "future-incoming-response"),
    ("wasi:sockets/network@0.2", "network"),
    ("wasi:sockets/ip-name-lookup@0.2", "resolve-address-stream"),
    ("wasi:sockets/tcp@0.2", "tcp-socket"),
    ("wasi:sockets/udp@0.2", "udp-socket"),
    ("wasi:sockets/udp@0.2", "incoming-datagram-stream"),
    ("wasi:sockets/udp@0.2", "outgoing-datagram-stream"),
    ("wasi:keyvalue/store@0.2.0-draft", "bucket"),
    ("wasi:keyvalue/atomics@0.2.0-draft2", "cas"),
    ("wasi:keyvalue/store@0.2.0-draft2", "bucket"),
    ("fermyon:spin/key-value@2", "store"),
    ("sledge:keyvalue/store@0.1", "bucket"),
    ("sledge:call/functions@0.1", "pending"),
    ("wasi:cli/terminal-input@0.3", "terminal-input"),
    ("wasi:cli/terminal-output@0.3", "terminal-output"),
    ("wasi:http/types@0.3", "fields"),
    ("wasi:http/types@0.3", "request"),
    ("wasi:http/types@0.3", "request-options"),
    ("wasi:http/types@0.3", "response"),
    ("wasi:filesystem/types@0.3", "descriptor"),
    ("wasi:sockets/types@0.3", "tcp-socket"),
    ("wasi:sockets/types@0.3", "udp-socket"),
    ("spin:key-value/key-value@3", "store"),
];

/// A function whose result is flat, or in memory without lists.
pub(super) const fn function(name: &'static str, params: &'static [ValType], results: &'static [ValType]) -> Function {
    Function { name, params, results, allocates: false, takes: &[], ends: &[], holds_more: false }
}

/// A function whose result holds lists or strings. The last parameter is the address of the result.
pub(super) const fn allocating(name: &'static str, params: &'static [ValType]) -> Function {
    Function { name, params, results: &[], allocates: true, takes: &[], ends: &[], holds_more: false }
}

/// A stream of bytes.
pub(super) const BYTES: End = End { is_future: false, size: 1, align: 1, is_value: false };
/// A future of what became of a standard stream.
const CLI_OUTCOME: End = End { is_future: true, size: 2, align: 1, is_value: false };
/// A future of what became of a file or folder.
const FILE_OUTCOME: End = End { is_future: true, size: 20, align: 4, is_value: true };
/// A stream of entries of a folder.
const ENTRIES: End = End { is_future: false, size: 24, align: 4, is_value: true };

/// A future of what became of one direction of a connection.
const SOCKET_OUTCOME: End = End { is_future: true, size: 20, align: 4, is_value: true };
/// A stream of connections.
const CONNECTIONS: End = End { is_future: false, size: 4, align: 4, is_value: true };

/// One among the parameters.
pub(super) const fn taken(at: usize, end: End) -> Taken {
    Taken { at, is_optional: false, end }
}

/// A function whose result is these streams and futures. If there are several, the last parameter is the address of the result.
pub(super) const fn ending(
    name: &'static str,
    params: &'static [ValType],
    results: &'static [ValType],
    takes: &'static [Taken],
    ends: &'static [End],
) -> Function {
    Function { name, params, results, allocates: false, takes, ends, holds_more: false }
}

/// A function whose result is these streams and futures, and something else, or a `result` that may hold them. The last parameter is the address of the result.
pub(super) const fn ending_with_more(
    name: &'static str,
    params: &'static [ValType],
    takes: &'static [Taken],
    ends: &'static [End],
) -> Function {
    Function { name, params, results: &[], allocates: false, takes, ends, holds_more: true }
}

/// All interfaces.
pub const INTERFACES: &[Interface] = &[
    Interface { name: "wasi:io/error@0.2", functions: &[allocating("[method]error.to-debug-string", &[I32, I32])] },
    Interface {
        name: "wasi:io/poll@0.2",
        functions: &[
            function("[method]pollable.ready", &[I32], &[I32]),
            function("[method]pollable.block", &[I32], &[]),
            allocating("poll", &[I32, I32, I32]),
        ],
    },
    Interface {
        name: "wasi:io/streams@0.2",
        functions: &[
            allocating("[method]input-stream.read", &[I32, I64, I32]),
            allocating("[method]input-stream.blocking-read", &[I32, I64, I32]),
            function("[method]input-stream.skip", &[I32, I64, I32], &[]),
            function("[method]input-stream.blocking-skip", &[I32, I64, I32], &[]),
            function("[method]input-stream.subscribe", &[I32], &[I32]),
            function("[method]output-stream.check-write", &[I32, I32], &[]),
            function("[method]output-stream.write", &[I32, I32, I32, I32], &[]),
            function("[method]output-stream.blocking-write-and-flush", &[I32, I32, I32, I32], &[]),
            function("[method]output-stream.flush", &[I32, I32], &[]),
            function("[method]output-stream.blocking-flush", &[I32, I32], &[]),
            function("[method]output-stream.subscribe", &[I32], &[I32]),
            function("[method]output-stream.write-zeroes", &[I32, I64, I32], &[]),
            function("[method]output-stream.blocking-write-zeroes-and-flush", &[I32, I64, I32], &[]),
            function("[method]output-stream.splice", &[I32, I32, I64, I32], &[]),
            function("[method]output-stream.blocking-splice", &[I32, I32, I64, I32], &[]),
        ],
    },
    Interface {
        name: "wasi:clocks/monotonic-clock@0.2",
        functions: &[
            function("now", &[], &[I64]),
            function("resolution", &[], &[I64]),
            function("subscribe-instant", &[I64], &[I32]),
            function("subscribe-duration", &[I64], &[I32]),
        ],
    },
    Interface {
        name: "wasi:clocks/monotonic-clock@0.3",
        functions: &[
            function("now", &[], &[I64]),
            function("get-resolution", &[], &[I64]),
            function("wait-until", &[I64], &[]),
            function("wait-for", &[I64], &[]),
        ],
    },
    Interface {
        name: "wasi:clocks/system-clock@0.3",
        functions: &[function("now", &[I32], &[]), function("get-resolution", &[], &[I64])],
    },
    Interface {
        name: "wasi:clocks/wall-clock@0.2",
        functions: &[function("now", &[I32], &[]), function("resolution", &[I32], &[])],
    },
    Interface {
        name: "wasi:clocks/timezone@0.2",
        functions: &[allocating("display", &[I64, I32, I32]), function("utc-offset", &[I64, I32], &[I32])],
    },
    Interface {
        name: "wasi:clocks/timezone@0.3",
        functions: &[
            allocating("iana-id", &[I32]),
            function("utc-offset", &[I64, I32, I32], &[]),
            allocating("to-debug-string", &[I32]),
        ],
    },
    Interface {
        name: "wasi:filesystem/types@0.2",
        functions: &[
            function("[method]descriptor.read-via-stream", &[I32, I64, I32], &[]),
            function("[method]descriptor.write-via-stream", &[I32, I64, I32], &[]),
            function("[method]descriptor.append-via-stream", &[I32, I32], &[]),
            function("[method]descriptor.advise", &[I32, I64, I64, I32, I32], &[]),
            function("[method]descriptor.sync-data", &[I32, I32], &[]),
            function("[method]descriptor.get-flags", &[I32, I32], &[]),
            function("[method]descriptor.get-type", &[I32, I32], &[]),
            function("[method]descriptor.set-size", &[I32, I64, I32], &[]),
            function("[method]descriptor.set-times", &[I32, I32, I64, I32, I32, I64, I32, I32], &[]),
            allocating("[method]descriptor.read", &[I32, I64, I64, I32]),
            function("[method]descriptor.write", &[I32, I32, I32, I64, I32], &[]),
            function("[method]descriptor.read-directory", &[I32, I32], &[]),
            function("[method]descriptor.sync", &[I32, I32], &[]),
            function("[method]descriptor.create-directory-at", &[I32, I32, I32, I32], &[]),
            function("[method]descriptor.stat", &[I32, I32], &[]),
            function("[method]descriptor.stat-at", &[I32, I32, I32, I32, I32], &[]),
            function("[method]descriptor.set-times-at", &[I32, I32, I32, I32, I32, I64, I32, I32, I64, I32, I32], &[]),
            function("[method]descriptor.link-at", &[I32, I32, I32, I32, I32, I32, I32, I32], &[]),
            function("[method]descriptor.open-at", &[I32, I32, I32, I32, I32, I32, I32], &[]),
            allocating("[method]descriptor.readlink-at", &[I32, I32, I32, I32]),
            function("[method]descriptor.remove-directory-at", &[I32, I32, I32, I32], &[]),
            function("[method]descriptor.rename-at", &[I32, I32, I32, I32, I32, I32, I32], &[]),
            function("[method]descriptor.symlink-at", &[I32, I32, I32, I32, I32, I32], &[]),
            function("[method]descriptor.unlink-file-at", &[I32, I32, I32, I32], &[]),
            function("[method]descriptor.is-same-object", &[I32, I32], &[I32]),
            function("[method]descriptor.metadata-hash", &[I32, I32], &[]),
            function("[method]descriptor.metadata-hash-at", &[I32, I32, I32, I32, I32], &[]),
            allocating("[method]directory-entry-stream.read-directory-entry", &[I32, I32]),
            function("filesystem-error-code", &[I32, I32], &[]),
        ],
    },
    Interface { name: "wasi:filesystem/preopens@0.2", functions: &[allocating("get-directories", &[I32])] },
    // An `error-code` and a `descriptor-type` may hold a string, but the host gives none.
    Interface {
        name: "wasi:filesystem/types@0.3",
        functions: &[
            ending("[method]descriptor.read-via-stream", &[I32, I64, I32], &[], &[], &[BYTES, FILE_OUTCOME]),
            ending("[method]descriptor.write-via-stream", &[I32, I32, I64], &[I32], &[taken(1, BYTES)], &[FILE_OUTCOME]),
            ending("[method]descriptor.append-via-stream", &[I32, I32], &[I32], &[taken(1, BYTES)], &[FILE_OUTCOME]),
            function("[method]descriptor.advise", &[I32, I64, I64, I32, I32], &[]),
            function("[method]descriptor.sync-data", &[I32, I32], &[]),
            function("[method]descriptor.get-flags", &[I32, I32], &[]),
            function("[method]descriptor.get-type", &[I32, I32], &[]),
            function("[method]descriptor.set-size", &[I32, I64, I32], &[]),
            function("[method]descriptor.set-times", &[I32, I32, I64, I32, I32, I64, I32, I32], &[]),
            ending("[method]descriptor.read-directory", &[I32, I32], &[], &[], &[ENTRIES, FILE_OUTCOME]),
            function("[method]descriptor.sync", &[I32, I32], &[]),
            function("[method]descriptor.create-directory-at", &[I32, I32, I32, I32], &[]),
            function("[method]descriptor.stat", &[I32, I32], &[]),
            function("[method]descriptor.stat-at", &[I32, I32, I32, I32, I32], &[]),
            function("[method]descriptor.set-times-at", &[I32, I32, I32, I32, I32, I64, I32, I32, I64, I32, I32], &[]),
            function("[method]descriptor.link-at", &[I32, I32, I32, I32, I32, I32, I32, I32], &[]),
            function("[method]descriptor.open-at", &[I32, I32, I32, I32, I32, I32, I32], &[]),
            allocating("[method]descriptor.readlink-at", &[I32, I32, I32, I32]),
            function("[method]descriptor.remove-directory-at", &[I32, I32, I32, I32], &[]),
            function("[method]descriptor.rename-at", &[I32, I32, I32, I32, I32, I32, I32], &[]),
            function("[method]descriptor.symlink-at", &[I32, I32, I32, I32, I32, I32], &[]),
            function("[method]descriptor.unlink-file-at", &[I32, I32, I32, I32], &[]),
            function("[method]descriptor.is-same-object", &[I32, I32], &[I32]),
            function("[method]descriptor.metadata-hash", &[I32, I32], &[]),
            function("[method]descriptor.metadata-hash-at", &[I32, I32, I32, I32, I32], &[]),
        ],
    },
    Interface { name: "wasi:filesystem/preopens@0.3", functions: &[allocating("get-directories", &[I32])] },
    Interface { name: "wasi:sockets/network@0.2", functions: &[function("network-error-code", &[I32, I32], &[])] },
    Interface { name: "wasi:sockets/instance-network@0.2", functions: &[function("instance-network", &[], &[I32])] },
    Interface {
        name: "wasi:sockets/ip-name-lookup@0.2",
        functions: &[
            function("[method]resolve-address-stream.resolve-next-address", &[I32, I32], &[]),
            function("[method]resolve-address-stream.subscribe", &[I32], &[I32]),
            function("resolve-addresses", &[I32, I32, I32, I32], &[]),
        ],
    },
    Interface {
        name: "wasi:sockets/tcp@0.2",
        functions: &[
            function(
                "[method]tcp-socket.start-bind",
                &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
                &[],
            ),
            function("[method]tcp-socket.finish-bind", &[I32, I32], &[]),
            function(
                "[method]tcp-socket.start-connect",
                &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
                &[],
            ),
            function("[method]tcp-socket.finish-connect", &[I32, I32], &[]),
            function("[method]tcp-socket.start-listen", &[I32, I32], &[]),
            function("[method]tcp-socket.finish-listen", &[I32, I32], &[]),
            function("[method]tcp-socket.accept", &[I32, I32], &[]),
            function("[method]tcp-socket.local-address", &[I32, I32], &[]),
            function("[method]tcp-socket.remote-address", &[I32, I32], &[]),
            function("[method]tcp-socket.is-listening", &[I32], &[I32]),
            function("[method]tcp-socket.address-family", &[I32], &[I32]),
            function("[method]tcp-socket.set-listen-backlog-size", &[I32, I64, I32], &[]),
            function("[method]tcp-socket.keep-alive-enabled", &[I32, I32], &[]),
            function("[method]tcp-socket.set-keep-alive-enabled", &[I32, I32, I32], &[]),
            function("[method]tcp-socket.keep-alive-idle-time", &[I32, I32], &[]),
            function("[method]tcp-socket.set-keep-alive-idle-time", &[I32, I64, I32], &[]),
            function("[method]tcp-socket.keep-alive-interval", &[I32, I32], &[]),
            function("[method]tcp-socket.set-keep-alive-interval", &[I32, I64, I32], &[]),
            function("[method]tcp-socket.keep-alive-count", &[I32, I32], &[]),
            function("[method]tcp-socket.set-keep-alive-count", &[I32, I32, I32], &[]),
            function("[method]tcp-socket.hop-limit", &[I32, I32], &[]),
            function("[method]tcp-socket.set-hop-limit", &[I32, I32, I32], &[]),
            function("[method]tcp-socket.receive-buffer-size", &[I32, I32], &[]),
            function("[method]tcp-socket.set-receive-buffer-size", &[I32, I64, I32], &[]),
            function("[method]tcp-socket.send-buffer-size", &[I32, I32], &[]),
            function("[method]tcp-socket.set-send-buffer-size", &[I32, I64, I32], &[]),
            function("[method]tcp-socket.subscribe", &[I32], &[I32]),
            function("[method]tcp-socket.shutdown", &[I32, I32, I32], &[]),
        ],
    },
    Interface { name: "wasi:sockets/tcp-create-socket@0.2", functions: &[function("create-tcp-socket", &[I32, I32], &[])] },
    Interface {
        name: "wasi:sockets/udp@0.2",
        functions: &[
            function(
                "[method]udp-socket.start-bind",
                &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
                &[],
            ),
            function("[method]udp-socket.finish-bind", &[I32, I32], &[]),
            function(
                "[method]udp-socket.stream",
                &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
                &[],
            ),
            function("[method]udp-socket.local-address", &[I32, I32], &[]),
            function("[method]udp-socket.remote-address", &[I32, I32], &[]),
            function("[method]udp-socket.address-family", &[I32], &[I32]),
            function("[method]udp-socket.unicast-hop-limit", &[I32, I32], &[]),
            function("[method]udp-socket.set-unicast-hop-limit", &[I32, I32, I32], &[]),
            function("[method]udp-socket.receive-buffer-size", &[I32, I32], &[]),
            function("[method]udp-socket.set-receive-buffer-size", &[I32, I64, I32], &[]),
            function("[method]udp-socket.send-buffer-size", &[I32, I32], &[]),
            function("[method]udp-socket.set-send-buffer-size", &[I32, I64, I32], &[]),
            function("[method]udp-socket.subscribe", &[I32], &[I32]),
            allocating("[method]incoming-datagram-stream.receive", &[I32, I64, I32]),
            function("[method]incoming-datagram-stream.subscribe", &[I32], &[I32]),
            function("[method]outgoing-datagram-stream.check-send", &[I32, I32], &[]),
            function("[method]outgoing-datagram-stream.send", &[I32, I32, I32, I32], &[]),
            function("[method]outgoing-datagram-stream.subscribe", &[I32], &[I32]),
        ],
    },
    Interface { name: "wasi:sockets/udp-create-socket@0.2", functions: &[function("create-udp-socket", &[I32, I32], &[])] },
    // An `error-code` may hold a string, but the host gives none.
    Interface {
        name: "wasi:sockets/types@0.3",
        functions: &[
            function("[static]tcp-socket.create", &[I32, I32], &[]),
            function("[method]tcp-socket.bind", &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32], &[]),
            function("[method]tcp-socket.connect", &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32], &[]),
            ending_with_more("[method]tcp-socket.listen", &[I32, I32], &[], &[CONNECTIONS]),
            ending("[method]tcp-socket.send", &[I32, I32], &[I32], &[taken(1, BYTES)], &[SOCKET_OUTCOME]),
            ending("[method]tcp-socket.receive", &[I32, I32], &[], &[], &[BYTES, SOCKET_OUTCOME]),
            function("[method]tcp-socket.get-local-address", &[I32, I32], &[]),
            function("[method]tcp-socket.get-remote-address", &[I32, I32], &[]),
            function("[method]tcp-socket.get-is-listening", &[I32], &[I32]),
            function("[method]tcp-socket.get-address-family", &[I32], &[I32]),
            function("[method]tcp-socket.set-listen-backlog-size", &[I32, I64, I32], &[]),
            function("[method]tcp-socket.get-keep-alive-enabled", &[I32, I32], &[]),
            function("[method]tcp-socket.set-keep-alive-enabled", &[I32, I32, I32], &[]),
            function("[method]tcp-socket.get-keep-alive-idle-time", &[I32, I32], &[]),
            function("[method]tcp-socket.set-keep-alive-idle-time", &[I32, I64, I32], &[]),
            function("[method]tcp-socket.get-keep-alive-interval", &[I32, I32], &[]),
            function("[method]tcp-socket.set-keep-alive-interval", &[I32, I64, I32], &[]),
            function("[method]tcp-socket.get-keep-alive-count", &[I32, I32], &[]),
            function("[method]tcp-socket.set-keep-alive-count", &[I32, I32, I32], &[]),
            function("[method]tcp-socket.get-hop-limit", &[I32, I32], &[]),
            function("[method]tcp-socket.set-hop-limit", &[I32, I32, I32], &[]),
            function("[method]tcp-socket.get-receive-buffer-size", &[I32, I32], &[]),
            function("[method]tcp-socket.set-receive-buffer-size", &[I32, I64, I32], &[]),
            function("[method]tcp-socket.get-send-buffer-size", &[I32, I32], &[]),
            function("[method]tcp-socket.set-send-buffer-size", &[I32, I64, I32], &[]),
            function("[static]udp-socket.create", &[I32, I32], &[]),
            function("[method]udp-socket.bind", &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32], &[]),
            function("[method]udp-socket.connect", &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32], &[]),
            function("[method]udp-socket.disconnect", &[I32, I32], &[]),
            function(
                "[method]udp-socket.send",
                &[I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32, I32],
                &[],
            ),
            allocating("[method]udp-socket.receive", &[I32, I32]),
            function("[method]udp-socket.get-local-address", &[I32, I32], &[]),
            function("[method]udp-socket.get-remote-address", &[I32, I32], &[]),
            function("[method]udp-socket.get-address-family", &[I32], &[I32]),
            function("[method]udp-socket.get-unicast-hop-limit", &[I32, I32], &[]),
            function("[method]udp-socket.set-unicast-hop-limit", &[I32, I32, I32], &[]),
            function("[method]udp-socket.get-receive-buffer-size", &[I32, I32], &[]),
            function("[method]udp-socket.set-receive-buffer-size", &[I32, I64, I32], &[]),
            function("[method]udp-socket.get-send-buffer-size", &[I32, I32], &[]),
            function("[method]udp-socket.set-send-buffer-size", &[I32, I64, I32], &[]),
        ],
    },
    Interface { name: "wasi:sockets/ip-name-lookup@0.3", functions: &[allocating("resolve-addresses", &[I32, I32, I32])] },
    Interface { name: "wasi:random/insecure-seed@0.2", functions: &[function("insecure-seed", &[I32], &[])] },
    Interface {
        name: "wasi:random/insecure@0.2",
        functions: &[allocating("get-insecure-random-bytes", &[I64, I32]), function("get-insecure-random-u64", &[], &[I64])],
    },
    Interface {
        name: "wasi:random/random@0.2",
        functions: &[allocating("get-random-bytes", &[I64, I32]), function("get-random-u64", &[], &[I64])],
    },
    Interface {
        name: "wasi:cli/environment@0.2",
        functions: &[
            allocating("get-environment", &[I32]),
            allocating("get-arguments", &[I32]),
            allocating("initial-cwd", &[I32]),
        ],
    },
    Interface { name: "wasi:cli/exit@0.2", functions: &[function("exit", &[I32], &[]), function("exit-with-code", &[I32], &[])] },
    Interface { name: "wasi:cli/stdin@0.2", functions: &[function("get-stdin", &[], &[I32])] },
    Interface { name: "wasi:cli/stdout@0.2", functions: &[function("get-stdout", &[], &[I32])] },
    Interface { name: "wasi:cli/stderr@0.2", functions: &[function("get-stderr", &[], &[I32])] },
    Interface { name: "wasi:cli/terminal-stdin@0.2", functions: &[function("get-terminal-stdin", &[I32], &[])] },
    Interface { name: "wasi:cli/terminal-stdout@0.2", functions: &[function("get-terminal-stdout", &[I32], &[])] },
    Interface { name: "wasi:cli/terminal-stderr@0.2", functions: &[function("get-terminal-stderr", &[I32], &[])] },
    Interface { name: "wasi:random/insecure-seed@0.3", functions: &[function("get-insecure-seed", &[I32], &[])] },
    Interface {
        name: "wasi:random/insecure@0.3",
        functions: &[allocating("get-insecure-random-bytes", &[I64, I32]), function("get-insecure-random-u64", &[], &[I64])],
    },
    Interface {
        name: "wasi:random/random@0.3",
        functions: &[allocating("get-random-bytes", &[I64, I32]), function("get-random-u64", &[], &[I64])],
    },
    Interface {
        name: "wasi:cli/environment@0.3",
        functions: &[
            allocating("get-environment", &[I32]),
            allocating("get-arguments", &[I32]),
            allocating("get-initial-cwd", &[I32]),
        ],
    },
    Interface { name: "wasi:cli/exit@0.3", functions: &[function("exit", &[I32], &[]), function("exit-with-code", &[I32], &[])] },
    Interface { name: "wasi:cli/stdin@0.3", functions: &[ending("read-via-stream", &[I32], &[], &[], &[BYTES, CLI_OUTCOME])] },
    Interface {
        name: "wasi:cli/stdout@0.3",
        functions: &[ending("write-via-stream", &[I32], &[I32], &[taken(0, BYTES)], &[CLI_OUTCOME])],
    },
    Interface {
        name: "wasi:cli/stderr@0.3",
        functions: &[ending("write-via-stream", &[I32], &[I32], &[taken(0, BYTES)], &[CLI_OUTCOME])],
    },
    Interface { name: "wasi:cli/terminal-stdin@0.3", functions: &[function("get-terminal-stdin", &[I32], &[])] },
    Interface { name: "wasi:cli/terminal-stdout@0.3", functions: &[function("get-terminal-stdout", &[I32], &[])] },
    Interface { name: "wasi:cli/terminal-stderr@0.3", functions: &[function("get-terminal-stderr", &[I32], &[])] },
    super::http::TYPES,
    super::http::TYPES3,
    super::http::CLIENT,
    super::http::OUTGOING_HANDLER,
    super::store::STORE,
    super::store::STORE2,
    super::store::ATOMICS,
    super::store::ATOMICS2,
    super::store::BATCH1,
    super::store::BATCH2,
    super::store::CONFIG_RC1,
    super::store::CONFIG_DRAFT,
    super::store::CONFIG_2024,
    super::store::CONFIG_RUNTIME,
    super::store::SPIN_KEY_VALUE,
    super::store::SPIN_VARIABLES,
    super::store::SPIN3_KEY_VALUE,
    super::store::SPIN3_VARIABLES,
    super::own::KEYVALUE,
    super::own::CALL,
    super::own::NOTE,
    super::own::HTTP,
];
