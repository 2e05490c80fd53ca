;; Exceptions in the form that the proposal had before it was finished, with `--legacy-exceptions`.
(module
  (tag $e (param i32))
  (tag $f (param i64 f64))
  (func $throw (param i32) (throw $e (local.get 0)))
  (func $throw_f (throw $f (i64.const 5) (f64.const 2)))
  (func (export "catch") (param i32) (result i32)
    try (result i32)
      (if (i32.eq (local.get 0) (i32.const 1)) (then (call $throw (i32.const 11))))
      (if (i32.eq (local.get 0) (i32.const 2)) (then (call $throw_f)))
      (if (i32.eq (local.get 0) (i32.const 3)) (then (throw $e (i32.const 13))))
      (i32.const 10)
    catch $e
    catch $f
      i32.trunc_f64_s
      (i32.add (i32.const 15))
      (local.set 0)
      i32.wrap_i64
      (i32.add (local.get 0))
    end)
  (func (export "all") (param i32) (result i32)
    try (result i32)
      (call $throw (i32.const 1))
      (i32.const 0)
    catch $f
      (drop) (drop) (i32.const 1)
    catch_all
      (i32.const 2)
    end)
  (func (export "pass") (result i32)
    try (result i32)
      try (result i32)
        (call $throw (i32.const 4))
        (i32.const 0)
      catch $f
        (drop) (drop) (i32.const 1)
      end
    catch $e
    end)
  (func (export "no handler") (result i32)
    try (result i32)
      try (result i32)
        (call $throw (i32.const 5))
        (i32.const 0)
      end
    catch $e
    end)
  (func (export "rethrow") (result i32)
    try (result i32)
      try (result i32)
        (call $throw (i32.const 6))
        (i32.const 0)
      catch_all
        try
          (call $throw (i32.const 7))
        catch $e
          (drop)
          rethrow 1
        end
        (i32.const 1)
      end
    catch $e
    end)
  (func (export "delegate") (result i32)
    try $outer (result i32)
      try (result i32)
        try (result i32)
          (call $throw (i32.const 8))
          (i32.const 0)
        delegate $outer
      catch_all
        (i32.const -1)
      end
    catch $e
    end)
  (func (export "delegate out")
    try
      try
        (call $throw (i32.const 8))
      delegate 1
    catch_all
    end)
  (func (export "delegate past catch_all") (result i32)
    (block $all
      (block $inner
        (try_table (catch_all $inner)
          try
            (call $throw (i32.const 8))
          delegate 3)
        (return (i32.const 0)))
      (return (i32.const 1)))
    (i32.const 2))
  (func (export "in handler") (result i32)
    try (result i32)
      try (result i32)
        (call $throw (i32.const 1))
        (i32.const 0)
      catch $e
        (call $throw)
        (i32.const 2)
      end
    catch $e
      (i32.add (i32.const 20))
    end)
  (func (export "unreachable") (param i32) (result i32)
    try (result i32)
      (br_if 0 (i32.const 1) (local.get 0))
      (drop)
      (unreachable)
    catch $e
    end)
  (func (export "dead") (result i32)
    (return (i32.const 3))
    try
      try
      delegate 0
    catch $e
      (drop)
    catch_all
    end
    (i32.const 4))
  (func (export "loop") (param i32) (result i32)
    (local $count i32)
    loop $again
      try
        (call $throw (i32.const 3))
      catch $e
        (local.set $count (i32.add (local.get $count)))
        (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))
      end
    end
    (local.get $count))
  (func (export "both") (result i32)
    (block $h (result i32)
      (try_table (result i32) (catch $e $h)
        try (result i32)
          (call $throw (i32.const 1))
          (i32.const 0)
        catch $e
          (drop)
          (throw $e (i32.const 9))
        end))))
(assert_return (invoke "catch" (i32.const 0)) (i32.const 10))
(assert_return (invoke "catch" (i32.const 1)) (i32.const 11))
(assert_return (invoke "catch" (i32.const 2)) (i32.const 22))
(assert_return (invoke "catch" (i32.const 3)) (i32.const 13))
(assert_return (invoke "all" (i32.const 0)) (i32.const 2))
(assert_return (invoke "pass") (i32.const 4))
(assert_return (invoke "no handler") (i32.const 5))
(assert_return (invoke "rethrow") (i32.const 6))
(assert_return (invoke "delegate") (i32.const 8))
(assert_exception (invoke "delegate out"))
(assert_exception (invoke "delegate past catch_all"))
(assert_return (invoke "in handler") (i32.const 21))
(assert_return (invoke "unreachable" (i32.const 1)) (i32.const 1))
(assert_trap (invoke "unreachable" (i32.const 0)) "unreachable")
(assert_return (invoke "dead") (i32.const 3))
(assert_return (invoke "loop" (i32.const 1000)) (i32.const 3000))
(assert_return (invoke "both") (i32.const 9))
