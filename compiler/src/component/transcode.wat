;; Strings from one memory (0) to another (1), as adapters call for them. Pointers and lengths were checked by the adapter: they lie in their memories.
;; Lengths are in code units. A string that is not valid traps, with the number of its first byte that is wrong. What is only told of then is looked for only
;; then: `$start` is where the string begins, -1 where that is not known.

(func $wrong (param $code i32) (param $at i32) (param $start i32)
  (if (i32.eq (local.get $start) (i32.const -1)) (then (call $trap (local.get $code))))
  (call $trap_of (local.get $code) (i32.sub (local.get $at) (local.get $start))))

;; UTF-8, validated and copied. Most text is ASCII: sixteen bytes at a time as long as it is.
(func (export "copy utf8") (param $from i32) (param $bytes i32) (param $to i32)
  (local $end i32) (local $sixteen v128) (local $bytes_of_one i32) (local $start i32)
  (local.set $start (local.get $from))
  (local.set $end (i32.add (local.get $from) (local.get $bytes)))
  (block $done
    (loop $more
      (block $not_ascii
        (br_if $not_ascii (i32.lt_u (i32.sub (local.get $end) (local.get $from)) (i32.const 16)))
        (local.set $sixteen (v128.load 0 align=1 (local.get $from)))
        (br_if $not_ascii (i8x16.bitmask (local.get $sixteen)))
        (v128.store 1 align=1 (local.get $to) (local.get $sixteen))
        (local.set $from (i32.add (local.get $from) (i32.const 16)))
        (local.set $to (i32.add (local.get $to) (i32.const 16)))
        (br $more))
      (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
      (local.set $bytes_of_one
        (i32.wrap_i64 (i64.shr_u (call $utf8 (local.get $from) (local.get $end) (local.get $start)) (i64.const 32))))
      (call $copy (local.get $from) (local.get $to) (local.get $bytes_of_one))
      (local.set $from (i32.add (local.get $from) (local.get $bytes_of_one)))
      (local.set $to (i32.add (local.get $to) (local.get $bytes_of_one)))
      (br $more))))
;; A few bytes.
(func $copy (param $from i32) (param $to i32) (param $bytes i32)
  (loop $more
    (i32.store8 1 (local.get $to) (i32.load8_u 0 (local.get $from)))
    (local.set $from (i32.add (local.get $from) (i32.const 1)))
    (local.set $to (i32.add (local.get $to) (i32.const 1)))
    (local.set $bytes (i32.sub (local.get $bytes) (i32.const 1)))
    (br_if $more (local.get $bytes))))

;; The next byte of the character in UTF-8 that begins at `$first`. It must be a continuation and lie before the end: its six bits.
(func $continuation (param $at i32) (param $end i32) (param $first i32) (param $start i32) (result i32)
  (local $byte i32)
  (if (i32.ge_u (local.get $at) (local.get $end))
    (then (call $wrong (i32.const 15) (local.get $first) (local.get $start))))
  (local.set $byte (i32.load8_u 0 (local.get $at)))
  (if (i32.ne (i32.and (local.get $byte) (i32.const 0xc0)) (i32.const 0x80))
    (then (call $wrong (i32.const 15) (local.get $first) (local.get $start))))
  (i32.and (local.get $byte) (i32.const 0x3f)))

;; The character in UTF-8 that begins there: its number in the low half, how many bytes it has in the high half.
(func $utf8 (param $at i32) (param $end i32) (param $start i32) (result i64)
  (local $byte i32) (local $number i32)
  (local.set $byte (i32.load8_u 0 (local.get $at)))
  (if (i32.lt_u (local.get $byte) (i32.const 0x80))
    (then (return (i64.or (i64.const 0x100000000) (i64.extend_i32_u (local.get $byte))))))
  (if (i32.or (i32.lt_u (local.get $byte) (i32.const 0xc2)) (i32.gt_u (local.get $byte) (i32.const 0xf4)))
    (then (call $wrong (i32.const 15) (local.get $at) (local.get $start))))
  (local.set $number
    (call $continuation (i32.add (local.get $at) (i32.const 1)) (local.get $end) (local.get $at) (local.get $start)))
  (if (i32.lt_u (local.get $byte) (i32.const 0xe0))
    (then
      (return
        (i64.or
          (i64.const 0x200000000)
          (i64.extend_i32_u
            (i32.or (i32.shl (i32.and (local.get $byte) (i32.const 0x1f)) (i32.const 6)) (local.get $number)))))))
  (local.set $number
    (i32.or
      (i32.shl (local.get $number) (i32.const 6))
      (call $continuation (i32.add (local.get $at) (i32.const 2)) (local.get $end) (local.get $at) (local.get $start))))
  (if (i32.lt_u (local.get $byte) (i32.const 0xf0))
    (then
      (local.set $number
        (i32.or (i32.shl (i32.and (local.get $byte) (i32.const 0xf)) (i32.const 12)) (local.get $number)))
      ;; Neither what fits into fewer bytes, nor half of a surrogate pair.
      (if (i32.or
            (i32.lt_u (local.get $number) (i32.const 0x800))
            (i32.eq (i32.and (local.get $number) (i32.const 0xf800)) (i32.const 0xd800)))
        (then (call $wrong (i32.const 15) (local.get $at) (local.get $start))))
      (return (i64.or (i64.const 0x300000000) (i64.extend_i32_u (local.get $number))))))
  (local.set $number
    (i32.or
      (i32.shl (i32.and (local.get $byte) (i32.const 0x7)) (i32.const 18))
      (i32.or
        (i32.shl (local.get $number) (i32.const 6))
        (call $continuation (i32.add (local.get $at) (i32.const 3)) (local.get $end) (local.get $at) (local.get $start)))))
  (if (i32.or
        (i32.lt_u (local.get $number) (i32.const 0x10000))
        (i32.gt_u (local.get $number) (i32.const 0x10ffff)))
    (then (call $wrong (i32.const 15) (local.get $at) (local.get $start))))
  (i64.or (i64.const 0x400000000) (i64.extend_i32_u (local.get $number))))

;; Writes a character in UTF-8; how many bytes.
(func $put_utf8 (param $to i32) (param $number i32) (result i32)
  (if (i32.lt_u (local.get $number) (i32.const 0x80))
    (then
      (i32.store8 1 (local.get $to) (local.get $number))
      (return (i32.const 1))))
  (if (i32.lt_u (local.get $number) (i32.const 0x800))
    (then
      (i32.store8 1 (local.get $to) (i32.or (i32.const 0xc0) (i32.shr_u (local.get $number) (i32.const 6))))
      (i32.store8 1 offset=1 (local.get $to) (call $six (local.get $number) (i32.const 0)))
      (return (i32.const 2))))
  (if (i32.lt_u (local.get $number) (i32.const 0x10000))
    (then
      (i32.store8 1 (local.get $to) (i32.or (i32.const 0xe0) (i32.shr_u (local.get $number) (i32.const 12))))
      (i32.store8 1 offset=1 (local.get $to) (call $six (local.get $number) (i32.const 6)))
      (i32.store8 1 offset=2 (local.get $to) (call $six (local.get $number) (i32.const 0)))
      (return (i32.const 3))))
  (i32.store8 1 (local.get $to) (i32.or (i32.const 0xf0) (i32.shr_u (local.get $number) (i32.const 18))))
  (i32.store8 1 offset=1 (local.get $to) (call $six (local.get $number) (i32.const 12)))
  (i32.store8 1 offset=2 (local.get $to) (call $six (local.get $number) (i32.const 6)))
  (i32.store8 1 offset=3 (local.get $to) (call $six (local.get $number) (i32.const 0)))
  (i32.const 4))

;; A continuation byte: six bits from there.
(func $six (param $number i32) (param $from i32) (result i32)
  (i32.or (i32.const 0x80) (i32.and (i32.shr_u (local.get $number) (local.get $from)) (i32.const 0x3f))))

;; How many bytes a character has in UTF-8.
(func $utf8_bytes (param $number i32) (result i32)
  (i32.add
    (i32.add (i32.const 1) (i32.ge_u (local.get $number) (i32.const 0x80)))
    (i32.add
      (i32.ge_u (local.get $number) (i32.const 0x800))
      (i32.ge_u (local.get $number) (i32.const 0x10000)))))

;; The character in UTF-16 that begins there: its number in the low half, how many bytes it has in the high half.
(func $utf16 (param $at i32) (param $end i32) (param $start i32) (result i64)
  (local $first i32) (local $second i32)
  (local.set $first (i32.load16_u 0 (local.get $at)))
  (if (i32.ne (i32.and (local.get $first) (i32.const 0xf800)) (i32.const 0xd800))
    (then (return (i64.or (i64.const 0x200000000) (i64.extend_i32_u (local.get $first))))))
  (if (i32.or
        (i32.ge_u (local.get $first) (i32.const 0xdc00))
        (i32.gt_u (i32.add (local.get $at) (i32.const 4)) (local.get $end)))
    (then (call $wrong (i32.const 16) (local.get $at) (local.get $start))))
  (local.set $second (i32.load16_u 0 offset=2 (local.get $at)))
  (if (i32.ne (i32.and (local.get $second) (i32.const 0xfc00)) (i32.const 0xdc00))
    (then (call $wrong (i32.const 16) (local.get $at) (local.get $start))))
  (i64.or
    (i64.const 0x400000000)
    (i64.extend_i32_u
      (i32.add
        (i32.const 0x10000)
        (i32.or
          (i32.shl (i32.and (local.get $first) (i32.const 0x3ff)) (i32.const 10))
          (i32.and (local.get $second) (i32.const 0x3ff)))))))

;; Writes a character in UTF-16; how many bytes.
(func $put_utf16 (param $to i32) (param $number i32) (result i32)
  (if (i32.lt_u (local.get $number) (i32.const 0x10000))
    (then
      (i32.store16 1 (local.get $to) (local.get $number))
      (return (i32.const 2))))
  (local.set $number (i32.sub (local.get $number) (i32.const 0x10000)))
  (i32.store16 1 (local.get $to) (i32.or (i32.const 0xd800) (i32.shr_u (local.get $number) (i32.const 10))))
  (i32.store16 1 offset=2 (local.get $to)
    (i32.or (i32.const 0xdc00) (i32.and (local.get $number) (i32.const 0x3ff))))
  (i32.const 4))

;; UTF-16, validated and copied; the number of all characters, one bit or the other.
(func $copy_utf16 (param $from i32) (param $units i32) (param $to i32) (param $start i32) (result i32)
  (local $end i32) (local $one i64) (local $bits i32)
  (local.set $end (i32.add (local.get $from) (i32.shl (local.get $units) (i32.const 1))))
  (block $done
    (loop $more
      (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
      (local.set $one (call $utf16 (local.get $from) (local.get $end) (local.get $start)))
      (local.set $bits (i32.or (local.get $bits) (i32.wrap_i64 (local.get $one))))
      (local.set $from (i32.add (local.get $from) (i32.wrap_i64 (i64.shr_u (local.get $one) (i64.const 32)))))
      (local.set $to
        (i32.add (local.get $to) (call $put_utf16 (local.get $to) (i32.wrap_i64 (local.get $one)))))
      (br $more)))
  (local.get $bits))

(func (export "copy utf16") (param $from i32) (param $units i32) (param $to i32)
  (drop (call $copy_utf16 (local.get $from) (local.get $units) (local.get $to) (local.get $from))))

;; Every string of bytes is valid Latin-1.
(func (export "copy latin1") (param $from i32) (param $bytes i32) (param $to i32)
  (if (local.get $bytes)
    (then (call $copy (local.get $from) (local.get $to) (local.get $bytes)))))

(func (export "latin1 to utf16") (param $from i32) (param $units i32) (param $to i32)
  (block $done
    (loop $more
      (br_if $done (i32.eqz (local.get $units)))
      (i32.store16 1 (local.get $to) (i32.load8_u 0 (local.get $from)))
      (local.set $from (i32.add (local.get $from) (i32.const 1)))
      (local.set $to (i32.add (local.get $to) (i32.const 2)))
      (local.set $units (i32.sub (local.get $units) (i32.const 1)))
      (br $more))))

;; As far as it fits; the code units that were read and written.
(func (export "latin1 to utf8")
  (param $from i32) (param $units i32) (param $to i32) (param $bytes i32) (param $first i32) (result i32 i32)
  (local $at i32) (local $out i32) (local $number i32)
  (block $done
    (loop $more
      (br_if $done (i32.ge_u (local.get $at) (local.get $units)))
      (local.set $number (i32.load8_u 0 (i32.add (local.get $from) (local.get $at))))
      (br_if $done
        (i32.gt_u (i32.add (local.get $out) (call $utf8_bytes (local.get $number))) (local.get $bytes)))
      (local.set $out
        (i32.add
          (local.get $out)
          (call $put_utf8 (i32.add (local.get $to) (local.get $out)) (local.get $number))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $more)))
  (local.get $at)
  (local.get $out))

;; As far as it fits; the code units that were read and written. `$first`: whether this is the string's beginning.
(func (export "utf16 to utf8")
  (param $from i32) (param $units i32) (param $to i32) (param $bytes i32) (param $first i32) (result i32 i32)
  (local $at i32) (local $end i32) (local $out i32) (local $one i64) (local $number i32)
  (local.set $at (local.get $from))
  (local.set $end (i32.add (local.get $from) (i32.shl (local.get $units) (i32.const 1))))
  (block $done
    (loop $more
      (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
      (local.set $one
        (call $utf16 (local.get $at) (local.get $end)
          (select (local.get $from) (i32.const -1) (local.get $first))))
      (local.set $number (i32.wrap_i64 (local.get $one)))
      (br_if $done
        (i32.gt_u (i32.add (local.get $out) (call $utf8_bytes (local.get $number))) (local.get $bytes)))
      (local.set $out
        (i32.add
          (local.get $out)
          (call $put_utf8 (i32.add (local.get $to) (local.get $out)) (local.get $number))))
      (local.set $at (i32.add (local.get $at) (i32.wrap_i64 (i64.shr_u (local.get $one) (i64.const 32)))))
      (br $more)))
  (i32.shr_u (i32.sub (local.get $at) (local.get $from)) (i32.const 1))
  (local.get $out))

;; There is room for as many code units as there are bytes; the code units that were written.
(func (export "utf8 to utf16") (param $from i32) (param $bytes i32) (param $to i32) (result i32)
  (call $utf8_to_utf16 (local.get $from) (local.get $bytes) (local.get $to) (local.get $from)))
(func $utf8_to_utf16 (param $from i32) (param $bytes i32) (param $to i32) (param $start i32) (result i32)
  (local $end i32) (local $out i32) (local $one i64)
  (local.set $end (i32.add (local.get $from) (local.get $bytes)))
  (local.set $out (local.get $to))
  (block $done
    (loop $more
      (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
      (local.set $one (call $utf8 (local.get $from) (local.get $end) (local.get $start)))
      (local.set $from (i32.add (local.get $from) (i32.wrap_i64 (i64.shr_u (local.get $one) (i64.const 32)))))
      (local.set $out
        (i32.add (local.get $out) (call $put_utf16 (local.get $out) (i32.wrap_i64 (local.get $one)))))
      (br $more)))
  (i32.shr_u (i32.sub (local.get $out) (local.get $to)) (i32.const 1)))

;; Up to the first character that Latin-1 has not; the code units that were read and written.
(func (export "utf8 to latin1") (param $from i32) (param $bytes i32) (param $to i32) (result i32 i32)
  (local $at i32) (local $end i32) (local $out i32) (local $one i64)
  (local.set $at (local.get $from))
  (local.set $end (i32.add (local.get $from) (local.get $bytes)))
  (local.set $out (local.get $to))
  (block $done
    (loop $more
      (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
      (local.set $one (call $utf8 (local.get $at) (local.get $end) (local.get $from)))
      (br_if $done (i32.gt_u (i32.wrap_i64 (local.get $one)) (i32.const 0xff)))
      (i32.store8 1 (local.get $out) (i32.wrap_i64 (local.get $one)))
      (local.set $out (i32.add (local.get $out) (i32.const 1)))
      (local.set $at (i32.add (local.get $at) (i32.wrap_i64 (i64.shr_u (local.get $one) (i64.const 32)))))
      (br $more)))
  (i32.sub (local.get $at) (local.get $from))
  (i32.sub (local.get $out) (local.get $to)))

(func (export "utf16 to latin1") (param $from i32) (param $units i32) (param $to i32) (result i32 i32)
  (local $at i32) (local $unit i32)
  (block $done
    (loop $more
      (br_if $done (i32.ge_u (local.get $at) (local.get $units)))
      (local.set $unit (i32.load16_u 0 (i32.add (local.get $from) (i32.shl (local.get $at) (i32.const 1)))))
      (br_if $done (i32.gt_u (local.get $unit) (i32.const 0xff)))
      (i32.store8 1 (i32.add (local.get $to) (local.get $at)) (local.get $unit))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $more)))
  (local.get $at)
  (local.get $at))

;; What was written as Latin-1 becomes UTF-16 where it stands, from its end.
(func $widen (param $to i32) (param $units i32)
  (block $done
    (loop $more
      (br_if $done (i32.eqz (local.get $units)))
      (local.set $units (i32.sub (local.get $units) (i32.const 1)))
      (i32.store16 1
        (i32.add (local.get $to) (i32.shl (local.get $units) (i32.const 1)))
        (i32.load8_u 1 (i32.add (local.get $to) (local.get $units))))
      (br $more))))

;; The rest of a string of which `written` characters stand there as Latin-1; all code units, as UTF-16.
(func (export "utf8 to compact utf16")
  (param $from i32) (param $bytes i32) (param $to i32) (param $room i32) (param $written i32) (result i32)
  (call $widen (local.get $to) (local.get $written))
  (i32.add
    (local.get $written)
    (call $utf8_to_utf16
      (local.get $from)
      (local.get $bytes)
      (i32.add (local.get $to) (i32.shl (local.get $written) (i32.const 1)))
      ;; How many bytes the characters before had is not known.
      (i32.const -1))))

(func (export "utf16 to compact utf16")
  (param $from i32) (param $units i32) (param $to i32) (param $room i32) (param $written i32) (result i32)
  (call $widen (local.get $to) (local.get $written))
  (drop
    (call $copy_utf16
      (local.get $from)
      (local.get $units)
      (i32.add (local.get $to) (i32.shl (local.get $written) (i32.const 1)))
      (i32.sub (local.get $from) (i32.shl (local.get $written) (i32.const 1)))))
  (i32.add (local.get $written) (local.get $units)))

;; UTF-16, or Latin-1 if nothing in it needs more: the code units, with bit 31 set for UTF-16.
(func (export "utf16 to compact probably utf16") (param $from i32) (param $units i32) (param $to i32) (result i32)
  (local $at i32)
  (if (i32.gt_u
        (call $copy_utf16 (local.get $from) (local.get $units) (local.get $to) (local.get $from))
        (i32.const 0xff))
    (then (return (i32.or (local.get $units) (i32.const 0x80000000)))))
  (block $done
    (loop $more
      (br_if $done (i32.ge_u (local.get $at) (local.get $units)))
      (i32.store8 1
        (i32.add (local.get $to) (local.get $at))
        (i32.load16_u 1 (i32.add (local.get $to) (i32.shl (local.get $at) (i32.const 1)))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $more)))
  (local.get $units))
