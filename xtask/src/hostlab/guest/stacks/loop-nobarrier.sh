# A loop device on a file of ext4 that is mounted without barriers; xfs has no such option since Linux 4.19.
build() {
    quietly mkfs.ext4 -q -U "$UUID_1" -E lazy_itable_init=0 "$C"
    mkdir -p /srv/images
    quietly mount -o nobarrier "$C" /srv/images
    truncate -s 128M /srv/images/loop.img
    truncate -s 64M /srv/images/disk.img
    quietly losetup --direct-io=on /dev/loop0 /srv/images/loop.img
    sync
}
facts() {
    collect /dev/loop0 /srv/images/disk.img
}
tear_down() {
    quietly losetup -d /dev/loop0
    quietly umount /srv/images
    quietly wipefs -a "$C"
}
