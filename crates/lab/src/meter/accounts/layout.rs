//! The memory of a CPU's state machine: a header, and two banks of accounts, each followed by two tables.
//!
//! All offsets are in bytes. An account has two words, nanoseconds and a count. Which bank is written changes at each
//! reading, so the closed bank stands still while it is read.
//!
//! The tables save look-ups in the hash tables: of the tasks that ran on this CPU, and of the pairs that woke here. A place has the key and
//! a sum. The first key that comes keeps its place until the bank is read; what finds its place taken is in the hash table.

use sys::bpf::Register;

/// When the CPU's time was last charged; 0 before the start.
pub(super) const LAST: i16 = 0;
/// The account that time is charged to now, as the offset in a bank.
pub(super) const CONTEXT: i16 = 8;
/// The account that the running softirq interrupted.
pub(super) const BEFORE_SOFTIRQ: i16 = 16;
/// The account that the running interrupt interrupted.
pub(super) const BEFORE_INTERRUPT: i16 = 24;
/// Offset of the bank that is written: 0 or the size of a bank.
pub(super) const BANK: i16 = 32;
/// Address of this CPU's idle task, once it is known.
pub(super) const IDLE_TASK: i16 = 40;
/// When the accounts started.
pub(super) const STARTED: i16 = 48;
/// When the last bank was closed.
pub(super) const CLOSED: i16 = 56;
/// Forks that found no room.
pub(super) const FORKS_LOST: i16 = 64;
/// The first bank.
pub(super) const ACCOUNTS: i16 = 128;
const HEADER_WORDS: usize = 16;

/// Number of an account in a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Account(pub(super) i16);

/// The running task since it was switched in; its time moves to the task when it is switched out.
pub(super) const TASK: Account = Account(0);
/// The idle task, outside idle states. Counts switches to the idle task.
pub(super) const IDLE_ENTRY: Account = Account(1);
/// In an idle state. Counts entries.
pub(super) const IDLE: Account = Account(2);
/// Tasks that found no room. Counts switches.
pub(super) const LOST: Account = Account(3);
/// The first of the softirqs that interrupted a task.
pub(super) const SOFTIRQS: Account = Account(16);
/// That of received packets.
pub(super) const NET_RX: Account = Account(SOFTIRQS.0 + 3);
/// How many softirqs there is room for: a power of two.
pub(super) const SOFTIRQ_ROOM: i16 = 16;
/// The first of the softirqs that interrupted the idle task.
pub(super) const SOFTIRQS_FROM_IDLE: Account = Account(32);
/// The first of the interrupts with a vector of their own. All accounts from here are of interrupts.
pub(super) const VECTORS: Account = Account(48);
/// The first of the devices' interrupts, by number.
pub(super) const DEVICES: Account = Account(64);

/// Wakers that are no process have this number, and their account added: no process has so high a number.
pub(super) const NO_PROCESS: i32 = 0x7000_0000;

/// Bytes of an account, as a shift.
pub(super) const ACCOUNT_SHIFT: i32 = 4;

impl Account {
    /// Offset of its nanoseconds in a bank.
    pub(super) fn offset(self) -> i16 {
        self.0 << ACCOUNT_SHIFT
    }

    /// Offset of its nanoseconds from the start of a bank's accounts, for an instruction.
    pub(super) fn nanos(self) -> i16 {
        ACCOUNTS + self.offset()
    }

    /// Offset of its count, for an instruction.
    pub(super) fn count(self) -> i16 {
        self.nanos() + 8
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0.unsigned_abs())
    }
}

/// Registers of the programs: R6 has the arguments, R7 the header, R8 the bank, and R9 the account that was charged.
pub(super) const ARGUMENTS: Register = Register::R6;
pub(super) const HEADER: Register = Register::R7;
pub(super) const OPEN_BANK: Register = Register::R8;
pub(super) const CHARGED: Register = Register::R9;

/// What a table has sums of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Nanoseconds of tasks.
    Tasks,
    /// How often a process was woken by a waker.
    Wakes,
}

/// Sizes that depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The number of accounts is two to this power.
    shift: u8,
}

