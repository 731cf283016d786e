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

# storm NAME: programs that differ in their argument, while something else happens; how many is in /root/NAME.
storm() {
	i=0
	while [ "$i" -lt "$programs" ]; do
		/bin/true "$1-$i"
		i=$((i + 1))
	done
	echo "$i" >"/root/$1"
}

# over NAME COMMAND…: during a storm.
over() {
	name=$1
	shift
	storm "$name" &
	pid=$!
	sleep 1
	"$@" || die "$*: failed"
	[ -d "/proc/$pid" ] && during=yes || during=no
	wait "$pid"
	sluice ctl settle >/dev/null || die "the agent does not settle after $name"
	sluice cat --topic program /var/lib/sluice/lake | grep -o "\"$name-[0-9]*\"" | sort >/root/seen
	seen=$(uniq /root/seen | wc -l) twice=$(uniq -d /root/seen | wc -l)
	echo "$name: $seen of $programs programs recorded, $twice twice; the storm outlasted it: $during"
	[ "$seen" = "$programs" ] && [ "$twice" = 0 ] || die "$name: programs are missing or counted twice"
}

snapshot >/root/before
sh $mirror/$old/install.sh --from $mirror --version "$old" --key /mnt/share/release.pub --method "$method"
systemctl is-active --quiet sluice-agent || die "the agent does not run"
systemctl is-enabled --quiet sluice-agent || die "the agent is not enabled"
over running true
first=$(systemctl show -p MainPID --value sluice-agent)
over upgrade sh $mirror/$new/install.sh --from $mirror
[ "$(sluice --version | head -n 1)" = "sluice $new" ] || die "not upgraded"
[ "$(systemctl show -p MainPID --value sluice-agent)" != "$first" ] || die "the agent is still the old one"
if sh $mirror/$old/install.sh --from $mirror --version "$old"; then die "an older version was not refused"; fi
over back sh $mirror/$old/install.sh --from $mirror --version "$old" --allow-downgrade
[ "$(sluice --version | head -n 1)" = "sluice $old" ] || die "not back"
sh $mirror/$old/install.sh --uninstall --purge
! systemctl is-active --quiet sluice-agent || die "the agent still runs"
snapshot >/root/after
diff /root/before /root/after || die "something is left"
echo "install_guest: all of it, method $method"
