; Rounding to integers, for processors without an instruction for it (x86-64 before SSE4.1). A template: $F is the type, $I the integer of its
; size, $S the suffix of C's names, $M the number of explicit bits of the significand, $E the mask of the exponent, $B its bias, $X the smallest
; number whose successors are all integers.
;
; Integers, infinities and NaNs return x + 0, which makes NaNs quiet. The sign of a zero is the operand's.

define internal $F @awsm.truncate$S($F %x) #1 {
  %bits = bitcast $F %x to $I
  %shifted = lshr $I %bits, $M
  %biased = and $I %shifted, $E
  %exponent = sub $I %biased, $B
  %small = icmp slt $I %exponent, 0
  %shift = select i1 %small, $I 0, $I %exponent
  %ones = sub $I 0, 1
  %significand.high = shl $I %ones, $M
  %significand = xor $I %significand.high, %ones
  %fraction = lshr $I %significand, %shift
  %whole = xor $I %fraction, %ones
  %kept = and $I %bits, %whole
  %kept.float = bitcast $I %kept to $F
  %zero = call $F @llvm.copysign.$L($F 0.0, $F %x)
  %truncated = select i1 %small, $F %zero, $F %kept.float
  ret $F %truncated
}

define internal i1 @awsm.integral$S($F %x) #1 {
  %size = call $F @llvm.fabs.$L($F %x)
  %fractional = fcmp olt $F %size, $X
  %integral = xor i1 %fractional, true
  ret i1 %integral
}

define hidden $F @trunc$S($F %x) #0 {
  %integral = call i1 @awsm.integral$S($F %x)
  br i1 %integral, label %same, label %round
same:
  %quiet = fadd $F %x, 0.0
  ret $F %quiet
round:
  %truncated = call $F @awsm.truncate$S($F %x)
  ret $F %truncated
}

define hidden $F @floor$S($F %x) #0 {
  %integral = call i1 @awsm.integral$S($F %x)
  br i1 %integral, label %same, label %round
same:
  %quiet = fadd $F %x, 0.0
  ret $F %quiet
round:
  %truncated = call $F @awsm.truncate$S($F %x)
  %above = fcmp ogt $F %truncated, %x
  %below = fsub $F %truncated, 1.0
  %rounded = select i1 %above, $F %below, $F %truncated
  ret $F %rounded
}

define hidden $F @ceil$S($F %x) #0 {
  %integral = call i1 @awsm.integral$S($F %x)
  br i1 %integral, label %same, label %round
same:
  %quiet = fadd $F %x, 0.0
  ret $F %quiet
round:
  %truncated = call $F @awsm.truncate$S($F %x)
  %below = fcmp olt $F %truncated, %x
  %above = fadd $F %truncated, 1.0
  %rounded = select i1 %below, $F %above, $F %truncated
  ret $F %rounded
}

define hidden $F @roundeven$S($F %x) #0 {
  %integral = call i1 @awsm.integral$S($F %x)
  br i1 %integral, label %same, label %round
same:
  %quiet = fadd $F %x, 0.0
  ret $F %quiet
round: ; the sum has no room for a fraction: adding rounds to even, subtracting is exact
  %magic = call $F @llvm.copysign.$L($F $X, $F %x)
  %sum = fadd $F %x, %magic
  %rounded = fsub $F %sum, %magic
  %signed = call $F @llvm.copysign.$L($F %rounded, $F %x)
  ret $F %signed
}

declare $F @llvm.copysign.$L($F, $F)
declare $F @llvm.fabs.$L($F)
