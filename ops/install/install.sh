#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh: installs, upgrades and removes sluice from a signed release: a mirror or a folder. POSIX sh; as root.
#
#   install.sh [--from MIRROR|FOLDER] [--key FILE|RW…] [--version V] [--method auto|package|file] [--prefix DIR]
#              [--allow-downgrade] [--no-check] [--no-start] [--dry-run]
#   install.sh --uninstall [--purge] [--dry-run]
#
#   --from             URL or path of a mirror (VERSION/ and latest/), or a release folder; by default the folder that
#                      this script or the shell is in, if it is one, else where the last installation came from
#   --key              the release key, a minisign public key; by default /etc/sluice/release.pub, which it then becomes
#   --version          by default the mirror's latest
#   --method           package: .deb or .rpm; file: the files with a manifest; auto: package where there is a manager
#   --prefix           with the method file: instead of /usr, such as /usr/local or /opt/sluice
#   --allow-downgrade  otherwise an older version than the installed one is refused
#   --no-check         does not run `sluice doctor`: only for an image that is made on another kernel
#   --no-start         installs, and neither enables nor starts the agent
#   --uninstall        removes what was installed; --purge also configuration, spool, lake and account
#
# Exit status: 0 done, or nothing to do; 1 failed or refused, all is as before; 2 wrong usage; 3 not all is as before.
# man sluice-install is its manual. All of it is functions: a half downloaded script does nothing.
set -eu
umask 022
LC_ALL=C
PATH=${PATH:-/usr/bin:/bin}:/usr/sbin:/sbin:/usr/bin:/bin
export LC_ALL PATH

STATE=/var/lib/sluice-install	# root's alone, unlike /var/lib/sluice: manifest, state, the package that is installed
KEY_PATH=/etc/sluice/release.pub
UNIT=sluice-agent.service
PACKAGE=sluice-agent	# sluice is another program in Debian
WATCHED=${SLUICE_INSTALL_WATCH:-5}	# seconds that a started agent has to stay up
SUMS_MAX=1048576

from='' key='' version='' method=auto prefix='' downgrade=no check=yes start=yes dry=no uninstall=no purge=no
STAGE='' LOCKED=no UNDO='' HELD=no was_active=no HAD=' '

say() { printf 'install.sh: %s\n' "$*"; }
warn() { printf 'install.sh: %s\n' "$*" >&2; }
die() {
	warn "$*"
	exit 1
}
usage() {
	[ $# = 0 ] || warn "$*; install.sh --help lists the options"
	exit 2
}
have() { command -v "$1" >/dev/null 2>&1; }

# --- where this is -----------------------------------------------------------------------------------------------

# release_of NAME FILE: the value in os-release, which is not run.
release_of() { sed -n "s/^$1=//p" "$2" | sed "s/^[\"']//; s/[\"']\$//" | head -n 1; }

detect() {
	os=unknown os_like='' os_name='an unknown system'
	for f in /etc/os-release /usr/lib/os-release; do
		[ -r "$f" ] || continue
		os=$(release_of ID "$f") os_like=$(release_of ID_LIKE "$f") os_name=$(release_of PRETTY_NAME "$f")
		break
	done
	case $(uname -s)/$(uname -m) in
	Linux/x86_64 | Linux/amd64) arch=x86_64 deb_arch=amd64 ;;
	Linux/aarch64 | Linux/arm64) arch=aarch64 deb_arch=arm64 ;;
	*) die "there is no sluice for $(uname -s) on $(uname -m): it is built for Linux on x86_64 and aarch64" ;;
	esac
	# The family's own package manager; a Debian that has rpm installed is not managed by it.
	family=''
	for id in $os $os_like; do
		case $id in
		debian | ubuntu) family=deb ;;
		rhel | fedora | centos | suse | opensuse* | sles) family=rpm ;;
		*) continue ;;
		esac
		break
	done
	manager=none
	case $family in
	deb)
		if have apt-get && have dpkg; then manager=apt-get; elif have dpkg; then manager=dpkg; fi
		[ $manager = none ] || [ "$(dpkg --print-architecture)" = $deb_arch ] || manager=none
		;;
	rpm)
		for m in dnf zypper rpm; do
			if have rpm && have "$m"; then
				manager=$m
				break
			fi
		done
		;;
	esac
	kernel=$(uname -r)
	init=other
	if [ -d /run/systemd/system ] && have systemctl; then init=systemd; fi
	say "$os_name on $arch, Linux $kernel, packages by $manager, services by $init"
	major=${kernel%%.*}
	minor=${kernel#*.}
	minor=${minor%%[!0-9]*}
	if [ "$major" -lt 5 ] || { [ "$major" = 5 ] && [ "${minor:-0}" -lt 10 ]; }; then
		warn "Linux $kernel is older than 5.10: \`sluice doctor\` says whether it has what sluice needs"
	elif [ ! -r /sys/kernel/btf/vmlinux ]; then
		warn "this kernel has no /sys/kernel/btf/vmlinux: \`sluice doctor\` says whether sluice can do without"
	fi
}

# Why something was missing is of use only with the command that gets it.
how_to_get() {
	case $family/$os in
	deb/*) echo "apt-get install $1" ;;
	rpm/*suse* | rpm/sles) echo "zypper install $1" ;;
	rpm/*) echo "dnf install $1" ;;
	*/alpine) echo "apk add $1" ;;
	*/arch) echo "pacman -S $1" ;;
	*) echo "install $1" ;;
	esac
}

# setting NAME: what the last installation wrote; empty if there was none.
setting() { [ ! -r $STATE/state ] || sed -n "s/^$1=//p" $STATE/state; }

# is_version V: three numbers, as every release has; whatever else becomes no part of a path.
is_version() { printf '%s\n' "$1" | grep -Eq '^(0|[1-9][0-9]{0,5})(\.(0|[1-9][0-9]{0,5})){2}$'; }

