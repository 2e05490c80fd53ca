//! Generated core modules, in the text format: the state of a component, and the wrappers between its core code and what it calls.
//!
//! A glue module is generated for what one instance of the component imports from it, by the memory that it works on, and becomes an instance just before that
//! instance. Everything in it is small, so that it is inlined where it is called.

mod builtins;
mod copiers;
mod operations;
mod root;
mod state;
mod streams;
mod tasks;

use std::fmt::Write as _;

use awsm_abi::component::{self as abi, Violation};
use awsm_abi::types::ValType;

pub(super) use builtins::Builtin;
pub(super) use operations::{ENTRIES_PER_OPERATION, Loaded, Operation};
pub(super) use root::{ENTRIES_PER_ROOT, Returned, Root, RootKind};
pub(super) use state::{Concurrency, MAY_BLOCK, Row, State, flags};
pub(super) use streams::{Copied, End, EndParam, EndResult, Ends, Form};
pub(super) use tasks::{Adapter, ENTRIES_PER_ADAPTER};

/// The index of the state's instance in the plan: the first.
const STATE: usize = 0;
/// Export of the state's memory.
const MEMORY: &str = "memory";
/// Locals of [`Glue::place_result`].
const PLACE_LOCALS: &str = "(local $next i64) (local $at i32) (local $slot_0 i32) (local $slot_1 i32)";
/// Module name under which glue imports from other instances. Each import has a name of its own.
pub(super) const LINKED: &str = "component";

/// A function that glue calls, or a memory on which it works: an export of an earlier instance of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Source {
    /// Index of the instance in the plan.
    pub(super) instance: usize,
    /// Name of its export.
    pub(super) export: String,
}

impl Source {
    /// An export of the state.
    pub(super) fn state(export: impl Into<String>) -> Source {
        Source { instance: STATE, export: export.into() }
    }
}

/// The type of a core function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) params: Vec<ValType>,
    pub(super) results: Vec<ValType>,
}

impl Signature {
    pub(super) fn new(params: &[ValType], results: &[ValType]) -> Signature {
        Signature { params: params.to_vec(), results: results.to_vec() }
    }
}

/// Writes `(param ...) (result ...)`.
fn signature(params: &[ValType], results: &[ValType]) -> String {
    let list = |what: &str, types: &[ValType]| match types {
        [] => String::new(),
        types => format!(" ({what} {})", types.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
    };
    list("param", params) + &list("result", results)
}

/// A glue module in the making.
#[derive(Debug, Default)]
pub(super) struct Glue {
    imports: String,
    functions: String,
    /// What it imports from other instances, each as its own name.
    linked: Vec<Source>,
    /// What it imports from the host.
    host: Vec<(String, String)>,
    exports: usize,
}

/// A call of a component that the host answers.
#[derive(Debug)]
pub(super) struct Lowered<'a> {
    /// The interface with its track.
    pub(super) interface: &'a str,
    pub(super) function: &'static abi::Function,
    /// Component instance that calls.
    pub(super) instance: u32,
    /// Address of its handle table.
    pub(super) table: u32,
    /// How it encodes strings, as a number of [`abi::strings`].
    pub(super) encoding: u32,
    /// Where memory for results comes from.
    pub(super) realloc: Option<Source>,
    /// Whether there are tasks.
    pub(super) has_tasks: bool,
}

impl Lowered<'_> {
    /// What the host function gets first.
    const fn table_and_encoding(&self) -> u32 {
        self.table | self.encoding
    }
}

impl Glue {
    /// One that works on a memory of the component, if it is given one. The state's memory is always its last.
    pub(super) fn new(memory: Option<&Source>) -> Glue {
        let mut glue = Glue::default();
        for memory in memory.into_iter().chain([&Source::state(MEMORY)]) {
            glue.link(memory, |name| format!("(memory {name} 0)"));
        }
        glue
    }

