;; What a component writes to a stream that is no value, and what is not clean.

(component definition $hostile
  (component $W
    (type $T (tuple string (option (list u32)) char bool))
    (type $S (stream $T))
    (core module $Memory
      (memory (export "mem") 1)
      (data (i32.const 512) "ab\ff\00\01\00\00\00\02\00\00\00"))
    (core instance $memory (instantiate $Memory))
    (core module $Core
      (import "" "mem" (memory 1))
      (import "" "new" (func $new (result i64)))
      (import "" "write" (func $write (param i32 i32 i32) (result i32)))
      (func (export "start")
        (param $text i32) (param $bytes i32) (param $case i32) (param $list i32) (param $count i32) (param $char i32) (param $bool i32)
        (result i32)
        (local $ends i64)
        (i32.store (i32.const 64) (local.get $text))
        (i32.store (i32.const 68) (local.get $bytes))
        (i32.store8 (i32.const 72) (local.get $case))
        (i32.store (i32.const 76) (local.get $list))
        (i32.store (i32.const 80) (local.get $count))
        (i32.store (i32.const 84) (local.get $char))
        (i32.store8 (i32.const 88) (local.get $bool))
        (local.set $ends (call $new))
        (if (i32.ne
              (call $write (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))) (i32.const 64) (i32.const 1))
              (i32.const -1))
          (then unreachable))
        (i32.wrap_i64 (local.get $ends))))
    (core func $new (canon stream.new $S))
    (core func $write (canon stream.write $S async (memory (core memory $memory "mem"))))
    (core instance $i (instantiate $Core (with "" (instance
      (export "mem" (memory $memory "mem"))
      (export "new" (func $new))
      (export "write" (func $write))))))
    (func (export "start")
      (param "text" u32) (param "bytes" u32) (param "case" u32) (param "list" u32) (param "count" u32) (param "char" u32)
      (param "bool" u32)
      (result (stream $T))
      (canon lift (core func $i "start"))))
  (component $R
    (type $T (tuple string (option (list u32)) char bool))
    (type $S (stream $T))
    (import "w" (instance $w
      (export "start" (func
        (param "text" u32) (param "bytes" u32) (param "case" u32) (param "list" u32) (param "count" u32) (param "char" u32)
        (param "bool" u32)
        (result (stream $T))))))
    (core module $Memory
      (memory (export "mem") 1)
      (global $next (mut i32) (i32.const 1024))
      (func (export "realloc") (param i32 i32 i32 i32) (result i32)
        (global.get $next)
        (global.set $next (i32.add (global.get $next) (i32.const 64)))))
    (core instance $memory (instantiate $Memory))
    (core module $Core
      (import "" "mem" (memory 1))
      (import "" "start" (func $start (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
      (import "" "read" (func $read (param i32 i32 i32) (result i32)))
      ;; What comes as a `bool` is 0 or 1, and nothing is written behind it.
      (func (export "read") (param i32 i32 i32 i32 i32 i32 i32) (result i32)
        (i32.store (i32.const 88) (i32.const 0x55555555))
        (if (i32.ne
              (call $read
                (call $start
                  (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (local.get 6))
                (i32.const 64)
                (i32.const 1))
              (i32.const 0x10))
          (then unreachable))
        (i32.load (i32.const 88))))
    (core func $start (canon lower (func $w "start")))
    (core func $read
      (canon stream.read $S async (memory (core memory $memory "mem")) (realloc (core func $memory "realloc"))))
    (core instance $i (instantiate $Core (with "" (instance
      (export "mem" (memory $memory "mem"))
      (export "start" (func $start))
      (export "read" (func $read))))))
    (func (export "read")
      (param "text" u32) (param "bytes" u32) (param "case" u32) (param "list" u32) (param "count" u32) (param "char" u32)
      (param "bool" u32)
      (result u32)
      (canon lift (core func $i "read"))))
  (instance $w (instantiate $W))
  (instance $r (instantiate $R (with "w" (instance $w))))
  (func (export "read") (alias export $r "read")))

(component instance $i $hostile)
(assert_return
  (invoke "read" (u32.const 512) (u32.const 2) (u32.const 1) (u32.const 516) (u32.const 2) (u32.const 97) (u32.const 7))
  (u32.const 0x55555501))
;; The payload of a case that holds none does not matter.
(assert_return
  (invoke "read" (u32.const 512) (u32.const 0) (u32.const 0) (u32.const 3) (u32.const 0xffffffff) (u32.const 0x10ffff) (u32.const 0))
  (u32.const 0x55555500))
(component instance $i $hostile)
(assert_trap
  (invoke "read" (u32.const 512) (u32.const 3) (u32.const 0) (u32.const 0) (u32.const 0) (u32.const 97) (u32.const 0))
  "invalid utf-8")
(component instance $i $hostile)
(assert_trap
  (invoke "read" (u32.const 0xffff) (u32.const 2) (u32.const 0) (u32.const 0) (u32.const 0) (u32.const 97) (u32.const 0))
  "string content out-of-bounds")
(component instance $i $hostile)
(assert_trap
  (invoke "read" (u32.const 512) (u32.const 0) (u32.const 2) (u32.const 0) (u32.const 0) (u32.const 97) (u32.const 0))
  "invalid variant discriminant")
(component instance $i $hostile)
(assert_trap
  (invoke "read" (u32.const 512) (u32.const 0) (u32.const 1) (u32.const 0xfffc) (u32.const 2) (u32.const 97) (u32.const 0))
  "list content out-of-bounds")
(component instance $i $hostile)
(assert_trap
  (invoke "read" (u32.const 512) (u32.const 0) (u32.const 1) (u32.const 516) (u32.const 0x40000001) (u32.const 97) (u32.const 0))
  "list content out-of-bounds")
(component instance $i $hostile)
(assert_trap
  (invoke "read" (u32.const 512) (u32.const 0) (u32.const 1) (u32.const 513) (u32.const 1) (u32.const 97) (u32.const 0))
  "unaligned pointer")
(component instance $i $hostile)
(assert_trap
  (invoke "read" (u32.const 512) (u32.const 0) (u32.const 0) (u32.const 0) (u32.const 0) (u32.const 0xd800) (u32.const 0))
  "invalid `char` bit pattern")
(component instance $i $hostile)
(assert_trap
  (invoke "read" (u32.const 512) (u32.const 0) (u32.const 0) (u32.const 0) (u32.const 0) (u32.const 0x110000) (u32.const 0))
  "invalid `char` bit pattern")
