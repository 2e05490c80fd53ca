// What `sledge` is measured against: node's own HTTP server on one thread. `node server.mjs NAME=MODULE...`
//
// ping and echo are handlers in JavaScript, without a sandbox. All others are WASI commands: compiled before the first request, and for each
// request instantiated anew, with standard input and output in memory (V8 makes of the functions' hot parts better code while they run).
// Prints `listening on http://ADDRESS`, and ends with its standard input.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const [BADF, SPIPE] = [8, 70];

/** The body, as it was sent. */
const echo = (body) => body;
const handlers = new Map([["/ping", () => "pong\n"], ["/echo", echo]]);

for (const argument of process.argv.slice(2)) {
  const at = argument.indexOf("=");
  const path = `/${argument.slice(0, at)}`;
  if (!handlers.has(path)) {
    const module = new WebAssembly.Module(readFileSync(argument.slice(at + 1)));
    handlers.set(path, (body) => run(module, body));
  }
}

/** Runs a command in an instance of its own: what it writes to standard output. */
function run(module, input) {
  let [memory, view, consumed, status] = [null, null, 0, 0];
  const [output, errors] = [[], []];
  const exit = new Error("exit");
  /** Of the memory as it is now: it may have grown. */
  const current = () => (view?.buffer === memory.buffer ? view : (view = new DataView(memory.buffer)));
  /** Calls `each` with every part of the memory that a list of vectors names; the sum of what it returns goes to `to`. */
  const vectors = (list, count, to, each) => {
    let sum = 0;
    for (let index = 0; index < count; index++) {
      const [at, length] = [current().getUint32(list + 8 * index, true), current().getUint32(list + 8 * index + 4, true)];
      sum += each(new Uint8Array(memory.buffer, at, length));
    }
    current().setUint32(to, sum, true);
    return 0;
  };
  const wasi_snapshot_preview1 = {
    environ_sizes_get: (count, bytes) => (current().setUint32(count, 0, true), current().setUint32(bytes, 0, true), 0),
    environ_get: () => 0,
    fd_read: (fd, list, count, to) =>
      fd !== 0 ? BADF : vectors(list, count, to, (bytes) => {
        const part = input.subarray(consumed, consumed + bytes.length);
        bytes.set(part);
        consumed += part.length;
        return part.length;
      }),
    fd_write: (fd, list, count, to) =>
      fd !== 1 && fd !== 2 ? BADF : vectors(list, count, to, (bytes) => {
        (fd === 1 ? output : errors).push(Buffer.from(bytes));
        return bytes.length;
      }),
    fd_fdstat_get: (fd, to) => (fd > 2 ? BADF : (new Uint8Array(memory.buffer, to, 24).fill(0), 0)),
    fd_seek: () => SPIPE,
    fd_close: () => 0,
    proc_exit: (code) => {
      status = code;
      throw exit;
    },
  };
  const { exports } = new WebAssembly.Instance(module, { wasi_snapshot_preview1 });
  memory = exports.memory;
  try {
    exports._start();
  } catch (error) {
    if (error !== exit) throw error;
  }
  if (status !== 0) throw new Error(`exit status ${status}: ${Buffer.concat(errors)}`);
  return output.length === 1 ? output[0] : Buffer.concat(output);
}

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    let [status, body] = [200, ""];
    try {
      const handler = handlers.get(request.url);
      if (handler) body = handler(parts.length === 1 ? parts[0] : Buffer.concat(parts));
      else status = 404;
    } catch (error) {
      console.error(error);
      status = 500;
    }
    response.writeHead(status, { "content-type": "application/octet-stream", "content-length": Buffer.byteLength(body) });
    response.end(body);
  });
});
// A client may keep its connection as long as it likes.
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
process.stdin.resume().on("end", () => process.exit(0));
