; memcpy, memmove and memset: into these LLVM turns loops, and llvm.memmove and llvm.memset.
;
; Up to 128 bytes are moved by loads that overlap in the middle, all of them before the first store, so that overlapping ranges need no
; thought; more by loops of 128 bytes forwards or backwards, with the ragged rest likewise loaded beforehand; much more by what the architecture has for
; that (awsm.copy.big, awsm.set.big). Anything here may fault: a fault is the guest's access out of bounds. Faulting half-way leaves bytes written,
; which nobody sees: memory.copy and memory.fill have checked the range.

define hidden ptr @memcpy(ptr %d, ptr %s, i64 %n) #0 {
  call void @awsm.move(ptr %d, ptr %s, i64 %n)
  ret ptr %d
}

define hidden ptr @memmove(ptr %d, ptr %s, i64 %n) #0 {
  call void @awsm.move(ptr %d, ptr %s, i64 %n)
  ret ptr %d
}

define internal void @awsm.move(ptr %d, ptr %s, i64 %n) #1 {
entry:
  %s.end = getelementptr i8, ptr %s, i64 %n
  %d.end = getelementptr i8, ptr %d, i64 %n
  %le16 = icmp ult i64 %n, 16
  br i1 %le16, label %below16, label %from16

below16:
  %ge8 = icmp uge i64 %n, 8
  br i1 %ge8, label %by8, label %below8
by8:
  %s8.last = getelementptr i8, ptr %s.end, i64 -8
  %d8.last = getelementptr i8, ptr %d.end, i64 -8
  %a8 = load i64, ptr %s, align 1
  %b8 = load i64, ptr %s8.last, align 1
  store i64 %a8, ptr %d, align 1
  store i64 %b8, ptr %d8.last, align 1
  ret void
below8:
  %ge4 = icmp uge i64 %n, 4
  br i1 %ge4, label %by4, label %below4
by4:
  %s4.last = getelementptr i8, ptr %s.end, i64 -4
  %d4.last = getelementptr i8, ptr %d.end, i64 -4
  %a4 = load i32, ptr %s, align 1
  %b4 = load i32, ptr %s4.last, align 1
  store i32 %a4, ptr %d, align 1
  store i32 %b4, ptr %d4.last, align 1
  ret void
below4:
  %is0 = icmp eq i64 %n, 0
  br i1 %is0, label %done, label %by1
by1: ; the first, the middle and the last of up to three bytes
  %half = lshr i64 %n, 1
  %s1.mid = getelementptr i8, ptr %s, i64 %half
  %d1.mid = getelementptr i8, ptr %d, i64 %half
  %s1.last = getelementptr i8, ptr %s.end, i64 -1
  %d1.last = getelementptr i8, ptr %d.end, i64 -1
  %a1 = load i8, ptr %s, align 1
  %b1 = load i8, ptr %s1.mid, align 1
  %c1 = load i8, ptr %s1.last, align 1
  store i8 %a1, ptr %d, align 1
  store i8 %b1, ptr %d1.mid, align 1
  store i8 %c1, ptr %d1.last, align 1
  ret void
done:
  ret void

from16:
  %le32 = icmp ule i64 %n, 32
  br i1 %le32, label %by16, label %above32
by16:
  %s16.last = getelementptr i8, ptr %s.end, i64 -16
  %d16.last = getelementptr i8, ptr %d.end, i64 -16
  %a16 = load <16 x i8>, ptr %s, align 1
  %b16 = load <16 x i8>, ptr %s16.last, align 1
  store <16 x i8> %a16, ptr %d, align 1
  store <16 x i8> %b16, ptr %d16.last, align 1
  ret void
above32:
  %le64 = icmp ule i64 %n, 64
  br i1 %le64, label %by32, label %above64
