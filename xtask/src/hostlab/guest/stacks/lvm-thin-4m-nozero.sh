# An LVM thin pool with chunks of 4 MiB that are not zeroed: a volume for a guest, its snapshot, and ext4 on another.
build() {
    quietly pvcreate -y "$A"
    quietly vgcreate -s 4m vg0 "$A"
    quietly lvcreate -y --type thin-pool -L 400M -c 4m -Zn -n pool vg0
    quietly lvcreate -y -V 512M -T vg0/pool -n guest
    quietly lvcreate -y -V 512M -T vg0/pool -n images
    quietly lvcreate -y -s -kn -n guest-snapshot vg0/guest
    quietly mkfs.ext4 -q -U "$UUID_1" -E lazy_itable_init=0 /dev/vg0/images
    mkdir -p /srv/images
    quietly mount /dev/vg0/images /srv/images
    truncate -s 64M /srv/images/disk.img
}
facts() {
    collect /dev/vg0/guest /srv/images/disk.img
}
tear_down() {
    quietly umount /srv/images
    quietly vgremove -f vg0
    quietly pvremove "$A"
}
