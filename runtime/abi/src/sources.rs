//! Files that users have instead of a module: what each is, and what can be done with it.

/// What a file is by the ending of its name, if that is known and no WebAssembly module or artifact; and what to do.
#[must_use]
pub fn known(extension: &str) -> Option<(&'static str, &'static str)> {
    Some(match extension {
        "c" => ("C", "`awsm compile` makes a function of it"),
        "rs" => ("Rust", "`awsm compile` makes a function of it"),
        "wat" => ("WebAssembly in the text format", "`awsm compile` makes a function of it"),
        "cpp" | "cc" | "cxx" | "c++" | "C" => ("C++", "`awsm compile` makes a function of it"),
        "go" => ("Go", GO),
        "py" | "pyc" => ("Python", PYTHON),
        "js" | "mjs" | "cjs" => ("JavaScript", JAVASCRIPT),
        "ts" | "tsx" | "jsx" => ("TypeScript", JAVASCRIPT),
        "rb" => ("Ruby", SCRIPT),
        "php" => ("PHP", SCRIPT),
        "lua" => ("Lua", SCRIPT),
        "sh" => ("a shell script", SCRIPT),
        "java" | "jar" | "class" | "kt" => ("code for a Java virtual machine", OTHER),
        "cs" => ("C#", OTHER),
        "swift" => ("Swift", OTHER),
        "zig" => ("Zig", OTHER),
        "h" => ("a C header", "give the .c file that includes it"),
        "hpp" | "hh" | "hxx" => ("a C++ header", "give the .cpp file that includes it"),
        "o" | "a" => ("an object file or library", "give the source, or the module (.wasm) that it was linked to"),
        _ => return None,
    })
}

/// What to do with Go.
pub const GO: &str = "its own compiler makes a module of it: GOOS=wasip1 GOARCH=wasm go build -o NAME.wasm; `sledge new NAME --lang go` makes a project \
                      that does so";

const PYTHON: &str = "componentize-py makes a component of it: pip install componentize-py; componentize-py -d WIT_FOLDER -w WORLD componentize MODULE \
                      -o NAME.wasm; awsm compile -O 0 NAME.wasm. `sledge new NAME --lang python` makes a project that does so";

const JAVASCRIPT: &str = "componentize-js makes a component of it (of TypeScript after tsc): npm install @bytecodealliance/componentize-js; \
                          npx componentize-js FILE.js --wit WIT_FOLDER -n WORLD -o NAME.wasm; awsm compile -O 0 NAME.wasm. `sledge new NAME --lang js` makes \
                          a project that does so";

const SCRIPT: &str = "it is not supported: what runs is WebAssembly, which `awsm compile` makes of C, C++ and Rust, and Go's compiler of Go; an interpreter \
                      that was built for wasm32-wasip1 can run it (`sledge run INTERPRETER.wasm --dir . -- FILE`)";

const OTHER: &str = "it is not supported: what runs is WebAssembly, which `awsm compile` makes of C, C++ and Rust; give a module (.wasm) that another \
                     compiler made of it for wasm32-wasip1";
