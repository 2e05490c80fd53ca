;; Streams of what is more than numbers, from one component to another. `components/hostile-streams.wast` has what must not pass.

(component definition $values
  ;; A memory with a realloc that can be told to lie: 1 not aligned, 2 out of bounds, 3 calls out, 4 traps.
  (core module $Memory
    (import "" "set-new" (func $set_new (result i32)))
    (memory (export "mem") 1)
    (global $next (mut i32) (i32.const 1024))
    (global $lie (mut i32) (i32.const 0))
    (func (export "lie") (param i32) (global.set $lie (local.get 0)))
    (func (export "realloc") (param $old i32) (param $had i32) (param $align i32) (param $size i32) (result i32)
      (if (i32.eq (global.get $lie) (i32.const 1)) (then (return (i32.const 1025))))
      (if (i32.eq (global.get $lie) (i32.const 2)) (then (return (i32.const 0xfff8))))
      (if (i32.eq (global.get $lie) (i32.const 3)) (then (drop (call $set_new))))
      (if (i32.eq (global.get $lie) (i32.const 4)) (then unreachable))
      (global.set $next (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.get $next)
      (memory.copy
        (global.get $next)
        (local.get $old)
        (select (local.get $had) (local.get $size) (i32.lt_u (local.get $had) (local.get $size))))
      (global.set $next (i32.add (global.get $next) (local.get $size)))))
  ;; It writes what it is given.
  (core module $Writer
    (import "" "mem" (memory 1))
    (import "" "new" (func $new (result i64)))
    (import "" "write" (func $write (param i32 i32 i32) (result i32)))
    (import "" "cancel" (func $cancel (param i32) (result i32)))
    (global $end (mut i32) (i32.const 0))
    (func $open (export "open") (result i32)
      (local $ends i64)
      (local.set $ends (call $new))
      (global.set $end (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
      (i32.wrap_i64 (local.get $ends)))
    (func $again (export "write") (param $at i32) (param $count i32) (result i32)
      (call $write (global.get $end) (local.get $at) (local.get $count)))
    ;; The reader has not come yet.
    (func $start (export "start") (param $at i32) (param $count i32) (result i32)
      (call $open)
      (if (i32.ne (call $again (local.get $at) (local.get $count)) (i32.const -1)) (then unreachable)))
    (func (export "cancel") (result i32) (call $cancel (global.get $end))))
  ;; It reads that, and returns it.
  (core module $Reader
    (import "" "mem" (memory 1))
    (import "" "lie" (func $lie (param i32)))
    (import "" "open" (func $open (result i32)))
    (import "" "write" (func $write (param i32 i32) (result i32)))
    (import "" "start" (func $start (param i32 i32) (result i32)))
    (import "" "cancel-write" (func $cancel_write (result i32)))
    (import "" "read" (func $read (param i32 i32 i32) (result i32)))
    (import "" "cancel" (func $cancel (param i32) (result i32)))
    (import "" "drop" (func $drop (param i32)))
    ;; Where values go, and an address for the list of them.
    (global $to i32 (i32.const 0x8000))
    (func $list (param $count i32) (result i32)
      (i32.store (i32.const 16) (global.get $to))
      (i32.store (i32.const 20) (local.get $count))
      (i32.const 16))
    (func $finish (param $stream i32) (param $count i32) (result i32)
      (local $packed i32)
      (local.set $packed (call $read (local.get $stream) (global.get $to) (local.get $count)))
      (if (i32.and (local.get $packed) (i32.const 15)) (then unreachable))
      (call $list (i32.shr_u (local.get $packed) (i32.const 4))))
    (func (export "pass") (param $at i32) (param $count i32) (result i32)
      (call $finish (call $start (local.get $at) (local.get $count)) (local.get $count)))
    ;; The reader comes first, and has room for one more.
    (func (export "pass-late") (param $at i32) (param $count i32) (result i32)
      (local $stream i32)
      (local.set $stream (call $open))
      (if (i32.ne
            (call $read (local.get $stream) (global.get $to) (i32.add (local.get $count) (i32.const 1)))
            (i32.const -1))
        (then unreachable))
      (if (i32.ne
            (call $write (local.get $at) (local.get $count))
            (i32.shl (local.get $count) (i32.const 4)))
        (then unreachable))
      (call $list (i32.shr_u (call $cancel (local.get $stream)) (i32.const 4))))
    ;; It reads one value of that size after the other.
    (func (export "pass-each") (param $at i32) (param $count i32) (param $size i32) (result i32)
      (local $stream i32) (local $done i32)
      (local.set $stream (call $start (local.get $at) (local.get $count)))
      (loop $more
        (if (i32.ne
              (call $read
                (local.get $stream)
                (i32.add (global.get $to) (i32.mul (local.get $done) (local.get $size)))
                (i32.const 1))
              (i32.const 0x10))
          (then unreachable))
        (local.set $done (i32.add (local.get $done) (i32.const 1)))
        (br_if $more (i32.lt_u (local.get $done) (local.get $count))))
      (call $list (local.get $done)))
    ;; It reads one. Then the writer cancels the rest: what that returns.
    (func (export "pass-one") (param $at i32) (param $count i32) (result i32)
      (local $stream i32)
      (local.set $stream (call $start (local.get $at) (local.get $count)))
      (if (i32.ne (call $read (local.get $stream) (global.get $to) (i32.const 1)) (i32.const 0x10)) (then unreachable))
      (call $cancel_write)
      (if (i32.ne (call $read (local.get $stream) (global.get $to) (i32.const 1)) (i32.const -1)) (then unreachable)))
    ;; It drops its end, and the values were never read.
    (func (export "pass-none") (param $at i32) (param $count i32) (result i32)
      (call $drop (call $start (local.get $at) (local.get $count)))
      (call $cancel_write))
    (func (export "pass-to-liar") (param $lie i32) (param $at i32) (param $count i32) (result i32)
      (call $lie (local.get $lie))
      (call $finish (call $start (local.get $at) (local.get $count)) (local.get $count))))
  (component $W
    (type $T (tuple (list string) (option (list u8)) (result string (error u16)) char bool))
    (type $S (stream $T))
    (core func $set-new (canon waitable-set.new))
    (core instance $memory (instantiate $Memory (with "" (instance (export "set-new" (func $set-new))))))
    (alias core export $memory "mem" (core memory $mem))
    (core func $new (canon stream.new $S))
    (core func $write (canon stream.write $S async (memory $mem)))
    (core func $cancel (canon stream.cancel-write $S async))
    (core instance $i (instantiate $Writer (with "" (instance
      (export "mem" (memory $mem))
      (export "new" (func $new))
      (export "write" (func $write))
      (export "cancel" (func $cancel))))))
    (func (export "open") (result (stream $T)) (canon lift (core func $i "open")))
    (func (export "write") (param "v" (list $T)) (result u32) (canon lift (core func $i "write") (memory $mem) (realloc (core func $memory "realloc"))))
    (func (export "start") (param "v" (list $T)) (result (stream $T)) (canon lift (core func $i "start") (memory $mem) (realloc (core func $memory "realloc"))))
    (func (export "cancel") (result u32) (canon lift (core func $i "cancel"))))
  (component $R
    (type $T (tuple (list string) (option (list u8)) (result string (error u16)) char bool))
    (type $S (stream $T))
    (import "w" (instance $w
      (export "open" (func (result (stream $T))))
      (export "write" (func (param "v" (list $T)) (result u32)))
      (export "start" (func (param "v" (list $T)) (result (stream $T))))
      (export "cancel" (func (result u32)))))
    (core func $set-new (canon waitable-set.new))
    (core instance $memory (instantiate $Memory (with "" (instance (export "set-new" (func $set-new))))))
    (alias core export $memory "mem" (core memory $mem))
    (core func $open (canon lower (func $w "open")))
    (core func $write (canon lower (func $w "write") (memory $mem)))
    (core func $start (canon lower (func $w "start") (memory $mem)))
    (core func $cancel (canon lower (func $w "cancel")))
    (core func $read (canon stream.read $S async (memory $mem) (realloc (core func $memory "realloc"))))
    (core func $cancel-read (canon stream.cancel-read $S async))
    (core func $drop (canon stream.drop-readable $S))
    (core instance $i (instantiate $Reader (with "" (instance
      (export "mem" (memory $mem))
      (export "lie" (func $memory "lie"))
      (export "open" (func $open))
      (export "write" (func $write))
      (export "start" (func $start))
      (export "cancel-write" (func $cancel))
      (export "read" (func $read))
      (export "cancel" (func $cancel-read))
      (export "drop" (func $drop))))))
    (func (export "pass") (param "v" (list $T)) (result (list $T))
      (canon lift (core func $i "pass") (memory $mem) (realloc (core func $memory "realloc"))))
    (func (export "pass-late") (param "v" (list $T)) (result (list $T))
      (canon lift (core func $i "pass-late") (memory $mem) (realloc (core func $memory "realloc"))))
    (func (export "pass-each") (param "v" (list $T)) (param "size" u32) (result (list $T))
      (canon lift (core func $i "pass-each") (memory $mem) (realloc (core func $memory "realloc"))))
    (func (export "pass-one") (param "v" (list $T)) (result u32)
      (canon lift (core func $i "pass-one") (memory $mem) (realloc (core func $memory "realloc"))))
    (func (export "pass-none") (param "v" (list $T)) (result u32)
      (canon lift (core func $i "pass-none") (memory $mem) (realloc (core func $memory "realloc"))))
    (func (export "pass-to-liar") (param "lie" u32) (param "v" (list $T)) (result (list $T))
      (canon lift (core func $i "pass-to-liar") (memory $mem) (realloc (core func $memory "realloc")))))
  (instance $w (instantiate $W))
  (instance $r (instantiate $R (with "w" (instance $w))))
  (func (export "pass") (alias export $r "pass"))
  (func (export "pass-late") (alias export $r "pass-late"))
  (func (export "pass-each") (alias export $r "pass-each"))
  (func (export "pass-one") (alias export $r "pass-one"))
  (func (export "pass-none") (alias export $r "pass-none"))
  (func (export "pass-to-liar") (alias export $r "pass-to-liar")))

(component instance $i $values)
(assert_return
  (invoke "pass" (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))
    (tuple.const
      (list.const)
      (option.none)
      (result.err (u16.const 65535))
      (char.const "a")
      (bool.const false))
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))))
  (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))
    (tuple.const
      (list.const)
      (option.none)
      (result.err (u16.const 65535))
      (char.const "a")
      (bool.const false))
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))))
(assert_return
  (invoke "pass-late" (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))
    (tuple.const
      (list.const)
      (option.none)
      (result.err (u16.const 65535))
      (char.const "a")
      (bool.const false))
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))))
  (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))
    (tuple.const
      (list.const)
      (option.none)
      (result.err (u16.const 65535))
      (char.const "a")
      (bool.const false))
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))))
(assert_return
  (invoke "pass-each" (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))
    (tuple.const
      (list.const)
      (option.none)
      (result.err (u16.const 65535))
      (char.const "a")
      (bool.const false))
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))) (u32.const 40))
  (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))
    (tuple.const
      (list.const)
      (option.none)
      (result.err (u16.const 65535))
      (char.const "a")
      (bool.const false))
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))))
;; One of two was read before the rest was cancelled.
(assert_return
  (invoke "pass-one" (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))
    (tuple.const
      (list.const)
      (option.none)
      (result.err (u16.const 65535))
      (char.const "a")
      (bool.const false))))
  (u32.const 0x12))
;; The readable end was dropped.
(assert_return
  (invoke "pass-none" (list.const
    (tuple.const
      (list.const)
      (option.none)
      (result.err (u16.const 65535))
      (char.const "a")
      (bool.const false))))
  (u32.const 1))
;; The reader's realloc does what it must not.
(component instance $i $values)
(assert_trap
  (invoke "pass-to-liar" (u32.const 1)
    (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))))
  "unaligned pointer")
(component instance $i $values)
(assert_trap
  (invoke "pass-to-liar" (u32.const 2)
    (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))))
  "list content out-of-bounds")
(component instance $i $values)
(assert_trap
  (invoke "pass-to-liar" (u32.const 3)
    (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))))
  "cannot leave component instance")
(component instance $i $values)
(assert_trap
  (invoke "pass-to-liar" (u32.const 4)
    (list.const
    (tuple.const
      (list.const (str.const "a") (str.const "") (str.const "größer 🌍"))
      (option.some (list.const (u8.const 1) (u8.const 255)))
      (result.ok (str.const "good"))
      (char.const "🌍")
      (bool.const true))))
  "unreachable")
