;; Streams and futures between instances. An end is a waitable (see `tasks.wat`) with
;;
;;   32  what both ends share                  52  where the rest of what it reads or writes lies
;;   36  state: 0 idle, 1 copies, 2 cancels,   56  how its values are copied: see `$transfer`
;;       3 done                                60  whether the copy that it told of is its last: its buffer is taken back when that is learnt
;;   40  result: 0 completed, 1 dropped,       64  size of a value
;;       2 cancelled                           68  1 where values are their bytes (none, or numbers); 2 where they are more
;;   44  how many values were copied           72  how many values there were to copy
;;   48  how many are left                     76  entry type of its handle
;;                                             80  the first of its functions in `entries` that copy between it and the host
;;
;; What they share, 96 bytes: 0 whether an end was dropped, 4 the end that waits with a buffer, 8 how many ends components have, 12 whether the host has the
;; other one (see `outside.wat`), 16 whether the host has both.

(type $entry_copy (func (param i32 i32 i32 i32)))

;; stream.new and future.new: both handles, the writable end's in the high half. The types are those of the handles' entries.
(func (export "pair new") (param $instance i32) (param $readable i32) (param $writable i32) (result i64)
  (local $shared i32)
  (local.set $shared (call $take_small))
  (i32.store offset=8 (local.get $shared) (i32.const 2))
  (i64.or
    (i64.extend_i32_u (call $end_new (local.get $instance) (local.get $readable) (local.get $shared)))
    (i64.shl
      (i64.extend_i32_u (call $end_new (local.get $instance) (local.get $writable) (local.get $shared)))
      (i64.const 32))))

(func $end_new (param $instance i32) (param $type i32) (param $shared i32) (result i32)
  (local $end i32)
  (local.set $end (call $take_small))
  ;; Entry types say what they are: 0x81 and 0x82 of a stream, 0x83 and 0x84 of a future.
  (i32.store (local.get $end) (i32.sub (i32.shr_u (local.get $type) (i32.const 24)) (i32.const 0x7f)))
  (i32.store offset=8 (local.get $end) (local.get $instance))
  (i32.store offset=32 (local.get $end) (local.get $shared))
  (i32.store offset=76 (local.get $end) (local.get $type))
  (i32.store offset=4 (local.get $end)
    (call $insert (i32.load (local.get $instance)) (local.get $type) (local.get $end) (i32.const 0)))
  (i32.load offset=4 (local.get $end)))

;; What an end's event says. `event 1` is its handle already.
(func $end_event (param $end i32)
  (local $result i32) (local $shared i32)
  (local.set $result (i32.load offset=40 (local.get $end)))
  (local.set $shared (i32.load offset=32 (local.get $end)))
  (if (i32.load offset=60 (local.get $end))
    (then
      (if (i32.eq (i32.load offset=4 (local.get $shared)) (local.get $end))
        (then (i32.store offset=4 (local.get $shared) (i32.const 0))))
      (i32.store offset=60 (local.get $end) (i32.const 0))))
  (if (i32.ge_u (i32.load (local.get $end)) (i32.const 4))
    (then
      (i32.store offset=36 (local.get $end)
        (select (i32.const 3) (i32.const 0) (i32.le_u (local.get $result) (i32.const 1))))
      (global.set $event_2 (local.get $result)))
    (else
      (i32.store offset=36 (local.get $end)
        (select (i32.const 3) (i32.const 0) (i32.eq (local.get $result) (i32.const 1))))
      (global.set $event_2
        (i32.or (local.get $result) (i32.shl (i32.load offset=44 (local.get $end)) (i32.const 4)))))))

;; A copy is over for an end.
(func $done (param $end i32) (param $result i32)
  (i32.store offset=40 (local.get $end) (local.get $result))
  (i32.store offset=60 (local.get $end) (i32.const 0))
  (call $notify (local.get $end)))

;; It is over for the end that waits.
(func $done_pending (param $shared i32) (param $result i32)
  (local $end i32)
  (local.set $end (i32.load offset=4 (local.get $shared)))
  (i32.store offset=4 (local.get $shared) (i32.const 0))
  (call $done (local.get $end) (local.get $result)))

;; Copies from a writable end to a readable one. Numbers are copied by a function of `entries` for each pair of memories: the ends' numbers are its row and
;; column. Other values are copied by a function of the reader; the writer's number tells it which adapter passes them. That may trap, or call the reader's
;; `realloc`, which cannot call out: neither end learns of the copy before it is done.
(func $transfer (param $from i32) (param $to i32) (param $count i32)
  (local $bytes i32)
  (local.set $bytes (i32.load offset=64 (local.get $from)))
  (if (local.get $bytes)
    (then
      (if (i32.eq (i32.load offset=68 (local.get $to)) (i32.const 1))
        (then
          (call_indirect $entries (type $entry_copy)
            (i32.load offset=52 (local.get $from))
            (i32.load offset=52 (local.get $to))
            (local.get $count)
            (i32.mul (local.get $count) (local.get $bytes))
            (i32.add (i32.load offset=56 (local.get $from)) (i32.load offset=56 (local.get $to)))))
        (else
          (call_indirect $entries (type $entry_copy)
            (i32.load offset=52 (local.get $from))
            (i32.load offset=52 (local.get $to))
            (local.get $count)
            (i32.load offset=56 (local.get $from))
            (i32.load offset=56 (local.get $to)))))))
  (call $advance (local.get $from) (local.get $count))
  (call $advance (local.get $to) (local.get $count)))

