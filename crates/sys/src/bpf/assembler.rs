//! An assembler of BPF instructions: registers, widths and conditions are types, and jumps go to labels.
//!
//! It only puts instructions together. Whether a program is safe is for the kernel's verifier to decide.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};

/// A register. R0 has results, R1 to R5 have arguments and are lost in calls, R6 to R9 keep their values, and R10 is
/// the end of the stack (512 bytes below it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are all there is to say")]
pub enum Register {
    R0 = 0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// How much memory an instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 4 bytes.
    Four = 0x00,
    /// 8 bytes.
    Eight = 0x18,
}

/// Arithmetic with 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are all there is to say")]
pub enum Operation {
    Add = 0x00,
    Subtract = 0x10,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Move = 0xb0,
}

/// When a jump is taken; numbers are unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are all there is to say")]
pub enum Condition {
    Equal = 0x10,
    AtLeast = 0x30,
    NotEqual = 0x50,
    Below = 0xa0,
}

/// A function of the kernel that programs may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// (map, address of a key) → address of the value, or 0.
    MapLookup = 1,
    /// (map, address of a key, address of a value, flags) → 0 or an error.
    MapUpdate = 2,
    /// → CLOCK_MONOTONIC in nanoseconds.
    Nanoseconds = 5,
    /// → number of this CPU.
    ThisCpu = 8,
    /// → process in the upper 32 bits, thread in the lower; of the initial namespace of processes; 0 for idle tasks.
    ProcessAndThread = 14,
    /// (address, size): writes the name of the current task.
    TaskName = 16,
    /// → address of the current `task_struct`.
    Task = 35,
    /// (address, size, kernel address) → 0 or an error: copies kernel memory.
    ReadKernel = 113,
}

/// A place in a program.
#[derive(Clone, Copy, Debug)]
pub struct Label(usize);

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u8,
    /// The destination in the lower half, the source in the upper.
    registers: u8,
    offset: i16,
    constant: i32,
}

/// A complete program. The maps that it uses stay open until it is loaded.
#[derive(Clone, Debug)]
pub struct Code<'maps> {
    pub(super) instructions: Vec<Instruction>,
    maps: PhantomData<&'maps ()>,
}

/// Assembles a program.
#[derive(Debug, Default)]
pub struct Assembler<'maps> {
    instructions: Vec<Instruction>,
    /// The instruction at each label.
    places: Vec<Option<usize>>,
    /// Each jump, and its label.
    jumps: Vec<(usize, Label)>,
    maps: PhantomData<&'maps ()>,
}

const CLASS_LOAD_CONSTANT: u8 = 0x18;
const CLASS_LOAD: u8 = 0x61;
const CLASS_STORE_CONSTANT: u8 = 0x62;
const CLASS_STORE: u8 = 0x63;
/// An atomic operation on 8 bytes.
const CLASS_ATOMIC: u8 = 0xdb;
const CLASS_ARITHMETIC_32: u8 = 0x04;
const CLASS_JUMP: u8 = 0x05;
const CLASS_ARITHMETIC: u8 = 0x07;
/// The operand is a register instead of a constant.
const WITH_REGISTER: u8 = 0x08;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const ATOMIC_ADD: i32 = 0x00;
const ATOMIC_EXCHANGE: i32 = 0xe1;
const ATOMIC_COMPARE_EXCHANGE: i32 = 0xf1;
/// The source of [`CLASS_LOAD_CONSTANT`] when the constant is the descriptor of a map.
const MAP_DESCRIPTOR: u8 = 1;

