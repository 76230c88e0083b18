//! The slots of Linux AIO: those of a host, and those that threads with native AIO need.

use crate::facts::Facts;
use crate::missing::Missing;

/// The slots of one thread (`MAX_EVENTS` in QEMU's block/linux-aio.c).
pub const SLOTS_OF_THREAD: u64 = 1024;

/// The need of some threads for slots, on a host with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AioSlots {
    /// What the threads reserve.
    pub needed: u64,
    /// The limit of the host (`fs.aio-max-nr`).
    pub most: u64,
    /// What was reserved when the facts were collected; it can include this guest's.
    pub taken: Option<u64>,
}

impl AioSlots {
    /// The slots of so many threads; `None` if the kernel has no limit.
    ///
    /// # Errors
    /// Fails if the limit was not collected.
    pub fn of(facts: &Facts, threads: u64) -> Result<Option<Self>, Missing> {
        let most = facts.limits.aio_max_nr.clone();
        let most = most.needed(|| "fs.aio-max-nr".to_owned())?;
        Ok(most.map(|most| AioSlots {
            needed: SLOTS_OF_THREAD.saturating_mul(threads),
            most,
            taken: facts.limits.aio_nr.value().copied(),
        }))
    }

    /// True if the host has too few, whatever else runs on it.
    pub const fn are_too_few(&self) -> bool {
        self.needed > self.most
    }

    /// True if the host has too few beside what was reserved.
    pub fn are_too_few_now(&self) -> bool {
        self.needed.saturating_add(self.taken.unwrap_or(0)) > self.most
    }

    /// The numbers in words.
    pub fn reason(&self) -> String {
        let AioSlots { needed, most, .. } = self;
        let needs = format!("{needed} slots for Linux AIO are needed, but the host has {most}");
        match self.taken {
            Some(taken) if !self.are_too_few() => format!("{needs}, and {taken} are taken"),
            _ => needs,
        }
    }
}
