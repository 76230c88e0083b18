# A loop device on a file in memory, and ext4 on it.
build() {
    mkdir -p /srv/memory /srv/images
    quietly mount -t tmpfs -o size=160M tmpfs /srv/memory
    truncate -s 128M /srv/memory/disk.img
    quietly losetup /dev/loop0 /srv/memory/disk.img
    quietly mkfs.ext4 -q -U "$UUID_1" -E lazy_itable_init=0 /dev/loop0
    quietly mount /dev/loop0 /srv/images
    truncate -s 64M /srv/images/disk.img
    sync
}
facts() {
    collect /srv/images/disk.img
}
tear_down() {
    quietly umount /srv/images
    quietly losetup -d /dev/loop0
    quietly umount /srv/memory
}
