;; What the canonical ABI keeps between calls of a component: handle tables, the calls that borrow, and the instances' flags. It lies in this module's
;; memory and globals, so that it is part of the sandbox: snapshots, resets and isolation hold for it as for everything else there.
;;
;; `state.rs` adds the memory, a global `flags N` for each component instance, and the data. Layouts are those of `awsm_abi::component::table`:
;;
;;   0      where free memory begins
;;   4      free nodes of the lists of lenders: the first one's address, or zero
;;   8      address of the call in progress; its first words are how many borrowed handles are left, and the address of the first lender
;;   16     rows of resource types, 16 bytes each: address of the instance's handle table, number of the type, whether the instance defines it
;;   then   handle tables' heads, 16 bytes each
;;   then   calls in progress, or instances and streams where there are tasks: see `calls.wat` and `tasks.wat`
;;   then   entries of handle tables and lenders, as they are needed

(import "sledge:canonical" "trap" (func $host_trap (param i32 i64)))

(func $trap (export "trap") (param $code i32)
  (call $host_trap (local.get $code) (i64.const 0))
  unreachable)

;; The same, and says what was wrong: a handle, or which byte of a string.
(func $trap_of (export "trap of") (param $code i32) (param $value i32)
  (call $host_trap
    (local.get $code)
    (i64.or (i64.const 0x100000000) (i64.extend_i32_u (local.get $value))))
  unreachable)

;; So many bytes of free memory.
(func $allocate (param $bytes i32) (result i32)
  (local $at i32) (local $end i32) (local $have i32)
  (local.set $at (i32.load (i32.const 0)))
  (local.set $end (i32.add (local.get $at) (local.get $bytes)))
  (local.set $have (i32.shl (memory.size) (i32.const 16)))
  (if (i32.gt_u (local.get $end) (local.get $have))
    (then
      (if (i32.eq
            (memory.grow
              (i32.shr_u (i32.add (i32.sub (local.get $end) (local.get $have)) (i32.const 65535)) (i32.const 16)))
            (i32.const -1))
        (then (call $trap (i32.const 7))))))
  (i32.store (i32.const 0) (local.get $end))
  (local.get $at))

;; Doubles the room for a table's entries.
(func $grow (param $table i32)
  (local $capacity i32) (local $at i32)
  (local.set $capacity (i32.shl (i32.load offset=8 (local.get $table)) (i32.const 1)))
  (if (i32.lt_u (local.get $capacity) (i32.const 128)) (then (local.set $capacity (i32.const 128))))
  (if (i32.gt_u (local.get $capacity) (i32.const 0x100000)) (then (call $trap (i32.const 7))))
  (local.set $at (call $allocate (i32.shl (local.get $capacity) (i32.const 4))))
  (memory.copy
    (local.get $at)
    (i32.load offset=12 (local.get $table))
    (i32.shl (i32.load offset=8 (local.get $table)) (i32.const 4)))
  (i32.store offset=8 (local.get $table) (local.get $capacity))
  (i32.store offset=12 (local.get $table) (local.get $at)))

;; Sees to it that the host has room for the handles that it makes in one call.
(func $reserve (export "reserve") (param $table i32)
  (if (i32.lt_u
        (i32.load offset=8 (local.get $table))
        (i32.add (i32.load offset=4 (local.get $table)) (i32.const 64)))
    (then (call $grow (local.get $table)))))

;; A new handle.
(func $insert (param $table i32) (param $type i32) (param $representation i32) (param $kind i32) (result i32)
  (local $handle i32) (local $entry i32)
  (local.set $handle (i32.load (local.get $table)))
  (if (local.get $handle)
    (then
      (local.set $entry
        (i32.add (i32.load offset=12 (local.get $table)) (i32.shl (local.get $handle) (i32.const 4))))
      (i32.store (local.get $table) (i32.load offset=4 (local.get $entry))))
    (else
      (local.set $handle (i32.load offset=4 (local.get $table)))
      (if (i32.ge_u (local.get $handle) (i32.load offset=8 (local.get $table)))
        (then (call $grow (local.get $table))))
      (i32.store offset=4 (local.get $table) (i32.add (local.get $handle) (i32.const 1)))
      (local.set $entry
        (i32.add (i32.load offset=12 (local.get $table)) (i32.shl (local.get $handle) (i32.const 4))))))
  (i32.store (local.get $entry) (local.get $type))
  (i32.store offset=4 (local.get $entry) (local.get $representation))
  (i32.store offset=8 (local.get $entry) (i32.const 0))
  (i32.store offset=12 (local.get $entry) (local.get $kind))
  (local.get $handle))

;; The entry of a handle of that type. Handle 0 is none.
(func $entry (param $table i32) (param $type i32) (param $handle i32) (result i32)
  (local $entry i32) (local $found i32)
  (if (i32.ge_u
        (i32.sub (local.get $handle) (i32.const 1))
        (i32.sub (i32.load offset=4 (local.get $table)) (i32.const 1)))
    (then (call $trap_of (i32.const 2) (local.get $handle))))
  (local.set $entry
    (i32.add (i32.load offset=12 (local.get $table)) (i32.shl (local.get $handle) (i32.const 4))))
  (local.set $found (i32.load (local.get $entry)))
  (if (i32.ne (local.get $found) (local.get $type))
    (then (call $trap_of (select (i32.const 3) (i32.const 2) (local.get $found)) (local.get $handle))))
  (local.get $entry))

