# SPDX-License-Identifier: Apache-2.0
# One static library a folder of src/, sluice_<folder>, with the links that ARCHITECTURE.md's table allows it: the last
# column names folders of src/ (with a slash) and libraries (without). The links are PUBLIC: a folder also links what
# the folders that it may use may use. Where unit tests are built (SLUICE_UNITS: not in the preset release), each folder
# is also linked alone, with all that is in it: a call of a folder or library that it does not link even so fails the
# build. lint.calls refuses all other calls of a folder that the caller's row does not name, lint.layers such includes.

# What the table calls a library, and the target behind it.
set(LAYERS_LIBRARY_librdkafka Rdkafka)
set(LAYERS_LIBRARIES Rdkafka)
foreach(library IN ITEMS libbpf avro-c libevent libcurl libcrypto libyaml libpcre2 libcap jansson libsmartcols libuuid libdeflate)
	set(LAYERS_LIBRARY_${library} PkgConfig::${library})
	list(APPEND LAYERS_LIBRARIES PkgConfig::${library})
endforeach()

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ARCHITECTURE.md)
file(READ ${CMAKE_SOURCE_DIR}/ARCHITECTURE.md rows)
string(REGEX REPLACE "[][;]" "," rows "${rows}")  # which mean something in a list
string(REPLACE "\n" ";" rows "${rows}")
list(FILTER rows INCLUDE REGEX "^\\| `src/[a-z_]+/` ")

# The folders, from the ground up, and ALLOWED_<folder>.
set(LAYERS "")
foreach(row IN LISTS rows)
	string(REGEX REPLACE "^\\| `src/([a-z_]+)/`.*" "\\1" folder "${row}")
	string(REGEX REPLACE "^.*\\|([^|]*)\\|$" "\\1" cell "${row}")
	set(ALLOWED_${folder} "")
	string(REGEX MATCHALL "`[^`]+`" names "${cell}")
	foreach(name IN LISTS names)
		string(REPLACE "`" "" name "${name}")
		if(name MATCHES "^([a-z_]+)/$")
			list(APPEND ALLOWED_${folder} sluice_${CMAKE_MATCH_1})
		elseif(DEFINED LAYERS_LIBRARY_${name})
			list(APPEND ALLOWED_${folder} ${LAYERS_LIBRARY_${name}})
		elseif(NOT name MATCHES "\\.h$")
			message(FATAL_ERROR "ARCHITECTURE.md: ${folder} uses ${name}, which is neither a folder nor a library that cmake/Layers.cmake knows")
		endif()
	endforeach()
	if(cell MATCHES "^ all above ")
		list(TRANSFORM LAYERS PREPEND sluice_ OUTPUT_VARIABLE ALLOWED_${folder})
		list(APPEND ALLOWED_${folder} ${LAYERS_LIBRARIES})
	endif()
	list(APPEND LAYERS ${folder})
endforeach()

file(GLOB folders RELATIVE ${CMAKE_SOURCE_DIR}/src CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*/)
list(FILTER folders EXCLUDE REGEX "\\.")
foreach(folder IN LISTS folders)
	if(NOT folder IN_LIST LAYERS)
		message(FATAL_ERROR "ARCHITECTURE.md's table has no row for src/${folder}/")
	endif()
endforeach()

# All that the program consists of but main(), for tests and fuzzers: they link what the program runs.
add_library(sluice_core INTERFACE)
set(SLUICE_ARCHIVES "")
foreach(folder IN LISTS LAYERS)
	file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.c)
	add_library(sluice_${folder} STATIC ${sources} ${GENERATED_${folder}})
	target_include_directories(sluice_${folder} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/bpf ${CMAKE_BINARY_DIR}/gen)
	target_include_directories(sluice_${folder} SYSTEM PUBLIC ${UTHASH_INCLUDE})
	target_link_libraries(sluice_${folder} PUBLIC ${ALLOWED_${folder}} Threads::Threads m)
	target_link_libraries(sluice_core INTERFACE sluice_${folder})
	list(PREPEND SLUICE_ARCHIVES $<TARGET_FILE:sluice_${folder}>)
	if(SLUICE_UNITS)
		add_executable(links_${folder} ${CMAKE_SOURCE_DIR}/cmake/empty_main.c)
		target_link_libraries(links_${folder} PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,sluice_${folder}>")
	endif()
endforeach()