    /// One that copies from one memory of the component to another.
    pub(super) fn between(from: &Source, to: &Source) -> Glue {
        let mut glue = Glue::default();
        for memory in [from, to] {
            glue.link(memory, |name| format!("(memory {name} 0)"));
        }
        glue
    }

    /// Imports what another instance exports, once. The name that stands for it in the text.
    fn link(&mut self, source: &Source, item: impl FnOnce(&str) -> String) -> String {
        let position = self.linked.iter().position(|known| known == source);
        let index = position.unwrap_or(self.linked.len());
        let name = format!("$linked{index}");
        if position.is_none() {
            self.linked.push(source.clone());
            let _ = writeln!(self.imports, "(import \"{LINKED}\" \"{index}\" {})", item(&name));
        }
        name
    }

    /// A function of another instance.
    pub(super) fn function(&mut self, source: &Source, params: &[ValType], results: &[ValType]) -> String {
        self.link(source, |name| format!("(func {name}{})", signature(params, results)))
    }

    /// A mutable global of another instance.
    fn global(&mut self, source: &Source) -> String {
        self.link(source, |name| format!("(global {name} (mut i32))"))
    }

    /// A function of the host, once.
    pub(super) fn host(&mut self, module: &str, field: &str, params: &[ValType], results: &[ValType]) -> String {
        let key = (module.to_owned(), field.to_owned());
        let position = self.host.iter().position(|known| *known == key);
        let index = position.unwrap_or(self.host.len());
        let name = format!("$host{index}");
        if position.is_none() {
            self.host.push(key);
            let signature = signature(params, results);
            let _ = writeln!(self.imports, "(import \"{module}\" \"{field}\" (func {name}{signature}))");
        }
        name
    }

    /// A function of [`abi::CANONICAL`].
    pub(super) fn canonical(&mut self, field: &str) -> String {
        let function = abi::CANONICAL_FUNCTIONS.iter().find(|function| function.name == field);
        let (params, results) = function.map_or((&[][..], &[][..]), |function| (function.params, function.results));
        self.host(abi::CANONICAL, field, params, results)
    }

    /// The next export's name.
    fn next_export(&mut self) -> String {
        let name = self.exports.to_string();
        self.exports += 1;
        name
    }

    /// A function of the module; the name under which it is exported.
    pub(super) fn export(&mut self, signature_of: &Signature, locals: &str, body: &str) -> String {
        let name = self.next_export();
        self.export_as(&name, signature_of, locals, body);
        name
    }

    /// The same under a name.
    pub(super) fn export_as(&mut self, name: &str, ty: &Signature, locals: &str, body: &str) {
        let signature = signature(&ty.params, &ty.results);
        let _ = writeln!(self.functions, "(func (export \"{name}\"){signature} {locals}\n{body})");
    }

    /// What ends the invocation with a number of [`Violation`].
    pub(super) fn trap(&mut self) -> String {
        self.function(&Source::state("trap"), &[ValType::I32], &[])
    }

    /// Traps unless a component instance may call out.
    fn leave(&mut self, instance: u32) -> String {
        let flags = self.global(&Source::state(flags(instance)));
        let trap = self.function(&Source::state("trap"), &[ValType::I32], &[]);
        let violation = Violation::MayNotLeave as u32;
        format!("(if (i32.eqz (global.get {flags})) (then (call {trap} (i32.const {violation}))))\n")
    }

    /// The wrapper of a call that the host answers.
    pub(super) fn lower(&mut self, call: &Lowered<'_>, ty: &Signature) -> String {
        let &Lowered { interface, function, instance, table, .. } = call;
        let mut body = self.leave(instance);
        let reserve = self.function(&Source::state("reserve"), &[ValType::I32], &[]);
        let _ = writeln!(body, "(call {reserve} (i32.const {table}))");
        let params: Vec<ValType> = std::iter::once(ValType::I32).chain(ty.params.iter().copied()).collect();
        let results = if function.allocates { &[ValType::I32][..] } else { &ty.results };
        let host = self.host(interface, function.name, &params, results);
        let arguments: String = (0..ty.params.len()).map(|index| format!(" (local.get {index})")).collect();
        let host_call = format!("(call {host} (i32.const {}){arguments})", call.table_and_encoding());
        if function.allocates {
            let place = self.place_result(instance, call.realloc.as_ref(), call.has_tasks);
            let _ = writeln!(body, "(if {host_call} (then {place}))");
            self.export(ty, PLACE_LOCALS, &body)
        } else {
            let _ = writeln!(body, "{host_call}");
            self.export(ty, "", &body)
        }
    }

