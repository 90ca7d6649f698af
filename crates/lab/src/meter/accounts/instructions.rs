//! The programs of the accounts, as instructions.
//!
//! Each program first charges the time since the last event to the account that the CPU was in, and then says which
//! account comes next. An interrupt leaves everything as it found it, except the charged time. So a program during
//! which an interrupt may come reads and changes what both change in one step ([`Interrupts::MayCome`]); in all other
//! programs, plain instructions are faster.

use super::layout::*;
use sys::bpf::{ArrayMap, Assembler, Code, Condition, HashMap, Helper, Label, Operation, Register, Width};

use Condition::{AtLeast, Below, Equal, NotEqual};
use Operation::{Add, And, ShiftLeft, ShiftRight, Subtract};
use Register::{R0, R1, R2, R3, R4, R7, R8, R9, R10};
use Width::{Eight, Four};

/// Words of a task's entry: nanoseconds of each bank, and its name in the rest.
pub(super) const TASK_WORDS: usize = 4;
const TASK_NAME: i32 = 16;
const NAME_BYTES: i32 = 16;

/// Where on the stack the key of a task is.
const TASK_KEY: i16 = -16;
/// The sum of a place in a table.
const SUM: i16 = ACCOUNTS + 8;

/// The maps that the programs write.
#[derive(Debug)]
pub(super) struct Maps {
    /// One value per CPU.
    pub(super) states: ArrayMap,
    /// By process and thread.
    pub(super) tasks: HashMap<TASK_WORDS>,
    /// The parent of each process that was forked.
    pub(super) parents: HashMap<1>,
    /// How often a process was woken, by waker and process.
    pub(super) wakes: HashMap<1>,
}

/// Whether an interrupt may come while a program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interrupts {
    Off,
    MayCome,
}

/// Which account an event begins.
#[derive(Clone, Copy)]
pub(super) enum Interrupt {
    /// The one of a vector.
    Vector(Account),
    /// The one of the device whose number is the first argument.
    Device,
}

/// Assembles the programs.
pub(super) struct Instructions<'maps> {
    pub(super) maps: &'maps Maps,
    pub(super) layout: Layout,
}

/// A program in the making.
struct Draft<'maps> {
    code: Assembler<'maps>,
    maps: &'maps Maps,
    layout: Layout,
    interrupts: Interrupts,
    /// Its end.
    end: Label,
}