# older A B: A is an older version than B.
older() {
	awk -v a="$1" -v b="$2" 'BEGIN {
		split(a, x, "."); split(b, y, ".")
		for (i = 1; i <= 3; i++) if (x[i] + 0 != y[i] + 0) exit !(x[i] + 0 < y[i] + 0)
		exit 1
	}'
}

# What is installed: `installed` is package, file, other or none; `current` its version.
look() {
	installed=none current='' package_state=none
	if [ -r $STATE/manifest ]; then
		installed='file'
		old_prefix=$(setting prefix)
		# `sluice update` may have replaced the program since.
		current=$("$old_prefix/bin/sluice" --version 2>/dev/null | sed -n '1s/^sluice //p') || true
		is_version "$current" || current=$(setting version)
		return
	fi
	case $family in
	deb)
		if have dpkg-query; then
			found=$(dpkg-query -W -f='${db:Status-Status} ${Version}' $PACKAGE 2>/dev/null) || found=''
			case $found in
			'' | not-installed*) ;;
			config-files*) package_state=removed ;;
			installed*) installed=package current=${found#* } ;;
			*) die "dpkg has the package $PACKAGE half done (${found%% *}); first run: dpkg --configure -a" ;;
			esac
		fi
		;;
	rpm)
		if have rpm; then current=$(rpm -q --qf '%{VERSION}' $PACKAGE 2>/dev/null) && installed=package || current=''; fi
		;;
	esac
	current=${current%%-*}
	current=${current#*:}
	[ $installed = none ] || return 0
	for p in "${prefix:-/usr}" /usr /usr/local; do
		[ ! -e "$p/bin/sluice" ] || installed=other other=$p/bin/sluice
	done
}

# --- what is fetched, and whether it is what was signed ----------------------------------------------------------

make_stage() {
	# Where programs may be run: many hosts mount one of these noexec.
	for at in "${TMPDIR:-/var/tmp}" /var/tmp /tmp /run /root; do
		STAGE=$(mktemp -d "$at/sluice-install.XXXXXX" 2>/dev/null) || continue
		printf '#!/bin/sh\nexit 0\n' >"$STAGE/try" && chmod 755 "$STAGE" "$STAGE/try"
		if "$STAGE/try" 2>/dev/null; then
			rm "$STAGE/try"
			return
		fi
		rm -rf "$STAGE"
	done
	STAGE=''
	die "no folder for temporary files in which programs may run: name one with TMPDIR=FOLDER"
}

is_url() { case $1 in http://* | https://*) return 0 ;; *) return 1 ;; esac }

# get BASE NAME TO: false if it is not there or did not come as a whole.
get() {
	if is_url "$1"; then
		if have curl; then
			curl -fsSL --proto '=http,https' --connect-timeout 20 --speed-limit 1 --speed-time 60 --retry 2 -o "$3" "$1/$2"
		elif have wget && wget --version 2>/dev/null | grep -q GNU; then
			wget -q -T 60 -t 2 -O "$3" "$1/$2"
		elif have wget; then
			# Of busybox, whose option -T crashes in Debian's static build.
			if have timeout; then timeout 900 wget -q -O "$3" "$1/$2"; else wget -q -O "$3" "$1/$2"; fi
		else
			die "neither curl nor wget is here to read $1; run: $(how_to_get curl)"
		fi
	else
		[ -f "$1/$2" ] && cp "$1/$2" "$3"
	fi
}

# The folder of the version that is wanted, in `base`.
find_base() {
	if [ -z "$from" ]; then
		here=$(dirname "$0")
		if [ -f "$here/SHA256SUMS" ]; then
			from=$here
		elif [ -f ./SHA256SUMS ]; then
			from=.
		else
			from=$(setting from)
		fi
		[ -n "$from" ] || usage "where is the release? --from MIRROR, or a folder that has SHA256SUMS"
	fi
	from=${from#file://}
	case $from in [a-z]*://*) is_url "$from" || usage "--from $from: a URL begins with https:// or http://" ;; esac
	while [ "$from" != / ] && [ "${from%/}" != "$from" ]; do from=${from%/}; done
	if ! is_url "$from"; then
		[ -d "$from" ] || die "--from $from: no such folder"
		from=$(cd "$from" && pwd)
		if [ -f "$from/SHA256SUMS" ]; then
			base=$from
			return
		fi
	fi
	base=$from/${version:-latest}
}

find_key() {
	key_file=$STAGE/key.pub
	if [ -z "$key" ]; then
		[ -r $KEY_PATH ] || die "which key signs the releases? --key FILE|RW…, once: it is then kept in $KEY_PATH"
		key=$KEY_PATH
	fi
	case $key in
	RW*) printf 'untrusted comment: release key of sluice\n%s\n' "$key" >"$key_file" ;;
	*)
		[ -f "$key" ] || die "--key $key: no such file, and no key of minisign, which begins with RW"
		# A file of the key alone will do, too.
		printf 'untrusted comment: release key of sluice\n%s\n' "$(grep '^RW' "$key" | head -n 1)" >"$key_file"
		;;
	esac
	sed -n 2p "$key_file" | grep -Eq '^RW[A-Za-z0-9+/]{54}$' ||
		die "$key is no public key of minisign: 56 characters that begin with RW"
}

find_verifier() {
	if have minisign; then
		verifier=minisign
	elif have openssl && openssl version 2>/dev/null | grep -Eq '^OpenSSL ([3-9]|[1-9][0-9])\.'; then
		verifier=openssl
	else
		case $family/$os in
		deb/* | */alpine | */arch) die "nothing here can verify the signature; run: $(how_to_get minisign)" ;;
		*) die "nothing here can verify the signature: it takes minisign or OpenSSL 3; run: $(how_to_get openssl)" ;;
		esac
	fi
}

