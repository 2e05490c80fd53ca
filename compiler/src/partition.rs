//! Dividing a module among code generators.
//!
//! A small module is one part. A large one is cut into parts of about [`PART_BYTES`] of bodies, in the order of the module, in which linkers put
//! near each other what belongs together; they are compiled apart from each other, on as many threads as there may be. Each part brings copies
//! of small functions that it calls in others, to inline them (LLVM's `available_externally`). Functions too large to be worth optimising are
//! parts of their own.
//!
//! What the parts are follows from the module alone, so that an artifact does not depend on the number of threads.

mod huge;

use std::collections::BTreeMap;
use std::ops::Range;

use awsm_abi::types::Bounds;
use wasmparser::Operator;

use self::huge::{Huge, find_huge};
use crate::error::CompileError;
use crate::linked::Linked;
use crate::module::{FuncId, FuncIdx, Module};
use crate::options::{CompileOptions, Effort, OptLevel};

/// Bodies up to which a module stays whole.
pub(crate) const WHOLE_BYTES: usize = 256 << 10;

/// Bodies in a part of a larger one.
const PART_BYTES: usize = 128 << 10;

/// Their number is a multiple of this, so that each of 2, 4 or 8 threads gets as many parts as the others.
const PARTS_MULTIPLE: usize = 8;

/// The largest body that is copied to another part.
const COPY_BYTES: usize = 160;

/// Calls over which copies follow each other.
const COPY_DEPTH: u32 = 3;

/// Functions that are compiled together.
pub(crate) struct Part {
    /// Which, in their order.
    pub(crate) functions: Vec<FuncIdx>,
    /// Functions of other parts that are there to be inlined.
    pub(crate) copies: Vec<FuncIdx>,
    /// How hard to optimise.
    pub(crate) effort: Effort,
    /// For a part that was made for a function that was given up: the function's place among all of these.
    pub(crate) apart: Option<usize>,
    /// Size of all bodies to translate.
    pub(crate) bytes: usize,
}

/// Parts that are compiled together: one of a large module, or the whole of several small ones that call each other, such as those of a component.
pub(crate) struct Joined<'a> {
    /// Each with the place of its module in the program.
    pub(crate) members: Vec<(usize, &'a Part)>,
}

impl Joined<'_> {
    /// Whether it has a part of that module of the program.
    pub(crate) fn has(&self, home: usize) -> bool {
        self.members.iter().any(|&(other, _)| other == home)
    }

    /// For a part that was made for a function that was given up: the function's place among all of these.
    pub(crate) fn apart(&self) -> Option<usize> {
        self.members.iter().find_map(|(_, part)| part.apart)
    }

    /// Size of all bodies to translate.
    pub(crate) fn bytes(&self) -> usize {
        self.members.iter().map(|(_, part)| part.bytes).sum()
    }

    /// Number of functions.
    pub(crate) fn functions(&self) -> usize {
        self.members.iter().map(|(_, part)| part.functions.len()).sum()
    }

    /// How hard to optimise: the same for all.
    pub(crate) fn effort(&self) -> Effort {
        self.members.first().map_or(Effort::Level(OptLevel::O0), |(_, part)| part.effort)
    }

    /// What is in it, for messages: of the largest member.
    pub(crate) fn description(&self, modules: &[Module<'_>]) -> String {
        let largest = self.members.iter().max_by_key(|(_, part)| part.bytes);
        largest.map_or_else(String::new, |&(home, part)| part.description(&modules[home]))
    }
}

/// Joins parts of a program's modules, given in their order: modules that are one part, of which there is one instance, up to the size of a module that stays whole.
/// What was given up stays apart, so that the others stay what they were.
pub(crate) fn join<'a>(
    modules: impl Iterator<Item = (&'a Module<'a>, &'a Plan)>,
    linked: &Linked,
    bounds: Bounds,
) -> Vec<Joined<'a>> {
    let mut joined: Vec<Joined<'a>> = Vec::new();
    // Where the last of the joined ones stands, and how large it is.
    let mut open: Option<(usize, usize)> = None;
    for (home, (module, plan)) in modules.enumerate() {
        let is_whole = plan.parts.iter().filter(|part| part.apart.is_none()).count() == 1;
        let bytes = bodies_bytes(module);
        let may_join = is_whole && linked.is_single(module) && bounds != Bounds::Segment && bytes <= WHOLE_BYTES;
        for part in &plan.parts {
            match open {
                Some((place, size)) if may_join && part.apart.is_none() && size + bytes <= WHOLE_BYTES => {
                    joined[place].members.push((home, part));
                    open = Some((place, size + bytes));
                }
                _ => {
                    if may_join && part.apart.is_none() {
                        open = Some((joined.len(), bytes));
                    }
                    joined.push(Joined { members: vec![(home, part)] });
                }
            }
        }
    }
    joined
}

