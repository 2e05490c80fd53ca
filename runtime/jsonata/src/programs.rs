//! Expressions that an evaluation parses itself (`$eval`), kept until its end, because values refer to them.

use std::cell::OnceCell;

use crate::ast::Ast;

/// A list that only grows, so that what is in it can be referred to.
#[derive(Default)]
pub(crate) struct Programs {
    first: OnceCell<Box<Link>>,
}

struct Link {
    ast: Ast,
    next: OnceCell<Box<Link>>,
}

/// Expressions that one evaluation parses.
const PROGRAMS_MAX: usize = 1000;

impl Programs {
    /// Keeps an expression; none if there are too many.
    pub(crate) fn keep(&self, ast: Ast) -> Option<&Ast> {
        let mut cell = &self.first;
        for _ in 0..PROGRAMS_MAX {
            match cell.get() {
                Some(link) => cell = &link.next,
                None => return Some(&cell.get_or_init(|| Box::new(Link { ast, next: OnceCell::new() })).ast),
            }
        }
        None
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let mut next = self.first.take();
        while let Some(mut link) = next {
            next = link.next.take();
        }
    }
}
