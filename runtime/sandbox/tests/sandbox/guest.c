// A module of WebAssembly as the compiler would have made it, written by hand: see awsm-abi for the contract, and guest.rs for its descriptor.
// "Guest's calling convention" is C's here; the runtime does not care.

typedef unsigned long long u64;
typedef struct {
    u64 low, high;
} __attribute__((aligned(16))) slot;
typedef void (*host_call)(void *vmctx, unsigned call, slot *slots);

__asm__(".text\n.globl text_start\n.hidden text_start\ntext_start:\n");

#define AT(type, offset) (*(type *)((char *)vmctx + (offset)))
#define HOST(call, slots) AT(host_call, 0)(vmctx, call, slots)
#define MEMORY AT(char *, MEMORY_BASE)
#define NOINLINE __attribute__((noinline))
#ifdef __x86_64__
// ud1l code(%eax), %eax
#define TRAP(code) __asm__ volatile(".byte 0x67, 0x0f, 0xb9, 0x40, " #code)
#define ILLEGAL() __asm__ volatile("ud2")
#else
#define TRAP(code) __asm__ volatile("brk 0x5500 | " #code)
#define ILLEGAL() __asm__ volatile("udf 0")
#endif

// Entries: one for each type, named by parameters and results (i: i32, l: i64, f: funcref).
void entry__(void *vmctx, void (*code)(void *), slot *s) { code(vmctx); }
void entry__i(void *vmctx, int (*code)(void *), slot *s) { s[0] = (slot){(unsigned)code(vmctx), 0}; }
void entry_i_(void *vmctx, void (*code)(void *, int), slot *s) { code(vmctx, s[0].low); }
void entry_i_i(void *vmctx, int (*code)(void *, int), slot *s) { s[0] = (slot){(unsigned)code(vmctx, s[0].low), 0}; }
void entry_ii_i(void *vmctx, int (*code)(void *, int, int), slot *s) { s[0] = (slot){(unsigned)code(vmctx, s[0].low, s[1].low), 0}; }
void entry_l_l(void *vmctx, u64 (*code)(void *, u64), slot *s) { s[0] = (slot){code(vmctx, s[0].low), 0}; }
void entry__f(void *vmctx, void (*code)(void *, slot *), slot *s) { code(vmctx, s); }

// Thunks of imports 0: (i32) -> (i32) and 1: () -> ().
NOINLINE int thunk_0(void *vmctx, int x) {
    slot s[1] = {{(unsigned)x, 0}};
    HOST(0, s);
    return s[0].low;
}
NOINLINE void thunk_1(void *vmctx) {
    slot s[1];
    HOST(1, s);
}

int add(void *vmctx, int a, int b) { return a + b; }
void nothing(void *vmctx) {}
void spin(void *vmctx) {
    for (;;) __asm__ volatile("");
}
int twice_host(void *vmctx, int x) { return thunk_0(vmctx, x) + thunk_0(vmctx, x + 1); }
u64 many_host(void *vmctx, u64 n) {
    u64 sum = 0;
    for (u64 i = 0; i < n; i++) sum += (unsigned)thunk_0(vmctx, (int)i);
    return sum;
}
void call_nothing(void *vmctx) { thunk_1(vmctx); }

// Uses many registers of every kind, so that a preemption that loses one changes the result.
u64 mix(void *vmctx, u64 rounds) {
    u64 a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    double v[16];
    for (int i = 0; i < 16; i++) v[i] = i + 1;
    for (u64 n = 0; n < rounds; n++) {
        a += b ^ n, b = (b << 7 | b >> 57) + c, c ^= d + a, d += e * 3, e = (e >> 3) ^ f ^ (e << 40), f += g, g ^= h + b, h = h * 5 + a;
        for (int i = 0; i < 16; i++) v[i] = v[i] * 0.75 + (double)(int)(n & 1023) / (i + 1);
    }
    u64 sum = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
    for (int i = 0; i < 16; i++) {
        union {
            double d;
            u64 u;
        } bits = {v[i]};
        sum = sum * 31 + bits.u;
    }
    return sum;
}

void unreachable(void *vmctx) { TRAP(1); }
void illegal(void *vmctx) { ILLEGAL(); }
int divide(void *vmctx, int a, int b) {
#ifdef __x86_64__
    int low, high;
    __asm__ volatile("cltd\n idivl %3" : "=a"(low), "=&d"(high) : "0"(a), "r"(b));
    return low;
#else
    // Divisions never fault there.
    if (b == 0) TRAP(7);
    return a / b;
#endif
}
int load(void *vmctx, int address) { return *(volatile int *)(MEMORY + (unsigned)address); }
int store(void *vmctx, int address, int value) { return *(volatile int *)(MEMORY + (unsigned)address) = value; }
NOINLINE int helper(char *at) { return *(volatile char *)at; }
NOINLINE int load_by_helper(void *vmctx, int address) { return helper(MEMORY + (unsigned)address) + 1; }
NOINLINE int outer(void *vmctx, int address) { return load_by_helper(vmctx, address) + 1; }

