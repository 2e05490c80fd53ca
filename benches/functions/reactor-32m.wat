;; A reactor that has initialised 32 MiB: requests read a word of each MiB, and write one of each fourth.
(module
  (memory (export "memory") 528)
  (func (export "_initialize") (local $at i32)
    (local.set $at (i32.const 65536))
    (loop $more
      (i32.store (local.get $at) (local.get $at))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $more (i32.lt_u (local.get $at) (i32.const 33619968)))))
  (func (export "sledge_handle") (result i32) (local $at i32) (local $sum i32)
    (local.set $at (i32.const 65536))
    (loop $more
      (local.set $sum (i32.add (local.get $sum) (i32.sub (i32.load (local.get $at)) (local.get $at))))
      (if (i32.eqz (i32.and (local.get $at) (i32.const 0x300000)))
        (then (i32.store (i32.add (local.get $at) (i32.const 512)) (i32.const 7))))
      (local.set $at (i32.add (local.get $at) (i32.const 0x100000)))
      (br_if $more (i32.lt_u (local.get $at) (i32.const 33619968))))
    (local.get $sum)))
