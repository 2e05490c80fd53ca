"""Reads orders from a stream, and adds them to a ledger."""

from collections.abc import Iterator

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports.ledgers import Ledger
from wit_world.imports.streams import InputStream, StreamError_Closed
from wit_world.imports.types import (
    Marks,
    Mistake,
    Order,
    Price,
    Price_Agreed,
    Price_Cents,
    Price_Free,
    Refusal_Broken,
    Refusal_Mistakes,
    Refusal_Nothing,
)

PIECE_BYTES = 4096  # read at a time
# What the types of the ledger hold.
U32_MAX = 2**32 - 1
CENTS_MAX = 2**64 - 1
MARKS = {"gift": Marks.GIFT, "fragile": Marks.FRAGILE, "urgent": Marks.URGENT}


class Reader(exports.Reader):
    def read(self, from_: InputStream, to: Ledger) -> list[tuple[str, int]]:
        numbers, mistakes = [], []
        try:
            for number, line in enumerate(lines(from_), start=1):
                try:
                    order = parse(line)
                    numbers.append((order.item, to.add(order)))
                except ValueError as error:
                    mistakes.append(Mistake(number, str(error)))
                except Err as error:  # the ledger's
                    mistakes.append(Mistake(number, error.value))
        except UnicodeDecodeError as error:
            raise Err(Refusal_Broken(f"no UTF-8 at byte {error.start}"))
        if mistakes:
            raise Err(Refusal_Mistakes(mistakes))
        if not numbers:
            raise Err(Refusal_Nothing())
        return numbers


def lines(stream: InputStream) -> Iterator[str]:
    data = bytearray()
    with stream:
        while True:
            try:
                data += stream.blocking_read(PIECE_BYTES)
            except Err as error:
                if isinstance(error.value, StreamError_Closed):
                    break
                raise
    yield from bytes(data).decode().splitlines()


def parse(line: str) -> Order:
    """An order: item; count; price; marks; note. The last two may be missing."""
    fields = [field.strip() for field in line.split(";")]
    if not 3 <= len(fields) <= 5 or not fields[0]:
        raise ValueError(f"not an order: {line!r}")
    item, count, price, marks, note = fields + [""] * (5 - len(fields))
    if not count.isdecimal() or int(count) > U32_MAX:
        raise ValueError(f"not a count: {count!r}")
    set_marks = Marks(0)
    for mark in filter(None, map(str.strip, marks.split(","))):
        if mark not in MARKS:
            raise ValueError(f"not a mark: {mark!r}")
        set_marks |= MARKS[mark]
    return Order(item, int(count), price_of(price), set_marks, note or None)


def price_of(words: str) -> Price:
    if words == "-":
        return Price_Free()
    whole, _, part = words.partition(".")
    if whole.isdecimal() and (not part or part.isdecimal() and len(part) == 2):
        cents = int(whole) * 100 + int(part or 0)
        if cents > CENTS_MAX:
            raise ValueError(f"not a price: {words!r}")
        return Price_Cents(cents)
    return Price_Agreed(words)
