// What the reply says. Nothing here needs WebAssembly, so tests run it as it is.
export function* greeting(name, method, path) {
  yield `Hello, ${name}!\n`;
  yield `You sent ${method} to ${path}.\n`;
}