impl<'maps> Instructions<'maps> {
    /// `sched_switch`: the time moves to the task that is switched out, which is still the current one.
    pub(super) fn switch(&self) -> Code<'maps> {
        let mut draft = self.charging(Interrupts::Off);
        let (to_task, entered, task) = (draft.code.label(), draft.code.label(), draft.code.label());
        const FROM: i16 = 8;
        const TO: i16 = 16;
        draft.code.load(Eight, R1, ARGUMENTS, FROM).load(Eight, R2, ARGUMENTS, TO).load(Eight, R3, HEADER, IDLE_TASK);
        draft.code.jump_if(R2, NotEqual, R3, to_task);
        draft.enter(IDLE_ENTRY).count_with(R4, IDLE_ENTRY);
        draft.code.jump(entered).bind(to_task);
        draft.enter(TASK);
        draft.code.bind(entered).jump_if(R1, Equal, R3, draft.end);
        draft.code.call(Helper::ProcessAndThread).jump_if_constant(R0, NotEqual, 0, task);
        // The idle task, for the first time.
        draft.code.load(Eight, R1, ARGUMENTS, FROM).store(Eight, HEADER, IDLE_TASK, R1);
        draft.move_to_idle_entry();
        let (end, miss, keep) = (draft.end, draft.code.label(), draft.code.label());
        draft.code.jump(end).bind(task);
        // Mostly the task has a place in this CPU's table.
        draft.code.copy(R2, R0).copy(R3, OPEN_BANK);
        draft.find_place(Table::Tasks);
        draft.code.load(Eight, R1, R3, ACCOUNTS).jump_if(R1, NotEqual, R0, miss);
        draft.take_task_time();
        draft.code.load(Eight, R2, R3, SUM).compute(Add, R2, R1).store(Eight, R3, SUM, R2).jump(end).bind(miss);
        draft.bank_word_to_r9();
        draft.move_to_task();
        // It has an entry with its name now, and gets the place if that is free.
        draft.code.load(Eight, R0, R10, TASK_KEY).copy(R2, R0).copy(R3, OPEN_BANK);
        draft.find_place(Table::Tasks);
        draft.code.load(Eight, R1, R3, ACCOUNTS).jump_if_constant(R1, NotEqual, 0, keep);
        draft.code.store(Eight, R3, ACCOUNTS, R0).bind(keep);
        draft.finish()
    }

    /// Ends the bank of a CPU, and begins the one at the offset that is the first argument. Starts the accounts the
    /// first time.
    pub(super) fn close(&self) -> Code<'maps> {
        let mut draft = self.draft(Interrupts::MayCome);
        draft.find_header();
        let (started, task) = (draft.code.label(), draft.code.label());
        draft.code.load(Eight, R9, HEADER, LAST).jump_if_constant(R9, NotEqual, 0, started);
        draft.code.call(Helper::Nanoseconds).store(Eight, HEADER, LAST, R0);
        draft.code.bind(started);
        draft.charge();
        let not_first = draft.code.label();
        draft.code.load(Eight, R1, HEADER, LAST).store(Eight, HEADER, CLOSED, R1);
        draft.code.load(Eight, R2, HEADER, STARTED).jump_if_constant(R2, NotEqual, 0, not_first);
        draft.code.store(Eight, HEADER, STARTED, R1).bind(not_first);
        // What interrupts charge from here on belongs to the new bank; R8 stays the old one.
        draft.bank_word_to_r9();
        draft.code.load(Eight, R1, ARGUMENTS, 0).compute_constant(And, R1, self.layout.bank());
        draft.code.store(Eight, HEADER, BANK, R1);
        draft.code.call(Helper::ProcessAndThread).jump_if_constant(R0, NotEqual, 0, task);
        draft.code.call(Helper::Task).store(Eight, HEADER, IDLE_TASK, R0);
        draft.move_to_idle_entry();
        // A CPU that has been idle since before the start has passed no event that says so.
        for context in [CONTEXT, BEFORE_SOFTIRQ, BEFORE_INTERRUPT] {
            let known = draft.code.label();
            draft.code.load(Eight, R1, HEADER, context).jump_if_constant(R1, NotEqual, TASK.offset().into(), known);
            draft.code.store_constant(Eight, HEADER, context, IDLE.offset().into()).bind(known);
        }
        let end = draft.end;
        draft.code.jump(end).bind(task);
        draft.move_to_task();
        draft.finish()
    }

    /// `cpu_idle`, whose first argument is the idle state, or −1 at its end.
    pub(super) fn idle(&self) -> Code<'maps> {
        // Older kernels enable interrupts before the end of an idle state.
        let mut draft = self.charging(Interrupts::MayCome);
        let (begins, known) = (draft.code.label(), draft.code.label());
        draft.code.load(Eight, R1, ARGUMENTS, 0).add_constant_32(R1, 1).jump_if_constant(R1, NotEqual, 0, begins);
        draft.enter(IDLE_ENTRY);
        let end = draft.end;
        draft.code.jump(end).bind(begins);
        draft.enter(IDLE).count(IDLE);
        draft.code.jump_if_constant(CHARGED, NotEqual, TASK.offset().into(), known);
        // Only idle injection enters an idle state in another task than the idle task.
        draft.code.call(Helper::ProcessAndThread).jump_if_constant(R0, NotEqual, 0, known);
        draft.code.call(Helper::Task).store(Eight, HEADER, IDLE_TASK, R0);
        draft.move_to_idle_entry();
        draft.code.bind(known);
        draft.finish()
    }

    /// `softirq_entry`, whose first argument is the vector.
    pub(super) fn enter_softirq(&self) -> Code<'maps> {
        let mut draft = self.charging(Interrupts::MayCome);
        let (from_idle, from_task) = (draft.code.label(), draft.code.label());
        draft.code.load(Eight, R2, ARGUMENTS, 0).compute_constant(And, R2, i32::from(SOFTIRQ_ROOM) - 1);
        draft.code.compute_constant(ShiftLeft, R2, ACCOUNT_SHIFT);
        draft.code.compute_constant(Add, R2, SOFTIRQS.offset().into());
        draft.code.jump_if_constant(CHARGED, Equal, IDLE.offset().into(), from_idle);
        draft.code.jump_if_constant(CHARGED, NotEqual, IDLE_ENTRY.offset().into(), from_task).bind(from_idle);
        let further = Account(SOFTIRQS_FROM_IDLE.0 - SOFTIRQS.0);
        draft.code.compute_constant(Add, R2, further.offset().into()).bind(from_task);
        draft.code.store(Eight, HEADER, BEFORE_SOFTIRQ, CHARGED);
        draft.enter_and_count_r2();
        draft.finish()
    }

    /// `softirq_exit`.
    pub(super) fn leave_softirq(&self) -> Code<'maps> {
        let mut draft = self.charging(Interrupts::MayCome);
        draft.code.load(Eight, R1, HEADER, BEFORE_SOFTIRQ).store(Eight, HEADER, CONTEXT, R1);
        draft.finish()
    }

    /// The start of an interrupt.
    pub(super) fn enter_interrupt(&self, interrupt: Interrupt) -> Code<'maps> {
        let mut draft = self.charging(Interrupts::Off);
        let nested = draft.code.label();
        match interrupt {
            Interrupt::Vector(account) => {
                draft.code.set(R2, account.offset().into());
            }
            Interrupt::Device => {
                let known = draft.code.label();
                let devices = self.layout.devices();
                draft.code.load(Eight, R2, ARGUMENTS, 0).jump_if_constant(R2, Below, devices, known).set(R2, devices);
                draft.code.bind(known).compute_constant(Add, R2, DEVICES.0.into());
                draft.code.compute_constant(ShiftLeft, R2, ACCOUNT_SHIFT);
            }
        }
        // Some vectors find out whose interrupt it is, and both events come.
        draft.code.jump_if_constant(CHARGED, AtLeast, VECTORS.offset().into(), nested);
        draft.code.store(Eight, HEADER, BEFORE_INTERRUPT, CHARGED).bind(nested);
        draft.enter_and_count_r2();
        draft.finish()
    }

    /// The end of an interrupt.
    pub(super) fn leave_interrupt(&self) -> Code<'maps> {
        let mut draft = self.charging(Interrupts::Off);
        draft.code.load(Eight, R1, HEADER, BEFORE_INTERRUPT).store(Eight, HEADER, CONTEXT, R1);
        draft.finish()
    }

    /// `sched_process_exec`: a task has a new name. One that has only a place in a table may have no entry.
    pub(super) fn rename(&self) -> Code<'maps> {
        let mut draft = self.draft(Interrupts::MayCome);
        let (end, found) = (draft.end, draft.code.label());
        draft.code.call(Helper::ProcessAndThread).store(Eight, R10, TASK_KEY, R0);
        draft.find_task();
        draft.code.jump_if_constant(R0, NotEqual, 0, found);
        draft.make_task();
        draft.code.jump(end).bind(found);
        draft.code.address(R1, R0, TASK_NAME).set(R2, NAME_BYTES).call(Helper::TaskName);
        draft.finish()
    }

    /// `sched_process_fork`, whose second argument is the child: records the parent of a process. `offset` is where a
    /// task has its two numbers.
    pub(super) fn fork(&self, offset: i32) -> Code<'maps> {
        let mut draft = self.draft(Interrupts::MayCome);
        let end = draft.end;
        const NUMBERS: i16 = -8;
        const PROCESS: i16 = -4;
        const CHILD: i16 = -16;
        const PARENT: i16 = -24;
        draft.code.call(Helper::ProcessAndThread).copy(R7, R0).compute_constant(ShiftRight, R7, 32);
        draft.code.load(Eight, R3, ARGUMENTS, 8).compute_constant(Add, R3, offset);
        draft.code.address(R1, R10, NUMBERS.into()).set(R2, 8).call(Helper::ReadKernel);
        draft.code.jump_if_constant(R0, NotEqual, 0, end);
        // A thread has the process of its creator.
        draft.code.load(Four, R8, R10, PROCESS).jump_if(R8, Equal, R7, end);
        draft.code.store(Eight, R10, CHILD, R8).store(Eight, R10, PARENT, R7);
        draft.code.address(R2, R10, CHILD.into()).address(R3, R10, PARENT.into()).set(R4, 0);
        draft.code.map(R1, &self.maps.parents).call(Helper::MapUpdate).jump_if_constant(R0, Equal, 0, end);
        draft.find_header();
        draft.code.load(Eight, R1, HEADER, FORKS_LOST).compute_constant(Add, R1, 1);
        draft.code.store(Eight, HEADER, FORKS_LOST, R1);
        draft.finish()
    }

    /// `sched_waking`, whose first argument is the task that is woken: counts by waker and process. The waker is the current process,
    /// unless a softirq or an interrupt does it. Packets over loopback are received in a softirq of their sender, which is the waker then. `offset` is where a task has its two numbers.
    pub(super) fn wake(&self, offset: i32) -> Code<'maps> {
        let mut draft = self.draft(Interrupts::Off);
        let end = draft.end;
        let (in_task, known, found) = (draft.code.label(), draft.code.label(), draft.code.label());
        const NUMBERS: i16 = -8;
        const PROCESS: i16 = -4;
        const KEY: i16 = -16;
        const WAKER: i16 = -12;
        const ONE: i16 = -24;
        draft.find_header();
        draft.code.load(Eight, R3, ARGUMENTS, 0).compute_constant(Add, R3, offset);
        draft.code.address(R1, R10, NUMBERS.into()).set(R2, 8).call(Helper::ReadKernel);
        draft.code.jump_if_constant(R0, NotEqual, 0, end);
        draft.code.load(Eight, R9, HEADER, CONTEXT);
        draft.code.jump_if_constant(R9, Below, SOFTIRQS.offset().into(), in_task);
        draft.code.jump_if_constant(R9, Equal, NET_RX.offset().into(), in_task);
        // Not a process: the account.
        draft.code.compute_constant(ShiftRight, R9, ACCOUNT_SHIFT).compute_constant(Add, R9, NO_PROCESS);
        draft.code.jump(known).bind(in_task);
        draft.code.call(Helper::ProcessAndThread).copy(R9, R0).compute_constant(ShiftRight, R9, 32).bind(known);
        draft.code.load(Four, R8, R10, PROCESS);
        // Mostly the pair has a place in this CPU's table.
        let (in_table, in_hash) = (draft.code.label(), draft.code.label());
        draft.code.copy(R1, R9).compute_constant(ShiftLeft, R1, 32).compute(Add, R1, R8);
        draft.code.copy(R2, R9).compute_constant(ShiftLeft, R2, 2).compute(Add, R2, R8);
        draft.code.load(Eight, R3, HEADER, BANK).compute_constant(And, R3, self.layout.bank()).compute(Add, R3, HEADER);
        draft.find_place(Table::Wakes);
        draft.code.load(Eight, R2, R3, ACCOUNTS).jump_if(R2, Equal, R1, in_table);
        draft.code.jump_if_constant(R2, NotEqual, 0, in_hash).store(Eight, R3, ACCOUNTS, R1).bind(in_table);
        draft.code.load(Eight, R1, R3, SUM).compute_constant(Add, R1, 1).store(Eight, R3, SUM, R1);
        draft.code.jump(end).bind(in_hash);
        draft.code.store(Four, R10, KEY, R8).store(Four, R10, WAKER, R9);
        draft.code.address(R2, R10, KEY.into()).map(R1, &self.maps.wakes).call(Helper::MapLookup);
        draft.code.jump_if_constant(R0, NotEqual, 0, found);
        draft.code.store_constant(Eight, R10, ONE, 1);
        draft.code.address(R2, R10, KEY.into()).address(R3, R10, ONE.into()).set(R4, 0);
        draft.code.map(R1, &self.maps.wakes).call(Helper::MapUpdate).jump(end);
        draft.code.bind(found).set(R1, 1).atomic_add(R0, 0, R1);
        draft.finish()
    }

    fn draft(&self, interrupts: Interrupts) -> Draft<'maps> {
        let mut code = Assembler::new();
        let end = code.label();
        code.copy(ARGUMENTS, R1);
        Draft { code, maps: self.maps, layout: self.layout, interrupts, end }
    }

    /// A program that first charges the time since the last event.
    fn charging(&self, interrupts: Interrupts) -> Draft<'maps> {
        let mut draft = self.draft(interrupts);
        draft.find_header();
        draft.charge();
        draft
    }
}

