//! A host by its facts, to keep and to share.

use std::sync::Arc;

use vmdisk_facts::{Facts, FactsError, HostIndex};

self_cell::self_cell! {
    struct IndexedFacts {
        owner: Facts,
        #[covariant]
        dependent: HostIndex,
    }
    impl { Debug }
}

/// The facts of a host, indexed once. Clones share them.
///
/// ```
/// let host = vmdisk::Host::parse("schema_version: '1.0'\nlimits: {io_uring_disabled: 2}\n")?;
/// let kept = host.clone();
/// let document = vmdisk::read("<disk><driver type='raw' io='io_uring'/><source file='/a'/><target dev='vda'/></disk>")?;
/// let found = std::thread::spawn(move || vmdisk::lint(&document, &kept.options())).join().unwrap();
/// assert!(found.diagnostics.iter().any(|found| found.rule.name == "io-uring-disabled"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Host(Arc<IndexedFacts>);

impl Default for Host {
    /// A host of which nothing is known.
    fn default() -> Self {
        Host::new(Facts::default())
    }
}

impl Host {
    /// A host with these facts.
    pub fn new(facts: Facts) -> Self {
        Host(Arc::new(IndexedFacts::new(facts, |facts| {
            HostIndex::new(facts)
        })))
    }

    /// A host by the text of its facts, in JSON or YAML. Members that only newer versions know are left out, and so are
    /// the warnings about them; [`Facts::parse`] has both.
    ///
    /// # Errors
    /// If the text is not one of facts.
    pub fn parse(text: &str) -> Result<Self, FactsError> {
        Ok(Host::new(Facts::parse(text)?.facts))
    }

    /// The facts.
    pub fn facts(&self) -> &Facts {
        self.0.borrow_owner()
    }

    /// The facts, if no clone shares them.
    #[cfg(all(feature = "plan", feature = "trace"))]
    pub(crate) fn into_facts(self) -> Option<Facts> {
        Arc::into_inner(self.0).map(IndexedFacts::into_owner)
    }

    /// The index of the facts.
    pub fn index(&self) -> &HostIndex<'_> {
        self.0.borrow_dependent()
    }
}