/// What to tell about a function that was given up.
pub(crate) fn slow_warning(module: &Module<'_>, function: FuncIdx) -> String {
    let name = module.function_names.get(function.0 as usize).and_then(Option::as_deref).unwrap_or("");
    format!(
        "{}function {} {name:?} takes more than its share of the time limit: it is optimised as by -O 1, with fast register allocation",
        module.index.prefix(),
        function.0
    )
}

/// How a module is divided.
pub(crate) struct Plan {
    /// The parts; never empty. Entries and thunks belong to the first.
    pub(crate) parts: Vec<Part>,
    /// Whether code of another part calls the defined function.
    pub(crate) shared: Vec<bool>,
    /// What is too large for the level.
    pub(crate) huge: Vec<Huge>,
}

/// Divides a module. Its functions among `slow`, the program's that were given up before, become parts of their own behind those that there are
/// without them, whose numbers and other functions stay.
pub(crate) fn plan(module: &Module<'_>, options: &CompileOptions, slow: &[FuncId]) -> Result<Plan, CompileError> {
    let opt_level = options.opt_level;
    let huge = if opt_level > OptLevel::O0 { find_huge(module, opt_level)? } else { Vec::new() };
    let total = bodies_bytes(module);
    let count = if total <= WHOLE_BYTES { 1 } else { total.div_ceil(PART_BYTES).next_multiple_of(PARTS_MULTIPLE) };
    let mut parts = ranges(module, &huge, total.div_ceil(count));
    let effort = if options.given_up { Effort::GivenUp } else { Effort::Level(opt_level) };
    parts.iter_mut().for_each(|part| part.effort = effort);
    parts.extend(huge.iter().map(|huge| Part { functions: vec![huge.function], effort: huge.effort(), ..Part::empty() }));
    let slow = slow.iter().enumerate().filter(|(_, id)| id.module == module.index);
    slow.for_each(|(place, id)| set_apart(&mut parts, id.function, place));
    let mut plan = Plan { parts, shared: vec![false; module.bodies.len()], huge };
    if plan.parts.len() > 1 {
        plan.connect(module, opt_level)?;
    }
    for part in &mut plan.parts {
        let defined = part.functions.iter().chain(&part.copies).filter_map(|&function| module.defined(function));
        part.bytes = defined.map(|index| body_bytes(module, index)).sum();
    }
    Ok(plan)
}

/// Makes a function that was given up a part of its own. `place`: the function's among all of these.
fn set_apart(parts: &mut Vec<Part>, function: FuncIdx, place: usize) {
    // The first has entries besides.
    if let Some(alone) = parts.iter_mut().skip(1).find(|part| part.functions == [function]) {
        alone.effort = Effort::GivenUp;
        return;
    }
    parts.iter_mut().for_each(|part| part.functions.retain(|&other| other != function));
    parts.push(Part { functions: vec![function], effort: Effort::GivenUp, apart: Some(place), ..Part::empty() });
}

/// Size of all bodies.
pub(crate) fn bodies_bytes(module: &Module<'_>) -> usize {
    (0..module.bodies.len()).map(|index| body_bytes(module, index)).sum()
}

fn body_bytes(module: &Module<'_>, index: usize) -> usize {
    let Range { start, end } = module.bodies[index].range();
    (end - start) as usize
}

/// Parts of `part_bytes` on the average, of all functions but those that are huge.
fn ranges(module: &Module<'_>, huge: &[Huge], part_bytes: usize) -> Vec<Part> {
    let mut parts = vec![Part::empty()];
    let (mut bytes, mut end) = (0, part_bytes);
    for function in module.defined_functions() {
        let Some(index) = module.defined(function) else { continue };
        if huge.binary_search_by_key(&function, |huge| huge.function).is_ok() {
            continue;
        }
        if bytes >= end {
            parts.push(Part::empty());
            // Counted from the beginning, so that no small rest is left.
            end = (bytes / part_bytes + 1) * part_bytes;
        }
        bytes += body_bytes(module, index);
        if let Some(part) = parts.last_mut() {
            part.functions.push(function);
        }
    }
    parts
}

impl Part {
    const fn empty() -> Part {
        Part { functions: Vec::new(), copies: Vec::new(), effort: Effort::Level(OptLevel::O0), apart: None, bytes: 0 }
    }