    /// Has the component allocate what a result needs. The component cannot call out meanwhile, and sees no task's context: what runs may be a task of another instance.
    fn place_result(&mut self, instance: u32, realloc: Option<&Source>, has_tasks: bool) -> String {
        let Some(realloc) = realloc else { return String::from("unreachable") };
        let flags = self.global(&Source::state(flags(instance)));
        let realloc = self.function(realloc, &[ValType::I32; 4], &[ValType::I32]);
        let resume = self.canonical(abi::RESUME);
        let done = abi::RESUME_DONE;
        let (mut save, mut clear, mut restore) = (String::new(), String::new(), String::new());
        for slot in 0..if has_tasks { 2 } else { 0 } {
            let get = self.function(&Source::state(format!("context get {slot}")), &[], &[ValType::I32]);
            let set = self.function(&Source::state(format!("context set {slot}")), &[ValType::I32], &[]);
            let _ = write!(save, "(local.set $slot_{slot} (call {get}))");
            let _ = write!(clear, "(call {set} (i32.const 0))");
            let _ = write!(restore, "(call {set} (local.get $slot_{slot}))");
        }
        format!(
            "{save}
             (global.set {flags} (i32.const 0))
             (local.set $at (i32.const 0))
             (block $done (loop $more
               (local.set $next (call {resume} (local.get $at)))
               (br_if $done (i64.eq (local.get $next) (i64.const {done})))
               {clear}
               (local.set $at
                 (call {realloc}
                   (i32.const 0)
                   (i32.const 0)
                   (i32.wrap_i64 (i64.shr_u (local.get $next) (i64.const 32)))
                   (i32.wrap_i64 (local.get $next))))
               (br $more)))
             (global.set {flags} (i32.const 1))
             {restore}"
        )
    }

    /// A function that is not supported: a call of it traps, for what the caller has done wrong or else for that.
    pub(super) fn unsupported(&mut self, instance: u32, ty: &Signature) -> String {
        let leave = self.leave(instance);
        let trap = self.function(&Source::state("trap"), &[ValType::I32], &[]);
        let body = format!("{leave}(call {trap} (i32.const {}))\nunreachable", Violation::Unsupported as u32);
        self.export(ty, "", &body)
    }

    /// `resource.new` of a resource that the instance defines.
    pub(super) fn resource_new(&mut self, instance: u32, table: u32, resource: u32) -> String {
        let leave = self.leave(instance);
        let new = self.function(&Source::state("new"), &[ValType::I32; 3], &[ValType::I32]);
        let body = format!("{leave}(call {new} (i32.const {table}) (i32.const {resource}) (local.get 0))");
        self.export(&Signature::new(&[ValType::I32], &[ValType::I32]), "", &body)
    }

    /// `resource.rep`.
    pub(super) fn resource_rep(&mut self, table: u32, resource: u32) -> String {
        let rep = self.function(&Source::state("rep"), &[ValType::I32; 3], &[ValType::I32]);
        let body = format!("(call {rep} (i32.const {table}) (i32.const {resource}) (local.get 0))");
        self.export(&Signature::new(&[ValType::I32], &[ValType::I32]), "", &body)
    }

