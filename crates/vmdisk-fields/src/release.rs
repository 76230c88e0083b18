//! The first releases that accept a setting.

use crate::Since;

/// The oldest libvirt that is considered, in Debian 11.
pub const OLDEST_LIBVIRT: Since = (7, 0, 0);

/// The oldest QEMU that is considered, in Debian 11.
pub const OLDEST_QEMU: Since = (5, 2, 0);

/// The first releases that accept a setting; `None` for a program of which every considered release does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstReleases {
    /// Of libvirt.
    pub libvirt: Option<Since>,
    /// Of QEMU.
    pub qemu: Option<Since>,
}

impl FirstReleases {
    /// The releases that a table has; those that every considered release follows are dropped.
    ///
    /// ```
    /// use vmdisk_fields::FirstReleases;
    /// let later = FirstReleases::of(Some((9, 5, 0)), Some((5, 0, 0)));
    /// assert_eq!(later, FirstReleases { libvirt: Some((9, 5, 0)), qemu: None });
    /// ```
    pub fn of(libvirt: Option<Since>, qemu: Option<Since>) -> Self {
        FirstReleases {
            libvirt: libvirt.filter(|since| *since > OLDEST_LIBVIRT),
            qemu: qemu.filter(|since| *since > OLDEST_QEMU),
        }
    }

    /// The first releases that accept both settings.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        FirstReleases {
            libvirt: self.libvirt.max(other.libvirt),
            qemu: self.qemu.max(other.qemu),
        }
    }

    /// The releases of the programs whose version is open.
    #[must_use]
    pub fn of_programs(self, open: OpenVersions) -> Self {
        FirstReleases {
            libvirt: self.libvirt.filter(|_| open.libvirt),
            qemu: self.qemu.filter(|_| open.qemu),
        }
    }

    /// `libvirt 9.5 and QEMU 8.1 or later`; `None` if every considered release accepts the setting.
    pub fn text(self) -> Option<String> {
        let programs = [("libvirt", self.libvirt), ("QEMU", self.qemu)];
        let named = programs.iter().filter_map(|(program, since)| {
            let (major, minor, micro) = (*since)?;
            Some(match micro {
                0 => format!("{program} {major}.{minor}"),
                _ => format!("{program} {major}.{minor}.{micro}"),
            })
        });
        let named: Vec<String> = named.collect();
        (!named.is_empty()).then(|| format!("{} or later", named.join(" and ")))
    }
}

/// The programs whose version is open: a help names the first release that accepts the advised setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenVersions {
    /// True if the target names no libvirt.
    pub libvirt: bool,
    /// True if the target names no QEMU.
    pub qemu: bool,
}
