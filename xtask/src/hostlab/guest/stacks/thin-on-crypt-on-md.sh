# Everything at once: a mirror, encrypted, with a thin pool in it, and ext4 with an image on one of its volumes.
build() {
    printf secret > /tmp/key
    quietly mdadm --create /dev/md0 --run --assume-clean --level=1 --raid-devices=2 --metadata=1.2 --homehost=hostlab \
        --name=mirror --uuid="$UUID_1" "$A" "$B"
    quietly cryptsetup luksFormat -q --type luks2 --uuid "$UUID_1" --sector-size 4096 --pbkdf pbkdf2 \
        --pbkdf-force-iterations 1000 --key-file /tmp/key /dev/md0
    quietly cryptsetup open --key-file /tmp/key --allow-discards /dev/md0 secrets
    quietly pvcreate -y /dev/mapper/secrets
    quietly vgcreate -s 4m vg0 /dev/mapper/secrets
    quietly lvcreate -y --type thin-pool -L 600M -c 512k -Zy -n pool vg0
    quietly lvcreate -y -V 512M -T vg0/pool -n images
    quietly mkfs.ext4 -q -U "$UUID_2" -E lazy_itable_init=0 -J size=4 /dev/vg0/images
    mkdir -p /srv/images
    quietly mount /dev/vg0/images /srv/images
    truncate -s 64M /srv/images/disk.img
}
facts() {
    collect /srv/images/disk.img
}
tear_down() {
    quietly umount /srv/images
    quietly vgremove -f vg0
    quietly pvremove /dev/mapper/secrets
    quietly cryptsetup close secrets
    quietly wipefs -a /dev/md0
    quietly mdadm --stop /dev/md0
    quietly mdadm --zero-superblock "$A" "$B"
}
