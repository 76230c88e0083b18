# A whole mirror with xfs on it, as md has it once the copies agree.
build() {
    quietly mdadm --create /dev/md0 --run --assume-clean --level=1 --raid-devices=2 --metadata=1.2 --homehost=hostlab \
        --name=mirror --uuid="$UUID_1" "$C" "$D"
    quietly mkfs.xfs -q -f -m uuid="$UUID_2" /dev/md0
    mkdir -p /srv/images
    quietly mount /dev/md0 /srv/images
    truncate -s 64M /srv/images/disk.img
}
facts() {
    collect /srv/images/disk.img
}
tear_down() {
    quietly umount /srv/images
    quietly wipefs -a /dev/md0
    quietly mdadm --stop /dev/md0
    quietly mdadm --zero-superblock "$C" "$D"
}
