# SPDX-License-Identifier: Apache-2.0
# What dev/kernels and dev/guests share: guests of an emulator, and how they begin.
# shellcheck shell=bash

# guest_tsc: the frequency of the CPU's counter, which an emulated CPU shares. Beside a load a guest that measures it
# itself may be wrong, and its clock then runs several times too fast. Known where this machine is a virtual one.
guest_tsc() {
	awk '/^flags/ { is_virtual = / hypervisor / } /^cpu MHz/ { mhz = $4 }
		END { if (is_virtual && mhz) printf "tsc_early_khz=%d", mhz * 1000 }' /proc/cpuinfo
}

# emulator_of ARCH: $emulator, which runs a machine of that architecture, and the kernel's $parameters there. Always by
# emulation: a /dev/kvm that opens may still hang a stock kernel.
emulator_of() {
	# shellcheck disable=SC2034  # for who reads this file
	if [ "$1" = aarch64 ]; then
		emulator=(qemu-system-aarch64 -machine virt -cpu cortex-a72)
		parameters="console=ttyAMA0"
	else
		emulator=(qemu-system-x86_64 -machine q35 -cpu max)
		parameters="console=ttyS0 tsc=reliable $(guest_tsc)"
	fi
	emulator+=(-accel "tcg,thread=multi,tb-size=512" -nodefaults -no-user-config -display none -no-reboot)
}

# pack_initramfs DIR RELEASE OUT MODULE…: standard input as /init, busybox, and the modules of DIR/lib/modules/RELEASE
# with what they need, named by /modules/order in the order to load them. BUSYBOX may name that of another architecture.
pack_initramfs() {
	local dir=$1 release=$2 out=$3 tree module file name
	shift 3
	tree=$(mktemp -d "$out.XXXXXX")
	chmod 755 "$tree" # it becomes the guest's first /
	mkdir -p "$tree"/{bin,modules,proc,sys,dev,host,layer,root}
	cp "${BUSYBOX:-$(command -v busybox)}" "$tree/bin/busybox"
	for module in "$@"; do
		modprobe -d "$dir" -S "$release" --show-depends "$module" | sed -n 's/^insmod //p'
	done | awk '!seen[$1]++ { print $1 }' | while read -r file; do
		name=$(basename "$file")
		case $name in
		*.xz) xz -dc "$file" >"$tree/modules/${name%.xz}" ;;
		*.zst) zstd -qdc "$file" >"$tree/modules/${name%.zst}" ;;
		*) cp "$file" "$tree/modules/$name" ;;
		esac
		name=${name%.xz}
		echo "${name%.zst}" >>"$tree/modules/order"
	done
	cat >"$tree/init"
	chmod +x "$tree/init"
	(cd "$tree" && find . | cpio --quiet -o -H newc | gzip -1) >"$out.new"
	mv "$out.new" "$out"
	rm -rf "$tree"
}
