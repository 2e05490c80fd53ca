; What x86-64 has for moving much: string instructions, which an interrupt may suspend and resume.

define internal void @awsm.copy.big(ptr %d, ptr %s, i64 %n) #1 {
  call { ptr, ptr, i64 } asm sideeffect "rep movsb", "={di},={si},={cx},0,1,2,~{memory}"(ptr %d, ptr %s, i64 %n)
  ret void
}

define internal void @awsm.set.big(ptr %d, i8 %byte, i64 %n) #1 {
  call { ptr, i64 } asm sideeffect "rep stosb", "={di},={cx},0,1,{ax},~{memory}"(ptr %d, i64 %n, i8 %byte)
  ret void
}
