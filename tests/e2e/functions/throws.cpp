// C++ with exceptions of either form, compiled with -fwasm-exceptions and -nostdlib++: what it needs of a C++ runtime is here.
typedef decltype(sizeof 0) size_t;
extern "C" {
void *malloc(size_t);
void free(void *);
[[noreturn]] void abort();
int snprintf(char *, size_t, const char *, ...);
size_t strlen(const char *);
}

// The runtime: Itanium's C++ ABI, as LLVM's WebAssembly back end uses it.

__asm__(".globl __cpp_exception\n.tagtype __cpp_exception i32\n__cpp_exception:\n");

struct TypeInfo {
  const void *kind;
  const char *name;
  const TypeInfo *base;
};

struct Exception {
  const TypeInfo *type;
  void *(*destructor)(void *);
  int handlers;
  Exception *next;
};

static Exception *caught;

extern "C" {
// A type with a base differs from one without by the virtual table of its description.
extern const void *class_type[4] __asm__("_ZTVN10__cxxabiv117__class_type_infoE");
const void *class_type[4];
extern const void *derived_type[4] __asm__("_ZTVN10__cxxabiv120__si_class_type_infoE");
const void *derived_type[4];

struct Context {
  size_t lpad_index;
  const unsigned char *lsda;
  size_t selector;
} __wasm_lpad_context;

void *__cxa_allocate_exception(size_t bytes) { return (Exception *)malloc(sizeof(Exception) + bytes) + 1; }
void __cxa_free_exception(void *object) { free((Exception *)object - 1); }

void __cxa_throw(void *object, const TypeInfo *type, void *(*destructor)(void *)) {
  Exception *exception = (Exception *)object - 1;
  *exception = {type, destructor, 0, nullptr};
  __builtin_wasm_throw(0, object);
}

void *__cxa_begin_catch(void *object) {
  Exception *exception = (Exception *)object - 1;
  exception->handlers = exception->handlers < 0 ? 1 - exception->handlers : exception->handlers + 1;
  if (exception != caught) exception->next = caught, caught = exception;
  return object;
}

void __cxa_end_catch() {
  Exception *exception = caught;
  if (exception->handlers < 0) {
    // Thrown again: the function that catches it next ends it.
    if (++exception->handlers == 0) caught = exception->next;
  } else if (--exception->handlers == 0) {
    caught = exception->next;
    if (exception->destructor) exception->destructor(exception + 1);
    __cxa_free_exception(exception + 1);
  }
}

void __cxa_rethrow() {
  caught->handlers = -caught->handlers;
  __builtin_wasm_throw(0, caught + 1);
}

static size_t uleb(const unsigned char *&at) {
  size_t value = 0;
  for (int shift = 0;; shift += 7) {
    value |= (size_t)(*at & 127) << shift;
    if (!(*at++ & 128)) return value;
  }
}

static int sleb(const unsigned char *&at) {
  int value = 0, shift = 0;
  do value |= (*at & 127) << shift, shift += 7;
  while (*at++ & 128);
  return shift < 32 && at[-1] & 64 ? value | -(1 << shift) : value;
}

// Which clause of the landing pad catches the exception: its number in the function's table of types.
static int clause(const TypeInfo *thrown) {
  const unsigned char *at = __wasm_lpad_context.lsda;
  if (*at++ != 0xff) abort();
  const TypeInfo *const *types = nullptr;
  if (*at++ != 0xff) {
    size_t bytes = uleb(at);
    types = (const TypeInfo *const *)(at + bytes);
  }
  ++at;
  size_t table = uleb(at);
  const unsigned char *actions = at + table;
  size_t action = 0;
  for (size_t i = 0; i <= __wasm_lpad_context.lpad_index; i++) uleb(at), action = uleb(at);
  if (action == 0) return 0;
  for (const unsigned char *entry = actions + action - 1;;) {
    int index = sleb(entry);
    const unsigned char *link = entry;
    int next = sleb(entry);
    const TypeInfo *wanted = index > 0 ? types[-index] : nullptr, *type = thrown;
    while (wanted && type && type != wanted) type = type->kind == &derived_type[2] ? type->base : nullptr;
    if (index > 0 && type) return index;
    if (next == 0) return 0;
    entry = link + next;
  }
}

int _Unwind_CallPersonality(void *object) {
  __wasm_lpad_context.selector = clause(((Exception *)object - 1)->type);
  return 0;
}

[[noreturn]] void _ZSt9terminatev() { abort(); }
int __gxx_wasm_personality_v0(...) { abort(); }
void __cxa_pure_virtual() { abort(); }
}

// The program.

static char text[400];
static void say(const char *what, int number) {
  size_t length = strlen(text);
  snprintf(text + length, sizeof text - length, "%s%d ", what, number);
}

struct Guard {
  int number;
  ~Guard() { say("~", number); }
};

struct Error {
  int code;
};
struct NotFound : Error {
  Guard guard;
};

struct Shape {
  virtual int area(int) = 0;
};
struct Square : Shape {
  int area(int side) override {
    if (side < 0) throw Error{side};
    return side * side;
  }
};

[[gnu::noinline]] static void dig(int depth) {
  Guard guard{depth};
  if (depth == 3) throw NotFound{{40 + depth}, {9}};
  dig(depth + 1);
}

[[gnu::noinline]] static Shape *shape() {
  static Square square;
  return &square;
}

extern "C" const char *run(const char *what) {
  text[0] = 0;
  switch (what[0]) {
  case 't': // By type: the base's handler takes it after the one that does not fit.
    try {
      try {
        dig(1);
      } catch (Guard &) {
        say("wrong", 0);
      }
    } catch (Error &error) {
      say("error ", error.code);
    }
    break;
  case 'r': // Thrown again, past a guard.
    try {
      try {
        dig(2);
      } catch (NotFound &error) {
        say("first ", error.code);
        Guard guard{7};
        throw;
      }
    } catch (...) {
      say("second ", 0);
    }
    break;
  case 'v': { // Through a virtual function, many times.
    int sum = 0;
    for (int i = 0; i < 200000; i++) {
      try {
        sum += shape()->area(i % 4 - 1);
      } catch (const Error &error) {
        sum += error.code;
      }
    }
    say("sum ", sum);
    break;
  }
  case 'n': // From a handler.
    try {
      try {
        throw Error{1};
      } catch (Error &error) {
        throw Error{error.code + 1};
      }
    } catch (Error &error) {
      say("nested ", error.code);
    }
    break;
  case 'u': dig(1);
  }
  return text;
}
