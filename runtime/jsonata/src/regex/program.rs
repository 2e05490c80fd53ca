//! Trees into instructions.

use super::class::{Class, fold};
use super::pattern::{Pattern, Tree};

pub(super) struct Program {
    pub(super) instructions: Vec<Instruction>,
    /// Groups, without the whole match.
    pub(super) groups: usize,
    /// Start and end of each group, then counters and positions of repetitions.
    pub(super) registers: usize,
    pub(super) ignores_case: bool,
    pub(super) is_multiline: bool,
    /// Whether a match starts at the start of the text only.
    pub(super) is_anchored: bool,
    /// The character with which every match starts, if there is one.
    pub(super) first: Option<char>,
}

/// Instructions with `is_back` go towards the start of the text, in a look-behind.
pub(super) enum Instruction {
    Char {
        char: char,
        is_back: bool,
    },
    Any {
        is_back: bool,
    },
    Class {
        class: Class,
        is_back: bool,
    },
    Start,
    End,
    WordBoundary {
        is_negated: bool,
    },
    /// Sets a register to the position.
    Save {
        register: usize,
    },
    /// Forgets groups.
    Clear {
        first: usize,
        last: usize,
    },
    BackReference {
        group: usize,
        is_back: bool,
    },
    Jump {
        to: usize,
    },
    /// Goes on at the next instruction, or else there.
    Fork {
        other: usize,
    },
    /// Goes on there, or else at the next instruction.
    ForkLazy {
        other: usize,
    },
    Zero {
        counter: usize,
    },
    /// Begins a repetition, or ends them at `end`.
    Repeat {
        counter: usize,
        min: u32,
        max: u32,
        is_greedy: bool,
        end: usize,
    },
    /// Fails if the repetition that began at this position took nothing, and counts it.
    Again {
        counter: usize,
        position: usize,
        min: u32,
        to: usize,
    },
    /// Goes on after `end` if what follows matches here, or does not.
    Look {
        is_negated: bool,
        end: usize,
    },
    Accept,
}

pub(super) fn compile(pattern: &Pattern, ignores_case: bool, is_multiline: bool) -> Program {
    let mut compiler = Compiler { instructions: Vec::new(), registers: 2 * (pattern.groups + 1), ignores_case };
    compiler.tree(&pattern.tree, false);
    compiler.instructions.push(Instruction::Accept);
    Program {
        is_anchored: !is_multiline && is_anchored(&pattern.tree),
        first: first(&pattern.tree).filter(|_| !ignores_case),
        instructions: compiler.instructions,
        groups: pattern.groups,
        registers: compiler.registers,
        ignores_case,
        is_multiline,
    }
}

fn is_anchored(tree: &Tree) -> bool {
    match tree {
        Tree::Start => true,
        Tree::Concatenation(parts) => parts.first().is_some_and(is_anchored),
        Tree::Alternatives(all) => all.iter().all(is_anchored),
        Tree::Group(_, tree) => is_anchored(tree),
        _ => false,
    }
}

fn first(tree: &Tree) -> Option<char> {
    match tree {
        Tree::Char(char) => Some(*char),
        Tree::Concatenation(parts) => parts.first().and_then(first),
        Tree::Group(_, tree) => first(tree),
        Tree::Repeat(repeat) if repeat.min > 0 => first(&repeat.tree),
        _ => None,
    }
}

struct Compiler {
    instructions: Vec<Instruction>,
    registers: usize,
    ignores_case: bool,
}

impl Compiler {
    fn push(&mut self, instruction: Instruction) -> usize {
        self.instructions.push(instruction);
        self.instructions.len() - 1
    }

    fn register(&mut self) -> usize {
        self.registers += 1;
        self.registers - 1
    }

    fn tree(&mut self, tree: &Tree, is_back: bool) {
        match tree {
            Tree::Char(char) => {
                let char = if self.ignores_case { fold(*char) } else { *char };
                self.push(Instruction::Char { char, is_back });
            }
            Tree::Any => {
                self.push(Instruction::Any { is_back });
            }
            Tree::Class(class) => {
                self.push(Instruction::Class { class: class.clone(), is_back });
            }
            Tree::Start => {
                self.push(Instruction::Start);
            }
            Tree::End => {
                self.push(Instruction::End);
            }
            Tree::WordBoundary(is_negated) => {
                self.push(Instruction::WordBoundary { is_negated: *is_negated });
            }
            Tree::BackReference(group) => {
                self.push(Instruction::BackReference { group: *group, is_back });
            }
            Tree::Concatenation(parts) if is_back => parts.iter().rev().for_each(|part| self.tree(part, is_back)),
            Tree::Concatenation(parts) => parts.iter().for_each(|part| self.tree(part, is_back)),
            Tree::Alternatives(all) => self.alternatives(all, is_back),
            Tree::Group(number, tree) => {
                let (start, end) = (2 * number, 2 * number + 1);
                self.push(Instruction::Save { register: if is_back { end } else { start } });
                self.tree(tree, is_back);
                self.push(Instruction::Save { register: if is_back { start } else { end } });
            }
            Tree::Repeat(repeat) => self.repeat(repeat, is_back),
            Tree::Look(look) => {
                let at = self.push(Instruction::Look { is_negated: look.is_negated, end: 0 });
                self.tree(&look.tree, !look.is_ahead);
                let accept = self.push(Instruction::Accept);
                if let Some(Instruction::Look { end, .. }) = self.instructions.get_mut(at) {
                    *end = accept + 1;
                }
            }
        }
    }

    fn alternatives(&mut self, all: &[Tree], is_back: bool) {
        let mut jumps = Vec::new();
        for (index, tree) in all.iter().enumerate() {
            if index + 1 == all.len() {
                self.tree(tree, is_back);
                break;
            }
            let fork = self.push(Instruction::Fork { other: 0 });
            self.tree(tree, is_back);
            jumps.push(self.push(Instruction::Jump { to: 0 }));
            let next = self.instructions.len();
            if let Some(Instruction::Fork { other }) = self.instructions.get_mut(fork) {
                *other = next;
            }
        }
        let end = self.instructions.len();
        for jump in jumps {
            if let Some(Instruction::Jump { to }) = self.instructions.get_mut(jump) {
                *to = end;
            }
        }
    }

    fn repeat(&mut self, repeat: &super::pattern::Repeat, is_back: bool) {
        let (first, last) = repeat.groups;
        let takes_one = matches!(repeat.tree, Tree::Char(_) | Tree::Any | Tree::Class(_));
        if takes_one && repeat.min <= 1 && repeat.max == u32::MAX {
            if repeat.min == 1 {
                self.tree(&repeat.tree, is_back);
            }
            let at = self.instructions.len();
            self.push(if repeat.is_greedy {
                Instruction::Fork { other: at + 3 }
            } else {
                Instruction::ForkLazy { other: at + 3 }
            });
            self.tree(&repeat.tree, is_back);
            self.push(Instruction::Jump { to: at });
            return;
        }
        let (counter, position) = (self.register(), self.register());
        let (min, max, is_greedy) = (repeat.min, repeat.max, repeat.is_greedy);
        self.push(Instruction::Zero { counter });
        let at = self.push(Instruction::Repeat { counter, min, max, is_greedy, end: 0 });
        self.push(Instruction::Save { register: position });
        if first < last {
            self.push(Instruction::Clear { first, last });
        }
        self.tree(&repeat.tree, is_back);
        let again = self.push(Instruction::Again { counter, position, min, to: at });
        if let Some(Instruction::Repeat { end, .. }) = self.instructions.get_mut(at) {
            *end = again + 1;
        }
    }
}