impl Layout {
    /// For interrupts of devices up to a number. Interrupts with higher numbers have one account together.
    pub(super) fn for_interrupts(highest: u32) -> Self {
        /// The accounts of 4,000 interrupts take 128 KiB a CPU.
        const MOST: u8 = 12;
        const FEWEST: u8 = 8;
        let fits = |shift: &u8| Self { shift: *shift }.devices() > i32::try_from(highest).unwrap_or(i32::MAX);
        Self { shift: (FEWEST..MOST).find(fits).unwrap_or(MOST) }
    }

    pub(super) fn accounts(self) -> usize {
        1 << self.shift
    }

    /// Numbers of devices' interrupts with an account of their own.
    pub(super) fn devices(self) -> i32 {
        (1 << self.shift) - i32::from(DEVICES.0) - 1
    }

    /// Size of a bank, a power of two: its second half has the two tables.
    pub(super) fn bank(self) -> i32 {
        2 << (i32::from(self.shift) + ACCOUNT_SHIFT)
    }

    /// Places of a table, each as large as an account.
    pub(super) fn places(self) -> usize {
        self.accounts() / 2
    }

    /// The bits of a place's number.
    pub(super) fn place_mask(self) -> i32 {
        (1 << (self.shift - 1)) - 1
    }

    /// Offset of a table in a bank.
    pub(super) fn table(self, table: Table) -> i32 {
        let before = match table {
            Table::Tasks => 2,
            Table::Wakes => 3,
        };
        before << (i32::from(self.shift) - 1 + ACCOUNT_SHIFT)
    }

    /// The shift that turns the offset of a bank into the offset of a word in a task's entry: 0 or 8.
    pub(super) fn bank_to_word(self) -> i32 {
        i32::from(self.shift) + 1 + ACCOUNT_SHIFT - 3
    }

    /// The bits of an account's offset.
    pub(super) fn account_mask(self) -> i32 {
        self.bank() / 2 - (1 << ACCOUNT_SHIFT)
    }

    /// Words of one CPU.
    pub(super) fn words(self) -> usize {
        HEADER_WORDS + 2 * self.words_of_bank()
    }

    fn words_of_bank(self) -> usize {
        4 * self.accounts()
    }

    /// The first word of a bank's table.
    pub(super) fn first_word_of(self, bank: usize, table: Table) -> usize {
        let words_of_table = 2 * self.places();
        self.first_word(bank) + 2 * self.accounts() + if table == Table::Tasks { 0 } else { words_of_table }
    }

    /// The first word of a bank.
    pub(super) fn first_word(self, bank: usize) -> usize {
        HEADER_WORDS + bank * self.words_of_bank()
    }
}

/// The index of a word of the header.
pub(super) fn header_word(offset: i16) -> usize {
    usize::from(offset.unsigned_abs()) / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_accounts_of_their_own_as_far_as_there_is_room() {
        assert_eq!(Layout::for_interrupts(43).accounts(), 256);
        assert_eq!(Layout::for_interrupts(190).devices(), 191);
        assert_eq!(Layout::for_interrupts(191).accounts(), 512);
        assert_eq!(Layout::for_interrupts(u32::MAX).accounts(), 4096);
    }

    #[test]
    fn banks_follow_the_header() {
        let layout = Layout::for_interrupts(0);
        assert_eq!(header_word(ACCOUNTS), layout.first_word(0));
        assert_eq!(layout.first_word(1) * 8, 128 + usize::try_from(layout.bank()).unwrap());
        assert_eq!(layout.words(), layout.first_word(2));
        assert_eq!(layout.bank() >> layout.bank_to_word(), 8);
        let [tasks, wakes] = [Table::Tasks, Table::Wakes].map(|table| layout.first_word_of(1, table));
        assert_eq!((tasks, wakes), (layout.first_word(1) + 512, layout.first_word(1) + 768));
        let offset = |table| usize::try_from(layout.table(table)).unwrap();
        assert_eq!(layout.first_word(1) * 8 + offset(Table::Wakes), wakes * 8);
        assert_eq!(tasks - layout.first_word(1), offset(Table::Tasks) / 8);
        assert_eq!((layout.places(), layout.place_mask(), layout.account_mask()), (128, 127, 4080));
    }
}