;; Ends a handle.
(func $free (param $table i32) (param $handle i32) (param $entry i32)
  (i32.store (local.get $entry) (i32.const 0))
  (i32.store offset=4 (local.get $entry) (i32.load (local.get $table)))
  (i32.store (local.get $table) (local.get $handle)))

;; resource.new
(func (export "new") (param $table i32) (param $type i32) (param $representation i32) (result i32)
  (call $insert (local.get $table) (local.get $type) (local.get $representation) (i32.const 0)))

;; resource.rep
(func (export "rep") (param $table i32) (param $type i32) (param $handle i32) (result i32)
  (i32.load offset=4 (call $entry (local.get $table) (local.get $type) (local.get $handle))))

;; resource.drop, up to the destructor: of an owned handle the representation, with bit 32 set; of a borrowed one zero.
(func (export "drop") (param $table i32) (param $type i32) (param $handle i32) (result i64)
  (local $entry i32) (local $kind i32)
  (local.set $entry (call $entry (local.get $table) (local.get $type) (local.get $handle)))
  (if (i32.load offset=8 (local.get $entry)) (then (call $trap_of (i32.const 4) (local.get $handle))))
  (local.set $kind (i32.load offset=12 (local.get $entry)))
  (if (local.get $kind)
    (then
      (call $free (local.get $table) (local.get $handle) (local.get $entry))
      (i32.store (local.get $kind) (i32.sub (i32.load (local.get $kind)) (i32.const 1)))
      (return (i64.const 0))))
  (i64.or (i64.const 0x100000000) (i64.extend_i32_u (i32.load offset=4 (local.get $entry))))
  (call $free (local.get $table) (local.get $handle) (local.get $entry)))

;; The row of a resource type, by its number in the component.
(func $row (param $type i32) (result i32)
  (i32.add (i32.const 16) (i32.shl (local.get $type) (i32.const 4))))

;; An owned handle of the instance of one row becomes one of the instance of another.
(func (export "transfer own") (param $handle i32) (param $from i32) (param $to i32) (result i32)
  (local $table i32) (local $entry i32) (local $representation i32)
  (local.set $from (call $row (local.get $from)))
  (local.set $to (call $row (local.get $to)))
  (local.set $table (i32.load (local.get $from)))
  (local.set $entry (call $entry (local.get $table) (i32.load offset=4 (local.get $from)) (local.get $handle)))
  (if (i32.load offset=8 (local.get $entry)) (then (call $trap_of (i32.const 4) (local.get $handle))))
  (if (i32.load offset=12 (local.get $entry)) (then (call $trap_of (i32.const 5) (local.get $handle))))
  (local.set $representation (i32.load offset=4 (local.get $entry)))
  (call $free (local.get $table) (local.get $handle) (local.get $entry))
  (call $insert
    (i32.load (local.get $to)) (i32.load offset=4 (local.get $to)) (local.get $representation) (i32.const 0)))

;; A handle of the instance of one row is lent to the call in progress, as a handle of the instance of another row; where that defines the resource, as
;; its representation.
(func (export "transfer borrow") (param $handle i32) (param $from i32) (param $to i32) (result i32)
  (local $table i32) (local $entry i32) (local $call i32) (local $lender i32)
  (local.set $from (call $row (local.get $from)))
  (local.set $to (call $row (local.get $to)))
  (local.set $table (i32.load (local.get $from)))
  (local.set $entry (call $entry (local.get $table) (i32.load offset=4 (local.get $from)) (local.get $handle)))
  (i32.store offset=8 (local.get $entry) (i32.add (i32.load offset=8 (local.get $entry)) (i32.const 1)))
  (local.set $call (i32.load (i32.const 8)))
  (local.set $lender (i32.load (i32.const 4)))
  (if (local.get $lender)
    (then (i32.store (i32.const 4) (i32.load (local.get $lender))))
    (else (local.set $lender (call $allocate (i32.const 16)))))
  (i32.store (local.get $lender) (i32.load offset=4 (local.get $call)))
  (i32.store offset=4 (local.get $lender) (local.get $table))
  (i32.store offset=8 (local.get $lender) (local.get $handle))
  (i32.store offset=4 (local.get $call) (local.get $lender))
  (if (i32.load offset=8 (local.get $to)) (then (return (i32.load offset=4 (local.get $entry)))))
  (i32.store (local.get $call) (i32.add (i32.load (local.get $call)) (i32.const 1)))
  (call $insert
    (i32.load (local.get $to))
    (i32.load offset=4 (local.get $to))
    (i32.load offset=4 (local.get $entry))
    (i32.load (i32.const 8))))

;; A call has returned: what was lent to it is free again.
(func $release_lenders (param $lender i32)
  (local $entry i32) (local $next i32)
  (block $done
    (loop $more
      (br_if $done (i32.eqz (local.get $lender)))
      (local.set $entry
        (i32.add
          (i32.load offset=12 (i32.load offset=4 (local.get $lender)))
          (i32.shl (i32.load offset=8 (local.get $lender)) (i32.const 4))))
      (i32.store offset=8 (local.get $entry) (i32.sub (i32.load offset=8 (local.get $entry)) (i32.const 1)))
      (local.set $next (i32.load (local.get $lender)))
      (i32.store (local.get $lender) (i32.load (i32.const 4)))
      (i32.store (i32.const 4) (local.get $lender))
      (local.set $lender (local.get $next))
      (br $more))))