by32:
  %s32.last = getelementptr i8, ptr %s.end, i64 -32
  %d32.last = getelementptr i8, ptr %d.end, i64 -32
  %a32 = load <32 x i8>, ptr %s, align 1
  %b32 = load <32 x i8>, ptr %s32.last, align 1
  store <32 x i8> %a32, ptr %d, align 1
  store <32 x i8> %b32, ptr %d32.last, align 1
  ret void
above64:
  %s64.last = getelementptr i8, ptr %s.end, i64 -64
  %d64.last = getelementptr i8, ptr %d.end, i64 -64
  %s128.last = getelementptr i8, ptr %s.end, i64 -128
  %d128.last = getelementptr i8, ptr %d.end, i64 -128
  %le128 = icmp ule i64 %n, 128
  br i1 %le128, label %by64, label %above128
by64:
  %a64 = load <64 x i8>, ptr %s, align 1
  %b64 = load <64 x i8>, ptr %s64.last, align 1
  store <64 x i8> %a64, ptr %d, align 1
  store <64 x i8> %b64, ptr %d64.last, align 1
  ret void

above128:
  %d.int = ptrtoint ptr %d to i64
  %s.int = ptrtoint ptr %s to i64
  %ahead = sub i64 %d.int, %s.int ; unsigned: large when the destination comes first
  %forwards = icmp uge i64 %ahead, %n
  br i1 %forwards, label %forward, label %backward

forward:
  %behind = sub i64 %s.int, %d.int
  %apart = icmp uge i64 %behind, %n
  %big = icmp uge i64 %n, 4096
  %use.big = and i1 %apart, %big
  br i1 %use.big, label %forward.big, label %forward.start
forward.big:
  call void @awsm.copy.big(ptr %d, ptr %s, i64 %n)
  ret void
forward.start:
  %f.tail.0 = load <64 x i8>, ptr %s128.last, align 1
  %f.tail.1 = load <64 x i8>, ptr %s64.last, align 1
  %f.end = sub i64 %n, 128
  br label %forward.loop
forward.loop:
  %f.i = phi i64 [ 0, %forward.start ], [ %f.next, %forward.loop ]
  %f.s0 = getelementptr i8, ptr %s, i64 %f.i
  %f.s1 = getelementptr i8, ptr %f.s0, i64 64
  %f.d0 = getelementptr i8, ptr %d, i64 %f.i
  %f.d1 = getelementptr i8, ptr %f.d0, i64 64
  %f.0 = load <64 x i8>, ptr %f.s0, align 1
  %f.1 = load <64 x i8>, ptr %f.s1, align 1
  store <64 x i8> %f.0, ptr %f.d0, align 1
  store <64 x i8> %f.1, ptr %f.d1, align 1
  %f.next = add i64 %f.i, 128
  %f.more = icmp ult i64 %f.next, %f.end
  br i1 %f.more, label %forward.loop, label %forward.tail
forward.tail:
  store <64 x i8> %f.tail.0, ptr %d128.last, align 1
  store <64 x i8> %f.tail.1, ptr %d64.last, align 1
  ret void

backward:
  %s.64 = getelementptr i8, ptr %s, i64 64
  %d.64 = getelementptr i8, ptr %d, i64 64
  %b.head.0 = load <64 x i8>, ptr %s, align 1
  %b.head.1 = load <64 x i8>, ptr %s.64, align 1
  br label %backward.loop
backward.loop:
  %b.i = phi i64 [ %n, %backward ], [ %b.next, %backward.loop ]
  %b.next = sub i64 %b.i, 128
  %b.s0 = getelementptr i8, ptr %s, i64 %b.next
  %b.s1 = getelementptr i8, ptr %b.s0, i64 64
  %b.d0 = getelementptr i8, ptr %d, i64 %b.next
  %b.d1 = getelementptr i8, ptr %b.d0, i64 64
  %b.0 = load <64 x i8>, ptr %b.s0, align 1
  %b.1 = load <64 x i8>, ptr %b.s1, align 1
  store <64 x i8> %b.1, ptr %b.d1, align 1
  store <64 x i8> %b.0, ptr %b.d0, align 1
  %b.more = icmp ugt i64 %b.next, 128
  br i1 %b.more, label %backward.loop, label %backward.head
