//! A guest that is there beside the guest of a plan.

use vmdisk::Document;
use vmdisk::model::Domain;
use vmdisk::plan::{ChangePlan, Difference, Plan, PlannedChange, Spec};

use super::change::{self, Definition};
use super::devices;
use super::guest::{self, Existing};

/// What libvirt has under the name of a guest, and what is planned.
pub(super) struct Comparison {
    name: String,
    existing: Existing,
    /// Devices beside the disks that the guest lacks.
    devices: Result<Vec<Difference>, String>,
}

/// What a comparison says.
#[derive(Default)]
pub(super) struct Compared<'a> {
    /// The state of the guest in the words of the report; none without a guest.
    pub(super) state: Option<&'static str>,
    /// Why it is no reason to go on.
    pub(super) reasons: Vec<String>,
    /// What differs, and stays.
    pub(super) staying: Vec<&'a Difference>,
    /// The definition with the changes that are asked for.
    pub(super) definition: Option<Definition<'a>>,
}

impl Comparison {
    /// Asks libvirt for the guest.
    pub(super) fn of(name: &str, planned: &str) -> Self {
        let existing = guest::existing(name, true);
        let devices = match &existing {
            Existing::There(document) => guest::missing_devices(planned, &document.text),
            Existing::Missing | Existing::Unknown(_) => Ok(Vec::new()),
        };
        Comparison {
            name: name.to_owned(),
            existing,
            devices: devices.map_err(|why| why.to_string()),
        }
    }

    /// The guest that is there.
    pub(super) fn existing(&self) -> Option<&Document> {
        match &self.existing {
            Existing::There(document) => Some(document),
            Existing::Missing | Existing::Unknown(_) => None,
        }
    }

    /// Compares them; `asked` are the changes that may be made, and without any, all that differs is a reason to refuse.
    pub(super) fn compare<'a>(
        &'a self,
        spec: &'a Spec,
        plan: &'a Plan,
        (changes, asked): (&'a ChangePlan, &[&'a PlannedChange]),
        is_refused: bool,
    ) -> Compared<'a> {
        let name = &self.name;
        let mut compared = Compared::default();
        let missing = match &self.devices {
            Ok(missing) => missing,
            Err(why) => {
                compared.state = Some("unknown");
                let why = format!("the devices of the guest {name} cannot be compared: {why}");
                compared.reasons.push(why);
                return compared;
            }
        };
        let document = match &self.existing {
            Existing::Missing => {
                compared.state = Some("planned");
                compared.reasons = devices::in_use(&plan.domain);
                return compared;
            }
            Existing::Unknown(why) => {
                compared.state = Some("unknown");
                let why = format!("whether the guest {name} exists is not known: {why}");
                compared.reasons.push(why);
                return compared;
            }
            Existing::There(document) => document,
        };
        let left = changes.changes.iter().filter(|it| !asked.contains(it));
        let staying = changes.unchanged.iter().chain(missing);
        compared.staying = staying.chain(left.flat_map(|it| &it.differences)).collect();
        let added = asked.iter().flat_map(|it| it.definition.disks.clone());
        compared.reasons = devices::in_use(&Domain {
            disks: added.collect(),
            ..Domain::default()
        });
        // libvirt changes these when their data is copied.
        let copied = asked.iter().filter(|it| it.live_copy().is_some());
        let copied = copied.flat_map(|it| &it.differences);
        let staying: Vec<&Difference> = compared.staying.iter().copied().chain(copied).collect();
        match change::definition(document, (spec, plan), asked, &staying) {
            Ok(changed) => compared.definition = changed,
            Err(why) => compared.reasons.push(format!(
                "the definition of the guest {name} cannot be changed: {why}"
            )),
        }
        if is_refused && !compared.staying.is_empty() {
            let lines = guest::lines(&compared.staying);
            let why = format!("the guest {name} exists and differs from the plan:{lines}");
            compared.reasons.push(why);
        }
        let is_done = compared.staying.is_empty() && compared.definition.is_none();
        compared.state = Some(if is_done { "already-done" } else { "differs" });
        compared
    }
}
