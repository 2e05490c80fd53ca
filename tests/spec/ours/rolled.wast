;; Loops that look as if their producer had unrolled them, and what stands between rolling them up and doing it wrongly: places that do not move, values that
;; change places, results from the middle, accesses of copies that overlap. Each runs on memory filled anew, of which a digest is taken.
;; Reference: V8.

(module
  (memory (export "memory") 1)
  ;; Numbers that follow no order.
  (func (export "fill") (local $i i32) (local $x i32)
    (local.set $x (i32.const 12345))
    (loop
      (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 1103515245)) (i32.const 12345)))
      (i32.store (local.get $i) (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 13))))
      (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 16384)))))
  ;; Of the memory.
  (func (export "digest") (result i32) (local $i i32) (local $h i32)
    (loop
      (local.set $h (i32.add (i32.mul (local.get $h) (i32.const 31)) (i32.load (local.get $i))))
      (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 16384))))
    (local.get $h))

  ;; A place that does not move is loaded once and used by both copies; the first one's store may lie there.
  (func (export "still") (param $i i32) (param $n i32) (param $c i32)  (local $x i32)
    (loop
      (local.set $x (i32.load (local.get $c)))
      (i32.store (local.get $i) (i32.add (local.get $x) (i32.const 1)))
      (i32.store offset=4 (local.get $i) (i32.add (local.get $x) (i32.const 1)))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    )

  ;; The same, loaded for each copy.
  (func (export "still twice") (param $i i32) (param $n i32) (param $c i32)  
    (loop
      (i32.store (local.get $i) (i32.add (i32.load (local.get $c)) (i32.const 1)))
      (i32.store offset=4 (local.get $i) (i32.add (i32.load (local.get $c)) (i32.const 1)))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    )

  ;; Both copies store to one place.
  (func (export "store still") (param $i i32) (param $n i32) (param $c i32)  
    (loop
      (i32.store (local.get $c) (i32.add (i32.load (local.get $i)) (i32.load (local.get $c))))
      (i32.store (local.get $c) (i32.add (i32.load offset=4 (local.get $i)) (i32.load (local.get $c))))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    )

  ;; Two values change places.
  (func (export "rotate") (param $i i32) (param $n i32)  (result i32) (local $p i32) (local $q i32)
    (loop
      (local.set $p (i32.add (i32.mul (local.get $p) (i32.const 3)) (i32.load offset=0 (local.get $i))))
      (local.set $q (i32.add (i32.mul (local.get $q) (i32.const 3)) (i32.load offset=4 (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.xor (local.get $p) (i32.rotl (local.get $q) (i32.const 7))))

  ;; Two values change places, with a third between.
  (func (export "exchange") (param $i i32) (param $n i32)  (result i32) (local $p i32) (local $q i32) (local $t i32)
    (loop
      (local.set $t (i32.add (i32.mul (local.get $p) (i32.const 3)) (i32.load offset=0 (local.get $i))))
      (local.set $p (local.get $q))
      (local.set $q (local.get $t))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.xor (local.get $p) (i32.rotl (local.get $q) (i32.const 7))))

  ;; Half of a step of 8 is 2^31 + 4, too.
  (func (export "half a step") (param $i i32) (param $n i32) (param $v i32)  
    (loop
      (i32.store (local.get $i) (i32.xor (i32.load offset=0 (local.get $i)) (local.get $v)))
      (i32.store offset=4 (local.get $i) (i32.xor (i32.load offset=4 (local.get $i)) (i32.add (local.get $v) (i32.const 0x80000004))))
      (local.set $v (i32.add (local.get $v) (i32.const 8)))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (drop (local.get $v)))

  ;; What the first of two copies loaded last is the result.
  (func (export "of the first") (param $i i32) (param $n i32)  (result i32) (local $x i32) (local $y i32)
    (loop
      (local.set $x (i32.load offset=0 (local.get $i)))
      (i32.store offset=1024 (local.get $i) (local.get $x))
      (local.set $y (i32.load offset=4 (local.get $i)))
      (i32.store offset=1028 (local.get $i) (local.get $y))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $x))

  ;; What the last of two copies loaded last is the result.
  (func (export "of the last") (param $i i32) (param $n i32)  (result i32) (local $x i32) (local $y i32)
    (loop
      (local.set $x (i32.load offset=0 (local.get $i)))
      (i32.store offset=1024 (local.get $i) (local.get $x))
      (local.set $y (i32.load offset=4 (local.get $i)))
      (i32.store offset=1028 (local.get $i) (local.get $y))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $y))

  ;; The result is a sum as it was before the last two copies.
  (func (export "sum before") (param $i i32) (param $n i32)  (result i32) (local $s i32) (local $b i32)
    (loop
      (local.set $b (local.get $s))
      (local.set $s (i32.mul (i32.add (local.get $s) (i32.load offset=0 (local.get $i))) (i32.const 5)))
      (local.set $s (i32.mul (i32.add (local.get $s) (i32.load offset=4 (local.get $i))) (i32.const 5)))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $b))

  ;; The result is a sum between the last two copies.
  (func (export "sum between") (param $i i32) (param $n i32)  (result i32) (local $s i32) (local $b i32)
    (loop
      (local.set $s (i32.mul (i32.add (local.get $s) (i32.load offset=0 (local.get $i))) (i32.const 5)))
      (local.set $b (local.get $s))
      (local.set $s (i32.mul (i32.add (local.get $s) (i32.load offset=4 (local.get $i))) (i32.const 5)))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $b))

  ;; Subtraction the other way round in the second copy.
  (func (export "not commutative") (param $i i32) (param $n i32)   
    (loop
      (i32.store offset=1024 (local.get $i) (i32.sub (i32.load offset=0 (local.get $i)) (i32.load offset=512 (local.get $i))))
      (i32.store offset=1028 (local.get $i) (i32.sub (i32.load offset=516 (local.get $i)) (i32.load offset=4 (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    )

  ;; Operands of a product change places.
  (func (export "commutative") (param $i i32) (param $n i32)   
    (loop
      (i32.store offset=1024 (local.get $i) (i32.mul (i32.add (i32.load offset=0 (local.get $i)) (i32.const 3)) (i32.load offset=512 (local.get $i))))
      (i32.store offset=1028 (local.get $i) (i32.mul (i32.load offset=516 (local.get $i)) (i32.add (i32.load offset=4 (local.get $i)) (i32.const 3))))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    )

  ;; Each copy overwrites half of what the one before it stored.
  (func (export "overlap") (param $i i32) (param $n i32)   (local $x i64)
    (loop
      (local.set $x (i64.mul (i64.extend_i32_u (i32.load offset=2048 (local.get $i))) (i64.const 0x100000001)))
      (i64.store (local.get $i) (i64.add (local.get $x) (i64.load (local.get $i))))
      (i64.store offset=4 (local.get $i) (i64.add (i64.mul (i64.extend_i32_u (i32.load offset=2052 (local.get $i))) (i64.const 0x100000001)) (i64.load offset=4 (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    )

  ;; The second copy's load comes before the first one's store to the same place.
  (func (export "load early") (param $i i32) (param $n i32)   (local $x i32) (local $y i32)
    (loop
      (local.set $x (i32.load offset=0 (local.get $i)))
      (local.set $y (i32.load offset=4 (local.get $i)))
      (i32.store offset=4 (local.get $i) (i32.add (local.get $x) (i32.const 1)))
      (i32.store offset=8 (local.get $i) (i32.add (local.get $y) (i32.const 1)))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    )

  ;; The second copy's store comes before the first one's load of another width of the same place.
  (func (export "store early") (param $i i32) (param $n i32)  (result i64) (local $s i64)
    (loop
      (i32.store8 (local.get $i) (i32.const 77))
      (i32.store8 offset=4 (local.get $i) (i32.const 77))
      (local.set $s (i64.add (i64.mul (local.get $s) (i64.const 3)) (i64.load (local.get $i))))
      (local.set $s (i64.add (i64.mul (local.get $s) (i64.const 3)) (i64.load offset=4 (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $s))

  ;; Two sums that take turns.
  (func (export "turns") (param $i i32) (param $n i32)  (result i32) (local $s i32) (local $t i32) (local $u i32)
    (loop
      (local.set $u (i32.add (local.get $s) (i32.load offset=0 (local.get $i))))
      (local.set $s (i32.sub (local.get $t) (i32.load offset=0 (local.get $i))))
      (local.set $t (local.get $u))
      (local.set $u (i32.add (local.get $s) (i32.load offset=4 (local.get $i))))
      (local.set $s (i32.sub (local.get $t) (i32.load offset=4 (local.get $i))))
      (local.set $t (local.get $u))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.xor (local.get $s) (i32.rotl (local.get $t) (i32.const 9))))

  ;; The second array steps by half of what the copies lie apart in it.
  (func (export "uneven") (param $i i32) (param $n i32) (param $j i32)  
    (loop
      (i32.store offset=1024 (local.get $i) (i32.load (local.get $j)))
      (i32.store offset=1028 (local.get $i) (i32.load offset=8 (local.get $j)))
      (local.set $j (i32.add (local.get $j) (i32.const 8)))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    )

  ;; Downwards.
  (func (export "down") (param $i i32) (param $n i32)   
    (loop
      (i32.store offset=1024 (local.get $i) (i32.add (i32.load offset=0 (local.get $i)) (i32.const 5)))
      (i32.store offset=1020 (local.get $i) (i32.add (i32.load (i32.sub (local.get $i) (i32.const 4))) (i32.const 5)))
      (local.set $i (i32.add (local.get $i) (i32.const -8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    )

  ;; Fractions are added in their order.
  (func (export "fractions") (param $i i32) (param $n i32)  (result f32) (local $s f32)
    (loop
      (local.set $s (f32.add (local.get $s) (f32.convert_i32_s (i32.load offset=0 (local.get $i)))))
      (local.set $s (f32.add (local.get $s) (f32.convert_i32_s (i32.load offset=4 (local.get $i)))))
      (local.set $s (f32.add (local.get $s) (f32.convert_i32_s (i32.load offset=8 (local.get $i)))))
      (local.set $s (f32.add (local.get $s) (f32.convert_i32_s (i32.load offset=12 (local.get $i)))))
      (local.set $i (i32.add (local.get $i) (i32.const 16)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $s))

  ;; A value that doubles in each copy, and is no sum.
  (func (export "power") (param $i i32) (param $n i32)   (local $v i32)
    (loop
      (local.set $v (i32.add (i32.mul (local.get $v) (i32.const 2)) (i32.const 1)))
      (i32.store (local.get $i) (i32.add (i32.load offset=0 (local.get $i)) (local.get $v)))
      (local.set $v (i32.add (i32.mul (local.get $v) (i32.const 2)) (i32.const 1)))
      (i32.store offset=4 (local.get $i) (i32.add (i32.load offset=4 (local.get $i)) (local.get $v)))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    )
)

(invoke "fill")
(assert_return (invoke "still" (i32.const 16) (i32.const 256) (i32.const 1032)))
(assert_return (invoke "digest") (i32.const 805595577))
(invoke "fill")
(assert_return (invoke "still" (i32.const 16) (i32.const 256) (i32.const 16)))
(assert_return (invoke "digest") (i32.const -1246477927))
(invoke "fill")
(assert_return (invoke "still" (i32.const 16) (i32.const 256) (i32.const 2060)))
(assert_return (invoke "digest") (i32.const 383171001))
(invoke "fill")
(assert_return (invoke "still" (i32.const 16) (i32.const 256) (i32.const 4096)))
(assert_return (invoke "digest") (i32.const -1613203015))
(invoke "fill")
(assert_return (invoke "still twice" (i32.const 16) (i32.const 256) (i32.const 1032)))
(assert_return (invoke "digest") (i32.const 1521398330))
(invoke "fill")
(assert_return (invoke "still twice" (i32.const 16) (i32.const 256) (i32.const 1036)))
(assert_return (invoke "digest") (i32.const 844466617))
(invoke "fill")
(assert_return (invoke "still twice" (i32.const 16) (i32.const 256) (i32.const 4096)))
(assert_return (invoke "digest") (i32.const -1613203015))
(invoke "fill")
(assert_return (invoke "store still" (i32.const 16) (i32.const 256) (i32.const 1032)))
(assert_return (invoke "digest") (i32.const 954124164))
(invoke "fill")
(assert_return (invoke "store still" (i32.const 16) (i32.const 256) (i32.const 1036)))
(assert_return (invoke "digest") (i32.const 1114064819))
(invoke "fill")
(assert_return (invoke "store still" (i32.const 16) (i32.const 256) (i32.const 4096)))
(assert_return (invoke "digest") (i32.const 1791752233))
(invoke "fill")
(assert_return (invoke "rotate" (i32.const 16) (i32.const 256)) (i32.const 2025083216))
(assert_return (invoke "digest") (i32.const 1353934068))
(invoke "fill")
(assert_return (invoke "exchange" (i32.const 16) (i32.const 512)) (i32.const 2025083216))
(assert_return (invoke "digest") (i32.const 1353934068))
(invoke "fill")
(assert_return (invoke "half a step" (i32.const 16) (i32.const 256) (i32.const 5)))
(assert_return (invoke "digest") (i32.const 240440266))
(invoke "fill")
(assert_return (invoke "half a step" (i32.const 16) (i32.const 256) (i32.const -100)))
(assert_return (invoke "digest") (i32.const 434279108))
(invoke "fill")
(assert_return (invoke "of the first" (i32.const 16) (i32.const 128)) (i32.const -1189496881))
(assert_return (invoke "digest") (i32.const 1813930225))
(invoke "fill")
(assert_return (invoke "of the last" (i32.const 16) (i32.const 128)) (i32.const 132743864))
(assert_return (invoke "digest") (i32.const 1813930225))
(invoke "fill")
(assert_return (invoke "of the first" (i32.const 16) (i32.const 256)) (i32.const -1189496881))
(assert_return (invoke "digest") (i32.const 1924677463))
(invoke "fill")
(assert_return (invoke "of the last" (i32.const 16) (i32.const 256)) (i32.const 132743864))
(assert_return (invoke "digest") (i32.const 1924677463))
(invoke "fill")
(assert_return (invoke "sum before" (i32.const 16) (i32.const 256)) (i32.const 10603218))
(assert_return (invoke "digest") (i32.const 1353934068))
(invoke "fill")
(assert_return (invoke "sum between" (i32.const 16) (i32.const 256)) (i32.const -1606186695))
(assert_return (invoke "digest") (i32.const 1353934068))
(invoke "fill")
(assert_return (invoke "sum before" (i32.const 16) (i32.const 1)) (i32.const 0))
(assert_return (invoke "digest") (i32.const 1353934068))
(invoke "fill")
(assert_return (invoke "sum between" (i32.const 16) (i32.const 1)) (i32.const -897761734))
(assert_return (invoke "digest") (i32.const 1353934068))
(invoke "fill")
(assert_return (invoke "not commutative" (i32.const 16) (i32.const 256)))
(assert_return (invoke "digest") (i32.const 1866348739))
(invoke "fill")
(assert_return (invoke "commutative" (i32.const 16) (i32.const 256)))
(assert_return (invoke "digest") (i32.const 1248370916))
(invoke "fill")
(assert_return (invoke "overlap" (i32.const 16) (i32.const 256)))
(assert_return (invoke "digest") (i32.const -1202223413))
(invoke "fill")
(assert_return (invoke "load early" (i32.const 16) (i32.const 256)))
(assert_return (invoke "digest") (i32.const 1102140286))
(invoke "fill")
(assert_return (invoke "store early" (i32.const 16) (i32.const 256)) (i64.const -6485992540719424256))
(assert_return (invoke "digest") (i32.const 2142044857))
(invoke "fill")
(assert_return (invoke "turns" (i32.const 16) (i32.const 256)) (i32.const -621903337))
(assert_return (invoke "digest") (i32.const 1353934068))
(invoke "fill")
(assert_return (invoke "uneven" (i32.const 16) (i32.const 256) (i32.const 16)))
(assert_return (invoke "digest") (i32.const 1855195679))
(invoke "fill")
(assert_return (invoke "uneven" (i32.const 16) (i32.const 256) (i32.const 1000)))
(assert_return (invoke "digest") (i32.const -605416333))
(invoke "fill")
(assert_return (invoke "down" (i32.const 2064) (i32.const 256)))
(assert_return (invoke "digest") (i32.const -687133446))
(invoke "fill")
(assert_return (invoke "fractions" (i32.const 16) (i32.const 128)) (f32.const 8558630912))
(assert_return (invoke "digest") (i32.const 1353934068))
(invoke "fill")
(assert_return (invoke "power" (i32.const 16) (i32.const 256)))
(assert_return (invoke "digest") (i32.const -1037595042))
