;; Loads whose value is only needed where two ways join must trap on the ways that leave before.
(module
  (memory (export "memory") 1)
  (global $g (mut i32) (i32.const 0))
  (func $note (global.set $g (i32.add (global.get $g) (i32.const 1))))
  (func (export "joined") (param $p i32) (param $q i32) (param $c i32) (param $d i32) (result i32) (local $x i32)
    (if (local.get $c)
      (then
        (local.set $x (i32.load (local.get $p)))
        (if (i32.eq (local.get $d) (i32.const 1)) (then (call $note) (return (i32.const 7)))))
      (else
        (local.set $x (i32.load (local.get $q)))
        (if (i32.eq (local.get $d) (i32.const 2)) (then (global.set $g (i32.const 0)) (return (i32.const 8))))))
    (global.set $g (i32.xor (global.get $g) (i32.const 5)))
    (local.get $x))
)
(assert_return (invoke "joined" (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 1)) (i32.const 7))
(assert_trap (invoke "joined" (i32.const 65533) (i32.const 0) (i32.const 1) (i32.const 1)) "out of bounds memory access")
(assert_trap (invoke "joined" (i32.const 65533) (i32.const 0) (i32.const 1) (i32.const 0)) "out of bounds memory access")
(assert_trap (invoke "joined" (i32.const 0) (i32.const 65533) (i32.const 0) (i32.const 2)) "out of bounds memory access")
(assert_trap (invoke "joined" (i32.const 0) (i32.const 65533) (i32.const 0) (i32.const 0)) "out of bounds memory access")
(assert_return (invoke "joined" (i32.const 0) (i32.const 65533) (i32.const 1) (i32.const 0)) (i32.const 0))
