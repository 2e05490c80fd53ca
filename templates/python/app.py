"""Answers requests: greets the name in the body."""

import sys
from collections.abc import Iterable, Iterator

from componentize_py_types import Err, Ok
from wit_world import exports
from wit_world.imports.streams import StreamError_Closed
from wit_world.imports.types import (
    Fields,
    IncomingBody,
    IncomingRequest,
    Method,
    Method_Other,
    OutgoingBody,
    OutgoingResponse,
    ResponseOutparam,
)

from greeting import greeting

PIECE_BYTES = 65536  # read at a time
WRITE_BYTES = 4096  # wasi:io takes so many in one blocking call


class IncomingHandler(exports.IncomingHandler):
    """What `wasi:http` calls for each request, each time in a fresh copy of this program."""

    def handle(self, request: IncomingRequest, response_out: ResponseOutparam) -> None:
        method, path = name_of(request.method()), request.path_with_query() or "/"
        print(f"{method} {path}", file=sys.stderr)  # the log
        name = b"".join(read(request.consume())).decode(errors="replace").strip()
        if name:
            reply(response_out, 200, "text/plain", greeting(name, method, path))
        else:
            reply(response_out, 400, "text/plain", ["Send a name in the body.\n"])


def name_of(method: Method) -> str:
    if isinstance(method, Method_Other):
        return method.value
    return type(method).__name__.removeprefix("Method_").upper()


def read(body: IncomingBody) -> Iterator[bytes]:
    """The pieces of a request's body as they arrive."""
    with body, body.stream() as stream:
        while True:
            try:
                yield stream.blocking_read(PIECE_BYTES)
            except Err as error:
                if isinstance(error.value, StreamError_Closed):
                    return
                raise


def reply(response_out: ResponseOutparam, status: int, content_type: str, pieces: Iterable[str]) -> None:
    """Sends status and headers, then each piece of the body as soon as it is there."""
    response = OutgoingResponse(Fields.from_list([("content-type", content_type.encode())]))
    response.set_status_code(status)
    body = response.body()
    ResponseOutparam.set(response_out, Ok(response))
    with body.write() as stream:
        for piece in pieces:
            data = piece.encode()
            for start in range(0, len(data), WRITE_BYTES):
                stream.blocking_write_and_flush(data[start : start + WRITE_BYTES])
    OutgoingBody.finish(body, None)