# decoded BASE64 FILE BYTES
decoded() {
	printf '%s' "$1" | openssl base64 -d -A >"$2" 2>/dev/null && [ "$(wc -c <"$2" | tr -d ' ')" = "$3" ]
}

# signed MESSAGE SIGNATURE: by the key in $v/pub.der.
signed() {
	openssl pkeyutl -verify -pubin -keyform DER -inkey "$v/pub.der" -rawin -in "$1" -sigfile "$2" >/dev/null 2>&1
}

# What minisign -V does: the signature over the hash of the file, and a second one over the first and the comment.
verify_by_openssl() {
	v=$STAGE/verify
	rm -rf "$v" && mkdir "$v"
	decoded "$(sed -n 2p "$key_file")" "$v/key" 42 || return 1
	decoded "$(sed -n 2p "$2")" "$v/first" 74 || return 1
	decoded "$(sed -n 4p "$2")" "$v/second" 64 || return 1
	dd if="$v/key" bs=1 skip=2 count=8 of="$v/key.id" 2>/dev/null
	dd if="$v/first" bs=1 skip=2 count=8 of="$v/first.id" 2>/dev/null
	cmp -s "$v/key.id" "$v/first.id" || return 1
	# A SubjectPublicKeyInfo of Ed25519 (RFC 8410) is these twelve bytes and the key.
	{ printf '\060\052\060\005\006\003\053\145\160\003\041\000' && dd if="$v/key" bs=1 skip=10 2>/dev/null; } >"$v/pub.der"
	dd if="$v/first" bs=1 skip=10 of="$v/first.signature" 2>/dev/null
	openssl dgst -blake2b512 -binary -out "$v/hash" "$1" || return 1
	{ cat "$v/first.signature" && sed -n 3p "$2" | sed 's/^trusted comment: //' | tr -d '\n'; } >"$v/with_comment"
	signed "$v/hash" "$v/first.signature" && signed "$v/with_comment" "$v/second"
}

# verify FOLDER: its SHA256SUMS is signed by the key, hashed first ("ED"). `signed_version` is what the signature names.
verify() {
	sums=$1/SHA256SUMS sig=$1/SHA256SUMS.minisig
	for f in "$sums" "$sig"; do
		[ "$(wc -c <"$f")" -le $SUMS_MAX ] || die "${f##*/} of $base is no list of checksums: it is larger than 1 MiB"
	done
	case $(sed -n 2p "$sig") in
	RUQ* | RUR* | RUS* | RUT*) ;;
	*) die "SHA256SUMS.minisig of $base is no signature of minisign over a hash (\"ED\")" ;;
	esac
	case $verifier in
	minisign) minisign -VQm "$sums" -x "$sig" -p "$key_file" >/dev/null 2>&1 ;;
	openssl) verify_by_openssl "$sums" "$sig" ;;
	esac || die "SHA256SUMS of $base is not signed by the key $key, or was changed since: do not use it"
	signed_version=$(sed -n '3s/^trusted comment: sluice //p' "$sig")
	is_version "$signed_version" || die "the signature of $base names no version of sluice"
}

# fetch NAME: into $STAGE, compared with the signed list.
fetch() {
	wanted=$(awk -v name="$1" '$2 == name || $2 == "*" name { print $1 }' "$STAGE/SHA256SUMS")
	printf '%s\n' "$wanted" | grep -Eq '^[0-9a-f]{64}$' || die "the release $version at $base has no $1"
	get "$base" "$1" "$STAGE/$1" || die "cannot get $base/$1"
	[ "$(sha256 "$STAGE/$1")" = "$wanted" ] ||
		die "$base/$1 is not what was signed: only a part of it came, or it was changed; nothing was installed"
}

sha256() { sha256sum "$1" | cut -d' ' -f1; }

fetch_list() {
	for name in SHA256SUMS SHA256SUMS.minisig; do
		get "$base" $name "$STAGE/$name" ||
			die "cannot get $base/$name: is there a release? Without a signature nothing is installed"
	done
	verify "$STAGE"
	[ -z "$version" ] || [ "$version" = "$signed_version" ] ||
		die "$base is sluice $signed_version, not $version: the mirror gave another release than the one asked for"
	version=$signed_version
	# `latest` may change while this reads: the rest comes from the version's own folder.
	case $base in "$from/latest") if is_url "$from" || [ -d "$from/$version" ]; then base=$from/$version; fi ;; esac
	say "sluice $version, signed by the key $key (verified by $verifier)"
}

# --- what is about to be installed is tried first ----------------------------------------------------------------

try_binary() {
	chmod 755 "$1"
	said=$("$1" --version 2>&1 | head -n 1) || true
	[ "$said" = "sluice $version" ] || die "the program of the release does not run here, or is another version: $said"
	if [ $check = no ]; then
		warn "not checked: neither \`sluice doctor\` nor its self-test was run (--no-check)"
		return
	fi
	if [ "$(id -u)" != 0 ]; then
		warn "not checked: \`sluice doctor\` needs root"
		return
	fi
	status=0
	"$1" doctor >"$STAGE/doctor" 2>&1 || status=$?
	case $status in
	0) say "sluice doctor: this kernel has everything" ;;
	1) say "sluice doctor: works; null on this kernel:$(awk '$2 == "missing" { printf " %s", $1 }' "$STAGE/doctor")" ;;
	*)
		cat "$STAGE/doctor" >&2
		die "sluice does not work on this kernel (\`sluice doctor\` ended with $status); nothing was installed"
		;;
	esac
	"$1" doctor --self-test >"$STAGE/self-test" 2>&1 || {
		cat "$STAGE/self-test" >&2
		die "the self-test failed on this kernel; nothing was installed"
	}
	say "sluice doctor --self-test: $(tail -n 1 "$STAGE/self-test")"
}

