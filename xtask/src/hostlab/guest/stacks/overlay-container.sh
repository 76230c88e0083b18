# The root of a container: an overlay whose layers have no path in its mount namespace.
build() {
    quietly mkfs.ext4 -q -U "$UUID_1" -E lazy_itable_init=0 "$C"
    mkdir -p /srv/disk /srv/images
    quietly mount "$C" /srv/disk
    mkdir -p /srv/disk/lower /srv/disk/upper /srv/disk/work
    quietly mount -t overlay -o lowerdir=/srv/disk/lower,upperdir=/srv/disk/upper,workdir=/srv/disk/work overlay /srv/images
    quietly umount -l /srv/disk
    truncate -s 64M /srv/images/disk.img
    sync
}
facts() {
    collect /srv/images/disk.img
}
tear_down() {
    quietly umount /srv/images
    quietly wipefs -a "$C"
}
