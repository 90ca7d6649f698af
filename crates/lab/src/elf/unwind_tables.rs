//! Whether following a file's unwind tables ends. Whoever wrote the file wrote them, and framehop follows them without a limit: an expression
//! that jumps back would be evaluated for ever.

use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CieOrFde, EhFrameHdr, Encoding, EndianSlice,
    LittleEndian, Operation, UnwindOffset, UnwindSection,
};

/// Instructions that are followed for one address, with the operations of their expressions. The longest function known, of rustc, has
/// somewhat more than 16,384.
const MOST_STEPS: usize = 1 << 16;
/// Of all addresses of a file. The largest programs have some ten millions.
const MOST_IN_FILE: usize = 1 << 26;

/// As framehop reads them.
type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Where in a section the descriptions begin that its entries list, in order; `None` if the section is damaged, or one of them has an
/// expression that jumps (compilers make none) or too many steps.
pub(super) fn checked<'a, S: UnwindSection<Bytes<'a>>>(section: &S, bases: &BaseAddresses) -> Option<Vec<usize>> {
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
pub(super) fn leads_to(table: &[u8], offsets: &[usize], bases: &BaseAddresses) -> bool {
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