    /// `resource.drop`.
    /// `throws`: whether a destructor may throw; nothing that it throws reaches the component that drops.
    pub(super) fn resource_drop(&mut self, instance: u32, table: u32, resource: u32, end: &Destructor, throws: bool) -> String {
        let leave = self.leave(instance);
        let drop = self.function(&Source::state("drop"), &[ValType::I32; 3], &[ValType::I64]);
        let called = match end {
            Destructor::None => None,
            Destructor::Host => Some(self.canonical(abi::DROP)),
            Destructor::Guest { function, .. } => Some(self.function(function, &[ValType::I32], &[])),
        };
        let mut locals = String::from("(local $dropped i64)");
        let dropped = format!("(call {drop} (i32.const {table}) (i32.const {resource}) (local.get 0))");
        let body = match called {
            None => format!("{leave}(drop {dropped})"),
            Some(called) => {
                let mut call = format!("(call {called} (i32.wrap_i64 (local.get $dropped)))");
                if throws {
                    let trap = self.function(&Source::state("trap"), &[ValType::I32], &[]);
                    let violation = Violation::UncaughtException as u32;
                    call = format!(
                        "(block $done (block $thrown (try_table (catch_all $thrown) {call}) (br $done))
                           (call {trap} (i32.const {violation})))"
                    );
                }
                if let &Destructor::Guest { home: Some(home), .. } = end {
                    let enter = self.function(&Source::state("enter destructor"), &[ValType::I32], &[]);
                    let exit = self.function(&Source::state("exit"), &[], &[]);
                    let may_block = self.global(&Source::state(MAY_BLOCK));
                    locals.push_str("(local $may_block i32)");
                    call = format!(
                        "(local.set $may_block (global.get {may_block}))
                         (global.set {may_block} (i32.const 0))
                         (call {enter} (i32.const {home}))
                         {call}
                         (call {exit})
                         (global.set {may_block} (local.get $may_block))"
                    );
                }
                format!(
                    "{leave}(local.set $dropped {dropped})
                     (if (i64.ge_u (local.get $dropped) (i64.const 0x100000000)) (then {call}))"
                )
            }
        };
        self.export(&Signature::new(&[ValType::I32], &[]), &locals, &body)
    }

    /// A function of `transcode.wat`, in glue [between](Self::between) two memories; the name of its export.
    pub(super) fn transcoder(&mut self, name: &str) -> String {
        if self.exports == 0 {
            let trap = self.function(&Source::state("trap"), &[ValType::I32], &[]);
            let trap_of = self.function(&Source::state("trap of"), &[ValType::I32; 2], &[]);
            let _ = writeln!(
                self.functions,
                "(func $trap (param $code i32) (call {trap} (local.get $code)) unreachable)
                 (func $trap_of (param $code i32) (param $value i32)
                   (call {trap_of} (local.get $code) (local.get $value)) unreachable)"
            );
            self.functions.push_str(include_str!("../transcode.wat"));
            self.exports += 1;
        }
        name.to_owned()
    }

    /// What calls a post-return function of an instance, which may not call out meanwhile.
    pub(super) fn post_return(&mut self, function: &Source, instance: u32, ty: &Signature) -> String {
        let flags = self.global(&Source::state(flags(instance)));
        let called = self.function(function, &ty.params, &ty.results);
        let arguments: String = (0..ty.params.len()).map(|index| format!(" (local.get {index})")).collect();
        let body = format!(
            "(local.set $flags (global.get {flags}))
             (global.set {flags} (i32.const 0))
             (call {called}{arguments})
             (global.set {flags} (local.get $flags))"
        );
        self.export(ty, "(local $flags i32)", &body)
    }

    /// The module's text, and what it imports from other instances, by the names 0, 1, ....
    pub(super) fn finish(self) -> (String, Vec<Source>) {
        (format!("(module $glue\n{}{})\n", self.imports, self.functions), self.linked)
    }
}

/// What ends a resource.
#[derive(Debug)]
pub(super) enum Destructor {
    /// Nothing.
    None,
    /// The host.
    Host,
    /// A function of the component. `home`: the instance that defines it, where another one drops and there are tasks: it runs as a call of its own.
    Guest { function: Source, home: Option<u32> },
}
