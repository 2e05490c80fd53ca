//! Where a guest is, in terms of its WebAssembly modules.

use std::fmt;
use std::ops::ControlFlow;

use awsm_abi::component::cut;
use awsm_abi::descriptor::TrapRow;

use crate::event::WasmLocation;
use crate::fiber::stack::Stack;
use crate::fiber::unwind;
use crate::limits::BACKTRACE_FRAMES_MAX;
use crate::load::Loaded;
use crate::store::Store;
use crate::sys::Registers;

/// How execution came to a place: functions, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backtrace {
    /// The functions.
    pub frames: Vec<Frame>,
    /// Whether more frames follow, which are not shown.
    pub truncated: bool,
}

/// A function that was being executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which function, and which of its instructions.
    pub location: WasmLocation,
    /// Its name from the name section or an export, demangled, as much as people are told of it.
    pub name: Option<String>,
    /// Its module and component instance, in words, if the artifact was made of a component.
    pub part: Option<String>,
    /// Whether its code had become part of another function's. The frames of functions between the two may be missing: artifacts know those of components.
    pub inlined: bool,
    /// Its source, as `file:line:column`, if the artifact was compiled with `--debug` from a module that knows.
    pub source: Option<String>,
}

impl fmt::Display for Backtrace {
    /// One line a frame, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, frame) in self.frames.iter().enumerate() {
            write!(f, "{}{i:>4}: {frame}", if i == 0 { "" } else { "\n" })?;
        }
        if self.truncated { f.write_str("\n      ...") } else { Ok(()) }
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            // Names come from the module: no control bytes of theirs reach a terminal.
            Some(name) => write!(f, "{}", name.escape_debug())?,
            None => write!(f, "function {}", self.location.function)?,
        }
        self.part.iter().try_for_each(|part| write!(f, " of {part}"))?;
        write!(f, " at wasm offset {:#x}{}", self.location.offset, if self.inlined { " (inlined)" } else { "" })?;
        self.source.iter().try_for_each(|source| write!(f, ", {source}"))
    }
}

/// Where a guest is suspended or has trapped.
pub(crate) struct Place<'a> {
    pub(crate) store: &'a Store,
    pub(crate) stack: &'a Stack,
    /// Its registers, and whether `pc` is a return address; none where it is nowhere.
    pub(crate) position: Option<(Registers, bool)>,
}

/// The artifact in whose code ranges an address lies.
fn artifact_at(store: &Store, pc: usize) -> Option<&Loaded> {
    let mut artifacts = store.instances.iter().map(|instance| instance.artifact().loaded());
    artifacts.find(|artifact| artifact.is_code(pc))
}

/// The row of the trap table for an instruction of guest code.
pub(crate) fn trap_row(store: &Store, pc: usize) -> Option<TrapRow> {
    artifact_at(store, pc)?.trap_row(pc)
}

/// What an address in guest code stands for, and the module and index of the function whose code it is; none for code that belongs to no function, such as entries and helpers.
fn frame_at(store: &Store, pc: usize) -> Option<(WasmLocation, (u32, u32), &Loaded)> {
    let artifact = artifact_at(store, pc)?;
    let native = artifact.function_at(pc)?;
    let place = artifact.trap_row(pc).and_then(|row| artifact.place(row.wasm_offset));
    let location = match place {
        Some(location) => location,
        // Before the first row of its function: in what prepares its frame.
        None => {
            let module = &artifact.descriptor.modules[native.module as usize];
            let defined = native.function - module.imported_functions();
            let offset = module.functions[defined as usize].wasm_start;
            WasmLocation { module: native.module, function: native.function, offset }
        }
    };
    Some((location, (native.module, native.function), artifact))
}

/// Calls `each` with the address of each instruction that is being executed, innermost first.
fn walk(place: &Place<'_>, mut each: impl FnMut(usize) -> ControlFlow<()>) {
    let Some((mut registers, mut is_return)) = place.position else { return };
    // More than frames that are shown: those of helpers and entries are passed over. A corrupt stack cannot make this longer.
    for _ in 0..4 * BACKTRACE_FRAMES_MAX {
        let pc = registers.pc().wrapping_sub(usize::from(is_return));
        let Some(artifact) = artifact_at(place.store, pc) else { return };
        if each(pc).is_break() {
            return;
        }
        match unwind::caller(artifact, &registers, pc, |address| place.stack.read_word(address)) {
            Some(caller) => (registers, is_return) = (caller, true),
            None => return,
        }
    }
}

/// The innermost place in a WebAssembly function.
pub(crate) fn innermost(place: &Place<'_>) -> Option<WasmLocation> {
    let mut innermost = None;
    walk(place, |pc| match frame_at(place.store, pc) {
        Some((location, ..)) => {
            innermost = Some(location);
            ControlFlow::Break(())
        }
        None => ControlFlow::Continue(()),
    });
    innermost
}

/// How execution came to a place.
pub(crate) fn backtrace(place: &Place<'_>) -> Backtrace {
    let (locations, truncated) = locations(place);
    let frames = locations.into_iter().map(|(artifact, location, inlined)| frame(artifact, location, inlined));
    Backtrace { frames: frames.collect(), truncated }
}

/// The places in functions by which execution came to a place, innermost first, and whether more follow. With each one the artifact that defines it, and whether its
/// code had become part of another's.
pub(crate) fn locations<'a>(place: &Place<'a>) -> (Vec<(&'a Loaded, WasmLocation, bool)>, bool) {
    let (mut locations, mut truncated) = (Vec::new(), false);
    walk(place, |pc| {
        let Some((location, native, artifact)) = frame_at(place.store, pc) else { return ControlFlow::Continue(()) };
        let mut around = artifact.inlined_at(pc);
        // An instruction that stands for none of the inlined function is one of its caller's.
        if around.first().is_some_and(|caller| (caller.module, caller.function) == (location.module, location.function)) {
            around.remove(0);
        }
        for location in std::iter::once(location).chain(around) {
            if locations.len() == BACKTRACE_FRAMES_MAX {
                truncated = true;
                return ControlFlow::Break(());
            }
            locations.push((artifact, location, (location.module, location.function) != native));
        }
        ControlFlow::Continue(())
    });
    (locations, truncated)
}

/// A frame at a place in a function that an artifact defines.
pub(crate) fn frame(artifact: &Loaded, location: WasmLocation, inlined: bool) -> Frame {
    let source = artifact.source(location.module, location.offset);
    let name = artifact.name(location.module, location.function).map(|name| cut(&name).to_owned());
    let part = artifact.descriptor.part(location.module, location.function);
    Frame { location, name, part, inlined, source }
}
