;; A reactor that counts in its memory. For each byte of the request: `+` counts, `s` waits for 50 ms, `o` opens the file `f` of its folder and leaves it open,
;; `e` replies and ends by an exit with status 0, `x` traps. The reply is what it has counted, one digit.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  ;; 0: vector, 8: bytes read, 12: what else calls say, 16: counted, 24: path, 32: subscription, 80: event, 128: request, 192: digit
  (data (i32.const 24) "f")
  (func $reply
    (i32.store8 (i32.const 192) (i32.add (i32.const 48) (i32.load (i32.const 16))))
    (i32.store (i32.const 0) (i32.const 192))
    (i32.store (i32.const 4) (i32.const 1))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12))))
  (func $do (param $what i32)
    (if (i32.eq (local.get $what) (i32.const 43)) ;; +
      (then (i32.store (i32.const 16) (i32.add (i32.load (i32.const 16)) (i32.const 1)))))
    (if (i32.eq (local.get $what) (i32.const 115)) ;; s
      (then
        (i32.store (i32.const 48) (i32.const 1)) ;; the monotonic clock
        (i64.store (i32.const 56) (i64.const 50000000))
        (drop (call $poll (i32.const 32) (i32.const 80) (i32.const 1) (i32.const 12)))))
    (if (i32.eq (local.get $what) (i32.const 111)) ;; o
      (then
        (if (call $open (i32.const 3) (i32.const 0) (i32.const 24) (i32.const 1) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 12))
          (then unreachable))))
    (if (i32.eq (local.get $what) (i32.const 101)) ;; e
      (then (call $reply) (call $exit (i32.const 0))))
    (if (i32.eq (local.get $what) (i32.const 120)) ;; x
      (then unreachable)))
  (func (export "sledge_handle") (result i32)
    (local $at i32)
    (i32.store (i32.const 0) (i32.const 128))
    (i32.store (i32.const 4) (i32.const 64))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $at (i32.const 128))
    (block $over
      (loop $next
        (br_if $over (i32.ge_u (local.get $at) (i32.add (i32.const 128) (i32.load (i32.const 8)))))
        (call $do (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (call $reply)
    (i32.const 0)))
