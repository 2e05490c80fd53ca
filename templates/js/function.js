// Answers requests: greets the name in the body.
import { greeting } from './greeting.js';

// Each request gets a fresh copy of this program.
addEventListener('fetch', (event) => event.respondWith(answer(event.request)));

async function answer(request) {
  const { pathname, search } = new URL(request.url);
  console.error(`${request.method} ${pathname}${search}`); // the log
  const headers = { 'content-type': 'text/plain' };
  const name = (await request.text()).trim();
  if (!name) {
    return new Response('Send a name in the body.\n', { status: 400, headers });
  }
  return new Response(stream(greeting(name, request.method, pathname + search)), { status: 200, headers });
}

// A body that is sent while it is made, piece by piece.
function stream(pieces) {
  const encoder = new TextEncoder();
  return new ReadableStream({
    pull(controller) {
      const { value, done } = pieces.next();
      if (done) {
        controller.close();
      } else {
        controller.enqueue(encoder.encode(value));
      }
    },
  });
}