# --- the package manager's way -----------------------------------------------------------------------------------

package_name() {
	case $family in
	deb) echo "${PACKAGE}_${1}_$deb_arch.deb" ;;
	rpm) echo "$PACKAGE-$1-1.$arch.rpm" ;;
	esac
}

# install_package FILE HOW: HOW is new, same, newer or older than what is there.
install_package() {
	case $manager in
	apt-get)
		case $2 in older) option=--allow-downgrades ;; same) option=--reinstall ;; *) option='' ;; esac
		DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 \
			-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold ${option:+"$option"} install "$1"
		;;
	dpkg) DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold -i "$1" ;;
	# No repositories: the package needs none, and a host without a network has none. No signature in the package: its
	# checksum was compared with the signed list. (--nogpgcheck of dnf 5 leaves localpkg_gpgcheck as it is.)
	dnf)
		case $2 in older) verb=downgrade ;; same) verb=reinstall ;; *) verb=install ;; esac
		dnf -y --disablerepo='*' --setopt=localpkg_gpgcheck=0 $verb "$1"
		;;
	zypper) zypper --non-interactive --no-refresh --no-gpg-checks install --allow-unsigned-rpm --oldpackage --force "$1" ;;
	rpm) rpm -U --oldpackage --replacepkgs "$1" ;;
	esac </dev/null >"$STAGE/manager.log" 2>&1
}

# With --no-start the package must not start the agent, either, whose spool would become part of an image: on Debian this
# file prevents it. It is removed again, also by whatever ends the script.
POLICY=/usr/sbin/policy-rc.d
hold_services() {
	if [ $start = yes ] || [ "$family" != deb ] || [ -e $POLICY ]; then return 0; fi
	HELD=yes
	printf '#!/bin/sh\nexit 101\n' >$POLICY
	chmod 755 $POLICY
}
release_services() {
	[ "$HELD" = no ] || rm -f $POLICY
	HELD=no
}

remove_package() {
	case $manager in
	apt-get) DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$1" $PACKAGE ;;
	dpkg) dpkg "--$1" $PACKAGE ;;
	dnf) dnf -y --disablerepo='*' --setopt=clean_requirements_on_remove=False remove $PACKAGE ;;
	zypper) zypper --non-interactive --no-refresh remove $PACKAGE ;;
	rpm) rpm -e $PACKAGE ;;
	*) false ;;
	esac </dev/null >"$STAGE/manager.log" 2>&1
}

# The package to return to, should the new one fail: the one kept last time, or the mirror's.
find_way_back() {
	way_back=''
	[ $installed = package ] || return 0
	former=$(package_name "$current")
	if [ -f "$STATE/$former" ]; then
		way_back=$STATE/$former
	elif [ -n "$current" ] && [ "$current" != "$version" ]; then
		mkdir "$STAGE/former"
		for f in SHA256SUMS SHA256SUMS.minisig "$former"; do
			get "$from/$current" "$f" "$STAGE/former/$f" 2>/dev/null || break
		done
		if [ -f "$STAGE/former/$former" ] && (verify "$STAGE/former") &&
			grep -q "^$(sha256 "$STAGE/former/$former") [ *]$former\$" "$STAGE/former/SHA256SUMS"; then
			way_back=$STAGE/former/$former
		fi
	fi
	[ -n "$way_back" ] || [ "$current" = "$version" ] ||
		warn "the package of $current is neither kept nor at $from: no way back, should the agent of $version not start"
}

undo_package() {
	if [ $installed = none ]; then
		# The manager may have refused it: then none has anything to remove.
		case $family in
		deb) dpkg-query -W $PACKAGE ;;
		rpm) rpm -q $PACKAGE ;;
		esac >/dev/null 2>&1 || return 0
		# What an earlier removal kept stays, and a configuration that the manager now takes for the package's.
		verb=remove
		if [ $package_state = none ] && ! had /etc/sluice/sluice.yaml; then verb=purge; fi
		# Its postrm deletes both folders and the account, whosever they are: without it, the files of the package alone.
		if [ $verb = purge ] && [ "$HAD" != ' ' ] && postrm=$(dpkg-query --control-path $PACKAGE postrm 2>/dev/null); then
			rm -f "$postrm"
			! have deb-systemd-helper || DPKG_MAINTSCRIPT_PACKAGE=$PACKAGE deb-systemd-helper purge $UNIT >/dev/null 2>&1 || true
		fi
		undone=0
		remove_package $verb || undone=1
		undo_made || undone=1
		return $undone
	elif [ -n "$way_back" ]; then
		how=older
		if older "$version" "$current"; then how=newer; elif [ "$current" = "$version" ]; then how=same; fi
		install_package "$way_back" $how
	else
		warn "the package of $current is not at hand: sluice $version stays"
		false
	fi
}

by_package() {
	name=$(package_name "$version")
	bare=sluice-$version-linux-$arch
	fetch "$bare"
	fetch "$name"
	try_binary "$STAGE/$bare"
	find_way_back
	[ $dry = no ] || { say "would install $name by $manager, and start the agent" && return; }
	how=new
	if [ $installed = package ]; then
		how=newer
		if older "$version" "$current"; then how=older; elif [ "$version" = "$current" ]; then how=same; fi
	fi
	UNDO=undo_package
	hold_services
	installing=0
	install_package "$STAGE/$name" $how || installing=$?
	release_services
	[ $installing = 0 ] || {
		tail -n 20 "$STAGE/manager.log" >&2
		die "$manager could not install $name"
	}
	[ "$(sha256 /usr/bin/sluice)" = "$(sha256 "$STAGE/$bare")" ] ||
		die "/usr/bin/sluice is not the release's after $manager installed $name"
	program=/usr/bin/sluice
}

