; AArch64 has no instruction for moving much that all processors know: loops. At least 128 bytes; ranges do not overlap.

define internal void @awsm.copy.big(ptr %d, ptr %s, i64 %n) #1 {
entry:
  %last = sub i64 %n, 64
  %s.last = getelementptr i8, ptr %s, i64 %last
  %d.last = getelementptr i8, ptr %d, i64 %last
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr i8, ptr %s, i64 %i
  %to = getelementptr i8, ptr %d, i64 %i
  %block = load <64 x i8>, ptr %from, align 1
  store <64 x i8> %block, ptr %to, align 1
  %next = add i64 %i, 64
  %more = icmp ult i64 %next, %last
  br i1 %more, label %loop, label %done
done:
  %rest = load <64 x i8>, ptr %s.last, align 1
  store <64 x i8> %rest, ptr %d.last, align 1
  ret void
}

define internal void @awsm.set.big(ptr %d, i8 %byte, i64 %n) #1 {
entry:
  %first = insertelement <64 x i8> poison, i8 %byte, i32 0
  %block = shufflevector <64 x i8> %first, <64 x i8> poison, <64 x i32> zeroinitializer
  %last = sub i64 %n, 64
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %to = getelementptr i8, ptr %d, i64 %i
  store <64 x i8> %block, ptr %to, align 1
  %next = add i64 %i, 64
  %more = icmp ult i64 %next, %last
  br i1 %more, label %loop, label %done
done:
  %to.last = getelementptr i8, ptr %d, i64 %last
  store <64 x i8> %block, ptr %to.last, align 1
  ret void
}
