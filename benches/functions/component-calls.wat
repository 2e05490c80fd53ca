;; Calls from one component to another, for the measurements: a command that makes {{count}} calls of `{{function}}` of another component, each with what depends
;; on the one before. {{function}} and {{count}} are filled in. Without what is between the lines "async" and "end" nothing in it is asynchronous.
(component
  (component $provider
    (core module $m
      (memory (export "memory") 2)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
      (func (export "add") (param i32 i32) (result i32) (i32.add (i32.mul (local.get 0) (i32.const 3)) (local.get 1)))
      ;; Of a list or string: its first byte and its length.
      (func (export "look") (param i32 i32) (result i32)
        (i32.add (i32.load8_u (local.get 0)) (local.get 1)))
      (func (export "value") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
    (core instance $i (instantiate $m))
    (core module $makes
      (import "" "new" (func $new (param i32) (result i32)))
      (func (export "make") (param i32) (result i32) (call $new (local.get 0))))
    (type $counter' (resource (rep i32)))
    (export $counter "counter" (type $counter'))
    (core func $new (canon resource.new $counter'))
    (core instance $makes (instantiate $makes (with "" (instance (export "new" (func $new))))))
    (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add")))
    (func (export "list") (param "a" (list u8)) (result u32)
      (canon lift (core func $i "look") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
    (func (export "string") (param "a" string) (result u32)
      (canon lift (core func $i "look") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
    (func (export "make") (param "a" u32) (result (own $counter)) (canon lift (core func $makes "make")))
    (func (export "method") (param "self" (borrow $counter)) (param "a" u32) (result u32) (canon lift (core func $i "value"))))
  (component $user
    (import "p" (instance $p
      (export "counter" (type $counter (sub resource)))
      (export "add" (func (param "a" u32) (param "b" u32) (result u32)))
      (export "list" (func (param "a" (list u8)) (result u32)))
      (export "string" (func (param "a" string) (result u32)))
      (export "make" (func (param "a" u32) (result (own $counter))))
      (export "method" (func (param "self" (borrow $counter)) (param "a" u32) (result u32)))))
    (core module $memory (memory (export "memory") 2))
    (core instance $memory (instantiate $memory))
    (core func $add (canon lower (func $p "add")))
    (core func $list (canon lower (func $p "list") (memory (core memory $memory "memory"))))
    (core func $string (canon lower (func $p "string") (memory (core memory $memory "memory"))))
    (core func $make (canon lower (func $p "make")))
    (core func $method (canon lower (func $p "method")))
    ;; async
    (core func $set (canon waitable-set.new))
    (core module $set (import "" "set" (func (result i32))))
    (core instance (instantiate $set (with "" (instance (export "set" (func $set))))))
    ;; end
    (core module $main
      (import "memory" "memory" (memory 2))
      (import "p" "add" (func $add (param i32 i32) (result i32)))
      (import "p" "list" (func $list_of (param i32 i32) (result i32)))
      (import "p" "string" (func $string_of (param i32 i32) (result i32)))
      (import "p" "make" (func $make (param i32) (result i32)))
      (import "p" "method" (func $method_of (param i32 i32) (result i32)))
      (global $counter (mut i32) (i32.const 0))
      (func $nothing (param i32 i32) (result i32) (local.get 0))
      ;; What is passed begins with a byte below 0x80 that depends on the last result.
      (func $list (param i32 i32) (result i32)
        (i32.store8 (i32.const 64) (i32.and (local.get 0) (i32.const 0x3f)))
        (call $list_of (i32.const 64) (i32.const 1024)))
      (func $string (param i32 i32) (result i32)
        (i32.store8 (i32.const 64) (i32.and (local.get 0) (i32.const 0x3f)))
        (call $string_of (i32.const 64) (i32.const 1024)))
      (func $method (param i32 i32) (result i32)
        (call $method_of (global.get $counter) (local.get 0)))
      (func (export "run") (result i32) (local $i i32) (local $last i32)
        (memory.fill (i32.const 64) (i32.const 0x61) (i32.const 1024))
        (global.set $counter (call $make (i32.const 1)))
        (loop $more
          (local.set $last (call ${{function}} (i32.xor (local.get $last) (local.get $i)) (local.get $i)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $more (i32.lt_u (local.get $i) (i32.const {{count}}))))
        ;; Nothing of it can be left out.
        (i32.store (i32.const 0) (local.get $last))
        (i32.const 0)))
    (core instance $main (instantiate $main
      (with "memory" (instance $memory))
      (with "p" (instance
        (export "add" (func $add))
        (export "list" (func $list))
        (export "string" (func $string))
        (export "make" (func $make))
        (export "method" (func $method))))))
    (func (export "run") (result (result)) (canon lift (core func $main "run"))))
  (instance $provider (instantiate $provider))
  (instance $user (instantiate $user (with "p" (instance $provider))))
  (instance $run (export "run" (func $user "run")))
  (export "wasi:cli/run@0.2.3" (instance $run)))
