# A compressed disk in memory, and ext4 on it.
build() {
    echo lzo-rle > /sys/block/zram0/comp_algorithm
    echo 128M > /sys/block/zram0/disksize
    quietly mkfs.ext4 -q -U "$UUID_1" -E lazy_itable_init=0 /dev/zram0
    mkdir -p /srv/images
    quietly mount /dev/zram0 /srv/images
    truncate -s 64M /srv/images/disk.img
    sync
}
facts() {
    collect /srv/images/disk.img
}
tear_down() {
    quietly umount /srv/images
    echo 1 > /sys/block/zram0/reset
}
