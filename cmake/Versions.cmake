# SPDX-License-Identifier: Apache-2.0
# SLUICE_LIBRARIES: "name version" of each library that the program is linked with, one a line, as pkg-config knows them
# here. A static program has no others; one that is linked dynamically may meet newer ones of the same ABI.
set(SLUICE_LIBRARIES "")
foreach(library IN ITEMS avro-c jansson libbpf libcap libcurl libdeflate libelf libevent_core libpcre2-8 libzstd openssl
	rdkafka smartcols uuid yaml-0.1 zlib)
	if(library STREQUAL rdkafka AND SLUICE_RDKAFKA_IS_BUNDLED)
		file(STRINGS ${SLUICE_RDKAFKA_DIR}/version version LIMIT_COUNT 1)
	else()
		execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --modversion ${library} OUTPUT_VARIABLE version
			OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	endif()
	if(version)
		# As people know it: libpcre2-8 is pcre2, rdkafka is librdkafka.
		string(REGEX REPLACE "^lib(pcre2|event)[-_].*" "\\1" name ${library})
		string(REGEX REPLACE "-0\\.1$" "" name ${name})
		string(REGEX REPLACE "^(rdkafka|event|yaml|smartcols|uuid)$" "lib\\1" name ${name})
		string(APPEND SLUICE_LIBRARIES "${name} ${version}\\n")
	endif()
endforeach()