    /// What is in it, for messages.
    pub(crate) fn description(&self, module: &Module<'_>) -> String {
        let size = |function: &FuncIdx| module.defined(*function).map_or(0, |index| body_bytes(module, index));
        let largest = self.functions.iter().copied().max_by_key(size);
        let (Some(first), Some(last), Some(largest)) = (self.functions.first(), self.functions.last(), largest) else {
            return format!("{}no functions", module.index.prefix());
        };
        let name = module.function_names[largest.0 as usize].as_deref().unwrap_or("");
        let module = module.index.prefix();
        format!("{module}functions {} to {}, the largest {} {name:?} with {} bytes", first.0, last.0, largest.0, size(&largest))
    }

    /// The functions that are worth watching, with their sizes: those into which less effort can go.
    pub(crate) fn to_watch(&self, module: &Module<'_>) -> impl Iterator<Item = (FuncId, usize)> {
        let is_watched = !matches!(self.effort, Effort::GivenUp | Effort::Level(OptLevel::O0));
        let functions = self.functions.iter().filter(move |_| is_watched);
        functions.filter_map(|&function| Some((module.id(function), body_bytes(module, module.defined(function)?))))
    }
}

impl Plan {
    /// Finds what parts call in each other, and what they copy from each other.
    fn connect(&mut self, module: &Module<'_>, opt_level: OptLevel) -> Result<(), CompileError> {
        let callees = module.bodies.iter().map(callees).collect::<Result<Vec<_>, _>>()?;
        let mut home = vec![0; module.bodies.len()];
        for (number, part) in self.parts.iter().enumerate() {
            for index in part.functions.iter().filter_map(|&function| module.defined(function)) {
                home[index] = number;
            }
        }
        for (number, part) in self.parts.iter_mut().enumerate() {
            let mut reached: BTreeMap<usize, u32> = BTreeMap::new();
            let mut pending: Vec<_> = part.functions.iter().filter_map(|&f| Some((module.defined(f)?, 0))).collect();
            while let Some((caller, depth)) = pending.pop() {
                for callee in callees[caller].iter().filter_map(|&function| module.defined(function)) {
                    if home[callee] == number {
                        continue;
                    }
                    self.shared[callee] = true;
                    let is_copied = opt_level > OptLevel::O0 && depth < COPY_DEPTH && body_bytes(module, callee) <= COPY_BYTES;
                    // Reached again over fewer calls, it may bring more.
                    if is_copied && reached.get(&callee).is_none_or(|&known| depth < known) {
                        reached.insert(callee, depth);
                        pending.push((callee, depth + 1));
                    }
                }
            }
            part.copies = reached.into_keys().map(|index| FuncIdx(module.imported_functions + index as u32)).collect();
        }
        Ok(())
    }
}

/// The functions that a body calls or whose addresses it takes, each once.
fn callees(body: &wasmparser::FunctionBody<'_>) -> Result<Vec<FuncIdx>, CompileError> {
    let mut callees = Vec::new();
    for operator in body.get_operators_reader()? {
        if let Operator::Call { function_index }
        | Operator::ReturnCall { function_index }
        | Operator::RefFunc { function_index } = operator?
        {
            callees.push(FuncIdx(function_index));
        }
    }
    callees.sort_unstable();
    callees.dedup();
    Ok(callees)
}

#[cfg(test)]
mod tests {
    use awsm_abi::limits::OPTIMISED_OPERATORS_MAX;

    use super::huge::{STRAIGHT_STORES_MAX, Size};
    use super::*;
    use crate::module::{ModuleIdx, parse};

    fn at(opt_level: OptLevel) -> CompileOptions {
        CompileOptions { opt_level, ..CompileOptions::default() }
    }

    /// `count` functions of `bytes` each, of which each calls the next.
    fn chain(count: usize, bytes: usize) -> Vec<u8> {
        let filler = "(drop (i32.const 1))".repeat(bytes / 3);
        let functions: String = (0..count).map(|i| format!("(func {filler} (call {}))", (i + 1) % count)).collect();
        wat::parse_str(format!("(module {functions})")).unwrap()
    }

    #[test]
    fn a_small_module_is_one_part_and_a_large_one_is_cut_in_order() {
        let small = chain(10, 1000);
        let plan_of = |wasm: &[u8]| plan(&parse(wasm, &CompileOptions::default(), &()).unwrap(), &at(OptLevel::O3), &[]).unwrap();
        assert_eq!(plan_of(&small).parts.len(), 1);
        let large = plan_of(&chain(1000, 1000));
        assert!(large.parts.len() > 4 && large.parts.iter().all(|part| part.bytes <= PART_BYTES + 4 * COPY_BYTES));
        let all: Vec<_> = large.parts.iter().flat_map(|part| &part.functions).map(|function| function.0).collect();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        // Of a chain, only the first of each part is called from another.
        assert_eq!(large.shared.iter().filter(|&&shared| shared).count(), large.parts.len());
        assert!(large.parts.iter().all(|part| part.copies.is_empty()), "bodies are too large to copy");
    }

