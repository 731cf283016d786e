# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034  # what the recipes read is set by, and recipes is read by, dev/static
# How each source of sources.tsv becomes a static library below $prefix: build_NAME runs in its unpacked source.
# Order: what others need comes first. Read by dev/static, which sets CC, AR, RANLIB, CFLAGS and PKG_CONFIG_LIBDIR.
recipes=(zlib libzstd openssl curl jansson avro-c libevent libyaml pcre2 elfutils libbpf libcap2 util-linux libdeflate uthash
	librdkafka)

# ours NAME VERSION LIBS [REQUIRES]: a .pc file, where the library's own build makes none or one with other paths.
ours() {
	printf 'Name: %s\nDescription: %s\nVersion: %s\nRequires: %s\nLibs: -L%s/lib %s\nCflags: -I%s/include\n' \
		"$1" "$1" "$2" "${4:-}" "$prefix" "$3" "$prefix" >"$prefix/lib/pkgconfig/$1.pc"
}

by_cmake() {
	cmake -G Ninja -S . -B by_cmake -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_INSTALL_PREFIX="$prefix" \
		-DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE= -DBUILD_SHARED_LIBS=OFF \
		-DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
}

build_zlib() {
	CHOST=$host ./configure --static --prefix="$prefix"
	make -j"$jobs" libz.a
	make install
}

build_libzstd() {
	make -C lib -j"$jobs" libzstd.a
	make -C lib PREFIX="$prefix" install-static install-includes install-pc
}

