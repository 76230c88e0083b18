//! Disks for a domain that exists: planned around what it has, and added to its text.

use std::path::Path;

use vmdisk::model::{BackendSource, Change, DomainField, FieldPath, Scope};
use vmdisk::plan::{GuestOs, GuestSpec, Plan, PlanErrors, Spec, plan_into};
use vmdisk::{Document, Facts, Source};
use vmdisk_source::apply_edits;

use super::check::Check;
use super::spec::GenerateInput;
use super::write::Written;
use crate::input::inputs::{Input, Origin};
use crate::input::read;
use crate::stop::Stop;

/// The name space of the notes of libosinfo.
const LIBOSINFO: &str = "http://libosinfo.org/xmlns/libvirt/domain/1.0";

/// A domain that disks are added to.
pub(super) struct Existing {
    path: String,
    document: Document,
}

impl Existing {
    /// Reads the domain of a file.
    pub(super) fn read(path: &Path) -> Result<Self, Stop> {
        let input = Input::new(path.to_owned(), Origin::Named);
        let bytes = read::file(path).map_err(Stop::from)?;
        let document = read::document(&input, &bytes).map_err(Stop::from)?;
        let is_domain = matches!(&document.source, Source::LibvirtXml(_))
            && document.domain().scope == Scope::WholeGuest;
        // Text decoded from another encoding could not be written back unchanged.
        if !is_domain || document.text.as_bytes() != bytes {
            return Err(Stop::new(format!(
                "--into {}: expected a libvirt domain in UTF-8",
                path.display()
            )));
        }
        Ok(Existing {
            path: input.path(),
            document,
        })
    }

    /// Plans the disks around what the domain has.
    pub(super) fn plan(
        &self,
        asked: &GenerateInput<'_>,
        facts: &Facts,
        check: &Check<'_>,
    ) -> Result<Plan, Stop> {
        let asked_guest = asked.spec.guest.clone().unwrap_or_default();
        let known = GuestSpec {
            os: asked_guest.os.or_else(|| noted_os(&self.document)),
            drivers: asked_guest.drivers,
            ..GuestSpec::default()
        };
        if asked_guest
            != (GuestSpec {
                os: asked_guest.os,
                ..known.clone()
            })
        {
            return Err(
                Stop::new("--into does not change the guest, but the spec describes one")
                    .help("remove `guest` from the spec, but for `os` and `drivers`"),
            );
        }
        let spec = Spec {
            guest: Some(known),
            ..asked.spec.clone()
        };
        let resolved = vmdisk::resolve(&self.document);
        plan_into(&spec, &resolved.domain, facts, check.target)
            .map_err(|errors: PlanErrors| asked.stop(&errors))
    }

    /// The text of the domain with the disks of a plan, and findings that they add to it.
    pub(super) fn add(&self, plan: &Plan, check: &Check<'_>) -> Result<Written, Stop> {
        let Source::LibvirtXml(source) = &self.document.source else {
            return Err(Stop::new("expected a libvirt domain"));
        };
        let before = &self.document.text;
        let refuse = |why: String| Stop::new(format!("{}: {why}", self.path));
        let new = &plan.domain;
        let changes = self.changes(plan);
        let edits =
            vmdisk::write::add_devices(before, source, &new.controllers, &new.disks, &changes)
                .map_err(|error| refuse(error.to_string()))?;
        let text = apply_edits(before, &edits).map_err(|error| refuse(error.to_string()))?;
        Ok(Written {
            warnings: check.added(before, &text, plan)?,
            text,
        })
    }

    /// What changes outside `<devices>`.
    fn changes(&self, plan: &Plan) -> Vec<Change> {
        let domain = self.document.domain();
        let mut changes = Vec::new();
        let mut set = |field, value: &str| {
            changes.push(Change::set(FieldPath::Domain(field), value));
        };
        let iothreads = plan.domain.iothreads.iter().map(|thread| thread.id.0);
        if let Some(last) = iothreads.max() {
            set(DomainField::IoThreads, &last.to_string());
        }
        let mut disks = plan.domain.disks.iter();
        let is_served =
            disks.any(|disk| matches!(disk.backend.source, BackendSource::VhostUser(_)));
        let memory = &domain.memory_backing;
        if is_served && memory.source.is_none() && memory.access.is_none() {
            set(DomainField::MemorySource, "memfd");
            set(DomainField::MemoryAccess, "shared");
        }
        changes
    }
}

/// The operating system that the creator of a guest noted, by the names of libosinfo.
pub(crate) fn noted_os(document: &Document) -> Option<GuestOs> {
    let document = roxmltree::Document::parse(&document.text).ok()?;
    let is_os = |it: &roxmltree::Node<'_, '_>| it.has_tag_name((LIBOSINFO, "os"));
    let os = document.descendants().find(is_os)?;
    let id = os.attribute("id")?;
    Some(match id.contains("microsoft.com/win") {
        true => GuestOs::Windows,
        false => GuestOs::Linux,
    })
}
