# SPDX-License-Identifier: Apache-2.0
# Puts files into the binary: schemas/avro/*.avsc as gen/schemas.c, a table of { name, text, length } that is read
# through codec/schema.h, and config/rules.d/*.yaml as gen/rules.c, the trees that libyaml reads of them, through
# rules/rules.h. pack_rules is defined where the libraries are, in CMakeLists.txt.
file(GLOB SCHEMA_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/schemas/avro/*.avsc)
list(SORT SCHEMA_FILES)
set(SCHEMA_SOURCE ${CMAKE_BINARY_DIR}/gen/schemas.c)
add_custom_command(OUTPUT ${SCHEMA_SOURCE}
	COMMAND ${CMAKE_COMMAND} -DOUT=${SCHEMA_SOURCE} "-DFILES=${SCHEMA_FILES}" -P ${CMAKE_SOURCE_DIR}/cmake/EmbedSchemas.cmake
	DEPENDS ${SCHEMA_FILES} ${CMAKE_SOURCE_DIR}/cmake/EmbedSchemas.cmake
	COMMENT "Embedding schemas/avro" VERBATIM)

file(GLOB RULES_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/config/rules.d/*.yaml)
list(SORT RULES_FILES)
set(RULES_SOURCE ${CMAKE_BINARY_DIR}/gen/rules.c)
add_custom_command(OUTPUT ${RULES_SOURCE}
	COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:pack_rules> ${RULES_SOURCE} ${RULES_FILES}
	DEPENDS pack_rules ${RULES_FILES}
	COMMENT "Embedding config/rules.d" VERBATIM)
