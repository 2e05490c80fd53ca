;; Streams and futures of which the host has one end. It knows them by the address of what both ends share. Reading and writing them is an operation
;; (see `operations.wat`) whose number is the address of the component's end.
;;
;; An end names two functions of `entries`: one that copies between its buffer and the host, and behind it one that goes on with that.

(type $entry_outside (func (param i32 i32 i32 i32) (result i32)))

;; A readable end for an instance, and in the high half what both share.
(func (export "outside new") (param $instance i32) (param $type i32) (result i64)
  (local $shared i32)
  (local.set $shared (call $take_small))
  (i32.store offset=8 (local.get $shared) (i32.const 1))
  (i32.store offset=12 (local.get $shared) (i32.const 1))
  (i64.or
    (i64.extend_i32_u (call $end_new (local.get $instance) (local.get $type) (local.get $shared)))
    (i64.shl (i64.extend_i32_u (local.get $shared)) (i64.const 32))))

;; An instance gives a readable end to the host: what both share. Of what the host has given out, it has both ends then.
(func (export "outside take") (param $instance i32) (param $type i32) (param $handle i32) (result i32)
  (local $end i32) (local $shared i32)
  (local.set $end (call $end_leave (local.get $instance) (local.get $type) (local.get $handle)))
  (local.set $shared (i32.load offset=32 (local.get $end)))
  (i32.store offset=16 (local.get $shared) (i32.load offset=12 (local.get $shared)))
  (call $give_small (local.get $end))
  (i32.store offset=8 (local.get $shared) (i32.sub (i32.load offset=8 (local.get $shared)) (i32.const 1)))
  (i32.store offset=12 (local.get $shared) (i32.const 1))
  (local.get $shared))

;; The host knows it now, and learns what happened to the other end before. What no component has an end of is no more.
(func (export "outside begin") (param $shared i32)
  (local $end i32)
  (if (i32.load offset=16 (local.get $shared))
    (then
      (call $give_small (local.get $shared))
      (return)))
  (if (i32.load (local.get $shared))
    (then
      (call $close_outside (local.get $shared))
      (call $give_small (local.get $shared))
      (return)))
  (local.set $end (i32.load offset=4 (local.get $shared)))
  (if (i32.eqz (local.get $end)) (then (return)))
  ;; Of a write that a component has taken a part of, the writer learns that part, and writes the rest once more. It may do so at any time, so the host must not
  ;; begin with that rest.
  (if (i32.load offset=60 (local.get $end))
    (then (call $done_pending (local.get $shared) (i32.const 0)))
    (else (call $copy_outside (local.get $end)))))

;; Copies between the host and the buffer of an end.
(func $copy_outside (param $end i32)
  (i32.store (i32.const 12) (local.get $end))
  (call $after_outside (local.get $end)
    (call_indirect $entries (type $entry_outside)
      (i32.load offset=32 (local.get $end))
      (i32.load offset=52 (local.get $end))
      (i32.load offset=48 (local.get $end))
      (i32.and (i32.load (local.get $end)) (i32.const 1))
      (i32.load offset=80 (local.get $end)))))

;; The host can go on with that.
(func $go_on_outside (param $end i32)
  (i32.store (i32.const 12) (local.get $end))
  (call $after_outside (local.get $end)
    (call_indirect $entries (type $entry_run)
      (local.get $end)
      (i32.add (i32.load offset=80 (local.get $end)) (i32.const 1)))))

;; The host has answered, or has taken it as an operation: then it waits.
(func $after_outside (param $end i32) (param $packed i32)
  (local $count i32)
  (if (i32.eqz (i32.load (i32.const 12)))
    (then
      (i32.store offset=4 (i32.load offset=32 (local.get $end)) (local.get $end))
      (return)))
  (i32.store (i32.const 12) (i32.const 0))
  (i32.store offset=4 (i32.load offset=32 (local.get $end)) (i32.const 0))
  (local.set $count (i32.shr_u (local.get $packed) (i32.const 4)))
  (i32.store offset=44 (local.get $end) (local.get $count))
  (i32.store offset=48 (local.get $end) (i32.sub (i32.load offset=48 (local.get $end)) (local.get $count)))
  (call $done (local.get $end) (i32.and (local.get $packed) (i32.const 15))))

(func $close_outside (param $shared i32) (call $host_close (local.get $shared)))

(func $cancel_operation_of (param $end i32) (call $host_cancel (local.get $end)))