NOINLINE int recurse(void *vmctx, int n) {
    volatile int here = n;
    return recurse(vmctx, n + 1) + here;
}
NOINLINE int recurse_host(void *vmctx, int n) {
    volatile int here = thunk_0(vmctx, n);
    return recurse_host(vmctx, n + 1) + here;
}
// No guest can do this: sends itself SIGALRM, so that it is interrupted at a known place. `target` is process << 32 | thread.
#ifdef __x86_64__
#define TICK(target) \
    do { \
        register u64 result __asm__("rax") = 234; /* tgkill */ \
        __asm__ volatile("syscall" : "+a"(result) : "D"(target >> 32), "S"(target & 0xffffffff), "d"(14) : "rcx", "r11", "memory"); \
    } while (0)
#else
#define TICK(target) \
    do { \
        register u64 call __asm__("x8") = 131; /* tgkill */ \
        register u64 process __asm__("x0") = target >> 32; \
        register u64 thread __asm__("x1") = target & 0xffffffff; \
        register u64 signal __asm__("x2") = 14; \
        __asm__ volatile("svc 0" : "+r"(process) : "r"(call), "r"(thread), "r"(signal) : "memory"); \
    } while (0)
#endif
u64 tick(void *vmctx, u64 target) {
    for (;;) TICK(target);
}
// The same at every depth until the stack has no room for the signal: with small frames, and with frames larger than the kernel's.
NOINLINE u64 recurse_tick(void *vmctx, u64 target) {
    volatile u64 here = target;
    TICK(target);
    return recurse_tick(vmctx, target) + here;
}
NOINLINE u64 leap_tick(void *vmctx, u64 target) {
    u64 here[1500];
    here[0] = target;
    __asm__ volatile("" : : "r"(here) : "memory");
    TICK(target);
    return leap_tick(vmctx, target) + here[0];
}

NOINLINE int recurse_to(void *vmctx, int n) {
    volatile int here = n;
    return n == 0 ? 0 : recurse_to(vmctx, n - 1) + here - n + 1;
}

int grow(void *vmctx, int pages) {
    slot s[2] = {{0, 0}, {(unsigned)pages, 0}};
    HOST(0x80000000, s);
    return s[0].low;
}
void memory_init(void *vmctx, int to) {
    slot s[5] = {{0, 0}, {0, 0}, {(unsigned)to, 0}, {0, 0}, {4, 0}};
    HOST(0x80000001, s);
}
void data_drop(void *vmctx) {
    slot s[1] = {{0, 0}};
    HOST(0x80000002, s);
}
int table_grow(void *vmctx, int elements) {
    slot s[3] = {{0, 0}, {(unsigned)elements, 0}, {0, 0}};
    HOST(0x80000004, s);
    return s[0].low;
}
void no_such_builtin(void *vmctx) {
    slot s[5] = {{0, 0}};
    HOST(0x80000063, s);
}
void stray_slots(void *vmctx) {
    slot *s = (slot *)16;
    HOST(0, s);
}

int counter(void *vmctx) { return (int)AT(u64, GLOBAL_0)++; }
// Everything that a fresh sandbox has must be zero or from the image: the number of bytes in the memory that differ from it.
int foreign_bytes(void *vmctx) {
    u64 length = *AT(u64 *, MEMORY_BASE + 8);
    int found = 0;
    for (u64 i = 0; i < length; i++) found += MEMORY[i] != (i >= 16 && i < 20 ? "wasm"[i - 16] : 0);
    return found;
}
int scribble(void *vmctx, int value) {
    u64 length = *AT(u64 *, MEMORY_BASE + 8);
    for (u64 i = 0; i < length; i++) MEMORY[i] = (char)value;
    slot **elements = AT(slot **, TABLE_0);
    for (int i = 0; i < 4; i++) elements[0][i] = (slot){(unsigned)value, (unsigned)value};
    return (int)length;
}
// call_indirect without its checks: the callee's vmctx comes from the instance's index in the reference.
int call_element(void *vmctx, int index, int argument) {
    slot element = AT(slot **, TABLE_0)[0][index];
    if (!element.low) TRAP(5);
    void *callee = AT(void **, 16)[element.high >> 32];
    return ((int (*)(void *, int))element.low)(callee, argument);
}
void reference(void *vmctx, slot *result) { result[0] = AT(slot **, TABLE_0)[0][0]; }
typedef int (*unary)(void *, int);
int call_import(void *vmctx, int x) { return AT(unary, IMPORT_0)(AT(void *, IMPORT_0 + 8), x); }

int load_after_host(void *vmctx, int address) {
    thunk_0(vmctx, address);
    return load(vmctx, address);
}
// As generated code throws, where the module has tags: room, then a header of tag 0 and one value. Nothing catches it.
NOINLINE u64 throw_one(void *vmctx, u64 value) {
    volatile u64 *record = AT(volatile u64 *, EXCEPTIONS);
    if (record[1] - record[0] < 32) {
        slot s[1] = {{32, 0}};
        HOST(0x80000000 | EXCEPTION_ROOM, s);
    }
    u64 address = record[0];
    record[0] = address + 32;
    ((slot *)address)[0] = (slot){1ull << 32, 0};
    ((slot *)address)[1] = (slot){value, 0};
    return address;
}
u64 throw_host(void *vmctx, u64 value) {
    u64 exception = throw_one(vmctx, value);
    thunk_0(vmctx, 0);
    return ((slot *)exception)[1].low;
}
u64 throw_many(void *vmctx, u64 n) {
    for (u64 i = 0; i < n; i++) throw_one(vmctx, i);
    return n;
}

// An access that no sandbox owns: the process must end.
void wild(void *vmctx) { *(volatile int *)4096 = 1; }
