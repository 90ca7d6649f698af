//! Busy work added to each request (`inject_ns`), a known cost that tests whether a measurement attributes it to the
//! right layer.

use sys::burner::Burner;

/// How much busy work to add, and where. The thread does nothing else meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    pub at: Layer,
    /// The work, if any. Each server thread calibrates its own copy; a client uses it as it is.
    pub burner: Option<Burner>,
}

/// A layer that busy work can be added to. Requests that are only claimed to be done get none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The client, for each reply that it has parsed.
    Wire,
    /// The server, for each request that it has parsed.
    Server,
    /// The server, for each request that reaches its storage: before a read, after a write.
    Storage,
}

impl Delay {
    /// No busy work.
    pub const NONE: Self = Self { at: Layer::Server, burner: None };

    /// Busy work of this many ticks (`sys::clock::ticks`); 0: none.
    pub fn new(at: Layer, ticks: u64) -> Self {
        Self { at, burner: (ticks > 0).then(|| Burner::uncalibrated(ticks)) }
    }

    /// Calibrates the work for the calling thread. Returns the actual cost in ticks; `None` if there is no work.
    pub fn calibrate(&mut self) -> Option<f64> {
        let calibrated = Burner::calibrated(self.burner?.asked_ticks());
        self.burner = Some(calibrated.burner);
        Some(calibrated.burnt_ticks)
    }

    /// Performs the work if it belongs to this layer.
    #[inline(always)]
    pub(crate) fn at(self, layer: Layer) {
        if let Some(burner) = self.burner.filter(|_| self.at == layer) {
            burner.burn();
        }
    }
}
