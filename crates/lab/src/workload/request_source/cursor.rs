//! Where a direction of a job is in a file: the plain orders, in blocks of one size.

use crate::workload::permutation::{Permutation, below, split_mix};
use crate::workload::target::Span;
use model::plan::Order;

#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub begin: u64,
    pub blocks: u64,
    pub position: Position,
}

#[derive(Clone, Debug)]
pub(super) enum Position {
    Next(u64),
    Walk(Permutation),
    Draw(u64),
}

impl Cursor {
    /// Blocks until it is at its end.
    pub fn left(&self) -> u64 {
        match &self.position {
            Position::Next(next) => self.blocks.saturating_sub(*next),
            Position::Walk(walk) => walk.left().min(self.blocks),
            Position::Draw(_) if self.blocks > 0 => u64::MAX,
            Position::Draw(_) => 0,
        }
    }

    #[inline(always)]
    pub fn step(&mut self) -> u64 {
        match &mut self.position {
            Position::Next(next) => {
                let block = if *next >= self.blocks { 0 } else { *next };
                *next = block + 1;
                block
            }
            Position::Walk(walk) => walk.step(),
            Position::Draw(state) => below(split_mix(state), self.blocks),
        }
    }

    pub fn restart(&mut self) {
        match &mut self.position {
            Position::Next(next) => *next = 0,
            Position::Walk(walk) => walk.restart(),
            Position::Draw(_) => {}
        }
    }
}

/// Blocks that a part of a file has room for. In sequential order the last one may reach beyond the part, as in fio, if
/// the file does.
pub(super) fn blocks(span: &Span, order: Order, length: u64) -> u64 {
    match order {
        Order::Random => span.length / length,
        Order::Sequential => span.length.div_ceil(length).min(span.length.saturating_add(span.beyond) / length),
    }
}