backward.head:
  store <64 x i8> %b.head.1, ptr %d.64, align 1
  store <64 x i8> %b.head.0, ptr %d, align 1
  ret void
}

define hidden ptr @memset(ptr %d, i32 %value, i64 %n) #0 {
entry:
  %byte = trunc i32 %value to i8
  %wide = zext i8 %byte to i64
  %v8 = mul i64 %wide, 72340172838076673 ; 0x0101010101010101
  %first = insertelement <64 x i8> poison, i8 %byte, i32 0
  %v64 = shufflevector <64 x i8> %first, <64 x i8> poison, <64 x i32> zeroinitializer
  %v32 = shufflevector <64 x i8> %first, <64 x i8> poison, <32 x i32> zeroinitializer
  %v16 = shufflevector <64 x i8> %first, <64 x i8> poison, <16 x i32> zeroinitializer
  %end = getelementptr i8, ptr %d, i64 %n
  %lt16 = icmp ult i64 %n, 16
  br i1 %lt16, label %below16, label %from16

below16:
  %ge8 = icmp uge i64 %n, 8
  br i1 %ge8, label %by8, label %below8
by8:
  %d8.last = getelementptr i8, ptr %end, i64 -8
  store i64 %v8, ptr %d, align 1
  store i64 %v8, ptr %d8.last, align 1
  ret ptr %d
below8:
  %ge4 = icmp uge i64 %n, 4
  br i1 %ge4, label %by4, label %below4
by4:
  %v4 = trunc i64 %v8 to i32
  %d4.last = getelementptr i8, ptr %end, i64 -4
  store i32 %v4, ptr %d, align 1
  store i32 %v4, ptr %d4.last, align 1
  ret ptr %d
below4:
  %is0 = icmp eq i64 %n, 0
  br i1 %is0, label %done, label %by1
by1:
  %half = lshr i64 %n, 1
  %d1.mid = getelementptr i8, ptr %d, i64 %half
  %d1.last = getelementptr i8, ptr %end, i64 -1
  store i8 %byte, ptr %d, align 1
  store i8 %byte, ptr %d1.mid, align 1
  store i8 %byte, ptr %d1.last, align 1
  ret ptr %d
done:
  ret ptr %d

from16:
  %le32 = icmp ule i64 %n, 32
  br i1 %le32, label %by16, label %above32
by16:
  %d16.last = getelementptr i8, ptr %end, i64 -16
  store <16 x i8> %v16, ptr %d, align 1
  store <16 x i8> %v16, ptr %d16.last, align 1
  ret ptr %d
above32:
  %le64 = icmp ule i64 %n, 64
  br i1 %le64, label %by32, label %above64
by32:
  %d32.last = getelementptr i8, ptr %end, i64 -32
  store <32 x i8> %v32, ptr %d, align 1
  store <32 x i8> %v32, ptr %d32.last, align 1
  ret ptr %d
above64:
  %d64.last = getelementptr i8, ptr %end, i64 -64
  store <64 x i8> %v64, ptr %d64.last, align 1
  %big = icmp uge i64 %n, 4096
  br i1 %big, label %by.big, label %loop.start
by.big:
  call void @awsm.set.big(ptr %d, i8 %byte, i64 %n)
  ret ptr %d
loop.start:
  %last = sub i64 %n, 64
  br label %loop
loop:
  %i = phi i64 [ 0, %loop.start ], [ %next, %loop ]
  %at = getelementptr i8, ptr %d, i64 %i
  store <64 x i8> %v64, ptr %at, align 1
  %next = add i64 %i, 64
  %more = icmp ult i64 %next, %last
  br i1 %more, label %loop, label %done
}

attributes #0 = { nounwind uwtable noinline "no-builtins" }
attributes #1 = { nounwind alwaysinline "no-builtins" }