keep_package() {
	mkdir -p $STATE
	mv -f "$STAGE/$(package_name "$version")" "$STATE/.new"
	rm -f $STATE/sluice*.deb $STATE/sluice*.rpm
	mv -f $STATE/.new "$STATE/$(package_name "$version")"
}

# --- files with a manifest ---------------------------------------------------------------------------------------
# A line of the manifest: `file SHA256 PATH`, `conf SHA256 PATH` (as shipped; the user may change it), `link - PATH`
# `new SHA256 PATH` (beside a configuration that the user has changed) or `dir - PATH` (made by us).

# in_manifest KIND PATH: the checksum.
in_manifest() {
	[ -r $STATE/manifest ] || return 0
	awk -v path="$2" -v kind="$1" '$1 == kind && substr($0, length($1 $2) + 3) == path { print $2 }' $STATE/manifest
}

# The tree of the archive as it lies below --prefix.
lay_out() {
	tree=$STAGE/tree
	mkdir "$tree"
	gzip -dc "$STAGE/$archive" | tar -xf - -C "$tree" || die "cannot unpack $archive"
	chown -R 0:0 "$tree" 2>/dev/null || [ "$(id -u)" != 0 ] || die "cannot give the unpacked files to root"
	[ -f "$tree/usr/bin/sluice" ] || die "$archive has no usr/bin/sluice"
	[ "$prefix" != /usr ] || return 0
	for kind in systemd/system sysusers.d tmpfiles.d; do
		[ -d "$tree/usr/lib/$kind" ] || continue
		mkdir -p "$tree/etc/$kind"
		for f in "$tree/usr/lib/$kind"/*; do
			sed "s|/usr/bin/sluice|$prefix/bin/sluice|g" "$f" >"$tree/etc/$kind/${f##*/}"
		done
		rm -r "$tree/usr/lib/$kind"
	done
	find "$tree/usr" -depth -type d -exec rmdir {} + 2>/dev/null || true
	mv "$tree/usr" "$tree/moved"	# the prefix may be below /usr
	mkdir -p "$tree${prefix%/*}"
	mv "$tree/moved" "$tree$prefix"
}