# no-filenames: paths of the build would show up in messages. no-module and no-dso: a static program loads nothing. It keeps
# the flags that it was given, for who asks; it needs no other library's folder.
build_openssl() {
	local CPPFLAGS='' LDFLAGS=''
	./Configure "linux-$arch" --prefix=/usr --libdir=lib --openssldir=/etc/ssl no-shared no-module no-dso no-tests no-docs no-apps \
		no-legacy no-engine no-quic no-dtls no-comp no-srp no-ssl3 no-idea no-bf no-cast no-rc2 no-rc4 no-seed no-camellia \
		no-aria no-sm2 no-sm3 no-sm4 no-gost no-whirlpool no-mdc2 no-siphash no-filenames
	make -j"$jobs" build_libs
	make install_dev DESTDIR="$PWD/installed"
	sed -i "s#^prefix=.*#prefix=$prefix#" installed/usr/lib/pkgconfig/*.pc
	cp -r installed/usr/include installed/usr/lib "$prefix/"
}

# HTTP and HTTPS alone. Without certificates of its own: src/ names the file (base/ca_bundle.c), since each system has another,
# and where it cannot, in librdkafka, the fallback is OpenSSL's default, which it sets.
build_curl() {
	./configure --host="$host" --prefix="$prefix" --disable-shared --enable-static --with-openssl="$prefix" --with-zlib="$prefix" \
		--without-libpsl --without-brotli --without-zstd --without-nghttp2 --without-libidn2 --without-librtmp --without-libssh2 \
		--without-ca-bundle --without-ca-path --with-ca-fallback --disable-ldap --disable-ldaps --disable-rtsp --disable-dict \
		--disable-telnet --disable-tftp --disable-pop3 --disable-imap --disable-smb --disable-smtp --disable-gopher --disable-mqtt \
		--disable-ftp --disable-file --disable-ipfs --disable-manual --disable-docs --disable-ntlm --disable-websockets
	make -C lib -j"$jobs"
	make -C lib install
	make -C include install
	make install-pkgconfigDATA
}

build_jansson() {
	by_cmake -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
	ninja -C by_cmake -j"$jobs" install
}

build_avro-c() {
	by_cmake -DTHREADSAFE=ON
	ninja -C by_cmake -j"$jobs" avro-static
	cp by_cmake/src/libavro.a "$prefix/lib/"
	cp -r src/avro.h src/avro "$prefix/include/"
	ours avro-c "$upstream" -lavro "jansson zlib"
}

build_libevent() {
	by_cmake -DEVENT__LIBRARY_TYPE=STATIC -DEVENT__DISABLE_{OPENSSL,MBEDTLS,TESTS,REGRESS,SAMPLES,BENCHMARK,DEBUG_MODE}=ON
	ninja -C by_cmake -j"$jobs" install
	mkdir -p "$prefix/include/sys"
	cp compat/sys/queue.h "$prefix/include/sys/" # musl has none
}

build_libyaml() {
	by_cmake -DBUILD_TESTING=OFF
	ninja -C by_cmake -j"$jobs" install
	ours yaml-0.1 "$upstream" -lyaml
}

build_pcre2() {
	./configure --host="$host" --prefix="$prefix" --disable-shared --disable-jit
	make -j"$jobs" libpcre2-8.la
	cp .libs/libpcre2-8.a "$prefix/lib/"
	cp src/pcre2.h "$prefix/include/"
	ours libpcre2-8 "$upstream" -lpcre2-8
}

# libelf alone: the rest of elfutils wants argp, fts and obstack, which musl has not.
build_elfutils() {
	local sources file
	ac_cv_search_argp_parse="none required" ac_cv_search_fts_close="none required" ac_cv_search__obstack_free="none required" \
		./configure --host="$host" --prefix="$prefix" --disable-shared --disable-nls --disable-debuginfod --disable-libdebuginfod \
		--disable-demangler --without-bzlib --without-lzma --without-zstd --with-zlib
	sources=(libelf/*.c lib/eu-search.c)
	# shellcheck disable=SC2086  # CFLAGS are several words
	for file in "${sources[@]}"; do
		echo "$file"
	done | xargs -P"$jobs" -I{} "$CC" $CFLAGS -std=gnu99 -D_GNU_SOURCE -DHAVE_CONFIG_H -DPIC -I. -Ilib -Ilibelf -Ilibebl -Ilibdw \
		-I"$prefix/include" -c {} -o {}.o
	"$AR" rcs "$prefix/lib/libelf.a" "${sources[@]/%/.o}"
	cp libelf/{libelf,gelf,nlist}.h "$prefix/include/"
	ours libelf "$upstream" -lelf zlib
}

build_libbpf() {
	make -C src -j"$jobs" BUILD_STATIC_ONLY=1 NO_PKG_CONFIG=1 OBJDIR="$PWD/objects" PREFIX="$prefix" LIBDIR="$prefix/lib" \
		INCLUDEDIR="$prefix/include" CFLAGS="$CFLAGS -I$prefix/include" install
	ours libbpf "$upstream" -lbpf "libelf zlib"
}

# Its names of capabilities are made by a program that runs here.
build_libcap2() {
	make -C libcap -j"$jobs" libcap.a BUILD_CC=cc USE_GPERF=no SHARED=no CC="$CC" AR="$AR" RANLIB="$RANLIB" COPTS="$CFLAGS"
	cp libcap/libcap.a "$prefix/lib/"
	cp -r libcap/include/sys "$prefix/include/"
	ours libcap "$upstream" -lcap
}

# localstatedir: where libuuid keeps its clock; by the prefix it would be below this folder.
build_util-linux() {
	./configure --host="$host" --prefix="$prefix" --localstatedir=/var --disable-shared --enable-static --disable-all-programs \
		--enable-libuuid --enable-libsmartcols --disable-nls --disable-asciidoc --disable-poman --without-python --without-systemd --without-udev \
		--without-ncurses --without-ncursesw --without-tinfo --without-readline --without-cap-ng --without-selinux --without-audit
	make -j"$jobs" libuuid.la libsmartcols.la
	cp .libs/libuuid.a .libs/libsmartcols.a "$prefix/lib/"
	mkdir -p "$prefix/include/uuid" "$prefix/include/libsmartcols"
	cp libuuid/src/uuid.h "$prefix/include/uuid/"
	cp libsmartcols/src/libsmartcols.h "$prefix/include/libsmartcols/"
	ours uuid "$upstream" -luuid
	ours smartcols "$upstream" -lsmartcols
}

# Clang 22 no longer has the feature evex512, which libdeflate names unless the compiler reports it as on.
build_libdeflate() {
	CFLAGS="$CFLAGS -D__EVEX512__" by_cmake -DLIBDEFLATE_BUILD_SHARED_LIB=OFF -DLIBDEFLATE_BUILD_GZIP=OFF
	ninja -C by_cmake -j"$jobs" install
}

build_uthash() {
	cp src/*.h "$prefix/include/"
}

# mklove, librdkafka's own: its CMake files lose SCRAM and OAUTHBEARER where SASL's library is left out.
build_librdkafka() {
	./configure --prefix="$prefix" --CFLAGS="$CFLAGS -I$prefix/include" --disable-gssapi --enable-ssl --enable-zstd \
		--disable-lz4-ext --enable-curl --disable-debug-symbols
	make -j"$jobs" -C src librdkafka.a
	cp src/librdkafka.a "$prefix/lib/"
	mkdir -p "$prefix/include/librdkafka"
	cp src/rdkafka{,_mock}.h "$prefix/include/librdkafka/"
	ours rdkafka "$upstream" "-lrdkafka -lm" "libcurl libssl libcrypto libzstd zlib"
}

# licences_of NAME: the files of its source with the terms under which it may be passed on.
licences_of() {
	case $1 in
	avro-c) echo LICENSE NOTICE ;; # section 4(d) of its licence
	libevent | uthash | zlib | jansson | libzstd) echo LICENSE ;;
	libdeflate | curl) echo COPYING ;;
	libyaml | libcap2) echo License ;;
	openssl) echo LICENSE.txt ;;
	pcre2) echo LICENCE.md ;;
	elfutils) echo COPYING COPYING-GPLV2 COPYING-LGPLV3 ;;
	libbpf) echo LICENSE LICENSE.BSD-2-Clause LICENSE.LGPL-2.1 ;;
	util-linux) echo README.licensing libsmartcols/COPYING libuuid/COPYING Documentation/licenses/COPYING.{LGPL-2.1-or-later,BSD-3-Clause} ;;
	librdkafka) echo LICENSE && awk -F '\t' '$1 == "librdkafka" { print "LICENSE." $3 }' dev/static.d/bundled.tsv ;;
	esac
}
