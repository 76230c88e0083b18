# An LVM thin pool as lvcreate makes it, with zeroing and small chunks; more is promised than there is.
build() {
    quietly pvcreate -y "$A"
    quietly vgcreate -s 4m vg-with-hyphen "$A"
    quietly lvcreate -y --type thin-pool -L 48M -c 64k -Zy --discards nopassdown -n pool vg-with-hyphen
    quietly lvcreate -y -V 1G -T vg-with-hyphen/pool -n guest-1
    quietly lvcreate -y -L 32M -n thick vg-with-hyphen
    dd if=/dev/zero bs=1M count=40 2>/dev/null | tr '\0' 'x' | dd of=/dev/vg-with-hyphen/guest-1 bs=1M iflag=fullblock oflag=direct 2>/dev/null
    sync
}
facts() {
    collect /dev/vg-with-hyphen/guest-1 /dev/mapper/vg--with--hyphen-thick
}
tear_down() {
    quietly vgremove -f vg-with-hyphen
    quietly pvremove "$A"
}
