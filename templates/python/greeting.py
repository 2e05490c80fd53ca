"""What the reply says. Nothing here needs WebAssembly, so tests run it as it is."""

from collections.abc import Iterator


def greeting(name: str, method: str, path: str) -> Iterator[str]:
    yield f"Hello, {name}!\n"
    yield f"You sent {method} to {path}.\n"
