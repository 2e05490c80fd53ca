//! Calls made exceptional, in what awsm is given alone: a callee throws what it would return and its caller catches it, perhaps with a function in
//! between that throws it again; or it is called by a typed reference. The reference, which knows neither, runs the module as it was, and nothing
//! that is compared tells one from the other.

use crate::random::Random;
use crate::sections::{Body, Sections, Signature};
use anyhow::Result;
use std::collections::BTreeMap;
use wasm_encoder::{BlockType, Catch, Elements, Function, Instruction as I, RefType, TagKind, TagType, ValType};
use wasmparser::Operator;

/// Seeds of a hundred whose calls are changed: modules without exceptions have another convention of calls.
const SEEDS_PERCENT: u64 = 60;

/// The same module with such calls; the seed chooses which.
pub(crate) fn throwing(wasm: &[u8], seed: u64) -> Result<Vec<u8>> {
    let mut random = Random::new(seed, "throwing");
    if !random.chance(SEEDS_PERCENT) {
        return Ok(wasm.to_vec());
    }
    let mut throwing =
        Throwing { sections: Sections::read(wasm)?, throwers: BTreeMap::new(), added: Vec::new(), referred: Vec::new() };
    let mut bodies = Vec::new();
    for (i, body) in std::mem::take(&mut throwing.sections.bodies).iter().enumerate() {
        let spaces = &throwing.sections.spaces;
        let Some(signature) = spaces.signature(spaces.functions_imported + i).cloned() else { continue };
        let mut body = Body::read(body, &signature)?;
        for operator in std::mem::take(&mut body.operators) {
            match operator {
                Operator::Call { function_index } => throwing.call(&mut body, function_index, random.below(4)),
                Operator::ReturnCall { function_index } if random.chance(50) => {
                    let (callee, ty) = throwing.reference(function_index);
                    body.emit([callee, I::ReturnCallRef(ty)]);
                }
                other => body.keep(other)?,
            }
        }
        bodies.push(body.finish());
    }
    bodies.append(&mut throwing.added);
    throwing.referred.sort_unstable();
    throwing.referred.dedup();
    throwing.sections.elements.declared(Elements::Functions(throwing.referred.into()));
    Ok(throwing.sections.finish(&bodies))
}

/// A module whose calls are being changed.
struct Throwing<'a> {
    sections: Sections<'a>,
    /// For a function: its tag, the function that calls it and throws its result, and the function that passes the exception on.
    throwers: BTreeMap<u32, [u32; 3]>,
    added: Vec<Function>,
    referred: Vec<u32>,
}

impl Throwing<'_> {
    /// A call in one of four ways.
    fn call(&mut self, body: &mut Body<'_>, function: u32, way: u64) {
        let ty = self.sections.spaces.functions[function as usize];
        match way {
            0 => body.emit([I::Call(function)]),
            1 => {
                let (callee, ty) = self.reference(function);
                body.emit([callee, I::CallRef(ty)]);
            }
            _ => {
                let [tag, thrower, relay] = self.thrower(function);
                let callee = if way == 2 { thrower } else { relay };
                body.emit([
                    I::Block(BlockType::FunctionType(ty)),
                    I::TryTable(BlockType::FunctionType(ty), vec![Catch::One { tag, label: 0 }].into()),
                    I::Call(callee),
                    I::Unreachable,
                    I::End,
                    I::End,
                ]);
            }
        }
    }

    /// What makes a reference to a function, and its type.
    fn reference(&mut self, function: u32) -> (I<'static>, u32) {
        self.referred.push(function);
        (I::RefFunc(function), self.sections.spaces.functions[function as usize])
    }

    fn thrower(&mut self, function: u32) -> [u32; 3] {
        if let Some(&known) = self.throwers.get(&function) {
            return known;
        }
        let signature = self.sections.spaces.signature(function as usize).cloned();
        let Signature { params, results } = signature.expect("a function has a function's type");
        let func_type_idx = self.add_type(results, Vec::new());
        let tag = self.sections.tags.len();
        self.sections.tags.tag(TagType { kind: TagKind::Exception, func_type_idx });
        let arguments: Vec<_> = (0..params.len() as u32).map(I::LocalGet).collect();
        let ty = self.add_type(params, Vec::new());
        let thrower = self.add_function(ty, arguments.iter().cloned().chain([I::Call(function), I::Throw(tag)]));
        let caught = BlockType::Result(ValType::Ref(RefType::EXNREF));
        let before = [I::Block(caught), I::TryTable(BlockType::Empty, vec![Catch::AllRef { label: 0 }].into())];
        let after = [I::Call(thrower), I::End, I::Unreachable, I::End, I::ThrowRef];
        let relay = self.add_function(ty, before.into_iter().chain(arguments.iter().cloned()).chain(after));
        self.throwers.insert(function, [tag, thrower, relay]);
        [tag, thrower, relay]
    }

    fn add_type(&mut self, params: Vec<ValType>, results: Vec<ValType>) -> u32 {
        self.sections.types.ty().function(params.iter().copied(), results.iter().copied());
        self.sections.spaces.types.push(Some(Signature { params, results }));
        self.sections.spaces.types.len() as u32 - 1
    }

    fn add_function(&mut self, ty: u32, body: impl Iterator<Item = I<'static>>) -> u32 {
        let mut function = Function::new([]);
        for instruction in body.chain([I::End]) {
            function.instruction(&instruction);
        }
        self.added.push(function);
        self.sections.functions.function(ty);
        self.sections.spaces.functions.push(ty);
        self.sections.spaces.functions.len() as u32 - 1
    }
}
