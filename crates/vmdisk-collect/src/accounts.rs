//! Accounts and groups in the system's files; those in directory services are not visible.

use crate::root::Root;

/// One account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The accounts and groups of a system.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: String,
    groups: String,
}

impl Accounts {
    pub(crate) fn read(root: &Root) -> Self {
        Self {
            users: root.text("/etc/passwd").unwrap_or_default(),
            groups: root.text("/etc/group").unwrap_or_default(),
        }
    }

    /// Finds an account by name, or by number in libvirt's notation: with a plus sign, or if no name matches.
    pub(crate) fn user(&self, wanted: &str) -> Option<Account> {
        let by_name = self.users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| *name == wanted)?;
            let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
            Some(Account {
                name: name.to_owned(),
                uid,
                gid,
            })
        });
        by_name.or_else(|| {
            let number: u32 = wanted.strip_prefix('+').unwrap_or(wanted).parse().ok()?;
            let named = self.users.lines().find_map(|line| {
                let mut fields = line.split(':');
                let name = fields.next()?;
                let uid: u32 = fields.nth(1)?.parse().ok()?;
                (uid == number).then_some(name)
            });
            named.and_then(|name| self.user(name))
        })
    }

    /// Finds the number of a group by name or number.
    pub(crate) fn group(&self, wanted: &str) -> Option<u32> {
        let by_name = self.groups.lines().find_map(|line| {
            let mut fields = line.split(':');
            fields.next().filter(|name| *name == wanted)?;
            fields.nth(1)?.parse().ok()
        });
        by_name.or_else(|| wanted.strip_prefix('+').unwrap_or(wanted).parse().ok())
    }

    /// Returns the groups of an account, including its primary group, sorted.
    pub(crate) fn groups_of(&self, user: &str, own: u32) -> Vec<u32> {
        let also = self.groups.lines().filter_map(|line| {
            let mut fields = line.split(':').skip(2);
            let number = fields.next()?.parse().ok()?;
            let is_member = fields
                .next()?
                .split(',')
                .any(|member| member.trim() == user);
            is_member.then_some(number)
        });
        let mut all: Vec<u32> = also.chain([own]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> Accounts {
        Accounts {
            users: "root:x:0:0:root:/root:/bin/sh\n\
                    libvirt-qemu:x:64055:107:Libvirt Qemu,,,:/var/lib/libvirt:/usr/sbin/nologin\nbroken\n"
                .to_owned(),
            groups: "kvm:x:107:\nlibvirt-qemu:x:64055:libvirt-qemu\ndisk:x:6:joe,libvirt-qemu\nbroken\n"
                .to_owned(),
        }
    }

    #[test]
    fn an_account_is_found_by_name_and_by_number() {
        let account = Account {
            name: "libvirt-qemu".to_owned(),
            uid: 64_055,
            gid: 107,
        };
        for wanted in ["libvirt-qemu", "+64055", "64055"] {
            assert_eq!(accounts().user(wanted), Some(account.clone()), "{wanted}");
        }
        assert_eq!(accounts().user("qemu"), None);
        assert_eq!(accounts().user("1"), None);
        assert_eq!(accounts().group("kvm"), Some(107));
        assert_eq!(accounts().group("+7"), Some(7));
        assert_eq!(accounts().group("nobody"), None);
    }

    #[test]
    fn groups_are_the_primary_group_and_groups_with_the_account() {
        assert_eq!(accounts().groups_of("libvirt-qemu", 107), [6, 107, 64_055]);
        assert_eq!(accounts().groups_of("joe", 107), [6, 107]);
    }
}
