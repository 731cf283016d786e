#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs in a guest (MEM=4096 dev/kernels run VERSION this): the labelled workloads for which a host has to be another, a server
# of NFS and control groups of the second version. dev/install has unpacked the server's programs.
set -euo pipefail
tree=${SLUICE_TREE:?is set by dev/kernels}
export SLUICE_BUILD=${SLUICE_BUILD:?is set by dev/kernels}
workloads=('NFS*' 'memory.high')

modprobe -a ext4 loop nfsd nfsv4 sch_netem
truncate -s 1800M /dev/shm/disk.img
mkfs.ext4 -q /dev/shm/disk.img
mkdir /dev/shm/disk
mount -o loop /dev/shm/disk.img /dev/shm/disk

export PATH=$tree/build/nfs/usr/sbin:$PATH
cp "$tree/build/nfs/sbin/mount.nfs" /sbin/mount.nfs4
mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /var/lib/nfs/v4recovery /run/rpc_pipefs
touch /var/lib/nfs/etab /var/lib/nfs/rmtab /etc/exports
# A client of before may claim its files for so many seconds: there is none.
echo 10 >/proc/fs/nfsd/nfsv4leasetime
echo 10 >/proc/fs/nfsd/nfsv4gracetime
rpc.nfsd --no-udp --no-nfs-version 3 2
rpc.mountd --no-nfs-version 3
sleep 12

# Its server is as far away as another machine: over loopback alone the emulated CPUs are what is waited for.
tc qdisc add dev lo root netem delay 20ms

uname -sr
TMPDIR=/dev/shm/disk PYTHONDONTWRITEBYTECODE=1 "$tree/build/venv/bin/python" "$tree/tests/labelled/matrix.py" --delays both "${workloads[@]}"
