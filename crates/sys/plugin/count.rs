//! A QEMU TCG plugin that counts every instruction a guest executes, by address, between two marks of the guest.
//!
//! `build.rs` compiles this file alone into two shared libraries, which the program carries and hands to QEMU: one (cfg `old_interface`) for
//! version 1 of QEMU's plugin interface (QEMU 6 to 8), one for versions from 2 on (QEMU 9 and later), which keep a counter for each CPU in memory of
//! QEMU. Both are declared below from the interface's documentation.
//!
//! Arguments: `out=FILE`. At each end mark it appends a region to the file: a line `region TOTAL`, then a line
//! `ADDRESS COUNT FLAGS` (hexadecimal, decimal, `s` for a string instruction, `l` for one that locks memory) for each address that was executed. Counters
//! begin at zero at each begin mark.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// The version of the interface that this file declares.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = if cfg!(old_interface) { 1 } else { 2 };
/// From this version of QEMU's interface on, the bytes of an instruction are copied; before, they lie in QEMU.
const COPIES_BYTES: c_int = 3;

type Id = u64;
/// A block of translated code; only QEMU knows its contents.
#[repr(C)]
pub struct Block(c_void);
/// An instruction in a block.
#[repr(C)]
pub struct Instruction(c_void);

/// Memory of QEMU for each CPU.
#[cfg(not(old_interface))]
#[repr(C)]
pub struct Scoreboard(c_void);
/// A counter in it: QEMU's `qemu_plugin_u64`.
#[cfg(not(old_interface))]
#[derive(Clone, Copy)]
#[repr(C)]
struct Place {
    scoreboard: *mut Scoreboard,
    offset: usize,
}

/// The beginning of QEMU's `qemu_info_t`.
#[repr(C)]
pub struct Info {
    target_name: *const c_char,
    least_version: c_int,
    version: c_int,
}

type OnExecute = extern "C" fn(c_uint, *mut c_void);

// SAFETY: the declarations are those of version 1 of the interface, whose functions QEMU exports.
#[cfg(old_interface)]
unsafe extern "C" {
    fn qemu_plugin_register_vcpu_insn_exec_inline(at: *mut Instruction, op: c_int, counter: *mut c_void, add: u64);
}

// SAFETY: the declarations are those of version 2 of the interface, whose functions QEMU exports.
#[cfg(not(old_interface))]
unsafe extern "C" {
    fn qemu_plugin_scoreboard_new(element: usize) -> *mut Scoreboard;
    fn qemu_plugin_scoreboard_find(scoreboard: *mut Scoreboard, cpu: c_uint) -> *mut c_void;
    fn qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(at: *mut Instruction, op: c_int, counter: Place, add: u64);
}

// SAFETY: the declarations hold for all versions of the interface. Before version 3, `qemu_plugin_insn_data` returns a pointer and reads no other
// argument than the first.
unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: extern "C" fn(Id, *mut Block));
    fn qemu_plugin_register_vcpu_insn_exec_cb(at: *mut Instruction, callback: OnExecute, flags: c_int, data: *mut c_void);
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Block, number: usize) -> *mut Instruction;
    fn qemu_plugin_insn_vaddr(at: *const Instruction) -> u64;
    fn qemu_plugin_insn_data(at: *const Instruction, copy: *mut u8, length: usize) -> usize;
    fn qemu_plugin_insn_size(at: *const Instruction) -> usize;
}

/// QEMU_PLUGIN_INLINE_ADD_U64.
const ADD: c_int = 0;
/// QEMU_PLUGIN_CB_NO_REGS: the callbacks read no registers.
const NO_REGISTERS: c_int = 0;

/// An eight-byte no-op, `nopl 0x..544f49(%rax,%rax,1)`; the last byte is the number of the mark.
const MARK: [u8; 7] = [0x0f, 0x1f, 0x84, 0x00, 0x49, 0x4f, 0x54];
const BEGIN: u8 = 1;
const END: u8 = 2;

