;; Traps in the way that the first byte of its input asks for; replies "ok" to anything else. What it writes before a trap is not sent.
(module $traps
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "ok")
  (table $table 2 funcref)
  (elem (table $table) (i32.const 0) func $ok)
  (func $ok
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const 2))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $recurse (param i32) (result i32)
    (i32.add (i32.const 1) (call $recurse (i32.add (local.get 0) (i32.const 1)))))
  (func $innermost (unreachable))
  (func $middle (call $innermost) (call $ok))
  (func $outer (call $middle) (call $ok))
  (func (export "_start") (local $what i32)
    (call $ok)
    (i32.store (i32.const 0) (i32.const 32))
    (i32.store (i32.const 4) (i32.const 1))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $what (i32.load8_u (i32.const 32)))
    (if (i32.eq (local.get $what) (i32.const 0x75)) (then (call $outer)))                                                ;; u
    (if (i32.eq (local.get $what) (i32.const 0x6d)) (then (drop (i32.load (i32.const 65533)))))                          ;; m
    (if (i32.eq (local.get $what) (i32.const 0x64)) (then (drop (i32.div_u (i32.const 1) (i32.load (i32.const 128))))))  ;; d
    (if (i32.eq (local.get $what) (i32.const 0x6f)) (then (drop (i32.trunc_f64_s (f64.const 1e10)))))                    ;; o
    (if (i32.eq (local.get $what) (i32.const 0x63)) (then (drop (i32.trunc_f64_s (f64.const nan)))))                     ;; c
    (if (i32.eq (local.get $what) (i32.const 0x65)) (then (call_indirect (i32.const 2))))                                ;; e
    (if (i32.eq (local.get $what) (i32.const 0x6e)) (then (call_indirect (i32.const 1))))                                ;; n
    (if (i32.eq (local.get $what) (i32.const 0x73)) (then (drop (call_indirect (result i32) (i32.const 0)))))            ;; s
    (if (i32.eq (local.get $what) (i32.const 0x74)) (then (drop (table.get (i32.const 2)))))                             ;; t
    (if (i32.eq (local.get $what) (i32.const 0x72)) (then (drop (call $recurse (i32.const 0)))))))                       ;; r
