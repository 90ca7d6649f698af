//! `zonemode=strided`: the part of a file that requests are in until `zonesize` bytes are moved.

/// The zone of a file. Offsets are relative to the part of the file that the job uses; as in fio, zones go on behind it up to
/// the end of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    pub begin: u64,
    /// Bytes of a zone that are used.
    pub range: u64,
    /// Bytes to move in a zone.
    size: u64,
    /// From one zone to the next.
    stride: u64,
    /// Where the file ends.
    whole: u64,
    /// Bytes moved in this zone.
    pub moved: u64,
}

impl Zone {
    pub fn new(range: u64, size: u64, skip: u64, whole: u64) -> Self {
        Self { begin: 0, range, size, stride: range.saturating_add(skip), whole, moved: 0 }
    }

    /// Whether the next one follows.
    pub fn is_over(&self) -> bool {
        self.moved >= self.size
    }

    /// Whether it has been moved as a whole some times.
    pub fn begins_anew(&self) -> bool {
        self.moved > 0 && self.moved.is_multiple_of(self.range.max(1))
    }

    /// Where the next zone begins; behind the end of the file the first one follows.
    pub fn following(&self) -> u64 {
        let next = self.begin.saturating_add(self.stride);
        if next >= self.whole { 0 } else { next }
    }

    pub fn enter(&mut self, begin: u64) {
        (self.begin, self.moved) = (begin, 0);
    }

    pub fn end(&self) -> u64 {
        self.begin.saturating_add(self.range)
    }

    /// Its bytes, less than its range at the end of the file.
    pub fn room(&self) -> u64 {
        self.range.min(self.whole.saturating_sub(self.begin))
    }

    /// A number of requests of these sizes that are in this zone, or in the next one if this one is over. As in fio, none is in a zone
    /// at the end of the file that is shorter than a request.
    pub fn left(&self, least: u64, most: u64) -> u64 {
        let (begin, moved) = if self.is_over() { (self.following(), 0) } else { (self.begin, self.moved) };
        let room = self.range.min(self.whole.saturating_sub(begin));
        if room < least { 0 } else { self.size.saturating_sub(moved).div_ceil(most.max(1)).max(1) }
    }

    /// Where a request that follows one that ended here is.
    pub fn next(&self, end: u64) -> u64 {
        if self.is_over() {
            self.following()
        } else if end >= self.end() {
            self.begin
        } else {
            end
        }
    }
}
