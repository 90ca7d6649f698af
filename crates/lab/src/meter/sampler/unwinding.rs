//! How the stacks of a program are unwound: by the tables of its file.
//!
//! Whoever wrote the file wrote them, and framehop follows them without a limit: an expression that jumps back would be evaluated for ever. So
//! they are checked first.

use crate::names::{Mapping, Segment, segments};
use framehop::{ExplicitModuleSectionInfo, Module};
use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, Encoding,
    EndianSlice, LittleEndian, Operation, UnwindOffset, UnwindSection,
};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection};
use std::ops::Range;
use std::sync::Arc;

/// What unwinding the stacks of a file's functions takes.
pub(super) struct Unwinding {
    segments: Vec<Segment>,
    text: Option<Section>,
    eh_frame: Option<Section>,
    eh_frame_hdr: Option<Section>,
    debug_frame: Option<Section>,
    /// Whether it has tables that are not followed.
    pub(super) refused: bool,
}

/// A section, and where its file wants it.
struct Section {
    addresses: Range<u64>,
    bytes: Arc<[u8]>,
}

impl Unwinding {
    /// Of a program or library; `None` if it is something else.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            let bytes = section.data().ok()?.into();
            Some(Section { addresses: section.address()..section.address().checked_add(section.size())?, bytes })
        };
        let [text, eh_frame, eh_frame_hdr, debug_frame] =
            [".text", ".eh_frame", ".eh_frame_hdr", ".debug_frame"].map(section);
        let begin = |section: &Option<Section>| section.as_ref().map_or(0, |section| section.addresses.start);
        let bases = BaseAddresses::default().set_eh_frame(begin(&eh_frame)).set_eh_frame_hdr(begin(&eh_frame_hdr));
        let bases = bases.set_text(begin(&text)).set_got(0);
        let offsets = eh_frame.as_ref().and_then(|it| {
            let mut section = EhFrame::new(&it.bytes, LittleEndian);
            section.set_address_size(8);
            checked(&section, &bases)
        });
        let checked_debug_frame = debug_frame.as_ref().is_some_and(|it| {
            let mut section = DebugFrame::new(&it.bytes, LittleEndian);
            section.set_address_size(8);
            checked(&section, &bases).is_some()
        });
        let refused = eh_frame.is_some() && offsets.is_none() || debug_frame.is_some() && !checked_debug_frame;
        // Without the table framehop makes one of the descriptions that the section lists.
        let leads = |it: &Section| offsets.as_ref().is_some_and(|offsets| leads_to(&it.bytes, offsets, &bases));
        Some(Self {
            segments: segments(&file),
            text,
            eh_frame_hdr: eh_frame_hdr.filter(leads),
            eh_frame: eh_frame.filter(|_| offsets.is_some()),
            debug_frame: debug_frame.filter(|_| checked_debug_frame),
            refused,
        })
    }

    /// The file as one process has mapped it.
    pub(super) fn module(&self, name: &str, begin: u64, mapping: &Mapping) -> Option<Module<Arc<[u8]>>> {
        // Where the file's address 0 would be. A page may hold the end of one segment and the begin of the next, which is mapped from there.
        let segment = self.segments.iter().rev().find(|segment| segment.holds_page(mapping.offset))?;
        let base = begin.wrapping_sub(mapping.offset).wrapping_sub(segment.address.wrapping_sub(segment.offset));
        let section = |section: &Option<Section>| {
            (section.as_ref().map(|it| it.addresses.clone()), section.as_ref().map(|it| it.bytes.clone()))
        };
        let (text_svma, text) = section(&self.text);
        let (eh_frame_svma, eh_frame) = section(&self.eh_frame);
        let (eh_frame_hdr_svma, eh_frame_hdr) = section(&self.eh_frame_hdr);
        let (_, debug_frame) = section(&self.debug_frame);
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma,
            text,
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            debug_frame,
            ..ExplicitModuleSectionInfo::default()
        };
        Some(Module::new(name.to_owned(), begin..mapping.end, base, sections))
    }

    /// Its bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        let sections = [&self.text, &self.eh_frame, &self.eh_frame_hdr, &self.debug_frame];
        sections.into_iter().flatten().map(|section| section.bytes.len()).sum()
    }
}

/// Instructions that are followed for one address, with the operations of their expressions. The longest function known, of rustc, has
/// somewhat more than 16,384.
const MOST_STEPS: usize = 1 << 16;
/// Of all addresses of a file. The largest programs have some ten millions.
const MOST_IN_FILE: usize = 1 << 26;

