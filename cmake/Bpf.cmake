# SPDX-License-Identifier: Apache-2.0
# bpf/*.bpf.c -> one object -> sluice.skel.h. Debug info is what CO-RE relocations are made of.
find_program(BPF_CLANG NAMES clang clang-14 REQUIRED)
find_program(BPFTOOL bpftool PATHS /usr/sbin /sbin REQUIRED)
string(REGEX REPLACE "^(x86_64|AMD64)$" "x86" BPF_ARCH ${CMAKE_SYSTEM_PROCESSOR})
string(REGEX REPLACE "^aarch64$" "arm64" BPF_ARCH ${BPF_ARCH})

# <asm/types.h> lies beside the native compiler's headers.
execute_process(COMMAND ${BPF_CLANG} -print-multiarch OUTPUT_VARIABLE BPF_MULTIARCH OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT BPF_MULTIARCH)
	execute_process(COMMAND cc -print-multiarch OUTPUT_VARIABLE BPF_MULTIARCH OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()

file(GLOB BPF_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bpf/*.bpf.c)
# libbpf's linker wants a map's definition before the first use of it in another object.
set(BPF_FIRST ${CMAKE_SOURCE_DIR}/bpf/state.bpf.c ${CMAKE_SOURCE_DIR}/bpf/path.bpf.c)
list(REMOVE_ITEM BPF_SOURCES ${BPF_FIRST})
list(PREPEND BPF_SOURCES ${BPF_FIRST})
file(GLOB BPF_HEADERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bpf/*.h)
set(BPF_GEN ${CMAKE_BINARY_DIR}/gen)

# bpf_object(SOURCE OBJECT [INCLUDED…]): compiled anew when SOURCE, a header or another source that it includes changes.
# The object has the names of its sources, for the verifier's messages: by the tree, not by where that lies.
function(bpf_object source object)
	get_filename_component(dir ${object} DIRECTORY)
	get_filename_component(name ${source} NAME_WE)
	add_custom_command(OUTPUT ${object}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${dir}
		COMMAND ${BPF_CLANG} -target bpf -mcpu=v2 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter
			-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -D__TARGET_ARCH_${BPF_ARCH} -I${CMAKE_SOURCE_DIR}/bpf -idirafter /usr/include/${BPF_MULTIARCH} -c ${source} -o ${object}
		DEPENDS ${source} ${ARGN} ${BPF_HEADERS} COMMENT "BPF ${name}" VERBATIM)
endfunction()

# bpf_skeleton(DIR OBJECT…): DIR/sluice.skel.h of all these objects.
function(bpf_skeleton dir)
	add_custom_command(OUTPUT ${dir}/sluice.skel.h
		COMMAND ${BPFTOOL} gen object ${dir}/sluice.bpf.linked.o ${ARGN}
		COMMAND sh -c "${BPFTOOL} gen skeleton ${dir}/sluice.bpf.linked.o name sluice_bpf > ${dir}/sluice.skel.h"
		DEPENDS ${ARGN} COMMENT "BPF skeleton" VERBATIM)
endfunction()

set(BPF_OBJECTS "")
foreach(source IN LISTS BPF_SOURCES)
	get_filename_component(name ${source} NAME_WE)
	bpf_object(${source} ${BPF_GEN}/${name}.bpf.o)
	list(APPEND BPF_OBJECTS ${BPF_GEN}/${name}.bpf.o)
endforeach()
set(BPF_SKELETON ${BPF_GEN}/sluice.skel.h)
bpf_skeleton(${BPF_GEN} ${BPF_OBJECTS})