(func $advance (param $end i32) (param $count i32)
  (i32.store offset=52 (local.get $end)
    (i32.add
      (i32.load offset=52 (local.get $end))
      (i32.mul (local.get $count) (i32.load offset=64 (local.get $end)))))
  (i32.store offset=44 (local.get $end) (i32.add (i32.load offset=44 (local.get $end)) (local.get $count)))
  (i32.store offset=48 (local.get $end) (i32.sub (i32.load offset=48 (local.get $end)) (local.get $count))))

;; stream.read, stream.write, future.read and future.write: what the operation returns, or -1 where that is to be waited for. The buffer is checked, and whether the task may wait.
(func (export "copy")
  (param $instance i32) (param $type i32) (param $handle i32) (param $at i32) (param $count i32)
  (param $size i32) (param $is_plain i32) (param $entry i32) (param $outside i32) (param $async i32) (result i32)
  (local $end i32) (local $shared i32) (local $other i32)
  (local.set $end (call $record (i32.load (local.get $instance)) (local.get $type) (local.get $handle)))
  (if (i32.load offset=36 (local.get $end))
    (then
      ;; Of the four kinds of ends, from 2.
      (if (i32.eq (i32.load offset=36 (local.get $end)) (i32.const 3))
        (then (call $trap (i32.add (i32.load (local.get $end)) (i32.const 33)))))
      (call $trap (i32.const 32))))
  (if (i32.and (i32.eqz (local.get $async)) (i32.ne (i32.load offset=12 (local.get $end)) (i32.const 0)))
    (then (call $trap (i32.const 26))))
  (i32.store offset=36 (local.get $end) (i32.const 1))
  (i32.store offset=44 (local.get $end) (i32.const 0))
  (i32.store offset=48 (local.get $end) (local.get $count))
  (i32.store offset=52 (local.get $end) (local.get $at))
  (i32.store offset=56 (local.get $end) (local.get $entry))
  (i32.store offset=60 (local.get $end) (i32.const 0))
  (i32.store offset=64 (local.get $end) (local.get $size))
  (i32.store offset=68 (local.get $end) (local.get $is_plain))
  (i32.store offset=72 (local.get $end) (local.get $count))
  (i32.store offset=80 (local.get $end) (local.get $outside))
  (local.set $shared (i32.load offset=32 (local.get $end)))
  (local.set $other (i32.load offset=4 (local.get $shared)))
  (block $paired
    (if (i32.load (local.get $shared))
      (then
        (call $done (local.get $end) (i32.const 1))
        (br $paired)))
    (if (i32.load offset=12 (local.get $shared))
      (then
        (call $copy_outside (local.get $end))
        (br $paired)))
    (if (i32.eqz (local.get $other))
      (then
        (i32.store offset=4 (local.get $shared) (local.get $end))
        (br $paired)))
    (if (i32.and
          (i32.ne (local.get $is_plain) (i32.const 1))
          (i32.eq (local.get $instance) (i32.load offset=8 (local.get $other))))
      (then (call $trap (i32.const 31))))
    (call $meet (local.get $end) (local.get $other) (local.get $shared)))
  (if (i32.eqz (i32.load offset=16 (local.get $end)))
    (then
      (if (local.get $async) (then (return (i32.const -1))))
      (call $wait_for (local.get $end))))
  (drop (call $take_event (local.get $end)))
  (global.get $event_2))

;; An end finds the other one waiting.
(func $meet (param $end i32) (param $other i32) (param $shared i32)
  (local $count i32) (local $is_writer i32)
  (local.set $is_writer (i32.and (i32.load (local.get $end)) (i32.const 1)))
  (if (i32.load offset=48 (local.get $other))
    (then
      (local.set $count (i32.load offset=48 (local.get $end)))
      (if (i32.lt_u (i32.load offset=48 (local.get $other)) (local.get $count))
        (then (local.set $count (i32.load offset=48 (local.get $other)))))
      (if (local.get $count)
        (then
          (if (local.get $is_writer)
            (then (call $transfer (local.get $end) (local.get $other) (local.get $count)))
            (else (call $transfer (local.get $other) (local.get $end) (local.get $count))))
          (if (i32.ge_u (i32.load (local.get $end)) (i32.const 4))
            (then (call $done_pending (local.get $shared) (i32.const 0)))
            (else
              ;; The other keeps its buffer until it learns of this.
              (i32.store offset=40 (local.get $other) (i32.const 0))
              (i32.store offset=60 (local.get $other) (i32.const 1))
              (call $notify (local.get $other))))))
      (call $done (local.get $end) (i32.const 0))
      (return)))
  (if (i32.and
        (local.get $is_writer)
        (i32.eqz (i32.or (i32.load offset=72 (local.get $end)) (i32.load offset=72 (local.get $other)))))
    (then
      (call $done (local.get $end) (i32.const 0))
      (return)))
  (call $done_pending (local.get $shared) (i32.const 0))
  (i32.store offset=4 (local.get $shared) (local.get $end)))

