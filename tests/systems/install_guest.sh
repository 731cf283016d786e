#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install_guest.sh OLD NEW METHOD PROGRAMS: as root in a guest under systemd, with a mirror of the two releases in
# /mnt/share/mirror; prints what it saw, and ends with 1 where something is not as it should be.
set -eu
old=$1 new=$2 method=$3 programs=$4
mirror=/mnt/share/mirror

die() {
	echo "install_guest: $*" >&2
	journalctl -u sluice-agent --no-pager -n 30 >&2 || true
	exit 1
}

# What is on the disk, without what systemd and dpkg write all the time.
snapshot() {
	find /etc /usr /opt /var/lib /sys/fs/bpf \( -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/lib/systemd \
		-o -path /usr/share/man -o -name '*-' -o -name .pwd.lock -o -path '/etc/sub?id' -o -path /var/lib/private \) \
		-prune -o -print | sort
}

# storm NAME: programs that differ in their argument, until /root/over is there, and at least so many; how many is in
# /root/NAME.
storm() {
	i=0
	while [ ! -e /root/over ] || [ "$i" -lt "$programs" ]; do
		/bin/true "$1-$i"
		i=$((i + 1))
	done
	echo "$i" >"/root/$1"
}

# count NAME: how many programs of a storm the lake has the end of, and how many of these more than once; a record that was
# delivered again, after a crash, has the number of the first.
count() {
	sluice cat --topic program /var/lib/sluice/lake | python3 -c '
import collections, json, sys
ends = collections.defaultdict(set)
for line in sys.stdin:
    r = json.loads(line)
    if r["phase"] == "END" and len(r["argv"] or []) == 2 and r["argv"][1].rpartition("-")[0] == sys.argv[1]:
        ends[r["argv"][1]].add((r["agent_id"], r["seq"]))
print(len(ends), sum(len(numbers) > 1 for numbers in ends.values()))' "$1"
}

# over NAME COMMAND…: from the midst of a storm to the midst of it.
over() {
	name=$1
	shift
	rm -f /root/over
	storm "$name" &
	stormer=$!
	sleep 1
	"$@" || die "$*: failed"
	: >/root/over
	wait "$stormer"
	sluice ctl settle --delivered --timeout 120s >/dev/null || die "the agent does not settle after $name"
	ran=$(cat "/root/$name") found=$(count "$name")
	echo "$name: ${found% *} of $ran programs recorded, ${found#* } twice"
	[ "$found" = "$ran 0" ] || die "$name: programs are missing or counted twice"
}

snapshot >/root/before
# Before the package is there, the configuration that ops/cloud-init writes, with its mode: the agent reads it.
site() { sed -n "\\|path: /etc/sluice/conf.d/50-site.yaml|,\\|path: /run|s/^ *$1/\\1/p" /mnt/share/user-data.yaml; }
mkdir -p /etc/sluice/conf.d
site '\(lake: .*\)' >/etc/sluice/conf.d/50-site.yaml
chmod "$(site 'permissions: "\(0[0-7]*\)"$')" /etc/sluice/conf.d/50-site.yaml
sh $mirror/$old/install.sh --from $mirror --version "$old" --key /mnt/share/release.pub --method "$method"
systemctl is-active --quiet sluice-agent || die "the agent does not run"
systemctl is-enabled --quiet sluice-agent || die "the agent is not enabled"
over running true
pid() { systemctl show -p MainPID --value sluice-agent; }
first=$(pid)
over upgrade sh $mirror/$new/install.sh --from $mirror
[ "$(sluice --version | head -n 1)" = "sluice $new" ] || die "not upgraded"
[ "$(pid)" != "$first" ] || die "the agent is still the old one"
if sh $mirror/$old/install.sh --from $mirror --version "$old"; then die "an older version was not refused"; fi
over back sh $mirror/$old/install.sh --from $mirror --version "$old" --allow-downgrade
[ "$(sluice --version | head -n 1)" = "sluice $old" ] || die "not back"
# What no package manager has installed, sluice itself updates; and takes back what does worse.
if [ "$method" = file ]; then
	first=$(pid)
	over updated sluice update --from $mirror --watch 20s
	[ "$(sluice --version | head -n 1)" = "sluice $new" ] || die "not updated"
	[ "$(pid)" != "$first" ] || die "the agent is still the old one"
	bad() {
		status=0
		sluice update --from /mnt/share/bad --watch 30s || status=$?
		[ $status = 1 ] # rolled back
	}
	over undone bad
	[ "$(sluice --version | head -n 1)" = "sluice $new" ] || die "the bad release was not taken back"
	systemctl is-active --quiet sluice-agent || die "the agent does not run"
	if sh $mirror/$old/install.sh --from $mirror --version "$old"; then die "an older version was not refused after an update"; fi
elif sluice update --from $mirror; then
	die "sluice update replaced what a package manager owns"
fi
sh $mirror/$old/install.sh --uninstall --purge
! systemctl is-active --quiet sluice-agent || die "the agent still runs"
snapshot >/root/after
diff /root/before /root/after || die "something is left"
echo "install_guest: all of it, method $method"
