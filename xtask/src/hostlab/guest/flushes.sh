#!/bin/sh
# Writes single blocks to the guest's disk and calls fsync after each, as many as the kernel's command line says.
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
while read -r module; do
    insmod "/modules/$module.ko"
done </modules/order
count=$(sed -n 's/.*vmdisk.count=\([0-9]*\).*/\1/p' /proc/cmdline)
tries=0
while [ ! -b /dev/vda ] && [ "$tries" -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
echo "LAB cache $(cat /sys/block/vda/queue/write_cache)"
block=0
while [ "$block" -lt "$count" ]; do
    dd if=/dev/zero of=/dev/vda bs=4096 count=1 seek="$block" conv=fsync,notrunc 2>/dev/null || echo "LAB failed $block"
    block=$((block + 1))
done
echo "LAB end $block"
poweroff -f