impl<'maps> Draft<'maps> {
    fn finish(mut self) -> Code<'maps> {
        self.code.bind(self.end).set(R0, 0).exit();
        self.code.finish()
    }

    /// R7 = the header of this CPU.
    fn find_header(&mut self) {
        const CPU: i16 = -4;
        self.code.call(Helper::ThisCpu).store(Four, R10, CPU, R0);
        self.code.address(R2, R10, CPU.into()).map(R1, &self.maps.states).call(Helper::MapLookup);
        self.code.jump_if_constant(R0, Equal, 0, self.end).copy(HEADER, R0);
    }

    /// Charges the time since the last event. R8 = the bank that is written, R9 = the account that was charged. Before
    /// the start, nothing is charged, but accounts are entered and left.
    fn charge(&mut self) {
        let bank = self.layout.bank();
        let mask = self.layout.account_mask();
        match self.interrupts {
            Interrupts::Off => {
                let not_started = self.code.label();
                self.code.call(Helper::Nanoseconds).load(Eight, R1, HEADER, LAST);
                self.code.load(Eight, R8, HEADER, BANK).compute_constant(And, R8, bank).compute(Add, R8, HEADER);
                self.code.load(Eight, R9, HEADER, CONTEXT).compute_constant(And, R9, mask);
                self.code.jump_if_constant(R1, Equal, 0, not_started).store(Eight, HEADER, LAST, R0);
                self.code.compute(Subtract, R0, R1).copy(R3, R8).compute(Add, R3, R9);
                self.code.load(Eight, R1, R3, ACCOUNTS).compute(Add, R1, R0).store(Eight, R3, ACCOUNTS, R1);
                self.code.bind(not_started);
            }
            Interrupts::MayCome => {
                let (nothing, charged) = (self.code.label(), self.code.label());
                self.code.load(Eight, R9, HEADER, LAST).jump_if_constant(R9, Equal, 0, nothing);
                self.code.call(Helper::Nanoseconds).copy(R1, R0).copy(R2, R0).compute(Subtract, R2, R9);
                self.code.copy(R0, R9).compare_exchange(HEADER, LAST, R1);
                // If an interrupt came in between, it has charged all but some nanoseconds, which the next event charges.
                self.code.jump_if(R0, Equal, R9, charged).bind(nothing).set(R2, 0).bind(charged);
                self.code.load(Eight, R8, HEADER, BANK).compute_constant(And, R8, bank).compute(Add, R8, HEADER);
                self.code.load(Eight, R9, HEADER, CONTEXT).compute_constant(And, R9, mask);
                self.code.copy(R3, R8).compute(Add, R3, R9).atomic_add(R3, ACCOUNTS, R2);
            }
        }
    }

    /// The next time is charged to an account.
    fn enter(&mut self, account: Account) -> &mut Self {
        self.code.store_constant(Eight, HEADER, CONTEXT, account.offset().into());
        self
    }

    fn count(&mut self, account: Account) {
        self.count_with(R1, account);
    }

    /// Only one program counts each account, and it does not interrupt itself.
    fn count_with(&mut self, spare: Register, account: Account) {
        self.code.load(Eight, spare, OPEN_BANK, account.count()).compute_constant(Add, spare, 1);
        self.code.store(Eight, OPEN_BANK, account.count(), spare);
    }

    /// Enters and counts the account whose offset R2 has.
    fn enter_and_count_r2(&mut self) {
        const COUNT: i16 = ACCOUNTS + 8;
        self.code.store(Eight, HEADER, CONTEXT, R2).copy(R3, OPEN_BANK).compute(Add, R3, R2);
        self.code.load(Eight, R1, R3, COUNT).compute_constant(Add, R1, 1).store(Eight, R3, COUNT, R1);
    }

    /// R9 = offset of the bank's word in a task's entry.
    fn bank_word_to_r9(&mut self) {
        self.code.load(Eight, R9, HEADER, BANK).compute_constant(ShiftRight, R9, self.layout.bank_to_word());
        self.code.compute_constant(And, R9, 8);
    }

    /// R1 = the time in the task's account, which becomes 0.
    fn take_task_time(&mut self) {
        match self.interrupts {
            Interrupts::Off => {
                self.code.load(Eight, R1, OPEN_BANK, TASK.nanos());
                self.code.store_constant(Eight, OPEN_BANK, TASK.nanos(), 0);
            }
            Interrupts::MayCome => {
                self.code.set(R1, 0).exchange(OPEN_BANK, TASK.nanos(), R1);
            }
        }
    }

    /// Adds R1 to an account.
    fn add_r1(&mut self, account: Account) {
        match self.interrupts {
            Interrupts::Off => {
                self.code.load(Eight, R2, OPEN_BANK, account.nanos()).compute(Add, R2, R1);
                self.code.store(Eight, OPEN_BANK, account.nanos(), R2);
            }
            Interrupts::MayCome => {
                self.code.atomic_add(OPEN_BANK, account.nanos(), R1);
            }
        }
    }

    fn move_to_idle_entry(&mut self) {
        self.take_task_time();
        self.add_r1(IDLE_ENTRY);
    }

    /// Moves the time in the task's account to the entry of the current task, whose numbers R0 has. R9 is the offset of
    /// the bank's word.
    fn move_to_task(&mut self) {
        let found = self.code.label();
        self.code.store(Eight, R10, TASK_KEY, R0);
        self.find_task();
        self.code.jump_if_constant(R0, NotEqual, 0, found);
        self.make_task();
        self.find_task();
        self.code.jump_if_constant(R0, NotEqual, 0, found);
        self.take_task_time();
        self.add_r1(LOST);
        self.count(LOST);
        self.code.jump(self.end).bind(found).compute(Add, R0, R9);
        self.take_task_time();
        // Only the CPU that a task runs on writes its entry, and interrupts do not.
        self.code.load(Eight, R2, R0, 0).compute(Add, R2, R1).store(Eight, R0, 0, R2);
    }

    /// R0 = the entry of the task whose key is on the stack, or 0.
    fn find_task(&mut self) {
        self.code.address(R2, R10, TASK_KEY.into()).map(R1, &self.maps.tasks).call(Helper::MapLookup);
    }

    /// Makes an entry with the name of the current task, whose key is on the stack, if there is room.
    fn make_task(&mut self) {
        const NEW_ENTRY: i16 = -48;
        const NEW_NAME: i16 = NEW_ENTRY + 16;
        for word in [NEW_ENTRY, NEW_ENTRY + 8, NEW_NAME, NEW_NAME + 8] {
            self.code.store_constant(Eight, R10, word, 0);
        }
        self.code.address(R1, R10, NEW_NAME.into()).set(R2, NAME_BYTES).call(Helper::TaskName);
        self.code.address(R2, R10, TASK_KEY.into()).address(R3, R10, NEW_ENTRY.into()).set(R4, 0);
        self.code.map(R1, &self.maps.tasks).call(Helper::MapUpdate);
    }

    /// Adds to R3, a bank, the offset of the place in its table of the key whose low bits R2 has.
    fn find_place(&mut self, table: Table) {
        self.code.compute_constant(And, R2, self.layout.place_mask()).compute_constant(ShiftLeft, R2, ACCOUNT_SHIFT);
        self.code.compute(Add, R3, R2).compute_constant(Add, R3, self.layout.table(table));
    }
}
