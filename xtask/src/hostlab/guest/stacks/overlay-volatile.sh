# An overlay with `volatile` on ext4, as container engines mount their scratch layers, and one without beside it.
build() {
    quietly mkfs.ext4 -q -U "$UUID_1" -E lazy_itable_init=0 "$C"
    mkdir -p /srv/disk /srv/images /srv/volatile
    quietly mount "$C" /srv/disk
    mkdir -p /srv/disk/lower /srv/disk/upper-1 /srv/disk/work-1 /srv/disk/upper-2 /srv/disk/work-2
    quietly mount -t overlay -o lowerdir=/srv/disk/lower,upperdir=/srv/disk/upper-1,workdir=/srv/disk/work-1 overlay /srv/images
    quietly mount -t overlay -o lowerdir=/srv/disk/lower,upperdir=/srv/disk/upper-2,workdir=/srv/disk/work-2,volatile \
        overlay /srv/volatile
    truncate -s 64M /srv/images/disk.img /srv/volatile/disk.img
    sync
}
facts() {
    collect /srv/images/disk.img /srv/volatile/disk.img
}
tear_down() {
    quietly umount /srv/volatile
    quietly umount /srv/images
    quietly umount /srv/disk
    quietly wipefs -a "$C"
}
