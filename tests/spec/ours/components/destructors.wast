;; Destructors of another instance than the one that drops: each runs as a synchronous call of its own.

(component definition $destructors
  ;; A resource whose representation says what its destructor does.
  (component $Owner
    (core module $memory (memory (export "mem") 1))
    (core instance $memory (instantiate $memory))
    (core module $m
      (import "" "return" (func $return (param i32)))
      (import "" "get" (func $get (result i32)))
      (import "" "set" (func $set (param i32)))
      (import "" "set-new" (func $set_new (result i32)))
      (import "" "wait" (func $wait (param i32 i32) (result i32)))
      (import "" "yield" (func $yield (result i32)))
      (global $seen (mut i32) (i32.const -1))
      (func (export "end") (param $what i32)
        (if (i32.eq (local.get $what) (i32.const 1)) (then (call $return (i32.const 666))))
        (if (i32.eq (local.get $what) (i32.const 2))
          (then
            (global.set $seen (call $get))
            (call $set (i32.const 99))))
        (if (i32.eq (local.get $what) (i32.const 3)) (then (drop (call $wait (call $set_new) (i32.const 0)))))
        ;; It may yield, and nothing else runs.
        (if (i32.eq (local.get $what) (i32.const 4)) (then (drop (call $yield)))))
      (func (export "seen") (result i32) (global.get $seen)))
    (core func $return (canon task.return (result u32)))
    (core func $get (canon context.get i32 0))
    (core func $set (canon context.set i32 0))
    (core func $set_new (canon waitable-set.new))
    (core func $wait (canon waitable-set.wait (memory (core memory $memory "mem"))))
    (core func $yield (canon thread.yield))
    (core instance $i (instantiate $m (with "" (instance
      (export "return" (func $return))
      (export "get" (func $get))
      (export "set" (func $set))
      (export "set-new" (func $set_new))
      (export "wait" (func $wait))
      (export "yield" (func $yield))))))
    (type $R (resource (rep i32) (dtor (core func $i "end"))))
    (core func $make (canon resource.new $R))
    (export $R' "R" (type $R))
    (func (export "make") (param "what" u32) (result (own $R')) (canon lift (core func $make)))
    (func (export "seen") (result s32) (canon lift (core func $i "seen"))))

  ;; What drops it in the middle of a task.
  (component $Dropper
    (import "owner" (instance $owner
      (export "R" (type $R (sub resource)))
      (export "make" (func (param "what" u32) (result (own $R))))
      (export "seen" (func (result s32)))))
    (alias export $owner "R" (type $R))
    (core module $m
      (import "" "make" (func $make (param i32) (result i32)))
      (import "" "drop" (func $drop (param i32)))
      (import "" "seen" (func $seen (result i32)))
      (import "" "return" (func $return (param i32)))
      (import "" "get" (func $get (result i32)))
      (import "" "set" (func $set (param i32)))
      (import "" "yield" (func $yield (result i32)))
      (func (export "drops") (param $what i32) (result i32)
        (call $set (i32.const 7))
        (call $drop (call $make (local.get $what)))
        ;; What would return in its place has done so.
        (if (i32.eq (local.get $what) (i32.const 1)) (then (return (i32.const 0))))
        ;; It may wait as before.
        (drop (call $yield))
        (call $return (call $get))
        (i32.const 0))
      (func (export "seen") (result i32)
        (call $set (i32.const 7))
        (call $drop (call $make (i32.const 2)))
        (call $seen))
      (func (export "callback") (param i32 i32 i32) (result i32) unreachable))
    (core func $make (canon lower (func $owner "make")))
    (core func $drop (canon resource.drop $R))
    (core func $seen (canon lower (func $owner "seen")))
    (core func $return (canon task.return (result u32)))
    (core func $get (canon context.get i32 0))
    (core func $set (canon context.set i32 0))
    (core func $yield (canon thread.yield))
    (core instance $i (instantiate $m (with "" (instance
      (export "make" (func $make))
      (export "drop" (func $drop))
      (export "seen" (func $seen))
      (export "return" (func $return))
      (export "get" (func $get))
      (export "set" (func $set))
      (export "yield" (func $yield))))))
    (func (export "drops") async (param "what" u32) (result u32)
      (canon lift (core func $i "drops") async (callback (core func $i "callback"))))
    (func (export "seen") (result s32) (canon lift (core func $i "seen"))))

  (instance $owner (instantiate $Owner))
  (instance $dropper (instantiate $Dropper (with "owner" (instance $owner))))
  (func (export "drops") (alias export $dropper "drops"))
  (func (export "seen") (alias export $dropper "seen")))

;; The slots of the task that drops are neither seen nor changed.
(component instance $i $destructors)
(assert_return (invoke "drops" (u32.const 0)) (u32.const 7))
(assert_return (invoke "drops" (u32.const 2)) (u32.const 7))
(assert_return (invoke "seen") (s32.const 0))
(assert_return (invoke "drops" (u32.const 4)) (u32.const 7))
;; It does not return in the place of that task.
(component instance $i $destructors)
(assert_trap (invoke "drops" (u32.const 1)) "invalid `task.return`")
;; It may not wait as that task may.
(component instance $i $destructors)
(assert_trap (invoke "drops" (u32.const 3)) "cannot block a synchronous task before returning")