;; stream.cancel-read and the like: what the operation that is given up returns.
(func (export "copy cancel") (param $instance i32) (param $type i32) (param $async i32) (param $handle i32) (result i32)
  (local $end i32)
  (if (i32.eqz (local.get $async)) (then (call $check_blocking)))
  (local.set $end (call $record (i32.load (local.get $instance)) (local.get $type) (local.get $handle)))
  (if (i32.or (i32.ne (i32.load offset=36 (local.get $end)) (i32.const 1)) (i32.load offset=28 (local.get $end)))
    (then (call $trap (i32.const 30))))
  (if (i32.and (i32.eqz (local.get $async)) (i32.ne (i32.load offset=12 (local.get $end)) (i32.const 0)))
    (then (call $trap (i32.const 26))))
  (i32.store offset=36 (local.get $end) (i32.const 2))
  (if (i32.eqz (i32.load offset=16 (local.get $end)))
    (then
      (if (i32.load offset=12 (i32.load offset=32 (local.get $end))) (then (call $cancel_operation_of (local.get $end))))
      (call $done_pending (i32.load offset=32 (local.get $end)) (i32.const 2)))
    (else
      ;; What a stream has copied by then is cancelled, too: that the rest of the buffer was not needed.
      (if (i32.and
            (i32.lt_u (i32.load (local.get $end)) (i32.const 4))
            (i32.eqz (i32.load offset=40 (local.get $end))))
        (then (i32.store offset=40 (local.get $end) (i32.const 2))))))
  (drop (call $take_event (local.get $end)))
  (global.get $event_2))

;; stream.drop-readable and the like.
(func (export "end drop") (param $instance i32) (param $type i32) (param $handle i32)
  (local $end i32) (local $shared i32) (local $state i32) (local $count i32)
  (local.set $end (call $record (i32.load (local.get $instance)) (local.get $type) (local.get $handle)))
  (local.set $state (i32.load offset=36 (local.get $end)))
  (if (i32.and (i32.eq (i32.load (local.get $end)) (i32.const 5)) (i32.ne (local.get $state) (i32.const 3)))
    (then (call $trap (i32.const 27))))
  (if (i32.or (i32.eq (local.get $state) (i32.const 1)) (i32.eq (local.get $state) (i32.const 2)))
    (then (call $trap (i32.const 33))))
  (drop (call $remove (i32.load (local.get $instance)) (local.get $type) (local.get $handle)))
  (local.set $shared (i32.load offset=32 (local.get $end)))
  (if (i32.eqz (i32.load (local.get $shared)))
    (then
      (i32.store (local.get $shared) (i32.const 1))
      (if (i32.load offset=4 (local.get $shared)) (then (call $done_pending (local.get $shared) (i32.const 1))))))
  (if (i32.load offset=12 (local.get $shared)) (then (call $close_outside (local.get $shared))))
  (call $part (local.get $end))
  (call $give_small (local.get $end))
  (local.set $count (i32.sub (i32.load offset=8 (local.get $shared)) (i32.const 1)))
  (i32.store offset=8 (local.get $shared) (local.get $count))
  (if (i32.eqz (local.get $count)) (then (call $give_small (local.get $shared)))))

;; A readable end leaves an instance.
(func $end_leave (param $instance i32) (param $type i32) (param $handle i32) (result i32)
  (local $end i32)
  (local.set $end (call $record (i32.load (local.get $instance)) (local.get $type) (local.get $handle)))
  (if (i32.eq (i32.load offset=36 (local.get $end)) (i32.const 3))
    (then
      (call $trap
        (select (i32.const 39) (i32.const 40) (i32.eq (i32.load (local.get $end)) (i32.const 4))))))
  (if (i32.load offset=36 (local.get $end)) (then (call $trap (i32.const 34))))
  (if (i32.load offset=12 (local.get $end)) (then (call $trap (i32.const 41))))
  (drop (call $remove (i32.load (local.get $instance)) (local.get $type) (local.get $handle)))
  (local.get $end))

;; It goes to another one.
(func $end_transfer (param $handle i32) (param $from i32) (param $from_type i32) (param $to i32) (param $to_type i32) (result i32)
  (local $end i32)
  (local.set $end (call $end_leave (local.get $from) (local.get $from_type) (local.get $handle)))
  (i32.store offset=8 (local.get $end) (local.get $to))
  (i32.store offset=76 (local.get $end) (local.get $to_type))
  (i32.store offset=4 (local.get $end)
    (call $insert (i32.load (local.get $to)) (local.get $to_type) (local.get $end) (i32.const 0)))
  (i32.load offset=4 (local.get $end)))