/// An instruction of a block, whose executions are counted.
struct Counter {
    address: u64,
    kind: Kind,
}

/// The counters of a block. One that is translated again gets new ones.
struct Counters {
    of: Box<[Counter]>,
    /// How often each was executed: of this process, or of QEMU, which gives its address.
    #[cfg(old_interface)]
    counts: Box<[u64]>,
    #[cfg(not(old_interface))]
    counts: *mut Scoreboard,
}

// SAFETY: QEMU's one CPU thread alone uses what the pointer leads to.
unsafe impl Send for Counters {}

impl Counters {
    fn new(of: Box<[Counter]>) -> Self {
        #[cfg(old_interface)]
        let counts = vec![0; of.len()].into_boxed_slice();
        // SAFETY: QEMU gives memory for each CPU, which it keeps until it ends.
        #[cfg(not(old_interface))]
        let counts = unsafe { qemu_plugin_scoreboard_new(of.len().max(1) * size_of::<u64>()) };
        Self { of, counts }
    }

    /// QEMU counts the executions of an instruction of this block.
    fn count(&mut self, instruction: *mut Instruction, number: usize) {
        // SAFETY: the slice is kept until QEMU ends, and only QEMU's one CPU thread writes it.
        #[cfg(old_interface)]
        unsafe {
            if let Some(count) = self.counts.get_mut(number) {
                qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD, (&raw mut *count).cast(), 1);
            }
        }
        // SAFETY: the place lies within an element of the scoreboard.
        #[cfg(not(old_interface))]
        unsafe {
            let place = Place { scoreboard: self.counts, offset: number * size_of::<u64>() };
            qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(instruction, ADD, place, 1);
        }
    }

    fn counts(&mut self) -> &mut [u64] {
        #[cfg(old_interface)]
        return &mut self.counts;
        // SAFETY: the guest has one CPU, whose element holds a number for each instruction; nothing runs meanwhile.
        #[cfg(not(old_interface))]
        unsafe {
            std::slice::from_raw_parts_mut(qemu_plugin_scoreboard_find(self.counts, 0).cast(), self.of.len())
        }
    }
}

/// What is told apart.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    #[default]
    Plain,
    String,
    Locked,
}

struct State {
    out: String,
    /// What they count never moves: QEMU adds to it.
    counters: Vec<Counters>,
    /// The version of QEMU's interface.
    version: c_int,
    counting: bool,
}

static STATE: Mutex<State> = Mutex::new(State { out: String::new(), counters: Vec::new(), version: 1, counting: false });

/// The entry point: reads the arguments and asks to see every translation.
#[unsafe(no_mangle)]
pub extern "C" fn qemu_plugin_install(id: Id, info: *const Info, count: c_int, arguments: *const *const c_char) -> c_int {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: QEMU passes what it is, valid during this call.
    state.version = unsafe { (*info).version };
    for number in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: QEMU passes `count` strings that end with a zero, valid during this call.
        let argument = unsafe { CStr::from_ptr(*arguments.add(number)) }.to_string_lossy();
        match argument.split_once('=') {
            Some(("out", path)) => state.out = path.to_owned(),
            _ => return -1,
        }
    }
    // SAFETY: `id` is the plugin's, and the callback has the declared type.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, translated) };
    0
}

