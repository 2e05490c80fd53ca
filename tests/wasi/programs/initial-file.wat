;; A reactor that reads the file `kept` of its first folder when it is initialised, and answers with what it read. `init` closes the file, `leave`
;; leaves it open, `write` makes a new one.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "kept")
  ;; The buffer: 100 bytes at 200.
  (data (i32.const 16) "\c8\00\00\00\64\00\00\00")
  (func $open (param $oflags i32)
    (if (call $path_open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 4) (local.get $oflags)
          (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 8))
      (then (unreachable))))
  (func $read (export "leave")
    (call $open (i32.const 0))
    (if (call $fd_read (i32.load (i32.const 8)) (i32.const 16) (i32.const 1) (i32.const 20)) (then (unreachable))))
  (func (export "init")
    (call $read)
    (if (call $fd_close (i32.load (i32.const 8))) (then (unreachable))))
  (func (export "write") (call $open (i32.const 1)))
  (func (export "sledge_handle") (result i32)
    (call $fd_write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 8))))
