# SPDX-License-Identifier: Apache-2.0
# The library Rdkafka. Debian 12's own does all but SCRAM with Kafka 4, which needs 2.6.1: where
# dev/librdkafka has built a newer one, that is linked, statically.
set(SLUICE_RDKAFKA auto CACHE STRING "librdkafka: system, bundled (dev/librdkafka's), or auto: bundled where the system's is older than 2.6.1 and the other is there")
set_property(CACHE SLUICE_RDKAFKA PROPERTY STRINGS auto system bundled)
set(SLUICE_RDKAFKA_DIR ${CMAKE_SOURCE_DIR}/build/librdkafka CACHE PATH "where dev/librdkafka built it")

if(NOT SLUICE_RDKAFKA MATCHES "^(auto|system|bundled)$")
	message(FATAL_ERROR "SLUICE_RDKAFKA is ${SLUICE_RDKAFKA}; it can be auto, system or bundled")
endif()
pkg_check_modules(RDKAFKA QUIET IMPORTED_TARGET rdkafka>=2.0)
set(stamp ${SLUICE_RDKAFKA_DIR}/version)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${stamp})
if(SLUICE_RDKAFKA STREQUAL "bundled" AND NOT EXISTS ${stamp})
	message(FATAL_ERROR "SLUICE_RDKAFKA is bundled, but ${SLUICE_RDKAFKA_DIR} has none; run: dev/librdkafka ${SLUICE_RDKAFKA_DIR}")
endif()

add_library(Rdkafka INTERFACE)
if(SLUICE_RDKAFKA STREQUAL "bundled" OR
	(SLUICE_RDKAFKA STREQUAL "auto" AND EXISTS ${stamp} AND (NOT RDKAFKA_FOUND OR RDKAFKA_VERSION VERSION_LESS 2.6.1)))
	file(STRINGS ${stamp} version LIMIT_COUNT 1)
	# What its ./configure found here and put into the archive.
	pkg_check_modules(RDKAFKA_NEEDS REQUIRED IMPORTED_TARGET libssl libcrypto libzstd libcurl zlib)
	target_include_directories(Rdkafka SYSTEM INTERFACE ${SLUICE_RDKAFKA_DIR}/include)
	target_link_libraries(Rdkafka INTERFACE ${SLUICE_RDKAFKA_DIR}/lib/librdkafka.a PkgConfig::RDKAFKA_NEEDS m ${CMAKE_DL_LIBS})
	set(SLUICE_RDKAFKA_IS_BUNDLED ON)
	message(STATUS "librdkafka: ${version}, from ${SLUICE_RDKAFKA_DIR}")
elseif(RDKAFKA_FOUND)
	target_link_libraries(Rdkafka INTERFACE PkgConfig::RDKAFKA)
	message(STATUS "librdkafka: ${RDKAFKA_VERSION}, the system's")
	if(RDKAFKA_VERSION VERSION_LESS 2.6.1)
		message(STATUS "librdkafka: no SCRAM with Kafka 4; for that run dev/librdkafka and configure anew")
	endif()
else()
	message(FATAL_ERROR "librdkafka is missing; run: ./dev/install, or dev/librdkafka")
endif()
