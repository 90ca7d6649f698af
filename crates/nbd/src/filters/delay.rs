//! Busy work that is added to each request (`inject_ns`), to see whether what is measured finds it where it is.

use sys::burner::Burner;

/// How much is added, and where. The thread that does it does nothing else meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Where.
    pub at: Layer,
    /// What, if anything. A server's threads calibrate it, each for itself; a client uses it as it is.
    pub burner: Option<Burner>,
}

/// A part of the path that busy work can be added to. What is only claimed to be done adds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A client, with each reply that it has understood.
    Wire,
    /// A server, with each request that it has understood.
    Server,
    /// A server, with each request that its storage is asked for: before what is read, after what is written.
    Storage,
}

impl Delay {
    /// Nothing is added.
    pub const NONE: Self = Self { at: Layer::Server, burner: None };

    /// So many ticks, if any (`sys::clock::ticks`).
    pub fn new(at: Layer, ticks: u64) -> Self {
        Self { at, burner: (ticks > 0).then(|| Burner::uncalibrated(ticks)) }
    }

    /// Calibrates it for the calling thread: what it burns each time, in ticks; `None` where nothing is added.
    pub fn calibrate(&mut self) -> Option<f64> {
        let calibrated = Burner::calibrated(self.burner?.asked_ticks());
        self.burner = Some(calibrated.burner);
        Some(calibrated.burnt_ticks)
    }

    /// Does it, if it is to be done here.
    #[inline(always)]
    pub(crate) fn at(self, layer: Layer) {
        if let Some(burner) = self.burner.filter(|_| self.at == layer) {
            burner.burn();
        }
    }
}
