;; Loops whose accesses leave the memory, or nearly: a check before the loop may prove all of its accesses inside, but where it does not, the loop
;; traps in the right iteration, after the effects of those before it.

(module
  (memory (export "memory") 1 3)
  (global $rounds (export "rounds") (mut i32) (i32.const 0))

  ;; Stores `value` to `count` bytes from `at` on, `step` bytes apart, at offset 16.
  (func (export "fill") (param $at i32) (param $count i32) (param $step i32) (param $value i32)
    (global.set $rounds (i32.const 0))
    (loop $again
      (i32.store8 offset=16 (local.get $at) (local.get $value))
      (global.set $rounds (i32.add (global.get $rounds) (i32.const 1)))
      (local.set $at (i32.add (local.get $at) (local.get $step)))
      (br_if $again (local.tee $count (i32.sub (local.get $count) (i32.const 1))))))

  ;; The same with a known step, up and down.
  (func (export "up") (param $at i32) (param $count i32)
    (global.set $rounds (i32.const 0))
    (loop $again
      (i64.store (local.get $at) (i64.const -1))
      (global.set $rounds (i32.add (global.get $rounds) (i32.const 1)))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $again (local.tee $count (i32.sub (local.get $count) (i32.const 1))))))
  (func (export "down") (param $at i32) (param $count i32)
    (global.set $rounds (i32.const 0))
    (loop $again
      (i64.store (local.get $at) (i64.const -1))
      (global.set $rounds (i32.add (global.get $rounds) (i32.const 1)))
      (local.set $at (i32.sub (local.get $at) (i32.const 8)))
      (br_if $again (local.tee $count (i32.sub (local.get $count) (i32.const 1))))))

  ;; Neighbours, of which the middle one is first.
  (func (export "sum") (param $at i32) (param $end i32) (result f64) (local $sum f64)
    (loop $again
      (local.set $sum (f64.add (local.get $sum) (f64.load offset=8 (local.get $at))))
      (local.set $sum (f64.add (local.get $sum) (f64.load (i32.sub (local.get $at) (i32.const 8)))))
      (local.set $sum (f64.add (local.get $sum) (f64.load (i32.add (local.get $at) (i32.const 16)))))
      (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (local.get $end))))
    (local.get $sum))

  ;; Left at the first zero byte, perhaps long before the bound.
  (func (export "length") (param $at i32) (param $max i32) (result i32) (local $i i32)
    (block $done
      (loop $again
        (br_if $done (i32.eqz (i32.load8_u (i32.add (local.get $at) (local.get $i)))))
        (br_if $again (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $max)))))
    (local.get $i))

  ;; Grows on its way.
  (func (export "growing") (param $at i32) (param $count i32) (result i32) (local $i i32)
    (loop $again
      (if (i32.eq (local.get $i) (i32.const 4)) (then (drop (memory.grow (i32.const 1)))))
      (i32.store (i32.add (local.get $at) (i32.shl (local.get $i) (i32.const 2))) (local.get $i))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $count))))
    (local.get $i))

  ;; Every second access is not made.
  (func (export "even") (param $at i32) (param $count i32) (result i32) (local $i i32) (local $sum i32)
    (loop $again
      (if (i32.eqz (i32.and (local.get $i) (i32.const 1)))
        (then (local.set $sum (i32.add (local.get $sum)
          (i32.load8_u (i32.add (local.get $at) (local.get $i)))))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $count))))
    (local.get $sum))

  (func (export "byte") (param i32) (result i32) (i32.load8_u (local.get 0)))
  (func (export "clear") (memory.fill (i32.const 0) (i32.const 0) (i32.shl (memory.size) (i32.const 16))))
)

(assert_return (invoke "fill" (i32.const 65510) (i32.const 10) (i32.const 1) (i32.const 7)))
(assert_return (get "rounds") (i32.const 10))
(assert_return (invoke "byte" (i32.const 65535)) (i32.const 7))
(assert_return (invoke "clear"))
(assert_trap (invoke "fill" (i32.const 65510) (i32.const 11) (i32.const 1) (i32.const 7)) "out of bounds memory access")
(assert_trap (invoke "fill" (i32.const 65536) (i32.const 1) (i32.const 1) (i32.const 7)) "out of bounds memory access")
;; Wraps: the offset does not.
(assert_trap (invoke "fill" (i32.const -1) (i32.const 2) (i32.const 1) (i32.const 7)) "out of bounds memory access")
;; Wraps between iterations, from the end of the address space to its beginning: only the first is outside.
(assert_trap (invoke "fill" (i32.const 0) (i32.const 3) (i32.const -1) (i32.const 9)) "out of bounds memory access")
;; Steps that bring it around: 0, 0x80000000 (outside).
(assert_trap (invoke "fill" (i32.const 0) (i32.const 3) (i32.const 0x80000000) (i32.const 9)) "out of bounds memory access")
(assert_return (invoke "fill" (i32.const 100) (i32.const 5) (i32.const 0) (i32.const 9)))
(assert_return (get "rounds") (i32.const 5))