# made_dirs PATH: makes the folders above it, and notes those that were not there.
made_dirs() {
	above=${1%/*} missing=''
	while [ -n "$above" ] && [ ! -d "$above" ]; do
		missing="$above
$missing"
		above=${above%/*}
	done
	printf '%s' "$missing" | while IFS= read -r d; do
		mkdir "$d" && printf '%s\n' "$d" >>"$STAGE/dirs"
	done
}

backup() {
	mkdir -p "$STAGE/former${1%/*}"
	cp -pP "$1" "$STAGE/former$1"
}

# What phase one wrote is complete before phase two renames the first of it.
place() {
	: >"$STAGE/dirs" && : >"$STAGE/done" && : >"$STAGE/moves" && : >"$STAGE/manifest"
	UNDO=undo_files
	# The program comes last: with it this is the new version.
	(cd "$tree" && find . \( -type f -o -type l \) | sed 's/^\.//' | sort | awk -v last="$prefix/bin/sluice" '
		$0 != last { print } END { print last }') >"$STAGE/files"
	(cd "$tree" && find . -type d | sed 's/^\.//' | sort) >"$STAGE/folders"
	while IFS= read -r path; do
		made_dirs "$path/." || die "cannot make the folder $path; is it read-only? Then: --prefix /opt/sluice"
	done <"$STAGE/folders"
	while IFS= read -r path; do
		to=$path kind='file'
		[ ! -h "$tree$path" ] || kind='link'
		case $path in /etc/sluice/*) kind=conf ;; esac
		sum=-
		[ $kind = link ] || sum=$(sha256 "$tree$path")
		printf '%s %s %s\n' $kind "$sum" "$path" >>"$STAGE/manifest"
		if [ $kind = conf ] && [ -e "$path" ]; then
			now=$(sha256 "$path")
			[ "$now" != "$sum" ] || continue
			if [ "$now" != "$(in_manifest conf "$path")" ]; then
				[ "$sum" != "$(in_manifest conf "$path")" ] || continue
				to=$path.new	# shipped anew, and changed by the user
				say "$path is yours and stays; the new one is $to"
				printf 'new %s %s\n' "$sum" "$to" >>"$STAGE/manifest"
			fi
		fi
		[ ! -d "$to" ] || die "$to is a folder"
		printf '%s\n' "$to" >>"$STAGE/moves"
		cp -pP "$tree$path" "$to.sluice-new" ||
			die "cannot write $to; is it read-only or full? Elsewhere: --prefix /opt/sluice"
	done <"$STAGE/files"
	while IFS= read -r to; do
		if [ -e "$to" ] || [ -h "$to" ]; then backup "$to"; fi
		printf '%s\n' "$to" >>"$STAGE/done"
		mv -f "$to.sluice-new" "$to"
	done <"$STAGE/moves"
	drop_obsolete
	grep -vxF $STATE "$STAGE/dirs" | sed 's/^/dir - /' >>"$STAGE/manifest" || true
	if [ -r $STATE/manifest ]; then
		grep '^dir ' $STATE/manifest >>"$STAGE/manifest" || true
		backup $STATE/manifest
	fi
	made_dirs $STATE/manifest && chmod 700 $STATE
	printf '%s\n' $STATE/manifest >>"$STAGE/done"
	cp "$STAGE/manifest" $STATE/manifest.new && mv -f $STATE/manifest.new $STATE/manifest
	! have restorecon || xargs restorecon -i <"$STAGE/done" 2>/dev/null || true
}

# What the version before had, and this one has not.
drop_obsolete() {
	[ -r $STATE/manifest ] || return 0
	while read -r kind sum path; do
		[ "$kind" != dir ] || continue
		[ "$(cut -d' ' -f3- "$STAGE/manifest" | grep -cxF "$path")" = 0 ] || continue
		[ -e "$path" ] || [ -h "$path" ] || continue
		if [ "$kind" = new ]; then
			printf 'new %s %s\n' "$sum" "$path" >>"$STAGE/manifest"
			continue
		fi
		if [ "$kind" = conf ] && [ "$(sha256 "$path")" != "$sum" ]; then continue; fi
		backup "$path"
		printf '%s\n' "$path" >>"$STAGE/done"
		rm -f "$path"
	done <$STATE/manifest
}

undo_files() {
	undone=0
	while IFS= read -r to; do
		if [ -e "$STAGE/former$to" ] || [ -h "$STAGE/former$to" ]; then
			cp -pP "$STAGE/former$to" "$to.sluice-new" && mv -f "$to.sluice-new" "$to" ||
				{ warn "could not put back $to; what it was is $STAGE/former$to" && undone=1; }
		else
			rm -f "$to" || { warn "could not remove $to" && undone=1; }
		fi
		rm -f "$to.sluice-new"
	done <"$STAGE/done"
	while IFS= read -r to; do rm -f "$to.sluice-new" || undone=1; done <"$STAGE/moves"
	undo_made || undone=1
	sort -r "$STAGE/dirs" | while IFS= read -r d; do rmdir "$d" 2>/dev/null || true; done
	return $undone
}

# The account of the agent, and its groups, by what the system has.
make_account() {
	conf=/usr/lib/sysusers.d/sluice.conf
	[ "$prefix" = /usr ] || conf=/etc/sysusers.d/sluice.conf
	if have systemd-sysusers; then
		systemd-sysusers $conf
	elif have useradd; then
		getent group sluice-admin >/dev/null || groupadd --system sluice-admin
		id sluice >/dev/null 2>&1 ||
			useradd --system --user-group --no-create-home --home-dir /var/lib/sluice --shell /usr/sbin/nologin \
				--comment 'sluice agent' sluice
	elif have adduser && have addgroup; then	# of busybox
		grep -q '^sluice-admin:' /etc/group || addgroup -S sluice-admin
		grep -q '^sluice:' /etc/group || addgroup -S sluice
		id sluice >/dev/null 2>&1 || adduser -S -D -H -h /var/lib/sluice -s /sbin/nologin -g 'sluice agent' -G sluice sluice
	else
		warn "nothing here makes accounts: make a user sluice, or set \`user\` in /etc/sluice/sluice.yaml"
	fi
}

# Only the account that is as we make it, and only what was not there before.
remove_account() {
	kept=0
	if ! had account && grep -q '^sluice:[^:]*:[^:]*:[^:]*:sluice agent:/var/lib/sluice:' /etc/passwd; then
		if have userdel; then userdel sluice; else deluser sluice; fi || kept=1
	fi
	for group in sluice sluice-admin; do
		if had $group || ! grep -q "^$group:" /etc/group; then continue; fi
		if have groupdel; then groupdel $group; else delgroup $group; fi || kept=1
	done
	return $kept
} >/dev/null 2>&1

# note_had: what is there before an installation. had NAME: whether that was.
note_had() {
	! grep -q '^sluice:' /etc/passwd || HAD="${HAD}account "
	for group in sluice sluice-admin; do
		! grep -q "^$group:" /etc/group || HAD="$HAD$group "
	done
	for path in /etc/sluice /etc/sluice/sluice.yaml /var/lib/sluice; do
		if [ -e $path ] || [ -h $path ]; then HAD="$HAD$path "; fi
	done
}
had() { case $HAD in *" $1 "*) return 0 ;; *) return 1 ;; esac }

# What an installation that is undone has made beside its files: it, its agent or its package.
undo_made() {
	left=0
	for path in /etc/sluice /var/lib/sluice; do
		had $path || rm -rf $path || { warn "could not remove $path" && left=1; }
	done
	# Older records came to belong to the new account, whose uid is another's once it is gone.
	if ! had account && had /var/lib/sluice && grep -q '^sluice:' /etc/passwd; then
		find /var/lib/sluice/ -user sluice -exec chown -h 0:0 {} + ||
			{ warn "could not take from the account sluice what is its in /var/lib/sluice" && left=1; }
	fi
	remove_account || { warn "could not remove the account sluice and its groups" && left=1; }
	return $left
}

by_file() {
	archive=sluice-$version-linux-$arch.tar.gz
	fetch "$archive"
	lay_out
	try_binary "$tree$prefix/bin/sluice"
	[ $dry = no ] || {
		say "would write these files, and start the agent:"
		(cd "$tree" && find . \( -type f -o -type l \) | sed 's/^\./  /' | sort)
		return
	}
	place
	make_account
	if have systemd-tmpfiles && [ $init = systemd ]; then
		for f in /usr/lib/tmpfiles.d/sluice.conf /etc/tmpfiles.d/sluice.conf; do
			[ ! -f $f ] || systemd-tmpfiles --create $f || warn "systemd-tmpfiles could not do what $f says"
		done
	fi
	program=$prefix/bin/sluice
}

# --- the service -------------------------------------------------------------------------------------------------

main_pid() { systemctl show -p MainPID --value $UNIT 2>/dev/null || true; }

start_agent() {
	service='not started'
	if [ $init != systemd ]; then
		say "no systemd runs here: start \`$program agent -c /etc/sluice/sluice.yaml\` by what starts services on this system"
		return
	fi
	systemctl daemon-reload
	enabled=$(systemctl is-enabled $UNIT 2>/dev/null) || true
	if [ $start = no ]; then
		if [ $installed = none ]; then systemctl disable $UNIT >/dev/null 2>&1 || true; fi
		say "the agent was not started (--no-start); later: systemctl enable --now $UNIT"
		return
	fi
	if [ $installed != none ] && [ $was_active = no ]; then
		service="$enabled, and not running, as before"
		return
	fi
	[ "$enabled" != masked ] || die "$UNIT is masked; first run: systemctl unmask $UNIT, or install with --no-start"
	if [ $was_active = no ]; then
		systemctl enable --now $UNIT >"$STAGE/systemctl.log" 2>&1
	elif [ "$(main_pid)" = "$pid_before" ]; then	# otherwise the package has restarted it
		systemctl restart $UNIT >"$STAGE/systemctl.log" 2>&1
	fi || {
		cat "$STAGE/systemctl.log" >&2
		systemctl --no-pager --lines 20 status $UNIT >&2 || true
		die "the agent of sluice $version did not start"
	}
	pid=$(main_pid)
	i=0
	while [ "$i" -lt "$WATCHED" ]; do
		sleep 1
		i=$((i + 1))
		if ! systemctl is-active --quiet $UNIT || [ "$(main_pid)" != "$pid" ]; then
			systemctl --no-pager --lines 20 status $UNIT >&2 || true
			die "the agent of sluice $version ended within $WATCHED seconds"
		fi
	done
	service="runs as pid $pid"
}

# Back to what was before: called once, by whatever ends the script.
undo() {
	what=$UNDO
	UNDO=''
	[ -n "$what" ] || return 0
	warn "undoing: back to ${current:+sluice }${current:-no sluice}"
	if [ $init = systemd ] && [ $installed = none ]; then systemctl disable --now $UNIT >/dev/null 2>&1 || true; fi
	undone=0
	(set +e; $what) || {
		undone=1
		warn "could not undo all of it; what it takes is kept in $STAGE"
		STAGE=''
	}
	if [ $init = systemd ]; then
		systemctl daemon-reload || true
		[ $was_active = no ] || systemctl restart $UNIT || {
			undone=1
			warn "nor does the agent start: systemctl status $UNIT"
		}
	fi
	[ $undone = 1 ] || warn "everything is as it was before"
	return $undone
}

# --- from here on what is done -----------------------------------------------------------------------------------

lock() {
	# In /run, which a boot empties; the pid in it says whether its owner still lives.
	lock_dir=/run/sluice-install.lock
	mkdir -p /run
	if ! mkdir $lock_dir 2>/dev/null; then
		owner=$(cat $lock_dir/pid 2>/dev/null) || owner=''
		if [ -z "$owner" ] || [ -d "/proc/$owner" ]; then
			die "another install.sh runs (pid ${owner:-unknown}); if not: rm -r $lock_dir"
		fi
		rm -rf $lock_dir
		mkdir $lock_dir 2>/dev/null || die "another install.sh has just started"
	fi
	echo $$ >$lock_dir/pid
	LOCKED=yes
}

on_exit() {
	status=$?
	trap - EXIT
	trap '' HUP INT TERM
	set +e
	release_services
	undo || status=3
	[ -z "$STAGE" ] || rm -rf "$STAGE"
	[ $LOCKED = no ] || rm -rf "$lock_dir"
	exit $status
}

need_root() {
	[ $dry = yes ] || [ "$(id -u)" = 0 ] || die "needs root; run: sudo sh $0 …, or look first: --dry-run"
}

choose_method() {
	case $installed in
	file | package)
		[ "$method" = auto ] || [ "$method" = $installed ] ||
			die "sluice $current is installed by the method $installed; to change that: install.sh --uninstall, then again"
		method=$installed
		;;
	other)
		die "$other is neither a package's nor this script's; remove it first (cmake --build BUILD --target uninstall)"
		;;
	esac
	if [ "$method" = auto ]; then
		method=package
		if [ $manager = none ] || [ -n "$prefix" ]; then method='file'; fi
	fi
	if [ "$method" = package ]; then
		[ -z "$prefix" ] || usage "--prefix: a package lies in /usr; with --method file"
		[ $manager != none ] || die "no package manager for .deb or .rpm on $arch is here: --method file"
		return
	fi
	if [ $installed = file ]; then
		[ -z "$prefix" ] || [ "$prefix" = "$old_prefix" ] ||
			die "sluice is installed below $old_prefix; to change that: install.sh --uninstall, then again"
		prefix=$old_prefix
	fi
	prefix=${prefix:-/usr}
}

write_state() {
	mkdir -p $STATE && chmod 700 $STATE
	printf 'version=%s\nmethod=%s\nprefix=%s\nfrom=%s\n' "$version" "$method" "$prefix" "$from" >$STATE/state.new
	mv -f $STATE/state.new $STATE/state
	if [ ! -e $KEY_PATH ]; then
		mkdir -p "${KEY_PATH%/*}"
		cp "$key_file" $KEY_PATH.new && mv -f $KEY_PATH.new $KEY_PATH
		sha256 $KEY_PATH >$STATE/key
		say "the key is kept in $KEY_PATH: the next time needs no --key"
	elif ! grep -qxF "$(sed -n 2p "$key_file")" $KEY_PATH; then
		warn "$KEY_PATH has another key, and stays; to trust this one from now on, replace it"
	fi
}

do_install() {
	make_stage
	find_base
	find_key
	find_verifier
	look
	choose_method
	fetch_list
	program=${prefix:-/usr}/bin/sluice
	if [ -n "$current" ] && older "$version" "$current" && [ $downgrade = no ]; then
		die "sluice $current is installed, and $version is older: refused without --allow-downgrade"
	fi
	note_had
	wanted=$(awk -v name="sluice-$version-linux-$arch" '$2 == name { print $1 }' "$STAGE/SHA256SUMS")
	if [ $init = systemd ] && systemctl is-active --quiet $UNIT; then was_active=yes; fi
	pid_before=$(main_pid)
	if [ "$current" = "$version" ] && [ -x "$program" ] && [ "$(sha256 "$program")" = "$wanted" ] && is_whole; then
		say "sluice $version is installed already, by the method $method; nothing to do"
		[ $dry = yes ] || write_state
		return
	fi
	"by_$method"
	[ $dry = no ] || return 0
	start_agent
	write_state
	[ "$method" = file ] || keep_package
	UNDO=''	# from here on it stays
	say "done: sluice $version${current:+ in place of $current}, by the method $method; the agent: $service"
	say "next: edit /etc/sluice/sluice.yaml (man sluice.yaml), then: $program check && $program ctl reload"
	say "to remove it: install.sh --uninstall"
}

# Every file of the manifest is as it was written, or is configuration.
is_whole() {
	[ "$method" = file ] || return 0
	grep '^file ' $STATE/manifest | sed 's/^file \([0-9a-f]*\) /\1  /' | sha256sum -c >/dev/null 2>&1
}

do_uninstall() {
	make_stage
	look
	method=$installed prefix=$(setting prefix)
	prefix=${prefix:-/usr}
	case $installed in
	none | other)
		say "no sluice that a package or this script installed is here"
		if [ $purge = yes ] && [ $dry = no ]; then
			if [ $package_state = removed ]; then remove_package purge || warn "$manager could not purge $PACKAGE"; fi
			purge_rest
		fi
		return
		;;
	esac
	if [ $dry = yes ]; then
		say "would stop the agent, take the probes from the kernel and remove sluice $current, method $installed"
		[ $purge = no ] || say "would remove /etc/sluice and /var/lib/sluice, with records that are not delivered yet"
		return
	fi
	if [ $init = systemd ]; then
		systemctl disable --now $UNIT >/dev/null 2>&1 || ! systemctl is-active --quiet $UNIT || die "cannot stop $UNIT"
	fi
	"$prefix/bin/sluice" agent --uninstall >"$STAGE/pins.log" 2>&1 ||
		warn "the probes stay in the kernel until the next boot: $(tail -n 1 "$STAGE/pins.log")"
	if [ $installed = package ]; then
		verb=remove
		[ $purge = no ] || verb=purge
		remove_package $verb || {
			tail -n 20 "$STAGE/manager.log" >&2
			die "$manager could not remove sluice"
		}
	else
		remove_files
	fi
	[ $init != systemd ] || systemctl daemon-reload || true
	if [ -r $STATE/key ] && [ -f $KEY_PATH ] && [ "$(sha256 $KEY_PATH)" = "$(cat $STATE/key)" ]; then
		rm -f $KEY_PATH
		rmdir /etc/sluice 2>/dev/null || true
	fi
	rm -rf $STATE
	[ $purge = no ] || purge_rest
	say "sluice $current is removed"
	for d in /etc/sluice /var/lib/sluice; do
		[ ! -d $d ] || say "$d stays: it is yours (--uninstall --purge removes it)"
	done
}

remove_files() {
	# What `sluice update` keeps beside the program.
	rm -f "$prefix/bin/sluice.previous" "$prefix/bin/.sluice.update" "$prefix/bin/.sluice.update.old" \
		"$prefix/bin/.sluice.update.lock"
	while read -r kind sum path; do
		case $kind in
		file | link | new) rm -f "$path" ;;
		conf) [ "$(sha256 "$path" 2>/dev/null)" != "$sum" ] || rm -f "$path" ;;
		esac
	done <$STATE/manifest
	[ ! -r $STATE/key ] || [ "$(sha256 $KEY_PATH 2>/dev/null)" != "$(cat $STATE/key)" ] || rm -f $KEY_PATH
	sed -n 's/^dir - //p' $STATE/manifest | sort -ru | while IFS= read -r d; do rmdir "$d" 2>/dev/null || true; done
}

purge_rest() {
	rm -rf /etc/sluice /var/lib/sluice $STATE
	remove_account || true
	say "configuration, spool, lake and account are removed, too"
}

help() { sed -n '3,/^# Exit status/s/^# \{0,1\}//p' "$0" 2>/dev/null || say "see man sluice-install"; }

main() {
	while [ $# -gt 0 ]; do
		case $1 in
		--from | --key | --version | --method | --prefix)
			[ -n "${2:-}" ] || usage "$1 needs a value"
			case $1 in
			--from) from=$2 ;;
			--key) key=$2 ;;
			--version) version=$2 ;;
			--method) method=$2 ;;
			--prefix) prefix=${2%/} ;;
			esac
			shift
			;;
		--allow-downgrade) downgrade=yes ;;
		--no-check) check=no ;;
		--no-start) start=no ;;
		--dry-run) dry=yes ;;
		--uninstall) uninstall=yes ;;
		--purge) purge=yes ;;
		--help | -h)
			help
			exit 0
			;;
		*) usage "no option $1" ;;
		esac
		shift
	done
	case $method in auto | package | file) ;; *) usage "--method $method: auto, package or file" ;; esac
	[ -z "$version" ] || is_version "$version" || usage "--version $version: three numbers, such as 1.2.3"
	if [ -n "$prefix" ]; then
		printf '%s\n' "$prefix" | grep -Eq '^(/[A-Za-z0-9._+-]+)+$' ||
			usage "--prefix $prefix: an absolute path of letters, digits and ._+-"
		case $prefix/ in */../* | */./*) usage "--prefix $prefix: without . and .." ;; esac
	fi
	[ $purge = no ] || [ $uninstall = yes ] || usage "--purge goes with --uninstall"
	need_root
	trap on_exit EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	[ $dry = yes ] || lock
	detect
	if [ $uninstall = yes ]; then do_uninstall; else do_install; fi
}

main "$@"
