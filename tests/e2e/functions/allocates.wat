;; A command of WASI 0.3 that gets its arguments. Memory for them comes from a function that looks at the context and changes it. The command succeeds if that function found
;; nothing there each time, and the command finds what it has put there.
(component
  (import "wasi:cli/environment@0.3.0" (instance $environment
    (export "get-arguments" (func (result (list string))))))
  (core module $allocator
    (import "" "get" (func $get (result i32)))
    (import "" "set" (func $set (param i32)))
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 1024))
    (global $calls (export "calls") (mut i32) (i32.const 0))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (if (call $get) (then unreachable))
      (call $set (i32.const 99))
      (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
      (global.get $free)
      (global.set $free (i32.add (global.get $free) (i32.and (i32.add (local.get 3) (i32.const 7)) (i32.const -8))))))
  (core module $main
    (import "" "get-arguments" (func $get_arguments (param i32)))
    (import "" "get" (func $get (result i32)))
    (import "" "set" (func $set (param i32)))
    (import "" "return" (func $return (param i32)))
    (import "" "calls" (global $calls (mut i32)))
    (func (export "run") (result i32)
      (call $set (i32.const 7))
      (call $get_arguments (i32.const 0))
      ;; The list, and more than one string.
      (if (i32.lt_u (global.get $calls) (i32.const 3)) (then unreachable))
      (call $return (i32.ne (call $get) (i32.const 7)))
      (i32.const 0))
    (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
  (core func $get (canon context.get i32 0))
  (core func $set (canon context.set i32 0))
  (core instance $allocator (instantiate $allocator (with "" (instance
    (export "get" (func $get))
    (export "set" (func $set))))))
  (core func $get_arguments
    (canon lower (func $environment "get-arguments")
      (memory (core memory $allocator "memory"))
      (realloc (core func $allocator "realloc"))))
  (core func $return (canon task.return (result (result))))
  (alias core export $allocator "calls" (core global $calls))
  (core instance $i (instantiate $main (with "" (instance
    (export "get-arguments" (func $get_arguments))
    (export "get" (func $get))
    (export "set" (func $set))
    (export "return" (func $return))
    (export "calls" (global $calls))))))
  (func $run async (result (result)) (canon lift (core func $i "run") async (callback (core func $i "callback"))))
  (instance $command (export "run" (func $run)))
  (export "wasi:cli/run@0.3.0" (instance $command)))
