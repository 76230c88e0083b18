# btrfs on two disks, data and metadata mirrored; checksums, NOCOW and compression by directory.
build() {
    quietly mkfs.btrfs -q -f -U "$UUID_SHARED" -s 4096 -d raid1 -m raid1 "$C" "$D"
    mkdir -p /srv/images
    quietly mount -o compress=zstd:3 "$C" /srv/images
    quietly btrfs subvolume create /srv/images/nocow
    quietly chattr +C /srv/images/nocow
    mkdir /srv/images/checksums /srv/images/compressed
    quietly chattr +c /srv/images/compressed
    for directory in nocow checksums compressed; do
        truncate -s 64M "/srv/images/$directory/disk.img"
    done
    dd if=/dev/zero bs=1M count=1 2>/dev/null | tr '\0' 'x' > /srv/images/compressed/data.img
    quietly cp --reflink=always /srv/images/compressed/data.img /srv/images/compressed/clone.img
    sync
}
facts() {
    collect /srv/images/nocow/disk.img /srv/images/checksums/disk.img /srv/images/compressed/disk.img \
        /srv/images/compressed/clone.img
}
tear_down() {
    quietly umount /srv/images
    quietly wipefs -a "$C" "$D"
}
