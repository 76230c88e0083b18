# What a new thin volume shows of a deleted one, in a pool that zeroes new chunks and in one that does not.
build() {
    quietly pvcreate -y "$A"
    quietly vgcreate -s 4m vg0 "$A"
    quietly lvcreate -y --type thin-pool -L 64M -c 4m -Zn -n without-zeroing vg0
    quietly lvcreate -y --type thin-pool -L 64M -c 4m -Zy -n with-zeroing vg0
}
facts() {
    for pool in without-zeroing with-zeroing; do
        quietly lvcreate -y -V 48M -T "vg0/$pool" -n deleted
        quietly lab-inside fill /dev/vg0/deleted
        quietly lvremove -f vg0/deleted
        quietly lvcreate -y -V 48M -T "vg0/$pool" -n new
        trial "$pool" stale /dev/vg0/new 4194304
        quietly lvremove -f vg0/new
    done
}
tear_down() {
    quietly vgremove -f vg0
    quietly pvremove "$A"
}