    #[test]
    fn small_callees_are_copied_over_a_few_calls() {
        let plan = plan(&parse(&chain(4000, 90), &CompileOptions::default(), &()).unwrap(), &at(OptLevel::O3), &[]).unwrap();
        assert!(plan.parts.len() > 1);
        for part in &plan.parts {
            assert_eq!(part.copies.len(), COPY_DEPTH as usize);
            assert!(part.copies.iter().all(|copy| !part.functions.contains(copy) && plan.shared[copy.0 as usize]));
        }
    }

    #[test]
    fn a_huge_function_is_a_part_of_its_own() {
        let filler = "nop ".repeat(OPTIMISED_OPERATORS_MAX);
        let wasm = wat::parse_str(format!("(module (func call 1) (func {filler} call 2) (func))")).unwrap();
        let module = parse(&wasm, &CompileOptions::default(), &()).unwrap();
        let optimised = plan(&module, &at(OptLevel::O3), &[]).unwrap();
        assert_eq!(optimised.parts.len(), 2);
        assert_eq!(optimised.parts[0].functions, [FuncIdx(0), FuncIdx(2)]);
        assert!(optimised.parts[1].functions == [FuncIdx(1)] && optimised.parts[1].effort == Effort::Level(OptLevel::O1));
        assert_eq!(optimised.huge[0].size, Size::Operators(OPTIMISED_OPERATORS_MAX as u64 + 2));
        assert!(plan(&module, &at(OptLevel::O1), &[]).unwrap().huge.is_empty());
    }

    #[test]
    fn a_function_with_too_many_stores_in_a_row_is_compiled_quickly() {
        let store = "(i32.store offset=4 (global.get 0) (i32.add (global.get 0) (i32.const 1024)))";
        let (some, one_more) = (store.repeat(STRAIGHT_STORES_MAX), store);
        let broken = format!("{some} (if (global.get 0) (then)) {some}");
        let wasm = wat::parse_str(format!(
            "(module (memory 1) (global i32 (i32.const 8)) (func {some} {one_more}) (func {broken}) (func {some} (block {one_more})))"
        ));
        let wasm = wasm.unwrap();
        let module = parse(&wasm, &CompileOptions::default(), &()).unwrap();
        for level in [OptLevel::O1, OptLevel::O3] {
            let plan = plan(&module, &at(level), &[]).unwrap();
            let huge: Vec<_> = plan.huge.iter().map(|huge| (huge.function, huge.size)).collect();
            let size = Size::StraightStores(STRAIGHT_STORES_MAX + 1);
            assert_eq!(huge, [(FuncIdx(0), size), (FuncIdx(2), size)]);
            let alone = plan.parts.iter().filter(|part| part.effort == Effort::GivenUp && part.apart.is_none());
            assert_eq!(alone.flat_map(|part| part.functions.clone()).collect::<Vec<_>>(), [FuncIdx(0), FuncIdx(2)]);
        }
        assert!(plan(&module, &at(OptLevel::O0), &[]).unwrap().huge.is_empty(), "nothing there grows with the square");
    }

    #[test]
    fn a_slow_function_is_set_apart_and_other_parts_stay() {
        let wasm = chain(1000, 1000);
        let module = parse(&wasm, &CompileOptions::default(), &()).unwrap();
        let plan_of = |slow: &[FuncId]| plan(&module, &at(OptLevel::O3), slow).unwrap();
        let elsewhere = FuncId { module: ModuleIdx(1), function: FuncIdx(6) };
        let (before, after) = (plan_of(&[]), plan_of(&[elsewhere, module.id(FuncIdx(5))]));
        assert_eq!(after.parts.len(), before.parts.len() + 1);
        assert!(before.parts[1..].iter().zip(&after.parts[1..]).all(|(before, after)| before.functions == after.functions));
        assert!(!after.parts[0].functions.contains(&FuncIdx(5)) && after.parts[0].functions.contains(&FuncIdx(6)));
        let apart = after.parts.last().unwrap();
        assert!(apart.functions == [FuncIdx(5)] && apart.effort == Effort::GivenUp && apart.apart == Some(1));
        assert!(after.shared[5] && after.shared[6] && !before.shared[5], "the part calls it, and it the part");
    }
}