/// As framehop reads them.
type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Where in a section the descriptions begin that its entries list, in order; `None` if the section is damaged, or one of them has an
/// expression that jumps (compilers make none) or too many steps.
fn checked<'a, S: UnwindSection<Bytes<'a>>>(section: &S, bases: &BaseAddresses) -> Option<Vec<usize>> {
    let (mut offsets, mut left, mut common) = (Vec::new(), MOST_IN_FILE, None);
    let mut entries = section.entries(bases);
    while let Some(entry) = entries.next().ok()? {
        let CieOrFde::Fde(partial) = entry else { continue };
        let parsed = partial.parse(|section, bases, offset| match common.take() {
            Some(known) if gimli::CommonInformationEntry::offset(&known) == UnwindOffset::into(offset) => Ok(known),
            _ => {
                let fresh = section.cie_from_offset(bases, offset)?;
                let taken = steps(fresh.instructions(section, bases), section, fresh.encoding());
                left = taken.and_then(|taken| left.checked_sub(taken)).ok_or(gimli::Error::TooManyIterations)?;
                Ok(fresh)
            }
        });
        let description = parsed.ok()?;
        let encoding = description.cie().encoding();
        left = left.checked_sub(steps(description.instructions(section, bases), section, encoding)?)?;
        offsets.push(description.offset());
        common = Some(description.cie().clone());
    }
    Some(offsets)
}

/// How many steps instructions take.
fn steps<'a, S: UnwindSection<Bytes<'a>>>(
    mut instructions: CallFrameInstructionIter<'_, Bytes<'a>>,
    section: &S,
    encoding: Encoding,
) -> Option<usize> {
    let mut steps = 0;
    // Where one is damaged, whoever follows them ends too.
    while let Ok(Some(instruction)) = instructions.next() {
        steps += 1;
        if let CallFrameInstruction::DefCfaExpression { expression }
        | CallFrameInstruction::Expression { expression, .. }
        | CallFrameInstruction::ValExpression { expression, .. } = instruction
        {
            let mut operations = expression.get(section).ok()?.operations(encoding);
            while let Ok(Some(operation)) = operations.next() {
                steps += 1;
                if matches!(operation, Operation::Skip { .. } | Operation::Bra { .. }) {
                    return None;
                }
            }
        }
        if steps > MOST_STEPS {
            return None;
        }
    }
    Some(steps)
}

/// Whether a search table leads to these descriptions only.
fn leads_to(table: &[u8], offsets: &[usize], bases: &BaseAddresses) -> bool {
    let leads = || {
        let header = EhFrameHdr::new(table, LittleEndian).parse(bases, 8).ok()?;
        let begin = header.eh_frame_ptr().direct().ok()?;
        let table = header.table()?;
        let mut rows = table.iter(bases);
        while let Some((_, pointer)) = rows.next().ok()? {
            // gimli subtracts without asking whether the description lies behind the begin of the section.
            let offset = pointer.direct().ok()?.checked_sub(begin)?;
            offsets.binary_search(&usize::try_from(offset).ok()?).ok()?;
        }
        Some(())
    };
    leads().is_some()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn only_descriptions_that_were_checked_are_followed() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let at = |name: &str| {
            let file = ElfFile64::<Endianness>::parse(&*this).unwrap();
            usize::try_from(file.section_by_name(name).unwrap().file_range().unwrap().0).unwrap()
        };
        let tables = |change: &dyn Fn(&mut [u8])| {
            let mut bytes = this.clone();
            change(&mut bytes);
            let found = Unwinding::of(&bytes).unwrap();
            (found.refused, found.eh_frame.is_some(), found.eh_frame_hdr.is_some())
        };
        assert_eq!(tables(&|_| {}), (false, true, true));
        // The first row of the table refers to what no entry of the section lists.
        assert_eq!(tables(&|bytes| bytes[at(".eh_frame_hdr") + 16] ^= 1), (false, true, false));
        // The descriptions would lie in front of the section.
        assert_eq!(tables(&|bytes| bytes[at(".eh_frame_hdr") + 7] = 0x7f), (false, true, false));
        // An entry that is longer than its section.
        assert_eq!(tables(&|bytes| bytes[at(".eh_frame") + 2] = 0xff), (true, false, false));
    }
}
