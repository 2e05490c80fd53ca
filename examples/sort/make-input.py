#!/usr/bin/env python3
"""Writes records for sort: ten characters of key, a number, and filler up to 99 characters and the end of a line.

    ./make-input.py [COUNT] > input.txt     always the same COUNT records, 100 unless told
"""

import random
import string
import sys

rng = random.Random(10)
count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
for number in range(count):
    key = "".join(rng.choices(string.ascii_letters + string.digits, k=10))
    # Every eighth key again, so that the order of equals shows.
    key = "equal-keys" if number % 8 == 0 else key
    filler = string.ascii_uppercase[number % 26] * 76
    print(f"{key} {number:011d} {filler}")