(assert_return (invoke "up" (i32.const 0) (i32.const 8192)))
(assert_return (get "rounds") (i32.const 8192))
(assert_trap (invoke "up" (i32.const 0) (i32.const 8193)) "out of bounds memory access")
(assert_trap (invoke "up" (i32.const 1) (i32.const 8192)) "out of bounds memory access")
;; A count of zero is 2^32 iterations.
(assert_trap (invoke "up" (i32.const 0) (i32.const 0)) "out of bounds memory access")
(assert_trap (invoke "up" (i32.const -8) (i32.const 2)) "out of bounds memory access")

(assert_return (invoke "down" (i32.const 65528) (i32.const 8192)))
(assert_return (get "rounds") (i32.const 8192))
(assert_trap (invoke "down" (i32.const 65528) (i32.const 8193)) "out of bounds memory access")
(assert_trap (invoke "down" (i32.const 65529) (i32.const 1)) "out of bounds memory access")

(assert_return (invoke "clear"))
(assert_return (invoke "sum" (i32.const 8) (i32.const 65520)) (f64.const 0))
(assert_trap (invoke "sum" (i32.const 8) (i32.const 65521)) "out of bounds memory access")
(assert_trap (invoke "sum" (i32.const 7) (i32.const 64)) "out of bounds memory access")
(assert_trap (invoke "sum" (i32.const 0) (i32.const 64)) "out of bounds memory access")

;; Leaves before it could trap.
(assert_return (invoke "length" (i32.const 65530) (i32.const 1000000)) (i32.const 0))
(assert_return (invoke "fill" (i32.const 65504) (i32.const 15) (i32.const 1) (i32.const 1)))
(assert_return (invoke "length" (i32.const 65520) (i32.const 1000000)) (i32.const 15))
(assert_return (invoke "length" (i32.const 65520) (i32.const 3)) (i32.const 3))
(assert_return (invoke "fill" (i32.const 65519) (i32.const 1) (i32.const 1) (i32.const 1)))
(assert_return (invoke "length" (i32.const 65520) (i32.const 16)) (i32.const 16))
(assert_trap (invoke "length" (i32.const 65520) (i32.const 17)) "out of bounds memory access")

(assert_return (invoke "even" (i32.const 65530) (i32.const 6)) (i32.const 3))
(assert_trap (invoke "even" (i32.const 65530) (i32.const 7)) "out of bounds memory access")
(assert_return (invoke "even" (i32.const 65531) (i32.const 6)) (i32.const 3))

(assert_return (invoke "growing" (i32.const 65520) (i32.const 8)) (i32.const 8))
(assert_trap (invoke "growing" (i32.const 131060) (i32.const 4)) "out of bounds memory access")
(assert_return (invoke "growing" (i32.const 131056) (i32.const 16388)) (i32.const 16388))
(assert_trap (invoke "growing" (i32.const 196592) (i32.const 5)) "out of bounds memory access")

;; 32-bit indices of a memory of which 64-bit ones are the addresses: they wrap at 4 GiB, wherever the memory ends.
(module
  (memory i64 1)
  (func (export "bytes") (param $at i32) (param $count i32) (result i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (i32.load8_u (i64.extend_i32_u (local.get $at)))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $again (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
    (local.get $sum))
  (func (export "wide") (param $at i64) (param $count i64) (result i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (i32.load8_u offset=4 (local.get $at))))
      (local.set $at (i64.add (local.get $at) (i64.const 1)))
      (br_if $again (i64.ne (local.tee $count (i64.sub (local.get $count) (i64.const 1))) (i64.const 0))))
    (local.get $sum)))
(assert_return (invoke "bytes" (i32.const 65526) (i32.const 10)) (i32.const 0))
(assert_trap (invoke "bytes" (i32.const 65526) (i32.const 11)) "out of bounds memory access")
(assert_trap (invoke "bytes" (i32.const -1) (i32.const 2)) "out of bounds memory access")
(assert_return (invoke "wide" (i64.const 65522) (i64.const 10)) (i32.const 0))
(assert_trap (invoke "wide" (i64.const 65522) (i64.const 11)) "out of bounds memory access")
(assert_trap (invoke "wide" (i64.const -1) (i64.const 1)) "out of bounds memory access")
(assert_trap (invoke "wide" (i64.const -4) (i64.const 10)) "out of bounds memory access")
(assert_trap (invoke "wide" (i64.const 0) (i64.const 0)) "out of bounds memory access")