impl<'maps> Assembler<'maps> {
    /// A program without instructions.
    pub fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, code: u8, destination: Register, source: u8, offset: i16, constant: i32) -> &mut Self {
        let registers = destination as u8 | source << 4;
        self.instructions.push(Instruction { code, registers, offset, constant });
        self
    }

    /// `to = to OPERATION from`.
    pub fn compute(&mut self, operation: Operation, to: Register, from: Register) -> &mut Self {
        self.push(CLASS_ARITHMETIC | WITH_REGISTER | operation as u8, to, from as u8, 0, 0)
    }

    /// `to = to OPERATION constant`; the sign is extended to 64 bits.
    pub fn compute_constant(&mut self, operation: Operation, to: Register, constant: i32) -> &mut Self {
        self.push(CLASS_ARITHMETIC | operation as u8, to, 0, 0, constant)
    }

    /// `to = to + constant` with the lower 32 bits; the upper ones become 0.
    pub fn add_constant_32(&mut self, to: Register, constant: i32) -> &mut Self {
        self.push(CLASS_ARITHMETIC_32 | Operation::Add as u8, to, 0, 0, constant)
    }

    /// `to = from`.
    pub fn copy(&mut self, to: Register, from: Register) -> &mut Self {
        self.compute(Operation::Move, to, from)
    }

    /// `to = constant`.
    pub fn set(&mut self, to: Register, constant: i32) -> &mut Self {
        self.compute_constant(Operation::Move, to, constant)
    }

    /// `to = base + offset`.
    pub fn address(&mut self, to: Register, base: Register, offset: i32) -> &mut Self {
        self.copy(to, base).compute_constant(Operation::Add, to, offset)
    }

    /// `to = [base + offset]`.
    pub fn load(&mut self, width: Width, to: Register, base: Register, offset: i16) -> &mut Self {
        self.push(CLASS_LOAD | width as u8, to, base as u8, offset, 0)
    }

    /// `[base + offset] = from`.
    pub fn store(&mut self, width: Width, base: Register, offset: i16, from: Register) -> &mut Self {
        self.push(CLASS_STORE | width as u8, base, from as u8, offset, 0)
    }

    /// `[base + offset] = constant`.
    pub fn store_constant(&mut self, width: Width, base: Register, offset: i16, constant: i32) -> &mut Self {
        self.push(CLASS_STORE_CONSTANT | width as u8, base, 0, offset, constant)
    }

    /// `[base + offset] += addend`, in one step.
    pub fn atomic_add(&mut self, base: Register, offset: i16, addend: Register) -> &mut Self {
        self.push(CLASS_ATOMIC, base, addend as u8, offset, ATOMIC_ADD)
    }

    /// Swaps `[base + offset]` and `value`, in one step.
    pub fn exchange(&mut self, base: Register, offset: i16, value: Register) -> &mut Self {
        self.push(CLASS_ATOMIC, base, value as u8, offset, ATOMIC_EXCHANGE)
    }

    /// `[base + offset] = new` if it is R0, in one step; R0 becomes what was there.
    pub fn compare_exchange(&mut self, base: Register, offset: i16, new: Register) -> &mut Self {
        self.push(CLASS_ATOMIC, base, new as u8, offset, ATOMIC_COMPARE_EXCHANGE)
    }

    /// `to = map`, for a helper.
    pub fn map(&mut self, to: Register, map: &'maps impl AsFd) -> &mut Self {
        let descriptor = map.as_fd().as_raw_fd();
        // An instruction of 16 bytes: its second half has the upper half of the constant.
        self.push(CLASS_LOAD_CONSTANT, to, MAP_DESCRIPTOR, 0, descriptor).push(0, Register::R0, 0, 0, 0)
    }

    /// `R0 = helper(R1, …)`.
    pub fn call(&mut self, helper: Helper) -> &mut Self {
        self.push(CALL, Register::R0, 0, 0, helper as i32)
    }

    /// Ends the program.
    pub fn exit(&mut self) -> &mut Self {
        self.push(EXIT, Register::R0, 0, 0, 0)
    }

    /// A label without a place.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Puts a label here.
    pub fn bind(&mut self, label: Label) -> &mut Self {
        let place = self.places.get_mut(label.0).filter(|place| place.is_none());
        assert!(place.is_some(), "a label is at two places, or belongs to another program");
        place.into_iter().for_each(|place| *place = Some(self.instructions.len()));
        self
    }

    /// Goes to a label.
    pub fn jump(&mut self, to: Label) -> &mut Self {
        self.jumps.push((self.instructions.len(), to));
        self.push(CLASS_JUMP, Register::R0, 0, 0, 0)
    }

    /// Goes to a label if `left CONDITION right`.
    pub fn jump_if(&mut self, left: Register, condition: Condition, right: Register, to: Label) -> &mut Self {
        self.jumps.push((self.instructions.len(), to));
        self.push(CLASS_JUMP | WITH_REGISTER | condition as u8, left, right as u8, 0, 0)
    }

    /// Goes to a label if `left CONDITION constant`.
    pub fn jump_if_constant(&mut self, left: Register, condition: Condition, constant: i32, to: Label) -> &mut Self {
        self.jumps.push((self.instructions.len(), to));
        self.push(CLASS_JUMP | condition as u8, left, 0, 0, constant)
    }

    /// The complete program. A jump that goes nowhere is a bug of the caller.
    pub fn finish(mut self) -> Code<'maps> {
        for (from, label) in self.jumps {
            let place = self.places.get(label.0).copied().flatten();
            assert!(place.is_some(), "a jump goes to a label that is nowhere, or belongs to another program");
            // A jump counts from the instruction after it.
            let distance = i16::try_from(place.unwrap_or(0) as isize - (from as isize + 1));
            assert!(distance.is_ok(), "a jump is too far");
            if let Some(jump) = self.instructions.get_mut(from) {
                jump.offset = distance.unwrap_or(0);
            }
        }
        Code { instructions: self.instructions, maps: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Register::{R0, R1};

    #[test]
    fn jumps_count_instructions_from_the_next_one() {
        let mut assembler = Assembler::new();
        let (end, start) = (assembler.label(), assembler.label());
        assembler.bind(start).set(R0, 0).jump_if_constant(R1, Condition::Equal, 0, end);
        assembler.set(R0, 1).jump(start).bind(end).exit();
        let offsets: Vec<i16> = assembler.finish().instructions.iter().map(|code| code.offset).collect();
        assert_eq!(offsets, [0, 2, 0, -4, 0]);
    }

    #[test]
    fn instructions_are_those_of_the_kernel() {
        let mut assembler = Assembler::new();
        assembler.load(Width::Eight, R0, R1, 8).compare_exchange(R1, 16, R0).call(Helper::Task).exit();
        let code = assembler.finish();
        let expected = [(0x79, 0x10, 8, 0), (0xdb, 0x01, 16, 0xf1), (0x85, 0, 0, 35), (0x95, 0, 0, 0)]
            .map(|(code, registers, offset, constant)| Instruction { code, registers, offset, constant });
        assert_eq!(code.instructions, expected);
    }

    #[test]
    fn wrong_labels_are_bugs() {
        let finish = |assemble: fn(&mut Assembler<'_>)| {
            let assembled = std::panic::catch_unwind(|| {
                let mut assembler = Assembler::new();
                assemble(&mut assembler);
                assembler.finish()
            });
            assert!(assembled.is_err());
        };
        finish(|assembler| {
            let label = assembler.label();
            assembler.jump(label);
        });
        finish(|assembler| {
            let label = assembler.label();
            assembler.bind(label).bind(label);
        });
        finish(|assembler| {
            assembler.jump(Label(3));
        });
        finish(|assembler| {
            let label = assembler.label();
            assembler.jump(label);
            (0..40_000).for_each(|_| {
                assembler.exit();
            });
            assembler.bind(label);
        });
    }
}