/// A block is translated: each of its instructions gets a counter.
extern "C" fn translated(_id: Id, block: *mut Block) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: QEMU passes a block that is valid during this call.
    let length = unsafe { qemu_plugin_tb_n_insns(block) };
    // SAFETY: `number` is below the block's length.
    let instructions = (0..length).map(|number| unsafe { qemu_plugin_tb_get_insn(block, number) });
    let instructions: Vec<_> = instructions.collect();
    let codes: Vec<Code> = instructions.iter().map(|&instruction| Code::of(instruction, state.version)).collect();
    let counters = instructions.iter().zip(&codes).map(|(&instruction, code)| {
        // SAFETY: the instruction is valid during this call.
        let address = unsafe { qemu_plugin_insn_vaddr(instruction) };
        Counter { address, kind: kind(code.bytes()) }
    });
    let mut counters = Counters::new(counters.collect());
    for (place, (&instruction, code)) in instructions.iter().zip(&codes).enumerate() {
        let code = code.bytes();
        counters.count(instruction, place);
        // SAFETY: the callbacks have the declared types and live as long as the plugin.
        unsafe {
            if let [front @ .., number] = code
                && *front == MARK
            {
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, marked, NO_REGISTERS, usize::from(*number) as *mut c_void);
            }
        }
    }
    state.counters.push(counters);
}

/// The bytes of an instruction.
struct Code {
    /// An instruction of x86 has at most 15.
    bytes: [u8; 16],
    length: usize,
}

impl Code {
    fn of(instruction: *const Instruction, version: c_int) -> Self {
        let mut code = Self { bytes: [0; 16], length: 0 };
        // SAFETY: QEMU keeps the bytes of an instruction during the translation callback, which is the only caller. It copies no more of them
        // than fit, or returns where they lie.
        unsafe {
            let length = qemu_plugin_insn_size(instruction).min(code.bytes.len());
            let got = qemu_plugin_insn_data(instruction, code.bytes.as_mut_ptr(), length);
            if version < COPIES_BYTES {
                let there = std::ptr::with_exposed_provenance::<u8>(got);
                std::ptr::copy_nonoverlapping(there, code.bytes.as_mut_ptr(), length);
            }
            code.length = length;
        }
        code
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The kind of an instruction: QEMU executes a repeated string instruction once for each repetition; one that exchanges with memory locks
/// without a prefix.
fn kind(code: &[u8]) -> Kind {
    let prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let (prefixes, rest) = code.split_at(code.iter().position(|byte| !prefix(byte)).unwrap_or(code.len()));
    let rest = match rest {
        [0x40..=0x4f, rest @ ..] => rest,
        rest => rest,
    };
    match rest {
        [0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf, ..] if prefixes.iter().any(|byte| matches!(byte, 0xf2 | 0xf3)) => Kind::String,
        [0x86 | 0x87, operand, ..] if operand >> 6 != 3 => Kind::Locked,
        _ if prefixes.contains(&0xf0) => Kind::Locked,
        _ => Kind::Plain,
    }
}

/// The guest executes a mark.
extern "C" fn marked(_cpu: c_uint, number: *mut c_void) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    match u8::try_from(number as usize) {
        Ok(BEGIN) => state.begin(),
        Ok(END) => state.end(),
        _ => {}
    }
}

impl State {
    fn begin(&mut self) {
        self.counting = true;
        self.counters.iter_mut().for_each(|block| block.counts().fill(0));
    }

    fn end(&mut self) {
        if !std::mem::take(&mut self.counting) {
            return;
        }
        let mut sums: HashMap<u64, (u64, Kind)> = HashMap::new();
        for block in &mut self.counters {
            let counts = block.counts().to_vec();
            for (counter, count) in block.of.iter().zip(counts).filter(|(_, count)| *count > 0) {
                let sum = sums.entry(counter.address).or_default();
                *sum = (sum.0 + count, counter.kind);
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable();
        let total: u64 = sums.iter().map(|(_, (count, _))| count).sum();
        let mut text = format!("region {total}\n");
        for (address, (count, kind)) in sums {
            let flag = match kind {
                Kind::Plain => "",
                Kind::String => " s",
                Kind::Locked => " l",
            };
            let _ = writeln!(text, "{address:x} {count}{flag}");
        }
        // Without the file the host reports that there is no region.
        if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(&self.out) {
            let _ = file.write_all(text.as_bytes());
        }
    }
}
